package kbat;

import java.util.Map;
import kbat.spark.Face;
import org.apache.spark.sql.connector.catalog.SessionConfigSupport;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * {@code format("kbat")}: the records of Kafka's log segments, with the columns of Spark's Kafka source.
 *
 * <p>Spark resolves the name {@code kbat} to this class before it looks at Python data sources, because of the class's
 * name. It is not registered in {@code META-INF/services}: Spark 4 refuses a name that both a registered class and a
 * Python data source have.
 *
 * <p>Session settings {@code spark.datasource.kbat.<option>} are defaults of the options.
 */
public final class DefaultSource implements SessionConfigSupport {
    private Face face;

    @Override
    public String keyPrefix() {
        return "kbat";
    }

    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return face(options).inferSchema(options);
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
        return face(new CaseInsensitiveStringMap(options)).table(schema, options);
    }

    private Face face(CaseInsensitiveStringMap options) {
        if (face == null) {
            face = Face.of(options);
        }
        return face;
    }
}
