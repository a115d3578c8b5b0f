package kbat.spark;

import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The table of a read or write. */
final class KbatTable implements SupportsRead, SupportsWrite {
    private final StructType schema;
    /** The job whose files are the rows; null if they are records. */
    private final ParquetJob job;

    KbatTable(StructType schema, ParquetJob job) {
        this.schema = schema;
        this.job = job;
    }

    @Override
    public String name() {
        return "kbat";
    }

    @Override
    public StructType schema() {
        return schema;
    }

    @Override
    public Set<TableCapability> capabilities() {
        return EnumSet.of(
                TableCapability.BATCH_READ,
                TableCapability.MICRO_BATCH_READ,
                TableCapability.BATCH_WRITE,
                TableCapability.STREAMING_WRITE,
                TableCapability.TRUNCATE);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        Options given = new Options(options);
        return job == null ? new KbatScanBuilder(schema, given) : () -> new ParquetScan(given, job);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return new KbatWriteBuilder(info);
    }
}
