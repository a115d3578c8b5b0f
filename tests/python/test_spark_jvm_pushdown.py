"""What the data source in Spark's JVM reports to Spark: totals of headers, groups, metrics and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.sql import functions

import kbat
import kbat.spark
from data import DATA
from growing_log import GrowingLog, time_of
from spark_faces import plan_of, read, run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

EXTREMES = ("min(offset)", "max(offset)", "max(timestamp)")


def totals_of(frame: DataFrame, *aggregates: str) -> tuple[object, ...]:
    """Return aggregates that Rust computes, which have to be those of all rows."""
    pushed = frame.selectExpr(*aggregates)
    assert "PushedAggregates" in plan_of(pushed)
    rows = frame.where("value IS NULL OR value IS NOT NULL").selectExpr(*aggregates)
    assert "PushedAggregates" not in plan_of(rows)
    found = tuple(pushed.collect()[0])
    assert found == tuple(rows.collect()[0])
    return found


# Totals of headers


def test_totals_of_every_topic_are_those_of_the_rows(jvm: SparkSession, log_dir: Path) -> None:
    for directory in sorted(log_dir.glob("*-[0-9]")):
        totals_of(read(jvm, directory), "count(*)", *EXTREMES)


@pytest.mark.parametrize(
    "name", ["compacted*", "out-of-order", "log-append-time-*", "txn-lz4", "idempotent", "codec-snappy", "tiny-batches"]
)
def test_totals_of_the_corpus_are_those_of_the_rows(jvm: SparkSession, name: str) -> None:
    directories = sorted((DATA / "corpus").glob(name))
    assert directories
    for directory in directories:
        totals_of(read(jvm, directory, isolationLevel="read_uncommitted"), "count(*)", *EXTREMES)


def test_totals_of_a_compacted_log_are_those_of_the_records_that_remain(jvm: SparkSession, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "from" / "a-0")
    for _ in range(3):
        builder = kbat.BatchBuilder(base_offset=log.end_offset)
        for place in range(10):  # of each batch, the keys 0 and 9 are written again, except in the last one
            key = f"{place}" if place in {0, 9} else f"{log.end_offset + place}"
            builder.append(key.encode(), b"value", timestamp=time_of(log.end_offset + 10 - place))
        log.append_bytes(builder.finish())
        log.end_offset += 10
        log.roll()
    log.append(1)  # the active segment stays as it is
    target = tmp_path / "to" / "a-0"
    kbat.compact(tmp_path / "from" / "a-0", target)
    first, *_ = kbat.read_batches(next(iter(sorted(target.glob("*.log")))))
    assert (first.base_offset, first.last_offset, first.record_count) == (0, 9, 8)
    count, least, largest, latest = totals_of(read(jvm, target), "count(*)", *EXTREMES)
    assert (count, least, largest) == (8 + 8 + 10 + 1, 1, 30)
    assert latest == read(jvm, target).agg(functions.max("timestamp")).collect()[0][0]


def test_smallest_timestamp_is_computed_by_spark(jvm: SparkSession, log_dir: Path) -> None:
    for aggregate in ("min(timestamp)", "max(partition)", "count(DISTINCT offset)"):
        assert "PushedAggregates" not in plan_of(read(jvm, log_dir).selectExpr(aggregate)), aggregate


def test_totals_read_headers_only(jvm: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(*[1000] * 40)
    frame = read(jvm, tmp_path).selectExpr(*EXTREMES)
    assert frame.collect()[0][1] == 39_999
    jvm.conf.set("spark.sql.adaptive.enabled", "false")  # an adaptive plan does not show the read
    try:
        count, metrics = run(read(jvm, tmp_path).selectExpr(*EXTREMES))
    finally:
        jvm.conf.unset("spark.sql.adaptive.enabled")
    assert (count, metrics["Batches"], metrics["Records"]) == (1, 40, 40_000)


# Groups


@pytest.fixture
def partitions(tmp_path: Path) -> Path:
    for partition in range(3):
        log = GrowingLog(tmp_path / "from" / f"a-{partition}")
        for _ in range(2):
            log.append(5, 5)
            log.roll()
    return tmp_path / "from"


def ranked(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("*", "lag(offset) OVER (PARTITION BY topic, partition ORDER BY offset) AS before")


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="each partition needs exactly one task")
def test_window_by_partition_needs_no_shuffle(jvm: SparkSession, partitions: Path) -> None:
    with_groups = ranked(read(jvm, partitions, maxPartitionBytes=1))
    assert "Exchange" not in plan_of(with_groups)
    rows = with_groups.collect()
    assert len(rows) == 60
    assert all(row.before == (row.offset - 1 if row.offset else None) for row in rows)
    assert "Exchange" in plan_of(ranked(read(jvm, partitions, engine="python")))


def test_groups_cost_no_task(jvm: SparkSession, partitions: Path) -> None:
    frame = read(jvm, partitions, maxPartitionBytes=1)
    assert frame.rdd.getNumPartitions() == frame.select("value").rdd.getNumPartitions() == 12


def test_groups_of_many_tasks_are_not_reported(jvm: SparkSession, tmp_path: Path) -> None:
    for partition in range(3):
        GrowingLog(tmp_path / f"a-{partition}").append(*[1] * 17)
    assert "Exchange" in plan_of(ranked(read(jvm, tmp_path, maxPartitionBytes=1)))


def test_tasks_of_two_partitions_are_no_groups(jvm: SparkSession, partitions: Path) -> None:
    frame = read(jvm, partitions)  # all of it is one task
    assert frame.rdd.getNumPartitions() == 1
    assert len(ranked(frame).where("offset = before + 1").collect()) == 57


def test_groups_are_not_reported_if_the_session_does_not_use_them(jvm: SparkSession, partitions: Path) -> None:
    jvm.conf.set("spark.sql.sources.v2.bucketing.enabled", "false")
    try:
        assert "Exchange" in plan_of(ranked(read(jvm, partitions, maxPartitionBytes=1)))
    finally:
        jvm.conf.unset("spark.sql.sources.v2.bucketing.enabled")


# Metrics


def test_metrics_of_the_plan(jvm: SparkSession, partitions: Path) -> None:
    execution = read(jvm, partitions, maxPartitionBytes=1)._jdf.queryExecution()  # noqa: SLF001
    assert execution.toRdd().count() == 60
    metrics = execution.executedPlan().collectLeaves().apply(0).metrics()
    assert metrics.apply("kbatTasks").value() == 12
    assert metrics.contains("kbatPlanTime")


def test_metrics_and_plan_of_a_write(jvm: SparkSession, partitions: Path, tmp_path: Path) -> None:
    target = tmp_path / "written"
    jvm.sparkContext.setJobGroup("written", "a write")
    rows = read(jvm, partitions).select("topic", "partition", "key", "value")
    rows.write.format("kbat").option("compression", "lz4").mode("append").save(os.fspath(target))
    jvm.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    store = jvm._jsparkSession.sharedState().statusStore()  # noqa: SLF001
    jvm.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # noqa: SLF001
    execution = store.executionsList().last()
    assert f"kbat engine: jvm, path: {target}, options: [compression=lz4" in execution.physicalPlanDescription()
    shown = store.executionMetrics(execution.executionId())
    values = {metric.name(): shown.get(metric.accumulatorId()) for metric in listed(execution.metrics())}
    batches = [batch for log in sorted(target.glob("*/*.log")) for batch in kbat.read_batches(log)]
    assert values["batches written"].get() == f"{len(batches)}"
    assert values["records written"].get() == "60"
    size = sum(log.stat().st_size for log in target.glob("*/*.log"))
    assert values["bytes written"].get() == f"{size} B"
    stages = [store_of_jobs(jvm).lastStageAttempt(stage) for stage in stages_of(jvm, "written")]
    assert sum(stage.outputRecords() for stage in stages) == 60
    assert sum(stage.outputBytes() for stage in stages) == size


def listed(sequence: Any) -> list[Any]:  # noqa: ANN401 -- Java's
    """Return the elements of a sequence of Scala."""
    return [sequence.apply(place) for place in range(sequence.length())]


def store_of_jobs(spark: SparkSession) -> Any:  # noqa: ANN401 -- Java's
    return spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001


def stages_of(spark: SparkSession, group: str) -> list[int]:
    tracker = spark.sparkContext.statusTracker()
    infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    return [stage for info in infos if info is not None for stage in info.stageIds]


# Memory

# Prints the largest number of bytes that Spark's memory manager counts. A task that keeps some of them fails.
PROGRAM = """
import json, sys, time
from pyspark.sql import SparkSession
jar, path, is_off_heap = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[1]").config("spark.jars", jar).config("spark.ui.enabled", False)
builder = builder.config("spark.memory.offHeap.size", "64m").config("spark.memory.offHeap.enabled", is_off_heap)
builder = builder.config("spark.executor.metrics.pollingInterval", "5ms")
builder = builder.config("spark.executor.heartbeatInterval", "1s")
spark = builder.config("spark.unsafe.exceptionOnMemoryLeak", True).getOrCreate()
slow = "java_method('java.lang.Thread', 'sleep', CAST(2 AS BIGINT))"
frame = spark.read.format("kbat").load(path).selectExpr("value", slow)
frame.write.format("noop").mode("overwrite").save()
peaks = spark.sparkContext._jsc.sc().statusStore().executorList(True).apply(0).peakMemoryMetrics().get()
print("bytes", peaks.getMetricValue("OffHeapExecutionMemory"))
"""


@pytest.mark.parametrize("is_off_heap", [True, False])
def test_memory_of_a_task_is_counted_where_spark_counts_such_memory(tmp_path: Path, *, is_off_heap: bool) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(*[100] * 20)
    arguments = json.dumps([kbat.spark.jar(), os.fspath(tmp_path), is_off_heap])
    done = subprocess.run(  # noqa: S603 -- from above
        [sys.executable, "-c", PROGRAM, arguments], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (most,) = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("bytes ")]
    assert (most >= 2000 * len("a-0:0")) == is_off_heap
    assert is_off_heap or most == 0
