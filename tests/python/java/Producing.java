import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Kafka's producers. Transactional ones live on between requests, so that transactions can overlap. */
final class Producing {
    private final Map producers = new HashMap();
    private final Set open = new HashSet();
    private final String bootstrap;

    Producing(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    ObjectNode produce(JsonNode request) throws Exception {
        String id = request.get("transactional_id").asText(null);
        KafkaProducer producer = id == null ? create(request, null) : transactional(request, id);
        ObjectNode answer = ServerJudge.object();
        ArrayNode offsets = answer.putArray("offsets");
        try {
            List sent = new ArrayList();
            for (Iterator each = request.get("records").elements(); each.hasNext();) {
                sent.add(producer.send(record(request.get("topic").asText(), (JsonNode) each.next())));
            }
            producer.flush();
            for (Iterator each = sent.iterator(); each.hasNext();) {
                offsets.add(((RecordMetadata) ((Future) each.next()).get()).offset());
            }
            end(producer, id, request.get("end").asText(null));
        } finally {
            if (id == null) {
                producer.close();
            }
        }
        return answer;
    }

    private KafkaProducer create(JsonNode request, String id) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("compression.type", request.get("compression").asText());
        // What one request holds goes into one batch where the batch size allows it.
        settings.put("linger.ms", "10000");
        settings.put("batch.size", "1000000");
        settings.put("max.request.size", "10000000");
        if (id != null) {
            settings.put("transactional.id", id);
        }
        for (Iterator names = request.get("configs").fieldNames(); names.hasNext();) {
            String name = (String) names.next();
            settings.put(name, request.get("configs").get(name).asText());
        }
        return new KafkaProducer(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private KafkaProducer transactional(JsonNode request, String id) {
        KafkaProducer producer = (KafkaProducer) producers.get(id);
        if (producer == null) {
            producer = create(request, id);
            producer.initTransactions();
            producers.put(id, producer);
        }
        if (!open.contains(id)) {
            producer.beginTransaction();
            open.add(id);
        }
        return producer;
    }

    private void end(KafkaProducer producer, String id, String end) throws Exception {
        if (id == null || end == null) {
            return;
        }
        if (end.equals("commit")) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
        open.remove(id);
        awaitMarkers(id);
    }

    /** The coordinator writes markers after its answer; tests want to know what offset comes next. */
    private void awaitMarkers(String id) throws Exception {
        Admin admin = Admin.create(Collections.singletonMap("bootstrap.servers", (Object) bootstrap));
        try {
            while (state(admin, id).name().startsWith("PREPARE")) {
                Thread.sleep(2);
            }
        } finally {
            admin.close();
        }
    }

    private static TransactionState state(Admin admin, String id) throws Exception {
        Future described = admin.describeTransactions(Collections.singleton(id)).description(id);
        return ((TransactionDescription) described.get()).state();
    }

    private static ProducerRecord record(String topic, JsonNode record) throws Exception {
        List headers = new ArrayList();
        for (Iterator each = record.get("headers").elements(); each.hasNext();) {
            Iterator header = ((JsonNode) each.next()).elements();
            String key = ((JsonNode) header.next()).asText();
            headers.add(new RecordHeader(key, bytes((JsonNode) header.next())));
        }
        JsonNode timestamp = record.get("timestamp");
        return new ProducerRecord(topic, Integer.valueOf(record.get("partition").asInt()),
            timestamp.isNull() ? null : Long.valueOf(timestamp.asLong()), bytes(record.get("key")),
            bytes(record.get("value")), headers);
    }

    private static byte[] bytes(JsonNode base64) throws Exception {
        return base64.isNull() ? null : base64.binaryValue();
    }

    /** Forgets the transactional producers; their open transactions stay open. */
    void close() {
        for (Iterator each = producers.values().iterator(); each.hasNext();) {
            ((KafkaProducer) each.next()).close(Duration.ZERO);
        }
        producers.clear();
        open.clear();
    }
}
