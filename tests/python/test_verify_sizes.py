"""`kbat.verify` on sizes: indexes with large gaps, segments that no broker opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kbat
from data import build

if TYPE_CHECKING:
    from pathlib import Path


def kinds(path: Path) -> dict[str, str]:
    """Kinds of the findings on a path, and how bad each is."""
    return {finding.kind: finding.severity for finding in kbat.verify(path).findings}


def test_verify_index_with_a_large_gap_is_told(tmp_path: Path) -> None:
    """Lookups are correct, but read all bytes between two entries."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    log = directory / f"{0:020}.log"
    batch = bytearray(build([(1, None, b"v" * 1_000_000)]))
    with log.open("wb") as file:
        for offset in range(40):
            kbat.set_base_offset(batch, offset)
            file.write(batch)
    kbat.rebuild_indexes(directory)
    assert "index_sparse" not in kinds(directory)
    index = log.with_suffix(".index")
    index.write_bytes(index.read_bytes()[:8])
    assert kinds(directory)["index_sparse"] == "info"


def test_verify_segment_longer_than_a_broker_opens_is_an_error(tmp_path: Path) -> None:
    """The zeros after the batch are a hole in the file."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    log = directory / f"{0:020}.log"
    log.write_bytes(build())
    assert "segment_len" not in kinds(directory)
    with log.open("r+b") as file:
        file.truncate(2**31)
    assert kinds(directory)["segment_len"] == "error"
