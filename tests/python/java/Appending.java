import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.Iterator;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** What a broker does with the bytes of a produce request before they reach its log. */
final class Appending {
    private static final BrokerTopicStats STATS = new BrokerTopicStats();

    private Appending() {
    }

    /** What a broker looks at in a produce request before anything else. */
    static ObjectNode checkRequest(JsonNode request) throws IOException {
        try {
            ProduceRequest.validateRecords((short) request.get("version").asInt(), ServerJudge.records(request));
        } catch (RuntimeException refusal) {
            return refused(refusal);
        }
        return ServerJudge.object();
    }

    /** {@link LogValidator}, called as UnifiedLog does. */
    static ObjectNode validate(JsonNode request) throws IOException {
        MemoryRecords records = ServerJudge.records(request);
        CompressionType source = source(records);
        String codec = request.get("compression").asText();
        Compression target = ServerJudge.compression(codec.equals("producer") ? source.name : codec, request.get("level"));
        LogValidator validator = new LogValidator(records, new TopicPartition("topic", 0),
            new FixedTime(request.get("now_ms").asLong()), source, target, request.get("compacted").asBoolean(),
            (byte) request.get("magic").asInt(), TimestampType.forName(request.get("timestamp_type").asText()),
            request.get("before_max_ms").asLong(), request.get("after_max_ms").asLong(),
            request.get("leader_epoch").asInt(), AppendOrigin.valueOf(request.get("origin").asText()));
        PrimitiveRef.LongRef offset = PrimitiveRef.ofLong(request.get("offset").asLong());
        LogValidator.ValidationResult result;
        try {
            result = validator.validateMessagesAndAssignOffsets(offset,
                UnifiedLog.newValidatorMetricsRecorder(STATS.allTopicsStats()), BufferSupplier.NO_CACHING);
        } catch (RuntimeException refusal) {
            return refused(refusal);
        }
        ObjectNode answer = ServerJudge.object();
        answer.put("data", Utils.toArray(result.validatedRecords().buffer()));
        answer.put("next_offset", offset.value);
        answer.put("max_timestamp", result.maxTimestampMs());
        answer.put("log_append_time", result.logAppendTimeMs());
        answer.put("size_maybe_changed", result.messageSizeMaybeChanged());
        answer.put("converted_count", result.recordValidationStats().numRecordsConverted());
        return answer;
    }

    /** As UnifiedLog.analyzeAndValidateRecords finds it: the codec of the last batch that has one. */
    private static CompressionType source(MemoryRecords records) {
        CompressionType found = CompressionType.NONE;
        for (Iterator batches = records.batches().iterator(); batches.hasNext();) {
            CompressionType codec = ((RecordBatch) batches.next()).compressionType();
            found = codec == CompressionType.NONE ? found : codec;
        }
        return found;
    }

    /** The error that the producer would see. */
    static ObjectNode refused(RuntimeException refusal) {
        RuntimeException reason = refusal;
        ObjectNode error = ServerJudge.object();
        ArrayNode records = error.putArray("record_errors");
        if (refusal instanceof RecordValidationException) {
            RecordValidationException invalid = (RecordValidationException) refusal;
            reason = invalid.invalidException();
            for (Iterator each = invalid.recordErrors().iterator(); each.hasNext();) {
                ProduceResponse.RecordError one = (ProduceResponse.RecordError) each.next();
                records.addArray().add(one.batchIndex).add(one.message);
            }
        }
        Errors code = Errors.forException(reason);
        error.put("kind", reason.getClass().getSimpleName());
        error.put("code", code.code());
        error.put("name", code.name());
        error.put("message", reason.getMessage());
        ObjectNode answer = ServerJudge.object();
        answer.set("error", error);
        return answer;
    }
}
