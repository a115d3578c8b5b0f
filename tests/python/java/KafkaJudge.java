import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Iterator;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.compress.GzipCompression;
import org.apache.kafka.common.compress.Lz4Compression;
import org.apache.kafka.common.compress.ZstdCompression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.Utils;

/** Kafka's own record classes: they do all reading and building; this file only hands bytes over. kafka_judge.py asks. */
public final class KafkaJudge extends Judge {
    public static void main(String[] args) throws IOException {
        new KafkaJudge().serve();
    }

    /** r read, w write, m marker, e edit. */
    void judge(int request, DataInputStream in, DataOutputStream out) throws IOException {
        switch (request) {
            case 'r': read(in, out); break;
            case 'w': write(in, out); break;
            case 'm': marker(in, out); break;
            case 'e': edit(in, out); break;
            default: throw new IllegalArgumentException("unknown request " + request);
        }
    }

    /** Every batch, each after {@code ensureValid}, with its records; then how many bytes they took. */
    private static void read(DataInputStream in, DataOutputStream out) throws IOException {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(readBytes(in)));
        for (Iterator batches = records.batches().iterator(); batches.hasNext();) {
            RecordBatch batch = (RecordBatch) batches.next();
            batch.ensureValid();
            out.writeBoolean(true);
            writeBatch(out, batch);
            for (Iterator each = batch.iterator(); each.hasNext();) {
                Record record = (Record) each.next();
                record.ensureValid();
                out.writeBoolean(true);
                writeRecord(out, record);
            }
            out.writeBoolean(false);
        }
        out.writeBoolean(false);
        out.writeInt(records.validBytes());
    }

    private static void writeBatch(DataOutputStream out, RecordBatch batch) throws IOException {
        boolean legacy = batch.magic() < 2;
        out.writeInt(batch.sizeInBytes());
        out.writeByte(batch.magic());
        out.writeLong(batch.baseOffset());
        out.writeLong(batch.lastOffset());
        out.writeLong(batch.nextOffset());
        out.writeInt(batch.countOrNull() == null ? -1 : batch.countOrNull().intValue());
        out.writeInt(batch.partitionLeaderEpoch());
        out.writeLong(batch.checksum());
        out.writeLong(legacy ? -1L : ((DefaultRecordBatch) batch).baseTimestamp());
        out.writeLong(batch.maxTimestamp());
        out.writeLong(batch.producerId());
        out.writeShort(batch.producerEpoch());
        out.writeInt(batch.baseSequence());
        out.writeInt(batch.lastSequence());
        out.writeBoolean(batch.isTransactional());
        out.writeBoolean(batch.isControlBatch());
        out.writeLong(batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : -1L);
        writeBytes(out, text(batch.compressionType().name));
        writeBytes(out, text(batch.timestampType().name));
    }

    private static void writeRecord(DataOutputStream out, Record record) throws IOException {
        out.writeLong(record.offset());
        out.writeLong(record.timestamp());
        out.writeInt(record.sequence());
        writeBytes(out, Utils.toNullableArray(record.key()));
        writeBytes(out, Utils.toNullableArray(record.value()));
        Header[] headers = record.headers();
        out.writeInt(headers.length);
        for (int i = 0; i < headers.length; i++) {
            writeBytes(out, text(headers[i].key()));
            writeBytes(out, headers[i].value());
        }
    }

    /** What {@link MemoryRecordsBuilder} makes of settings and records, in the order in which kafka_judge.py packs them. */
    private static void write(DataInputStream in, DataOutputStream out) throws IOException {
        byte magic = in.readByte();
        String codec = string(in);
        boolean leveled = in.readBoolean();
        Compression compression = compression(codec, leveled, in.readInt());
        TimestampType timestampType = TimestampType.forName(string(in));
        long baseOffset = in.readLong();
        long logAppendTime = in.readLong();
        long producerId = in.readLong();
        short producerEpoch = in.readShort();
        int baseSequence = in.readInt();
        boolean transactional = in.readBoolean();
        boolean control = in.readBoolean();
        int partitionLeaderEpoch = in.readInt();
        long deleteHorizonMs = in.readLong();
        boolean endsElsewhere = in.readBoolean();
        long lastOffset = in.readLong();
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(new ByteBufferOutputStream(4096), magic, compression,
            timestampType, baseOffset, logAppendTime, producerId, producerEpoch, baseSequence, transactional, control,
            partitionLeaderEpoch, Integer.MAX_VALUE, deleteHorizonMs);
        for (int left = in.readInt(); left > 0; left--) {
            append(builder, in);
        }
        if (endsElsewhere) {
            builder.overrideLastOffset(lastOffset);
        }
        writeBytes(out, Utils.toArray(builder.build().buffer()));
    }

    private static void append(MemoryRecordsBuilder builder, DataInputStream in) throws IOException {
        long offset = in.readLong();
        long timestamp = in.readLong();
        byte[] key = readBytes(in);
        byte[] value = readBytes(in);
        Header[] headers = new Header[in.readInt()];
        for (int i = 0; i < headers.length; i++) {
            String name = string(in);
            headers[i] = new RecordHeader(name, readBytes(in));
        }
        if (builder.isControlBatch()) {
            builder.appendControlRecordWithOffset(offset, new SimpleRecord(timestamp, key, value, headers));
        } else {
            builder.appendWithOffset(offset, timestamp, key, value, headers);
        }
    }

    private static Compression compression(String codec, boolean leveled, int level) {
        if (codec.equals("gzip")) {
            GzipCompression.Builder gzip = Compression.gzip();
            return leveled ? gzip.level(level).build() : gzip.build();
        }
        if (codec.equals("lz4")) {
            Lz4Compression.Builder lz4 = Compression.lz4();
            return leveled ? lz4.level(level).build() : lz4.build();
        }
        if (codec.equals("zstd")) {
            ZstdCompression.Builder zstd = Compression.zstd();
            return leveled ? zstd.level(level).build() : zstd.build();
        }
        return codec.equals("snappy") ? (Compression) Compression.snappy().build() : (Compression) Compression.NONE;
    }

    /** A batch with one transaction marker. */
    private static void marker(DataInputStream in, DataOutputStream out) throws IOException {
        long baseOffset = in.readLong();
        long timestamp = in.readLong();
        int partitionLeaderEpoch = in.readInt();
        long producerId = in.readLong();
        short producerEpoch = in.readShort();
        ControlRecordType type = in.readBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        EndTransactionMarker marker = new EndTransactionMarker(type, in.readInt());
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(baseOffset, timestamp, partitionLeaderEpoch,
            producerId, producerEpoch, marker);
        writeBytes(out, Utils.toArray(records.buffer()));
    }

    /** The bytes after one of Kafka's setters on their first batch. */
    private static void edit(DataInputStream in, DataOutputStream out) throws IOException {
        String field = string(in);
        long value = in.readLong();
        byte[] data = readBytes(in);
        Iterator batches = MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches().iterator();
        MutableRecordBatch batch = (MutableRecordBatch) batches.next();
        if (field.equals("lastOffset")) {
            batch.setLastOffset(value);
        } else if (field.equals("partitionLeaderEpoch")) {
            batch.setPartitionLeaderEpoch((int) value);
        } else {
            batch.setMaxTimestamp(TimestampType.LOG_APPEND_TIME, value);
        }
        writeBytes(out, data);
    }
}
