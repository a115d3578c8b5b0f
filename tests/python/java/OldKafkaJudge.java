import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;

/** Record classes of the last Kafka that converts batches down to older formats. old_kafka.py asks. */
public final class OldKafkaJudge extends Judge {
    public static void main(String[] args) throws IOException {
        new OldKafkaJudge().serve();
    }

    /** d: down-convert, as a broker does for a fetch of an old client. */
    void judge(int request, DataInputStream in, DataOutputStream out) throws IOException {
        byte magic = in.readByte();
        long firstOffset = in.readLong();
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(readBytes(in)));
        MemoryRecords converted = (MemoryRecords) records.downConvert(magic, firstOffset, Time.SYSTEM).records();
        writeBytes(out, Utils.toArray(converted.buffer()));
    }
}
