import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.util.Iterator;
import java.util.OptionalLong;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.AbstractIndex;
import org.apache.kafka.storage.internals.log.BatchMetadata;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.OffsetPosition;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.TimeIndex;
import org.apache.kafka.storage.internals.log.TimestampOffset;
import org.apache.kafka.storage.internals.log.TransactionIndex;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/** What Kafka reads in index files and snapshots, in the form of the corpus's indexes.jsonl and lookup-*.jsonl. */
final class Indexes {
    private Indexes() {
    }

    static ObjectNode read(JsonNode request) throws IOException {
        File file = new File(request.get("path").asText());
        ObjectNode answer = ServerJudge.object();
        ArrayNode rows = answer.putArray("rows");
        String name = file.getName();
        if (name.endsWith(".index")) {
            offsets(file, rows);
        } else if (name.endsWith(".timeindex")) {
            times(file, rows);
        } else if (name.endsWith(".txnindex")) {
            transactions(file, rows);
        } else {
            producers(file, rows);
        }
        return answer;
    }

    private static ObjectNode row(ArrayNode rows, File file) {
        return rows.addObject().put("file", file.getName());
    }

    private static void header(ArrayNode rows, File file, int entries, RuntimeException insane) {
        ObjectNode row = row(rows, file);
        row.put("type", "header").put("entries", entries).put("bytes", file.length());
        row.put("sanityError", insane == null ? null : insane.getClass().getName());
    }

    private static void offsets(File file, ArrayNode rows) throws IOException {
        OffsetIndex index = new OffsetIndex(file, UnifiedLog.offsetFromFile(file), -1, false);
        try {
            header(rows, file, index.entries(), insane(index));
            for (int i = 0; i < index.entries(); i++) {
                OffsetPosition entry = index.entry(i);
                if (entry.offset() == index.baseOffset() && entry.position() == 0) {
                    row(rows, file).put("type", "zeroTail").put("from", i);
                    break;
                }
                row(rows, file).put("i", i).put("offset", entry.offset()).put("position", entry.position());
            }
        } finally {
            index.closeHandler();
        }
    }

    private static RuntimeException insane(AbstractIndex index) {
        try {
            index.sanityCheck();
            return null;
        } catch (RuntimeException refusal) {
            return refusal;
        }
    }

    private static void times(File file, ArrayNode rows) throws IOException {
        TimeIndex index = new TimeIndex(file, UnifiedLog.offsetFromFile(file), -1, false);
        try {
            header(rows, file, index.entries(), insane(index));
            for (int i = 0; i < index.entries(); i++) {
                TimestampOffset entry = index.entry(i);
                if (entry.offset() == index.baseOffset() && entry.timestamp() == 0) {
                    row(rows, file).put("type", "zeroTail").put("from", i);
                    break;
                }
                row(rows, file).put("i", i).put("timestamp", entry.timestamp()).put("offset", entry.offset());
            }
        } finally {
            index.closeHandler();
        }
    }

    private static void transactions(File file, ArrayNode rows) throws IOException {
        TransactionIndex index = new TransactionIndex(UnifiedLog.offsetFromFile(file), file);
        try {
            RuntimeException insane = null;
            try {
                index.sanityCheck();
            } catch (RuntimeException refusal) {
                insane = refusal;
            }
            header(rows, file, index.allAbortedTxns().size(), insane);
            for (Iterator each = index.allAbortedTxns().iterator(); each.hasNext();) {
                AbortedTxn entry = (AbortedTxn) each.next();
                ObjectNode row = row(rows, file).put("version", entry.version()).put("producerId", entry.producerId());
                row.put("firstOffset", entry.firstOffset()).put("lastOffset", entry.lastOffset());
                row.put("lastStableOffset", entry.lastStableOffset());
            }
        } finally {
            index.close();
        }
    }

    private static void producers(File file, ArrayNode rows) throws IOException {
        row(rows, file).put("type", "header").put("bytes", file.length());
        for (Iterator each = ProducerStateManager.readSnapshot(file).iterator(); each.hasNext();) {
            producer((ProducerStateEntry) each.next(), row(rows, file));
        }
    }

