package kbat.spark;

import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.internal.SQLConf;

/**
 * The offsets at which a query started, in its checkpoint.
 *
 * <p>Spark stores only the ends of micro-batches and requests the start again if the first one runs again. By then,
 * segments may be deleted, or records appended, that the start depends on. The file is that of Spark's Kafka source:
 * {@code <checkpoint>/sources/<number>/0} has a zero byte, a version and the offsets. Earlier versions of kbat wrote no
 * zero byte.
 */
final class InitialOffsets {
    private static final String VERSION = "v1\n";

    private final Path file;
    private final FileSystem files;

    /** Opens the part of a checkpoint that belongs to a source. */
    InitialOffsets(String checkpointLocation) throws IOException {
        file = new Path(checkpointLocation, "0");
        files = file.getFileSystem(settings());
    }

    /** Returns Hadoop's settings, and those of the session, as Spark combines them for a checkpoint. */
    private static Configuration settings() {
        Configuration settings = new Configuration(SparkContext.getOrCreate().hadoopConfiguration());
        SQLConf.get().settings().forEach(settings::set);
        return settings;
    }

    /** Returns the offsets that the checkpoint has; null for a new query. */
    String read() throws IOException {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        try (InputStream input = files.open(file)) {
            byte[] part = new byte[8192];
            for (int count; (count = input.read(part)) >= 0; ) {
                content.write(part, 0, count);
            }
        } catch (FileNotFoundException error) {
            return null;
        }
        String text = new String(content.toByteArray(), StandardCharsets.UTF_8);
        int start = text.startsWith("\0") ? 1 : 0;
        String offsets = text.startsWith(VERSION, start) ? text.substring(start + VERSION.length()) : "";
        if (!isComplete(offsets)) {
            throw new IOException("kbat: " + file + " in the checkpoint does not have the offsets at which the query"
                    + " started, in version 1; a later version of kbat may have written it, or it is corrupt. To"
                    + " continue without it, remove it and set startingOffsets to those offsets");
        }
        return offsets;
    }

    /** Returns whether a text is an object in JSON up to its end. */
    private static boolean isComplete(String json) {
        long begun = json.chars().filter(c -> c == '{').count();
        return begun > 0 && json.endsWith("}") && begun == json.chars().filter(c -> c == '}').count();
    }

    /** Removes the offsets again. */
    void delete() throws IOException {
        files.delete(file, false);
    }

    /** Stores the offsets, so that the file is complete if it exists. */
    void write(String offsets) throws IOException {
        Path scratch = new Path(file.getParent(), "." + file.getName() + "." + UUID.randomUUID() + ".tmp");
        boolean isRenamed = false;
        try {
            try (OutputStream output = files.create(scratch, false)) {
                output.write(("\0" + VERSION + offsets).getBytes(StandardCharsets.UTF_8));
            }
            // local files are replaced by a rename
            isRenamed = !files.exists(file) && files.rename(scratch, file);
        } finally {
            if (!isRenamed) {
                files.delete(scratch, false);
            }
        }
        if (!isRenamed) {
            throw new IOException("kbat: the offsets at which the query starts can't be stored in " + file
                    + "; does another query use the same checkpoint?");
        }
    }
}
