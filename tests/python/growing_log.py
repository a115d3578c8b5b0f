"""Partition directories that tests make and let grow: batches of records whose values are their own offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kbat

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


# The timestamp of the record at offset 0; smaller numbers of milliseconds are refused as seconds.
FIRST_TIME = 1_700_000_000_000


def time_of(offset: float) -> int:
    """Return the timestamp of the record at an offset; between two offsets, a time between their timestamps."""
    return FIRST_TIME + int(1000 * offset)


class GrowingLog:
    """A partition directory. The record at offset n has the timestamp `time_of(n)` and the value `<directory>:n`."""

    def __init__(self, directory: Path, start_offset: int = 0) -> None:
        self.directory = directory
        self.end_offset = start_offset
        directory.mkdir(parents=True, exist_ok=True)
        self.roll()

    def roll(self) -> None:
        """Begin a new segment."""
        self.segment = self.directory / f"{self.end_offset:020}.log"
        self.segment.touch()

    def append(self, *counts: int, **settings: Any) -> list[int]:  # noqa: ANN401 -- those of kbat.BatchBuilder
        """Append one batch for each count of records; return their offsets."""
        first = self.end_offset
        for count in counts:
            self._write(self.batch(count, **settings))
            self.end_offset += count
        return list(range(first, self.end_offset))

    def batch(self, count: int, **settings: Any) -> bytes:  # noqa: ANN401 -- likewise
        """Build the batch that would come next."""
        builder = kbat.BatchBuilder(base_offset=self.end_offset, **settings)
        for offset in range(self.end_offset, self.end_offset + count):
            builder.append(None, f"{self.directory.name}:{offset}".encode(), timestamp=time_of(offset))
        return builder.finish()

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """Append a transaction marker."""
        marker = kbat.end_transaction_marker(
            producer_id=producer_id,
            producer_epoch=0,
            commit=commit,
            timestamp=time_of(self.end_offset),
            base_offset=self.end_offset,
        )
        self._write(marker)
        self.end_offset += 1

    def append_bytes(self, data: bytes) -> None:
        """Append an incomplete batch, as in a log that a broker is writing."""
        self._write(data)

    def _write(self, data: bytes) -> None:
        with self.segment.open("ab") as file:
            file.write(data)


def values(directory: Path, offsets: Sequence[int]) -> list[bytes]:
    """Return the values of records."""
    return [f"{directory.name}:{offset}".encode() for offset in offsets]
