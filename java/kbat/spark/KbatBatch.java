package kbat.spark;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
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
    private InputPartition[] tasks;

    KbatBatch(Options options, StructType columns, List<Filter> filters, int limit, String[] totals) {
        this.options = options;
        this.columns = columns;
        this.filters = filters;
        this.limit = limit;
        this.totals = totals;
    }

    @Override
    public synchronized InputPartition[] planInputPartitions() {
        if (tasks == null) {
            tasks = KbatTask.all(Native.call(() -> Native.plan(
                    options.pairs(),
                    options.session(),
                    totals.length == 0 ? columns.fieldNames() : new String[0],
                    Filters.encodeAll(filters),
                    limit,
                    totals)));
        }
        return tasks.clone();
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
                && Arrays.equals(totals, that.totals);
    }

    @Override
    public int hashCode() {
        return Objects.hash(options, columns, filters, limit);
    }
}
