"""`kbat.scan`: records as Arrow columns."""

from __future__ import annotations

import datetime as dt
import gc
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kbat
from data import DATA, build, patched, records_of

LOG_DIR = DATA / "log-dir"
PARTITION = LOG_DIR / "segments-default-interval-0"
TRANSACTIONS = LOG_DIR / "txn-lz4-0"

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
DEFAULT_COLUMNS = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("ms", "UTC"),
    "timestamp_type": pa.int32(),
    "headers": HEADERS,
}
MORE_COLUMNS = {
    "base_offset": pa.int64(),
    "position": pa.int64(),
    "partition_leader_epoch": pa.int32(),
    "producer_id": pa.int64(),
    "producer_epoch": pa.int16(),
    "sequence": pa.int32(),
    "is_transactional": pa.bool_(),
    "compression": pa.string(),
    "magic": pa.int8(),
    "batch_size": pa.int32(),
    "segment": pa.string(),
}

TEN = build([(index, b"key", b"%d" % index) for index in range(10)], base_offset=100)
TWENTY = TEN + build([(index, b"key", b"%d" % index) for index in range(10, 20)], base_offset=110)


def column(scan: kbat.Scan, name: str = "offset") -> list[Any]:
    values: list[Any] = scan.to_pyarrow()[name].to_pylist()
    return values


def test_schema_is_that_of_sparks_kafka_source() -> None:
    """Edge case 86."""
    schema = kbat.scan(b"").schema
    assert dict(zip(schema.names, schema.types, strict=True)) == DEFAULT_COLUMNS
    capsule_exporter: Any = kbat.scan(b"")
    assert pa.schema(capsule_exporter) == schema
    assert kbat.scan(b"").to_pyarrow().schema == schema


@pytest.mark.parametrize(("name", "data_type"), (DEFAULT_COLUMNS | MORE_COLUMNS).items())
def test_schema_has_the_column_alone(name: str, data_type: pa.DataType) -> None:
    table = kbat.scan(TEN, columns=[name]).to_pyarrow()
    assert table.schema.field(0) == pa.field(name, data_type)
    assert table.shape == (10, 1)


def test_columns_come_in_the_order_asked_for() -> None:
    names = ["value", "magic", "offset", "key"]
    assert kbat.scan(TEN, columns=names).to_pyarrow().column_names == names
    assert kbat.scan(TEN, columns=iter(names)).schema.names == names


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (["offset", "nope"], ValueError, 'no column "nope"; choose among key, value'),
        (["offset", "offset"], ValueError, "offset is listed twice"),
        ("offset", ValueError, "list of names"),
        ([5], TypeError, "str"),
        (5, TypeError, "iterable"),
    ],
)
def test_columns_that_cannot_be_are_refused_at_once(columns: Any, error: type[Exception], message: str) -> None:  # noqa: ANN401 -- the wrong ones
    with pytest.raises(error, match=message):
        kbat.scan(TEN, columns=columns)


def test_no_columns_still_count_rows() -> None:
    assert sum(batch.num_rows for batch in kbat.scan(TWENTY, columns=[]).to_batches()) == 20


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (None, None, range(100, 120)),
        (105, None, range(105, 120)),
        (None, 105, range(100, 105)),
        (105, 115, range(105, 115)),
        (110, 110, range(0)),
        (112, 105, range(0)),
        (119, 120, range(119, 120)),
        (120, None, range(0)),
        (None, 100, range(0)),
        (0, 2**63 - 1, range(100, 120)),
    ],
)
def test_offsets_bound_the_rows(start: int | None, end: int | None, expected: range) -> None:
    """Edge case 67: `end_offset` is exclusive."""
    scan = kbat.scan(TWENTY, start_offset=start, end_offset=end)
    assert column(scan) == list(expected)
    assert column(scan, "value") == [b"%d" % (offset - 100) for offset in expected]


@pytest.mark.parametrize("magic", [0, 1])
def test_offsets_bound_the_rows_of_a_compressed_set(magic: int) -> None:
    """Edge case 67: the header of a set has the last offset only."""
    data = build([(0, None, b"v")] * 10, magic=magic, compression="gzip", base_offset=100)
    assert column(kbat.scan(data, start_offset=103, end_offset=107)) == [103, 104, 105, 106]


