"""The data source in Spark's JVM: same rows as the Python data source, and what only the JVM's can do."""

from __future__ import annotations

import os
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions

import kbat
import kbat.spark
from data import DATA
from growing_log import time_of
from kbat.spark.schema import ERROR_COLUMN, VIEWS
from spark_faces import ENGINES, both, message_of, plan_of, read, read_in_python, rows_of, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def all_columns(view: str) -> str:
    return ",".join(column.name for column in VIEWS[view][0])


@pytest.mark.parametrize("view", sorted(set(VIEWS) - {"internal"}))
def test_jvm_every_column_of_every_view_is_the_same(jvm: SparkSession, log_dir: Path, view: str) -> None:
    rows = both(jvm, log_dir, view=view, columns=all_columns(view), isolationLevel="read_uncommitted")
    assert rows.num_rows > 20


def test_jvm_records_of_internal_topics_are_the_same(jvm: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "__consumer_offsets-0").symlink_to(DATA / "corpus" / "consumer-offsets")
    rows = both(jvm, tmp_path, view="internal", columns=all_columns("internal"), isolationLevel="read_uncommitted")
    assert rows.num_rows > 20


def test_jvm_headers_and_missing_values_are_the_same(jvm: SparkSession, log_dir: Path) -> None:
    rows = both(jvm, log_dir, includeHeaders="true", includeControl="true")
    assert 0 < rows.column("headers").null_count < rows.num_rows
    assert 0 < rows.column("key").null_count < rows.num_rows


@pytest.mark.parametrize(
    "options",
    [
        {"maxPartitionBytes": "60k", "includeControl": "true"},
        {"maxRecordsPerPartition": 50, "subscribe": "codec-lz4"},
        {"isolationLevel": "read_committed", "subscribePattern": "txn.*"},
        {"startingOffsets": '{"codec-lz4": {"0": 17}}', "assign": '{"codec-lz4": [0]}'},
        {"columns": "offset,base_offset", "subscribe": "k0822-java0822-snappy"},
    ],
)
def test_jvm_options_select_the_same_rows(jvm: SparkSession, log_dir: Path, options: dict[str, Any]) -> None:
    assert both(jvm, log_dir, **options).num_rows > 0


def test_jvm_schema_of_the_user_is_kept(jvm: SparkSession, log_dir: Path) -> None:
    rows = both(jvm, log_dir / "codec-lz4-0", schema="OFFSET bigint, base_offset bigint, value binary")
    assert rows.column_names == ["OFFSET", "base_offset", "value"]


def test_jvm_read_of_an_empty_directory_has_no_rows(jvm: SparkSession, tmp_path: Path) -> None:
    assert both(jvm, tmp_path).num_rows == 0


def test_jvm_rows_survive_a_sort_and_a_group(jvm: SparkSession, log_dir: Path) -> None:
    found, expected = [
        read(jvm, log_dir, engine=engine, includeHeaders="true")
        .groupBy("topic")
        .agg({"value": "max", "key": "min", "offset": "sum", "*": "count"})
        .orderBy("topic")
        .collect()
        for engine in ENGINES
    ]
    assert found == expected
    assert len(found) > 10


def test_jvm_view_in_sql_is_the_same(jvm: SparkSession, log_dir: Path) -> None:
    for engine in ENGINES:
        jvm.sql(f"CREATE TEMPORARY VIEW of_{engine} USING kbat OPTIONS (path '{log_dir}', engine '{engine}')")
    query = "SELECT topic, count(*), sum(length(value)), max(timestamp) FROM {} GROUP BY topic ORDER BY topic"
    assert jvm.sql(query.format("of_jvm")).collect() == jvm.sql(query.format("of_python")).collect()
    assert "engine: jvm" in plan_of(jvm.table("of_jvm"))


# What a plan shows


def test_jvm_explain_shows_what_is_read_without_secrets(jvm: SparkSession, log_dir: Path) -> None:
    frame = read(jvm, log_dir, checkCrc="false", encryptionKeys='{"k": "/secret.pem"}').where("offset > 3")
    plan = plan_of(frame.select("topic").limit(5))
    assert f"kbat engine: jvm, path: {log_dir}" in plan
    assert "checkCrc=false" in plan
    assert "GreaterThan(offset,3)" in plan
    assert "ReadSchema: struct<topic:string,offset:bigint>" in plan
    assert "encryptionKeys=(hidden)" in plan
    assert "secret.pem" not in plan


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (("offset",), "struct<offset:bigint>"),
        (("headers[0].key",), "struct<headers:array<struct<key:string,value:binary>>>"),
        (("1",), "struct<>"),
    ],
)
def test_jvm_reads_the_columns_of_the_query_only(
    jvm: SparkSession, log_dir: Path, query: tuple[str, ...], columns: str
) -> None:
    frame = read(jvm, log_dir, includeHeaders="true")
    assert f"ReadSchema: {columns} " in plan_of(frame.selectExpr(*query))
    assert frame.selectExpr(*query).count() == read(jvm, log_dir, engine="python").count()


