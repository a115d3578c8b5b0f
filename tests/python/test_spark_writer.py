"""`df.write.format("kbat")`: the written files, and the files after a failure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

import kbat
from growing_log import GrowingLog
from kbat._core import sink
from kbat._core.sink import TaskWriter
from kbat.spark.source import KbatDataSource
from kbat.spark.writer import KbatWriter, Written

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def save(frame: DataFrame, path: Path, mode: str = "append", **options: object) -> None:
    writer = frame.write.format("kbat").mode(mode).options(**{name: str(value) for name, value in options.items()})
    writer.save(os.fspath(path))


def rows_of(path: Path) -> dict[str, list[tuple[int, bytes | None]]]:
    """Return offset and value of the records, by `<topic>-<partition>`."""
    found: dict[str, list[tuple[int, bytes | None]]] = {}
    if not [name for name in names_in(path) if not name.startswith(".")]:
        return found
    for row in kbat.scan(path, columns=["topic", "partition", "offset", "value"]).to_pyarrow().to_pylist():
        found.setdefault(f"{row['topic']}-{row['partition']}", []).append((row["offset"], row["value"]))
    return found


def counted(name: str, *runs: range) -> list[tuple[int, bytes]]:
    return list(enumerate(f"{name}:{number}".encode() for run in runs for number in run))


def names_in(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


def is_sound(path: Path) -> bool:
    """Whether all written files are valid, including indexes."""
    return all(kbat.verify(log.directory).exit_code == 0 for log in kbat.LogDirectory(path).partitions)


# through Spark


def test_write_of_what_was_read_is_the_same(face: SparkSession, log_dir: Path, tmp_path: Path) -> None:
    columns = ["topic", "partition", "key", "value", "headers", "timestamp"]
    source = face.read.format("kbat").option("includeHeaders", value=True).option("subscribePattern", "^codec-")
    rows = source.load(os.fspath(log_dir)).select("offset", *columns)
    ordered = rows.repartition(2, "topic").sortWithinPartitions("topic", "offset").drop("offset")
    save(ordered, tmp_path, compression="zstd", batchSize="4k", segmentBytes="20k")
    save(rows.limit(0), tmp_path)  # with the columns that only a source has
    assert names_in(tmp_path) == {f"codec-{codec}-0" for codec in ("gzip", "lz4", "none", "snappy", "zstd")}
    again = face.read.format("kbat").option("includeHeaders", value=True).load(os.fspath(tmp_path))
    order = ["topic", "offset"]
    assert again.select("offset", *columns).orderBy(order).toArrow() == rows.orderBy(order).toArrow()
    counts = {row.topic: row["count"] for row in rows.groupBy("topic").count().collect()}
    for log in kbat.LogDirectory(tmp_path).partitions:
        count = counts[log.topic]
        assert (log.start_offset, log.end_offset, log.leader_epochs) == (0, count, [(0, 0)])
        assert {batch.compression for segment in log.segments for batch in segment.batches()} == {"zstd"}
        assert all(segment.size <= 20 << 10 for segment in log.segments)


def test_write_appends_after_what_is_there(face: SparkSession, tmp_path: Path) -> None:
    frame = face.range(100).selectExpr(
        "'a' AS topic", "CAST(id % 2 AS INT) AS partition", "CAST(id AS STRING) AS value"
    )
    save(frame.coalesce(1), tmp_path)
    save(frame.repartition(3), tmp_path)
    found = rows_of(tmp_path)
    assert [offset for offset, _ in found["a-0"]] == list(range(100))
    assert [offset for offset, _ in found["a-1"]] == list(range(100))
    for partition in range(2):
        written = sorted(int(value or b"") for _, value in found[f"a-{partition}"])
        assert written == sorted([*range(partition, 100, 2)] * 2)
    assert names_in(tmp_path) == {"a-0", "a-1"}


def test_write_overwrites_its_topics_only(face: SparkSession, tmp_path: Path) -> None:
    for name in ("a-0", "a-1", "b-0"):
        GrowingLog(tmp_path / name).append(3)
    save(face.createDataFrame([("a", 0, "new")], "topic string, partition int, value string"), tmp_path, "overwrite")
    found = rows_of(tmp_path)
    assert found == {"a-0": [(0, b"new")], "b-0": counted("b-0", range(3))}
    assert names_in(tmp_path) == {"a-0", "b-0"}


def test_write_that_fails_leaves_nothing(face: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(3)
    frame = face.range(0, 40, 1, 4).selectExpr(
        "'a' AS topic", "0 AS partition", "CAST(if(id = 33, raise_error('died'), id) AS STRING) AS value"
    )
    for mode in ("append", "overwrite"):
        with pytest.raises(PySparkException, match="died"):
            save(frame, tmp_path, mode)
        assert rows_of(tmp_path) == {"a-0": counted("a-0", range(3))}
        assert names_in(tmp_path) == {"a-0"}


def test_write_by_key_goes_where_kafkas_producer_sends(face: SparkSession, tmp_path: Path) -> None:
    frame = face.range(50).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
    save(frame, tmp_path, topic="t", numPartitions=5)
    found = rows_of(tmp_path)
    assert len(found) == 5
    for name, rows in found.items():
        assert all(kbat.partition_for_key(value or b"", 5) == int(name.rpartition("-")[2]) for _, value in rows)
    # an existing topic has a number of partitions
    save(frame, tmp_path, topic="t")
    assert {name: len(rows) for name, rows in rows_of(tmp_path).items()} == {
        name: 2 * len(rows) for name, rows in found.items()
    }


def test_write_completes_the_commit_of_a_driver_that_died(face: SparkSession, tmp_path: Path) -> None:
    """Either face may have begun it, as the files of a commit are the same."""
    GrowingLog(tmp_path / "a-0").append(3)
    died = tmp_path / ".kbat-0123456789abcdef"
    with kbat.LogWriter(died / "made" / "a-0", start_offset=3) as log:
        log.append(None, b"a-0:3", timestamp=0)
    with kbat.LogWriter(died / "made" / "b-0") as log:
        log.append(None, b"b-0:0", timestamp=0)
    (died / "commit.json").write_text('{"remove": [], "move": ["a-0", "b-0"]}')
    save(face.createDataFrame([("a", 0, "a-0:4")], "topic string, partition int, value string"), tmp_path)
    assert rows_of(tmp_path) == {"a-0": counted("a-0", range(5)), "b-0": counted("b-0", range(1))}
    assert names_in(tmp_path) == {"a-0", "b-0"}
    assert all(kbat.verify(tmp_path / name).ok for name in ("a-0", "b-0"))


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        ("value int", {"topic": "t"}, "column value has type int, but must be binary or string"),
        ("value string", {}, "there is no column topic; add one, or set the option topic"),
        ("topic string, key string", {}, "there is no column value"),
        (
            "topic string, value string, offsets bigint",
            {},
            "column offsets can't be written; choose among",
        ),
        ("topic string, value string, headers string", {}, "but must be array<struct<key:string,value:binary>>"),
        ("value string", {"topic": "../t"}, "option topic='../t': must be 1 to 249 ASCII letters"),
        ("value string", {"topic": ".."}, "neither '.' nor '..'"),
        (
            "value string",
            {"topic": "t", "compress": "zstd"},
            "unknown option compress .*; did you mean compression",
        ),
        ("value string", {"topic": "t", "compression": "zip"}, "must be none, gzip, snappy, lz4 or zstd"),
        ("value string", {"topic": "t", "segmentBytes": "0"}, "must be at least 1 byte"),
        ("value string", {"topic": "t", "level": "high"}, "must be a whole number"),
        ("value string", {"topic": "t", "numPartitions": "0"}, "must be a whole number, 1 or more"),
    ],
)
def test_write_refuses_what_does_not_fit(schema: str, options: dict[str, str], message: str, tmp_path: Path) -> None:
    source = KbatDataSource({"path": os.fspath(tmp_path)} | options)
    with pytest.raises(ValueError, match=message):
        source.writer(StructType.fromDDL(schema), overwrite=False)  # type: ignore[arg-type]  # it gives a struct


# without Spark


ROWS = StructType(
    [StructField("topic", StringType()), StructField("partition", IntegerType()), StructField("value", BinaryType())]
)


def job(path: Path, options: dict[str, str] | None = None, *, overwrite: bool = False) -> KbatWriter:
    return KbatWriter(ROWS, {"path": os.fspath(path)} | (options or {}), overwrite=overwrite)


def task(writer: KbatWriter, number: int, rows: list[tuple[Any, ...]], attempt: int = 0) -> Written:
    written = TaskWriter(writer.job, number, attempt)
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    for start in range(0, len(rows), 3):
        written.write(pa.record_batch([column.slice(start, 3) for column in columns], ["topic", "partition", "value"]))
    return Written(written.finish())


def numbered(name: str, numbers: range) -> list[tuple[str, int, bytes]]:
    topic, _, partition = name.rpartition("-")
    return [(topic, int(partition), f"{name}:{number}".encode()) for number in numbers]


def test_write_warns_of_options_that_need_a_broker(tmp_path: Path) -> None:
    given = {"kafka.acks": "all", "KAFKA.compression.type": "lz4", "kafka.bootstrap.servers": "b:9092"}
    with pytest.warns(
        UserWarning, match=r"no effect, because there is no broker: kafka\.acks, kafka\.bootstrap\.servers$"
    ):
        assert job(tmp_path, given).job


def test_commit_puts_tasks_one_after_the_other(tmp_path: Path) -> None:
    writer = job(tmp_path, {"batchSize": "100", "segmentBytes": "500"})
    second = task(writer, 1, numbered("a-0", range(40, 60)) + numbered("b-7", range(4)))
    lost = task(writer, 0, numbered("a-0", range(3)), attempt=0)
    first = task(writer, 0, numbered("a-0", range(40)), attempt=1)  # the first attempt was abandoned
    assert names_in(tmp_path) == {sink.directory(writer.job).name}
    assert lost.task
    writer.commit([second, first])
    assert rows_of(tmp_path) == {"a-0": counted("a-0", range(60)), "b-7": counted("b-7", range(4))}
    assert names_in(tmp_path) == {"a-0", "b-7"}
    log = kbat.PartitionLog(tmp_path / "a-0")
    assert len(log.segments) > 4
    for offset in range(60):
        place = log.find_offset(offset)
        assert place is not None
        assert place.base_offset <= offset <= place.last_offset
        assert place.index == "used"
    assert is_sound(tmp_path)


def test_write_refuses_a_batch_over_the_size_of_a_segment(tmp_path: Path) -> None:
    writer = job(tmp_path, {"segmentBytes": "500"})
    message = "^kbat: a batch of a-0 with 40 records has [0-9]+ bytes, and option segmentBytes is 500: set it higher"
    with pytest.raises(ValueError, match=message):
        task(writer, 0, numbered("a-0", range(40)))


def test_commit_goes_on_with_offsets_and_epochs(tmp_path: Path) -> None:
    epochs: list[dict[str, str]] = [{}, {"leaderEpoch": "3"}, {}]
    for options, numbers in zip(epochs, (range(10), range(10, 20), range(20, 30)), strict=True):
        writer = job(tmp_path, {"partitionMetadata": "true"} | options)
        writer.commit([task(writer, 0, numbered("a-0", numbers))])
    assert rows_of(tmp_path) == {"a-0": counted("a-0", range(30))}
    log = kbat.PartitionLog(tmp_path / "a-0")
    assert log.leader_epochs == [(0, 0), (3, 10)]
    written = [batch.partition_leader_epoch for segment in log.segments for batch in segment.batches()]
    assert written == [0, 3, 3]
    assert log.topic_id is not None
    assert is_sound(tmp_path)
    # what was written can be written on
    with kbat.LogWriter(tmp_path / "a-0") as more:
        assert more.append(None, b"a-0:30", timestamp=0) == 30
    assert rows_of(tmp_path) == {"a-0": counted("a-0", range(31))}


def test_commit_takes_the_place_of_an_empty_last_segment(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(3)
    log.roll()
    writer = job(tmp_path)
    writer.commit([task(writer, 0, numbered("a-0", range(3, 6)))])
    assert rows_of(tmp_path) == {"a-0": counted("a-0", range(6))}


def test_abort_leaves_nothing(tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(3)
    writer = job(tmp_path)
    written = task(writer, 0, numbered("a-0", range(3)))
    writer.abort([written, None])
    assert names_in(tmp_path) == {"a-0"}
    assert rows_of(tmp_path) == {"a-0": counted("a-0", range(3))}


def test_commit_of_nothing_changes_nothing(tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(3)
    writer = job(tmp_path, overwrite=True)
    writer.commit([Written(TaskWriter(writer.job, 0).finish())])
    assert rows_of(tmp_path) == {"a-0": counted("a-0", range(3))}
