package kbat.spark;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Opens tasks on the executors. */
final class KbatReaderFactory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;

    private final StructType columns;
    private final TaskErrors errors = TaskErrors.forDriver();

    KbatReaderFactory(StructType columns) {
        this.columns = columns;
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
        return true;
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
        Library.load();
        try {
            return new KbatReader(TaskHandle.open(((KbatTask) partition).bytes()), columns, errors);
        } catch (IOException error) {
            throw errors.of(error);
        }
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        throw new UnsupportedOperationException("kbat: every task is read in columns");
    }
}
