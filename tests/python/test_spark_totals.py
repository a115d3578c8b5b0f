"""What the JVM's data source does not decode: totals that Rust computes instead of rows, and offsets in headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions

import kbat
from data import DATA, build, patched, with_right_crc
from growing_log import FIRST_TIME, GrowingLog
from spark_faces import both, message_of, plan_of, read

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

OF_HEADERS = ("count(*)", "min(offset)", "max(offset)", "max(timestamp)")
COUNTS = ("count(key)", "count(value)")
IN_HEADERS = "topic, partition, offset, timestampType, baseOffset, position, batchSize, producerId, compression"


def totals_of(frame: DataFrame, *aggregates: str, by: tuple[str, ...] = ()) -> list[tuple[object, ...]]:
    """Return aggregates that Rust computes, which have to be those of all rows."""
    # Spark has to apply this filter to the rows, though it excludes none
    rows = frame.where("value IS NULL OR value IS NOT NULL")
    pushed, expected = (each.groupBy(*by).agg(*map(functions.expr, aggregates)) for each in (frame, rows))
    assert "PushedAggregates" in plan_of(pushed)
    assert "PushedAggregates" not in plan_of(expected)
    found = sorted(map(tuple, pushed.collect()), key=str)
    assert found == sorted(map(tuple, expected.collect()), key=str)
    return found


# Counts of keys and values


def test_counts_of_every_topic_are_those_of_the_rows(jvm: SparkSession, log_dir: Path) -> None:
    for directory in sorted(log_dir.glob("*-[0-9]")):
        totals_of(read(jvm, directory), *COUNTS)


@pytest.mark.parametrize(
    "name", ["compacted*", "codec-*", "log-append-time-*", "txn-none", "k0102-java0102-*", "k0102-compacted"]
)
def test_counts_of_the_corpora_are_those_of_the_rows(jvm: SparkSession, name: str) -> None:
    directories = [path for corpus in ("corpus", "corpus-legacy") for path in sorted((DATA / corpus).glob(name))]
    assert directories
    for directory in directories:
        totals_of(read(jvm, directory, isolationLevel="read_uncommitted"), *COUNTS, *OF_HEADERS)


def test_counts_within_bounds(jvm: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(5, 5, 5)
    frame = read(jvm, tmp_path, startingOffsets='{"a": {"0": 3}}', endingOffsets='{"a": {"0": 12}}')
    assert totals_of(frame, "count(*)", *COUNTS, "min(offset)", "max(offset)") == [(9, 0, 9, 3, 11)]
    assert totals_of(frame, "count(*)", "min(offset)", "max(offset)") == [(9, 3, 11)]


def test_counts_of_nothing(jvm: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0")
    assert totals_of(read(jvm, tmp_path), *COUNTS, "count(*)", "max(offset)") == [(0, 0, 0, None)]


def test_values_are_not_counted_without_decoding(jvm: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a-0").mkdir()
    batch = bytearray(build([(FIRST_TIME, None, b"value" * 10)] * 5, compression="zstd"))
    batch[61:69] = bytes(8)
    (tmp_path / "a-0" / f"{0:020}.log").write_bytes(with_right_crc(batch))
    frame = read(jvm, tmp_path)
    assert frame.count() == 5
    for query in (frame.selectExpr("count(value)"), frame.select("value")):
        assert "zstd" in message_of(query.collect)


@pytest.mark.parametrize(
    "aggregate",
    [
        "count(DISTINCT value)",
        "count(timestamp)",
        "count(length(value))",
        "sum(offset)",
        "max(value)",
        "count(value) FILTER (WHERE offset > 3)",
    ],
)
def test_other_aggregates_are_left_to_spark(jvm: SparkSession, log_dir: Path, aggregate: str) -> None:
    assert "PushedAggregates" not in plan_of(read(jvm, log_dir).selectExpr(aggregate))


# Groups


@pytest.mark.parametrize("by", [("topic", "partition"), ("topic",), ("partition",), ("PARTITION", "Topic")])
def test_groups_are_those_of_the_rows(jvm: SparkSession, log_dir: Path, by: tuple[str, ...]) -> None:
    frame = read(jvm, log_dir)
    assert len(totals_of(frame, *OF_HEADERS, by=by)) == len(frame.select(*by).distinct().collect())
    totals_of(frame, *OF_HEADERS, *COUNTS, by=by)
    assert "PushedGroupBy" in plan_of(frame.groupBy(*by).count())


def test_groups_without_records_have_no_row(jvm: SparkSession, tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0")
    assert totals_of(read(jvm, tmp_path), "count(*)", by=("topic",)) == []
    GrowingLog(tmp_path / "a-1").append(3)
    assert totals_of(read(jvm, tmp_path), "count(*)", by=("topic", "partition")) == [("a", 1, 3)]


def test_group_of_files_without_a_topic_is_null(jvm: SparkSession, tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"{number}.bin").write_bytes(build())
    files = [tmp_path / "0.bin", tmp_path / "1.bin"]
    assert totals_of(read(jvm, *files), "count(*)", by=("topic", "partition")) == [(None, None, 2)]
    assert totals_of(read(jvm, *files, topic="b", partition=7), "count(*)", by=("partition", "topic")) == [(7, "b", 2)]


def test_groups_by_other_columns_are_left_to_spark(jvm: SparkSession, log_dir: Path) -> None:
    frame = read(jvm, log_dir)
    for column in ("timestampType", "topic || 'a'", "offset"):
        assert "PushedAggregates" not in plan_of(frame.groupBy(functions.expr(column)).count())


# Offsets in headers


def test_columns_of_headers_are_those_of_the_rows(jvm: SparkSession, log_dir: Path) -> None:
    columns = IN_HEADERS.split(", ")
    for directory in [*sorted(log_dir.glob("*-[0-9]")), DATA / "corpus" / "compacted"]:
        found = both(jvm, directory, columns=IN_HEADERS)
        assert found == read(jvm, directory, columns=f"{IN_HEADERS}, key").toArrow().select(columns).combine_chunks()
        assert found == read(jvm, directory, columns=f"{IN_HEADERS}, key").select(columns).toArrow().combine_chunks()


def test_offsets_of_a_batch_are_verified_but_not_decompressed(jvm: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a-0").mkdir()
    segment = tmp_path / "a-0" / f"{0:020}.log"
    batch = bytearray(build([(FIRST_TIME, None, b"value" * 10)] * 5, compression="zstd"))
    batch[61:69] = bytes(8)
    segment.write_bytes(with_right_crc(batch))
    assert both(jvm, tmp_path, columns="offset")["offset"].to_pylist() == list(range(5))
    assert "zstd" in message_of(read(jvm, tmp_path).select("timestamp").collect)
    segment.write_bytes(batch)
    for engine in ("jvm", "python"):
        assert message_of(read(jvm, tmp_path, columns="offset", engine=engine).collect, "checksum")
    with pytest.raises(kbat.KbatError):
        kbat.scan(tmp_path, columns=["offset"]).to_pyarrow()


def test_reported_corruption_does_not_depend_on_the_columns(jvm: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a-0").mkdir()
    batch = bytearray(build([(FIRST_TIME, None, b"value" * 10)] * 5, compression="zstd"))
    batch[61:69] = bytes(8)
    (tmp_path / "a-0" / f"{0:020}.log").write_bytes(with_right_crc(batch))
    frame = read(jvm, tmp_path, onCorrupt="report")
    assert [row.error.last_offset for row in frame.select("error").collect()] == [4]
    assert frame.where("error IS NOT NULL").count() == 1
    assert read(jvm, tmp_path, onCorrupt="skip").select("offset").collect() == []


def test_a_header_with_more_records_than_offsets_is_not_believed(jvm: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a-0").mkdir()
    data = bytearray(build([(FIRST_TIME, b"k", b"v")] * 20))
    data[57] ^= 1  # the highest byte of the number of records
    (tmp_path / "a-0" / f"{0:020}.log").write_bytes(data)
    assert "checksum mismatch" in message_of(read(jvm, tmp_path).count)


@pytest.mark.parametrize("last", [3, 5])
def test_totals_count_no_less_if_a_corrupt_length_leads_to_a_later_batch(
    jvm: SparkSession, tmp_path: Path, last: int
) -> None:
    """The length of batch 1 leads to batch `last`, or to the end of the file."""
    (tmp_path / "a-0").mkdir()
    batches = [build([(FIRST_TIME + at, b"k", b"v")] * 3, base_offset=3 * at) for at in range(5)]
    batches[1] = bytes(patched(batches[1], 8, ">i", sum(map(len, batches[1:last])) - 12))
    (tmp_path / "a-0" / f"{0:020}.log").write_bytes(b"".join(batches))
    frame = read(jvm, tmp_path)
    for aggregates in (["count(*)"], ["max(timestamp)"], ["min(offset)", "max(offset)"]):
        for groups in ([], ["topic", "partition"]):
            totals = frame.groupBy(*groups).agg(*map(functions.expr, aggregates))
            assert "base offset 3," in message_of(totals.collect)


def test_totals_of_logs_with_missing_offsets_are_those_of_the_rows(jvm: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a-0").mkdir()
    batches = [build([(FIRST_TIME + at, b"k", b"v")] * 3, base_offset=7 * at) for at in range(5)]
    (tmp_path / "a-0" / f"{0:020}.log").write_bytes(b"".join(batches))
    assert totals_of(read(jvm, tmp_path), *OF_HEADERS[:3]) == [(15, 0, 30)]
