import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.compress.GzipCompression;
import org.apache.kafka.common.compress.Lz4Compression;
import org.apache.kafka.common.compress.ZstdCompression;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.slf4j.LoggerFactory;

/**
 * The classes of Kafka's server. kafka_server.py asks.
 *
 * A request is a JSON object, its field "do" the operation; the answer is one too. Bytes are base64.
 */
public final class ServerJudge extends Judge {
    static final ObjectMapper JSON = new ObjectMapper();

    private final Map nodes = new HashMap();

    public static void main(String[] args) throws IOException {
        // Its complaint that nothing takes the log comes now, not in the middle of an answer.
        LoggerFactory.getILoggerFactory();
        new ServerJudge().serve();
        // A node that still runs has threads that would keep this process alive.
        Runtime.getRuntime().halt(0);
    }

    void judge(int request, DataInputStream in, DataOutputStream out) throws Exception {
        byte[] text = new byte[in.available()];
        in.readFully(text);
        writeBytes(out, JSON.writeValueAsBytes(answer(JSON.readTree(text))));
    }

    private ObjectNode answer(JsonNode request) throws Exception {
        String operation = request.get("do").asText();
        switch (operation) {
            case "check_request": return Appending.checkRequest(request);
            case "validate": return Appending.validate(request);
            case "filter_to": return Filtering.filterTo(request);
            case "load": return Logs.load(request);
            case "append": return Logs.append(request);
            case "clean": return Logs.clean(request);
            case "read_index": return Indexes.read(request);
            case "lookup_offsets": return Indexes.lookupOffsets(request);
            case "lookup_times": return Indexes.lookupTimes(request);
            case "dump_log": return Dumping.dump(request);
            case "run_tool": return Tools.run(request);
            default: return node(request).answer(operation, request);
        }
    }

    /** The node with this file of settings. */
    private Node node(JsonNode request) {
        String properties = request.get("properties").asText();
        Node node = (Node) nodes.get(properties);
        if (node == null) {
            node = new Node(properties);
            nodes.put(properties, node);
        }
        return node;
    }

    static ObjectNode object() {
        return JsonNodeFactory.instance.objectNode();
    }

    static MemoryRecords records(JsonNode request) throws IOException {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(request.get("data").binaryValue()));
    }

    static Compression compression(String codec, JsonNode level) {
        boolean leveled = level != null && !level.isNull();
        int number = leveled ? level.asInt() : 0;
        switch (codec) {
            case "none": return Compression.NONE;
            case "snappy": return Compression.snappy().build();
            case "gzip":
                GzipCompression.Builder gzip = Compression.gzip();
                return leveled ? gzip.level(number).build() : gzip.build();
            case "lz4":
                Lz4Compression.Builder lz4 = Compression.lz4();
                return leveled ? lz4.level(number).build() : lz4.build();
            case "zstd":
                ZstdCompression.Builder zstd = Compression.zstd();
                return leveled ? zstd.level(number).build() : zstd.build();
            default: throw new IllegalArgumentException("unknown codec " + codec);
        }
    }
}