def test_jvm_limit_reads_less(jvm: SparkSession, log_dir: Path) -> None:
    frame = read(jvm, log_dir / "segments-default-interval-0")
    assert "PushedLimit: 5" in plan_of(frame.limit(5))
    count, metrics = run(frame)
    few = len(frame.limit(5).collect())
    assert (few, count) == (5, metrics["Records"])
    assert run(frame.limit(5))[1]["Records"] < count


def test_jvm_metrics_count_what_is_read(jvm: SparkSession, log_dir: Path) -> None:
    directory = log_dir / "codec-lz4-0"
    count, metrics = run(read(jvm, directory))
    batches = [batch for log in sorted(directory.glob("*.log")) for batch in kbat.read_batches(log)]
    assert metrics["Records"] == count == sum(batch.record_count or 0 for batch in batches)
    assert metrics["Batches"] == len(batches)
    assert metrics["BytesRead"] > 0
    assert metrics["BatchesSkipped"] == metrics["BytesLost"] == metrics["OffsetsLost"] == 0


# Filters


@pytest.fixture(scope="module")
def unfiltered(jvm: SparkSession, many_batches: Path) -> Iterator[DataFrame]:
    """All rows, kept by Spark: filters on them are Spark's alone."""
    frame = read(jvm, many_batches, engine="python").cache()
    yield frame
    frame.unpersist()


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("offset = 7", 2),
        ("offset <=> 7", 2),
        ("offset >= 190 AND partition = 1", 10),
        ("offset < 3", 6),
        ("offset IN (1, 2, 150)", 6),
        ("offset NOT IN (1, 2) AND offset < 10", 16),
        ("offset IS NULL", 0),
        ("topic = 'b'", 0),
        ("topic LIKE 'a%' AND partition != 0 AND offset BETWEEN 10 AND 12", 3),
        ("topic IS NOT NULL AND (offset = 3 OR offset = 4)", 4),
        (f"timestamp >= timestamp_millis({time_of(195)})", 10),
        (f"timestamp < timestamp_millis({time_of(1)})", 2),
        ("NOT (offset > 5)", 12),
        ("value = CAST('a-0:9' AS BINARY)", 1),
    ],
)
def test_jvm_filters_keep_the_rows_that_match(
    jvm: SparkSession, many_batches: Path, unfiltered: DataFrame, where: str, count: int
) -> None:
    rows = read(jvm, many_batches).where(where).toArrow()
    assert rows == unfiltered.where(where).toArrow()
    assert rows.num_rows == count


@pytest.mark.parametrize(
    ("where", "most"),
    [
        ("offset = 7", 10),
        ("offset >= 190 AND partition = 1", 10),
        ("topic = 'b'", 0),
        ("partition = 0", 200),
        (f"timestamp >= timestamp_millis({time_of(195)})", 20),
    ],
)
def test_jvm_filters_read_less(jvm: SparkSession, many_batches: Path, where: str, most: int) -> None:
    # batches of one run are decoded together
    assert run(read(jvm, many_batches).where(where))[1]["Records"] <= most


def test_jvm_filters_of_one_query_do_not_affect_another(jvm: SparkSession, many_batches: Path) -> None:
    frame = read(jvm, many_batches)
    assert frame.where("offset < 10").count() == 20
    assert frame.count() == 400
    assert frame.where("offset < 10").union(frame.where("offset >= 395 - 200")).count() == 20 + 10


# Errors


@pytest.fixture
def damaged(tmp_path: Path, log_dir: Path) -> Path:
    """A partition directory with one bit flipped in the checksum of its second batch."""
    directory = tmp_path / "codec-lz4-0"
    shutil.copytree(log_dir / "codec-lz4-0", directory)
    (log,) = directory.glob("*.log")
    second = list(kbat.read_batches(log))[1]
    content = bytearray(log.read_bytes())
    content[second.position + 17] ^= 1
    log.write_bytes(content)
    return directory


