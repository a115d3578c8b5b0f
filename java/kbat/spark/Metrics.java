package kbat.spark;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What tasks and the driver count, for Spark's UI. */
final class Metrics {
    /** Of a task that reads, in the order of {@link Native#counts}. */
    private static final Metric[] OF_READER = {
        new Batches(), new Records(), new BytesRead(), new BatchesSkipped(), new BytesLost(), new OffsetsLost()
    };
    /** Of the plan of a read. */
    private static final Metric[] OF_PLAN = {new Tasks(), new PlanTime()};
    /** Of a write, in the order of {@link NativeSink#counts}. */
    private static final Metric[] OF_WRITE = {new BatchesWritten(), new RecordsWritten(), new BytesWritten()};
    /** How many values a task that reads has. */
    static final int COUNT = OF_READER.length;

    private Metrics() {}

    /** Returns the metrics of reads, none if Spark's UI can't make them. */
    static CustomMetric[] ofReads() {
        return known(Stream.of(OF_READER, OF_PLAN).flatMap(Arrays::stream).toArray(CustomMetric[]::new));
    }

    /** Returns the metrics of writes, none if Spark's UI can't make them. */
    static CustomMetric[] ofWrites() {
        return known(OF_WRITE);
    }

    private static CustomMetric[] known(CustomMetric[] metrics) {
        return Driver.knowsJar() ? metrics.clone() : new CustomMetric[0];
    }

    /** Returns the counts of a task that reads under the names of the metrics. */
    static CustomTaskMetric[] values(long[] counts) {
        return values(OF_READER, counts);
    }

    /** Returns the number of tasks of a plan, and the milliseconds that planning took. */
    static CustomTaskMetric[] ofPlan(long tasks, long millis) {
        return values(OF_PLAN, tasks, millis);
    }

    /** Returns the counts of a write, in the order of {@link NativeSink#counts}. */
    static CustomTaskMetric[] ofWrite(long[] counts) {
        return values(OF_WRITE, counts);
    }

    private static CustomTaskMetric[] values(Metric[] metrics, long... counts) {
        CustomTaskMetric[] values = new CustomTaskMetric[metrics.length];
        for (int i = 0; i < metrics.length; i++) {
            values[i] = new Value(metrics[i].name(), counts[i]);
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

    public static final class Tasks extends Metric {
        public Tasks() {
            super("kbatTasks", "tasks planned");
        }
    }

    public static final class PlanTime extends Metric {
        public PlanTime() {
            super("kbatPlanTime", "milliseconds to plan the tasks");
        }
    }

    public static final class BatchesWritten extends Metric {
        public BatchesWritten() {
            super("kbatBatchesWritten", "batches written");
        }
    }

    public static final class RecordsWritten extends Metric {
        public RecordsWritten() {
            super("kbatRecordsWritten", "records written");
        }
    }

    public static final class BytesWritten extends Size {
        public BytesWritten() {
            super("kbatBytesWritten", "bytes written");
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
