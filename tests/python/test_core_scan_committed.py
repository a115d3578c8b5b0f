"""`kbat.scan(isolation="read_committed")`: the same records as a consumer of a broker with the same segments."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import kbat.batches
from data import DATA, build, patched, with_right_crc

if TYPE_CHECKING:
    from pathlib import Path

CASES = sorted(path.parent for path in DATA.rglob("read-committed.json*"))
COLUMNS = ["offset"]


def answer(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "read-committed.json").read_text())
    return found


def committed(source: Any, **options: Any) -> list[int]:  # noqa: ANN401 -- those of kbat.scan
    table = kbat.scan(source, columns=COLUMNS, isolation="read_committed", **options).to_pyarrow()
    offsets: list[Any] = table["offset"].to_pylist()
    return offsets


def case_id(directory: Path) -> str:
    return str(directory.relative_to(DATA))


def test_there_are_cases() -> None:
    assert len(CASES) == 7


@pytest.mark.parametrize("case", CASES, ids=case_id)
@pytest.mark.parametrize(
    "without", [(), (".txnindex",), (".snapshot",), (".txnindex", ".snapshot", ".index", ".timeindex")]
)
def test_offsets_are_those_that_the_consumer_got(case: Path, without: tuple[str, ...], tmp_path: Path) -> None:
    """Edge cases 64 to 66 and format.md 18: with every file that helps, and without."""
    directory = tmp_path / "topic-0"
    shutil.copytree(case, directory)
    for path in list(directory.iterdir()):
        if path.suffix in without:
            path.unlink()
    expected = answer(case)
    # records below the first offset that the broker served are in the files, but were deleted
    found = committed(directory, start_offset=expected["beginningOffset"])
    assert found == expected["offsets"]
    log = kbat.PartitionLog(directory)
    assert log.last_stable_offset == expected["endOffset"]


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_a_cut_transaction_index_commits_nothing(case: Path, tmp_path: Path) -> None:
    """Aborted transactions come from the markers; the index adds others."""
    directory = tmp_path / "topic-0"
    shutil.copytree(case, directory)
    expected = committed(directory)
    for path in directory.glob("*.txnindex"):
        whole = path.read_bytes()
        for left in (whole[:-34], whole[:-10], b"", whole[34:], bytes(len(whole)), b"\1" + whole[1:]):
            path.write_bytes(left)
            assert committed(directory) == expected, left
        path.write_bytes(whole)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_parts_of_segments_give_the_same(case: Path) -> None:
    expected = [offset for offset in answer(case)["offsets"] if offset >= answer(case)["beginningOffset"]]
    for max_bytes in (1, 500, 5000):
        parts = kbat.split(case, max_bytes)
        found = [offset for part in parts for offset in committed(part)]
        assert found == expected, max_bytes
    each = [offset for segment in sorted(case.glob("*.log")) for offset in committed(segment)]
    assert each == expected


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_bounds_hold_for_committed_records(case: Path) -> None:
    offsets = answer(case)["offsets"]
    for start, end in [(offsets[len(offsets) // 3], offsets[-2]), (offsets[1], offsets[-1] + 1000)]:
        expected = [offset for offset in offsets if start <= offset < end]
        assert committed(case, start_offset=start, end_offset=end) == expected


def transaction(producer: int, base_offset: int, *, commit: bool | None) -> bytes:
    data = build(
        [(1, b"k", b"v")] * 2,
        base_offset=base_offset,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    if commit is None:
        return data
    marker = {"producer_id": producer, "producer_epoch": 0, "timestamp": 5, "base_offset": base_offset + 2}
    return data + kbat.batches.end_transaction_marker(commit=commit, **marker)


def test_a_buffer_tells_itself() -> None:
    data = (
        transaction(1, 0, commit=True) + transaction(2, 3, commit=False) + build([(1, None, b"plain")], base_offset=6)
    )
    assert committed(data) == [0, 1, 6]
    assert committed(data + transaction(3, 7, commit=None)) == [0, 1, 6]
    assert committed(data + transaction(3, 7, commit=None) + build([(1, None, b"later")], base_offset=9)) == [0, 1, 6]


def test_a_file_outside_a_partition_tells_itself(tmp_path: Path) -> None:
    path = tmp_path / "backup.bin"
    path.write_bytes(transaction(1, 0, commit=False) + transaction(1, 3, commit=True) + transaction(2, 6, commit=None))
    assert committed(path) == [3, 4]


def test_a_transaction_that_ends_in_a_later_segment(tmp_path: Path) -> None:
    data = transaction(7, 0, commit=False)
    marker = data[-78:]
    (tmp_path / f"{0:020}.log").write_bytes(data[:-78])
    (tmp_path / f"{2:020}.log").write_bytes(marker + build([(1, None, b"after")], base_offset=3))
    assert committed(tmp_path / f"{0:020}.log") == []
    assert committed(tmp_path) == [3]


def test_control_records_come_on_request_and_aborted_ones_never() -> None:
    data = transaction(1, 0, commit=True) + transaction(2, 3, commit=False)
    assert committed(data, include_control=True) == [0, 1, 2, 5]


def test_views_of_other_rows_refuse_it() -> None:
    with pytest.raises(ValueError, match="applies to records only"):
        kbat.scan(b"", view="batches", isolation="read_committed")


def test_transactions_that_overlap_or_are_empty_are_told_apart() -> None:
    """Edge case 66: two producers in turn, compressed, markers in the other order; markers with nothing before them."""

    def data(producer: int, base_offset: int) -> bytes:
        records = [(1, b"k", b"v" * 50)] * 2
        fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": base_offset, "transactional": True}
        return build(records, base_offset=base_offset, compression="lz4", **fields)

    def marker(producer: int, offset: int, *, commit: bool) -> bytes:
        return kbat.batches.end_transaction_marker(
            commit=commit, producer_id=producer, producer_epoch=0, timestamp=5, base_offset=offset
        )

    log = (
        marker(9, 0, commit=False)
        + data(1, 1)
        + data(2, 3)
        + data(1, 5)
        + marker(2, 7, commit=False)
        + marker(2, 8, commit=False)
        + data(2, 9)
        + marker(1, 11, commit=True)
        + marker(2, 12, commit=True)
    )
    assert committed(log) == [1, 2, 5, 6, 9, 10]
    # an abort that ends a transaction after the asked-for range counts all the same
    aborted = log[: -len(marker(2, 12, commit=True))] + marker(2, 12, commit=False)
    assert committed(aborted, start_offset=9, end_offset=11) == []


def test_control_batches_that_say_nothing_end_no_transaction() -> None:
    """format.md gotcha 17: an empty control batch, and one of an unknown type."""
    data = transaction(1, 0, commit=None)
    marker = transaction(1, 0, commit=False)[len(data) :]
    emptied = kbat.retain_records(marker, lambda _: False, retention="retain_empty")
    unknown = bytes(with_right_crc(patched(marker, marker.index(b"\0\0\0\0", 64), ">hh", 0, 99)))
    assert len(emptied) == 61
    assert [record.control and record.control.type for record in next(kbat.read_batches(unknown))] == ["UNKNOWN(99)"]
    commit = transaction(1, 1, commit=True)[-len(marker) :]
    for nothing in (emptied, unknown):
        assert committed(data + nothing) == []
        assert committed(data + nothing + commit) == [0, 1]
        assert committed(data + nothing + commit, include_control=True)[-1] == 3
    assert committed(data + marker + commit) == []
