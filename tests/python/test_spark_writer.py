"""`df.write.format("kbat")`: the written files, and the files after a failure."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

import kbat
from growing_log import GrowingLog
from kbat.spark import commit
from kbat.spark.commit import is_committed
from kbat.spark.source import KbatDataSource
from kbat.spark.writer import KbatWriter, TaskWriter, Written, parse_write_options

if TYPE_CHECKING:
    from collections.abc import Callable

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


def test_write_of_what_was_read_is_the_same(spark: SparkSession, log_dir: Path, tmp_path: Path) -> None:
    columns = ["topic", "partition", "key", "value", "headers", "timestamp"]
    source = spark.read.format("kbat").option("includeHeaders", value=True).option("subscribePattern", "^codec-")
    rows = source.load(os.fspath(log_dir)).select("offset", *columns)
    ordered = rows.repartition(2, "topic").sortWithinPartitions("topic", "offset").drop("offset")
    save(ordered, tmp_path, compression="zstd", batchSize="4k", segmentBytes="20k")
    save(rows.limit(0), tmp_path)  # with the columns that only a source has
    assert names_in(tmp_path) == {f"codec-{codec}-0" for codec in ("gzip", "lz4", "none", "snappy", "zstd")}
    again = spark.read.format("kbat").option("includeHeaders", value=True).load(os.fspath(tmp_path))
    order = ["topic", "offset"]
    assert again.select("offset", *columns).orderBy(order).toArrow() == rows.orderBy(order).toArrow()
    counts = {row.topic: row["count"] for row in rows.groupBy("topic").count().collect()}
    for log in kbat.LogDirectory(tmp_path).partitions:
        count = counts[log.topic]
        assert (log.start_offset, log.end_offset, log.leader_epochs) == (0, count, [(0, 0)])
        assert {batch.compression for segment in log.segments for batch in segment.batches()} == {"zstd"}
        assert all(segment.size <= 20 << 10 for segment in log.segments)


def test_write_appends_after_what_is_there(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(100).selectExpr(
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


def test_write_overwrites_its_topics_only(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a-0", "a-1", "b-0"):
        GrowingLog(tmp_path / name).append(3)
    save(spark.createDataFrame([("a", 0, "new")], "topic string, partition int, value string"), tmp_path, "overwrite")
    found = rows_of(tmp_path)
    assert found == {"a-0": [(0, b"new")], "b-0": counted("b-0", range(3))}
    assert names_in(tmp_path) == {"a-0", "b-0"}


def test_write_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(3)
    frame = spark.range(0, 40, 1, 4).selectExpr(
        "'a' AS topic", "0 AS partition", "CAST(if(id = 33, raise_error('died'), id) AS STRING) AS value"
    )
    for mode in ("append", "overwrite"):
        with pytest.raises(PySparkException, match="died"):
            save(frame, tmp_path, mode)
        assert rows_of(tmp_path) == {"a-0": counted("a-0", range(3))}
        assert names_in(tmp_path) == {"a-0"}


def test_write_by_key_goes_where_kafkas_producer_sends(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(50).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
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
    return KbatWriter(ROWS, parse_write_options({"path": os.fspath(path)} | (options or {})), overwrite=overwrite)


def task(writer: KbatWriter, number: int, rows: list[tuple[Any, ...]], attempt: int = 0) -> Written:
    written = TaskWriter(writer, Path(writer.job) / f"{number}-{attempt}", number)
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    for start in range(0, len(rows), 3):
        written.add(pa.record_batch([column.slice(start, 3) for column in columns], ["topic", "partition", "value"]))
    return Written(number, tuple(written.close()))


def numbered(name: str, numbers: range) -> list[tuple[str, int, bytes]]:
    topic, _, partition = name.rpartition("-")
    return [(topic, int(partition), f"{name}:{number}".encode()) for number in numbers]


def test_write_warns_of_options_that_need_a_broker() -> None:
    given = {"path": "/a", "kafka.acks": "all", "KAFKA.compression.type": "lz4", "kafka.bootstrap.servers": "b:9092"}
    with pytest.warns(
        UserWarning, match=r"no effect, because there is no broker: kafka\.acks, kafka\.bootstrap\.servers$"
    ):
        assert parse_write_options(given).compression == "lz4"


def test_commit_puts_tasks_one_after_the_other(tmp_path: Path) -> None:
    writer = job(tmp_path, {"batchSize": "100", "segmentBytes": "500"})
    second = task(writer, 1, numbered("a-0", range(40, 60)) + numbered("b-7", range(4)))
    lost = task(writer, 0, numbered("a-0", range(3)), attempt=0)
    first = task(writer, 0, numbered("a-0", range(40)), attempt=1)  # the first attempt was abandoned
    assert names_in(tmp_path) == {os.path.basename(writer.job)}  # noqa: PTH119 -- a string
    assert lost.fragments
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


class DriverDied(BaseException):
    """Simulates a kill."""


def kill_at_rename(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Die instead of renaming, linking or unlinking a file, counted from 0."""
    left = iter(range(number, -1, -1))

    def rename(source: Path, target: Path) -> Path:
        if next(left) == 0:
            raise DriverDied
        os.replace(source, target)  # noqa: PTH105 -- replaces Path's own method
        return target

    def link(target: Path, source: Path) -> None:
        if next(left) == 0:
            raise DriverDied
        os.link(source, target)

    def unlink(file: Path, *, missing_ok: bool = False) -> None:
        if next(left) == 0:
            raise DriverDied
        with contextlib.suppress(*([FileNotFoundError] if missing_ok else [])):
            os.unlink(file)  # noqa: PTH108 -- replaces Path's own method

    monkeypatch.setattr(Path, "rename", rename)
    monkeypatch.setattr(Path, "replace", rename)
    monkeypatch.setattr(Path, "hardlink_to", link)
    monkeypatch.setattr(Path, "unlink", unlink)


