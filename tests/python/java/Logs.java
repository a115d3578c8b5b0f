import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Method;
import java.util.Iterator;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Consumer;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.TxnIndexSearchResult;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** A partition's directory opened by {@link UnifiedLog}, as a broker has it. */
final class Logs {
    private static final int PRODUCER_EXPIRATION_MS = Integer.MAX_VALUE;

    private final DeferredTasks tasks = new DeferredTasks();
    private final FixedTime time;
    private final UnifiedLog log;

    private Logs(JsonNode request) throws IOException {
        Properties settings = new Properties();
        JsonNode configs = request.get("configs");
        for (Iterator names = configs.fieldNames(); names.hasNext();) {
            String name = (String) names.next();
            settings.put(name, configs.get(name).asText());
        }
        time = new FixedTime(request.get("now_ms").asLong());
        log = UnifiedLog.create(new File(request.get("directory").asText()), new LogConfig(settings),
            request.get("log_start_offset").asLong(), 0L, tasks, new BrokerTopicStats(), time, 5 * 60 * 1000,
            new ProducerStateManagerConfig(PRODUCER_EXPIRATION_MS, false), 600000, new LogDirFailureChannel(10),
            request.get("clean_shutdown").asBoolean(), Optional.empty());
        log.updateHighWatermark(log.logEndOffset());
    }

    private void close() {
        tasks.run();
        log.close();
        tasks.run();
    }

    /** Loads a log, with recovery where it was not shut down cleanly, and answers questions about it. */
    static ObjectNode load(JsonNode request) throws IOException {
        Logs opened = new Logs(request);
        try {
            ObjectNode answer = opened.state();
            opened.timestamps(request.get("timestamps"), answer.putArray("timestamps"));
            opened.aborted(request.get("aborted_ranges"), answer.putArray("aborted_transactions"));
            return answer;
        } finally {
            opened.close();
        }
    }

    private ObjectNode state() throws IOException {
        ObjectNode answer = ServerJudge.object();
        answer.put("log_start_offset", log.logStartOffset());
        answer.put("log_end_offset", log.logEndOffset());
        answer.put("last_stable_offset", log.lastStableOffset());
        ArrayNode segments = answer.putArray("segments");
        for (Iterator each = log.logSegments().iterator(); each.hasNext();) {
            LogSegment segment = (LogSegment) each.next();
            segments.addArray().add(segment.baseOffset()).add(segment.size());
        }
        ArrayNode epochs = answer.putArray("leader_epochs");
        for (Iterator each = log.leaderEpochCache().epochEntries().iterator(); each.hasNext();) {
            EpochEntry entry = (EpochEntry) each.next();
            epochs.addArray().add(entry.epoch()).add(entry.startOffset());
        }
        ArrayNode producers = answer.putArray("producers");
        for (Iterator each = log.producerStateManager().activeProducers().values().iterator(); each.hasNext();) {
            Indexes.producer((ProducerStateEntry) each.next(), producers.addObject());
        }
        return answer;
    }

    private void timestamps(JsonNode targets, ArrayNode answers) {
        for (Iterator each = targets.elements(); each.hasNext();) {
            Optional found = log.fetchOffsetByTimestamp(((JsonNode) each.next()).asLong(), Optional.empty())
                .timestampAndOffsetOpt();
            if (!found.isPresent()) {
                answers.addNull();
                continue;
            }
            FileRecords.TimestampAndOffset place = (FileRecords.TimestampAndOffset) found.get();
            answers.addArray().add(place.timestamp).add(place.offset).add((Integer) place.leaderEpoch.orElse(null));
        }
    }

    private void aborted(JsonNode ranges, ArrayNode answers) {
        for (Iterator each = ranges.elements(); each.hasNext();) {
            Iterator range = ((JsonNode) each.next()).elements();
            long start = ((JsonNode) range.next()).asLong();
            aborted(start, ((JsonNode) range.next()).asLong(), answers.addArray());
        }
    }

