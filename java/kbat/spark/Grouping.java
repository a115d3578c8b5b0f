package kbat.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Whether the tasks of a read are grouped by topic and partition, so that a window, a join or an aggregate by both needs
 * no shuffle.
 *
 * <p>It is reported only if it costs nothing. Up to version 4.1, Spark reads all tasks of a group one after the other as
 * soon as groups are reported, even if no operator needs them; so there each group has to have one task. Later versions
 * join the tasks of a group only where that saves a shuffle.
 *
 * <p>Where tasks are joined, each of them keeps the memory of its partial aggregates, about 2 MB, until the last one
 * ends. So groups of many tasks are not reported either.
 */
final class Grouping {
    /** Most tasks of a group that Spark may join. */
    private static final int MOST_TASKS = 16;

    /** The node of a plan that joins the tasks of a group, which Spark has from version 4.2 on. */
    private static final String JOINING = "org.apache.spark.sql.execution.datasources.v2.GroupPartitionsExec";
    private static final boolean IS_ON_DEMAND = hasJoining();
    private static final List<String> KEYS = Arrays.asList("topic", "partition");

    private Grouping() {}

    /** Returns whether Spark could use groups of a read with some columns. */
    static boolean isUseful(StructType columns) {
        return SQLConf.get().v2BucketingEnabled() && keys(columns).size() == KEYS.size();
    }

    /** Returns whether the plan should have no task with two partitions. */
    static boolean isPlanned(StructType columns) {
        return IS_ON_DEMAND && isUseful(columns);
    }

    /** Returns the tasks with their partitions, or the same tasks if they are not grouped. */
    static InputPartition[] keyed(InputPartition[] tasks) {
        KeyedTask[] keyed = Arrays.stream(tasks).map(task -> KeyedTask.of((KbatTask) task)).toArray(KeyedTask[]::new);
        if (keyed.length < 2 || Arrays.stream(keyed).anyMatch(Objects::isNull)) {
            return tasks;
        }
        Collection<Long> sizes = Arrays.stream(keyed)
                .collect(Collectors.groupingBy(KeyedTask::name, Collectors.counting()))
                .values();
        boolean isSingle = sizes.size() == keyed.length;
        return sizes.size() > 1 && (isSingle || (IS_ON_DEMAND && isCheap(sizes))) ? keyed : tasks;
    }

    /** Returns whether joining the tasks of each group leaves work for all cores, and few tasks to each. */
    private static boolean isCheap(Collection<Long> sizes) {
        return sizes.size() >= SparkContext.getOrCreate().defaultParallelism()
                && sizes.stream().allMatch(size -> size <= MOST_TASKS);
    }

    /** Returns what Spark is told about tasks that {@link #keyed} returned. */
    static Partitioning of(InputPartition[] tasks, StructType columns) {
        boolean isGrouped = tasks.length > 0 && tasks[0] instanceof KeyedTask;
        return isGrouped
                ? new KeyGroupedPartitioning(keys(columns).toArray(new Expression[0]), tasks.length)
                : new UnknownPartitioning(tasks.length);
    }

    /** Returns the columns that identify a partition, under their names in a schema. */
    private static List<Expression> keys(StructType columns) {
        List<Expression> keys = new ArrayList<>();
        for (String key : KEYS) {
            List<String> names = Arrays.stream(columns.fields())
                    .map(StructField::name)
                    .filter(key::equalsIgnoreCase)
                    .collect(Collectors.toList());
            names.forEach(name -> keys.add(Expressions.identity(name)));
        }
        return keys;
    }

    private static boolean hasJoining() {
        try {
            Class.forName(JOINING, false, SQLConf.class.getClassLoader());
            return true;
        } catch (ClassNotFoundException error) {
            return false;
        }
    }
}
