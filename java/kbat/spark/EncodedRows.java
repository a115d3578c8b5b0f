package kbat.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.TaskCompletionListener;

/** The record batches of a task's rows, which Rust gets about a megabyte at a time. */
final class EncodedRows implements Iterator<byte[]> {
    private static final int BUFFER_LENGTH = 1 << 20;

    private final Iterator<byte[]> rows;
    private final TaskErrors errors;
    /** The length in front of each row. */
    private final byte[] prefix = new byte[8];
    private final ByteArrayOutputStream buffer = new ByteArrayOutputStream();
    private byte[][] made = {};
    private int next;
    private long handle;

    /** Encodes with an open encoder, which is closed at the end of Spark's task at the latest. */
    EncodedRows(Iterator<byte[]> rows, long handle, TaskErrors errors) {
        this.rows = rows;
        this.handle = handle;
        this.errors = errors;
        TaskContext context = TaskContext.get();
        if (context != null) {
            context.addTaskCompletionListener((TaskCompletionListener) done -> close());
        }
    }

    @Override
    public boolean hasNext() {
        while (next == made.length && handle != 0) {
            made = encode();
            next = 0;
        }
        return next < made.length;
    }

    @Override
    public byte[] next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return made[next++];
    }

    /** Encodes the next rows, and closes the encoder after the last ones. */
    private byte[][] encode() {
        buffer.reset();
        while (buffer.size() < BUFFER_LENGTH && rows.hasNext()) {
            byte[] row = rows.next();
            Platform.putLong(prefix, Platform.BYTE_ARRAY_OFFSET, row.length);
            buffer.write(prefix, 0, prefix.length);
            buffer.write(row, 0, row.length);
        }
        boolean isLast = !rows.hasNext();
        try {
            byte[][] batches = NativeEncoder.encode(handle, buffer.toByteArray(), isLast);
            if (isLast) {
                close();
            }
            return batches;
        } catch (IOException | IllegalArgumentException error) {
            throw errors.of(error);
        }
    }

    /** Closes the encoder. Calling it again has no effect. */
    private synchronized void close() {
        long open = handle;
        handle = 0;
        if (open != 0) {
            NativeEncoder.close(open);
        }
    }
}
