package kbat.spark;

import java.sql.Timestamp;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.StringContains;
import org.apache.spark.sql.sources.StringEndsWith;
import org.apache.spark.sql.sources.StringStartsWith;

/** Spark's filters as Rust understands them: operator, column, type, values. */
final class Filters {
    /** Before this time, Spark's timestamps and java.sql's differ by their calendars. 1900-01-01T00:00:00Z. */
    private static final long FIRST_MILLIS = -2208988800000L;

    private Filters() {}

    /** Returns a filter for Rust, null if Rust has no use for it. */
    static String[] encode(Filter filter) {
        if (!(filter instanceof Not)) {
            return simple(filter);
        }
        String[] child = simple(((Not) filter).child());
        if (child != null) {
            child[0] = "not " + child[0];
        }
        return child;
    }

    /** Returns filters that {@link #encode} accepts for Rust. */
    static String[][] encodeAll(List<Filter> filters) {
        return filters.stream().map(Filters::encode).toArray(String[][]::new);
    }

    private static String[] simple(Filter filter) {
        if (filter instanceof EqualTo) {
            return encoded("eq", ((EqualTo) filter).attribute(), ((EqualTo) filter).value());
        }
        if (filter instanceof EqualNullSafe) {
            return encoded("eqNullSafe", ((EqualNullSafe) filter).attribute(), ((EqualNullSafe) filter).value());
        }
        if (filter instanceof GreaterThan) {
            return encoded("gt", ((GreaterThan) filter).attribute(), ((GreaterThan) filter).value());
        }
        if (filter instanceof GreaterThanOrEqual) {
            return encoded("ge", ((GreaterThanOrEqual) filter).attribute(), ((GreaterThanOrEqual) filter).value());
        }
        if (filter instanceof LessThan) {
            return encoded("lt", ((LessThan) filter).attribute(), ((LessThan) filter).value());
        }
        if (filter instanceof LessThanOrEqual) {
            return encoded("le", ((LessThanOrEqual) filter).attribute(), ((LessThanOrEqual) filter).value());
        }
        if (filter instanceof In) {
            return encoded("in", ((In) filter).attribute(), ((In) filter).values());
        }
        if (filter instanceof IsNull) {
            return encoded("isNull", ((IsNull) filter).attribute(), (Object) null);
        }
        if (filter instanceof IsNotNull) {
            return encoded("isNotNull", ((IsNotNull) filter).attribute(), (Object) null);
        }
        if (filter instanceof StringStartsWith) {
            return encoded("startsWith", ((StringStartsWith) filter).attribute(), ((StringStartsWith) filter).value());
        }
        if (filter instanceof StringEndsWith) {
            return encoded("endsWith", ((StringEndsWith) filter).attribute(), ((StringEndsWith) filter).value());
        }
        if (filter instanceof StringContains) {
            return encoded("contains", ((StringContains) filter).attribute(), ((StringContains) filter).value());
        }
        return null;
    }

    private static String[] encoded(String operator, String column, Object value) {
        if (value == null) {
            return new String[] {operator, column, "null"};
        }
        return encoded(operator, column, new Object[] {value});
    }

    /** Encodes values of one type; a null among them equals nothing, and is omitted. */
    private static String[] encoded(String operator, String column, Object[] values) {
        List<String> parts = new ArrayList<>();
        parts.add(operator);
        parts.add(column);
        for (Object value : values) {
            if (value == null) {
                continue;
            }
            String type = type(value);
            if (parts.size() == 2) {
                parts.add(type);
            }
            String text = text(value);
            if (type == null || text == null || !type.equals(parts.get(2))) {
                return null;
            }
            parts.add(text);
        }
        return parts.size() == 2 ? null : parts.toArray(new String[0]);
    }

    private static String type(Object value) {
        if (value instanceof String) {
            return "string";
        }
        if (value instanceof Timestamp || value instanceof Instant) {
            return "timestamp";
        }
        boolean isPrimitive = value instanceof Integer
                || value instanceof Long
                || value instanceof Short
                || value instanceof Byte
                || value instanceof Boolean
                || value instanceof Double;
        // Integer has the name "int" in SQL
        return !isPrimitive ? null : value instanceof Integer ? "int" : value.getClass().getSimpleName().toLowerCase();
    }

    /** Returns a value as text, null if Rust's comparison of it could differ from Spark's. */
    private static String text(Object value) {
        if (value instanceof Double && ((Double) value).isNaN()) {
            return null;
        }
        if (value instanceof Timestamp) {
            Timestamp time = (Timestamp) value;
            long seconds = Math.floorDiv(time.getTime(), 1000L);
            return micros(seconds, time.getNanos());
        }
        if (value instanceof Instant) {
            return micros(((Instant) value).getEpochSecond(), ((Instant) value).getNano());
        }
        return value.toString();
    }

    private static String micros(long seconds, int nanos) {
        if (seconds < FIRST_MILLIS / 1000 || seconds > Long.MAX_VALUE / 2_000_000) {
            return null;
        }
        return String.valueOf(TimeUnit.SECONDS.toMicros(seconds) + nanos / 1000);
    }
}
