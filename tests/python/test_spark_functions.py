"""kbat.spark.read, decode and encode, and the SQL functions."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, functions

import kbat
import kbat.spark
from data import DATA, build
from expected import case_directories
from growing_log import GrowingLog
from kbat.spark import sql
from kbat.spark.decoding import SLICE_LEN, Decoder
from kbat.spark.encoding import Encoder, runs
from kbat.spark.options import parse_options
from kbat.spark.rows import null_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("offset", "timestamp", "timestampType", "key", "value", "headers")
FIELDS = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")


def scanned(data: bytes) -> pa.Table:
    table = kbat.scan(data, columns=list(FIELDS), timestamp_unit="us").to_pyarrow()
    return pa.Table.from_batches(map(null_headers, table.to_batches()), table.schema)


# read


def test_read_gives_what_the_source_gives(spark: SparkSession, log_dir: Path) -> None:
    fast = kbat.spark.read(spark, log_dir, includeHeaders=True, maxPartitionBytes="200k")
    source = spark.read.format("kbat").option("includeHeaders", value=True).load(os.fspath(log_dir))
    assert fast.schema == source.schema
    assert fast.toArrow() == source.toArrow()
    assert fast.rdd.getNumPartitions() > 3


def test_read_takes_paths_bounds_and_a_schema(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a-0", "a-1", "b-0"):
        GrowingLog(tmp_path / name).append(10)
    paths = [tmp_path / "a-0", tmp_path / "b-0"]
    starts = {"a": {"0": 7}, "b": {"0": -2}}
    frame = kbat.spark.read(spark, paths, schema="topic string, offset bigint", startingOffsets=starts)
    assert frame.columns == ["topic", "offset"]
    found = sorted((row.topic, row.offset) for row in frame.collect())
    assert found == [("a", offset) for offset in (7, 8, 9)] + [("b", offset) for offset in range(10)]
    batches = kbat.spark.read(spark, tmp_path, assign={"a": [1]}, view="batches", columns=["recordCount", "size"])
    assert batches.columns == ["recordCount", "size"]
    assert [row.recordCount for row in batches.collect()] == [10]


def test_read_of_nothing_has_the_schema(spark: SparkSession, tmp_path: Path) -> None:
    # the JVM's data source warns in Spark's log
    in_jvm = os.environ.get("KBAT_TEST_ENGINE") == "jvm"
    with nullcontext() if in_jvm else pytest.warns(UserWarning, match="the read has no rows"):
        frame = kbat.spark.read(spark, tmp_path)
    assert (frame.count(), len(frame.columns)) == (0, 7)


def test_read_refuses_at_once_what_does_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown option includeHeader; did you mean"):
        kbat.spark.read(spark, tmp_path, includeHeader=True)
    with pytest.raises(FileNotFoundError, match="nothing is at"):
        kbat.spark.read(spark, tmp_path / "gone")
    with pytest.raises(ValueError, match="startingOffsets can't be latest"):
        kbat.spark.read(spark, tmp_path, startingOffsets="latest")


def test_none_leaves_an_option_out(spark: SparkSession, tmp_path: Path) -> None:
    """As in Spark's own `option`; the text of None is not a topic."""
    path = tmp_path / "0.log"
    path.write_bytes(batch_of(2))
    frame = kbat.spark.read(spark, path, topic=None, partition=None, columns=None, maxBatchLen=None)
    assert [(row.topic, row.partition) for row in frame.collect()] == [(None, None)] * 2
    blobs = spark.createDataFrame([(batch_of(2),)], "value binary")
    assert kbat.spark.decode(blobs, "value", on_corrupt=None, batch_len=None).count() == 2


# decode, without Spark


def decoder(options: dict[str, str]) -> Decoder:
    parsed = parse_options(options)
    names = ("offset", "value", "error") if parsed.on_corrupt == "report" else ("offset", "value")
    return Decoder(parsed, "bytes", ("id",), tuple((name, name) for name in names))


def decoded(values: Sequence[bytes | None], **options: str) -> list[dict[str, Any]]:
    batch = pa.record_batch([pa.array(values, pa.binary()), pa.array(range(len(values)))], ["bytes", "id"])
    return [row for part in decoder(options).decode(batch) for row in part.to_pylist()]


