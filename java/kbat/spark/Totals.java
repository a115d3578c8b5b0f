package kbat.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Aggregates that Rust computes from batch headers: counts of rows, the extremes of offsets, and the largest timestamp.
 * The smallest timestamp is not in a header.
 */
final class Totals {
    private static final String OFFSET = "offset";
    private static final String MAX_TIMESTAMP = "max_timestamp";

    private Totals() {}

    /** Returns the names of the totals of a query in Rust, or null if there is another aggregate. */
    static String[] of(Aggregation aggregation) {
        AggregateFunc[] functions = aggregation.aggregateExpressions();
        if (aggregation.groupByExpressions().length > 0 || functions.length == 0) {
            return null;
        }
        List<String> names = new ArrayList<>();
        for (AggregateFunc function : functions) {
            String name = nameOf(function);
            if (name == null) {
                return null;
            }
            names.add(name);
        }
        return names.toArray(new String[0]);
    }

    /** Returns the schema of a task's row: the totals of its part, which Spark combines. */
    static StructType schema(String[] names) {
        StructType schema = new StructType();
        for (int i = 0; i < names.length; i++) {
            DataType type = names[i].equals(MAX_TIMESTAMP) ? DataTypes.TimestampType : DataTypes.LongType;
            schema = schema.add(names[i] + "_" + i, type, true);
        }
        return schema;
    }

    private static String nameOf(AggregateFunc function) {
        if (function instanceof CountStar) {
            return "count";
        }
        if (function instanceof Count) {
            Count count = (Count) function;
            return !count.isDistinct() && is(OFFSET, count.column()) ? "count" : null; // no offset is null
        }
        if (function instanceof Min) {
            return is(OFFSET, ((Min) function).column()) ? "min_offset" : null;
        }
        if (function instanceof Max) {
            Expression column = ((Max) function).column();
            return is(OFFSET, column) ? "max_offset" : is("timestamp", column) ? MAX_TIMESTAMP : null;
        }
        return null;
    }

    private static boolean is(String name, Expression column) {
        if (!(column instanceof NamedReference)) {
            return false;
        }
        String[] names = ((NamedReference) column).fieldNames();
        return names.length == 1 && names[0].equalsIgnoreCase(name);
    }
}
