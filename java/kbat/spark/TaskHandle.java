package kbat.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/**
 * An open task of the library. After its close, a call is an error and never reads freed memory.
 *
 * <p>Spark may close a task from another thread than the one that reads its rows: Spark 3.5 feeds Python workers from a
 * thread of their own. That thread may read the current batch until it ends, and the memory is freed afterwards.
 */
final class TaskHandle {
    /** How long a close waits for the reading thread, which Spark has told to stop. */
    private static final long PATIENCE_NANOS = 5_000_000_000L;
    /** Closed tasks whose reading thread did not stop in time. */
    private static final List<TaskHandle> ORPHANS = new ArrayList<>();

    private long handle;
    private long[] counts = new long[Metrics.COUNT];
    private Thread reader;
    private boolean isClosed;

    private TaskHandle(long handle) {
        this.handle = handle;
    }

    /** Opens a task. */
    static TaskHandle open(byte[] task) throws IOException {
        freeOrphans();
        return new TaskHandle(Native.openTask(task));
    }

    /** Reads the next batch, as {@link Native#next}. */
    synchronized int next(long[] nodes) throws IOException {
        reader = Thread.currentThread();
        if (isClosed) {
            free();
            throw new IllegalStateException("kbat: the task is closed");
        }
        try {
            return Native.next(handle, nodes);
        } finally {
            Warnings.logAll();
        }
    }

    /** Returns what the task has counted, also after its close. */
    synchronized long[] counts() {
        if (handle != 0) {
            counts = Native.counts(handle);
        }
        return counts.clone();
    }

    /** Closes the task, and returns whether its memory is freed. Calling it again has no effect. */
    boolean close() {
        synchronized (this) {
            isClosed = true;
        }
        if (awaitReader() || isFreed()) {
            free();
            return true;
        }
        adopt(); // not in a block synchronized on this: who opens a task takes the lock of the list first
        return false;
    }

    private synchronized boolean isFreed() {
        return handle == 0;
    }

    private synchronized void free() {
        if (handle != 0) {
            counts = Native.counts(handle);
            long open = handle;
            handle = 0;
            Native.closeTask(open);
        }
    }

    /** Waits for another thread that reads the task, and returns whether none does. */
    private boolean awaitReader() {
        Thread other;
        synchronized (this) {
            other = handle == 0 || reader == Thread.currentThread() ? null : reader;
        }
        if (other == null) {
            return true;
        }
        boolean isInterrupted = false;
        long end = System.nanoTime() + PATIENCE_NANOS;
        for (long left = PATIENCE_NANOS; left > 0 && other.isAlive(); left = end - System.nanoTime()) {
            try {
                other.join(Math.max(left / 1_000_000, 1));
            } catch (InterruptedException error) {
                isInterrupted = true; // Spark interrupts tasks that it kills, which must be closed all the same
            }
        }
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
        return !other.isAlive();
    }

    private void adopt() {
        synchronized (ORPHANS) {
            if (!ORPHANS.contains(this)) {
                ORPHANS.add(this);
            }
        }
    }

    private static void freeOrphans() {
        synchronized (ORPHANS) {
            for (Iterator<TaskHandle> orphans = ORPHANS.iterator(); orphans.hasNext(); ) {
                TaskHandle orphan = orphans.next();
                if (!orphan.reader.isAlive()) {
                    orphan.free();
                    orphans.remove();
                }
            }
        }
    }
}
