package kbat.spark;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The data source in this JVM: Rust plans and reads, and Spark reads the columns from Rust's memory. */
final class JvmFace implements Face {
    JvmFace() {
        Library.load();
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        if (ParquetJob.of(options) != null) {
            return ParquetJob.SCHEMA;
        }
        if (options.containsKey(Functions.OPTION)) {
            return Functions.register(options.get(Functions.OPTION));
        }
        Options given = new Options(options);
        String[] columns = Native.call(() -> Native.columns(given.pairs(), given.session()));
        StructType schema = new StructType();
        for (int i = 0; i < columns.length; i += 3) {
            // no comment: the Python data source can't set any, and both have the same schema
            schema = schema.add(columns[i], DataType.fromDDL(columns[i + 1]), true);
        }
        return schema;
    }

    @Override
    public Table table(StructType schema, Map<String, String> options) {
        return new KbatTable(schema, ParquetJob.of(new CaseInsensitiveStringMap(options)));
    }
}
