"""The Spark data source as users call it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import kbat
from data import DATA
from expected import read_expected
from growing_log import GrowingLog, time_of
from kbat.spark import register
from kbat.spark.rows import null_headers
from kbat.spark.schema import COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

KAFKA_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
)
HEADERS_SCHEMA = "headers array<struct<key:string,value:binary>>"


def read(spark: SparkSession, *paths: Path, schema: StructType | str | None = None, **options: object) -> DataFrame:
    reader = spark.read.format("kbat").options(**{name: str(value) for name, value in options.items()})
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load([os.fspath(path) for path in paths] if len(paths) != 1 else os.fspath(paths[0]))


def failure(frame: DataFrame) -> str:
    with pytest.raises(PySparkException) as raised:
        frame.toArrow()
    return str(raised.value)


def ddl(schema: StructType) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)


@pytest.fixture(scope="module")
def partition_directory(log_dir: Path) -> Path:
    return log_dir / "codec-lz4-0"


def test_schema_is_that_of_sparks_kafka_source(spark: SparkSession, partition_directory: Path) -> None:
    schema = read(spark, partition_directory).schema
    assert ddl(schema) == KAFKA_SCHEMA
    assert all(field.nullable for field in schema.fields)


def test_schema_with_headers_has_them_last(spark: SparkSession, partition_directory: Path) -> None:
    frame = read(spark, partition_directory, includeHeaders="true")
    assert ddl(frame.schema) == f"{KAFKA_SCHEMA}, {HEADERS_SCHEMA}"
    headers = [row.headers for row in frame.select("headers").collect()]
    found = [None if some is None else tuple((header.key, header.value) for header in some) for some in headers]
    # null and not an empty list without headers, as in Spark's source
    assert any(found)
    assert None in found
    assert found == [some or None for some in expected_headers(partition_directory)]


def expected_headers(directory: Path) -> list[object]:
    case = DATA / "corpus" / directory.name.removesuffix("-0")
    return [row.headers for log in sorted(case.glob("*.log")) for row in read_expected(log).rows]


def test_read_of_one_file_is_that_file(spark: SparkSession, log_dir: Path) -> None:
    log = max((log_dir / "segments-default-interval-0").glob("*.log"))
    table = read(spark, log).toArrow()
    (segment,) = kbat.find_segments(log)
    assert set(table.column("topic").to_pylist()) == {"segments-default-interval"}
    assert table.column("offset")[0].as_py() == segment.base_offset
    assert (
        table.column("offset").to_pylist()
        == kbat.scan(log, columns=["offset"]).to_pyarrow().column("offset").to_pylist()
    )


def test_read_of_a_log_directory_has_every_topic(spark: SparkSession, log_dir: Path) -> None:
    counted = {row.topic: row["count"] for row in read(spark, log_dir).groupBy("topic").count().collect()}
    directories = {directory.name.removesuffix("-0"): directory for directory in log_dir.glob("*-0")}
    scanned = {
        topic: kbat.scan(directory, columns=["offset"]).to_pyarrow().num_rows
        for topic, directory in directories.items()
    }
    assert counted == {topic: count for topic, count in scanned.items() if count}
    assert len(counted) > 10


def test_read_in_small_tasks_is_the_same_in_the_same_order(spark: SparkSession, log_dir: Path) -> None:
    frame = read(spark, log_dir, maxPartitionBytes="20k", columns="topic,offset,value")
    assert frame.toArrow() == read(spark, log_dir, columns="topic,offset,value").toArrow()
    tasks = frame.selectExpr("spark_partition_id() AS task").distinct().count()
    assert tasks > 3


def test_read_every_column_has_the_type_it_says(spark: SparkSession, partition_directory: Path) -> None:
    frame = read(spark, partition_directory, columns=",".join(column.name for column in COLUMNS))
    assert [field.dataType for field in frame.schema.fields] == [column.data_type for column in COLUMNS]
    scanned = kbat.scan(
        partition_directory, columns=[column.field for column in COLUMNS], timestamp_unit="us"
    ).to_pyarrow()
    scanned = pa.Table.from_batches(map(null_headers, scanned.to_batches()), scanned.schema)
    table = frame.toArrow()
    assert table.combine_chunks() == scanned.rename_columns([column.name for column in COLUMNS]).combine_chunks()


def test_schema_of_the_user_chooses_the_columns(spark: SparkSession, partition_directory: Path) -> None:
    table = read(spark, partition_directory, schema="OFFSET bigint, base_offset bigint, value binary").toArrow()
    assert table.column_names == ["OFFSET", "base_offset", "value"]
    scanned = kbat.scan(partition_directory, columns=["offset", "base_offset", "value"]).to_pyarrow()
    assert table.to_pydict() == scanned.rename_columns(table.column_names).to_pydict()


def test_schema_of_the_user_may_be_the_whole_kafka_schema(spark: SparkSession, partition_directory: Path) -> None:
    schema = f"{KAFKA_SCHEMA}, {HEADERS_SCHEMA}"
    assert read(spark, partition_directory, schema=schema).count() == 220


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("offsets bigint", "there is no column 'offsets'; choose among key, value, topic"),
        ("offset int", "column offset has type bigint, but the schema declares int; declare it as bigint"),
        ("value string", r"CAST(value AS STRING)"),
        ("offset bigint NOT NULL", "remove NOT NULL"),
        ("base_offset bigint, baseOffset bigint", "names the column baseOffset twice"),
    ],
)
def test_schema_of_the_user_that_does_not_fit_is_an_error(
    spark: SparkSession, partition_directory: Path, schema: str, message: str
) -> None:
    assert message in failure(read(spark, partition_directory, schema=schema))


def test_option_topic_and_partition_fill_what_the_directory_does_not_tell(spark: SparkSession, log_dir: Path) -> None:
    case = DATA / "corpus" / "codec-lz4"
    outside = read(spark, case, topic="orders", partition=3, columns="topic,partition").distinct().collect()
    assert [tuple(row) for row in outside] == [("orders", 3)]
    message = failure(read(spark, log_dir / "codec-lz4-0", topic="codec-lz4"))
    assert "option topic has no effect" in message
    assert "use subscribe=codec-lz4 to read one topic" in message
    unknown = read(spark, case, columns="topic,partition").distinct().collect()
    assert [tuple(row) for row in unknown] == [(None, None)]


def test_option_include_control_adds_markers(spark: SparkSession, log_dir: Path) -> None:
    directory = log_dir / "txn-simple-0"
    logs = sorted((DATA / "corpus" / "txn-simple").glob("*.log"))
    everything = [row.offset for log in logs for row in read_expected(log).rows]
    with_control = read(spark, directory, includeControl="true", schema="offset bigint").toArrow()
    without = read(spark, directory, schema="offset bigint").toArrow()
    assert with_control.column("offset").to_pylist() == everything
    assert 0 < without.num_rows < len(everything)


def test_read_of_a_topic_in_format_v0_has_no_timestamps(spark: SparkSession, log_dir: Path) -> None:
    frame = read(spark, log_dir / "k0822-java0822-snappy-0", columns="timestamp,timestampType,magic")
    table = frame.toArrow()
    assert set(table.column("timestampType").to_pylist()) == {-1}
    assert set(table.column("magic").to_pylist()) == {0}
    assert set(table.column("timestamp").cast(pa.int64()).to_pylist()) == {-1000}


def test_read_of_an_empty_directory_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    frame = read(spark, tmp_path)
    assert ddl(frame.schema) == KAFKA_SCHEMA
    assert frame.count() == 0


def test_read_of_a_log_without_records_has_no_rows(spark: SparkSession) -> None:
    assert read(spark, DATA / "corpus" / "empty").count() == 0


def test_read_of_a_path_where_nothing_is_says_so(spark: SparkSession, tmp_path: Path) -> None:
    assert f"nothing is at {tmp_path}/gone" in failure(read(spark, tmp_path / "gone"))


@pytest.fixture
def damaged(tmp_path: Path, log_dir: Path) -> Path:
    """A partition directory with one bit flipped in the checksum of its second batch."""
    directory = tmp_path / "codec-lz4-0"
    shutil.copytree(log_dir / "codec-lz4-0", directory)
    (log,) = directory.glob("*.log")
    first, second, *_ = kbat.read_batches(log)
    assert second.position == first.size
    content = bytearray(log.read_bytes())
    content[second.position + 17] ^= 1
    log.write_bytes(content)
    return directory


def test_read_of_a_damaged_file_names_file_position_and_offset(spark: SparkSession, damaged: Path) -> None:
    (log,) = damaged.glob("*.log")
    first, second, *_ = kbat.read_batches(log, check_crc=False)
    message = failure(read(spark, damaged))
    assert os.fspath(log) in message
    assert f"byte {second.position + 17}, base offset {first.next_offset}, field crc" in message
    assert "checksum mismatch" in message
    assert "option onCorrupt=skip omits the batch, onCorrupt=report adds a row that describes it" in message
    assert "checkCrc=false reads its records all the same" in message


def test_option_check_crc_false_reads_past_a_wrong_checksum(spark: SparkSession, damaged: Path) -> None:
    assert read(spark, damaged, checkCrc="false").count() == 220


def test_read_of_a_wrapper_in_a_wrapper_is_an_error(spark: SparkSession) -> None:
    directory = DATA / "corpus-legacy" / "k0822-nested-wire"
    assert os.fspath(directory / "00000000000000000000.log") in failure(read(spark, directory))


def test_option_limit_is_enforced_and_named(spark: SparkSession, partition_directory: Path) -> None:
    message = failure(read(spark, partition_directory, maxDecompressedLen="64"))
    assert "decompressed_len" in message
    assert "maxDecompressedLen" in message


def test_sql_view_with_options_reads(spark: SparkSession, partition_directory: Path) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW lz4 USING kbat OPTIONS (path '{partition_directory}', columns 'offset')")
    assert spark.sql("SELECT max(offset) AS last FROM lz4").collect()[0].last == 219


def test_register_twice_does_no_harm(spark: SparkSession, partition_directory: Path) -> None:
    register(spark)
    register(spark)
    assert read(spark, partition_directory, schema="offset bigint").count() == 220


def test_filters_leave_a_frame_as_it_was(spark: SparkSession, log_dir: Path) -> None:
    frame = read(spark, log_dir, columns="topic,offset")
    everything = frame.count()
    assert 0 < frame.where("topic = 'codec-lz4'").count() < everything
    assert frame.count() == everything


def test_backfill_changes_one_word_and_a_path(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "payments-0"):
        log = GrowingLog(tmp_path / name)
        log.append(10, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
        log.end_transaction(1, commit=name != "orders-1")
        log.append(10)
    options = {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.group.id": "backfill",
        "kafka.isolation.level": "read_committed",
        "groupIdPrefix": "backfill",
        "subscribe": "orders",
        "startingOffsetsByTimestamp": f'{{"orders": {{"0": {time_of(3)}, "1": {time_of(3)}}}}}',
        "startingOffsets": "earliest",
        "endingTimestamp": str(time_of(15)),
        "includeHeaders": "true",
        "failOnDataLoss": "false",
        "minPartitions": "4",
        "maxOffsetsPerTrigger": "5",
    }
    frame = spark.read.format("kbat").options(**options).load(os.fspath(tmp_path))
    assert ddl(frame.schema) == f"{KAFKA_SCHEMA}, {HEADERS_SCHEMA}"
    found = sorted((row.topic, row.partition, row.offset) for row in frame.collect())
    committed = [("orders", 0, offset) for offset in (*range(3, 10), *range(11, 15))]
    assert found == committed + [("orders", 1, offset) for offset in range(11, 15)]


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("", {"includeheader": "true"}, "kbat: unknown option includeheader (Spark lower-cased it); did you mean"),
        ("", {"startingOffsets": "latest"}, "kbat: startingOffsets can't be latest in a batch read"),
        ("", {"topic": "orders"}, "kbat: option topic has no effect"),
        ("nowhere", {}, "kbat: nothing is at "),
    ],
)
def test_error_of_an_option_has_no_frames_of_kbat_before_it(
    spark: SparkSession, log_dir: Path, path: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException) as raised:
        read(spark, log_dir / path, **options).count()
    lines = str(raised.value).splitlines()
    number = next(number for number, line in enumerate(lines) if message in line)
    assert number <= 3
    assert re.match(rf"(\w+: )?{re.escape(message)}", lines[number])


def test_package_that_spark_imports_at_every_start_imports_nothing_heavy() -> None:
    # what Spark's own module brings is there anyway: numpy before 4.2
    script = """if True:
        import sys, pyspark.sql.datasource
        before = sys.modules.keys() & {'numpy', 'pandas', 'pyarrow'}
        import pyspark_kbat
        print(sorted(sys.modules.keys() & {'numpy', 'pandas', 'pyarrow'} - before))"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603 -- its own
    assert done.stdout.strip() == "[]"