@pytest.mark.parametrize("overwrite", [False, True])
def test_commit_that_died_is_ended_by_the_next_write(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, overwrite: bool
) -> None:
    """At every step: without a plan, the write is invisible; with a plan, the next write completes it."""
    old = {name: counted(name, range(3)) for name in ("a-0", "a-1")}
    names = ("a-0", "a-1", "b-0")
    new = {name: counted(name, *[range(3)] * (name in old and not overwrite), range(5, 9)) for name in names}
    outcomes = []
    for number in range(80):
        path = tmp_path / str(number)
        first = job(path)
        first.commit([task(first, 0, [row for name in old for row in numbered(name, range(3))])])
        writer = job(path, overwrite=overwrite)
        written = task(writer, 0, [row for name in names for row in numbered(name, range(5, 9))])
        with monkeypatch.context() as patch:
            kill_at_rename(patch, number)
            died = False
            try:
                writer.commit([written])
            except DriverDied:
                died = True
        has_plan = is_committed(Path(writer.job))
        job(path).abort([])
        is_done = has_plan or "done" in outcomes
        assert rows_of(path) == (new if is_done else old)
        assert is_sound(path)
        outcomes.append("done" if is_done else "nothing")
        if not died:
            break
    assert set(outcomes) == {"nothing", "done"}
    assert not died


