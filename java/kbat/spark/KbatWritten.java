package kbat.spark;

import java.lang.reflect.Method;
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

    /** Returns the bytes of a message, also if the executor loaded this class a second time, as after ADD JAR. */
    static byte[] bytesOf(WriterCommitMessage message) {
        if (message instanceof KbatWritten) {
            return ((KbatWritten) message).bytes();
        }
        if (!message.getClass().getName().equals(KbatWritten.class.getName())) {
            throw new IllegalStateException("kbat: a task returned a " + message.getClass().getName());
        }
        try {
            Method method = message.getClass().getDeclaredMethod("bytes");
            method.setAccessible(true);
            return (byte[]) method.invoke(message);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("kbat: the message of a task cannot be read", error);
        }
    }
}