def test_jvm_corruption_is_reported_with_its_position(jvm: SparkSession, damaged: Path) -> None:
    start = "checksum mismatch: "
    message = message_of(partial(rows_of, jvm, damaged), start)
    assert f"({next(damaged.glob('*.log'))}: byte " in message
    assert "option onCorrupt=skip omits the batch" in message
    with pytest.raises(kbat.CrcError) as raised:
        read_in_python(damaged)
    assert message == str(raised.value)


def test_jvm_column_error_is_the_same(jvm: SparkSession, damaged: Path) -> None:
    rows = both(jvm, damaged, onCorrupt="report", columns="offset,value,segment,error")
    faults = [fault for fault in rows.column("error").to_pylist() if fault is not None]
    assert [fault["kind"] for fault in faults] == ["crc"]
    fields = [field.name for field in ERROR_COLUMN.data_type.fields]  # type: ignore[attr-defined]
    assert list(faults[0]) == fields
    assert run(read(jvm, damaged, onCorrupt="skip"))[1]["OffsetsLost"] > 0


@pytest.mark.parametrize(
    "given",
    [
        {"nonsense": 1},
        {"includeHeader": "true"},
        {"onCorrupt": "ignore"},
        {"maxRatio": "-1"},
        {"columns": "offset,offsets"},
        {"subscribe": "a", "assign": '{"a": [0]}'},
        {"startingOffsets": "latest"},
        {"assign": '{"gone": [0]}'},
        {"startingOffsets": '{"codec-lz4": {"0": 100000}}'},
        {"schema": "offset int"},
        {"schema": "offset bigint NOT NULL"},
        {"schema": "offset bigint, OFFSET_ bigint"},
        {"schema": "offset bigint", "onCorrupt": "report"},
    ],
)
def test_jvm_messages_are_those_of_the_python_source(jvm: SparkSession, log_dir: Path, given: dict[str, Any]) -> None:
    directory = log_dir / "codec-lz4-0"
    message = message_of(partial(rows_of, jvm, directory, **given))
    assert message == message_of(partial(read_in_python, directory, **given))


