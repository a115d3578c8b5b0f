package kbat.spark;

import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One of the two implementations of the data source, as the option {@code engine} selects it. */
public interface Face {
    /** The option that selects the face: {@code auto}, {@code jvm} or {@code python}. */
    String OPTION = "engine";

    /** Returns the schema of a read for which the user sets none. */
    StructType inferSchema(CaseInsensitiveStringMap options);

    /** Returns the table with a schema. Only reading from it or writing to it checks the schema. */
    Table table(StructType schema, Map<String, String> options);

    /**
     * Returns the face for some options. {@code auto} is the JVM's; where the library can't be loaded, it is Python's, if
     * this Spark has it.
     *
     * @throws IllegalArgumentException if the option has another value
     */
    static Face of(CaseInsensitiveStringMap options) {
        String text = options.getOrDefault(OPTION, "auto");
        switch (text.trim().toLowerCase(Locale.ROOT)) {
            case "jvm":
                return new JvmFace();
            case "python":
                return PythonFace.required();
            case "auto":
                return best();
            default:
                throw new IllegalArgumentException(
                        "kbat: option engine='" + text + "': must be auto, jvm or python");
        }
    }

    /** Returns the JVM's face, or Python's if the library can't be loaded here. */
    static Face best() {
        try {
            Library.load();
        } catch (IllegalStateException error) {
            PythonFace python = PythonFace.ifAvailable();
            if (python == null || !python.isRegistered()) {
                throw error;
            }
            Warnings.log(error.getMessage() + "; the Python data source runs instead");
            return python;
        }
        return new JvmFace();
    }
}
