"""Records, batches, scans and headers in the forms that users expect; values that are refused."""

from __future__ import annotations

import itertools
import json
import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kbat
from data import DATA, build
from reliability_logs import NOW, SHAPES, batch, segment_of

if TYPE_CHECKING:
    from pathlib import Path

LOG_DIR = DATA / "log-dir"


# Dictionary indexes, base offsets


@pytest.mark.parametrize("index_type", [pa.int8(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("index", [2, 100, -1])
@pytest.mark.parametrize("column", ["key", "value"])
def test_a_dictionary_index_out_of_range_is_an_error(column: str, index: int, index_type: Any) -> None:  # noqa: ANN401 -- one of three types
    values = pa.array([b"a", b"b"], pa.binary())
    array = pa.DictionaryArray.from_arrays(pa.array([0, index, 1], index_type), values, safe=False)
    table = pa.table({"value": pa.array([b"v"] * 3), column: array})
    with pytest.raises(ValueError, match=rf"column {column} has dictionary index {index}"):
        kbat.encode(table, timestamp=NOW)
    good = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], index_type), values)
    encoded = kbat.encode(pa.table({"value": pa.array([b"v"] * 3), column: good}), timestamp=NOW)
    found = [getattr(record, column) for each in kbat.read_batches(encoded) for record in each]
    assert found == [b"a", None, b"b"]


@pytest.mark.parametrize(
    ("shape", "last"), [("v2-none", 2), ("v2-zstd", 2), ("v1-gzip", 2), ("v1-none", 0), ("v0-none", 0)]
)
def test_set_base_offset_does_not_wrap(shape: str, last: int) -> None:
    data = bytearray(segment_of(shape, 1).data)
    largest = (1 << 63) - 1
    kbat.set_base_offset(data, largest - last)
    assert [record.offset for each in kbat.read_batches(data) for record in each][-1] == largest
    for base_offset in range(largest - last + 1, largest + 1):
        with pytest.raises(ValueError, match="too large"):
            kbat.set_base_offset(data, base_offset)
    [found] = kbat.read_batches(data)
    assert (found.last_offset, next(iter(found)).offset) == (largest, largest - last)


# Record and Batch


def some_batches() -> list[kbat.Batch]:
    """Batches of every format, a marker among them."""
    built = [segment_of(shape, 1).data for shape in SHAPES]
    marker = kbat.end_transaction_marker(producer_id=1, producer_epoch=0, commit=True, timestamp=NOW)
    with_headers = build([(NOW, None, b"")], timestamp_type="LogAppendTime", log_append_time=NOW + 5)
    return [each for data in [*built, marker, with_headers] for each in kbat.read_batches(data)]


def test_records_are_equal_if_their_fields_are() -> None:
    first, second = ([record for each in some_batches() for record in each] for _ in range(2))
    assert first == second
    assert list(map(hash, first)) == list(map(hash, second))
    unlike = {record.offset: record for record in first}
    assert len({*unlike.values()}) == len(unlike)
    assert all(one != other for one, other in itertools.combinations(unlike.values(), 2))
    assert first[0] != "record"
    builder = kbat.BatchBuilder()
    for headers in ([], [("a", b"1")], [("a", None)], [("a", b"")]):
        builder.append(b"key", b"value", timestamp=NOW, headers=headers)
    [found] = kbat.read_batches(builder.finish())
    assert len(set(found)) == 4


def test_batches_are_equal_if_their_bytes_and_positions_are() -> None:
    first, second = some_batches(), some_batches()
    assert first == second
    assert list(map(hash, first)) == list(map(hash, second))
    assert len(set(first)) == len(first)
    twice = list(kbat.read_batches(batch(0) * 2))
    assert twice[0] != twice[1]
    assert bytes(twice[0]) == bytes(twice[1])


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_records_and_batches_survive_pickling(protocol: int) -> None:
    for each in some_batches():
        copy = pickle.loads(pickle.dumps(each, protocol))  # noqa: S301 -- made here
        assert copy == each
        assert (hash(copy), copy.asdict(), bytes(copy), repr(copy)) == (
            hash(each),
            each.asdict(),
            bytes(each),
            repr(each),
        )
        for record, other in zip(each, copy, strict=True):
            again = pickle.loads(pickle.dumps(record, protocol))  # noqa: S301 -- made here
            assert again == record == other
            assert (hash(again), again.asdict(), again.control) == (hash(record), record.asdict(), record.control)


