package kbat.spark;

import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * {@code format("kbat.spark.Prebuilt")}: a read that costs nothing, to measure what Spark itself needs for its rows.
 *
 * <p>The first query plans the same tasks as {@code format("kbat")}, and reads the first batch of each task. All queries
 * of the process return these batches again and again, from the memory that Rust decoded them to, until each task has
 * returned its share of the option {@code rows}. The vectors are kbat's own. So if kbat is slower, it is because kbat
 * plans, reads and decodes.
 *
 * <p>It needs a local master, and columns that are not nested. It is in the package of kbat's vectors because they are
 * not public. No published jar contains it.
 */
public final class Prebuilt implements TableProvider {
    private static final String ROWS = "rows";

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return new JvmFace().inferSchema(ofRead(options));
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
        return new PrebuiltTable(schema);
    }

    private static CaseInsensitiveStringMap ofRead(CaseInsensitiveStringMap options) {
        Map<String, String> others = new TreeMap<>(options.asCaseSensitiveMap());
        others.remove(ROWS);
        return new CaseInsensitiveStringMap(others);
    }

    private static final class PrebuiltTable implements Table, SupportsRead {
        private final StructType schema;

        PrebuiltTable(StructType schema) {
            this.schema = schema;
        }

        @Override
        public String name() {
            return "prebuilt";
        }

        @Override
        public StructType schema() {
            return schema;
        }

        @Override
        public Set<TableCapability> capabilities() {
            return Collections.singleton(TableCapability.BATCH_READ);
        }

        @Override
        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            long rows = options.getLong(ROWS, 0);
            return new PrebuiltScan(PrebuiltBatch.of(new Options(ofRead(options)), schema), schema, rows);
        }
    }
}
