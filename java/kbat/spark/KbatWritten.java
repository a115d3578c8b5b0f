package kbat.spark;

import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.datasources.WriteTaskResult;

/**
 * What a task wrote, opaque bytes in a message of Spark's own class.
 *
 * <p>A thread of the driver deserializes the message. It does not know the classes of a jar that was added to a running
 * session, by {@code ADD JAR} or as an artifact of Spark Connect.
 */
final class KbatWritten {
    private KbatWritten() {}

    static WriterCommitMessage of(byte[] bytes) {
        return new WriteTaskResult(new TaskCommitMessage(bytes), null);
    }

    static byte[] bytesOf(WriterCommitMessage message) {
        return (byte[]) ((WriteTaskResult) message).commitMsg().obj();
    }
}
