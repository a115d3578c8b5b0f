import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * A program that answers requests on its standard input; java_process.py starts it and speaks to it.
 *
 * A request is a byte, an int length and that many bytes; an answer is a byte (0 done, 1 refused), an int length and that
 * many bytes. Numbers are big-endian; bytes are an int length, -1 for null, and the bytes.
 * The programs are written in the Java that janino compiles, which has no lambdas and no inference of generic types.
 */
abstract class Judge {
    abstract void judge(int request, DataInputStream in, DataOutputStream out) throws Exception;

    final void serve() throws IOException {
        DataInputStream in = new DataInputStream(System.in);
        PrintStream out = System.out;
        // Whatever a library prints must not get between the answers.
        System.setOut(System.err);
        for (int request = in.read(); request >= 0; request = in.read()) {
            byte[] payload = new byte[in.readInt()];
            in.readFully(payload);
            ByteArrayOutputStream answer = new ByteArrayOutputStream();
            int status = 0;
            try {
                judge(request, new DataInputStream(new ByteArrayInputStream(payload)), new DataOutputStream(answer));
            } catch (Throwable refusal) {
                status = 1;
                answer.reset();
                DataOutputStream reason = new DataOutputStream(answer);
                writeBytes(reason, text(refusal.getClass().getName()));
                writeBytes(reason, text(String.valueOf(refusal.getMessage())));
            }
            DataOutputStream frame = new DataOutputStream(out);
            frame.writeByte(status);
            frame.writeInt(answer.size());
            answer.writeTo(frame);
            frame.flush();
        }
    }

    static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String string(DataInputStream in) throws IOException {
        return new String(readBytes(in), StandardCharsets.UTF_8);
    }

    static byte[] readBytes(DataInputStream in) throws IOException {
        int length = in.readInt();
        if (length < 0) {
            return null;
        }
        byte[] bytes = new byte[length];
        in.readFully(bytes);
        return bytes;
    }

    static void writeBytes(DataOutputStream out, byte[] bytes) throws IOException {
        out.writeInt(bytes == null ? -1 : bytes.length);
        if (bytes != null) {
            out.write(bytes);
        }
    }
}
