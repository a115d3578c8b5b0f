"""Views, corruption and metrics of the Spark data source."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import kbat
from command_line import CORPUS, LOG
from data import DATA
from growing_log import GrowingLog
from kbat.spark import metrics
from kbat.spark.schema import VIEWS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, path: Path, **options: object) -> DataFrame:
    reader = spark.read.format("kbat").options(**{name: str(value) for name, value in options.items()})
    return reader.load(os.fspath(path))


@pytest.mark.parametrize("view", ["batches", "segments"])
def test_view_has_every_column_as_the_core_gives_it(spark: SparkSession, log_dir: Path, view: str) -> None:
    columns, _ = VIEWS[view]
    names = ",".join(column.name for column in columns)
    found = read(spark, log_dir, view=view, columns=names).toArrow()
    scan = kbat.scan(log_dir, view=view, columns=[column.field for column in columns], timestamp_unit="us")  # type: ignore[arg-type]  # a parameter
    assert found.to_pydict() == scan.to_pyarrow().rename_columns(found.column_names).to_pydict()
    assert found.num_rows > 20


@pytest.mark.parametrize("view", ["batches", "segments"])
def test_view_unasked_has_what_costs_little(spark: SparkSession, log_dir: Path, view: str) -> None:
    columns, count = VIEWS[view]
    frame = read(spark, log_dir, view=view)
    assert frame.columns == [column.name for column in columns[:count]]
    default = kbat.scan(log_dir, view=view).schema.names  # type: ignore[arg-type]  # a parameter
    assert [column.field for column in columns[:count]] == default
    assert frame.count() > 20


def test_view_internal_has_the_records_of_internal_topics(spark: SparkSession, tmp_path: Path) -> None:
    for case, name in (
        ("consumer-offsets", "__consumer_offsets-0"),
        ("cluster-metadata", "__cluster_metadata-0"),
        ("transaction-state", "__transaction_state-0"),
        ("codec-lz4", "orders-0"),
    ):
        (tmp_path / name).mkdir()
        shutil.copy(CORPUS / case / LOG, tmp_path / name)
    columns, count = VIEWS["internal"]
    frame = read(spark, tmp_path, view="internal")
    assert frame.columns == [column.name for column in columns[:count]]
    assert frame.where("topic = '__transaction_state'").count() > 10
    names = ",".join(column.name for column in columns)
    chosen: list[dict[str, Any]] = [{}, {"include_control": True}, {"isolation": "read_committed"}]
    for options in chosen:
        spelled = {"include_control": "includeControl", "isolation": "isolationLevel"}
        given = {spelled[name]: value for name, value in options.items()}
        found = read(spark, tmp_path, view="internal", columns=names, **given).toArrow()
        fields = [column.field for column in columns]
        scan = kbat.scan(tmp_path, view="internal", columns=fields, timestamp_unit="us", **options)
        order: Any = [("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")]
        expected = scan.to_pyarrow().rename_columns(found.column_names).sort_by(order)
        assert found.sort_by(order).to_pydict() == expected.to_pydict()


def test_missing_timestamps_are_minus_one_in_both_views_of_records(spark: SparkSession, tmp_path: Path) -> None:
    shutil.copytree(DATA / "corpus-legacy" / "k0822-java0822-none", tmp_path / "__consumer_offsets-0")
    for view in ("records", "internal"):
        frame = read(spark, tmp_path, view=view).selectExpr("min(unix_millis(timestamp))", "count(timestamp)")
        assert frame.collect() == [(-1, 52)], view


def test_view_internal_needs_an_internal_topic(spark: SparkSession, log_dir: Path) -> None:
    with pytest.raises(PySparkException, match="view=internal reads internal topics such as __consumer_offsets"):
        read(spark, log_dir, view="internal").collect()


def test_view_batches_answers_an_audit_by_codec_and_producer(spark: SparkSession, log_dir: Path) -> None:
    read(spark, log_dir, view="batches").createOrReplaceTempView("batches")
    found = spark.sql(
        """
        SELECT topic, compression, count(*) AS batches, sum(recordCount) AS records, sum(size) AS bytes,
               count(DISTINCT producerId) FILTER (WHERE producerId >= 0) AS producers
        FROM batches WHERE NOT isControl GROUP BY topic, compression
        """
    )
    expected: dict[tuple[str, str], list[int]] = {}
    for segment in kbat.find_segments(log_dir):
        for batch in kbat.read_batches(segment.path):
            if not batch.is_control:
                counts = expected.setdefault((str(segment.topic), batch.compression), [0, 0])
                counts[0] += 1
                counts[1] += batch.size
    assert {(row.topic, row.compression): [row.batches, row.bytes] for row in found.collect()} == expected
    assert {codec for _, codec in expected} == {"none", "gzip", "snappy", "lz4", "zstd"}


def test_view_of_topics_and_offsets(spark: SparkSession, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(3, 4)
    log.roll()
    log.append(5)
    GrowingLog(tmp_path / "b-0").append(1)
    batches = read(spark, tmp_path, view="batches", subscribe="a", columns="baseOffset,recordCount").collect()
    assert [tuple(row) for row in batches] == [(0, 3), (3, 4), (7, 5)]
    segments = read(spark, tmp_path, view="segments", columns="topic,base_offset,end_offset,batch_count").collect()
    assert sorted(map(tuple, segments)) == [("a", 0, 7, 2), ("a", 7, 12, 1), ("b", 0, 1, 1)]


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """a-0 with offsets 0 to 20 in batches of 5, a bit flipped in the second; b-0 sound."""
    log = GrowingLog(tmp_path / "a-0")
    log.append(5, 5, 5, 5)
    GrowingLog(tmp_path / "b-0").append(3)
    second = list(kbat.read_batches(log.segment))[1]
    content = bytearray(log.segment.read_bytes())
    content[second.position + second.size - 3] ^= 1
    log.segment.write_bytes(content)
    return tmp_path


def test_damage_fails_the_job_and_the_message_names_the_way_on(spark: SparkSession, damaged: Path) -> None:
    with pytest.raises(PySparkException, match="option onCorrupt=skip omits the batch"):
        read(spark, damaged).collect()


@pytest.mark.parametrize("size", ["1", "200", "64m"])
def test_damage_is_skipped_and_counted(spark: SparkSession, damaged: Path, tmp_path: Path, size: str) -> None:
    counts = tmp_path / "metrics"
    frame = read(spark, damaged / "*-0", onCorrupt="skip", metricsPath=counts, maxPartitionBytes=size)
    rows = sorted((row.topic, row.offset) for row in frame.collect())
    assert rows == [("a", offset) for offset in (*range(5), *range(10, 20))] + [("b", offset) for offset in range(3)]
    found = metrics(counts)
    assert (found["records"], found["batches_skipped"]) == (18, 1)
    assert found["bytes_lost"] > 0
    assert found["tasks"] >= 1


def test_damage_is_reported_in_a_row(spark: SparkSession, damaged: Path) -> None:
    frame = read(spark, damaged, onCorrupt="report", columns="error,topic,offset")
    assert frame.columns == ["error", "topic", "offset"]
    faults = frame.where("error IS NOT NULL").collect()
    assert len(faults) == 1
    error = faults[0].error
    assert (error.kind, error.first_offset, error.last_offset) == ("crc", 5, 9)
    assert error.path == os.fspath(damaged / "a-0" / "00000000000000000000.log")
    assert error.position > 0
    assert frame.where("error IS NULL").count() == 18
    by_default = read(spark, damaged, onCorrupt="report")
    assert by_default.columns[-1] == "error"
    assert by_default.where("error.kind = 'crc'").count() == 1


def test_damage_reported_needs_a_column_for_it(spark: SparkSession, damaged: Path) -> None:
    reader = spark.read.format("kbat").option("onCorrupt", "report").schema("offset bigint")
    with pytest.raises(
        PySparkException, match="the schema has no column error, which onCorrupt=report fills: add error"
    ):
        reader.load(os.fspath(damaged)).collect()


def test_metrics_of_a_read_count_what_it_read(spark: SparkSession, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "logs" / "a-0")
    log.append(5, 5)
    counts = tmp_path / "metrics"
    frame = read(spark, tmp_path / "logs", metricsPath=counts)
    assert metrics(tmp_path / "nothing") == {"tasks": 0}
    for _ in range(2):  # a second run replaces the counts of the first
        assert frame.count() == 10
        assert metrics(counts) == {
            "tasks": 1,
            "batches": 2,
            "records": 10,
            "bytes_read": log.segment.stat().st_size,
            "batches_skipped": 0,
            "bytes_lost": 0,
            "offsets_lost": 0,
        }
    assert len(read(spark, tmp_path / "logs", metricsPath=counts.as_uri(), minPartitions=2).collect()) == 10
    assert metrics(counts)["tasks"] == metrics(counts.as_uri())["tasks"] == 3
    with pytest.raises(ValueError, match="s3://b/m is not in a local file system"):
        metrics("s3://b/m")
    shutil.rmtree(counts)
