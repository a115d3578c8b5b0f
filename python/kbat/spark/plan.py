"""Plans which task reads which bytes.

```
paths ──► logs by topic and partition ──► offset ranges ──► windows of segments, split between batches
                                                           ──► groups of adjacent windows of similar size, one per task
```

A Python task takes about 50 ms before its first row, so small segments are read together. `maxPartitionBytes` limits
the size of a task, so that many machines get work. The driver lists the segments once and includes the list in the
tasks.
"""

from __future__ import annotations

import itertools
import os
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

import kbat
from kbat.spark.cuts import Counter
from kbat.spark.intervals import EVERYTHING, Interval
from kbat.spark.listing import list_logs
from kbat.spark.places import SegmentPlaces
from kbat.spark.ranges import LogRange, resolve
from kbat.spark.rows import advising
from kbat.spark.topics import NO_PARTITION, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kbat.spark.filters import RowFilter
    from kbat.spark.listing import Log, Segment
    from kbat.spark.options import ReadOptions

# A task with fewer bytes takes most of its time to start.
MIN_TASK_LEN = 4 << 20
# Factor for the bytes of a task that only reads headers.
HEADERS_ONLY = 16
# Number of files that one task of the view segments reads.
FILES_IN_A_TASK = 500
# Segments are split to give every core work, but not into windows smaller than this.
MIN_CUT_LEN = 32 << 20
# A segment up to a tenth larger than a core's share is not split, as in Hadoop's splits.
SLOP = 10


@dataclass(frozen=True)
class Piece:
    """A window of a segment, in bytes, and the offsets to read of it; None if there is no bound; labels as in `Log`.

    `part` limits a window of one batch to some of its records; other pieces read the rest. The piece with the last part
    reports the corruption of the window.
    """

    path: str
    start: int
    end: int
    partition: TopicPartition = NO_PARTITION
    start_offset: int | None = None
    end_offset: int | None = None
    offset_count: int = 0
    # batches and corruption from here on belong to the next window; None if everything is in this one
    own_end: int | None = None
    part: Interval = EVERYTHING
    is_labelled: bool = False

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
        """Whether there is nothing to read of it."""
        return self.end_offset is not None and (self.start_offset or 0) >= self.end_offset


@dataclass(frozen=True)
class ReadPartition(InputPartition):
    """The pieces that one task reads, in order."""

    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        """Bytes of all pieces together."""
        return sum(piece.size for piece in self.pieces)

    def scans(self) -> Iterator[list[Piece]]:
        """Yield runs of pieces that one scan reads: those with the same partition and bounds."""
        for _, run in itertools.groupby(
            self.pieces, lambda piece: (piece.partition, piece.start_offset, piece.end_offset, piece.part)
        ):
            yield list(run)


def plan(options: ReadOptions, wanted: RowFilter | None = None, *, splits: bool = True) -> list[ReadPartition]:
    """List the segments of all paths and distribute them to tasks.

    The list is never empty: one idle task reads no rows. Partitions, segments and offsets that `wanted` excludes are
    omitted. Without `splits`, one task reads a batch that has more than `maxRecordsPerPartition` offsets.

    Raises `FileNotFoundError` for a path that does not exist, `ValueError` for one with an unknown scheme, and the
    errors of `resolve`.
    """
    with advising(keywords=options.keywords):
        return _plan(options, wanted, splits=splits)


def _plan(options: ReadOptions, wanted: RowFilter | None, *, splits: bool) -> list[ReadPartition]:
    logs = list_logs(options)
    ranges = resolve(logs, options)
    if options.view == "segments":
        return plan_files(ranges)
    times = options.times
    if wanted is not None:
        ranges = [_filtered(a_range, wanted) for a_range in ranges if wanted.takes(a_range.log.partition)]
        times = times.intersect(wanted.scannable_times)
    return plan_ranges(ranges, options, times.start, splits=splits)


def _filtered(a_range: LogRange, wanted: RowFilter) -> LogRange:
    both = Interval(a_range.start, a_range.end).intersect(wanted.offsets)
    return replace(a_range, start=both.start, end=both.end)


def plan_files(ranges: Sequence[LogRange]) -> list[ReadPartition]:
    """Distribute the files of the ranges without splitting them, for tasks that read only a little of each."""
    files = [
        Piece(
            segment.path,
            0,
            segment.size,
            a_range.log.partition,
            is_whole=True,
            is_labelled=a_range.log.is_labelled,
        )
        for a_range in ranges
        for segment, _ in _segments_within(a_range)
    ]
    return [
        ReadPartition(tuple(files[start : start + FILES_IN_A_TASK])) for start in range(0, len(files), FILES_IN_A_TASK)
    ] or [ReadPartition(())]


