package kbat.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Collects what a query needs of a read. */
final class KbatScanBuilder
        implements SupportsPushDownRequiredColumns,
                SupportsPushDownFilters,
                SupportsPushDownLimit,
                SupportsPushDownAggregates {
    private final StructType schema;
    private final Options options;
    private final List<Filter> pushed = new ArrayList<>();
    private StructType columns;
    private int limit = KbatScan.NO_LIMIT;
    private String[] totals = new String[0];
    private String[] groups = new String[0];

    KbatScanBuilder(StructType schema, Options options) {
        this.schema = schema;
        this.options = options;
        this.columns = schema;
    }

    @Override
    public void pruneColumns(StructType required) {
        StructType pruned = new StructType();
        for (StructField field : required.fields()) {
            pruned = pruned.add(schema.apply(field.name())); // all fields of a struct, of which the query may need some
        }
        columns = pruned;
    }

    /** Takes the filters that Rust can use to read less. Spark applies all of them to the rows. */
    @Override
    public Filter[] pushFilters(Filter[] filters) {
        for (Filter filter : filters) {
            if (Filters.encode(filter) != null) {
                pushed.add(filter);
            }
        }
        return filters;
    }

    @Override
    public Filter[] pushedFilters() {
        return pushed.toArray(new Filter[0]);
    }

    /** Takes the limit, for each task: Spark stops at the limit of all. */
    @Override
    public boolean pushLimit(int rows) {
        limit = rows;
        return true;
    }

    @Override
    public boolean isPartiallyPushed() {
        return true;
    }

    /** Takes aggregates that Rust computes. Spark asks only if no filter is left for it to apply. */
    @Override
    public boolean pushAggregation(Aggregation aggregation) {
        String[] names = Totals.of(aggregation);
        String[] by = Totals.groups(aggregation);
        if (names == null || by == null || !Native.call(() -> Native.hasTotals(options.pairs(), options.session()))) {
            return false;
        }
        totals = names;
        groups = by;
        columns = Totals.schema(by, names);
        return true;
    }

    @Override
    public Scan build() {
        return new KbatScan(schema, columns, options, pushed, limit, totals, groups);
    }
}
