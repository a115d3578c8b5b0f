"""Which tasks a Spark read has, without Spark."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import kbat
from data import DATA
from growing_log import GrowingLog, time_of
from kbat.spark.filters import RowFilter
from kbat.spark.options import ReadOptions, parse_options
from kbat.spark.plan import Piece, ReadPartition, pack, plan
from kbat.spark.schema import schema_of
from kbat.spark.source import KbatReader
from kbat.spark.stream import KbatStreamReader


def sizes(tasks: list[ReadPartition]) -> list[list[int]]:
    return [[piece.size for piece in task.pieces] for task in tasks]


@pytest.mark.parametrize(
    ("segments", "tasks"),
    [
        ([], []),
        ([10], [[10]]),
        ([25, 3], [[25], [3]]),
        ([4, 4, 2, 1, 9], [[4, 4, 2], [1, 9]]),
        ([3, 3, 3, 3, 3, 3], [[3, 3, 3], [3, 3, 3]]),
        ([6, 6, 6], [[6], [6], [6]]),
    ],
)
def test_pack_neighbours_go_together_up_to_the_bound(segments: list[int], tasks: list[list[int]]) -> None:
    assert sizes(list(pack([Piece(f"/{size}", 0, size) for size in segments], 10, 1))) == tasks


@pytest.mark.parametrize(
    ("segments", "tasks"),
    [
        ([2, 1], [[2, 1]]),
        ([3, 2, 3], [[3], [2, 3]]),
        ([5, 5, 5, 5, 5, 5, 5, 6], [[5, 5], [5, 5], [5, 5], [5, 6]]),
        ([40, 1, 1], [[40], [1, 1]]),
    ],
)
def test_pack_every_core_has_a_task_if_it_is_worth_it(segments: list[int], tasks: list[list[int]]) -> None:
    mebibytes = [Piece(f"/{size}", 0, size << 20) for size in segments]
    packed = sizes(list(pack(mebibytes, 256 << 20, 4)))
    assert [[size >> 20 for size in task] for task in packed] == tasks


def test_plan_of_a_log_directory_has_every_segment_once_in_order(log_dir: Path) -> None:
    tasks = plan(ReadOptions(path=(os.fspath(log_dir),), max_partition_bytes=20_000))
    paths = list(dict.fromkeys(piece.path for task in tasks for piece in task.pieces))
    directories = sorted(log_dir.glob("*-0"), key=lambda directory: directory.name)
    logs = [log for directory in directories for log in sorted(directory.glob("*.log")) if log.stat().st_size]
    assert paths == [os.fspath(log) for log in logs]
    assert len(tasks) > 1
    assert all(task.size <= 20_000 or len(task.pieces) == 1 for task in tasks)
    assert sum(task.size for task in tasks) == sum(log.stat().st_size for log in logs)


def test_plan_cuts_no_segment_for_a_tenth_and_cuts_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = kbat.encode(pa.table({"value": [bytes(1000)] * 66_000}), timestamp=0, batch_bytes=16 << 10)
    for number, share in enumerate((1.0, 0.97)):
        directory = tmp_path / f"t-{number}"
        directory.mkdir()
        (directory / f"{0:020}.log").write_bytes(log[: int(len(log) * share)])
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert [len(task.pieces) for task in plan(ReadOptions(path=(os.fspath(tmp_path),)))] == [1, 1]
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    lens = [task.size for task in plan(ReadOptions(path=(os.fspath(tmp_path / "t-0"),)))]
    assert len(lens) == 2  # of 32 MiB at least
    assert max(lens) - min(lens) < 64 << 10


def test_plan_of_a_small_directory_is_one_task(log_dir: Path) -> None:
    assert len(plan(ReadOptions(path=(os.fspath(log_dir / "codec-lz4-0"),)))) == 1


def test_plan_leaves_empty_segments_out() -> None:
    assert plan(ReadOptions(path=(os.fspath(DATA / "corpus" / "empty"),))) == [ReadPartition(())]


def test_plan_of_an_empty_directory_is_one_idle_task(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=f"{tmp_path} is empty: .*; the read has no rows of it"):
        assert plan(ReadOptions(path=(os.fspath(tmp_path),))) == [ReadPartition(())]


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_plan_understands_paths_and_file_urls(log_dir: Path, form: str) -> None:
    tasks = plan(ReadOptions(path=(form.format(log_dir / "codec-lz4-0"),)))
    assert tasks == plan(ReadOptions(path=(os.fspath(log_dir / "codec-lz4-0"),)))


def test_plan_understands_relative_paths(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log_dir)
    (task,) = plan(ReadOptions(path=("codec-lz4-0",)))
    assert all(Path(piece.path).is_absolute() for piece in task.pieces)


def test_plan_of_a_glob_has_what_matches(log_dir: Path) -> None:
    (task,) = plan(ReadOptions(path=(os.fspath(log_dir / "codec-*-0"),)))
    names = [Path(piece.path).parent.name for piece in task.pieces]
    assert names == [f"codec-{codec}-0" for codec in ("gzip", "lz4", "none", "snappy", "zstd")]


def test_plan_of_a_glob_leaves_out_what_a_log_directory_leaves_out(tmp_path: Path) -> None:
    left_out = [f"a-0.{'0' * 32}-{state}" for state in ("delete", "future", "stray")]
    for name in ("a-0", "dump", *left_out):
        (tmp_path / "d" / name).mkdir(parents=True)
        (tmp_path / "d" / name / f"{0:020}.log").write_bytes(kbat.encode(pa.table({"value": [b"v"]}), timestamp=0))
    (tmp_path / "d" / "meta.properties").write_text("version=1\n")
    (tmp_path / "d" / "a-0" / "leader-epoch-checkpoint").write_text("0\n0\n")

    def names(pattern: str) -> list[str]:
        tasks = plan(ReadOptions(path=(f"{tmp_path}/{pattern}",)))
        return [Path(piece.path).parent.name for task in tasks for piece in task.pieces]

    for pattern in ("*", "d/a-*", "d/a-0/*", "d/a-*/*"):
        assert names(pattern) == ["a-0"], pattern
    for pattern in ("d/*", "d/*/*.log"):
        assert names(pattern) == ["a-0", "dump"], pattern
    assert names(f"d/{left_out[0]}") == left_out[:1]  # by its name, it is read


def test_plan_of_a_location_without_a_recognised_segment_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log.gz").write_bytes(b"\x1f\x8b")
    for path in (tmp_path, tmp_path / "orders-0"):
        with pytest.raises(ValueError, match=r"no log segment is recognized"):
            plan(ReadOptions(path=(os.fspath(path),)))


def test_plan_of_a_pattern_that_matches_no_topic_warns(log_dir: Path) -> None:
    options = parse_options({"path": os.fspath(log_dir), "subscribePattern": "^nothing"})
    with pytest.warns(UserWarning, match=f"no topic at {log_dir} matches subscribePattern; the read has no rows"):
        assert plan(options) == [ReadPartition(())]


@pytest.mark.parametrize("name", ["nothing", "nothing-*"])
def test_plan_of_a_path_where_nothing_is_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"kbat: nothing (is at|matches) .*nothing"):
        plan(ReadOptions(path=(os.fspath(tmp_path / name),)))


@pytest.mark.parametrize("url", ["hdfs://host/kafka", "dbfs:/kafka"])
def test_plan_of_a_remote_path_is_an_error(url: str) -> None:
    with pytest.raises(ValueError, match=f"{url} is not in a local file system"):
        plan(ReadOptions(path=(url,)))


@pytest.fixture(scope="module")
def large_batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log directory whose last batch is over the default limit."""
    path = tmp_path_factory.mktemp("large-batch")
    limits = kbat.Limits(batch_len=1 << 30)
    with kbat.LogWriter(path / "a-0", limits=limits) as log:
        log.append(None, b"small", timestamp=time_of(1))
        log.append(None, bytes(kbat.Limits().batch_len + 1), timestamp=time_of(2))
    return path


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({}, 2),
        ({"isolationLevel": "read_committed"}, 2),
        ({"startingOffsets": '{"a": {"0": 1}}'}, 1),
        ({"endingOffsets": '{"a": {"0": 2}}'}, 2),
        ({"startingTimestamp": str(time_of(2))}, 1),
        ({"maxRecordsPerPartition": "1"}, 2),
    ],
)
def test_plan_goes_by_the_limits_of_the_options(large_batch: Path, given: dict[str, str], count: int) -> None:
    options = parse_options({"path": os.fspath(large_batch), "maxBatchLen": "1g", "columns": "offset"} | given)
    reader = KbatReader(schema_of(options.column_names), options)
    tasks = plan(options, RowFilter())
    assert sum(batch.num_rows for task in tasks for batch in reader.read(task)) == count
    if "maxRecordsPerPartition" in given:
        assert len(tasks) == 2


