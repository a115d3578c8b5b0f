"""`df.writeStream.format("kbat")` in Python and in the JVM: rows of a stream, and a query that restarts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

import kbat
from growing_log import GrowingLog
from kbat.spark.source import KbatDataSource
from spark_faces import asks_for_limits, message_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def rows_of(spark: SparkSession, source: Path) -> DataFrame:
    """Return the rows of a log, in micro-batches of three."""
    reader = spark.readStream.format("kbat").option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 3)
    return reader.load(os.fspath(source)).select("topic", "partition", "key", "value")


def write(rows: DataFrame, target: Path, mode: str = "append", **options: str) -> None:
    """Write all existing rows of a stream."""
    writer = rows.writeStream.format("kbat").outputMode(mode).options(**options).trigger(availableNow=True)
    query = writer.option("checkpointLocation", os.fspath(target.with_name("checkpoint"))).start(os.fspath(target))
    assert query.awaitTermination(120)


def repeat_micro_batch(target: Path, number: int) -> None:
    """Make Spark repeat its last micro-batch, as after the death of a driver that did not record it as complete."""
    commits = target.with_name("checkpoint") / "commits"
    for name in (str(number), f".{number}.crc"):
        (commits / name).unlink()


def values_of(path: Path) -> list[tuple[int, bytes]]:
    rows = kbat.scan(path, columns=["offset", "value"]).to_pyarrow().to_pylist()
    return [(row["offset"], row["value"]) for row in rows]


def counted(count: int) -> list[tuple[int, bytes]]:
    return [(number, f"a-0:{number}".encode()) for number in range(count)]


def last_micro_batches(target: Path) -> list[str]:
    """Return the number of the last micro-batch of each query."""
    return [path.read_text() for path in target.glob(".kbat-stream-*")]


@pytest.fixture
def limited(face: SparkSession) -> SparkSession:
    """A session whose micro-batches have at most as many rows as the option says."""
    if not asks_for_limits(face):
        pytest.skip("Spark before 4.2 asks a Python source for no limits")
    return face


def test_stream_is_written_in_micro_batches(limited: SparkSession, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "from" / "a-0")
    target = tmp_path / "to"
    for count in (8, 10):
        log.append(count - log.end_offset)
        write(rows_of(limited, tmp_path / "from"), target)
        assert values_of(target) == counted(count)
    assert len(kbat.PartitionLog(target / "a-0").segments) == 4
    assert kbat.verify(target / "a-0").exit_code == 0
    assert {path.name for path in target.iterdir() if ".kbat-stream-" not in path.name} == {"a-0"}


def test_stream_with_its_checkpoint_in_the_target_is_written(face: SparkSession, tmp_path: Path) -> None:
    log, target = GrowingLog(tmp_path / "logs" / "a-0"), tmp_path / "target"
    for count in (3, 4):
        log.append(count)
        rows = rows_of(face, tmp_path / "logs").writeStream.format("kbat").trigger(availableNow=True)
        query = rows.option("checkpointLocation", os.fspath(target / "_checkpoint")).start(os.fspath(target))
        assert query.awaitTermination(120)
    assert values_of(target) == counted(7)
    assert face.read.format("kbat").load(os.fspath(target)).count() == 7


def test_stream_that_restarts_writes_its_micro_batch_once(limited: SparkSession, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "from" / "a-0")
    log.append(8)
    target = tmp_path / "to"
    write(rows_of(limited, tmp_path / "from"), target)
    repeat_micro_batch(target, 2)
    log.append(1)
    write(rows_of(limited, tmp_path / "from"), target)
    assert values_of(target) == counted(9)
    assert last_micro_batches(target) == ["3"]


def test_stream_continues_in_the_other_face(jvm: SparkSession, tmp_path: Path) -> None:
    """Each face repeats the last micro-batch of the other one, and finds that the target has it."""
    log = GrowingLog(tmp_path / "from" / "a-0")
    target = tmp_path / "to"
    for number, engine in enumerate(["python", "jvm", "python"]):
        if number:
            repeat_micro_batch(target, number - 1)
        log.append(2)
        write(rows_of(jvm, tmp_path / "from"), target, engine=engine)
        assert values_of(target) == counted(2 * number + 2)
        assert last_micro_batches(target) == [str(number)]


def test_stream_of_complete_results_replaces_them(face: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "from" / "a-0").append(8)
    counts = rows_of(face, tmp_path / "from").groupBy("topic").count()
    rows = counts.selectExpr("topic", "0 AS partition", "CAST(count AS STRING) AS value")
    write(rows, tmp_path / "to", "complete")
    assert values_of(tmp_path / "to") == [(0, b"8")]


def test_stream_without_rows_completes_its_micro_batches(limited: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "from" / "a-0").append(4)
    write(rows_of(limited, tmp_path / "from").where("partition = 1"), tmp_path / "to")
    assert last_micro_batches(tmp_path / "to") == ["1"]
    assert len(list((tmp_path / "to").iterdir())) == 1


def test_stream_whose_tasks_fail_leaves_nothing(face: SparkSession, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "from" / "a-0")
    log.append(3)
    target = tmp_path / "to"
    rows = rows_of(face, tmp_path / "from")
    failing = rows.selectExpr("topic", "partition", "if(value = 'a-0:4', raise_error('died'), value) AS value")
    bad_topic = rows.selectExpr("'../a' AS topic", "partition", "value")
    with pytest.raises(PySparkException, match="which is not a valid topic name"):
        write(bad_topic, target)
    assert not target.exists()
    write(failing, target)
    before = {path.name for path in target.iterdir()}
    log.append(2)
    with pytest.raises(PySparkException, match="died"):
        write(failing, target)
    assert {path.name for path in target.iterdir()} == before
    write(rows, target)
    assert values_of(target) == counted(5)


def test_stream_of_updates_is_appended_by_the_jvm_only(jvm: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "from" / "a-0").append(4)
    counts = rows_of(jvm, tmp_path / "from").groupBy("topic").count()
    rows = counts.selectExpr("topic", "0 AS partition", "CAST(count AS STRING) AS value")
    with pytest.raises(Exception, match="does not support Update mode"):
        write(rows, tmp_path / "python" / "to", "update", engine="python")
    write(rows, tmp_path / "jvm" / "to", "update")
    assert values_of(tmp_path / "jvm" / "to") == [(0, b"3"), (1, b"4")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compress": "zstd"}, "kbat: unknown option compress (Spark lower-cased it); did you mean compression?"),
        ({"segmentBytes": "0"}, "kbat: option segmentBytes='0': must be at least 1 byte"),
    ],
)
def test_stream_refuses_what_does_not_fit(
    face: SparkSession, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    GrowingLog(tmp_path / "from" / "a-0").append(1)
    rows = rows_of(face, tmp_path / "from")
    assert message_of(lambda: write(rows, tmp_path / "to", **options)).startswith(message)
    assert not (tmp_path / "to").exists()


def test_stream_in_python_refuses_the_engine_of_the_jvm(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="this session has no jar of kbat"):
        KbatDataSource({"engine": "jvm", "path": os.fspath(tmp_path)}).streamWriter(StructType(), overwrite=False)


def test_stream_in_python_refuses_tasks_without_the_id_of_a_query(tmp_path: Path) -> None:
    """Nothing else shows that the target has a micro-batch already."""
    source = KbatDataSource({"path": os.fspath(tmp_path / "to")})
    writer = source.streamWriter(StructType.fromDDL("topic string, value string"), overwrite=False)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"no property sql\.streaming\.queryId .* kbat\.spark\.SETTINGS"):
        writer.write(iter([]))