def test_jvm_path_that_does_not_exist_is_an_analysis_error(jvm: SparkSession, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(AnalysisException, match=f"^kbat: nothing is at {gone}") as raised:
        read(jvm, gone).count()
    assert str(raised.value) == message_of(partial(read_in_python, gone))


def test_jvm_option_engine_with_another_value_is_an_error(jvm: SparkSession, log_dir: Path) -> None:
    with pytest.raises(Exception, match="kbat: option engine='rust': must be auto, jvm or python"):
        read(jvm, log_dir, engine="rust")


# Which one runs


def test_jvm_runs_unless_python_is_asked_for(jvm: SparkSession, log_dir: Path) -> None:
    path = os.fspath(log_dir / "codec-lz4-0")
    assert "engine: jvm" in plan_of(jvm.read.format("kbat").load(path))
    assert "engine: jvm" in plan_of(read(jvm, log_dir, engine=" AUTO"))
    python = plan_of(read(jvm, log_dir, engine="python"))
    assert "(Python)" in python
    assert "engine: jvm" not in python


def test_jvm_setting_of_the_session_selects_the_engine(jvm: SparkSession, log_dir: Path) -> None:
    jvm.conf.set("spark.datasource.kbat.engine", "python")
    try:
        assert "(Python)" in plan_of(jvm.read.format("kbat").load(os.fspath(log_dir)))
        assert "engine: jvm" in plan_of(read(jvm, log_dir, engine="jvm"))
    finally:
        jvm.conf.unset("spark.datasource.kbat.engine")


def test_jvm_function_read_uses_it(jvm: SparkSession, log_dir: Path, tmp_path: Path) -> None:
    frame = kbat.spark.read(jvm, log_dir, includeHeaders=True, columns=["offset", "value"])
    assert "engine: jvm" in plan_of(frame)
    other = kbat.spark.read(jvm, log_dir, includeHeaders=True, columns=["offset", "value"], engine="python")
    assert "engine: jvm" not in plan_of(other)
    assert frame.schema == other.schema
    assert frame.toArrow() == other.toArrow()
    with pytest.raises(ValueError, match="did you mean includeHeaders"):
        kbat.spark.read(jvm, log_dir, includeHeader=True)
    with pytest.raises(FileNotFoundError, match="nothing is at"):
        kbat.spark.read(jvm, tmp_path / "gone")


def test_jvm_writes_the_rows_that_python_writes(jvm: SparkSession, log_dir: Path, tmp_path: Path) -> None:
    names = ["topic", "partition", "offset", "key", "value", "headers", "timestamp"]

    def all_rows(path: Path) -> pa.Table:
        frame = read(jvm, path, subscribePattern="^codec-", includeHeaders=True).select(names)
        return frame.sort(*names[:3]).toArrow()

    large = "if(offset = 7, CAST(repeat('x', 3000000) AS BINARY), value)"  # more than is passed to Rust at once
    rows = read(jvm, log_dir, subscribePattern="^codec-", includeHeaders=True).sort(*names[:3]).coalesce(1)
    rows = rows.select(*names).withColumn("value", functions.expr(large))
    for engine in ENGINES:
        writer = rows.write.format("kbat").option("engine", engine).option("compression", "zstd").mode("append")
        writer.save(os.fspath(tmp_path / engine))
    written = all_rows(tmp_path / "jvm")
    assert written == all_rows(tmp_path / "python")
    assert written.drop(["value", "offset"]) == all_rows(log_dir).drop(["value", "offset"])
    assert max(len(value or b"") for value in written["value"].to_pylist()) == 3_000_000


@pytest.mark.parametrize("partition_by", [(), ("topic", "partition", "date", "hour")])
def test_jvm_parquet_files_have_the_rows_of_the_python_source(
    jvm: SparkSession, log_dir: Path, tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    written = [
        kbat.spark.to_parquet(
            jvm, log_dir, tmp_path / engine, partition_by=partition_by, engine=engine, maxPartitionBytes="50k"
        )
        for engine in ENGINES
    ]
    # the JVM may divide the rows between other tasks
    assert written[0].row_count == written[1].row_count > 1000
    assert sorted(file.path for file in written[0].files) == sorted(map(str, (tmp_path / "jvm").rglob("*.parquet")))
    found, expected = [
        jvm.read.parquet(os.fspath(tmp_path / engine)).sort("topic", "partition", "offset").toArrow()
        for engine in ENGINES
    ]
    assert found == expected
    assert not list((tmp_path / "jvm").glob(".*"))


def test_jvm_parquet_of_corruption_leaves_nothing(jvm: SparkSession, damaged: Path, tmp_path: Path) -> None:
    message = message_of(lambda: kbat.spark.to_parquet(jvm, damaged, tmp_path / "out"), "checksum mismatch: ")
    assert f"({next(damaged.glob('*.log'))}: byte " in message
    assert not (tmp_path / "out").exists()


def test_jvm_write_shows_errors_of_rows_and_options(jvm: SparkSession, tmp_path: Path) -> None:
    rows = jvm.range(3).selectExpr("CAST(id AS STRING) AS value", "'t' AS topic", "-1 AS partition")
    save = rows.write.format("kbat").mode("append").save
    assert message_of(lambda: save(os.fspath(tmp_path))).startswith("kbat: -1 is not a valid partition")
    wrong = rows.withColumn("value", functions.lit(1))
    message = message_of(lambda: wrong.write.format("kbat").mode("append").save(os.fspath(tmp_path)))
    assert message == "kbat: column value has type int, but must be binary or string"
    assert list(tmp_path.iterdir()) == []


def test_jvm_counts_and_extremes_of_offsets_come_from_headers(jvm: SparkSession, log_dir: Path) -> None:
    for directory in sorted(log_dir.glob("*-[0-9]")):
        frame = read(jvm, directory)
        totals = tuple(frame.selectExpr("count(*)", "min(offset)", "max(offset)").collect()[0])
        offsets = [row.offset for row in frame.select("offset", "value").collect()]
        assert totals == (len(offsets), min(offsets), max(offsets)), directory.name
    assert "PushedAggregates: [count]" in plan_of(read(jvm, log_dir).groupBy().count())


def test_jvm_does_not_count_headers_of_rows_that_may_be_excluded(jvm: SparkSession, log_dir: Path) -> None:
    for options in ({"isolationLevel": "read_committed"}, {"onCorrupt": "skip"}, {"view": "batches"}):
        counted = read(jvm, log_dir, **options).groupBy().count()
        assert "PushedAggregates" not in plan_of(counted), options
    since = read(jvm, log_dir, startingTimestamp="2024-01-01T00:00:00Z")
    assert since.count() == len(since.select("offset").collect()) < read(jvm, log_dir).count()
