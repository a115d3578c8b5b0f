"""Scans of the log of a running broker, whose retention deletes segments after they were listed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pytest

import kbat

if TYPE_CHECKING:
    from pathlib import Path

WARNING = "records are missing: retention deleted 2 segments before the scan reached them"
SEGMENTS = 6
# Records of a segment.
LEN = 10


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A partition with several segments."""
    directory = tmp_path / "orders-0"
    with kbat.LogWriter(directory, segment_bytes=300) as writer:
        for first in range(0, SEGMENTS * LEN, LEN):
            batch = kbat.BatchBuilder(base_offset=first)
            for offset in range(first, first + LEN):
                batch.append(b"key", b"value", timestamp=offset)
            writer.append_batch(batch.finish())
    assert len(list(directory.glob("*.log"))) == SEGMENTS
    return directory


def delete(log: Path, *numbers: int, rename: bool = False) -> None:
    """Delete segments as a broker does: it renames their files, and removes them later."""
    for segment in [sorted(log.glob("*.log"))[number] for number in numbers]:
        for path in log.glob(f"{segment.stem}.*"):
            if rename:
                path.rename(f"{path}.deleted")
            else:
                path.unlink()


def offsets_of(scan: kbat.Scan, threads: int = 1) -> list[int | None]:
    return [offset for batch in scan.to_batches(threads=threads) for offset in batch.column("offset").to_pylist()]


@pytest.mark.parametrize("on_corrupt", ["fail", "skip"])
@pytest.mark.parametrize("threads", [1, 2])
def test_deleted_segments_before_the_log_are_counted(
    log: Path, threads: int, on_corrupt: Literal["fail", "skip"]
) -> None:
    scan = kbat.scan(log, on_corrupt=on_corrupt)
    delete(log, 0, 1)
    with pytest.warns(UserWarning, match=WARNING):
        assert offsets_of(scan, threads=threads) == list(range(2 * LEN, SEGMENTS * LEN))
    assert scan.stats is not None
    assert scan.stats.segments_deleted == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_renamed_segments_are_read(log: Path, threads: int) -> None:
    scan = kbat.scan(log)
    delete(log, 0, 1, rename=True)
    assert offsets_of(scan, threads=threads) == list(range(SEGMENTS * LEN))
    assert scan.stats is not None
    assert scan.stats.segments_deleted == 0


def test_renamed_segments_are_not_read_without_their_transactions(log: Path) -> None:
    scan = kbat.scan(log, isolation="read_committed")
    delete(log, 0, 1, rename=True)
    with pytest.warns(UserWarning, match=WARNING):
        assert offsets_of(scan) == list(range(2 * LEN, SEGMENTS * LEN))


def test_batches_of_deleted_segments_are_counted(log: Path) -> None:
    scan = kbat.scan(log, view="batches")
    delete(log, 0, 1)
    with pytest.warns(UserWarning, match=WARNING):
        assert sum(batch.num_rows for batch in scan.to_batches()) == SEGMENTS - 2


@pytest.mark.parametrize("rename", [False, True])
@pytest.mark.parametrize("numbers", [(2,), (0, 2), tuple(range(SEGMENTS))])
def test_segment_that_others_may_replace_is_an_error(log: Path, numbers: tuple[int, ...], *, rename: bool) -> None:
    """Compaction writes the records of some segments to the first of them: these would be returned twice."""
    scan = kbat.scan(log)
    delete(log, *numbers, rename=rename)
    with pytest.raises(FileNotFoundError, match="deleted or replaced after the log was listed: read the log again"):
        offsets_of(scan)


def test_stream_in_another_thread_fails_because_it_can_not_warn(log: Path) -> None:
    scan = kbat.scan(log)
    delete(log, 0, 1)
    errors: list[BaseException] = []

    def read() -> None:
        try:
            pa.RecordBatchReader.from_stream(scan).read_all()
        except pa.ArrowException as error:
            errors.append(error)

    with pytest.warns(UserWarning, match=WARNING):
        assert pa.RecordBatchReader.from_stream(scan).read_all().num_rows == (SEGMENTS - 2) * LEN
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert [WARNING in str(error) for error in errors] == [True]
