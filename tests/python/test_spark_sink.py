"""`df.writeStream.format("kbat")`, which needs the jar: rows of a stream, and a query that restarts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import StructType

import kbat
from growing_log import GrowingLog
from kbat.spark.source import KbatDataSource
from spark_faces import message_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def stream(spark: SparkSession, source: Path, target: Path, checkpoint: Path, **options: str) -> None:
    """Write all existing records of a log to another one, in micro-batches of three."""
    reader = spark.readStream.format("kbat").option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 3)
    rows = reader.load(os.fspath(source)).select("topic", "partition", "key", "value")
    writer = rows.writeStream.format("kbat").option("checkpointLocation", os.fspath(checkpoint)).options(**options)
    query = writer.trigger(availableNow=True).start(os.fspath(target))
    assert query.awaitTermination(120)


def values_of(path: Path) -> list[tuple[int, bytes]]:
    rows = kbat.scan(path, columns=["offset", "value"]).to_pyarrow().to_pylist()
    return [(row["offset"], row["value"]) for row in rows]


def counted(count: int) -> list[tuple[int, bytes]]:
    return [(number, f"a-0:{number}".encode()) for number in range(count)]


def test_stream_is_written_in_micro_batches(jvm: SparkSession, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "from" / "a-0")
    target, checkpoint = tmp_path / "to", tmp_path / "checkpoint"
    for count in (8, 10):
        log.append(count - log.end_offset)
        stream(jvm, tmp_path / "from", target, checkpoint)
        assert values_of(target) == counted(count)
    assert len(kbat.PartitionLog(target / "a-0").segments) == 4
    assert kbat.verify(target / "a-0").exit_code == 0


def test_stream_that_restarts_writes_its_micro_batch_once(jvm: SparkSession, tmp_path: Path) -> None:
    """Spark repeats the last micro-batch if its checkpoint does not list it as complete, as after a driver's death."""
    log = GrowingLog(tmp_path / "from" / "a-0")
    log.append(8)
    target, checkpoint = tmp_path / "to", tmp_path / "checkpoint"
    stream(jvm, tmp_path / "from", target, checkpoint)
    for name in ("2", ".2.crc"):
        (checkpoint / "commits" / name).unlink()
    log.append(1)
    stream(jvm, tmp_path / "from", target, checkpoint)
    assert values_of(target) == counted(9)
    assert [path.read_text() for path in target.glob(".kbat-stream-*")] == ["3"]


def test_stream_of_complete_results_replaces_them(jvm: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "from" / "a-0").append(8)
    reader = jvm.readStream.format("kbat").option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 3)
    counts = reader.load(os.fspath(tmp_path / "from")).groupBy("topic").count()
    rows = counts.selectExpr("topic", "0 AS partition", "CAST(count AS STRING) AS value")
    writer = rows.writeStream.format("kbat").outputMode("complete").trigger(availableNow=True)
    query = writer.option("checkpointLocation", os.fspath(tmp_path / "checkpoint")).start(os.fspath(tmp_path / "to"))
    assert query.awaitTermination(120)
    assert values_of(tmp_path / "to") == [(0, b"8")]


def test_stream_of_the_python_source_is_refused_with_the_way_out(spark: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "from" / "a-0").append(1)
    reader = spark.readStream.format("kbat").option("engine", "python").option("startingOffsets", "earliest")
    writer = reader.load(os.fspath(tmp_path / "from")).writeStream.format("kbat").trigger(availableNow=True)
    writer = writer.option("engine", "python").option("checkpointLocation", os.fspath(tmp_path / "checkpoint"))
    message = message_of(lambda: writer.start(os.fspath(tmp_path / "to")).awaitTermination(120))
    assert message.startswith("kbat: the Python data source does not write streams")
    assert "kbat.spark.SETTINGS" in message
    assert not (tmp_path / "to").exists()
    with pytest.raises(ValueError, match="this session has no jar of kbat"):
        KbatDataSource({"engine": "jvm"}).streamWriter(StructType(), overwrite=False)