def test_control_records_come_on_request() -> None:
    marker = kbat.end_transaction_marker(producer_id=1, producer_epoch=0, commit=True, timestamp=5, base_offset=110)
    assert column(kbat.scan(TEN + marker)) == list(range(100, 110))
    assert column(kbat.scan(TEN + marker, include_control=True)) == list(range(100, 111))


def test_topic_and_partition_of_buffers_and_loose_files(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000100.log"
    path.write_bytes(TEN)
    for source in (TEN, path):
        for topic, partition in ((None, None), ("orders", 7)):
            scan = kbat.scan(source, columns=["topic", "partition"], topic=topic, partition=partition)
            assert scan.to_pyarrow().to_pylist() == [{"topic": topic, "partition": partition}] * 10


def test_topic_and_partition_of_named_directories_are_refused() -> None:
    """They would look like filters but have no effect."""
    with pytest.raises(ValueError, match=r'topic="other" has no effect.*topics=\["other"\]'):
        kbat.scan(PARTITION, topic="other")
    with pytest.raises(ValueError, match=r"partition=7 has no effect.*partitions=\[7\]"):
        kbat.scan(PARTITION, partition=7)
    mixed = kbat.scan([PARTITION, TEN], topic="other", columns=["topic"]).to_pyarrow()["topic"].to_pylist()
    assert set(mixed) == {"segments-default-interval", "other"}


@pytest.mark.parametrize("bound", ["start_offset", "end_offset"])
def test_negative_offsets_are_refused(bound: str) -> None:
    with pytest.raises(ValueError, match=f"{bound} -1 is negative"):
        kbat.scan(TWENTY, **{bound: -1})  # type: ignore[arg-type]


def test_partition_directory_gives_its_segments_in_order() -> None:
    scan = kbat.scan(PARTITION, columns=["offset", "segment"])
    assert column(scan) == list(range(1100))
    segments = list(dict.fromkeys(column(scan, "segment")))
    assert segments == sorted(map(str, PARTITION.glob("*.log")))
    assert len(segments) == 8


def test_log_directory_gives_every_partition() -> None:
    scan = kbat.scan(LOG_DIR, columns=["topic", "partition"], include_control=True)
    table = scan.to_pyarrow().group_by(["topic", "partition"]).aggregate([([], "count_all")]).to_pylist()
    found = {(row["topic"], row["partition"]): row["count_all"] for row in table}
    expected = {
        (directory.name.rpartition("-")[0], 0): sum(len(records_of(log)) for log in directory.glob("*.log"))
        for directory in LOG_DIR.iterdir()
        if directory.is_dir()
    }
    assert found == expected
    assert len(found) == 15


def test_find_segments_tells_what_the_names_say() -> None:
    """Edge case 77."""
    found = kbat.find_segments(PARTITION)
    assert [Path(segment.path) for segment in found] == sorted(PARTITION.glob("*.log"))
    assert [segment.base_offset for segment in found] == [int(Path(segment.path).stem) for segment in found]
    assert {(segment.topic, segment.partition) for segment in found} == {("segments-default-interval", 0)}
    assert [segment.size for segment in found] == [Path(segment.path).stat().st_size for segment in found]
    assert len(kbat.find_segments(LOG_DIR)) == len(list(LOG_DIR.rglob("*.log")))


def test_find_segments_passes_over_what_is_no_segment(tmp_path: Path) -> None:
    """Edge case 77."""
    partition = tmp_path / "orders.v1-3"
    gone = tmp_path / f"orders-0.{'0' * 32}-delete"
    for directory in (partition, gone, tmp_path / "no-partition"):
        directory.mkdir()
        for suffix in (".log", ".index", ".log.deleted", ".log.cleaned", ".log.swap", ".snapshot", ".txnindex"):
            (directory / f"{42:020}{suffix}").touch()
    with pytest.warns(UserWarning, match="no-partition contains segments and is not read"):
        [segment] = kbat.find_segments(tmp_path)
    assert (segment.topic, segment.partition, segment.base_offset) == ("orders.v1", 3, 42)


@pytest.mark.parametrize("name", ["00000000000000000000.index", "leader-epoch-checkpoint"])
def test_a_file_beside_segments_is_no_empty_segment(name: str) -> None:
    for read in (kbat.scan, kbat.find_segments):
        with pytest.raises(ValueError, match=r"holds no records: name the \.log file"):
            read(LOG_DIR / "codec-lz4-0" / name)


@pytest.mark.parametrize("make", [list, tuple])
def test_source_may_be_a_list(make: Any) -> None:  # noqa: ANN401 -- of two types
    """Paths as str and `Path`, and buffers."""
    scan = kbat.scan(make([str(PARTITION), TRANSACTIONS, TEN]), columns=["topic", "offset"])
    assert list(dict.fromkeys(column(scan, "topic"))) == ["segments-default-interval", "txn-lz4", None]
    assert column(scan)[-10:] == list(range(100, 110))
    assert kbat.scan(make([])).to_pyarrow().num_rows == 0


def test_timestamps_are_instants() -> None:
    """Edge case 87: in milliseconds every one fits."""
    extremes = [-1, 0, 1700000000123, 2**63 - 1]
    data = build([(timestamp, None, None) for timestamp in extremes])
    timestamps = kbat.scan(data).to_pyarrow()["timestamp"]
    assert timestamps.cast(pa.int64()).to_pylist() == [None, *extremes[1:]]
    shown = kbat.scan(data, missing_timestamp=-1).to_pyarrow()["timestamp"]
    assert shown.cast(pa.int64()).to_pylist() == extremes
    fitting = build([(timestamp, None, None) for timestamp in extremes[:3]])
    micros = kbat.scan(fitting, timestamp_unit="us").to_pyarrow()["timestamp"]
    assert micros.type == pa.timestamp("us", "UTC")
    assert micros.cast(pa.int64()).to_pylist() == [None, *(extreme * 1000 for extreme in extremes[1:3])]


@pytest.mark.parametrize(("timestamp", "fits"), [((2**63 - 1) // 1000, True), ((2**63 - 1) // 1000 + 1, False)])
def test_timestamp_that_does_not_fit_microseconds_raises(timestamp: int, fits: bool) -> None:  # noqa: FBT001 -- a case
    """Edge case 87: never a wrong instant; without the column, there is no error."""
    data = build([(0, None, None), (timestamp, None, None)], base_offset=4)
    scan = kbat.scan(data, timestamp_unit="us")
    if fits:
        assert scan.to_pyarrow()["timestamp"].cast(pa.int64()).to_pylist() == [0, timestamp * 1000]
        return
    with pytest.raises(kbat.CorruptError, match=f"found {timestamp}, expected a timestamp that fits") as raised:
        scan.to_pyarrow()
    assert "or omit the timestamp column (this does not help with skip and report)" in str(raised.value)
    assert (raised.value.record, raised.value.field, raised.value.base_offset) == (1, "timestamp", 4)
    assert column(kbat.scan(data, timestamp_unit="us", columns=["offset"])) == [4, 5]


def test_timestamp_types_are_those_of_spark() -> None:
    create = build(magic=1)
    append = build(magic=2, timestamp_type="LogAppendTime", log_append_time=5)
    assert column(kbat.scan(build(magic=0) + create + append), "timestamp_type") == [-1, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"timestamp_unit": "ns"}, "timestamp_unit"),
        ({"on_corrupt": "ignore"}, "on_corrupt"),
        ({"isolation": "committed"}, "isolation"),
        ({"view": "topics"}, "view"),
        ({"start_timestamp": dt.datetime(2024, 1, 1)}, "time zone"),  # noqa: DTZ001 -- the wrong one
        ({"max_rows": 0}, "max_rows"),
    ],
)
def test_arguments_that_cannot_be_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kbat.scan(TEN, **arguments)


@pytest.mark.parametrize("max_rows", [1, 3, 10, 1000])
def test_max_rows_bounds_arrow_batches(max_rows: int) -> None:
    batches = list(kbat.scan(TWENTY, max_rows=max_rows).to_batches())
    assert max(batch.num_rows for batch in batches) <= max_rows
    assert [offset for batch in batches for offset in batch["offset"].to_pylist()] == list(range(100, 120))


@pytest.mark.parametrize(("max_bytes", "rows"), [(0, [10, 10]), (1, [10, 10]), (1000, [20])])
def test_max_bytes_ends_an_arrow_batch_with_the_kafka_batch(max_bytes: int, rows: list[int]) -> None:
    assert [batch.num_rows for batch in kbat.scan(TWENTY, max_bytes=max_bytes).to_batches()] == rows


def test_scan_may_be_passed_over_again_and_side_by_side() -> None:
    """Edge case 33."""
    scan = kbat.scan(TWENTY, max_rows=5)
    assert scan.to_pyarrow() == scan.to_pyarrow()
    pairs = list(zip(scan.to_batches(), scan.to_batches(), strict=True))
    assert len(pairs) == 4
    assert all(one == two for one, two in pairs)


def test_pass_outlives_scan_and_source() -> None:
    """Edge cases 33 and 89."""
    source = bytearray(TWENTY)
    scan = kbat.scan(source, max_rows=5)
    batches = scan.to_batches()
    first = next(batches)
    source.clear()
    del scan, source
    gc.collect()
    rest = [offset for batch in batches for offset in batch["offset"].to_pylist()]
    assert first["offset"].to_pylist() + rest == list(range(100, 120))


def test_scan_reads_what_is_there_at_the_pass(tmp_path: Path) -> None:
    """Edge case 83: a file that grows."""
    path = tmp_path / "0.log"
    path.write_bytes(TEN + TWENTY[len(TEN) : -1])
    scan = kbat.scan(path)
    assert len(column(scan)) == 10
    path.write_bytes(TWENTY)
    assert len(column(scan)) == 20


def test_fault_gives_what_came_before_then_raises() -> None:
    data = TWENTY + bytes(patched(TEN, 17, ">I", 0))
    batches = kbat.scan(data, max_rows=5).to_batches()
    with pytest.raises(kbat.CrcError):
        list(batches)
    assert list(batches) == [], "a pass that has failed is at its end"
    assert len(column(kbat.scan(data, check_crc=False))) == 30


def test_headers_column_keeps_null_empty_and_order() -> None:
    """Edge cases 35, 36 and 86."""
    builder = kbat.BatchBuilder()
    lists: list[list[tuple[str, bytes | None]]] = [[], [("b", None), ("a", b""), ("b", b"x")], []]
    for headers in lists:
        builder.append(None, b"", timestamp=0, headers=headers)
    table = kbat.scan(builder.finish()).to_pyarrow()
    table.validate(full=True)
    assert table["headers"].to_pylist() == [[{"key": key, "value": value} for key, value in one] for one in lists]
    assert table["key"].null_count == 3
    assert table["value"].to_pylist() == [b"", b"", b""]


def test_consumers_read_the_same_rows() -> None:
    """PyArrow, polars, pandas and DuckDB, by the PyCapsule interface and by the methods."""
    scan = kbat.scan(PARTITION, columns=["offset", "key", "timestamp"])
    expected = scan.to_pyarrow()
    assert pa.table(scan) == expected
    assert pa.RecordBatchReader.from_stream(scan).read_all() == expected
    for frame in (scan.to_polars(), pl.DataFrame(scan)):
        assert frame.to_dict(as_series=False) == expected.to_pydict()
    pandas_frame = scan.to_pandas()
    assert isinstance(pandas_frame, pd.DataFrame)
    assert pandas_frame["key"].tolist() == expected["key"].to_pylist()
    assert pandas_frame["offset"].tolist() == list(range(1100))
    query = 'SELECT count(*), min("offset"), max("offset"), count(key), epoch_ms(max(timestamp)) FROM scan'
    timestamps: list[Any] = expected["timestamp"].cast(pa.int64()).to_pylist()
    keys = len(expected) - expected["key"].null_count
    assert duckdb.execute(query).fetchall() == [(1100, 0, 1099, keys, max(timestamps))]


def test_errors_reach_consumers_of_the_capsule_as_text() -> None:
    data = TEN + bytes(patched(TEN, 17, ">I", 0))
    with pytest.raises(pa.ArrowInvalid, match=f"checksum mismatch.*byte {len(TEN) + 17}"):
        pa.table(kbat.scan(data))


def test_repr_tells() -> None:
    assert repr(kbat.scan([TEN, PARTITION], columns=["key", "offset"])) == "Scan(9 sources: key, offset)"
