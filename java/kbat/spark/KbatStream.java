package kbat.spark;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;

/** A growing log directory, in micro-batches. Rust finds their ends, by the options' limits. */
final class KbatStream implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
    private final StreamHandle stream;
    private final String paths;
    private final StructType columns;
    private final boolean isLimited;
    private final String checkpointLocation;
    /** What this query has stored in its checkpoint before its first micro-batch. */
    private InitialOffsets unused;

    KbatStream(Options options, StructType columns, String checkpointLocation) {
        this.columns = columns;
        this.checkpointLocation = checkpointLocation;
        paths = options.paths();
        isLimited = options.has("maxOffsetsPerTrigger") || options.has("minOffsetsPerTrigger");
        stream = new StreamHandle(options.pairs(), options.session(), columns.fieldNames());
    }

    /** Returns where the query starts, as its checkpoint has it. */
    @Override
    public Offset initialOffset() {
        return new KbatOffset(stream.call(handle -> {
            InitialOffsets stored = new InitialOffsets(checkpointLocation);
            String offsets = stored.read();
            if (offsets == null) {
                offsets = Native.initialOffset(handle);
                stored.write(offsets);
                unused = stored;
            }
            return offsets;
        }));
    }

    @Override
    public Offset deserializeOffset(String json) {
        return new KbatOffset(json);
    }

    /** Returns a limit if the options set one: Spark passes it on, or another one for a trigger that reads all. */
    @Override
    public ReadLimit getDefaultReadLimit() {
        // the number is Rust's, which knows how users may write it
        return isLimited ? ReadLimit.maxRows(Long.MAX_VALUE) : ReadLimit.allAvailable();
    }

    @Override
    public Offset latestOffset(Offset start, ReadLimit limit) {
        String from = start == null ? null : start.json();
        return new KbatOffset(
                stream.call(handle -> Native.latestOffset(handle, from, !(limit instanceof ReadAllAvailable))));
    }

    @Override
    public Offset latestOffset() {
        throw new UnsupportedOperationException("kbat: Spark calls latestOffset with a start and a limit");
    }

    @Override
    public Offset reportLatestOffset() {
        String latest = stream.call(Native::reportLatestOffset);
        return latest == null ? null : new KbatOffset(latest);
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        stream.call(handle -> {
            Native.prepareForTriggerAvailableNow(handle);
            return null;
        });
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
        if (unused != null && new KbatOffset(start.json()).isAfter(new KbatOffset(end.json()))) {
            // the query began elsewhere; the user may set other options, as the error shows
            stream.call(handle -> {
                unused.delete();
                return null;
            });
        }
        unused = null;
        return KbatTask.all(stream.call(handle -> Native.planMicroBatch(handle, start.json(), end.json())));
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new KbatReaderFactory(columns);
    }

    /** Returns how far the query is behind the ends of the logs, under the names of Spark's Kafka source. */
    @Override
    public Map<String, String> metrics(Optional<Offset> consumed) {
        Offset latest = stream.isClosed() ? null : reportLatestOffset();
        if (latest == null || !consumed.isPresent()) {
            return Collections.emptyMap();
        }
        LongSummaryStatistics behind = ((KbatOffset) latest).behind(new KbatOffset(consumed.get().json()));
        if (behind.getCount() == 0) {
            return Collections.emptyMap();
        }
        Map<String, String> metrics = new LinkedHashMap<>();
        metrics.put("minOffsetsBehindLatest", String.valueOf(behind.getMin()));
        metrics.put("maxOffsetsBehindLatest", String.valueOf(behind.getMax()));
        metrics.put("avgOffsetsBehindLatest", String.valueOf(behind.getAverage()));
        return metrics;
    }

    /** Returns the source's name in the progress of a query. */
    @Override
    public String toString() {
        return "kbat[" + paths + "]";
    }

    @Override
    public void commit(Offset end) {}

    @Override
    public void stop() {
        stream.close();
    }
}
