"""`df.write.format("kbat")` to existing partitions: the unchanged files, and partitions that it rejects."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

import kbat
from data import DATA
from growing_log import GrowingLog
from kbat._core.sink import TaskWriter
from kbat.spark.writer import KbatWriter, Written

if TYPE_CHECKING:
    from pathlib import Path

ROWS = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
    ]
)
Row = tuple[str, int | None, bytes | None, bytes]


def write(path: Path, *tasks: list[Row], overwrite: bool = False, **options: str) -> None:
    """Write and commit the rows of some tasks."""
    writer = KbatWriter(ROWS, {"path": str(path)} | options, overwrite=overwrite)
    messages = []
    for number, rows in enumerate(tasks):
        task = TaskWriter(writer.job, number)
        columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), TYPES, strict=True)]
        task.write(pa.RecordBatch.from_arrays(columns, names=ROWS.names))
        messages.append(Written(task.finish()))
    try:
        writer.commit(list(messages))
    except BaseException:
        writer.abort(list(messages))
        raise


TYPES: list[pa.DataType] = [pa.string(), pa.int32(), pa.binary(), pa.binary()]


def rows(topic: str, count: int, partition: int | None = 0) -> list[Row]:
    return [(topic, partition, b"key", b"value")] * count


def names_in(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_append_leaves_producers_and_open_transactions_as_they_were(tmp_path: Path, tasks: int) -> None:
    shutil.copytree(DATA / "log-dir" / "txn-lz4-0", tmp_path / "txn-lz4-0")
    before = kbat.PartitionLog(tmp_path / "txn-lz4-0")
    committed = kbat.scan(tmp_path, isolation="read_committed").to_pyarrow().num_rows
    producers = list(kbat.ProducerSnapshot(tmp_path / "txn-lz4-0" / f"{before.end_offset:020}.snapshot").entries)
    assert before.last_stable_offset < before.end_offset
    assert producers

    write(tmp_path, *[rows("txn-lz4", 5)] * tasks, batchSize="100", segmentBytes="200")
    after = kbat.PartitionLog(tmp_path / "txn-lz4-0")
    assert after.end_offset == before.end_offset + 5 * tasks
    assert after.last_stable_offset == before.last_stable_offset
    assert kbat.scan(tmp_path, isolation="read_committed").to_pyarrow().num_rows == committed
    for segment in [*after.segments[len(before.segments) :], None]:
        offset = after.end_offset if segment is None else segment.base_offset
        snapshot = kbat.ProducerSnapshot(tmp_path / "txn-lz4-0" / f"{offset:020}.snapshot")
        assert list(snapshot.entries) == producers, offset
    # as it is when a broker, or kbat's own writer, appends
    with kbat.LogWriter(tmp_path / "txn-lz4-0") as log:
        assert log.last_stable_offset == before.last_stable_offset


def test_append_behind_damage_is_an_error_that_leaves_every_byte(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(5, 5, 5)
    data = bytearray(log.segment.read_bytes())
    data[100] ^= 1
    log.segment.write_bytes(data)
    with pytest.raises(kbat.CrcError, match=r"nothing was written, .*`kbat salvage` to keep all readable batches"):
        write(tmp_path, rows("a", 1))
    assert log.segment.read_bytes() == data
    assert names_in(tmp_path) == ["a-0"]
    # replaced partitions are not read
    write(tmp_path, rows("a", 1), overwrite=True)
    assert kbat.scan(tmp_path).to_pyarrow().num_rows == 1


def test_append_behind_a_length_that_leads_beyond_the_file_is_an_error(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(5, 5, 5)
    data = bytearray(log.segment.read_bytes())
    data[8 + 1] = 1  # of the first batch's length
    log.segment.write_bytes(data)
    with pytest.raises(kbat.TruncatedError, match="the log continues"):
        write(tmp_path, rows("a", 1))
    assert log.segment.read_bytes() == data


def test_append_to_a_directory_without_a_segment_begins_the_log(tmp_path: Path) -> None:
    (tmp_path / "a-0").mkdir()
    write(tmp_path, rows("a", 2))
    assert kbat.PartitionLog(tmp_path / "a-0").end_offset == 2
    assert kbat.verify(tmp_path / "a-0").exit_code == 0


def test_append_behind_half_a_batch_takes_its_place_as_a_broker_does(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(5)
    log.append_bytes(log.batch(3)[:-1])
    write(tmp_path, rows("a", 2))
    assert kbat.scan(tmp_path, columns=["offset"]).to_pyarrow()["offset"].to_pylist() == list(range(7))
    assert kbat.verify(tmp_path / "a-0").exit_code == 0


def test_partitions_without_rows_are_made_so_that_keys_stay_where_they_are(tmp_path: Path) -> None:
    write(tmp_path, rows("a", 1, None), numPartitions="10", partitionMetadata="true")
    assert names_in(tmp_path) == [f"a-{number}" for number in range(10)]
    write(tmp_path, rows("a", 1, None))
    counts = {log.partition: log.end_offset for log in kbat.LogDirectory(tmp_path).partitions}
    assert [count for count in counts.values() if count] == [2]
    assert len({kbat.PartitionLog(tmp_path / name).topic_id for name in names_in(tmp_path)}) == 1
    # more of them, with the topic's id
    write(tmp_path, rows("a", 1, None), numPartitions="12", partitionMetadata="true")
    assert len(names_in(tmp_path)) == 12
    assert len({kbat.PartitionLog(tmp_path / name).topic_id for name in names_in(tmp_path)}) == 1
    assert all(kbat.verify(tmp_path / name).exit_code == 0 for name in names_in(tmp_path))
    write(tmp_path, rows("a", 1, None), overwrite=True, numPartitions="3")
    assert names_in(tmp_path) == ["a-0", "a-1", "a-2"]


def test_rows_with_a_partition_need_no_count_of_them(tmp_path: Path) -> None:
    GrowingLog(tmp_path / "b-0").append(1)
    write(tmp_path, [*rows("a", 2, 7), *rows("b", 1, None)])
    assert {str(log.topic): log.end_offset for log in kbat.LogDirectory(tmp_path).partitions} == {"a": 2, "b": 2}


def test_leader_epochs_do_not_go_back(tmp_path: Path) -> None:
    write(tmp_path, rows("a", 1), leaderEpoch="7")
    with pytest.raises(ValueError, match="option leaderEpoch=3 is below 7, the latest of a-0"):
        write(tmp_path, rows("a", 1), leaderEpoch="3")
    assert kbat.PartitionLog(tmp_path / "a-0").end_offset == 1
    write(tmp_path, rows("a", 1), leaderEpoch="7")
    assert kbat.PartitionLog(tmp_path / "a-0").leader_epochs == [(7, 0)]


@pytest.mark.parametrize("name", ["leaderEpoch", "numPartitions", "segmentBytes"])
def test_numbers_that_kafka_has_no_room_for_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"option {name}='2147483648': must be at most 2147483647"):
        KbatWriter(ROWS, {"path": str(tmp_path), name: "2147483648"}, overwrite=False)


def test_levels_are_checked_before_a_task_begins(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="gzip compression has levels 1 to 9, not 99"):
        write(tmp_path, compression="gzip", level="99")
    assert names_in(tmp_path) == []


def test_abort_removes_the_directory_that_the_write_made(tmp_path: Path) -> None:
    for name, is_kept in (("new", False), ("there", True)):
        path = tmp_path / name
        if is_kept:
            path.mkdir()
        KbatWriter(ROWS, {"path": str(path)}, overwrite=False).abort([])
        assert path.exists() == is_kept


def test_an_overwrite_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    for partition in range(2):
        GrowingLog(tmp_path / f"a-{partition}").append(3, 3)
    log = tmp_path / "a-0" / f"{0:020}.log"
    content = bytearray(log.read_bytes())
    content[-3] ^= 1
    log.write_bytes(content)
    before = {path: path.read_bytes() for path in (tmp_path / "a-0").iterdir()}
    rows: list[Row] = [("a", 0, None, b"x"), ("a", 1, None, b"y")]
    with kbat.LogWriter(tmp_path / "a-1"), pytest.raises(ValueError, match="is using this directory"):
        write(tmp_path, rows, overwrite=True)
    assert {path: path.read_bytes() for path in (tmp_path / "a-0").iterdir()} == before
    write(tmp_path, rows, overwrite=True)
    assert kbat.scan(tmp_path).to_pyarrow()["value"].to_pylist() == [b"x", b"y"]
