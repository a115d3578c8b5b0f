"""Streams in Spark: restarts, limits, and files that appear while they run."""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.errors import StreamingQueryException

from growing_log import GrowingLog, values

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Rows = list[tuple[str, int, int]]

# Before 4.2 Spark ends a query with `availableNow` by one micro-batch, whatever a Python source would like.
ASKS_FOR_LIMITS = pyspark.__version__ >= "4.2" or os.environ.get("KBAT_TEST_ENGINE") == "jvm"


class Sink:
    """Takes micro-batches and keeps their rows by number; the last run of a micro-batch counts, as with a real sink."""

    def __init__(self) -> None:
        self.batches: dict[int, Rows] = {}
        self.runs: list[int] = []
        self.fails_before: set[int] = set()
        self.fails_after: set[int] = set()

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Take a micro-batch, or die."""
        if number in self.fails_before:
            self.fails_before.remove(number)
            message = "killed before"
            raise RuntimeError(message)
        rows = sorted(tuple(row) for row in frame.select("topic", "partition", "offset").collect())
        assert self.batches.get(number, rows) == rows, "a micro-batch that is run again has the same rows"
        self.batches[number] = rows
        self.runs.append(number)
        if number in self.fails_after:
            self.fails_after.remove(number)
            message = "killed after"
            raise RuntimeError(message)

    @property
    def rows(self) -> Rows:
        """The rows of all micro-batches."""
        return [row for number in sorted(self.batches) for row in self.batches[number]]


def start(
    spark: SparkSession, path: Path, sink: Callable[[DataFrame, int], None], checkpoint: Path, **options: object
) -> StreamingQuery:
    reader = spark.readStream.format("kbat").options(**{name: str(value) for name, value in options.items()})
    writer = reader.load(os.fspath(path)).writeStream.foreachBatch(sink)
    return writer.option("checkpointLocation", os.fspath(checkpoint)).trigger(availableNow=True).start()


def finish(query: StreamingQuery) -> list[dict[str, Any]]:
    """Wait for the end and return the progress of each micro-batch."""
    assert query.awaitTermination(120)
    return [json.loads(progress.json) for progress in query.recentProgress]


def finish_or_die(query: StreamingQuery) -> None:
    with contextlib.suppress(StreamingQueryException):
        query.awaitTermination(120)
    assert query.exception() is None or "killed" in str(query.exception())


def all_rows(*logs: GrowingLog) -> Rows:
    found: Rows = []
    for log in logs:
        topic, _, partition = log.directory.name.rpartition("-")
        first = int(min(log.directory.glob("*.log")).stem)
        found += [(topic, int(partition), offset) for offset in range(first, log.end_offset)]
    return sorted(found)


def test_stream_killed_at_every_boundary_loses_nothing_and_repeats_nothing(spark: SparkSession, tmp_path: Path) -> None:
    logs, sink, checkpoint = tmp_path / "logs", Sink(), tmp_path / "checkpoint"
    first = GrowingLog(logs / "a-0")
    first.append(4, 4)
    sink.fails_before, sink.fails_after = {0, 1, 2, 3}, {0, 1, 2, 3}
    found = [first]
    for _ in range(30):
        query = start(spark, logs, sink, checkpoint, startingOffsets="earliest", maxOffsetsPerTrigger=5)
        finish_or_die(query)
        if query.exception() is None and (ASKS_FOR_LIMITS or sorted(sink.rows) == all_rows(*found)):
            break
        if query.exception() is not None:
            first.append(1)  # the log grows while the query is down
        if len(sink.batches) == 2 and len(found) == 1:
            first.roll()
            found.append(GrowingLog(logs / "a-1"))
            found[-1].append(3)
    assert not sink.fails_before
    assert not sink.fails_after
    assert [sink.runs.count(number) for number in range(4)] == [2, 2, 2, 2]
    assert sorted(sink.rows) == all_rows(*found)


def test_stream_progress_has_kafkas_offsets_and_rows_are_whole(spark: SparkSession, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(6, compression="zstd")
    seen: list[bytes] = []

    def sink(frame: DataFrame, _: int) -> None:
        seen.extend(bytes(row.value) for row in frame.collect())

    options: dict[str, object] = {"startingOffsets": '{"a": {"0": 2}}', "maxOffsetsPerTrigger": 3}
    progress = finish(start(spark, tmp_path, sink, tmp_path / "checkpoint", **options))
    ends = [batch["sources"][0]["endOffset"] for batch in progress if batch["numInputRows"]]
    assert ends == ([{"a": {"0": 5}}] if ASKS_FOR_LIMITS else []) + [{"a": {"0": 6}}]
    assert progress[0]["sources"][0]["startOffset"] is None or progress[0]["sources"][0]["startOffset"] == {
        "a": {"0": 2}
    }
    assert seen == values(log.directory, range(2, 6))
    # the query continues from its checkpoint, regardless of startingOffsets
    log.append(2)
    finish(start(spark, tmp_path, sink, tmp_path / "checkpoint", startingOffsets="earliest"))
    assert seen == values(log.directory, range(2, 8))


def test_stream_that_runs_sees_what_comes(spark: SparkSession, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "logs" / "a-0")
    log.append(3)
    sink = Sink()
    reader = spark.readStream.format("kbat").option("maxOffsetsPerTrigger", "2").load(os.fspath(tmp_path / "logs"))
    query = (
        reader.writeStream.foreachBatch(sink)
        .option("checkpointLocation", os.fspath(tmp_path / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        deadline = time.monotonic() + 60
        while query.lastProgress is None and time.monotonic() < deadline:
            time.sleep(0.05)
        batch = log.batch(4)
        log.append_bytes(batch[:70])
        log.append_bytes(batch[70:])
        log.end_offset += 4
        log.roll()
        log.append(1)
        other = GrowingLog(tmp_path / "logs" / "b-0")
        other.append(2)
        while len(sink.rows) < 7 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert query.exception() is None
    finally:
        query.stop()
    assert sorted(sink.rows) == [row for row in all_rows(log, other) if row[0] == "b" or row[2] >= 3]
    assert max(len(rows) for rows in sink.batches.values()) <= 3  # two, and one of a partition that would starve


@pytest.mark.skipif(not ASKS_FOR_LIMITS, reason="needs two micro-batches")
def test_stream_deleted_segments_fail_the_query_unless_told(spark: SparkSession, tmp_path: Path) -> None:
    log, sink = GrowingLog(tmp_path / "logs" / "a-0"), Sink()
    log.append(4)
    first = log.segment
    options: dict[str, object] = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 2}
    sink.fails_before = {1}
    with pytest.raises(StreamingQueryException, match="killed before"):
        finish(start(spark, tmp_path / "logs", sink, tmp_path / "checkpoint", **options))
    log.roll()
    log.append(4)
    first.unlink()
    with pytest.raises(StreamingQueryException, match="offsets 2 to 3 of a-0 no longer exist"):
        finish(start(spark, tmp_path / "logs", sink, tmp_path / "checkpoint", **options))
    finish(start(spark, tmp_path / "logs", sink, tmp_path / "checkpoint", failOnDataLoss="false", **options))
    assert [offset for _, _, offset in sink.rows] == [0, 1, 4, 5, 6, 7]


def test_stream_options_that_end_it_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(1)
    with pytest.raises(StreamingQueryException, match="endingOffsets has no effect on a stream"):
        finish(start(spark, tmp_path, Sink(), tmp_path / "checkpoint", endingOffsets="latest"))
