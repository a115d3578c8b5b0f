# ruff: noqa: SIM300 -- predicates are written as their readers write them
"""`kbat.scan_polars`, `kbat.dataset`, `kbat.register_duckdb`: the frames people use."""

from __future__ import annotations

import datetime as dt
import shutil
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kbat
from data import DATA, build, patched
from kbat.frames.bounds import Bounds, Range
from kbat.frames.lazy import bounds_of

if TYPE_CHECKING:
    from pathlib import Path

LOG_DIR = DATA / "log-dir"
PARTITION = LOG_DIR / "segments-default-interval-0"
SOURCES = [LOG_DIR / name for name in ("segments-default-interval-0", "txn-lz4-0", "codec-gzip-0")]

T0 = 1_700_000_000_000


def ten(base: int, **settings: Any) -> bytes:  # noqa: ANN401 -- those of the builder
    """Ten records, their timestamps a second apart."""
    records = [(T0 + 1000 * index, b"key", b"%d" % index) for index in range(base, base + 10)]
    return build(records, base_offset=base, **settings)


THIRTY = ten(0) + ten(10) + ten(20)
#: Ten records with a timestamp, then two without.
TWELVE = ten(5) + build([(-1, b"key", b"none"), (-1, b"key", b"5")], base_offset=15)
#: As THIRTY, its first and last batch broken.
BROKEN = bytes(patched(ten(0), 17, ">I", 0)) + ten(10) + bytes(patched(ten(20), 17, ">I", 0))


