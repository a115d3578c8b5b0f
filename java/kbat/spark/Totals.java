package kbat.spark;

import java.util.Arrays;
import java.util.Collections;
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
 * Aggregates that Rust computes: from batch headers, counts of rows, the extremes of offsets and the largest timestamp; from
 * records, counts of keys and values that are not null. They may be grouped by topic and partition. The smallest timestamp is
 * not in a header, and Spark does not push down the length of bytes.
 */
final class Totals {
    private static final String OFFSET = "offset";
    private static final String MAX_TIMESTAMP = "max_timestamp";
    private static final List<String> GROUPS = Arrays.asList("topic", "partition");
    private static final List<String> NULLABLE = Arrays.asList("key", "value");

    private Totals() {}

    /** Returns the names of the totals of a query in Rust, or null if there is another aggregate. */
    static String[] of(Aggregation aggregation) {
        String[] names = Arrays.stream(aggregation.aggregateExpressions())
                .map(Totals::nameOf)
                .toArray(String[]::new);
        return names.length == 0 || Arrays.asList(names).contains(null) ? null : names;
    }

    /** Returns the names of the columns that a query groups by, or null if there is another expression. */
    static String[] groups(Aggregation aggregation) {
        String[] names = Arrays.stream(aggregation.groupByExpressions())
                .map(column -> nameIn(GROUPS, column))
                .toArray(String[]::new);
        return Arrays.asList(names).contains(null) ? null : names;
    }

    /** Returns the schema of a task's rows: groups, and the totals of its part, which Spark combines. */
    static StructType schema(String[] groups, String[] totals) {
        StructType schema = new StructType();
        for (String group : groups) {
            schema = schema.add(group, group.equals("topic") ? DataTypes.StringType : DataTypes.IntegerType, true);
        }
        for (int i = 0; i < totals.length; i++) {
            DataType type = totals[i].equals(MAX_TIMESTAMP) ? DataTypes.TimestampType : DataTypes.LongType;
            schema = schema.add(totals[i] + "_" + i, type, true);
        }
        return schema;
    }

    private static String nameOf(AggregateFunc function) {
        if (function instanceof CountStar) {
            return "count";
        }
        if (function instanceof Count) {
            Count count = (Count) function;
            if (count.isDistinct()) {
                return null;
            }
            String name = nameIn(NULLABLE, count.column());
            return is(OFFSET, count.column()) ? "count" : name == null ? null : name + "_count"; // no offset is null
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
        return nameIn(Collections.singletonList(name), column) != null;
    }

    /** Returns that of the names which a column has, or null. */
    private static String nameIn(List<String> names, Expression column) {
        if (!(column instanceof NamedReference)) {
            return null;
        }
        String[] parts = ((NamedReference) column).fieldNames();
        return names.stream()
                .filter(name -> parts.length == 1 && parts[0].equalsIgnoreCase(name))
                .findFirst()
                .orElse(null);
    }
}
