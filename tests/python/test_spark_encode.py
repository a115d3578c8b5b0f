"""kbat.spark.encode in the JVM: the same rows, schemas and errors as in Python."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import types

import kbat.spark
from spark_faces import ENGINES, plan_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

# Several megabytes, which the JVM passes to Rust in several parts. All logs are in both parts.
MANY = """SELECT CONCAT('t', id % 2) AS topic, INT(id % 3) AS partition, id AS offset,
IF(id % 5 = 0, NULL, BINARY(STRING(id))) AS key, BINARY(REPEAT(STRING(id), INT(id % 100))) AS value,
TIMESTAMP_MICROS(1700000000000000 + id * 1001) AS timestamp,
IF(id % 7 = 0, NULL, ARRAY(STRUCT('h' AS key, BINARY(STRING(id)) AS value))) AS headers FROM RANGE(20000)"""

OPTIONS: list[dict[str, Any]] = [
    {},
    {"compression": "zstd", "level": 5, "batch_rows": 7},
    {"compression": "lz4", "batch_bytes": 10_000_000},
    {"producer_id": 5, "producer_epoch": 1, "base_sequence": 2**31 - 100, "transactional": True},
    {"timestamp_type": "LogAppendTime", "log_append_time": 1_700_000_000_000, "partition_leader_epoch": 3},
    {"by": [], "order_by": "offset", "batch_bytes": 1},
    {"by": "key"},
]

# Options for rows that have neither offsets nor timestamps.
WITHOUT_COLUMNS: list[dict[str, Any]] = [
    {"magic": 0},
    {"magic": 1, "compression": "gzip"},
    {"timestamp": datetime(2026, 1, 1, tzinfo=UTC)},
    {"timestamp": "2026-01-01T00:00:00Z", "compression": "snappy"},
]

# Columns of two logs, which differ in column `a`.
COLUMNS = {
    "text": "'k' AS key, 'v' AS value, TIMESTAMP_NTZ'2026-01-01 00:00:00.0019' AS timestamp",
    "bytes": "X'00' AS key, CAST(NULL AS BINARY) AS value, 5L AS timestamp",
    "nulls": "NULL AS key, NULL AS value, NULL AS timestamp, NULL AS headers",
    "map": "'v' AS value, MAP('x', X'01', 'y', NULL) AS headers, TIMESTAMP_MILLIS(1) AS timestamp",
    "map of nulls": "'v' AS value, MAP('x', NULL) AS headers, 0L AS timestamp",
    "nothing": "'v' AS value, ARRAY() AS headers, 0L AS timestamp",
    "by position": "'v' AS value, ARRAY(STRUCT('x' AS a, 'y' AS b)) AS headers, 0L AS timestamp",
    "by name": "'v' AS value, ARRAY(STRUCT(NULL AS value, 'y' AS key)) AS headers, 0L AS timestamp",
}

ERRORS = {
    "'v' AS value, 0L AS timestamp, 1 - id AS offset": "row 1: offset 0 does not follow 1",
    "'v' AS value, 0L AS timestamp, NULLIF(id, 1) AS offset": "row 1: the offset is null",
    "'v' AS value, 0L AS timestamp, INT(id) AS offset": "column offset has the unsupported type Int32; use int64",
    "'v' AS value, TIMESTAMP_SECONDS(-id) AS timestamp": "row 1: timestamp -1000 is negative",
    "5 AS value, 0L AS timestamp": "column value has the unsupported type Int32; use binary",
    "'v' AS value, DATE'2026-01-01' AS timestamp": "column timestamp has the unsupported type",
    "'v' AS value, 0L AS timestamp, ARRAY('x') AS headers": "column headers has the unsupported type List",
    "'v' AS value, 0L AS timestamp, ARRAY(STRUCT(STRING(NULL) AS key, 'y' AS value)) AS headers": "a header has no key",
}


@contextmanager
def engine_of(spark: SparkSession, engine: str) -> Iterator[None]:
    spark.conf.set("spark.datasource.kbat.engine", engine)
    try:
        yield
    finally:
        spark.conf.unset("spark.datasource.kbat.engine")


def both(spark: SparkSession, frame: DataFrame, **options: Any) -> pa.Table:  # noqa: ANN401 -- those of encode
    """Return the rows that the JVM encodes, which are those of Python, in the same order."""
    frames = []
    for engine in ENGINES:
        with engine_of(spark, engine):
            frames.append(kbat.spark.encode(frame, **options))
    assert frames[0].schema == frames[1].schema
    assert ["MapInArrow" in plan_of(frame) for frame in frames] == [False, True]
    found, expected = [frame.toArrow().combine_chunks() for frame in frames]
    assert found == expected
    return found


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_encode_in_the_jvm_continues_batches_as_in_python(jvm: SparkSession, options: dict[str, Any]) -> None:
    made = both(jvm, jvm.sql(MANY), **options)
    counts: list[Any] = made.column("recordCount").to_pylist()
    assert sum(counts) == 20_000


@pytest.mark.parametrize("options", WITHOUT_COLUMNS, ids=repr)
def test_encode_in_the_jvm_has_the_options_of_python(jvm: SparkSession, options: dict[str, Any]) -> None:
    frame = jvm.sql(MANY).select("topic", "value").sort("value")
    made = both(jvm, frame, **{"timestamp": 1, "base_offset": 7} | options)
    assert made.column("baseOffset").to_pylist().count(7) == 2


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_encode_in_the_jvm_reads_the_columns_of_python(jvm: SparkSession, columns: str) -> None:
    made = both(jvm, jvm.sql(f"SELECT id > 0 AS a, {columns} FROM RANGE(3)"), by="a")  # noqa: S608 -- from above
    assert made.column("recordCount").to_pylist() == [1, 2]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("columns", "message"), ERRORS.items())
def test_encode_names_what_does_not_fit(jvm: SparkSession, engine: str, columns: str, message: str) -> None:
    frame = jvm.sql(f"SELECT id, {columns} FROM RANGE(2)")  # noqa: S608 -- from above
    with engine_of(jvm, engine), pytest.raises(PySparkException, match=message):
        kbat.spark.encode(frame, by=[], order_by="id").collect()


@pytest.mark.parametrize("engine", ENGINES)
def test_encode_names_the_log_of_an_error(jvm: SparkSession, engine: str) -> None:
    key = "'größe' AS topic, TINYINT(-1) AS p, id = 1 AS flag, CURRENT_DATE() AS day, NULLIF(id, 1) AS n"
    frame = jvm.sql(f"SELECT {key}, 'v' AS value, 0L AS timestamp, -id AS offset FROM RANGE(1, 3)")  # noqa: S608 -- from above
    messages = {
        "offset = -1": "topic=größe, p=-1, flag=true, n=null: row 0: offset -1 is negative",
        "offset = -2": "topic=größe, p=-1, flag=false, n=2: row 0: offset -2 is negative",
    }
    for rows, message in messages.items():
        with engine_of(jvm, engine), pytest.raises(PySparkException, match=message):
            kbat.spark.encode(frame.where(rows), by=["topic", "p", "flag", "day", "n"]).collect()


def test_encode_in_the_jvm_has_the_keys_of_python(jvm: SparkSession) -> None:
    kinds = "TIMESTAMP'0001-01-01 00:00:00' AS t, DATE'1582-10-10' AS d, CAST(id AS DECIMAL(38, 9)) AS x, NULL AS n"
    frame = jvm.sql(f"SELECT 'v' AS value, {kinds}, id % 2 = 0 AS b, SMALLINT(id) AS s FROM RANGE(10)")  # noqa: S608 -- from above
    assert both(jvm, frame, by=["t", "d", "x", "b", "s"], timestamp=0).num_rows == 10
    with pytest.raises(ValueError, match="by='n': type void can't identify a log"):
        kbat.spark.encode(frame, by="n", timestamp=0)


def test_encode_in_the_jvm_keeps_nullability_and_metadata(jvm: SparkSession) -> None:
    key = types.StructField("s.x`", types.IntegerType(), nullable=False, metadata={"unit": "log"})
    value = types.StructField("value", types.StringType())
    frame = jvm.createDataFrame([(1, "a"), (2, "b"), (1, None)], types.StructType([key, value]))
    with engine_of(jvm, "jvm"):
        encoded = kbat.spark.encode(frame, by="s.x`", timestamp=0)
    assert encoded.schema[0] == key
    assert encoded.schema[0].metadata == key.metadata
    assert both(jvm, frame, by="s.x`", timestamp=0).column("recordCount").to_pylist() == [2, 1]


def test_encode_in_the_jvm_of_no_rows_or_one(jvm: SparkSession) -> None:
    frame = jvm.sql(MANY)
    assert both(jvm, frame.where("offset < 0")).num_rows == 0
    with engine_of(jvm, "jvm"):
        encoded = kbat.spark.encode(frame, batch_rows=1)
        assert len(encoded.limit(1).collect()) == 1
        assert encoded.count() == 20_000


@pytest.mark.parametrize("engine", ENGINES)
def test_encode_of_a_stream_has_the_batches_of_each_micro_batch(jvm: SparkSession, tmp_path: Path, engine: str) -> None:
    rows = jvm.sql("SELECT 'a' AS topic, STRING(id) AS value FROM RANGE(10)").coalesce(1)
    for _ in range(2):
        rows.write.mode("append").parquet(str(tmp_path / "rows"))
    stream = jvm.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "rows"))
    with engine_of(jvm, engine):
        with pytest.raises(ValueError, match="can't sort a stream"):
            kbat.spark.encode(stream, timestamp=0)
        encoded = kbat.spark.encode(stream, repartition=False, timestamp=0, batch_rows=6)
    sink = encoded.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    sink.trigger(availableNow=True).start(str(tmp_path / "batches")).awaitTermination()
    found = jvm.read.parquet(str(tmp_path / "batches")).select("topic", "baseOffset", "recordCount").collect()
    assert sorted(map(tuple, found)) == [("a", 0, 6), ("a", 0, 6), ("a", 6, 4), ("a", 6, 4)]
