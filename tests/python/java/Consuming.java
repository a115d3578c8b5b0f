import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** What Kafka's consumer gets from the node. */
final class Consuming {
    private static final long PATIENCE_MS = 20000;

    private Consuming() {
    }

    /**
     * All that each partition has, in one of the isolation levels. With a group, the records after its committed offset,
     * and the new offset is committed.
     */
    static ObjectNode consume(JsonNode request, String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.auto.commit", "false");
        settings.put("check.crcs", "true");
        settings.put("isolation.level", request.get("isolation").asText());
        JsonNode group = request.get("group");
        boolean hasGroup = group != null && !group.isNull();
        if (hasGroup) {
            settings.put("group.id", group.asText());
            settings.put("auto.offset.reset", "none");
        }
        settings.put("max.partition.fetch.bytes", "10000000");
        settings.put("fetch.max.wait.ms", "50");
        settings.put("default.api.timeout.ms", Long.toString(PATIENCE_MS));
        KafkaConsumer consumer = new KafkaConsumer(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        ObjectNode answer = ServerJudge.object();
        ArrayNode partitions = answer.putArray("partitions");
        try {
            for (Iterator each = request.get("partitions").elements(); each.hasNext();) {
                Iterator wanted = ((JsonNode) each.next()).elements();
                String topic = ((JsonNode) wanted.next()).asText();
                TopicPartition partition = new TopicPartition(topic, ((JsonNode) wanted.next()).asInt());
                partitions.add(partition(consumer, partition, hasGroup));
            }
        } finally {
            consumer.close();
        }
        return answer;
    }

    private static ObjectNode partition(KafkaConsumer consumer, TopicPartition partition, boolean hasGroup) {
        List wanted = Collections.singletonList(partition);
        ObjectNode answer = ServerJudge.object();
        ArrayNode records = answer.putArray("records");
        answer.put("beginning_offset", -1L).put("end_offset", -1L);
        try {
            long beginning = ((Long) consumer.beginningOffsets(wanted).get(partition)).longValue();
            long end = ((Long) consumer.endOffsets(wanted).get(partition)).longValue();
            answer.put("beginning_offset", beginning).put("end_offset", end);
            consumer.assign(wanted);
            if (!hasGroup) {
                consumer.seek(partition, beginning);
            }
            poll(consumer, partition, end, records);
            if (hasGroup) {
                consumer.commitSync();
            }
        } catch (KafkaException refusal) {
            answer.put("error", refusal.toString());
        }
        return answer;
    }

    private static void poll(KafkaConsumer consumer, TopicPartition partition, long end, ArrayNode records) {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (consumer.position(partition) < end) {
            for (Iterator each = consumer.poll(Duration.ofMillis(200)).iterator(); each.hasNext();) {
                records.add(record((ConsumerRecord) each.next()));
            }
            if (System.currentTimeMillis() > deadline) {
                throw new KafkaException("the end is not reached within " + PATIENCE_MS + " ms");
            }
        }
    }

    private static ObjectNode record(ConsumerRecord record) {
        ObjectNode answer = ServerJudge.object();
        answer.put("offset", record.offset());
        answer.put("timestamp", record.timestamp());
        answer.put("timestamp_type", record.timestampType().name);
        answer.put("key", (byte[]) record.key());
        answer.put("value", (byte[]) record.value());
        ArrayNode headers = answer.putArray("headers");
        for (Iterator each = record.headers().iterator(); each.hasNext();) {
            Header header = (Header) each.next();
            headers.addArray().add(header.key()).add(header.value());
        }
        answer.put("leader_epoch", (Integer) record.leaderEpoch().orElse(null));
        return answer;
    }
}
