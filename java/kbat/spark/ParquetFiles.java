package kbat.spark;

import java.io.IOException;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.unsafe.types.UTF8String;

/** Writes the files of a task when the first row is read; each row describes one of them. */
final class ParquetFiles implements PartitionReader<InternalRow> {
    private final ParquetJob job;
    private final byte[] task;
    private final TaskErrors errors;
    private long[] counts = new long[Metrics.COUNT];
    private Path attempt;
    /** Path, number of rows and bytes of each file; null before they are written. */
    private String[] files;
    private int next;

    ParquetFiles(ParquetJob job, byte[] task, TaskErrors errors) {
        this.job = job;
        this.task = task;
        this.errors = errors;
    }

    @Override
    public boolean next() {
        if (files == null) {
            try {
                files = write();
            } catch (IOException | IllegalArgumentException error) {
                throw errors.of(error);
            }
        } else {
            next += 3;
        }
        while (next < files.length && files[next + 1].equals("0")) {
            next += 3; // Rust writes a file without rows, which is none here
        }
        return next < files.length;
    }

    private String[] write() throws IOException {
        if (!job.isOpen()) {
            throw new IOException("kbat: the job of " + job.directory() + " has ended");
        }
        TaskContext context = TaskContext.get();
        int number = context == null ? 0 : context.partitionId();
        attempt = job.attempt(number);
        long handle = job.open(task, number, attempt);
        try {
            while (NativeParquet.write(handle)) {
                if (context != null) {
                    context.killTaskIfInterrupted();
                }
            }
            return NativeParquet.finish(handle);
        } finally {
            Warnings.logAll();
            counts = NativeParquet.counts(handle);
            NativeParquet.close(handle);
            job.removeIfEnded();
        }
    }

    @Override
    public InternalRow get() {
        String name = attempt.relativize(Paths.get(files[next])).toString();
        return new GenericInternalRow(new Object[] {
            UTF8String.fromString(attempt.toString()),
            UTF8String.fromString(name),
            Long.parseLong(files[next + 1]),
            Long.parseLong(files[next + 2])
        });
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        return Metrics.values(counts);
    }

    /** Has no effect: the task is closed as soon as the files are written. */
    @Override
    public void close() {}
}
