import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** A clock that stands still, so that what Kafka writes can be compared. */
final class FixedTime implements Time {
    private final long milliseconds;

    FixedTime(long milliseconds) {
        this.milliseconds = milliseconds;
    }

    public long milliseconds() {
        return milliseconds;
    }

    public long nanoseconds() {
        return milliseconds * 1000000L;
    }

    public void sleep(long milliseconds) {
    }

    public void waitObject(Object object, Supplier condition, long deadline) {
    }
}