def plan_ranges(
    ranges: Sequence[LogRange], options: ReadOptions, start_timestamp: int | None = None, *, splits: bool = True
) -> list[ReadPartition]:
    """Distribute ranges to tasks, except segments whose records are all older than `start_timestamp`."""
    whole = [found for a_range in ranges for found in _whole_segments(a_range)]
    if start_timestamp is not None:
        whole = [found for found in whole if not found.is_older(start_timestamp)]
    total = sum(found.piece.size for found in whole)
    cores = os.cpu_count() or 1
    most = options.max_partition_bytes * (HEADERS_ONLY if options.view == "batches" else 1)
    share = -(-total // cores)
    max_len = min(most, max(share + share // SLOP, MIN_CUT_LEN))
    if options.min_partitions:
        max_len = min(max_len, max(-(-total // options.min_partitions), 1))
    max_count = options.max_records_per_partition
    cutter = _Cutter(max_len, options, splits and options.view == "records")
    pieces = [part for found in whole for part in cutter.cut(found)]
    return list(pack(pieces, max_len, cores, max_count)) or [ReadPartition(())]


def pack(
    pieces: Sequence[Piece], max_len: int, cores: int, max_offset_count: int | None = None
) -> Iterator[ReadPartition]:
    """Group adjacent pieces into tasks of similar size, at most `max_len` bytes; a larger piece is a task of its own.

    There are as many tasks as that requires, or one for each core if each then has `MIN_TASK_LEN` bytes. No task has
    more than `max_offset_count` offsets.
    """
    total = sum(piece.size for piece in pieces)
    count = max(-(-total // max_len), min(cores, total // MIN_TASK_LEN), 1)
    run: list[Piece] = []
    run_len = run_place = run_count = start = 0
    for piece in pieces:
        # a piece belongs to the task whose share of all bytes contains its middle
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
    """A segment to read, its base offset and the base offset of the next one; `continues` as in `LogRange`."""

    piece: Piece
    base: int | None
    next_base: int | None
    continues: bool
    log: Log

    def has_inside(self, offset: int) -> bool:
        """Whether there may be batches of the segment on both sides of an offset."""
        return self.base is not None and self.base < offset and (self.next_base is None or offset < self.next_base)

    def is_older(self, timestamp: int) -> bool:
        """Whether all its records are older than a time, with the same result as the scan in a task.

        In a large segment without a time index, the driver would have to read many headers, so the tasks decide
        instead.
        """
        if self.base is None:
            return False
        try:
            segment = self.log.opened(self.piece.path)
            if self.piece.size > MIN_TASK_LEN and "timeindex" not in segment.files:
                return False
            return segment.is_older(timestamp)
        except kbat.KbatError:
            return False


def _whole_segments(a_range: LogRange) -> Iterator[_Whole]:
    """Yield the segments in a range that are not empty."""
    for segment, next_base in _segments_within(a_range):
        if segment.size:
            log = a_range.log
            piece = Piece(
                segment.path, 0, segment.size, log.partition, a_range.start, a_range.end, is_labelled=log.is_labelled
            )
            yield _Whole(piece, segment.base_offset, next_base, a_range.continues, log)


def _segments_within(a_range: LogRange) -> Iterator[tuple[Segment, int | None]]:
    """Yield the segments whose names show that they overlap a range, each with the base offset of the next one."""
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
    """Splits segments into windows of at most `max_len` bytes and at most `maxRecordsPerPartition` offsets."""

    max_len: int
    options: ReadOptions
    splits: bool

    def cut(self, found: _Whole) -> Iterator[Piece]:
        """Limit a segment to the offsets that are read, then split it. Each batch and corruption is in one window.

        Raises `kbat.CorruptError` with `onCorrupt=fail` if another read has the rest of the segment and corruption
        hides the boundary.
        """
        piece = found.piece
        if piece.is_idle:
            return
        if found.base is None:
            yield from self._by_size(piece, found.log)
            return
        places = SegmentPlaces(found.log, piece.path, piece.end, found.next_base, self.options)
        try:
            piece = self._narrow(piece, found, places)
        except kbat.KbatError:
            if found.continues:
                raise  # otherwise the task raises the error, unless the offsets that it reads are sound
        most = self.options.max_records_per_partition
        if most is None or piece.size <= 0:
            yield from self._by_size(piece, found.log)
            return
        first = max(found.base, found.piece.start_offset or 0)
        for part in Counter(places, piece.start, piece.end, most, self.splits).pieces(piece, first):
            yield from self._by_size(part, found.log)

    def _narrow(self, piece: Piece, found: _Whole, places: SegmentPlaces) -> Piece:
        """Return the window from the batch with the first offset to the batch with the last.

        If the range continues in another read, the batch at its end belongs to that one. In the view `batches`, the
        window alone decides which rows there are.
        """
        first, after = piece.start_offset, piece.end_offset
        if first is not None and found.has_inside(first):
            piece = replace(piece, start=places.start_of(first))
        if after is not None and found.has_inside(after):
            own_end = places.start_of(after) if found.continues else None
            piece = replace(piece, end=places.end_of(after), own_end=own_end)
        if self.options.view == "batches":
            end = piece.end if piece.own_end is None else piece.own_end
            piece = replace(piece, end=end, own_end=None, start_offset=None, end_offset=None)
        return piece

    def _by_size(self, piece: Piece, log: Log) -> Iterator[Piece]:
        if piece.size <= 0:
            return
        if piece.size <= self.max_len or piece.part != EVERYTHING:
            yield piece
            return
        try:
            source = log.source(piece.path, piece.start, piece.end)
            parts = kbat.split(source, self.max_len, limits=self.options.limits, **log.keywords)
        except kbat.KbatError:  # the task that reads it raises the error
            yield piece
            return
        for number, (_, start, end) in enumerate(parts):
            yield replace(piece, start=start, end=end, offset_count=0 if number else piece.offset_count)
