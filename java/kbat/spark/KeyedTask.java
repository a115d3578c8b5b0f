package kbat.spark;

import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.unsafe.types.UTF8String;

/** A task whose rows are all of one partition of a topic. */
final class KeyedTask extends KbatTask implements HasPartitionKey {
    private static final long serialVersionUID = 1;

    private final String topic;
    private final int partition;

    private KeyedTask(byte[] bytes, String topic, int partition) {
        super(bytes);
        this.topic = topic;
        this.partition = partition;
    }

    /** Returns a task with its partition, null if it has several, or it is unknown. */
    static KeyedTask of(KbatTask task) {
        String[] names = Native.partitionOf(task.bytes());
        return names.length == 0 ? null : new KeyedTask(task.bytes(), names[0], Integer.parseInt(names[1]));
    }

    /** Returns the partition as text. */
    String name() {
        return String.format(Locale.ROOT, "%s-%d", topic, partition);
    }

    @Override
    public InternalRow partitionKey() {
        return new GenericInternalRow(new Object[] {UTF8String.fromString(topic), partition});
    }
}
