package kbat.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A write on the driver, from the check of its options to its commit. */
final class WriteJob {
    private final Options options;
    private final StructType schema;
    private final boolean overwrite;
    private byte[] job;
    private long[] counts = new long[3];

    WriteJob(Options options, StructType schema, boolean overwrite) {
        this.options = options;
        this.schema = schema;
        this.overwrite = overwrite;
    }

    /** Returns the write for {@code explain}. */
    String description() {
        return "kbat engine: jvm, path: " + options.paths() + ", options: [" + options.others() + "]";
    }

    /** Returns the batches, records and bytes of the last commit. */
    long[] counts() {
        return counts.clone();
    }

    /** Checks options and columns. */
    void check() {
        Native.call(() -> {
            NativeSink.check(options.pairs(), columns());
            return null;
        });
    }

    /** Starts the write, and returns what opens its tasks. */
    KbatWriterFactory start() {
        job = Native.call(() -> NativeSink.start(options.pairs(), columns(), overwrite));
        return new KbatWriterFactory(job, schema);
    }

    /** Commits what the tasks have written, as a micro-batch of a query if it is not null. */
    void commit(WriterCommitMessage[] messages, String query, long epoch) {
        List<byte[]> written = new ArrayList<>();
        for (WriterCommitMessage message : messages) {
            if (message != null) { // as for the tasks of a micro-batch that had no data
                written.add(KbatWritten.bytesOf(message));
            }
        }
        Native.call(() -> {
            NativeSink.commit(job, written.toArray(new byte[0][]), query, epoch);
            return null;
        });
        long[] sum = new long[counts.length];
        for (byte[] task : written) {
            long[] own = NativeSink.counts(task);
            Arrays.setAll(sum, i -> sum[i] + own[i]);
        }
        counts = sum;
    }

    /** Removes the files of a write that is not committed. */
    void abort() {
        Native.call(() -> {
            NativeSink.abort(job);
            return null;
        });
    }

    /** Returns name and DDL type of each column. */
    private String[] columns() {
        List<String> columns = new ArrayList<>();
        for (StructField field : schema.fields()) {
            columns.add(field.name());
            columns.add(field.dataType().catalogString());
        }
        return columns.toArray(new String[0]);
    }
}
