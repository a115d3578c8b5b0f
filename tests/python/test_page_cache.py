"""`leave_page_cache`: a scan that leaves the page cache as it was, as fincore of util-linux sees it."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

import kbat

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("fincore") is None, reason="requires fincore on Linux to list cached pages"
)


def cached_len(path: Path) -> int:
    """Bytes of a file in the page cache."""
    command = ["fincore", "--raw", "--noheadings", "--bytes", "--output", "RES", os.fspath(path)]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)  # noqa: S603 -- our own


@pytest.fixture
def log() -> Iterator[Path]:
    """A segment of 4 MB in batches of 16 KB, none of it cached."""
    directory = Path(__file__).parents[2] / "target" / f"page-cache-{os.getpid()}"
    directory.mkdir(parents=True)
    builder = kbat.BatchBuilder()
    builder.append(None, b"\x07" * 16_000, timestamp=1)
    batch = bytearray(builder.finish())
    path = directory / f"{0:020}.log"
    with path.open("wb") as file:
        for offset in range(256):
            kbat.set_base_offset(batch, offset)
            file.write(batch)
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if cached_len(path):
        shutil.rmtree(directory)
        pytest.skip("a file system in memory can't drop pages")
    yield path
    shutil.rmtree(directory)


@pytest.mark.parametrize("view", ["records", "batches", "segments"])
def test_scan_leaves_the_page_cache_as_it_was_where_asked(
    log: Path, view: Literal["records", "batches", "segments"]
) -> None:
    rows = {"records": 256, "batches": 256, "segments": 1}[view]
    with log.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        os.pread(file.fileno(), 1, 1 << 21)  # what a broker would have cached
    before = cached_len(log)
    assert before > 0
    assert kbat.scan(log, view=view, leave_page_cache=True).to_pyarrow().num_rows == rows
    assert cached_len(log) == before
    assert kbat.scan(log, view="records").to_pyarrow().num_rows == 256
    assert cached_len(log) > before


def read_from_disk() -> int:
    """Bytes that this process has read from disk."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


def test_header_walk_reads_a_twentieth_of_the_disk_at_the_most(log: Path) -> None:
    """Batches of 16 KB; of each a sector or two."""
    scan = kbat.scan(log, view="batches", leave_page_cache=True)
    batches = list(scan.to_batches())  # what is imported for it is read from disk too
    with log.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before = read_from_disk()
    assert sum(batch.num_rows for batch in scan.to_batches()) == 256
    read = read_from_disk() - before
    if read > log.stat().st_size // 5 and not reads_sectors(log):
        pytest.skip("this disk or file system reads whole pages")
    assert sum(batch.num_rows for batch in batches) == 256
    assert 0 < read < log.stat().st_size // 20


def reads_sectors(path: Path) -> bool:
    """Whether the file can be read by sectors of 512 bytes, around the page cache."""
    memory = mmap.mmap(-1, 4096)
    try:
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return False
    try:
        return os.preadv(file, [memoryview(memory)[:512]], 512) == 512
    except OSError:
        return False
    finally:
        os.close(file)
