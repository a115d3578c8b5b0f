"""`kbat.spark.to_parquet`: Spark reads the same rows from the files as from the segments."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import kbat.spark
from growing_log import GrowingLog
from kbat.spark import parquet
from kbat.spark.map_in_arrow import options_of, planned
from kbat.spark.parquet import PartWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from kbat.spark.plan import ReadPartition

COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]


def rows_of(frame: DataFrame, columns: list[str] = COLUMNS) -> list[Any]:
    return sorted((tuple(row) for row in frame.select(*columns).collect()), key=repr)


def left_in(directory: Path) -> list[Path]:
    return list(directory.rglob("*")) if directory.exists() else []


@pytest.mark.parametrize(
    "partition_by", [(), ("topic",), ("topic", "partition", "date", "hour")], ids=["none", "topic", "all"]
)
def test_parquet_of_a_log_directory_is_what_the_source_reads(
    spark: SparkSession, log_dir: Path, tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    target = tmp_path / "out"
    written = kbat.spark.to_parquet(
        spark, log_dir, target, partition_by=partition_by, maxPartitionBytes="50k", compression="zstd:3"
    )
    source = spark.read.format("kbat").load(os.fspath(log_dir))
    found = spark.read.parquet(os.fspath(target))
    types = {field.name: field.dataType for field in found.schema}
    assert types == {field.name: field.dataType for field in source.schema} | {
        name: types[name] for name in ("date", "hour") if name in partition_by
    }
    expected = rows_of(source)
    assert expected
    assert rows_of(found) == expected
    assert written.row_count == len(expected)
    assert sorted(file.path for file in written.files) == sorted(map(str, target.rglob("*.parquet")))
    assert written.size == sum(path.stat().st_size for path in target.rglob("*.parquet"))
    assert all(file.row_count == pq.read_metadata(file.path).num_rows for file in written.files)
    assert len({Path(file.path).name.split("-")[1] for file in written.files}) > 1
    assert not list(target.glob(".*"))
    for file in written.files:
        names = [part.partition("=")[0] for part in Path(file.path).relative_to(target).parts[:-1]]
        assert names == list(partition_by)


def test_parquet_of_headers_has_an_empty_list_where_the_source_has_null(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    columns = ["topic", "offset", "headers"]
    kbat.spark.to_parquet(spark, log_dir / "codec-lz4-0", tmp_path, includeHeaders=True)
    source = spark.read.format("kbat").option("includeHeaders", value=True).load(os.fspath(log_dir / "codec-lz4-0"))
    expected = [(topic, offset, headers or []) for topic, offset, headers in rows_of(source, columns)]
    assert any(headers for *_, headers in expected)
    found = [tuple(row) for row in spark.read.parquet(os.fspath(tmp_path)).select(*columns).collect()]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_parquet_honours_bounds_topics_and_columns(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a-0", "a-1", "b-0"):
        GrowingLog(tmp_path / "logs" / name).append(10)
    written = kbat.spark.to_parquet(
        spark,
        [tmp_path / "logs" / "a-0", tmp_path / "logs" / "b-0"],
        tmp_path / "out",
        partition_by=["topic", "partition"],
        columns=["topic", "partition", "offset", "baseOffset"],
        startingOffsets={"a": {"0": 7}, "b": {"0": 2}},
        endingOffsets={"a": {"0": -1}, "b": {"0": 4}},
    )
    frame = spark.read.parquet(os.fspath(tmp_path / "out"))
    assert sorted(frame.columns) == ["baseOffset", "offset", "partition", "topic"]
    assert rows_of(frame, ["topic", "offset"]) == [("a", 7), ("a", 8), ("a", 9), ("b", 2), ("b", 3)]
    parents = {os.path.relpath(Path(file.path).parent, tmp_path / "out"): file.row_count for file in written.files}
    assert parents == {"topic=a/partition=0": 3, "topic=b/partition=0": 2}


def test_parquet_without_topics_goes_into_one_directory(spark: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "logs" / "a-0").append(3)
    written = kbat.spark.to_parquet(spark, tmp_path / "logs", tmp_path / "out", columns=["offset", "value"])
    assert [Path(file.path).parent for file in written.files] == [tmp_path / "out"]


def test_parquet_of_no_rows_is_no_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    GrowingLog(tmp_path / "some" / "a-0").append(3)
    with pytest.warns(UserWarning, match="/logs is empty: .*; the read has no rows of it"):
        nothing = kbat.spark.to_parquet(spark, tmp_path / "logs", tmp_path / "out")
    at_two = {"a": {"0": 2}}  # in the middle of a batch, so that there is a task
    bounded = kbat.spark.to_parquet(
        spark, tmp_path / "some", tmp_path / "out", partition_by=(), startingOffsets=at_two, endingOffsets=at_two
    )
    assert (nothing.files, bounded.files, bounded.row_count, left_in(tmp_path / "out")) == ((), (), 0, [])


def test_a_second_write_needs_append_and_adds_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "logs" / "a-0").append(5)
    first = kbat.spark.to_parquet(spark, tmp_path / "logs", tmp_path / "out")
    with pytest.raises(FileExistsError, match=r'is not empty; .*mode="append"'):
        kbat.spark.to_parquet(spark, tmp_path / "logs", tmp_path / "out")
    second = kbat.spark.to_parquet(spark, tmp_path / "logs", tmp_path / "out", mode="append")
    assert {file.path for file in first.files}.isdisjoint(file.path for file in second.files)
    found = rows_of(spark.read.parquet(os.fspath(tmp_path / "out")), ["offset"])
    assert found == sorted((offset,) for offset in [*range(5)] * 2)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_task_that_fails_leaves_nothing(
    spark: SparkSession, log_dir: Path, tmp_path: Path, *, is_there: bool
) -> None:
    logs, target = tmp_path / "logs", tmp_path / "out"
    for name in ("codec-lz4-0", "codec-zstd-0"):
        shutil.copytree(log_dir / name, logs / name)
    damaged = max((logs / "codec-zstd-0").glob("*.log"))
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(data)
    if is_there:
        target.mkdir()
    with pytest.raises(PySparkException, match=r"CrcError|checksum mismatch"):
        kbat.spark.to_parquet(spark, logs, target, minPartitions=4)
    assert target.exists() == is_there
    assert left_in(target) == []
    written = kbat.spark.to_parquet(spark, logs, target, onCorrupt="skip", metricsPath=str(tmp_path / "metrics"))
    counts = kbat.spark.metrics(tmp_path / "metrics")
    assert (counts["batches_skipped"], counts["records"]) == (1, written.row_count)


def test_a_rename_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a-0", "b-0"):
        GrowingLog(tmp_path / "logs" / name).append(5)
    target = tmp_path / "out"
    target.mkdir()
    (target / "topic=b").touch()  # no directory can be made there
    with pytest.raises(FileExistsError):
        kbat.spark.to_parquet(spark, tmp_path / "logs", target, mode="append")
    assert [path for path in left_in(target) if path.is_file()] == [target / "topic=b"]
    assert not list(target.glob(".*"))


def test_a_task_of_a_job_that_ended_leaves_nothing(tmp_path: Path) -> None:
    GrowingLog(tmp_path / "logs" / "a-0").append(5)
    rows, tasks, _ = planned(options_of(tmp_path / "logs", {}))
    job = tmp_path / ".kbat-0"
    job.mkdir()
    with pytest.raises(RuntimeError, match=r"the job of .*\.kbat-0 has ended"):
        list(PartWriter(rows, job, (), "snappy").write(0, tasks[0]))
    assert not job.exists()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"partition_by": ["key"]}, "any of topic, partition, date, hour"),
        ({"partition_by": "topic"}, "any of topic, partition, date, hour"),
        ({"partition_by": ["topic", "topic"]}, "names a key twice"),
        ({"mode": "overwrite"}, "must be error or append"),
        ({"compression": "brotli"}, "use none, snappy"),
        ({"columns": ["value"], "partition_by": ["topic"]}, "no column topic to partition by"),
        ({"includeHeader": True}, "did you mean"),
        ({"startingOffsets": "latest"}, "startingOffsets can't be latest"),
    ],
)
def test_bad_arguments_raise_at_once_and_make_nothing(
    spark: SparkSession, log_dir: Path, tmp_path: Path, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        kbat.spark.to_parquet(spark, log_dir, tmp_path / "out", **options)
    assert left_in(tmp_path) == []


def test_what_an_attempt_left_that_does_not_count_is_not_there(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    GrowingLog(tmp_path / "logs" / "a-0").append(5)
    writing = parquet._writing  # noqa: SLF001 -- to run a task twice, which a local session never does

    def writing_twice(writer: PartWriter, tasks: Sequence[ReadPartition]) -> Callable[[Any], Any]:
        once = writing(writer, tasks)

        def write_twice(numbers: Any) -> Any:  # noqa: ANN401 -- Arrow batches
            for _, file in writer.write(0, tasks[0]):
                shutil.copytree(Path(file.path).parent, writer.job / "0-first" / "topic=a")
            return once(numbers)

        return write_twice

    monkeypatch.setattr(parquet, "_writing", writing_twice)
    written = kbat.spark.to_parquet(spark, tmp_path / "logs", tmp_path / "out", engine="python")
    assert written.row_count == 5
    assert [path for path in left_in(tmp_path / "out") if path.is_file()] == [Path(written.files[0].path)]
