package kbat.spark;

import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Comparator;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * A job of {@code kbat.spark.to_parquet}: its tasks write Parquet files in Rust, and a row of the read describes a file.
 *
 * <p>Python creates the job's directory with the file {@code open} in it, moves the files of the rows to the target, and
 * removes the directory. The options with the names below describe the job to this class, and are no options of users.
 */
final class ParquetJob implements Serializable {
    static final StructType SCHEMA = new StructType()
            .add("directory", DataTypes.StringType)
            .add("name", DataTypes.StringType)
            .add("row_count", DataTypes.LongType)
            .add("size", DataTypes.LongType);

    /** How the names of a job's options begin. */
    static final String PREFIX = "kbat.parquet.";

    private static final long serialVersionUID = 1;
    private static final String DIRECTORY = PREFIX + "directory";
    private static final String SETTINGS = PREFIX + "settings";
    /** How many characters of the job's id are in the names of files. */
    private static final int ID_LENGTH = 12;

    private final String directory;
    private final String settings;

    private ParquetJob(String directory, String settings) {
        this.directory = directory;
        this.settings = settings;
    }

    /** Returns the job that some options describe, null if they describe none. */
    static ParquetJob of(Map<String, String> options) {
        String directory = options.get(DIRECTORY);
        return directory == null ? null : new ParquetJob(directory, options.get(SETTINGS));
    }

    String directory() {
        return directory;
    }

    /** Opens the files of an attempt of a task. */
    long open(byte[] task, int number, Path attempt) throws IOException {
        String name = Paths.get(directory).getFileName().toString();
        String id = name.substring(name.indexOf('-') + 1);
        String stem = String.format(
                Locale.ROOT, "part-%05d-%s", number, id.substring(0, Math.min(ID_LENGTH, id.length())));
        Files.createDirectory(attempt); // fails if the job's directory is gone, as after a failed job
        return NativeParquet.open(task, settings, attempt.toString(), stem);
    }

    /** Returns the directory of the current attempt of a task. */
    Path attempt(int number) {
        TaskContext context = TaskContext.get();
        return Paths.get(directory, number + "-" + (context == null ? 0 : context.taskAttemptId()));
    }

    /** Returns whether the job has not ended. */
    boolean isOpen() {
        return Files.exists(Paths.get(directory, "open"));
    }

    /** Removes what a task has written after the job has failed, and its driver has removed the rest. */
    void removeIfEnded() throws IOException {
        if (isOpen() || !Files.exists(Paths.get(directory))) {
            return;
        }
        try (Stream<Path> files = Files.walk(Paths.get(directory))) {
            for (Path file : files.sorted(Comparator.reverseOrder()).collect(Collectors.toList())) {
                Files.deleteIfExists(file);
            }
        }
    }
}
