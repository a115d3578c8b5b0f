import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Set;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.Utils;

/** {@link MemoryRecords#filterTo} with a filter that the request describes. */
final class Filtering extends MemoryRecords.RecordFilter {
    private final JsonNode retention;
    private final Set markers;
    private final Set kept;

    private Filtering(JsonNode request) {
        super(request.get("now_ms").asLong(), request.get("delete_retention_ms").asLong());
        retention = request.get("batch_retention");
        markers = longs(request.get("markers_of_empty_transactions"));
        kept = request.get("keep_offsets").isNull() ? null : longs(request.get("keep_offsets"));
    }

    private static Set longs(JsonNode numbers) {
        Set found = new HashSet();
        for (Iterator each = numbers.elements(); each.hasNext();) {
            found.add(Long.valueOf(((JsonNode) each.next()).asLong()));
        }
        return found;
    }

    protected MemoryRecords.RecordFilter.BatchRetentionResult checkBatchRetention(RecordBatch batch) {
        JsonNode special = retention.get(Long.toString(batch.baseOffset()));
        JsonNode name = special == null ? retention.get("") : special;
        return new MemoryRecords.RecordFilter.BatchRetentionResult(
            MemoryRecords.RecordFilter.BatchRetention.valueOf(name.asText()),
            markers.contains(Long.valueOf(batch.baseOffset())));
    }

    protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
        return kept == null ? record.hasKey() : kept.contains(Long.valueOf(record.offset()));
    }

    static ObjectNode filterTo(JsonNode request) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(request.get("buffer_len").asInt());
        MemoryRecords.FilterResult result =
            ServerJudge.records(request).filterTo(new Filtering(request), buffer, BufferSupplier.NO_CACHING);
        ByteBuffer output = result.outputBuffer();
        output.flip();
        ObjectNode answer = ServerJudge.object();
        answer.put("data", Utils.toArray(output));
        answer.put("records_read", result.messagesRead());
        answer.put("bytes_read", result.bytesRead());
        answer.put("records_retained", result.messagesRetained());
        answer.put("bytes_retained", result.bytesRetained());
        answer.put("max_offset", result.maxOffset());
        answer.put("max_timestamp", result.maxTimestamp());
        answer.put("shallow_offset_of_max_timestamp", result.shallowOffsetOfMaxTimestamp());
        return answer;
    }
}
