package kbat.spark;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** A read of existing batches. Like kbat's, it returns only the columns that the query needs. */
final class PrebuiltScan implements SupportsPushDownRequiredColumns, Scan, Batch {
    private final List<PrebuiltBatch> batches;
    private final StructType schema;
    private final long rows;
    private StructType columns;

    PrebuiltScan(List<PrebuiltBatch> batches, StructType schema, long rows) {
        this.batches = batches;
        this.schema = schema;
        this.rows = rows;
        columns = schema;
    }

    @Override
    public void pruneColumns(StructType required) {
        columns = required;
    }

    @Override
    public Scan build() {
        return this;
    }

    @Override
    public StructType readSchema() {
        return columns;
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
        return ColumnarSupportMode.SUPPORTED;
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
        InputPartition[] tasks = new InputPartition[batches.size()];
        for (int i = 0; i < tasks.length; i++) {
            long start = rows * i / tasks.length;
            tasks[i] = new Task(batches.get(i), rows * (i + 1) / tasks.length - start);
        }
        return tasks;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        int[] indexes = new int[columns.size()];
        for (int i = 0; i < indexes.length; i++) {
            indexes[i] = schema.fieldIndex(columns.fields()[i].name());
        }
        return new Factory(columns, indexes);
    }

    private static final class Task implements InputPartition {
        private static final long serialVersionUID = 1;

        private final PrebuiltBatch batch;
        private final long rows;

        Task(PrebuiltBatch batch, long rows) {
            this.batch = batch;
            this.rows = rows;
        }
    }

    private static final class Factory implements PartitionReaderFactory {
        private static final long serialVersionUID = 1;

        private final StructType columns;
        private final int[] indexes;

        Factory(StructType columns, int[] indexes) {
            this.columns = columns;
            this.indexes = indexes;
        }

        @Override
        public boolean supportColumnarReads(InputPartition task) {
            return true;
        }

        @Override
        public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition task) {
            return new Reader((Task) task, columns, indexes);
        }

        @Override
        public PartitionReader<InternalRow> createReader(InputPartition task) {
            throw new UnsupportedOperationException("every task is read in columns");
        }
    }

    /** Updates the vectors for each batch, as kbat's reader does. */
    private static final class Reader implements PartitionReader<ColumnarBatch> {
        private final int batchRows;
        private final NativeVector[] vectors;
        private final long[][] nodes;
        private final ColumnarBatch batch;
        private long left;

        Reader(Task task, StructType columns, int[] indexes) {
            batchRows = task.batch.rows();
            left = task.rows;
            vectors = new NativeVector[indexes.length];
            nodes = new long[indexes.length][];
            for (int i = 0; i < indexes.length; i++) {
                StructField field = columns.fields()[i];
                vectors[i] = NativeVector.of(field.dataType());
                nodes[i] = task.batch.column(indexes[i]);
            }
            batch = new ColumnarBatch(Arrays.copyOf(vectors, vectors.length, ColumnVector[].class));
        }

        @Override
        public boolean next() {
            int rows = (int) Math.min(left, batchRows);
            for (int i = 0; i < vectors.length; i++) {
                vectors[i].update(rows, nodes[i], 0);
            }
            batch.setNumRows(rows);
            left -= rows;
            return rows > 0;
        }

        @Override
        public ColumnarBatch get() {
            return batch;
        }

        @Override
        public void close() {}
    }
}
