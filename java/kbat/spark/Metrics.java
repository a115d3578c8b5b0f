package kbat.spark;

import java.util.Arrays;
import java.util.Locale;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What tasks count, for Spark's UI. The order is that of {@link Native#counts}. */
final class Metrics {
    private static final Metric[] ALL = {
        new Batches(), new Records(), new BytesRead(), new BatchesSkipped(), new BytesLost(), new OffsetsLost()
    };
    /** How many values a task has. */
    static final int COUNT = ALL.length;

    private Metrics() {}

    /** Returns the metrics, none if Spark's UI can't make them. */
    static CustomMetric[] all() {
        return Driver.knowsJar() ? Arrays.copyOf(ALL, COUNT, CustomMetric[].class) : new CustomMetric[0];
    }

    /** Returns the counts of a task under the names of the metrics. */
    static CustomTaskMetric[] values(long[] counts) {
        CustomTaskMetric[] values = new CustomTaskMetric[COUNT];
        for (int i = 0; i < COUNT; i++) {
            values[i] = new Value(ALL[i].name(), counts[i]);
        }
        return values;
    }

    private static final class Value implements CustomTaskMetric {
        private final String name;
        private final long value;

        Value(String name, long value) {
            this.name = name;
            this.value = value;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public long value() {
            return value;
        }
    }

    /** A sum of all tasks. Spark's UI makes each metric from the name of its class, which therefore is public. */
    private abstract static class Metric implements CustomMetric {
        private final String name;
        private final String description;

        Metric(String name, String description) {
            this.name = name;
            this.description = description;
        }

        @Override
        public final String name() {
            return name;
        }

        @Override
        public final String description() {
            return description;
        }

        @Override
        public String aggregateTaskMetrics(long[] values) {
            return String.format(Locale.ROOT, "%,d", sum(values));
        }

        static long sum(long[] values) {
            return Arrays.stream(values).sum();
        }
    }

    /** Bytes, in a unit that suits them. */
    private abstract static class Size extends Metric {
        Size(String name, String description) {
            super(name, description);
        }

        @Override
        public final String aggregateTaskMetrics(long[] values) {
            double size = sum(values);
            String[] units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
            int unit = 0;
            for (; size >= 1024 && unit < units.length - 1; unit++) {
                size /= 1024;
            }
            return String.format(Locale.ROOT, unit == 0 ? "%.0f %s" : "%.1f %s", size, units[unit]);
        }
    }

    public static final class Batches extends Metric {
        public Batches() {
            super("kbatBatches", "batches read");
        }
    }

    public static final class Records extends Metric {
        public Records() {
            super("kbatRecords", "records read");
        }
    }

    public static final class BytesRead extends Size {
        public BytesRead() {
            super("kbatBytesRead", "bytes read");
        }
    }

    public static final class BatchesSkipped extends Metric {
        public BatchesSkipped() {
            super("kbatBatchesSkipped", "batches skipped");
        }
    }

    public static final class BytesLost extends Size {
        public BytesLost() {
            super("kbatBytesLost", "corrupt bytes skipped");
        }
    }

    public static final class OffsetsLost extends Metric {
        public OffsetsLost() {
            super("kbatOffsetsLost", "offsets lost to corruption");
        }
    }
}
