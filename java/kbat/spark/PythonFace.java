package kbat.spark;

import java.lang.reflect.InvocationTargetException;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The Python data source of the same name, which Spark 4 runs in Python workers. */
final class PythonFace implements Face {
    private static final String PROVIDER = "org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2";

    private final TableProvider provider;

    private PythonFace(TableProvider provider) {
        this.provider = provider;
    }

    /**
     * Returns the face.
     *
     * @throws UnsupportedOperationException if this Spark has no Python data sources, or this session not that of kbat
     */
    static PythonFace required() {
        PythonFace face = ifAvailable();
        if (face == null) {
            throw new UnsupportedOperationException(
                    "kbat: option engine=python: Spark " + org.apache.spark.package$.MODULE$.SPARK_VERSION()
                            + " has no Python data sources, which came with Spark 4.0: remove the option");
        }
        if (!face.isRegistered()) {
            throw new UnsupportedOperationException(
                    "kbat: option engine=python: the Python of Spark's workers has no package kbat: install it there, name"
                            + " another Python with PYSPARK_PYTHON, or call kbat.spark.register(spark)");
        }
        return face;
    }

    /** Returns the face, or null if this Spark has no Python data sources. */
    static PythonFace ifAvailable() {
        try {
            // by name, because Spark 3.5, which this is compiled with, does not have it
            Object provider = Class.forName(PROVIDER).getDeclaredConstructor().newInstance();
            provider.getClass().getMethod("setShortName", String.class).invoke(provider, "kbat");
            return new PythonFace((TableProvider) provider);
        } catch (ClassNotFoundException error) {
            return null;
        } catch (InvocationTargetException error) {
            throw Failures.unchecked(error.getCause());
        } catch (ReflectiveOperationException error) {
            throw new UnsupportedOperationException("kbat: this Spark's Python data sources are not known", error);
        }
    }

    /** Returns whether the session has a Python data source of the name. */
    boolean isRegistered() {
        try {
            provider.getClass().getMethod("source").invoke(provider);
            return true;
        } catch (ReflectiveOperationException error) {
            return false;
        }
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return provider.inferSchema(options);
    }

    @Override
    public Table table(StructType schema, Map<String, String> options) {
        return provider.getTable(schema, new Transform[0], options);
    }
}