    static void producer(ProducerStateEntry entry, ObjectNode row) {
        row.put("producerId", entry.producerId()).put("producerEpoch", entry.producerEpoch());
        row.put("coordinatorEpoch", entry.coordinatorEpoch());
        OptionalLong first = entry.currentTxnFirstOffset();
        row.put("currentTxnFirstOffset", first.isPresent() ? Long.valueOf(first.getAsLong()) : null);
        row.put("lastTimestamp", entry.lastTimestamp());
        ArrayNode batches = row.putArray("batches");
        for (Iterator each = entry.batchMetadata().iterator(); each.hasNext();) {
            BatchMetadata batch = (BatchMetadata) each.next();
            ObjectNode written = batches.addObject().put("firstSequence", batch.firstSeq());
            written.put("lastSequence", batch.lastSeq()).put("lastOffset", batch.lastOffset());
            written.put("offsetDelta", batch.offsetDelta()).put("timestamp", batch.timestamp());
        }
    }

    /** OffsetIndex.lookup, then FileRecords.searchForOffsetFromPosition from there. */
    static ObjectNode lookupOffsets(JsonNode request) throws IOException {
        String stem = request.get("stem").asText();
        File file = new File(stem + ".index");
        OffsetIndex index = new OffsetIndex(file, UnifiedLog.offsetFromFile(file), -1, false);
        FileRecords records = FileRecords.open(new File(stem + ".log"), false);
        ObjectNode answer = ServerJudge.object();
        ArrayNode rows = answer.putArray("rows");
        try {
            for (Iterator each = request.get("targets").elements(); each.hasNext();) {
                long target = ((JsonNode) each.next()).asLong();
                ObjectNode row = rows.addObject().put("target", target);
                try {
                    lookup(index, records, target, row);
                } catch (Exception refusal) {
                    row.put("error", refusal.getClass().getName());
                }
            }
        } finally {
            index.closeHandler();
            records.close();
        }
        return answer;
    }

    private static void lookup(OffsetIndex index, FileRecords records, long target, ObjectNode row) throws IOException {
        OffsetPosition found = index.lookup(target);
        row.put("indexOffset", found.offset()).put("indexPosition", found.position());
        FileRecords.LogOffsetPosition batch = records.searchForOffsetFromPosition(target, found.position());
        row.put("batchPosition", batch == null ? null : Integer.valueOf(batch.position));
        row.put("batchBaseOffset", batch == null ? null : Long.valueOf(batch.offset));
        row.put("batchLastOffset", batch == null ? null : Long.valueOf(lastOffset(records, batch.position)));
        row.put("batchSize", batch == null ? null : Integer.valueOf(batch.size));
    }

    private static long lastOffset(FileRecords records, int position) {
        return ((RecordBatch) records.batchesFrom(position).iterator().next()).lastOffset();
    }

    /** TimeIndex.lookup, OffsetIndex.lookup, FileRecords.searchForTimestamp, as LogSegment.findOffsetByTimestamp does. */
    static ObjectNode lookupTimes(JsonNode request) throws IOException {
        String stem = request.get("stem").asText();
        File file = new File(stem + ".timeindex");
        long base = UnifiedLog.offsetFromFile(file);
        TimeIndex times = new TimeIndex(file, base, -1, false);
        OffsetIndex offsets = new OffsetIndex(new File(stem + ".index"), base, -1, false);
        FileRecords records = FileRecords.open(new File(stem + ".log"), false);
        ObjectNode answer = ServerJudge.object();
        ArrayNode rows = answer.putArray("rows");
        try {
            for (Iterator each = request.get("targets").elements(); each.hasNext();) {
                long target = ((JsonNode) each.next()).asLong();
                ObjectNode row = rows.addObject().put("target", target);
                try {
                    TimestampOffset entry = times.lookup(target);
                    row.put("timeIndexTimestamp", entry.timestamp()).put("timeIndexOffset", entry.offset());
                    int position = offsets.lookup(Math.max(entry.offset(), base)).position();
                    found(row.put("searchPosition", position), records.searchForTimestamp(target, position, base));
                } catch (Exception refusal) {
                    row.put("error", refusal.getClass().getName());
                }
            }
        } finally {
            times.closeHandler();
            offsets.closeHandler();
            records.close();
        }
        return answer;
    }

    private static void found(ObjectNode row, FileRecords.TimestampAndOffset found) {
        row.put("timestamp", found == null ? null : Long.valueOf(found.timestamp));
        row.put("offset", found == null ? null : Long.valueOf(found.offset));
        row.put("leaderEpoch", found == null ? null : (Integer) found.leaderEpoch.orElse(null));
    }
}
