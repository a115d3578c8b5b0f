import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.kafka.tools.DumpLogSegments;

/** kafka-dump-log. */
final class Dumping {
    private Dumping() {
    }

    static ObjectNode dump(JsonNode request) throws Exception {
        List arguments = new ArrayList();
        for (Iterator each = request.get("arguments").elements(); each.hasNext();) {
            arguments.add(((JsonNode) each.next()).asText());
        }
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        PrintStream standardOutput = System.out;
        PrintStream standardError = System.err;
        System.setOut(new PrintStream(output, true, "UTF-8"));
        System.setErr(new PrintStream(errors, true, "UTF-8"));
        try {
            DumpLogSegments.main((String[]) arguments.toArray(new String[0]));
        } finally {
            System.setOut(standardOutput);
            System.setErr(standardError);
        }
        ObjectNode answer = ServerJudge.object();
        answer.put("stdout", output.toString("UTF-8"));
        answer.put("stderr", errors.toString("UTF-8"));
        return answer;
    }
}
