package kbat.spark;

import java.io.IOException;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The first batch of a task. Its task stays open for as long as the process, and so does the memory. */
final class PrebuiltBatch implements Serializable {
    private static final long serialVersionUID = 1;

    private static final Map<Options, List<PrebuiltBatch>> MADE = new HashMap<>();

    private final String process = ManagementFactory.getRuntimeMXBean().getName();
    private final int rows;
    private final long[] nodes;

    private PrebuiltBatch(int rows, long[] nodes) {
        this.rows = rows;
        this.nodes = nodes;
    }

    /** Returns the first batch of each task of a read of all columns, read by the first call with these options. */
    static List<PrebuiltBatch> of(Options options, StructType schema) {
        synchronized (MADE) {
            return MADE.computeIfAbsent(options, given -> Native.call(() -> read(given, schema)));
        }
    }

    private static List<PrebuiltBatch> read(Options options, StructType schema) throws IOException {
        for (StructField field : schema.fields()) {
            if (field.dataType() instanceof ArrayType || field.dataType() instanceof StructType) {
                throw new IllegalArgumentException("the column " + field.name() + " is nested");
            }
        }
        byte[][] tasks = Native.plan(
                options.pairs(),
                options.session(),
                schema.fieldNames(),
                new String[0][],
                KbatScan.NO_LIMIT,
                new String[0],
                new String[0],
                false);
        List<PrebuiltBatch> batches = new ArrayList<>();
        for (byte[] task : tasks) {
            long[] nodes = new long[NativeVector.NODE_LEN * schema.size()];
            int rows = Native.next(Native.openTask(task), nodes);
            if (rows <= 0) {
                throw new IllegalStateException("the task has no first batch: " + rows + " rows");
            }
            batches.add(new PrebuiltBatch(rows, nodes));
        }
        return batches;
    }

    int rows() {
        return rows;
    }

    /** Returns the nodes of a column, for its vector. */
    long[] column(int index) {
        if (!process.equals(ManagementFactory.getRuntimeMXBean().getName())) {
            throw new IllegalStateException("the batch is in the memory of another process: use a local master");
        }
        return Arrays.copyOfRange(nodes, NativeVector.NODE_LEN * index, NativeVector.NODE_LEN * (index + 1));
    }
}