def batch_of(count: int, base_offset: int = 0, **settings: Any) -> bytes:  # noqa: ANN401 -- those of kbat.BatchBuilder
    return build([(0, None, b"%d" % place) for place in range(count)], base_offset=base_offset, **settings)


def test_decode_repeats_the_row_for_each_record() -> None:
    values = [batch_of(2), None, b"", batch_of(1, 9, compression="zstd") + batch_of(2, 3), batch_of(1, magic=1), b""]
    found = decoded(values)
    expected = [(0, 0), (0, 1), (3, 9), (3, 3), (3, 4), (4, 0)]
    assert [(row["id"], row["offset"]) for row in found] == expected
    assert decoded([None, b""]) == []
    assert decoded([]) == []


def test_decode_passes_over_a_cut_batch_at_the_end_of_a_row() -> None:
    whole, cut = batch_of(2), batch_of(3, 7)[:-1]
    found = decoded([whole + cut, whole, cut, cut[:5], whole])
    assert [(row["id"], row["offset"]) for row in found] == [(0, 0), (0, 1), (1, 0), (1, 1), (4, 0), (4, 1)]


def test_decode_never_joins_the_bytes_of_two_rows() -> None:
    batch = batch_of(2)
    for place in range(1, len(batch)):
        assert decoded([batch[:place], batch[place:], batch], onCorrupt="skip")[-2:] == [
            {"id": 2, "offset": 0, "value": b"0"},
            {"id": 2, "offset": 1, "value": b"1"},
        ]
        assert {row["id"] for row in decoded([batch[:place], batch[place:], batch], onCorrupt="skip")} == {2}


def test_decode_positions_are_those_in_the_row() -> None:
    batch = batch_of(1)
    bad = bytearray(batch)
    bad[-2] ^= 1
    for values in ([batch, batch + batch], [batch, batch + batch, bytes(bad)]):
        options = parse_options({"onCorrupt": "skip"})
        parts = Decoder(options, "bytes", ("id",), (("position", "position"),)).decode(
            pa.record_batch([pa.array(values, pa.binary()), pa.array(range(len(values)))], ["bytes", "id"])
        )
        found = [(row["id"], row["position"]) for part in parts for row in part.to_pylist()]
        assert found == [(0, 0), (1, 0), (1, len(batch))]


def test_decode_repeats_large_columns_in_small_arrow_batches() -> None:
    kept = pa.array([b"x" * (1 << 20), b"y"])
    columns: list[pa.Array[Any]] = [pa.array([batch_of(100), batch_of(100)], pa.binary()), pa.array([0, 1]), kept]
    made = Decoder(parse_options({}), "bytes", ("id", "kept"), (("offset", "offset"),)).decode(
        pa.record_batch(columns, ["bytes", "id", "kept"])
    )
    sizes: list[int] = []
    found: list[tuple[int, int]] = []
    for part in made:
        sizes.append(part.nbytes)
        found += zip(*(part.column(name).to_pylist() for name in ("id", "offset")), strict=True)
    assert found == [(row, offset) for row in (0, 1) for offset in range(100)]
    assert max(sizes) <= SLICE_LEN + (1 << 20)


def test_decode_of_damage_fails_skips_or_reports() -> None:
    bad = bytearray(batch_of(2, 5))
    bad[-2] ^= 1
    values = [batch_of(1), bytes(bad), batch_of(1, 8) + bytes(bad) + batch_of(1, 9)]
    with pytest.raises(kbat.CrcError):
        decoded(values)
    skipped = [(row["id"], row["offset"]) for row in decoded(values, onCorrupt="skip")]
    assert skipped == [(0, 0), (2, 8), (2, 9)]
    reported = decoded(values, onCorrupt="report")
    assert [(row["id"], row["offset"], row["error"] and row["error"]["kind"]) for row in reported] == [
        (0, 0, None),
        (1, None, "crc"),
        (2, 8, None),
        (2, None, "crc"),
        (2, 9, None),
    ]
    assert len(decoded(values, checkCrc="false")) == 7
    assert decoded([batch_of(1)], onCorrupt="report") == [{"id": 0, "offset": 0, "value": b"0", "error": None}]


