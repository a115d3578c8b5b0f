package kbat.spark;

import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** A write of a batch query. */
final class KbatBatchWrite implements BatchWrite {
    private final WriteJob job;

    KbatBatchWrite(WriteJob job) {
        this.job = job;
    }

    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
        return job.start();
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
        job.commit(messages, null, 0);
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
        job.abort();
    }
}
