package kbat.spark;

import java.util.HashMap;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.connector.read.streaming.Offset;

/**
 * The next offsets of a stream, in Kafka's JSON form: {@code {"orders": {"0": 23}}}.
 *
 * <p>Texts of the same offsets are equal: the Python data source writes spaces into its checkpoints.
 */
final class KbatOffset extends Offset {
    /** A topic's name or a partition, or an offset; the punctuation between them follows from their order. */
    private static final Pattern TOKEN = Pattern.compile("\"((?:[^\"\\\\]|\\\\.)*)\"\\s*:\\s*(?:(\\{)|(-?\\d+))");

    private final String json;
    private Map<String, Long> offsets;

    KbatOffset(String json) {
        this.json = json;
    }

    @Override
    public String json() {
        return json;
    }

    /** Summarizes how far another offset is behind this one, by partition. A partition that it lacks counts from 0. */
    LongSummaryStatistics behind(KbatOffset consumed) {
        Map<String, Long> theirs = consumed.offsets();
        return offsets().entrySet().stream()
                .mapToLong(entry -> Math.max(entry.getValue() - theirs.getOrDefault(entry.getKey(), 0L), 0))
                .summaryStatistics();
    }

    /** Returns whether an offset of a partition is after that of another. */
    boolean isAfter(KbatOffset other) {
        return offsets().entrySet().stream()
                .anyMatch(entry -> entry.getValue() > other.offsets().getOrDefault(entry.getKey(), Long.MAX_VALUE));
    }

    private Map<String, Long> offsets() {
        if (offsets == null) {
            offsets = new HashMap<>();
            String topic = "";
            for (Matcher token = TOKEN.matcher(json); token.find(); ) {
                if (token.group(2) != null) {
                    topic = token.group(1);
                } else {
                    offsets.put(topic + '/' + token.group(1), Long.valueOf(token.group(3)));
                }
            }
        }
        return offsets;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof KbatOffset && offsets().equals(((KbatOffset) other).offsets());
    }

    @Override
    public int hashCode() {
        return offsets().hashCode();
    }
}