def test_decode_of_much_goes_by_slices() -> None:
    value = bytes(100_000)
    batch = build([(0, None, value)] * 10)
    rows = 2 * SLICE_LEN // len(batch) + 3
    found = decoded([batch] * rows)
    assert [row["id"] for row in found] == [row for row in range(rows) for _ in range(10)]


SOME = [case for case in case_directories() if case.name.startswith(("codec", "k0102", "txn"))]


@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
def test_decode_of_a_corpus_case_is_what_scan_gives(case: Path) -> None:
    logs = [log.read_bytes() for log in sorted(case.glob("*.log"))]
    tables = [kbat.scan(log, columns=["offset", "value"]).to_pyarrow() for log in logs]
    expected = pa.concat_tables(tables).to_pylist()
    batches = [bytes(batch) for log in logs for batch in kbat.read_batches(log)]
    for values in (batches, logs):
        assert [{"offset": row["offset"], "value": row["value"]} for row in decoded(values)] == expected


# encode, without Spark


def test_runs_end_where_a_key_changes() -> None:
    topics = pa.array(["a", "a", None, None, "b", "b", "b"])
    partitions = pa.array([0, 1, 1, 1, 1, 1, None])
    batch = pa.record_batch([topics, partitions, pa.array(range(7))], ["topic", "partition", "value"])
    found = [
        ([part.as_py() for part in key], rows.column("value").to_pylist())
        for key, rows in runs([batch], ["topic", "partition"])
    ]
    assert found == [(["a", 0], [0]), (["a", 1], [1]), ([None, 1], [2, 3]), (["b", 1], [4, 5]), (["b", None], [6])]
    assert [rows.num_rows for _, rows in runs([batch, batch.slice(0, 0)], [])] == [7]


def test_encode_makes_batches_across_arrow_batches() -> None:
    def parts() -> Iterator[pa.RecordBatch]:
        for start in range(0, 30, 3):
            numbers = range(start, start + 3)
            topics = pa.array(["a" if number < 20 else "b" for number in numbers])
            values = pa.array([b"%d" % number for number in numbers])
            yield pa.record_batch([topics, values], ["topic", "value"])

    encoder = Encoder(("topic",), ("value",), (("batch_rows", 8), ("timestamp", 5), ("compression", "lz4")))
    found = [row for batch in encoder.encode(parts()) for row in batch.to_pylist()]
    assert [(row["topic"], row["baseOffset"], row["lastOffset"], row["recordCount"]) for row in found] == [
        ("a", 0, 7, 8),
        ("a", 8, 15, 8),
        ("a", 16, 19, 4),
        ("b", 0, 7, 8),
        ("b", 8, 9, 2),
    ]
    assert values_of(row["batch"] for row in found) == [b"%d" % number for number in range(30)]


def values_of(batches: Iterable[bytes]) -> list[Any]:
    scan = kbat.scan(b"".join(bytes(batch) for batch in batches), columns=["value"])
    return scan.to_pyarrow().column(0).to_pylist()


# through Spark


@pytest.fixture(scope="module")
def registered(face: SparkSession) -> SparkSession:
    kbat.spark.register(face)
    return face


def test_names_in_another_case_are_not_passed_over(registered: SparkSession) -> None:
    frame = registered.createDataFrame([("A", b"k", b"v")], "Topic string, Key binary, value binary")
    with pytest.raises(ValueError, match="column Topic: rename it to topic"):
        kbat.spark.encode(frame)
    with pytest.raises(ValueError, match="column Key: rename it to key"):
        kbat.spark.encode(frame, by=["Topic"])
    with pytest.raises(PySparkException, match="column Key: rename it to key"):
        frame.selectExpr("kbat_encode(array(struct(Key, value)), 'none')").collect()


def test_names_in_another_case_are_not_passed_over_by_the_function_of_spark_4_0() -> None:
    with pytest.raises(ValueError, match="column Key: rename it to key"):
        sql.encode_one([Row(Key=b"k", value=b"v")])


def test_what_the_driver_knows_to_be_wrong_is_said_at_once(registered: SparkSession) -> None:
    frame = registered.createDataFrame([("A", bytearray(b"v"))], "topic string, value binary")
    with pytest.raises(ValueError, match="columns and keep are both empty"):
        kbat.spark.decode(frame, "value", columns=[], keep=[])
    with pytest.raises(ValueError, match="the column error is added as the last column"):
        kbat.spark.decode(frame, "value", columns=["offset", "error"])
    with pytest.raises(ValueError, match="there is no column timestamp"):
        kbat.spark.encode(frame)
    with pytest.raises(ValueError, match="cast it to a plain string"):
        kbat.spark.encode(frame.selectExpr("topic collate utf8_lcase as topic", "value"), timestamp=0)