def test_plan_of_a_stream_goes_by_the_limits_of_the_options(large_batch: Path) -> None:
    options = parse_options({"path": os.fspath(large_batch), "maxBatchLen": "1g", "startingOffsets": "earliest"})
    stream = KbatStreamReader(schema_of(["offset"]), options)
    start, end = stream.initialOffset(), stream.latestOffset()
    assert (start, end) == ({"a": {"0": 0}}, {"a": {"0": 2}})
    assert sum(batch.num_rows for task in stream.partitions(start, end) for batch in stream.read(task)) == 2


@pytest.mark.parametrize(
    ("given", "bases"),
    [
        ({}, [0, 5, 9]),
        ({"startingOffsets": '{"a": {"0": 5}}'}, [5, 9]),
        ({"startingOffsets": '{"a": {"0": 4}}', "endingOffsets": '{"a": {"0": 5}}'}, [0]),
        ({"startingTimestamp": str(time_of(6)), "endingTimestamp": str(time_of(8))}, [5]),
    ],
)
def test_plan_of_segments_has_those_within_the_bounds(tmp_path: Path, given: dict[str, str], bases: list[int]) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(5)
    log.roll()
    log.append(4)
    log.roll()
    options = parse_options({"path": os.fspath(tmp_path), "view": "segments"} | given)
    reader = KbatReader(schema_of(["baseOffset"], "segments"), options)
    found = [row["baseOffset"] for task in plan(options) for batch in reader.read(task) for row in batch.to_pylist()]
    assert found == bases