    /** What a fetch answer has: the indexes from the segment of its first offset on, until one knows of no more. */
    private void aborted(long start, long end, ArrayNode answer) {
        long first = log.logStartOffset();
        for (Iterator each = log.logSegments().iterator(); each.hasNext();) {
            long base = ((LogSegment) each.next()).baseOffset();
            first = base <= start ? base : first;
        }
        boolean complete = false;
        for (Iterator each = log.logSegments(first, Long.MAX_VALUE).iterator(); each.hasNext() && !complete;) {
            TxnIndexSearchResult found = ((LogSegment) each.next()).collectAbortedTxns(start, end);
            for (Iterator one = found.abortedTransactions().iterator(); one.hasNext();) {
                AbortedTxn transaction = (AbortedTxn) one.next();
                answer.addArray().add(transaction.producerId()).add(transaction.firstOffset());
            }
            complete = found.isComplete();
        }
    }

    /** One run of Kafka's cleaner. */
    static ObjectNode clean(JsonNode request) throws Exception {
        Logs opened = new Logs(request);
        try {
            long[] range = opened.dirtyRange(request.get("first_dirty_offset"));
            JsonNode end = request.get("first_uncleanable_offset");
            LogToClean work = new LogToClean(opened.log, range[0], end.isNull() ? range[1] : end.asLong(), true);
            Map.Entry done = opened.cleaner(request).clean(work);
            opened.tasks.run();
            CleanerStats stats = (CleanerStats) done.getValue();
            ObjectNode answer = opened.state();
            answer.put("next_dirty_offset", ((Long) done.getKey()).longValue());
            answer.put("records_read", stats.messagesRead());
            answer.put("records_written", stats.messagesWritten());
            answer.put("invalid_records_read", stats.invalidMessagesRead());
            answer.put("bytes_read", stats.bytesRead());
            answer.put("bytes_written", stats.bytesWritten());
            return answer;
        } finally {
            opened.close();
        }
    }

    /** First dirty and first uncleanable offset, as LogCleanerManager finds them; it has no public way to ask. */
    private long[] dirtyRange(JsonNode given) throws Exception {
        Optional cleaned = given.isNull() ? Optional.empty() : Optional.of(Long.valueOf(given.asLong()));
        Method find = LogCleanerManager.class.getDeclaredMethod("cleanableOffsets",
            new Class[] {UnifiedLog.class, Optional.class, long.class});
        find.setAccessible(true);
        Object range = find.invoke(null, new Object[] {log, cleaned, Long.valueOf(time.milliseconds())});
        return new long[] {part(range, "firstDirtyOffset"), part(range, "firstUncleanableDirtyOffset")};
    }

    private static long part(Object range, String name) throws Exception {
        Method part = range.getClass().getDeclaredMethod(name, new Class[0]);
        part.setAccessible(true);
        return ((Long) part.invoke(range, new Object[0])).longValue();
    }

    private Cleaner cleaner(JsonNode request) throws Exception {
        Consumer always = new Consumer() {
            public void accept(Object partition) {
            }
        };
        return new Cleaner(0, new SkimpyOffsetMap(request.get("map_bytes").asInt()), 1 << 20, Integer.MAX_VALUE, 0.9,
            new Throttler(Double.MAX_VALUE, 300, "clean", "bytes", time), time, always);
    }

    /** Appends to a log, as the leader of a partition or a follower does. */
    static ObjectNode append(JsonNode request) throws IOException {
        Logs opened = new Logs(request);
        try {
            ObjectNode answer = ServerJudge.object();
            ArrayNode appended = answer.putArray("appended");
            for (Iterator each = request.get("appends").elements(); each.hasNext();) {
                appended.add(opened.appendOne((JsonNode) each.next()));
            }
            answer.setAll(opened.state());
            return answer;
        } finally {
            opened.close();
        }
    }

    private ObjectNode appendOne(JsonNode one) throws IOException {
        int epoch = one.get("leader_epoch").asInt();
        MemoryRecords records = ServerJudge.records(one);
        LogAppendInfo info;
        try {
            info = one.get("as_follower").asBoolean() ? log.appendAsFollower(records, epoch)
                : log.appendAsLeader(records, epoch, AppendOrigin.valueOf(one.get("origin").asText()),
                    RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) one.get("transaction_version").asInt());
        } catch (RuntimeException refusal) {
            return Appending.refused(refusal);
        }
        log.updateHighWatermark(log.logEndOffset());
        ObjectNode answer = ServerJudge.object();
        answer.put("first_offset", info.firstOffset());
        answer.put("last_offset", info.lastOffset());
        answer.put("max_timestamp", info.maxTimestamp());
        answer.put("log_append_time", info.logAppendTime());
        return answer;
    }
}
