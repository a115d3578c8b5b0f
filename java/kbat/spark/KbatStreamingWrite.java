package kbat.spark;

import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/**
 * A write of a streaming query's micro-batch. A query that restarts repeats its last micro-batch; the target knows which
 * ones it has.
 */
final class KbatStreamingWrite implements StreamingWrite {
    private final WriteJob job;
    private final String query;

    KbatStreamingWrite(WriteJob job, String query) {
        this.job = job;
        this.query = query;
    }

    @Override
    public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
        return job.start();
    }

    @Override
    public void commit(long epoch, WriterCommitMessage[] messages) {
        job.commit(messages, query, epoch);
    }

    @Override
    public void abort(long epoch, WriterCommitMessage[] messages) {
        job.abort();
    }
}
