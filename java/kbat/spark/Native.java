package kbat.spark;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.nio.channels.ClosedByInterruptException;

/**
 * The functions of the Rust library.
 *
 * <p>Options are name, value, name, value, ... as the user wrote them; {@code session} has the storage settings of the
 * session in the same form, with the names of object_store. Exceptions: {@link IllegalArgumentException} for what the
 * user wrote, {@link IOException} for files and their content, {@link IllegalStateException} for a panic. Handles are
 * never 0, and only {@link TaskHandle} and {@link StreamHandle} pass them.
 */
final class Native {
    private Native() {}

    /** Returns the version of the crate. */
    static native String version();

    /** Returns name, DDL type and comment of each column of a read without a user schema. Checks all options. */
    static native String[] columns(String[] options, String[] session) throws IOException;

    /** Checks the options and these columns: name, DDL type and "true" or "false" for nullable. */
    static native void check(String[] options, String[] session, String[] columns, boolean isStream)
            throws IOException;

    /**
     * Plans a batch read. A task is opaque, and may hold secrets.
     *
     * @param columns the names of the columns to read; may be empty
     * @param filters as {@link Filters} encodes them
     * @param limit each task stops after so many rows; -1 for no limit
     * @param totals what each task computes instead of returning rows, as {@link Totals} names it; may be empty
     * @param groups the columns to group the totals by: topic, partition or both; may be empty
     * @param isApart whether no task reads two partitions of a topic, unless partitions are very small
     */
    static native byte[][] plan(
            String[] options,
            String[] session,
            String[] columns,
            String[][] filters,
            int limit,
            String[] totals,
            String[] groups,
            boolean isApart)
            throws IOException;

    /** Returns the topic and the partition of all rows of a task; empty if there are several, or it is unknown. */
    static native String[] partitionOf(byte[] task);

    /** Returns whether a read with these options can have totals. */
    static native boolean hasTotals(String[] options, String[] session) throws IOException;

    /** Returns the bytes that a read with these filters reads at most, the number of segments, and rows or -1. */
    static native long[] statistics(String[] options, String[] session, String[][] filters) throws IOException;

    /** Returns the warnings of this thread's calls since the last call, which {@link Warnings} logs. */
    static native String[] takeWarnings();

    /** Opens a task that {@code plan} or {@code planMicroBatch} returned. */
    static native long openTask(byte[] task) throws IOException;

    /**
     * Reads the next batch.
     *
     * @param nodes filled with the batch's columns, see {@link NativeVector}; valid until the next call, or the close
     * @return the number of rows; -1 at the end
     */
    static native int next(long task, long[] nodes) throws IOException;

    /** Returns what a task has counted so far, in the order of {@link Metrics}. */
    static native long[] counts(long task);

    /** Closes a task and frees its memory. */
    static native void closeTask(long task);

    /** Opens a stream. */
    static native long openStream(String[] options, String[] session, String[] columns) throws IOException;

    /** Returns the offsets at which a new query starts, as JSON. */
    static native String initialOffset(long stream) throws IOException;

    /** Returns the end of the next micro-batch, as JSON; {@code start} is JSON or null. */
    static native String latestOffset(long stream, String start, boolean isLimited) throws IOException;

    /** Returns the last known ends of all logs as JSON, or null. */
    static native String reportLatestOffset(long stream) throws IOException;

    /** Stores the ends of all logs: the query reads up to them. */
    static native void prepareForTriggerAvailableNow(long stream) throws IOException;

    /** Plans a micro-batch between two offsets. */
    static native byte[][] planMicroBatch(long stream, String start, String end) throws IOException;

    /** Closes a stream. */
    static native void closeStream(long stream);

    /** Calls the library on the driver. Logs its warnings, and raises its errors in the way of Spark's driver. */
    static <T> T call(Call<T> call) {
        try {
            return call.run();
        } catch (InterruptedIOException | ClosedByInterruptException error) {
            throw new UncheckedIOException(error); // Spark recognizes it as the stop of a query
        } catch (IOException error) {
            throw Failures.unchecked(new KbatException(error));
        } finally {
            Warnings.logAll();
        }
    }

    /** A call of the library. */
    interface Call<T> {
        T run() throws IOException;
    }
}