def test_commit_that_fails_in_its_end_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Spark calls `abort` then."""
    writer = job(tmp_path)
    written = task(writer, 0, numbered("a-0", range(3)))
    with monkeypatch.context() as patch:
        patch.setattr("kbat.spark.commit._move", failing_move)
        with pytest.raises(OSError, match="no room") as raised:
            writer.commit([written])
        writer.abort([written])
    assert any("the next write to" in note for note in raised.value.__notes__)
    assert rows_of(tmp_path) == {}
    job(tmp_path).abort([])
    assert rows_of(tmp_path) == {"a-0": counted("a-0", range(3))}
    assert names_in(tmp_path) == {"a-0"}


def failing_move(*_: Path) -> None:
    message = "no room"
    raise OSError(message)


def test_commit_of_a_living_driver_is_left_to_it(tmp_path: Path) -> None:
    writer = job(tmp_path)
    plan = Path(writer.job) / "commit.json"
    plan.write_text('{"remove": [], "move": ["a-0"]}')
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    job(tmp_path).abort([])
    assert plan.exists()
    os.close(held)
    job(tmp_path).abort([])
    assert names_in(tmp_path) == set()


def once_before(monkeypatch: pytest.MonkeyPatch, step: str, action: Callable[[], object]) -> None:
    """Do something in the midst of a commit, before a step of it."""
    take_step = getattr(commit, step)
    left = [action]

    def act_and_take_step(*arguments: Any) -> Any:  # noqa: ANN401 -- handed on
        if left:
            left.pop()()
        return take_step(*arguments)

    monkeypatch.setattr(commit, step, act_and_take_step)


@pytest.fixture(params=[0, 3], ids=["new", "grown"])
def two_jobs(request: pytest.FixtureRequest, tmp_path: Path) -> list[tuple[KbatWriter, Written]]:
    """Return two appends of 4 and 5 rows to a partition that is new or has 3."""
    if request.param:
        GrowingLog(tmp_path / "a-0").append(request.param)
    writers = [job(tmp_path), job(tmp_path)]
    runs = range(request.param, request.param + 4), range(request.param + 4, request.param + 9)
    return [(writer, task(writer, 0, numbered("a-0", run))) for writer, run in zip(writers, runs, strict=True)]


def test_commits_at_the_same_time_come_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, two_jobs: list[tuple[KbatWriter, Written]]
) -> None:
    (first, written), (second, also_written) = two_jobs
    other = threading.Thread(target=second.commit, args=([also_written],))

    def start_other() -> None:
        other.start()
        other.join(0.3)
        assert other.is_alive()

    once_before(monkeypatch, "_write_plan", start_other)
    first.commit([written])
    other.join()
    count = sum(len(rows) for rows in rows_of(tmp_path).values())
    assert rows_of(tmp_path) == {"a-0": counted("a-0", range(count))}
    assert count in {9, 12}
    assert names_in(tmp_path) == {"a-0"}
    assert is_sound(tmp_path)


def test_commit_comes_after_one_that_died_since_its_job_began(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, two_jobs: list[tuple[KbatWriter, Written]]
) -> None:
    (first, written), (second, also_written) = two_jobs
    die_with_plan(monkeypatch, first, written)
    second.commit([also_written])
    ((_, rows),) = rows_of(tmp_path).items()
    assert rows == counted("a-0", range(len(rows)))
    assert len(rows) in {9, 12}
    assert is_sound(tmp_path)


def die_with_plan(monkeypatch: pytest.MonkeyPatch, writer: KbatWriter, written: Written) -> None:
    def die(*_: object) -> None:
        raise DriverDied

    with monkeypatch.context() as patch:
        patch.setattr(commit, "_carry_out_plan", die)
        with pytest.raises(DriverDied):
            writer.commit([written])


def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand on another machine, which does not see this one's locks."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)


def test_commit_that_no_lock_held_back_is_an_error_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, two_jobs: list[tuple[KbatWriter, Written]]
) -> None:
    (first, written), (second, also_written) = two_jobs
    without_locks(monkeypatch)
    once_before(monkeypatch, "_write_epochs", lambda: second.commit([also_written]))
    with pytest.raises(FileExistsError, match=r"a concurrent write created this file"):
        first.commit([written])
    first.abort([written])
    assert names_in(tmp_path) == {"a-0"}
    rows = [value for _, value in rows_of(tmp_path)["a-0"]]
    assert rows[-5:] == [f"a-0:{number}".encode() for number in range(len(rows) - 1, len(rows) + 4)]
    assert is_sound(tmp_path)


def test_commit_that_no_lock_held_back_replaces_nothing_when_it_moves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, two_jobs: list[tuple[KbatWriter, Written]]
) -> None:
    (first, written), (second, also_written) = two_jobs
    without_locks(monkeypatch)
    once_before(monkeypatch, "_write_plan", lambda: die_with_plan(monkeypatch, second, also_written))
    first.commit([written])
    rows = rows_of(tmp_path)
    for _ in range(2):
        with pytest.raises(FileExistsError, match=r"a concurrent write created this file") as raised:
            job(tmp_path)
        assert any(f"unless you remove {second.job}" in note for note in raised.value.__notes__)
        assert rows_of(tmp_path) == rows
        assert is_sound(tmp_path)
    shutil.rmtree(second.job)
    job(tmp_path).abort([])
    assert names_in(tmp_path) == {"a-0"}


def test_commit_without_hard_links_replaces_nothing_either(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, two_jobs: list[tuple[KbatWriter, Written]]
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    for writer, written in two_jobs:
        writer.commit([written])
    ((_, rows),) = rows_of(tmp_path).items()
    assert rows == counted("a-0", range(len(rows)))
    assert is_sound(tmp_path)


def test_commit_of_nothing_changes_nothing(tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(3)
    job(tmp_path, overwrite=True).commit([Written(0, ())])
    assert rows_of(tmp_path) == {"a-0": counted("a-0", range(3))}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(None, 0, b"")], "a row has no topic"),
        ([("a", -1, b"")], "-1 is not a valid partition: partitions are 0 to"),
        ([("a", None, b"")], "rows of topic a have no partition, and its number of partitions is unknown"),
        ([("../../evil", 0, b"")], "a row has topic '../../evil', which is not a valid topic name: it must be 1"),
        ([("..", 0, b"")], "which is not a valid topic name"),
        ([("café", 0, b"")], "which is not a valid topic name"),
        ([("a" * 250, 0, b"")], "which is not a valid topic name"),
    ],
)
def test_task_refuses_rows_that_belong_nowhere(tmp_path: Path, rows: list[tuple[Any, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task(job(tmp_path), 0, [("a", 0, b"x"), *rows])


def test_task_of_many_partitions_opens_few_logs_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    monkeypatch.setattr("kbat.spark.writer._WAITING_LEN", 100)
    names = [f"a-{number}" for number in range(20)]
    writer = job(tmp_path, {"batchSize": "50", "segmentBytes": "300"})
    working = TaskWriter(writer, Path(writer.job) / "0-0", 0)
    for number in range(20):
        rows = [row for name in names for row in numbered(name, range(number, number + 1))]
        columns = [pa.array(column) for column in zip(*rows, strict=True)]
        working.add(pa.record_batch(columns, ["topic", "partition", "value"]))
        assert len(working.logs) == 8
        assert working.total_waiting_len == sum(working.waiting_len.values()) <= 100
    writer.commit([Written(0, tuple(working.close()))])
    assert rows_of(tmp_path) == {name: counted(name, range(20)) for name in names}
    assert is_sound(tmp_path)
