import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.server.util.Scheduler;

/** A scheduler that keeps what is to be done once until it is told to do it, and never does what repeats. */
final class DeferredTasks implements Scheduler {
    private final List tasks = new ArrayList();

    public void startup() {
    }

    public void shutdown() {
    }

    public void resizeThreadPool(int size) {
    }

    public ScheduledFuture schedule(String name, Runnable task, long delayMs, long periodMs) {
        if (periodMs < 0) {
            tasks.add(task);
        }
        return new Never();
    }

    void run() {
        while (!tasks.isEmpty()) {
            ((Runnable) tasks.remove(0)).run();
        }
    }

    /** What Kafka gets to cancel. */
    private static final class Never implements ScheduledFuture {
        public boolean cancel(boolean interrupt) {
            return true;
        }

        public boolean isCancelled() {
            return false;
        }

        public boolean isDone() {
            return false;
        }

        public Object get() {
            return null;
        }

        public Object get(long time, TimeUnit unit) {
            return null;
        }

        public long getDelay(TimeUnit unit) {
            return 0;
        }

        public int compareTo(Object other) {
            return 0;
        }
    }
}