def test_decode_and_encode_are_inverse(registered: SparkSession, log_dir: Path) -> None:
    source = kbat.spark.read(registered, log_dir, subscribe="codec-lz4,codec-none,idempotent", includeHeaders=True)
    batches = kbat.spark.encode(source, compression="zstd", batch_rows=50).cache()
    assert batches.columns == ["topic", "partition", "baseOffset", "lastOffset", "recordCount", "batch"]
    of_records = ["offset", "timestamp", "key", "value", "headers"]
    columns = ["topic", "partition", *of_records]
    rows = kbat.spark.decode(batches, "batch", keep=["topic", "partition"], columns=of_records)
    order = ["topic", "offset"]
    assert rows.select(columns).orderBy(order).toArrow() == source.select(columns).orderBy(order).toArrow()
    assert batches.where("recordCount > 50").count() == 0


def test_encode_orders_and_groups_as_told(registered: SparkSession) -> None:
    rows = [(who, place, f"{place}") for place in range(9, -1, -1) for who in "xy"]
    frame = registered.createDataFrame(rows, "who string, place int, value string")
    encoded = kbat.spark.encode(frame, by=["who"], order_by=["place"], timestamp=0, batch_rows=4)
    found = encoded.orderBy("who", "baseOffset").collect()
    assert [(row.who, row.baseOffset, row.recordCount) for row in found] == [
        (who, offset, count) for who in "xy" for offset, count in ((0, 4), (4, 4), (8, 2))
    ]
    assert values_of(row.batch for row in found[:3]) == [b"%d" % place for place in range(10)]
    whole = kbat.spark.encode(frame.select("value"), timestamp=0).collect()
    assert [row.recordCount for row in whole] == [20]


def test_names_of_columns_may_have_dots_and_backticks(registered: SparkSession) -> None:
    frame = registered.createDataFrame([("a", 1, "v")], "`s.x` string, `o``y` int, value string")
    encoded = kbat.spark.encode(frame, by=["s.x"], order_by=["o`y"], timestamp=0)
    assert encoded.columns[0] == "s.x"
    dotted = encoded.withColumnsRenamed({"batch": "b.x", "baseOffset": "base`"})
    found = kbat.spark.decode(dotted, "b.x", keep=["s.x", "base`"], columns=["value"]).collect()
    assert [tuple(row) for row in found] == [("a", 0, b"v")]


def test_text_is_one_name(registered: SparkSession) -> None:
    frame = registered.createDataFrame([("b", 2, "w"), ("a", 1, "v")], "who string, place int, value string")
    encoded = kbat.spark.encode(frame, by="who", order_by="place", timestamp=0)
    assert encoded.columns[:2] == ["who", "baseOffset"]
    rows = kbat.spark.decode(encoded.drop("baseOffset"), "batch", columns="value", keep="who")
    assert sorted(map(tuple, rows.collect())) == [("a", b"v"), ("b", b"w")]


KEYS = """SELECT 'v' AS value, col AS a, col > 1 AS b, CAST(col AS DECIMAL(5, 1)) AS c, DATE_FROM_UNIX_DATE(col) AS d,
TIMESTAMP_SECONDS(col) AS e, CAST(CAST(col AS STRING) AS BINARY) AS f, CAST(col AS TINYINT) AS g,
CAST(TIMESTAMP_SECONDS(col) AS TIMESTAMP_NTZ) AS h FROM (SELECT EXPLODE(ARRAY(1, 2, 2, NULL, NULL)))"""


def test_encode_groups_by_all_that_tells_a_log(registered: SparkSession) -> None:
    frame = registered.sql(KEYS)
    for by in ("a", "c", "d", "e", "f", "g", "h", list("abcdefgh")):
        encoded = kbat.spark.encode(frame, by=by, timestamp=0)
        assert sorted(row.recordCount for row in encoded.collect()) == [1, 2, 2]


