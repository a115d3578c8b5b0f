"""`leave_page_cache`: a scan that leaves the page cache as it was, as fincore of util-linux sees it."""

from __future__ import annotations

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
    sys.platform != "linux" or shutil.which("fincore") is None, reason="fincore tells what is cached, on Linux"
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
