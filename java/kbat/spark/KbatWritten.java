package kbat.spark;

import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** What a task wrote, opaque. */
final class KbatWritten implements WriterCommitMessage {
    private static final long serialVersionUID = 1;

    private final byte[] bytes;

    KbatWritten(byte[] bytes) {
        this.bytes = bytes.clone();
    }

    byte[] bytes() {
        return bytes.clone();
    }
}
