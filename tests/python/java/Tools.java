import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/** Kafka's command-line tools, which would end this process if they were run by their scripts. */
final class Tools {
    private Tools() {
    }

    static ObjectNode run(JsonNode request) throws Exception {
        List arguments = new ArrayList();
        for (Iterator each = request.get("arguments").elements(); each.hasNext();) {
            arguments.add(((JsonNode) each.next()).asText());
        }
        Class tool = Class.forName(request.get("tool").asText());
        Method method = method(tool);
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        PrintStream standardOutput = System.out;
        System.setOut(new PrintStream(output, true, "UTF-8"));
        try {
            method.invoke(null, new Object[] {arguments.toArray(new String[0])});
        } catch (InvocationTargetException failure) {
            // Node lets an exit throw
            String reason = String.valueOf(failure.getCause());
            if (reason.indexOf("ends with status 0") < 0) {
                throw new IllegalStateException(reason + ": " + output.toString("UTF-8"), failure.getCause());
            }
        } finally {
            System.setOut(standardOutput);
        }
        ObjectNode answer = ServerJudge.object();
        answer.put("stdout", output.toString("UTF-8"));
        return answer;
    }

    /** The method to run. TopicCommand's main takes its own exit, which throws here, for a failure. */
    private static Method method(Class tool) throws Exception {
        Class[] parameters = new Class[] {String[].class};
        Method method;
        try {
            method = tool.getDeclaredMethod("execute", parameters);
        } catch (NoSuchMethodException none) {
            method = tool.getMethod("main", parameters);
        }
        method.setAccessible(true);
        return method;
    }
}
