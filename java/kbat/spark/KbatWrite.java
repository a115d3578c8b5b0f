package kbat.spark;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** A checked write, of a batch or a stream. */
final class KbatWrite implements Write {
    private final WriteJob job;
    private final String query;

    /** Takes the job, and the id of a streaming query. */
    KbatWrite(WriteJob job, String query) {
        this.job = job;
        this.query = query;
    }

    /** Returns the write for {@code explain}. Values that may be secrets are hidden. */
    @Override
    public String description() {
        return job.description();
    }

    /** Returns the description, which some versions of Spark show instead of it. */
    @Override
    public String toString() {
        return description();
    }

    @Override
    public BatchWrite toBatch() {
        return new KbatBatchWrite(job);
    }

    @Override
    public StreamingWrite toStreaming() {
        return new KbatStreamingWrite(job, query);
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return Metrics.ofWrites();
    }

    /**
     * Returns the counts of the last commit. Only then is every row encoded: Spark takes the metrics of a task before. It
     * calls this from version 4.0 on.
     */
    public CustomTaskMetric[] reportDriverMetrics() {
        return Metrics.ofWrite(job.counts());
    }
}
