"""The data source in Spark's JVM while it runs: tasks that end early, and streams."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from growing_log import GrowingLog
from spark_faces import message_of, read, read_in_python

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files in /proc")


# Tasks that end early


def open_logs(spark: SparkSession) -> list[Path]:
    """Return the .log files that Spark's JVM has open."""
    process = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]  # noqa: SLF001
    found = []
    for link in os.scandir(f"/proc/{process}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(Path(link).readlink())
    return [path for path in found if path.suffix == ".log"]


def wait_for(condition: Any, seconds: float = 20) -> None:  # noqa: ANN401 -- a function
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


@needs_proc
def test_jvm_cancelled_task_closes_its_files(jvm: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(*[1000] * 150)  # more than is read at once
    slow = "java_method('java.lang.Thread', 'sleep', CAST(50 AS BIGINT))"
    frame = read(jvm, tmp_path).selectExpr("offset", f"{slow} AS slept")

    def collect() -> None:
        jvm.sparkContext.setJobGroup("slow", "a slow query", interruptOnCancel=True)
        with contextlib.suppress(Exception):
            frame.collect()

    query = threading.Thread(target=collect)
    query.start()
    wait_for(lambda: open_logs(jvm))
    jvm.sparkContext.cancelJobGroup("slow")
    query.join(20)
    assert not query.is_alive()
    wait_for(lambda: not open_logs(jvm), 5)


@needs_proc
def test_jvm_task_whose_rows_are_not_all_read_closes_its_files(jvm: SparkSession, many_batches: Path) -> None:
    assert len(read(jvm, many_batches).where("length(value) > 0").limit(3).collect()) == 3
    assert read(jvm, many_batches).selectExpr("offset").toLocalIterator().__next__().offset == 0
    wait_for(lambda: not open_logs(jvm), 5)


# Streams


def finished(query: StreamingQuery) -> list[dict[str, Any]]:
    assert query.awaitTermination(120)
    return [json.loads(progress.json) for progress in query.recentProgress]


def stream(
    spark: SparkSession, path: Path, engine: str, seen: list[int], checkpoint: Path, **options: object
) -> list[dict[str, Any]]:
    """Run a stream to the end of the existing records, and return its progress."""
    reader = spark.readStream.format("kbat").option("engine", engine).option("startingOffsets", "earliest")
    frame = reader.options(**{name: str(value) for name, value in options.items()}).load(os.fspath(path))

    def sink(batch: DataFrame, _: int) -> None:
        seen.extend(row.offset for row in batch.select("offset").collect())

    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", os.fspath(checkpoint))
    return finished(writer.trigger(availableNow=True).start())


def test_jvm_stream_continues_the_checkpoint_of_the_other(jvm: SparkSession, tmp_path: Path) -> None:
    log, seen = GrowingLog(tmp_path / "logs" / "a-0"), list[int]()
    for engine in ("jvm", "python", "jvm"):
        log.append(3, 4)
        progress = stream(jvm, tmp_path / "logs", engine, seen, tmp_path / "checkpoint")
        assert seen == list(range(log.end_offset))
        assert sum(step["numInputRows"] for step in progress) == 7
    assert not any(
        step["numInputRows"] for step in stream(jvm, tmp_path / "logs", "jvm", seen, tmp_path / "checkpoint")
    )


def test_jvm_stream_limits_micro_batches_and_reports_lag(jvm: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "logs" / "a-0").append(*[2] * 5)
    seen: list[int] = []
    progress = stream(jvm, tmp_path / "logs", "jvm", seen, tmp_path / "checkpoint", maxOffsetsPerTrigger=4)
    assert seen == list(range(10))
    sources = [step["sources"][0] for step in progress if step["numInputRows"]]
    assert [source["endOffset"] for source in sources] == [{"a": {"0": end}} for end in (4, 8, 10)]
    assert sources[0]["description"] == f"kbat[{tmp_path / 'logs'}]"
    assert sources[0]["latestOffset"] == {"a": {"0": 10}}
    assert sources[0]["metrics"]["maxOffsetsBehindLatest"] == "6"
    assert sources[-1]["metrics"]["minOffsetsBehindLatest"] == "0"


@pytest.mark.parametrize("given", [{"view": "segments"}, {"endingOffsets": "latest"}])
def test_jvm_stream_errors_are_those_of_the_python_source(
    jvm: SparkSession, many_batches: Path, tmp_path: Path, given: dict[str, Any]
) -> None:
    message = message_of(partial(stream, jvm, many_batches, "jvm", [], tmp_path / "checkpoint", **given))
    assert message == message_of(partial(read_in_python, many_batches, is_stream=True, **given))
