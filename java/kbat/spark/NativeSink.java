package kbat.spark;

import java.io.IOException;

/**
 * The functions of the Rust library for writes. Options, exceptions and handles are those of {@link Native}. A write is
 * opaque bytes, which Spark carries from the driver to the tasks; so is what a task has written.
 *
 * <p>{@code columns} are name and DDL type of each column.
 */
final class NativeSink {
    private NativeSink() {}

    /** Checks options and columns. */
    static native void check(String[] options, String[] columns);

    /** Starts a write, and creates the directory in which its tasks write. */
    static native byte[] start(String[] options, String[] columns, boolean overwrite) throws IOException;

    /**
     * Commits what the tasks have written.
     *
     * @param query the id of a streaming query, or null
     * @param epoch the number of its micro-batch, which is written once
     */
    static native void commit(byte[] job, byte[][] written, String query, long epoch) throws IOException;

    /** Removes the files of a write that is not committed. */
    static native void abort(byte[] job) throws IOException;

    /** Opens a task; {@code schema} is Spark's JSON of the rows' type. */
    static native long open(byte[] job, String schema, int number, long attempt) throws IOException;

    /**
     * Writes rows: the first {@code length} bytes hold an {@code UnsafeRow} after each number of its bytes. Returns how
     * many bytes of records are not encoded yet.
     */
    static native long write(long task, byte[] rows, int length) throws IOException;

    /** Writes what remains, closes the files, and returns what the task has written. */
    static native byte[] finish(long task) throws IOException;

    /** Returns the batches, records and bytes in what a task has written. */
    static native long[] counts(byte[] written);

    /** Closes a task. Its files remain until the write ends. */
    static native void close(long task);
}
