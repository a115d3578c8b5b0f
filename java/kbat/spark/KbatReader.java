package kbat.spark;

import java.io.IOException;
import java.util.Arrays;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;

/** Reads a task, one batch after the other into the same vectors. */
final class KbatReader implements PartitionReader<ColumnarBatch> {
    private final TaskHandle task;
    private final TaskErrors errors;
    private final NativeVector[] vectors;
    private final long[] nodes;
    private final ColumnarBatch batch;
    private final NativeMemory memory = NativeMemory.ofTask();
    private boolean isDone;

    /** Reads an open task, which is closed at the end of Spark's task at the latest. */
    KbatReader(TaskHandle task, StructType columns, TaskErrors errors) {
        this.task = task;
        this.errors = errors;
        vectors = Arrays.stream(columns.fields())
                .map(StructField::dataType)
                .map(NativeVector::of)
                .toArray(NativeVector[]::new);
        nodes = new long[NativeVector.NODE_LEN * Arrays.stream(vectors).mapToInt(NativeVector::nodeCount).sum()];
        batch = new ColumnarBatch(Arrays.copyOf(vectors, vectors.length, ColumnVector[].class));
        TaskContext context = TaskContext.get();
        if (context != null) {
            // Spark closes the reader, too, but not if the task fails before Spark has it
            context.addTaskCompletionListener((TaskCompletionListener) done -> close());
        }
    }

    @Override
    public boolean next() {
        int rows = 0;
        while (rows == 0 && !isDone) {
            clear(); // the memory is no longer valid, and an error leaves no batch
            try {
                rows = task.next(nodes);
            } catch (IOException error) {
                throw errors.of(error);
            }
            isDone = rows < 0;
        }
        if (isDone) {
            return false;
        }
        int at = 0;
        for (NativeVector vector : vectors) {
            at = vector.update(rows, nodes, at);
        }
        batch.setNumRows(rows);
        if (memory != null) {
            memory.update(Arrays.stream(vectors).mapToLong(NativeVector::size).sum());
        }
        return true;
    }

    @Override
    public ColumnarBatch get() {
        return batch;
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        return Metrics.values(task.counts());
    }

    /** Closes the task. Calling it again has no effect. */
    @Override
    public void close() {
        if (task.close()) {
            clear();
            if (memory != null) {
                memory.release();
            }
        }
    }

    private void clear() {
        batch.setNumRows(0);
        for (NativeVector vector : vectors) {
            vector.clear();
        }
    }
}
