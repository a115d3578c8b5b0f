package kbat.spark;

import java.io.IOException;
import java.util.Arrays;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.TaskCompletionListener;

/** Passes the rows of a task to Rust, about a megabyte at a time. */
final class KbatWriter implements DataWriter<InternalRow> {
    private static final int BUFFER_LENGTH = 1 << 20;
    /** Bytes of the length in front of each row. */
    private static final int PREFIX = 8;

    private final TaskErrors errors;
    private final UnsafeProjection projection;
    private final byte[] buffer = new byte[BUFFER_LENGTH];
    private final NativeMemory memory = NativeMemory.ofTask();
    private int length;
    private long handle;

    /** Writes to an open task, which is closed at the end of Spark's task at the latest. */
    KbatWriter(long handle, StructType schema, TaskErrors errors) {
        this.handle = handle;
        this.errors = errors;
        TaskContext context = TaskContext.get();
        if (context != null) {
            context.addTaskCompletionListener((TaskCompletionListener) done -> close());
        }
        projection = UnsafeProjection.create(
                Arrays.stream(schema.fields()).map(StructField::dataType).toArray(DataType[]::new));
    }

    @Override
    public void write(InternalRow given) {
        UnsafeRow row = given instanceof UnsafeRow ? (UnsafeRow) given : projection.apply(given);
        int size = row.getSizeInBytes();
        if (size > BUFFER_LENGTH - PREFIX - length) {
            flush();
        }
        if (size > BUFFER_LENGTH - PREFIX) {
            byte[] large = new byte[Math.addExact(size, PREFIX)];
            put(row, large, 0);
            send(large, large.length);
        } else {
            put(row, buffer, length);
            length += PREFIX + size;
        }
    }

    private static void put(UnsafeRow row, byte[] target, int at) {
        Platform.putLong(target, Platform.BYTE_ARRAY_OFFSET + (long) at, row.getSizeInBytes());
        row.writeToMemory(target, Platform.BYTE_ARRAY_OFFSET + (long) at + PREFIX);
    }

    private void flush() {
        if (length > 0) {
            send(buffer, length);
            length = 0;
        }
    }

    private void send(byte[] rows, int count) {
        try {
            long waiting = NativeSink.write(handle, rows, count);
            if (memory != null) {
                memory.update(waiting);
            }
        } catch (IOException | IllegalArgumentException error) {
            throw errors.of(error);
        }
    }

    @Override
    public WriterCommitMessage commit() {
        flush();
        try {
            byte[] written = NativeSink.finish(handle);
            report(NativeSink.counts(written));
            return KbatWritten.of(written);
        } catch (IOException | IllegalArgumentException error) {
            throw errors.of(error);
        }
    }

    /** Sets the counts of the task's output in Spark's UI. */
    private static void report(long[] counts) {
        TaskContext context = TaskContext.get();
        if (context != null) {
            context.taskMetrics().outputMetrics().setRecordsWritten(counts[1]);
            context.taskMetrics().outputMetrics().setBytesWritten(counts[2]);
        }
    }

    /** Closes the files, which the driver removes. */
    @Override
    public void abort() {
        close();
    }

    /** Closes the task. Calling it again has no effect. */
    @Override
    public void close() {
        long open = handle;
        handle = 0;
        if (open != 0) {
            NativeSink.close(open);
            if (memory != null) {
                memory.release();
            }
        }
    }
}
