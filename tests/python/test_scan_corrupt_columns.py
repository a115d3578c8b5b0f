"""Rows that remain if corruption is skipped or reported, and the reports, do not depend on the columns of a scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

import kbat
from data import build, with_right_crc
from growing_log import GrowingLog, time_of

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = (["key"], ["offset"], ["offset", "timestamp"], ["headers"], ["offset", "key", "timestamp", "headers"])


def offsets_of(path: Path, columns: list[str], on_corrupt: Literal["skip", "report"]) -> tuple[int, list[int]]:
    """Return the number of rows with a record, and the offsets of the errors."""
    table = kbat.scan(path, columns=columns, on_corrupt=on_corrupt, timestamp_unit="us").to_pyarrow()
    if on_corrupt == "skip":
        return table.num_rows, []
    errors = [error for error in table["error"].to_pylist() if error is not None]
    return table.num_rows - len(errors), [error["first_offset"] for error in errors]


@pytest.fixture
def corrupt_header(tmp_path: Path) -> Path:
    log = GrowingLog(tmp_path / "a-0")
    log.append(2)
    builder = kbat.BatchBuilder(base_offset=2)
    builder.append(b"k", b"v", timestamp=time_of(2), headers=[("h", b"x")])
    batch = bytearray(builder.finish())
    assert batch[-4:] == b"\x02h\x02x"
    batch[-4] = 0x69  # the size of the header's key becomes -53
    log.append_bytes(bytes(with_right_crc(batch)))
    log.end_offset = 3
    log.append(2)
    return tmp_path / "a-0"


@pytest.fixture
def distant_time(tmp_path: Path) -> Path:
    log = GrowingLog(tmp_path / "a-0")
    log.append(2)
    builder = kbat.BatchBuilder(base_offset=2)
    builder.append(b"k", b"v", timestamp=time_of(2))
    builder.append(b"k", b"v", timestamp=2**63 // 1000 + 5)
    log.append_bytes(builder.finish())
    log.end_offset = 4
    log.append(2)
    return tmp_path / "a-0"


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("case", ["corrupt_header", "distant_time"])
def test_a_batch_with_a_field_that_no_column_can_contain_is_skipped_by_every_scan(
    case: str, columns: list[str], request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(case)
    assert offsets_of(path, columns, "skip") == (4, [])
    assert offsets_of(path, columns, "report") == (4, [2])


def test_milliseconds_contain_every_timestamp(distant_time: Path) -> None:
    assert kbat.scan(distant_time, on_corrupt="skip").to_pyarrow().num_rows == 6


@pytest.mark.parametrize("columns", [["segment"], ["end_offset"], ["batch_count"], ["largest_timestamp", "size"]])
def test_reports_about_segments_do_not_depend_on_the_columns(columns: list[str], tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(2, 2, 2)
    segment = next((tmp_path / "a-0").glob("*.log"))
    content = bytearray(segment.read_bytes())
    content[len(content) // 3 + 16] = 9  # the magic of the second batch
    segment.write_bytes(content)
    everything = kbat.scan(tmp_path, view="segments", on_corrupt="report").to_pyarrow()["error"].to_pylist()
    assert everything[0] is not None
    table = kbat.scan(tmp_path, view="segments", columns=columns, on_corrupt="report").to_pyarrow()
    assert table["error"].to_pylist() == everything


def three_segments(directory: Path, end: bytes, size: int) -> None:
    """Segments of one record each, of which the first ends with other bytes."""
    directory.mkdir(parents=True)
    for base_offset in (0, 11, 12):
        content = build([(1, b"k", b"v")], base_offset=base_offset)
        (directory / f"{base_offset:020}.log").write_bytes(content + (end[:size] if base_offset == 0 else b""))


@pytest.mark.parametrize(("size", "ranges"), [(40, 1), (1_000, 2)])
def test_corruption_before_a_later_segment_is_counted_once(size: int, ranges: int, tmp_path: Path) -> None:
    lost = bytearray(build([(1, b"k", b"v")] * 10, base_offset=1))
    lost[-3] ^= 1
    three_segments(tmp_path / "t-0", bytes(lost) + bytes(50), size)
    with pytest.raises(kbat.CorruptError):
        kbat.scan(tmp_path).to_pyarrow()
    scan = kbat.scan(tmp_path, on_corrupt="report")
    errors = [row["error"] for row in scan.to_pyarrow().to_pylist() if row["error"]]
    assert [(row["first_offset"], row["last_offset"]) for row in errors] == [(1, 10), (None, None)][:ranges]
    assert scan.stats is not None
    assert (scan.stats.offsets_lost, scan.stats.batches_skipped) == (10, ranges)


def test_a_list_of_segments_is_read_like_their_directory(tmp_path: Path) -> None:
    lost = bytearray(build([(1, b"k", b"v")] * 10, base_offset=1))
    lost[-3] ^= 1
    three_segments(tmp_path / "t-0", bytes(lost), 1_000)
    paths = sorted((tmp_path / "t-0").iterdir())
    sources: list[Any] = [tmp_path, paths, kbat.find_segments(tmp_path), kbat.split(tmp_path, 1), paths[1:]]
    for source in sources:
        assert kbat.scan(source, start_offset=11).to_pyarrow()["offset"].to_pylist() == [11, 12]
