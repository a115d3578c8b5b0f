"""`kbat.dataset` in PyArrow's joins, unions and acero, which only use its C++ interface; and Ctrl-C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.acero as ac
import pyarrow.dataset as ds
import pytest

import kbat
from data import build, patched
from interrupting import interrupt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATA = b"".join(build([(index, b"key", b"%d" % index)] * 10, base_offset=10 * index) for index in range(3))
BROKEN = DATA + bytes(patched(bytearray(build([(0, b"key", b"value")], base_offset=30)), 17, ">I", 0))
COLUMNS = ["key", "value", "offset"]
FIELD = ds.field("offset")


def dataset(data: bytes = DATA) -> Any:  # noqa: ANN401 -- PyArrow's stubs lack much of a dataset
    return kbat.dataset(data, columns=COLUMNS, max_rows=4)


def scanned(found: Any) -> pa.Table:  # noqa: ANN401 -- likewise
    options: Any = ac.ScanNodeOptions(found)  # type: ignore[attr-defined]
    return ac.Declaration("scan", options).to_table().select(COLUMNS)


WAYS: list[Callable[[Any], pa.Table]] = [
    lambda found: ds.Scanner.from_dataset(found).to_table(),
    lambda found: found.scanner().to_table(),
    lambda found: ds.UnionDataset(found.schema, [found]).to_table(),  # type: ignore[call-arg]
    lambda found: ds.dataset([found]).to_table(),
    scanned,
    lambda found: found.sort_by("offset").to_table(),
    lambda found: found.join(found.sort_by("offset"), "offset", right_suffix=" too").to_table().select(COLUMNS),
    lambda found: ds.dataset(found.to_table()).join(found, "offset", right_suffix=" too").to_table().select(COLUMNS),
    lambda found: found.join_asof(
        ds.dataset(found.sort_by("offset").to_table().select(["offset"])), "offset", [], 0
    ).to_table(),
    lambda found: pa.Table.from_batches(found.to_batches(), found.schema),
    lambda found: found.head(100),
    lambda found: found.take(range(found.count_rows())),
]


@pytest.mark.parametrize("way", WAYS)
def test_dataset_has_its_rows_however_pyarrow_reads_it(way: Callable[[Any], pa.Table]) -> None:
    table = kbat.scan(DATA, columns=COLUMNS).to_pyarrow()
    found = dataset()
    for _ in range(2):
        assert way(found).sort_by("offset") == table
    assert way(found.filter(FIELD >= 12)).sort_by("offset") == table.slice(12)
    assert len(way(found.filter(FIELD >= 100))) == 0


@pytest.mark.parametrize("way", WAYS)
def test_dataset_raises_the_fault_however_pyarrow_reads_it(way: Callable[[Any], pa.Table]) -> None:
    with pytest.raises((kbat.CrcError, pa.ArrowInvalid, OSError), match="checksum mismatch"):
        way(dataset(BROKEN))
    assert len(way(dataset(BROKEN).filter(FIELD < 30))) == 30


def test_dataset_takes_rows_in_any_order() -> None:
    found, places = dataset(), [29, 3, 3, 0, 12]
    assert found.take(places) == found.to_table().take(places)
    assert found.take(pa.array(places, pa.int32()), columns=["offset"])["offset"].to_pylist() == places
    assert found.take([]) == found.to_table().slice(0, 0)
    for beyond in ([30], [-1]):
        with pytest.raises(IndexError):
            found.take(beyond)


def test_dataset_is_read_anew_by_pyarrow(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(DATA)
    found = kbat.dataset(path)
    assert ds.Scanner.from_dataset(found).count_rows() == 30
    path.write_bytes(DATA + build([(0, b"key", b"value")], base_offset=30))
    assert ds.Scanner.from_dataset(found).count_rows() == 31
    assert found.sort_by("offset").count_rows() == 31


def test_dataset_is_written_by_pyarrow(tmp_path: Path) -> None:
    found = dataset()
    ds.write_dataset(found, tmp_path, format="parquet")
    assert ds.dataset(tmp_path).to_table().sort_by("offset") == found.to_table()


FLOATS = [
    ds.field("offset") < 20.5,
    ds.field("offset") >= 1e6,
    ds.field("offset").isin([1.5, 2.0]),
    ds.field("offset").cast(pa.float64()) < 20.5,
    ds.field(0).is_valid(),
    ds.field(4) > 3,
]


@pytest.mark.parametrize("where", FLOATS, ids=str)
def test_filters_of_other_types_and_by_place_are_those_of_a_table(where: ds.Expression) -> None:
    scan = kbat.scan([DATA, build([(5, None, b"v")], base_offset=100)])
    expected = ds.dataset(scan.to_pyarrow()).to_table(columns=["offset"], filter=where)
    assert kbat.dataset(scan).to_table(columns=["offset"], filter=where) == expected
    assert kbat.dataset(scan).count_rows(filter=where) == len(expected)
    assert kbat.dataset(scan).to_table(columns={"x": ds.field(4)})["x"].to_pylist() == scan.to_pyarrow()[4].to_pylist()


def test_views_that_a_query_does_not_read_are_in_nobodys_way() -> None:
    rows = kbat.dataset(DATA, binary_view=True)
    assert rows.count_rows(filter=ds.field("offset") >= 1) == kbat.scan(DATA).to_pyarrow().num_rows - 1


def test_unknown_arguments_are_refused() -> None:
    for ask in (kbat.dataset(DATA).to_table, kbat.dataset(DATA).scanner, kbat.dataset(DATA).count_rows):
        with pytest.raises(TypeError, match="there is no argument filters; choose among batch_readahead, batch_size"):
            ask(filters=ds.field("offset") > 5)
    assert kbat.dataset(DATA).to_table(fragment_readahead=2, use_threads=False) == kbat.scan(DATA).to_pyarrow()


INTERRUPTED = """
import os, sys, kbat
import pyarrow.dataset as ds
path, how = sys.argv[1:]
size = os.path.getsize(path)
found = kbat.dataset([(path, 0, size)] * 100_000)
nothing = ds.field("key") == b"nothing"
print("go", flush=True)
try:
    if how == "table":
        found.to_table()
    elif how == "count":
        found.count_rows()
    elif how == "batches":
        for batch in found.to_batches(filter=nothing): pass
    elif how == "head":
        found.head(5, filter=nothing)
    elif how == "take":
        found.take([10**12])
    elif how == "sort":
        found.sort_by("offset")
    else:
        for batch in found.scanner().to_reader(): pass
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("how", ["table", "count", "batches", "head", "take", "sort", "reader"])
def test_control_c_ends_a_pass_and_the_interpreter(tmp_path: Path, how: str) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(DATA * 2000)
    _, printed, _ = interrupt(INTERRUPTED, str(path), how)
    assert printed == "interrupted\n"
