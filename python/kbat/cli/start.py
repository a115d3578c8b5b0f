"""Where reading begins in a partition: the option `--offset`."""

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import typer

import kbat.results
from kbat._core.locations import StoredFile
from kbat._core.text import write_records
from kbat.cli.location import of_file
from kbat.cli.options import MAX, time

# How many times as many offsets are searched for the last records if some of the offsets have none.
_WIDER = 8
# Bytes that differ between two batches: their headers up to the checksum, in all message formats.
_HEAD_LEN = 21

ScanOf = Callable[..., kbat.Scan]


@dataclass(frozen=True)
class Start:
    """Where reading begins: an offset, a number of records before the end, a time, or one of the ends."""

    kind: str
    number: int = 0


BEGINNING = Start("offset", 0)


def start(value: str) -> Start:
    """Parse the value of `--offset`."""
    text = str(value).strip()
    match text:
        case "beginning" | "earliest":
            return BEGINNING
        case "end" | "latest":
            return Start("last", 0)
    if match := re.fullmatch(r"([-+]?)(\d+)", text):
        number = int(match[2])
        if number > MAX:
            message = f"{text} is too large; the largest offset is {MAX}"
            raise typer.BadParameter(message)
        return Start("last" if match[1] == "-" else "offset", number)
    if text.startswith(("s@", "S@")):
        return Start("time", time(text[2:]))
    if re.match(r"\d{4}-", text):
        return Start("time", time(text))
    message = (
        f"{text!r} is not a place in a log; use beginning, end, an offset, -N for the last N records, "
        "or a time such as 2024-05-01T12:30:00Z"
    )
    raise typer.BadParameter(message)


@dataclass(frozen=True)
class Partition:
    """A partition that is read on its own: its segments, or a buffer of batches."""

    key: str
    source: list[kbat.results.SegmentFile] | bytes

    @property
    def size(self) -> int:
        """Bytes of all segments when they were found."""
        return len(self.source) if isinstance(self.source, bytes) else sum(one.size for one in self.source)

    def parts(self, first: int) -> "list[Partition]":
        """Return a partition for each segment that may have records from an offset on."""
        if isinstance(self.source, bytes):
            return [self]
        ends = [one.base_offset for one in self.source[1:]]
        kept = [one for one, end in zip(self.source, [*ends, None], strict=True) if end is None or end > first]
        return [Partition(self.key, [one]) for one in kept]

    @property
    def written(self) -> tuple[int, int]:
        """Bytes of all segments, and when the last one was written to: a preallocated file keeps its size."""
        changed = 0
        if not isinstance(self.source, bytes):
            with suppress(OSError, ValueError):
                changed = Path(self.source[-1].path).stat().st_mtime_ns
        return self.size, changed

    @property
    def base_offset(self) -> int:
        """The base offset of the first segment; 0 if its name does not contain one."""
        return 0 if isinstance(self.source, bytes) else self.source[0].base_offset or 0

    @property
    def last_base_offset(self) -> int:
        """The base offset of the last segment; 0 if its name does not contain one."""
        return 0 if isinstance(self.source, bytes) else self.source[-1].base_offset or 0

    def heads(self, options: dict[str, Any]) -> dict[str, bytes]:
        """Return the first bytes of the first and the last segment by their paths; none of a segment without a file."""
        found: dict[str, bytes] = {}
        for one in () if isinstance(self.source, bytes) else (self.source[0], self.source[-1]):
            found[one.path] = b""
            # remote segments do not change
            with suppress(OSError, ValueError, kbat.KbatError):
                found[one.path] = StoredFile(one.path, **of_file(options)).read_at(0, _HEAD_LEN)
        return found

    def end_offset(self, options: dict[str, Any]) -> int:
        """Return the offset after the last record."""
        last = self.source if isinstance(self.source, bytes) else self.source[-1]
        if isinstance(last, bytes):
            batches = kbat.read_batches(last)
        elif last.base_offset is not None:
            return kbat.Segment(last).end_offset
        else:
            batches = kbat.read_batches(last.path, **of_file(options))
        end = 0
        for batch in batches:
            end = batch.last_offset + 1
        return end


def partitions_of(segments: Iterable[kbat.results.SegmentFile]) -> list[Partition]:
    """Return the partitions that segments belong to, in the order of their first segments."""
    found: dict[str, list[kbat.results.SegmentFile]] = {}
    for one in segments:
        directory = os.fspath(PurePath(one.path).parent)
        found.setdefault(one.path if one.base_offset is None else directory, []).append(one)
    return [Partition(key, own) for key, own in found.items()]


def offset_of(
    begin: Start, partition: Partition, scan_of: ScanOf, options: dict[str, Any], end_offset: int | None = None
) -> int:
    """Return the offset at which reading a partition begins.

    Args:
        begin: Where reading begins.
        partition: The partition.
        scan_of: Called with bounds; returns the scan whose records count as the last ones.
        options: How to open the partition's store.
        end_offset: The offset at which reading ends, if it is not that of the partition.
    """
    if begin.kind == "offset":
        return begin.number
    end = partition.end_offset(options)
    end = end if end_offset is None else min(end, end_offset)
    if begin.kind == "time":
        return next(iter(_offsets(scan_of(start_timestamp=begin.number), limit=1)), end)
    if begin.number == 0:
        return end
    count = begin.number
    while True:
        first = max(0, end - count)
        offsets = _offsets(scan_of(start_offset=first))
        if first == 0 or len(offsets) >= begin.number:
            return offsets[-min(begin.number, len(offsets))] if offsets else end
        count *= _WIDER


def _offsets(scan: kbat.Scan, limit: int | None = None) -> list[int]:
    """Return the offsets of the records of a scan."""
    pieces: list[bytes] = []
    write_records(scan, pieces.append, output_format="%o ", limit=limit)
    return [int(offset) for offset in b"".join(pieces).split()]
