package kbat.spark;

import java.util.Arrays;
import org.apache.spark.sql.connector.read.InputPartition;

/** A task as Rust planned it. It may hold secrets, which {@code toString} does not show. */
class KbatTask implements InputPartition {
    private static final long serialVersionUID = 1;

    private final byte[] bytes;

    KbatTask(byte[] bytes) {
        this.bytes = bytes;
    }

    static InputPartition[] all(byte[][] tasks) {
        return Arrays.stream(tasks).map(KbatTask::new).toArray(InputPartition[]::new);
    }

    final byte[] bytes() {
        return bytes;
    }

    @Override
    public final String toString() {
        return "kbat task of " + bytes.length + " bytes";
    }
}