def test_asdict_has_the_public_fields() -> None:
    for each in some_batches():
        fields = each.asdict()
        for name in set(fields) - {"base_offset"}:
            assert fields[name] == getattr(each, name), name
        if fields["base_offset"] is not None:
            assert fields["base_offset"] == each.base_offset
        for record in each:
            assert record.asdict() == {name: getattr(record, name) for name in record.asdict()}
            assert {"offset", "timestamp", "timestamp_type", "key", "value", "headers"} <= set(record.asdict())


# Scan


def test_scan_is_iterated_in_arrow_batches_as_often_as_you_like() -> None:
    scan = kbat.scan(LOG_DIR)
    expected = scan.to_pyarrow()
    assert pa.Table.from_batches(scan) == expected
    assert pa.Table.from_batches(list(scan)) == expected


def test_scan_head_count_and_columns() -> None:
    scan = kbat.scan(LOG_DIR, columns=["offset", "topic"])
    table = scan.to_pyarrow()
    assert scan.columns == ["offset", "topic"] == table.column_names
    assert kbat.scan(LOG_DIR).columns == kbat.scan(LOG_DIR).schema.names
    assert scan.count() == scan.count(threads=1) == len(table)
    assert scan.head() == table.slice(0, 10)
    for rows in (0, 1, 1000, len(table) + 5):
        assert scan.head(rows) == table.slice(0, rows)
    assert kbat.scan(LOG_DIR, columns=[]).count() == len(table)
    assert kbat.scan(LOG_DIR, view="batches").count() == len(kbat.scan(LOG_DIR, view="batches").to_pyarrow())
    assert kbat.scan(LOG_DIR, view="segments").count() == len(kbat.find_segments(LOG_DIR))


def test_scan_says_what_to_do_with_a_second_positional_argument() -> None:
    for second in (["offset"], str(LOG_DIR)):
        with pytest.raises(TypeError, match=r'columns=\["offset"\].*list'):
            kbat.scan(LOG_DIR, second)  # type: ignore[call-arg]


# Headers

_PAIRS = [("trace", b"1"), ("empty", b""), ("null", None)]
_HEADERS = {
    "dict": dict(_PAIRS),
    "bytes": {key.encode(): value for key, value in _PAIRS},
    "tuples": _PAIRS,
    "lists": [list(pair) for pair in _PAIRS],
    "dicts": [{"key": key, "value": value} for key, value in _PAIRS],
    "mixed": [{"value": b"1", "key": b"trace"}, ["empty", bytearray()], (b"null", None)],
}


@pytest.mark.parametrize("form", _HEADERS)
def test_headers_are_taken_in_every_usual_form(form: str, tmp_path: Path) -> None:
    headers: Any = _HEADERS[form]
    builder = kbat.BatchBuilder()
    builder.append(b"", b"", timestamp=NOW, headers=headers)
    [found] = [record for each in kbat.read_batches(builder.finish()) for record in each]
    assert found.headers == _PAIRS
    assert kbat.batch_size([(NOW, b"", b"", headers)]) == kbat.batch_size([(NOW, b"", b"", _PAIRS)])
    with kbat.LogWriter(tmp_path / "orders-0") as writer:
        writer.append(b"", b"", timestamp=NOW, headers=headers)
    [again] = [record for each in kbat.read_batches(tmp_path / "orders-0" / f"{0:020}.log") for record in each]
    assert again == found


def test_headers_read_from_json_can_be_written() -> None:
    headers = json.loads('[["a", null], ["a", null]]')
    builder = kbat.BatchBuilder()
    builder.append(b"", b"", timestamp=NOW, headers=headers)
    [found] = [record for each in kbat.read_batches(builder.finish()) for record in each]
    assert found.headers == [("a", None), ("a", None)]


@pytest.mark.parametrize(
    "headers",
    ["ab", ["ab"], [["a"]], [{"key": "a"}], [{"key": "a", "value": b"", "more": 1}], {"a": "text"}, [("a", b"", b"")]],
)
def test_headers_of_another_form_are_refused(headers: Any) -> None:  # noqa: ANN401 -- no headers
    builder = kbat.BatchBuilder()
    with pytest.raises((TypeError, ValueError), match="header"):
        builder.append(b"", b"", timestamp=NOW, headers=headers)
    assert builder.record_count == 0
