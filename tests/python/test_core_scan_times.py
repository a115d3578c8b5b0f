"""`kbat.scan` bound by timestamps: the same rows as a filter over all, and little read."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import kbat
from data import DATA, build, with_wrapper_timestamp

if TYPE_CHECKING:
    from pathlib import Path

CASES = ["out-of-order", "segments-by-time", "log-append-time-lz4", "compacted-append-time", "mixed-codecs"]
LEGACY = ["k0100-kp202-lz4", "k0102-times", "k0102-times-snappy", "k0102-logappend-gzip", "k0822-java0822-gzip"]


def rows(source: Any, **options: Any) -> list[tuple[int, int]]:  # noqa: ANN401 -- those of kbat.scan
    table = kbat.scan(source, columns=["offset", "timestamp"], **options).to_pyarrow()
    # without a timestamp a record is in no time range
    times: list[Any] = table["timestamp"].cast(pa.int64()).to_pylist()
    times = [-(2**63) if time is None else time for time in times]
    offsets: list[Any] = table["offset"].to_pylist()
    return list(zip(offsets, times, strict=True))


@pytest.mark.parametrize("case", [f"corpus/{case}" for case in CASES] + [f"corpus-legacy/{case}" for case in LEGACY])
@pytest.mark.parametrize("suffixes", [(), (".index", ".timeindex")], ids=["with indexes", "without"])
def test_timestamps_bound_the_rows(case: str, suffixes: tuple[str, ...], tmp_path: Path) -> None:
    directory = tmp_path / "topic-0"
    shutil.copytree(DATA / case, directory)
    for path in list(directory.iterdir()):
        if path.suffix in suffixes:
            path.unlink()
    whole = rows(directory)
    times = sorted({time for _, time in whole if time > -(2**63)}) or [1_700_000_000_000]
    picked = [times[0] - 1, *times[:: max(1, len(times) // 6)], times[-1], times[-1] + 1]
    for start in picked:
        assert rows(directory, start_timestamp=start) == [row for row in whole if row[1] >= start]
        for end in picked[::2]:
            expected = [row for row in whole if start <= row[1] < end]
            assert rows(directory, start_timestamp=start, end_timestamp=end) == expected
    middle = whole[len(whole) // 2][0]
    expected = [row for row in whole if row[0] >= middle and row[1] >= picked[2]]
    assert rows(directory, start_offset=middle, start_timestamp=picked[2]) == expected


@pytest.mark.parametrize("told", [0, -1, 1_700_000_000_000])
def test_what_a_client_wrote_into_the_wrapper_of_a_set_leaves_no_record_out(told: int, tmp_path: Path) -> None:
    times = [1_700_000_000_000, 1_700_000_000_001, 1_700_000_000_002]
    data = build([(time, b"k", b"v") for time in times], magic=1, compression="gzip")
    message = with_wrapper_timestamp(data, told)
    path = tmp_path / "t-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(message)
    for source in (message, path.parent):
        assert rows(source) == list(enumerate(times))
        for index, time in enumerate(times):
            assert rows(source, start_timestamp=time) == list(enumerate(times))[index:]


def test_timestamps_may_be_datetimes() -> None:
    data = build([(1_700_000_000_000 + index, None, b"") for index in range(10)])
    start = dt.datetime(2023, 11, 14, 22, 13, 20, 3000, tzinfo=dt.UTC)
    found = [offset for offset, _ in rows(data, start_timestamp=start)]
    assert found == [3, 4, 5, 6, 7, 8, 9]
    assert [offset for offset, _ in rows(data, end_timestamp=np.int64(1_700_000_000_002))] == [0, 1]
    zone = dt.timezone(dt.timedelta(hours=5))
    assert [offset for offset, _ in rows(data, end_timestamp=start.astimezone(zone))] == [0, 1, 2]
    later = start + dt.timedelta(microseconds=1)
    assert next(offset for offset, _ in rows(data, start_timestamp=later)) == 4
    assert [offset for offset, _ in rows(data, end_timestamp=later)][-1] == 3
    assert [offset for offset, _ in rows(data, start_timestamp="2023-11-14T22:13:20.003Z")] == found
    assert [offset for offset, _ in rows(data, start_timestamp="2023-11-15T00:13:20.003+02:00")] == found
    with pytest.raises(TypeError, match="datetime"):
        kbat.scan(data, start_timestamp=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("time", ["2023-11-14", "2023-11-14T22:13:20", "yesterday", dt.datetime(2023, 11, 14)])  # noqa: DTZ001 -- without a zone
def test_times_without_a_zone_and_other_text_are_refused(time: Any) -> None:  # noqa: ANN401 -- of two types
    with pytest.raises(ValueError, match="time zone"):
        kbat.scan(b"", start_timestamp=time)
    with pytest.raises(ValueError, match="time zone"):
        kbat.BatchBuilder().append(b"", b"", timestamp=time)


def test_seconds_in_place_of_milliseconds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"1700000000 looks like seconds.*1700000000000"):
        kbat.scan(b"", start_timestamp=1_700_000_000)
    with pytest.raises(ValueError, match="looks like seconds"):
        kbat.scan(b"", end_timestamp=1_700_000_000)
    with pytest.raises(ValueError, match="looks like seconds"):
        kbat.BatchBuilder().append(b"", b"", timestamp=1_700_000_000)
    with kbat.LogWriter(tmp_path / "t-0") as writer, pytest.raises(ValueError, match="looks like seconds"):
        writer.append(b"", b"", timestamp=1_700_000_000)
    assert kbat.scan(b"", start_timestamp=0, end_timestamp=1).count() == 0


def test_batches_that_are_too_old_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "segment.bin"
    data = b"".join(build([(time, None, bytes(16_000))], base_offset=time) for time in range(500))
    path.write_bytes(data)
    batches = kbat.scan(path, start_timestamp=490, columns=["offset"]).to_batches()
    assert [offset for batch in batches for offset in batch["offset"].to_pylist()] == list(range(490, 500))
    assert batches.stats.bytes_read < len(data) // 10


def test_segments_that_are_too_old_are_not_opened() -> None:
    directory = DATA / "corpus" / "segments-by-time"
    whole = rows(directory)
    latest = max(time for _, time in whole)
    batches = kbat.scan(directory, columns=["offset"], start_timestamp=latest).to_batches()
    found = [offset for batch in batches for offset in batch["offset"].to_pylist()]
    assert found == [offset for offset, time in whole if time >= latest]
    assert batches.stats.bytes_read <= max(path.stat().st_size for path in directory.glob("*.log"))


@pytest.mark.parametrize("kept", [0, 1, 25, 48])
def test_a_time_index_without_its_last_entries_hides_no_record(kept: int, tmp_path: Path) -> None:
    """The last records are old ones, as after a retry: the end of the log does not show the largest timestamp."""
    directory, start = tmp_path / "orders-0", 1_700_000_000_000
    with kbat.LogWriter(directory, index_interval_bytes=1, batch_size=200) as writer:
        for number in range(120):
            writer.append(b"key", bytes(50), timestamp=start + 1000 * (number if number < 100 else 0))
    [index] = directory.glob("*.timeindex")
    assert index.stat().st_size > 12 * kept
    os.truncate(index, 12 * kept)
    assert kbat.scan(directory, start_timestamp=start + 80_000).count() == 20
