"""Which tasks a Spark read has, without Spark."""

from __future__ import annotations

import os
import pickle
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import kbat
from data import DATA
from growing_log import GrowingLog, time_of
from kbat.spark.options import ReadOptions, parse_options
from kbat.spark.plan import plan
from kbat.spark.schema import schema_of
from kbat.spark.source import KbatReader
from kbat.spark.stream import KbatStreamReader
from kbat.spark.task_metrics import metrics
from spark_pieces import pieces_of, size_of


def options_of(path: object, **given: object) -> ReadOptions:
    return parse_options({"path": str(path)} | {name: str(value) for name, value in given.items()})


def test_plan_of_a_log_directory_has_every_segment_once_in_order(log_dir: Path) -> None:
    tasks = plan(options_of(log_dir, maxPartitionBytes=20_000))
    paths = list(dict.fromkeys(piece.path for task in tasks for piece in pieces_of(task)))
    directories = sorted(log_dir.glob("*-0"), key=lambda directory: directory.name)
    logs = [log for directory in directories for log in sorted(directory.glob("*.log")) if log.stat().st_size]
    assert paths == [os.fspath(log) for log in logs]
    assert len(tasks) > 1
    assert all(size_of(task) <= 20_000 or len(pieces_of(task)) == 1 for task in tasks)
    assert sum(size_of(task) for task in tasks) == sum(log.stat().st_size for log in logs)


def test_plan_of_a_small_directory_is_one_task(log_dir: Path) -> None:
    assert len(plan(options_of(log_dir / "codec-lz4-0"))) == 1


def test_plan_leaves_empty_segments_out() -> None:
    assert plan(options_of(DATA / "corpus" / "empty")) == []


def test_plan_of_an_empty_directory_is_one_idle_task(tmp_path: Path) -> None:
    options = options_of(tmp_path)
    with pytest.warns(UserWarning, match=f"{tmp_path} is empty: .*; the read has no rows of it"):
        assert plan(options) == []
    reader = KbatReader(schema_of(["offset"]), options)
    with pytest.warns(UserWarning, match="is empty"):
        (task,) = reader.partitions()  # Spark reads at least one
    assert list(pickle.loads(pickle.dumps(reader)).read(pickle.loads(pickle.dumps(task)))) == []  # noqa: S301 -- its own bytes
    assert repr(task) == "ReadPartition()"


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_plan_understands_paths_and_file_urls(log_dir: Path, form: str) -> None:
    tasks = plan(options_of(form.format(log_dir / "codec-lz4-0")))
    assert [pieces_of(task) for task in tasks] == [
        pieces_of(task) for task in plan(options_of(log_dir / "codec-lz4-0"))
    ]


def test_plan_understands_relative_paths(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log_dir)
    (task,) = plan(options_of("codec-lz4-0"))
    assert all(Path(piece.path).is_absolute() for piece in pieces_of(task))


def test_plan_of_a_glob_has_what_matches(log_dir: Path) -> None:
    (task,) = plan(options_of(log_dir / "codec-*-0"))
    names = [Path(piece.path).parent.name for piece in pieces_of(task)]
    assert names == [f"codec-{codec}-0" for codec in ("gzip", "lz4", "none", "snappy", "zstd")]


def test_plan_of_a_glob_leaves_out_what_a_log_directory_leaves_out(tmp_path: Path) -> None:
    left_out = [f"a-0.{'0' * 32}-{state}" for state in ("delete", "future", "stray")]
    for name in ("a-0", "dump", *left_out):
        (tmp_path / "d" / name).mkdir(parents=True)
        (tmp_path / "d" / name / f"{0:020}.log").write_bytes(kbat.encode(pa.table({"value": [b"v"]}), timestamp=0))
    (tmp_path / "d" / "meta.properties").write_text("version=1\n")
    (tmp_path / "d" / "a-0" / "leader-epoch-checkpoint").write_text("0\n0\n")

    def names(pattern: str) -> list[str]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "kbat: .*/dump contains segments and is not read")
            tasks = plan(options_of(f"{tmp_path}/{pattern}"))
        return [Path(piece.path).parent.name for task in tasks for piece in pieces_of(task)]

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
            plan(options_of(path))


def test_plan_of_a_pattern_that_matches_no_topic_warns(log_dir: Path) -> None:
    options = parse_options({"path": os.fspath(log_dir), "subscribePattern": "^nothing"})
    with pytest.warns(UserWarning, match=f"no topic at {log_dir} matches subscribePattern; the read has no rows"):
        assert plan(options) == []


@pytest.mark.parametrize("name", ["nothing", "nothing-*"])
def test_plan_of_a_path_where_nothing_is_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"kbat: nothing (is at|matches) .*nothing"):
        plan(options_of(tmp_path / name))


@pytest.mark.parametrize("url", ["hdfs://host/kafka", "dbfs:/kafka"])
def test_plan_of_a_remote_path_is_an_error(url: str) -> None:
    with pytest.raises(ValueError, match=f"{url} is not in a local file system"):
        plan(options_of(url))


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
    tasks = plan(options)
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
    batches = [batch for task in reader.partitions() for batch in reader.read(task)]
    assert [row["baseOffset"] for batch in batches for row in batch.to_pylist()] == bases


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


def test_task_writes_its_counts_into_the_directory_as_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    GrowingLog(tmp_path / "a-0").append(5)
    for name in ("driver", "worker"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "driver")
    options = options_of("../a-0", columns="offset", metricspath="counts")
    reader = KbatReader(schema_of(["offset"]), options)
    (task,) = reader.partitions()
    assert [piece.path for piece in pieces_of(task)] == [os.fspath(tmp_path / "a-0" / f"{0:020}.log")]
    monkeypatch.chdir(tmp_path / "worker")
    assert sum(batch.num_rows for batch in reader.read(task)) == 5
    assert metrics(tmp_path / "driver" / "counts")["records"] == 5
    assert not list((tmp_path / "worker").iterdir())


def test_reader_and_tasks_survive_pickling(log_dir: Path) -> None:
    options = options_of(log_dir)
    tasks = plan(options)
    assert pickle.loads(pickle.dumps(tasks)) == tasks  # noqa: S301 -- its own bytes
    reader = KbatReader(schema_of(["offset", "base_offset"]), options)
    copied = pickle.loads(pickle.dumps(reader))  # noqa: S301 -- its own bytes
    assert (copied.rows, copied.options) == (reader.rows, options)
    assert copied.rows.fields == ["offset", "base_offset"]


def test_plan_of_offsets_far_apart_has_no_task_for_what_lies_between(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(10)
    log.end_offset = 1_000_000_000
    log.append(10, 10)
    options = parse_options({"path": str(tmp_path), "maxRecordsPerPartition": "4"})
    reader = KbatReader(schema_of(["offset"]), options)
    tasks = reader.partitions()
    assert 8 <= len(tasks) <= 12
    found = [[row["offset"] for batch in reader.read(task) for row in batch.to_pylist()] for task in tasks]
    assert [offset for part in found for offset in part] == [*range(10), *range(1_000_000_000, 1_000_000_020)]
    assert max(map(len, found)) <= 4
