"""Which task reads which bytes.

```
paths ──► logs by topic and partition ──► offset ranges ──► windows of segments, cut between batches
                                                            ──► runs of neighbours of about equal size ──► one task each
```

A Python task costs some 50 ms before its first row, so small segments go together; a task's size is bound by
`maxPartitionBytes` so that many machines get work. Listings are taken once, on the driver, and travel in the tasks.
"""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

import kbat
from kbat.spark.filters import Interval, RowFilter
from kbat.spark.listing import list_logs
from kbat.spark.places import SegmentPlaces
from kbat.spark.ranges import LogRange, resolve
from kbat.spark.rows import advising
from kbat.spark.topics import NO_PARTITION, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kbat.spark.listing import Segment
    from kbat.spark.options import ReadOptions

# Below this many bytes a task is mostly its own start.
MIN_TASK_LEN = 4 << 20
# How much more a task takes on that reads headers only.
HEADERS_ONLY = 16
# Files of which little is read.
FILES_IN_A_TASK = 500
# Segments are cut to give every core work, but not into less than this.
MIN_CUT_LEN = 32 << 20
# A segment a tenth larger than a core's share is not worth a cut: as Hadoop has it for its splits.
SLOP = 10


@dataclass(frozen=True)
class Piece:
    """A window of a segment, from a batch to a batch, and the offsets wanted of it; None where there is no bound."""

    path: str
    start: int
    end: int
    partition: TopicPartition = NO_PARTITION
    start_offset: int | None = None
    end_offset: int | None = None
    offset_count: int = 0
    # where the batches and faults begin that belong to the next window; None if all in this one belong to it
    own_end: int | None = None

    @property
    def size(self) -> int:
        """Bytes of the window."""
        return self.end - self.start

    is_whole: bool = False

    @property
    def source(self) -> str | tuple[str, int, int]:
        """The window as `kbat.scan` takes it, or the file."""
        return self.path if self.is_whole else (self.path, self.start, self.end)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is wanted of it."""
        return self.end_offset is not None and (self.start_offset or 0) >= self.end_offset


@dataclass(frozen=True)
class ReadPartition(InputPartition):
    """What one task reads, in this order."""

    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        """Bytes of all pieces together."""
        return sum(piece.size for piece in self.pieces)

    def scans(self) -> Iterator[list[Piece]]:
        """Yield runs of pieces that one scan reads: those with the same partition and bounds."""
        for _, run in itertools.groupby(
            self.pieces, lambda piece: (piece.partition, piece.start_offset, piece.end_offset)
        ):
            yield list(run)


@advising()
def plan(options: ReadOptions, wanted: RowFilter | None = None) -> list[ReadPartition]:
    """List the segments of all paths and share them out. The list is never empty: no rows are read by one idle task.

    What `wanted` says can't match is left out.

    Raises `FileNotFoundError` for a path where nothing is, `ValueError` for one that is not in a local file system, and
    what `resolve` raises; `kbat.CorruptError` for a segment that ends before an offset it should have, with
    `onCorrupt=fail`.
    """
    logs = list_logs(options)
    if not logs:
        where = ", ".join(options.all_paths)
        warnings.warn(f"kbat: no segments of what is asked for at {where}: the read has no rows", stacklevel=2)
    ranges = resolve(logs, options)
    if options.view == "segments":
        return plan_files(ranges)
    if wanted is None:
        return plan_ranges(ranges, options)
    left = [_filtered(a_range, wanted) for a_range in ranges if wanted.takes(a_range.log.partition)]
    return plan_ranges(left, options, wanted.timestamps.start)


def _filtered(a_range: LogRange, wanted: RowFilter) -> LogRange:
    both = Interval(a_range.start, a_range.end).intersect(wanted.offsets)
    return replace(a_range, start=both.start, end=both.end)


def plan_files(ranges: Sequence[LogRange]) -> list[ReadPartition]:
    """Share out whole files that may hold what is wanted, to read little of each."""
    files = [
        Piece(segment.path, 0, segment.size, a_range.log.partition, is_whole=True)
        for a_range in ranges
        for segment, _ in _segments_within(a_range)
    ]
    return [
        ReadPartition(tuple(files[start : start + FILES_IN_A_TASK])) for start in range(0, len(files), FILES_IN_A_TASK)
    ] or [ReadPartition(())]


def plan_ranges(
    ranges: Sequence[LogRange], options: ReadOptions, start_timestamp: int | None = None
) -> list[ReadPartition]:
    """Share out what was resolved, but for segments all of whose records are older than `start_timestamp`."""
    whole = [found for a_range in ranges for found in _whole_segments(a_range)]
    if start_timestamp is not None:
        whole = [found for found in whole if not found.is_older(start_timestamp, options)]
    total = sum(found.piece.size for found in whole)
    cores = os.cpu_count() or 1
    most = options.max_partition_bytes * (HEADERS_ONLY if options.view == "batches" else 1)
    share = -(-total // cores)
    max_len = min(most, max(share + share // SLOP, MIN_CUT_LEN))
    if options.min_partitions:
        max_len = min(max_len, max(-(-total // options.min_partitions), 1))
    max_count = options.max_records_per_partition
    cutter = _Cutter(max_len, options)
    pieces = [part for found in whole for part in cutter.cut(found)]
    return list(pack(pieces, max_len, cores, max_count)) or [ReadPartition(())]


def pack(
    pieces: Sequence[Piece], max_len: int, cores: int, max_offset_count: int | None = None
) -> Iterator[ReadPartition]:
    """Group neighbours into tasks of about equal size, at most `max_len` bytes; a larger piece is a task of its own.

    There are as many tasks as that takes, or one for each core if each then has `MIN_TASK_LEN` bytes. No task has more
    than `max_offset_count` offsets, if that is given.
    """
    total = sum(piece.size for piece in pieces)
    count = max(-(-total // max_len), min(cores, total // MIN_TASK_LEN), 1)
    run: list[Piece] = []
    run_len = run_place = run_count = start = 0
    for piece in pieces:
        # a piece belongs to the task in whose share of all bytes its middle lies
        place = (2 * start + piece.size) * count // (2 * total)
        is_full = run_len + piece.size > max_len or run_count + piece.offset_count > (max_offset_count or sys.maxsize)
        if run and (place != run_place or is_full):
            yield ReadPartition(tuple(run))
            run, run_len, run_count = [], 0, 0
        run.append(piece)
        run_len += piece.size
        run_count += piece.offset_count
        run_place = place
        start += piece.size
    if run:
        yield ReadPartition(tuple(run))


@dataclass(frozen=True)
class _Whole:
    """A segment that may hold what is wanted, its base offset and that of the next one; `goes_on` as in `LogRange`."""

    piece: Piece
    base: int | None
    next_base: int | None
    goes_on: bool

    def has_inside(self, offset: int) -> bool:
        """Whether there may be batches of the segment on both sides of an offset."""
        return self.base is not None and self.base < offset and (self.next_base is None or offset < self.next_base)

    def is_older(self, timestamp: int, options: ReadOptions) -> bool:
        """Whether all its records are known to be older than a time."""
        if self.base is None:
            return False
        return SegmentPlaces(self.piece.path, self.piece.end, self.next_base, options).is_older(timestamp)


def _whole_segments(a_range: LogRange) -> Iterator[_Whole]:
    """Yield the segments that may hold what is wanted and that are not empty."""
    for segment, next_base in _segments_within(a_range):
        if segment.size:
            piece = Piece(segment.path, 0, segment.size, a_range.log.partition, a_range.start, a_range.end)
            yield _Whole(piece, segment.base_offset, next_base, a_range.goes_on)


def _segments_within(a_range: LogRange) -> Iterator[tuple[Segment, int | None]]:
    """Yield the segments whose offsets, by their names, lie in a range, each with the base offset of the next one."""
    segments, start, end = a_range.log.segments, a_range.start, a_range.end
    nexts = [segment.base_offset for segment in segments[1:]]
    for segment, next_base in itertools.zip_longest(segments, nexts):
        base = segment.base_offset
        is_before = start is not None and next_base is not None and next_base <= start
        is_after = end is not None and base is not None and base >= end
        if not is_before and not is_after:
            yield segment, next_base


@dataclass(frozen=True)
class _Cutter:
    """Cuts segments into windows of at most `max_len` bytes, and of the offsets that the options let one task read."""

    max_len: int
    options: ReadOptions

    def cut(self, found: _Whole) -> Iterator[Piece]:
        """Cut a segment down to the offsets wanted, then into windows; a batch and a fault belong to one of them.

        Raises `kbat.CorruptError` where the segment ends before an offset that is asked for, with `onCorrupt=fail`.
        """
        piece = found.piece
        if found.base is None:
            yield from () if piece.is_idle else self._by_size(piece)
            return
        places = SegmentPlaces(piece.path, piece.end, found.next_base, self.options)
        edges = self._edges(found, places)
        bounds = [piece.start_offset, *edges[1:-1], piece.end_offset]
        most = self.options.max_records_per_partition or 0
        counts = [min(after - first, most) for first, after in itertools.pairwise(edges)] or [0]
        goes_on = [*(True for _ in edges[1:-1]), found.goes_on]
        for first, after, count, is_cut in zip(bounds, bounds[1:], counts, goes_on, strict=False):
            window = replace(piece, start_offset=first, end_offset=after, offset_count=count)
            if not window.is_idle:
                yield from self._by_size(self._narrow(window, found, places, is_cut=is_cut))

    def _edges(self, found: _Whole, places: SegmentPlaces) -> list[int]:
        """Return the first offset, those that `maxRecordsPerPartition` cuts at, and the last one; none without it."""
        piece, max_count = found.piece, self.options.max_records_per_partition
        if found.base is None or max_count is None:
            return []
        try:
            last = places.end_offset if found.next_base is None else found.next_base
        except kbat.KbatError:  # the task that reads it says what is wrong
            return []
        start = max(found.base, found.base if piece.start_offset is None else piece.start_offset)
        end = max(min(last, last if piece.end_offset is None else piece.end_offset), start)
        count = max(-(-(end - start) // max_count), 1)
        step = -(-(end - start) // count)
        edges = [start]
        while (edge := edges[-1] + step) < end and (edge := places.past_gap(edge)) < end:
            edges.append(edge)
        return [*edges, end]

    def _narrow(self, piece: Piece, found: _Whole, places: SegmentPlaces, *, is_cut: bool) -> Piece:
        """Return the window from the batch with the first offset wanted to that with the last.

        Where a window `is_cut` at its end, the batch there belongs to the next one. A row of the view `batches` is
        given by the window that its batch belongs to, so that no offset is looked at any more.
        """
        first, after = piece.start_offset, piece.end_offset
        if first is not None and found.has_inside(first):
            piece = replace(piece, start=places.start_of(first))
        if after is not None and found.has_inside(after):
            own_end = places.start_of(after) if is_cut else None
            piece = replace(piece, end=places.end_of(after), own_end=own_end)
        if self.options.view == "batches":
            end = piece.end if piece.own_end is None else piece.own_end
            piece = replace(piece, end=end, own_end=None, start_offset=None, end_offset=None)
        return piece

    def _by_size(self, piece: Piece) -> Iterator[Piece]:
        if piece.size <= 0:
            return
        if piece.size <= self.max_len:
            yield piece
            return
        try:
            parts = kbat.split((piece.path, piece.start, piece.end), self.max_len, limits=self.options.limits)
        except kbat.KbatError:  # the task that reads it says what is wrong
            yield piece
            return
        for _, start, end in parts:
            yield replace(piece, start=start, end=end)
