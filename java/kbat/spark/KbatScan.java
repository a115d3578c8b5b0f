package kbat.spark;

import java.util.List;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A read of some columns, for a batch or a stream. */
final class KbatScan implements SupportsReportStatistics, SupportsReportPartitioning {
    static final int NO_LIMIT = -1;

    private final StructType schema;
    private final StructType columns;
    private final Options options;
    private final List<Filter> filters;
    private final int limit;
    private final String[] totals;
    private final String[] groups;
    private volatile KbatBatch batch;
    private Statistics statistics;

    /**
     * Describes a read.
     *
     * @param schema the columns of the table, which may be the user's
     * @param columns those of them that the query needs, or one for each group and total
     * @param totals what the tasks compute instead of returning rows; empty for rows
     * @param groups the columns to group the totals by; may be empty
     */
    KbatScan(
            StructType schema,
            StructType columns,
            Options options,
            List<Filter> filters,
            int limit,
            String[] totals,
            String[] groups) {
        this.schema = schema;
        this.columns = columns;
        this.options = options;
        this.filters = filters;
        this.limit = limit;
        this.totals = totals;
        this.groups = groups;
    }

    @Override
    public StructType readSchema() {
        return columns;
    }

    /** Returns the read for {@code explain}. Values that may be secrets are hidden. */
    @Override
    public String description() {
        String pushed = filters.stream().map(Filter::toString).collect(Collectors.joining(", "));
        return "kbat engine: jvm, path: " + options.paths()
                + ", options: [" + options.others()
                + "], PushedFilters: [" + pushed
                + "]" + (limit == NO_LIMIT ? "" : ", PushedLimit: " + limit)
                + (totals.length == 0 ? "" : ", PushedAggregates: [" + String.join(", ", totals) + "]")
                + (groups.length == 0 ? "" : ", PushedGroupBy: [" + String.join(", ", groups) + "]")
                + ", ReadSchema: " + columns.catalogString();
    }

    /** Returns that all columns are read in batches, so that Spark need not plan the tasks to ask. */
    @Override
    public ColumnarSupportMode columnarSupportMode() {
        return ColumnarSupportMode.SUPPORTED;
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return Metrics.ofReads();
    }

    /** Returns the number of tasks, and how long their plan took. */
    @Override
    public CustomTaskMetric[] reportDriverMetrics() {
        return batch == null ? new CustomTaskMetric[0] : batch.driverMetrics();
    }

    @Override
    public Batch toBatch() {
        return batch();
    }

    @Override
    public Partitioning outputPartitioning() {
        return batch().partitioning();
    }

    private synchronized KbatBatch batch() {
        if (batch == null) {
            check(false);
            batch = new KbatBatch(options, columns, filters, limit, totals, groups);
        }
        return batch;
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
        check(true);
        return new KbatStream(options, columns, checkpointLocation);
    }

    @Override
    public Statistics estimateStatistics() {
        if (statistics == null) {
            long[] counts = Native.call(() ->
                    Native.statistics(options.pairs(), options.session(), Filters.encodeAll(filters)));
            statistics = new Estimate(counts[0], counts[2]);
        }
        return statistics;
    }

    private void check(boolean isStream) {
        StructField[] fields = schema.fields();
        String[] all = new String[3 * fields.length];
        for (int i = 0; i < fields.length; i++) {
            all[3 * i] = fields[i].name();
            all[3 * i + 1] = fields[i].dataType().catalogString();
            all[3 * i + 2] = String.valueOf(fields[i].nullable());
        }
        Native.call(() -> {
            Native.check(options.pairs(), options.session(), all, isStream);
            return null;
        });
    }

    private static final class Estimate implements Statistics {
        private final long bytes;
        private final long rows;

        Estimate(long bytes, long rows) {
            this.bytes = bytes;
            this.rows = rows;
        }

        @Override
        public OptionalLong sizeInBytes() {
            return OptionalLong.of(bytes);
        }

        @Override
        public OptionalLong numRows() {
            return rows < 0 ? OptionalLong.empty() : OptionalLong.of(rows);
        }
    }
}