def instant(index: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(T0 / 1000 + index, dt.UTC)


def offsets(frame: pl.DataFrame | pl.LazyFrame) -> list[int]:
    return frame.lazy().select("offset").collect()["offset"].to_list()


OFFSET, TIMESTAMP, TOPIC, PART = pl.col("offset"), pl.col("timestamp"), pl.col("topic"), pl.col("partition")
EVERYTHING = Bounds()
NOTHING = Bounds(Range(0, 0))


@pytest.mark.parametrize(
    ("predicate", "bounds"),
    [
        (OFFSET >= 5, Bounds(Range(start=5))),
        (OFFSET > 5, Bounds(Range(start=6))),
        (OFFSET < 5, Bounds(Range(end=5))),
        (OFFSET <= 5, Bounds(Range(end=6))),
        (OFFSET == 5, Bounds(Range(5, 6))),
        (pl.lit(5) < OFFSET, Bounds(Range(start=6))),
        (OFFSET.is_between(3, 9), Bounds(Range(3, 10))),
        (OFFSET.is_between(3, 9, closed="none"), Bounds(Range(4, 9))),
        (OFFSET.is_in([7, 3]), Bounds(Range(3, 8))),
        ((OFFSET >= 3) & (OFFSET < 9), Bounds(Range(3, 9))),
        ((OFFSET == 3) | (OFFSET == 9), Bounds(Range(3, 10))),
        ((OFFSET >= 3) & (pl.col("value") == b"x"), Bounds(Range(start=3))),
        ((OFFSET >= 3) | (pl.col("value") == b"x"), EVERYTHING),
        (OFFSET != 3, EVERYTHING),
        (~(OFFSET < 3), EVERYTHING),
        (OFFSET + 1 < 3, EVERYTHING),
        (OFFSET < pl.col("partition"), EVERYTHING),
        (OFFSET < 2.5, EVERYTHING),
        (OFFSET > 2**63 - 1, Bounds(Range(start=2**63))),
        (TIMESTAMP >= instant(5), Bounds(timestamps=Range(start=T0 + 5000))),
        (TIMESTAMP < instant(5), Bounds(timestamps=Range(end=T0 + 5000))),
        (TIMESTAMP > instant(5) + dt.timedelta(microseconds=1), Bounds(timestamps=Range(start=T0 + 5001))),
        (TIMESTAMP >= instant(5) + dt.timedelta(microseconds=1), Bounds(timestamps=Range(start=T0 + 5001))),
        (TIMESTAMP <= instant(5) + dt.timedelta(microseconds=1), Bounds(timestamps=Range(end=T0 + 5001))),
        (TIMESTAMP < instant(5) + dt.timedelta(microseconds=1), Bounds(timestamps=Range(end=T0 + 5001))),
        (TOPIC == "a", Bounds(topics=frozenset("a"))),
        (TOPIC.is_in(["a", "b"]), Bounds(topics=frozenset("ab"))),
        (TOPIC.is_in(["a", None]), EVERYTHING),
        (TOPIC.is_null(), EVERYTHING),
        (TOPIC > "a", EVERYTHING),
        ((TOPIC == "a") & (PART == 1), Bounds(topics=frozenset("a"), partitions=frozenset([1]))),
        ((TOPIC == "a") | (PART == 1), EVERYTHING),
        (OFFSET.is_in([]), NOTHING),
    ],
)
def test_bounds_follow_from_a_predicate(predicate: pl.Expr, bounds: Bounds) -> None:
    """The form of expressions in the installed polars. Another form would have no bounds, which this test detects."""
    assert bounds_of(predicate) == bounds


numbers = st.integers(-2, 33)
instants = numbers.map(instant) | numbers.map(lambda n: instant(n) + dt.timedelta(microseconds=n))


def predicates(column: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 -- pl.col or ds.field
    """Predicates of either library: both overload the same operators."""

    def compared(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        operators = ["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"]
        return st.builds(lambda op, value: getattr(column(name), op)(value), st.sampled_from(operators), values)

    leaves = (
        compared("offset", numbers)
        | compared("timestamp", instants)
        | compared("topic", st.sampled_from(["orders", "clicks", "none"]))
        | compared("partition", st.integers(0, 3))
        | compared("value", st.just(b"5"))
    )
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(lambda a, b: a & b, inner, inner)
            | st.builds(lambda a, b: a | b, inner, inner)
            | inner.map(lambda a: ~a)
        ),
        max_leaves=5,
    )


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two topics of two partitions of three segments."""
    root: Path = tmp_path_factory.mktemp("log-dir")
    for name in ("orders-0", "orders-1", "clicks-0", "clicks-3"):
        (root / name).mkdir()
        for base in (0, 10, 20):
            codec = "lz4" if base == 10 else "none"
            (root / name / f"{base:020}.log").write_bytes(ten(base, compression=codec))
    return root


missing_timestamps = st.sampled_from([None, -1, T0, T0 + 12_000])


@settings(max_examples=50, deadline=None)
@given(predicate=predicates(pl.col), missing=missing_timestamps)
def test_polars_filters_as_it_filters_a_frame(log_dir: Path, predicate: pl.Expr, missing: int | None) -> None:
    scan = kbat.scan([log_dir, TWELVE], missing_timestamp=missing)
    expected = scan.to_polars().filter(predicate)
    assert kbat.scan_polars(scan).filter(predicate).collect().equals(expected)
    assert kbat.scan_polars(scan).filter(predicate).select("value").collect().equals(expected.select("value"))


@settings(max_examples=50, deadline=None)
@given(predicate=predicates(ds.field), missing=missing_timestamps)
def test_dataset_filters_as_a_table_filters(log_dir: Path, predicate: ds.Expression, missing: int | None) -> None:
    scan = kbat.scan([log_dir, TWELVE], missing_timestamp=missing)
    table = scan.to_pyarrow()
    assert len(table) == 132
    expected = table.filter(predicate)
    assert kbat.dataset(scan).to_table(filter=predicate) == expected
    assert kbat.dataset(scan).filter(predicate).count_rows() == len(expected)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_polars_gives_the_rows_of_the_scan_twice(source: Path, engine: Any) -> None:  # noqa: ANN401 -- polars's type
    frame = kbat.scan_polars(source, include_control=True, max_rows=7)
    expected = kbat.scan(source, include_control=True).to_polars()
    assert frame.collect_schema() == expected.schema
    for _ in range(2):
        assert frame.collect(engine=engine).equals(expected)
    assert frame.select(pl.len()).collect(engine=engine).item() == expected.height


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_polars_counts_rows_of_which_it_wants_no_column(engine: Any) -> None:  # noqa: ANN401 -- polars's type
    frame = kbat.scan_polars(THIRTY, max_rows=7)
    assert frame.with_row_index("i").select("i").collect(engine=engine)["i"].to_list() == list(range(30))
    assert frame.with_row_index("i").select(pl.len()).collect(engine=engine).item() == 30
    crossed = frame.join(pl.LazyFrame({"z": [1, 2]}), how="cross").select("z")
    assert crossed.collect(engine=engine).height == 60
    few = frame.filter(OFFSET >= 20).with_row_index("i").select("i")
    assert few.collect(engine=engine).height == 10
    views = kbat.scan_polars(THIRTY, view="batches").with_row_index("i").select("i")
    assert views.collect(engine=engine).height == 3


def test_polars_bounds_may_lie_beyond_kafkas_numbers() -> None:
    for beyond in (OFFSET > 2**63 - 1, OFFSET < -(2**63)):
        assert kbat.scan_polars(THIRTY).filter(beyond).collect().height == 0


def test_polars_takes_the_scans_options_and_columns() -> None:
    frame = kbat.scan_polars(THIRTY, columns=["value", "magic"], start_offset=5, topic="t")
    assert frame.collect_schema().names() == ["value", "magic"]
    assert frame.collect().shape == (25, 2)
    assert frame.select("magic").unique().collect()["magic"].to_list() == [2]


def test_polars_asks_for_columns_it_needs() -> None:
    """A timestamp that does not fit microseconds fails only where timestamps are read."""
    data = build([(2**63 - 1, b"k", b"v")])
    frame = kbat.scan_polars(data, timestamp_unit="us")
    assert frame.select("value").collect()["value"].to_list() == [b"v"]
    with pytest.raises(kbat.CorruptError, match="timestamp"):
        frame.collect()


def test_polars_predicate_and_limit_leave_the_rest_unread() -> None:
    frame = kbat.scan_polars(BROKEN)
    assert offsets(frame.filter(OFFSET.is_between(10, 19))) == list(range(10, 20))
    first_broken = kbat.scan_polars(BROKEN[: len(ten(0) + ten(10))])
    assert offsets(first_broken.filter(TIMESTAMP >= instant(12))) == list(range(12, 20))
    with pytest.raises(kbat.CrcError) as raised:
        frame.filter(OFFSET >= 10).collect()
    assert raised.value.base_offset == 20
    late = kbat.scan_polars(BROKEN[len(ten(0)) :], max_rows=5)
    assert offsets(late.head(10)) == list(range(10, 20))
    with pytest.raises(kbat.CrcError):
        late.head(11).collect()


def test_polars_limit_counts_before_the_filter_that_follows_it() -> None:
    frame = kbat.scan_polars(THIRTY, max_rows=4)
    assert offsets(frame.head(15).filter(OFFSET >= 10)) == list(range(10, 15))
    assert offsets(frame.filter(OFFSET >= 10).head(7)) == list(range(10, 17))
    assert offsets(frame.head(0)) == []


def test_polars_passes_over_files_of_other_topics(log_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(log_dir, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.glob("clicks-*/*.log"):
        path.write_bytes(b"no batch, but longer than a header is")
    frame = kbat.scan_polars(tmp_path)
    assert frame.filter(TOPIC == "orders").collect().height == 60
    assert frame.filter(TOPIC.is_in(["orders"]), PART == 1).collect().height == 30
    table = kbat.dataset(tmp_path).to_table(filter=(ds.field("topic") == "orders") & (ds.field("partition") == 1))
    assert len(table) == 30
    with pytest.raises(kbat.UnsupportedError):
        frame.filter(PART == 0).collect()


CHOICES: list[tuple[dict[str, Any], int]] = [
    ({"topics": ["orders"]}, 60),
    ({"topics": ["*o*s", "clicks"], "partitions": [0]}, 60),
    ({"partitions": [3]}, 30),
]


@pytest.mark.parametrize(("options", "count"), CHOICES, ids=str)
def test_topics_and_partitions_choose_what_frames_read(log_dir: Path, options: dict[str, Any], count: int) -> None:
    table = kbat.scan(log_dir, **options).to_pyarrow()
    assert len(table) == count
    assert kbat.scan_polars(log_dir, **options).collect().equals(kbat.scan(log_dir, **options).to_polars())
    assert kbat.dataset(log_dir, **options).to_table() == table
    assert kbat.dataset(log_dir, **options).count_rows(filter=ds.field("offset") < 10) == count // 3
    with duckdb.connect() as connection:
        kbat.register_duckdb(connection, "logs", log_dir, **options)
        assert connection.execute("SELECT count(*) FROM logs").fetchall() == [(count,)]


def test_frames_refuse_topics_that_do_not_exist_and_replicas(log_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(log_dir / "clicks-3", tmp_path / "clicks-3")
    with (tmp_path / "clicks-3" / f"{30:020}.log").open("wb") as longer:
        longer.write(ten(30))
    for make in (kbat.scan_polars, kbat.dataset):
        with pytest.raises(ValueError, match="topics found: clicks, orders"):
            make(log_dir, topics=["order"])
        with pytest.raises(ValueError, match="clicks-3"):
            make([log_dir, tmp_path])
    longest: dict[str, Any] = {"topics": ["clicks"], "replicas": "longest"}
    frame = kbat.scan_polars([log_dir, tmp_path], **longest).filter(PART == 3).collect()
    assert sorted(frame["offset"].to_list()) == list(range(40))
    assert kbat.dataset([log_dir, tmp_path], **longest).count_rows() == 30 + 40
    assert kbat.scan_polars([log_dir, log_dir / "orders-0"]).collect().height == 120


def test_predicate_for_a_topic_that_does_not_exist_gives_no_rows(log_dir: Path) -> None:
    """Unlike `topics`, which names what the caller expects, a predicate may match nothing."""
    assert kbat.scan_polars(log_dir).filter(TOPIC == "order").collect().height == 0
    assert kbat.dataset(log_dir).count_rows(filter=ds.field("topic") == "order") == 0


def test_bounds_of_a_predicate_are_milliseconds_even_if_they_look_like_seconds(log_dir: Path) -> None:
    early = dt.datetime.fromtimestamp(1_700_000, dt.UTC)
    assert kbat.scan_polars(log_dir).filter(TIMESTAMP >= early).collect().height == 120
    assert kbat.scan_polars(log_dir).filter(TIMESTAMP < early).collect().height == 0
    assert kbat.dataset(log_dir).count_rows(filter=ds.field("timestamp") < early) == 0


@pytest.mark.parametrize("threshold", [0, 1, 20])
def test_records_without_a_timestamp_are_nulls_that_no_bound_hides(threshold: int) -> None:
    records = build([(-1, b"k", b"none"), (T0, b"k", b"v")], base_offset=0)
    frame, found = kbat.scan_polars(records), kbat.dataset(records)
    assert frame.filter(TIMESTAMP.is_null()).collect()["value"].to_list() == [b"none"]
    assert frame.filter(TIMESTAMP < instant(threshold)).collect().height == (threshold > 0)
    null, early = ds.field("timestamp").is_null(), ds.field("timestamp") < instant(threshold)
    assert found.count_rows(filter=null) == 1
    assert found.count_rows(filter=early) == (threshold > 0)
    assert found.count_rows(filter=early | null) == 1 + (threshold > 0)
    assert frame.filter((TIMESTAMP < instant(threshold)) | TIMESTAMP.is_null()).collect().height == 1 + (threshold > 0)


def test_a_filter_finds_records_to_which_missing_timestamp_gives_a_time() -> None:
    options: dict[str, Any] = {"missing_timestamp": T0 + 10_000}
    between = (instant(9), instant(11))
    frame = kbat.scan_polars(TWELVE, **options)
    assert offsets(frame.filter(TIMESTAMP.is_between(*between))) == [9, 10, 11, 15, 16]
    assert offsets(frame.filter(TIMESTAMP == instant(5))) == [5]
    found = (ds.field("timestamp") >= between[0]) & (ds.field("timestamp") <= between[1])
    assert kbat.dataset(TWELVE, **options).count_rows(filter=found) == 5
    with duckdb.connect() as connection:
        kbat.register_duckdb(connection, "log", TWELVE, **options)
        query = "SELECT count(*) FROM log WHERE timestamp BETWEEN ? AND ?"
        assert connection.execute(query, between).fetchall() == [(5,)]


def test_polars_schema_needs_no_data(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(THIRTY)
    frame = kbat.scan_polars(path)
    path.unlink()
    assert frame.collect_schema().names()[0] == "key"
    with pytest.raises(FileNotFoundError):
        frame.collect()


@pytest.mark.parametrize("make", [kbat.scan_polars, kbat.dataset])
def test_options_are_those_of_scan(make: Any) -> None:  # noqa: ANN401 -- either function
    with pytest.raises(TypeError, match="nope"):
        make(THIRTY, nope=1)
    with pytest.raises(TypeError, match="a Scan has its own options; pass topic"):
        make(kbat.scan(THIRTY), topic="t")


def test_dataset_is_one_of_pyarrows() -> None:
    dataset = kbat.dataset(THIRTY, max_rows=4)
    table = kbat.scan(THIRTY).to_pyarrow()
    assert isinstance(dataset, ds.Dataset)
    assert dataset.schema == table.schema
    assert dataset.to_table() == dataset.to_table() == table
    assert dataset.to_table(columns=["value", "key"]) == table.select(["value", "key"])
    doubled = dataset.to_table(columns={"twice": ds.field("offset") * 2}, filter=ds.field("offset") >= 28)
    assert doubled.to_pydict() == {"twice": [56, 58]}
    assert dataset.head(3) == table.slice(0, 3)
    assert dataset.count_rows() == 30
    assert dataset.count_rows(filter=ds.field("offset") < 3) == 3
    assert pa.Table.from_batches(dataset.to_batches()) == table
    assert dataset.take(pa.array([1, 29])) == table.take([1, 29])
    for missing in (dataset.get_fragments, lambda: dataset.replace_schema(table.schema.remove(0))):
        with pytest.raises(NotImplementedError):
            missing()


def test_dataset_reads_what_the_filter_leaves_and_raises_what_it_is() -> None:
    dataset = kbat.dataset(BROKEN)
    field = ds.field("offset")
    assert dataset.to_table(filter=(field >= 10) & (field < 20))["offset"].to_pylist() == list(range(10, 20))
    assert dataset.to_table(filter=field.isin([11, 18]))["offset"].to_pylist() == [11, 18]
    with pytest.raises(kbat.CrcError):
        dataset.to_table()
    fitting = kbat.dataset(build([(2**63 - 1, b"k", b"v")]), timestamp_unit="us")
    assert fitting.to_table(columns=["value"]).to_pydict() == {"value": [b"v"]}


def test_faults_are_a_column_like_others() -> None:
    """It can be selected alone, filtered by and omitted, and its rows have nulls, which filters may match."""
    options = {"on_corrupt": "report", "columns": ["offset", "value"]}
    frame, dataset = kbat.scan_polars(BROKEN, **options), kbat.dataset(BROKEN, **options)
    assert [row["kind"] for row in frame.filter(pl.col("error").is_not_null()).collect()["error"]] == ["crc", "crc"]
    assert frame.filter(pl.col("error").is_null()).select("error", "offset").collect().columns == ["error", "offset"]
    assert frame.select("error").collect().shape == (12, 1)
    assert frame.select("value").collect().columns == ["value"]
    assert frame.filter(OFFSET.is_null()).collect().height == 2
    assert dataset.to_table(columns=["error", "value"]).column_names == ["error", "value"]
    assert dataset.to_table(columns=["value"]).column_names == ["value"]
    assert dataset.count_rows(filter=ds.field("error").is_valid()) == 2
    assert dataset.to_table(columns={"kind": ds.field("error", "kind")})["kind"].to_pylist().count("crc") == 2
    with duckdb.connect() as connection:
        kbat.register_duckdb(connection, "logs", BROKEN, **options)
        query = "SELECT error.kind, count(*) FROM logs WHERE error IS NOT NULL GROUP BY 1"
        assert connection.execute(query).fetchall() == [("crc", 2)]


def test_dataset_keeps_the_nulls_of_faults_where_the_filter_may() -> None:
    dataset = kbat.dataset(BROKEN, on_corrupt="report")
    table, field, timestamp = dataset.to_table(), ds.field("offset"), ds.field("timestamp")
    twelve: Any = field == 12
    cases: list[tuple[Any, int]] = [(field.is_null(), 2), (twelve | field.is_null(), 3), (~timestamp.is_valid(), 2)]
    for where, count in cases:
        assert dataset.to_table(filter=where) == table.filter(where)
        assert dataset.count_rows(filter=where) == count


def test_duckdb_reads_a_scan_by_its_name() -> None:
    scan = kbat.scan(PARTITION)  # noqa: F841 -- DuckDB finds it by its name
    for _ in range(2):
        assert duckdb.execute('SELECT count(*), max("offset") FROM scan').fetchall() == [(1100, 1099)]
    both = duckdb.execute('SELECT count(*) FROM scan AS a JOIN scan AS b USING ("offset")').fetchall()
    assert both == [(1100,)]


def test_duckdb_pushes_columns_and_filters_into_a_dataset() -> None:
    broken = kbat.dataset(BROKEN)  # noqa: F841 -- DuckDB finds it by its name
    query = 'SELECT list("offset") FROM broken WHERE "offset" BETWEEN 10 AND 19'
    assert duckdb.execute(query).fetchall() == [(list(range(10, 20)),)]
    data = build([(2**63 - 1, b"k", b"v")])
    unfit = kbat.dataset(data, timestamp_unit="us")  # noqa: F841 -- DuckDB finds it by its name
    assert duckdb.execute("SELECT value FROM unfit").fetchall() == [(b"v",)]
    with pytest.raises(duckdb.Error, match="checksum mismatch"):
        duckdb.execute("SELECT count(*) FROM broken").fetchall()


def test_duckdb_registers_a_view_that_reads_anew(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(ten(0))
    with duckdb.connect() as connection:
        kbat.register_duckdb(connection, "orders", path, topic="orders")
        query = "SELECT topic, count(*), max(timestamp) FROM orders GROUP BY topic"
        assert connection.execute(query).fetchall()[0][:2] == ("orders", 10)
        path.write_bytes(THIRTY)
        assert connection.execute(query).fetchall()[0][:2] == ("orders", 30)
        since = "SELECT count(*) FROM orders WHERE timestamp >= epoch_ms(?)::TIMESTAMPTZ"
        assert connection.execute(since, [T0 + 25_000]).fetchall() == [(5,)]
        connection.unregister("orders")
        with pytest.raises(duckdb.CatalogException):
            connection.execute(query)
