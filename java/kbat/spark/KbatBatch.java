package kbat.spark;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

/**
 * A batch read. It is planned once: a query that reads it twice reads the same offsets.
 *
 * <p>Equal reads are equal, so that Spark reuses the result of one in the same query.
 */
final class KbatBatch implements Batch {
    private final Options options;
    private final StructType columns;
    private final List<Filter> filters;
    private final int limit;
    private final String[] totals;
    private final String[] groups;
    private final boolean isApart;
    private final boolean isKeyed;
    private InputPartition[] tasks;
    private long planMillis;

    KbatBatch(
            Options options,
            StructType columns,
            List<Filter> filters,
            int limit,
            String[] totals,
            String[] groups) {
        this.options = options;
        this.columns = columns;
        this.filters = filters;
        this.limit = limit;
        this.totals = totals;
        this.groups = groups;
        boolean hasRows = totals.length == 0 && limit == KbatScan.NO_LIMIT;
        isKeyed = hasRows && Grouping.isUseful(columns);
        isApart = hasRows && Grouping.isPlanned(columns);
    }

    @Override
    public synchronized InputPartition[] planInputPartitions() {
        if (tasks == null) {
            long start = System.nanoTime();
            InputPartition[] planned = KbatTask.all(Native.call(() -> Native.plan(
                    options.pairs(),
                    options.session(),
                    totals.length == 0 ? columns.fieldNames() : new String[0],
                    Filters.encodeAll(filters),
                    limit,
                    totals,
                    groups,
                    isApart)));
            tasks = isKeyed ? Grouping.keyed(planned) : planned;
            planMillis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
        }
        return tasks.clone();
    }

    /** Returns how Spark's tasks divide the rows. Plans them if that could be of use. */
    Partitioning partitioning() {
        return isKeyed ? Grouping.of(planInputPartitions(), columns) : new UnknownPartitioning(0);
    }

    /** Returns what the plan has cost, none if there is no plan yet. */
    synchronized CustomTaskMetric[] driverMetrics() {
        return tasks == null ? new CustomTaskMetric[0] : Metrics.ofPlan(tasks.length, planMillis);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new KbatReaderFactory(columns);
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof KbatBatch)) {
            return false;
        }
        KbatBatch that = (KbatBatch) other;
        return options.equals(that.options)
                && columns.equals(that.columns)
                && filters.equals(that.filters)
                && limit == that.limit
                && isApart == that.isApart
                && isKeyed == that.isKeyed
                && Arrays.equals(totals, that.totals)
                && Arrays.equals(groups, that.groups);
    }

    @Override
    public int hashCode() {
        return Objects.hash(options, columns, filters, limit);
    }
}
