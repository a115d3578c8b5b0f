"""Where a stream of the JVM starts if its first micro-batch runs again: its checkpoint has the offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from growing_log import GrowingLog, time_of
from test_spark_stream import Sink, finish, start

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

EARLIEST: dict[str, object] = {"startingOffsets": "earliest"}


def log_of(tmp_path: Path) -> GrowingLog:
    log = GrowingLog(tmp_path / "logs" / "a-0")
    log.append(4)
    return log


def run(spark: SparkSession, tmp_path: Path, sink: Sink, **options: object) -> None:
    finish(start(spark, tmp_path / "logs", sink, tmp_path / "checkpoint", **options))


def stored(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint" / "sources" / "0" / "0"


def offsets(sink: Sink) -> list[int]:
    return [offset for _, _, offset in sink.rows]


@pytest.mark.parametrize("options", [EARLIEST, {"startingTimestamp": time_of(1)}], ids=["earliest", "time"])
def test_segments_deleted_before_the_first_micro_batch_runs_again_are_lost_data(
    options: dict[str, object], jvm: SparkSession, tmp_path: Path
) -> None:
    log, sink = log_of(tmp_path), Sink()
    first = log.segment
    log.roll()
    log.append(2)
    sink.fails_before = {0}
    with pytest.raises(StreamingQueryException, match="killed before"):
        run(jvm, tmp_path, sink, **options)
    first.unlink()
    start = 0 if options == EARLIEST else 1
    with pytest.raises(StreamingQueryException, match=f"offsets {start} to 3 of a-0 no longer exist"):
        run(jvm, tmp_path, sink, **options)
    run(jvm, tmp_path, sink, failOnDataLoss="false", **options)
    assert offsets(sink) == [4, 5]


def test_records_that_come_after_the_start_of_a_query_that_had_no_rows_are_read(
    jvm: SparkSession, tmp_path: Path
) -> None:
    log, sink = log_of(tmp_path), Sink()
    run(jvm, tmp_path, sink)
    assert stored(tmp_path).read_bytes() == b'\0v1\n{"a":{"0":4}}'
    log.append(3)
    run(jvm, tmp_path, sink)
    assert offsets(sink) == [4, 5, 6]


def test_a_topic_that_comes_after_the_start_of_a_query_is_read_from_its_first_record(
    jvm: SparkSession, tmp_path: Path
) -> None:
    log_of(tmp_path)
    sink = Sink()
    run(jvm, tmp_path, sink)
    GrowingLog(tmp_path / "logs" / "b-0").append(2)
    run(jvm, tmp_path, sink)
    assert sink.rows == [("b", 0, 0), ("b", 0, 1)]


def test_the_start_in_a_checkpoint_of_sparks_kafka_source_is_accepted(jvm: SparkSession, tmp_path: Path) -> None:
    log_of(tmp_path)
    sink = Sink()
    stored(tmp_path).parent.mkdir(parents=True)
    stored(tmp_path).write_bytes(b'v1\n{"a":{"0":3}}')
    run(jvm, tmp_path, sink, **EARLIEST)
    assert offsets(sink) == [3]


@pytest.mark.parametrize(
    "content",
    [b"", b"v2\n{}", b'v1\n{"a":{"0"', b'v1\n{"a":{"0":4}'],
    ids=["empty", "later", "incomplete", "unbalanced"],
)
def test_a_start_that_cannot_be_read_is_an_error_with_its_path(
    content: bytes, jvm: SparkSession, tmp_path: Path
) -> None:
    log_of(tmp_path)
    sink = Sink()
    stored(tmp_path).parent.mkdir(parents=True)
    stored(tmp_path).write_bytes(content)
    with pytest.raises(StreamingQueryException, match=r"sources/0/0 in the checkpoint does not have .* remove it"):
        run(jvm, tmp_path, sink, **EARLIEST)
    assert not sink.rows


def test_a_checkpoint_of_an_earlier_version_gets_no_start_after_its_first_micro_batch(
    jvm: SparkSession, tmp_path: Path
) -> None:
    log, sink = log_of(tmp_path), Sink()
    run(jvm, tmp_path, sink, **EARLIEST)
    stored(tmp_path).unlink()
    log.append(2)
    run(jvm, tmp_path, sink, **EARLIEST)
    assert offsets(sink) == [*range(6)]
    assert not stored(tmp_path).exists()
