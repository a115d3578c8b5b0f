package kbat.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** Opens the tasks of a {@link ParquetJob} on the executors. */
final class ParquetReaderFactory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;

    private final ParquetJob job;
    private final TaskErrors errors = TaskErrors.forDriver();

    ParquetReaderFactory(ParquetJob job) {
        this.job = job;
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        Library.load();
        return new ParquetFiles(job, ((KbatTask) partition).bytes(), errors);
    }
}