REFUSED: list[tuple[Callable[[DataFrame], object], str]] = [
    (lambda df: kbat.spark.decode(df, "nothing"), "the DataFrame has no column nothing; it has id, value, text"),
    (lambda df: kbat.spark.decode(df, "text"), "column text has type string, but must be binary"),
    (lambda df: kbat.spark.decode(df, "value", keep=["id"], columns=["topic"]), "batches do not contain a topic"),
    (lambda df: kbat.spark.decode(df.withColumnRenamed("id", "Offset"), "value"), "a column offset; rename it"),
    (lambda df: kbat.spark.decode(df, "value", checkCrc=False), "no option checkCrc; choose among on_corrupt"),
    (lambda df: kbat.spark.decode(df, "value", on_corrupt="drop"), "must be fail, skip or report"),
    (lambda df: kbat.spark.encode(df, by=["topic"]), "the DataFrame has no column topic"),
    (lambda df: kbat.spark.encode(df.select("id")), "the DataFrame has no column value"),
    (lambda df: kbat.spark.encode(df, compression="brotli"), "brotli"),
    (lambda df: kbat.spark.decode(df, "value", columns=["offset", "offset"]), "columns names offset twice"),
    (
        lambda df: kbat.spark.decode(df, "value", columns=["baseOffset", "base_offset"]),
        "columns names base_offset twice",
    ),
    (lambda df: kbat.spark.decode(df, "value", keep=["id", "id"]), "keep names id twice"),
    (lambda df: kbat.spark.encode(df, by=["id", "id"]), "by names id twice"),
    (lambda df: kbat.spark.encode(df, by=5), "by names columns as text, not 5"),  # type: ignore[arg-type]
    (lambda df: kbat.spark.encode(df, by=df.id), "by names columns as text, not Column<'id'>"),  # type: ignore[arg-type]
    (lambda df: kbat.spark.encode(df, order_by=[df.id]), "order_by names columns as text, not Column<'id'>"),  # type: ignore[list-item]
    (
        lambda df: kbat.spark.encode(df.withColumnRenamed("id", "Batch"), by="Batch"),
        "the result has a column of that",
    ),
    (lambda df: kbat.spark.encode(df.withColumn("x", functions.struct("id")), by="x"), "type struct<id:int> can't"),
    (lambda df: kbat.spark.encode(df.withColumn("x", functions.lit(0.5)), by="x"), "type double can't identify"),
    (lambda df: kbat.spark.encode(df.withColumn("x", functions.array("id")), by="x"), "type array<int> can't"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_functions_refuse_at_once_what_does_not_fit(
    spark: SparkSession, call: Callable[[DataFrame], object], message: str
) -> None:
    frame = spark.createDataFrame([], "id int, value binary, text string")
    with pytest.raises(ValueError, match=message):
        call(frame)


def test_completion_offers_the_functions_and_no_imports() -> None:
    assert sorted(dir(kbat.spark)) == sorted(kbat.spark.__all__)
    assert all(callable(getattr(kbat.spark, name)) for name in dir(kbat.spark) if name != "SETTINGS")
    assert set(map(type, kbat.spark.SETTINGS.values())) == {str}


def test_decode_of_a_column_object_is_an_error(spark: SparkSession) -> None:
    column: Any = functions.col("value")
    with pytest.raises(TypeError, match="must be the name of a column"):
        kbat.spark.decode(spark.range(1), column)


def test_decode_of_large_values_goes_by_parts(registered: SparkSession) -> None:
    value = bytes(100_000)
    logs = [build([(0, None, value)] * 10, base_offset=base) for base in range(0, 150, 10)]
    whole, bad = b"".join(logs), bytearray(b"".join(logs))
    bad[7 * len(logs[0]) - 1] ^= 1
    assert len(whole) > 3 * SLICE_LEN
    frame = registered.createDataFrame([(0, whole), (1, bytes(bad)), (2, whole + logs[0][:-1])], "id int, value binary")
    columns = ["offset", "position"]
    rows = kbat.spark.decode(frame, "value", keep="id", columns=columns, on_corrupt="skip").collect()
    expected = [(offset, len(logs[0]) * (offset // 10)) for offset in range(150)]
    skipped = [row for row in expected if row[0] // 10 != 6]
    assert [tuple(row) for row in rows] == [
        *((0, *row) for row in expected),
        *((1, *row) for row in skipped),
        *((2, *row) for row in expected),
    ]
    reported = kbat.spark.decode(frame, "value", keep="id", columns=columns, on_corrupt="report")
    faults = [(row.id, row.position, row.error.kind) for row in reported.collect() if row.error]
    assert faults == [(1, 6 * len(logs[0]), "crc"), (2, len(whole), "truncated")]
    with pytest.raises(PySparkException, match=f"byte {6 * len(logs[0]) + 17}, base offset 60"):
        kbat.spark.decode(frame.where("id = 1"), "value", columns="offset").collect()


def test_decode_of_no_columns_repeats_the_rows(registered: SparkSession) -> None:
    frame = registered.createDataFrame([(1, 7, batch_of(2)), (2, 8, None)], "part int, offset int, value binary")
    rows = kbat.spark.decode(frame, "value", columns=[]).collect()
    assert [row.asDict() for row in rows] == [{"part": 1, "offset": 7}] * 2


def test_decode_of_damage_through_spark_fails(registered: SparkSession) -> None:
    bad = batch_of(1)[:-1] + b"\xff"
    frame = registered.createDataFrame([(bad,)], "value binary")
    with pytest.raises(PySparkException, match="checksum mismatch: stored 0x") as failed:
        kbat.spark.decode(frame, "value", columns=["offset"]).collect()
    assert '"report" adds a row that describes it, check_crc=False reads' in str(failed.value)
    with pytest.raises(PySparkException, match="raise the limit with one of the arguments batch_len, decompressed_len"):
        kbat.spark.decode(frame, "value", columns=["offset"], batch_len=61).collect()
    assert kbat.spark.decode(frame, "value", columns=["offset"], on_corrupt="skip").count() == 0
    reported = kbat.spark.decode(frame, "value", columns=["offset"], on_corrupt="report").collect()
    assert [row.error.kind for row in reported] == ["crc"]


def test_sql_functions_are_inverse(registered: SparkSession) -> None:
    log = min((DATA / "log-dir" / "codec-lz4-0").glob("*.log"))
    blobs = registered.createDataFrame([(1, log.read_bytes()), (2, None)], "id int, value binary")
    blobs.createOrReplaceTempView("blobs")
    rows = registered.sql("SELECT id, inline(kbat_decode(value)) FROM blobs")
    assert rows.columns == ["id", *COLUMNS]
    expected = scanned(log.read_bytes())
    assert rows.drop("id").toArrow().to_pydict() == expected.rename_columns(list(COLUMNS)).to_pydict()
    records = "array_sort(collect_list(struct(offset, timestamp, key, value, headers)))"
    (row,) = rows.groupBy("id").agg(functions.expr(f"kbat_encode({records}, 'gzip') AS batch")).collect()
    (batch, *_) = kbat.read_batches(bytes(row.batch))
    assert batch.compression == "gzip"
    assert scanned(bytes(row.batch)).to_pydict() == expected.to_pydict()
    assert registered.sql("SELECT kbat_decode(value) AS records FROM blobs WHERE id = 2").collect()[0].records is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("kbat_decode(1)", "kbat_decode takes a binary column"),
        ("kbat_decode('abc')", "kbat_decode takes a binary column"),
        ("kbat_encode('a', 'none')", "kbat_encode takes an array of structs whose fields are some of key, value"),
        ("kbat_encode(array('a'), 'none')", "kbat_encode takes an array of structs"),
        (
            "kbat_encode(transform(sequence(1, 3), x -> if(x = 2, null, struct(nullif(string(x), '9') AS value))))",
            "element 1 of an array of records is null",
        ),
    ],
)
def test_sql_functions_refuse_what_they_can_not_take(registered: SparkSession, call: str, message: str) -> None:
    with pytest.raises(PySparkException, match=message):
        registered.sql(f"SELECT {call}").collect()


def test_sql_encode_needs_no_codec(registered: SparkSession) -> None:
    (row,) = registered.sql("SELECT kbat_encode(array(struct(binary('v') AS value))) AS batch").collect()
    (batch,) = kbat.read_batches(bytes(row.batch))
    assert (batch.compression, [record.value for record in batch]) == ("none", [b"v"])