def test_stream_of_segments_is_refused(tmp_path: Path) -> None:
    options = parse_options({"path": os.fspath(tmp_path), "view": "segments"})
    with pytest.raises(ValueError, match=r"view=segments can't be streamed, .*; read it as a batch, or stream"):
        KbatStreamReader(schema_of(["baseOffset"], "segments"), options)


@pytest.mark.parametrize("on_corrupt", ["fail", "skip"])
@pytest.mark.parametrize("size", [0, 100])
def test_task_whose_file_became_shorter_raises(tmp_path: Path, size: int, on_corrupt: str) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(5, 5)
    planned = log.segment.stat().st_size
    options = parse_options({"path": os.fspath(tmp_path), "columns": "offset", "onCorrupt": on_corrupt})
    reader = KbatReader(schema_of(options.column_names), options)
    (task,) = plan(options)
    os.truncate(log.segment, size)
    with pytest.raises(OSError, match=f"{log.segment} has {size} bytes, and had {planned} or more when the read was"):
        list(reader.read(task))


def test_task_whose_file_becomes_shorter_while_it_reads_raises(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(*[5000] * 20)
    options = parse_options({"path": os.fspath(tmp_path), "columns": "offset"})
    (task,) = plan(options)
    batches = KbatReader(schema_of(options.column_names), options).read(task)
    next(batches)
    os.truncate(log.segment, 100)
    with pytest.raises((OSError, kbat.CorruptError), match=r"has 100 bytes, and had|truncated to 100 bytes"):
        list(batches)


def test_reader_and_tasks_survive_pickling(log_dir: Path) -> None:
    options = ReadOptions(path=(os.fspath(log_dir),))
    tasks = plan(options)
    assert pickle.loads(pickle.dumps(tasks)) == tasks  # noqa: S301 -- its own bytes
    reader = KbatReader(schema_of(["offset", "base_offset"]), options)
    copied = pickle.loads(pickle.dumps(reader))  # noqa: S301 -- its own bytes
    assert (copied.rows, copied.options) == (reader.rows, options)
    assert copied.rows.fields == {"offset": "offset", "base_offset": "base_offset"}


def test_plan_of_offsets_far_apart_has_no_task_for_what_lies_between(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(10)
    log.end_offset = 1_000_000_000
    log.append(10, 10)
    options = parse_options({"path": str(tmp_path), "maxRecordsPerPartition": "4"})
    tasks = plan(options)
    assert 8 <= len(tasks) <= 12
    reader = KbatReader(schema_of(["offset"]), options)
    found = [[row["offset"] for batch in reader.read(task) for row in batch.to_pylist()] for task in tasks]
    assert [offset for part in found for offset in part] == [*range(10), *range(1_000_000_000, 1_000_000_020)]
    assert max(map(len, found)) <= 4
