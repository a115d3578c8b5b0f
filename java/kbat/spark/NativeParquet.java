package kbat.spark;

import java.io.IOException;

/** The functions of the Rust library for Parquet files of a task's rows. Exceptions and handles are those of {@link Native}. */
final class NativeParquet {
    private NativeParquet() {}

    /**
     * Opens a task and the files that its rows are written to.
     *
     * @param settings JSON that Rust understands: codec, directories, names of columns
     * @param directory the directory of this attempt, which exists
     * @param stem how the names of the files begin
     */
    static native long open(byte[] task, String settings, String directory, String stem) throws IOException;

    /** Writes the next rows, and returns whether there were any. */
    static native boolean write(long task) throws IOException;

    /** Completes the files, and returns path, number of rows and bytes of each. */
    static native String[] finish(long task) throws IOException;

    /** Returns what the task has read so far, in the order of {@link Native#counts}. */
    static native long[] counts(long task);

    /** Closes the task. Files that are not complete are removed. */
    static native void close(long task);
}
