package kbat.spark;

import org.apache.spark.TaskContext;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.memory.TaskMemoryManager;

/**
 * The memory of Rust that a task holds, as Spark's memory manager counts it: other operators of the executor spill
 * earlier.
 *
 * <p>It is memory outside of the heap. Spark's manager has a pool of such memory only with {@code
 * spark.memory.offHeap.enabled}; without it, this counts nothing, because the heap is another memory. A
 * request that Spark cannot grant changes nothing: the memory exists already, and its size is bounded.
 */
final class NativeMemory extends MemoryConsumer {
    /** The largest number of bytes requested so far. */
    private long requested;

    private NativeMemory(TaskMemoryManager manager) {
        super(manager, MemoryMode.OFF_HEAP);
    }

    /** Returns the memory of the current task; null if Spark does not count it. */
    static NativeMemory ofTask() {
        TaskContext context = TaskContext.get();
        TaskMemoryManager manager = context == null ? null : context.taskMemoryManager();
        boolean isCounted = manager != null && manager.getTungstenMemoryMode() == MemoryMode.OFF_HEAP;
        return isCounted ? new NativeMemory(manager) : null;
    }

    /** Requests memory if the task holds more bytes than ever before. */
    void update(long bytes) {
        if (bytes > requested) {
            acquireMemory(bytes - requested);
            requested = bytes;
        }
    }

    /** Returns all memory to Spark. Calling it again has no effect. */
    void release() {
        freeMemory(getUsed());
    }

    /** Frees nothing: a batch is in use until the next one is read. */
    @Override
    public long spill(long size, MemoryConsumer trigger) {
        return 0;
    }
}
