import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.Time;

/** One node that is broker and controller, within this process. */
final class Node {
    private static final long START_MS = 90000;

    private final String properties;
    private KafkaRaftServer server;
    private String bootstrap;
    private Producing producing;
    private volatile Throwable failure;

    static {
        Exit.Procedure refuse = new Exit.Procedure() {
            public void execute(int status, String message) {
                throw new IllegalStateException("the broker ends with status " + status + ": " + message);
            }
        };
        Exit.setExitProcedure(refuse);
        Exit.setHaltProcedure(refuse);
    }

    Node(String properties) {
        this.properties = properties;
    }

    ObjectNode answer(String operation, JsonNode request) throws Exception {
        switch (operation) {
            case "format": return format();
            case "start": return start(request);
            case "stop": return stop();
            case "create_topics": return createTopics(request);
            case "produce": return producing.produce(request);
            case "consume": return Consuming.consume(request, bootstrap);
            default: throw new IllegalArgumentException("unknown operation " + operation);
        }
    }

    /** Writes what a log directory needs before its first start. */
    private ObjectNode format() {
        String[] arguments = {"format", "-t", "kbatKafkaBrokerFixture", "-c", properties};
        int status = StorageTool.execute(arguments, System.err);
        if (status != 0) {
            throw new IllegalStateException("format ends with status " + status);
        }
        return ServerJudge.object();
    }

    /** Starts the node and waits until it serves. */
    private ObjectNode start(JsonNode request) throws Exception {
        bootstrap = request.get("bootstrap").asText();
        producing = new Producing(bootstrap);
        failure = null;
        final KafkaRaftServer starting = new KafkaRaftServer(KafkaConfig.fromProps(settings(), false), Time.SYSTEM);
        Thread start = new Thread("start") {
            public void run() {
                try {
                    starting.startup();
                } catch (Throwable refusal) {
                    failure = refusal;
                }
            }
        };
        start.setDaemon(true);
        start.start();
        start.join(START_MS);
        if (failure != null) {
            throw new IllegalStateException("the broker does not start: " + failure, failure);
        }
        if (start.isAlive()) {
            throw new IllegalStateException("the broker does not start within " + START_MS + " ms");
        }
        server = starting;
        return ServerJudge.object();
    }

    private Properties settings() throws IOException {
        Properties settings = new Properties();
        InputStream file = new FileInputStream(properties);
        try {
            settings.load(file);
        } finally {
            file.close();
        }
        return settings;
    }

    /** A clean shutdown. */
    private ObjectNode stop() {
        producing.close();
        server.shutdown();
        server.awaitShutdown();
        return ServerJudge.object();
    }

    private ObjectNode createTopics(JsonNode request) throws Exception {
        List topics = new ArrayList();
        for (Iterator each = request.get("topics").elements(); each.hasNext();) {
            JsonNode topic = (JsonNode) each.next();
            Map configs = new HashMap();
            for (Iterator names = topic.get("configs").fieldNames(); names.hasNext();) {
                String name = (String) names.next();
                configs.put(name, topic.get("configs").get(name).asText());
            }
            topics.add(new NewTopic(topic.get("name").asText(), topic.get("partitions").asInt(), (short) 1).configs(configs));
        }
        Admin admin = Admin.create(Collections.singletonMap("bootstrap.servers", (Object) bootstrap));
        try {
            admin.createTopics(topics).all().get(30, TimeUnit.SECONDS);
        } finally {
            admin.close();
        }
        return ServerJudge.object();
    }
}
