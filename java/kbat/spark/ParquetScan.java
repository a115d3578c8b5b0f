package kbat.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/** The read of a {@link ParquetJob}: its tasks are those of a read of all columns, and its rows describe files. */
final class ParquetScan implements Scan, Batch {
    private final Options options;
    private final ParquetJob job;

    ParquetScan(Options options, ParquetJob job) {
        this.options = options;
        this.job = job;
    }

    @Override
    public StructType readSchema() {
        return ParquetJob.SCHEMA;
    }

    @Override
    public String description() {
        return "kbat engine: jvm, path: " + options.paths() + ", options: [" + options.others() + "], Parquet files in "
                + job.directory();
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
        return ColumnarSupportMode.UNSUPPORTED;
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return Metrics.ofReads();
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
        String[] described = Native.call(() -> Native.columns(options.pairs(), options.session()));
        List<String> columns = new ArrayList<>();
        for (int i = 0; i < described.length; i += 3) {
            columns.add(described[i]);
        }
        return KbatTask.all(Native.call(() -> Native.plan(
                options.pairs(),
                options.session(),
                columns.toArray(new String[0]),
                new String[0][],
                KbatScan.NO_LIMIT,
                new String[0],
                new String[0],
                false)));
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new ParquetReaderFactory(job);
    }
}
