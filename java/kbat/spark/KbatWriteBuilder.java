package kbat.spark;

import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;

/**
 * Checks a write, and decides whether it extends or replaces the partitions of its topics. Updated rows of a stream are
 * appended, as Spark's Kafka sink does.
 */
final class KbatWriteBuilder implements SupportsTruncate, SupportsStreamingUpdateAsAppend {
    private final LogicalWriteInfo info;
    private boolean overwrite;

    KbatWriteBuilder(LogicalWriteInfo info) {
        this.info = info;
    }

    @Override
    public WriteBuilder truncate() {
        overwrite = true;
        return this;
    }

    @Override
    public Write build() {
        WriteJob job = new WriteJob(new Options(info.options()), info.schema(), overwrite);
        job.check();
        return new KbatWrite(job, info.queryId());
    }
}
