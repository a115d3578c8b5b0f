package kbat.spark;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.types.StructType;

/** Opens the tasks of a write on the executors. */
final class KbatWriterFactory implements DataWriterFactory, StreamingDataWriterFactory {
    private static final long serialVersionUID = 1;

    private final byte[] job;
    private final StructType schema;
    private final TaskErrors errors = TaskErrors.forDriver();

    KbatWriterFactory(byte[] job, StructType schema) {
        this.job = job.clone();
        this.schema = schema;
    }

    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task) {
        Library.load();
        try {
            return new KbatWriter(NativeSink.open(job, schema.json(), partition, task), schema, errors);
        } catch (IOException | IllegalArgumentException error) {
            throw errors.of(error);
        }
    }

    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task, long epoch) {
        return createWriter(partition, task);
    }
}
