"""Finds the positions of offsets in a segment, even if it is corrupt.

The indexes of the segment are used first, because they make a search cheap. Two things can make the result wrong:

* The search ends at the first corrupt header, and a corrupt length that extends past the end of the file looks like an
  incomplete batch at the end.
* The base offset of a batch is outside its checksum. A flipped bit moves the batch far forward or back, and a search
  by offset stops there.

So a result is only accepted if the batch and the next one are in order, and "there is no such offset" only if nothing
can follow. Otherwise the batches are listed in one pass that skips corruption as the tasks do, and batches out of order
are ignored.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import kbat

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kbat.spark.listing import Log
    from kbat.spark.options import ReadOptions

# Enough bytes to recognise zeros at the end of a preallocated file.
_ZEROS_LEN = 4096


@dataclass(frozen=True)
class ListedBatch:
    """A batch whose header is valid, except perhaps for its offset."""

    position: int
    size: int
    base_offset: int | None
    last_offset: int
    crc_ok: bool

    @property
    def end(self) -> int:
        """The position after the batch."""
        return self.position + self.size

    @property
    def first_offset(self) -> int:
        """The base offset; for a compressed message set of v0 or v1, whose header has none, the last offset."""
        return self.last_offset if self.base_offset is None else self.base_offset


@dataclass(frozen=True)
class _Walk:
    """The end of the headers: the offset and the position after the last batch, and whether nothing can follow."""

    end_offset: int
    position: int
    is_whole: bool


class SegmentPlaces:
    """Finds offsets in a segment of `size` bytes; `next_base` is the base offset of the next segment, if any."""

    def __init__(self, log: Log, path: str, size: int, next_base: int | None, options: ReadOptions) -> None:
        """Create without opening the file. The first search raises `OSError` if the file is gone."""
        self.log = log
        self.path = path
        self.size = size
        self.next_base = next_base
        self.options = options
        self._known: dict[int, bool] = {}

    @functools.cached_property
    def segment(self) -> kbat.Segment:
        """The segment. Raises `ValueError` if the file is not named after its base offset."""
        return self.log.opened(self.path)

    def start_of(self, offset: int) -> int:
        """Return the position of the first batch whose last offset is `offset` or larger.

        The result depends only on the offset, so a read that ends at an offset and one that starts there are adjacent.
        Raises `kbat.CorruptError` with `onCorrupt=fail` if corruption hides the offset.
        """
        if not self._knows(offset):
            number = self._number_of(offset)
            return self.sound_batches[number - 1].end if number else 0
        place = self.segment.find_offset(offset)
        if place is not None:
            return min(place.position, self.size)
        walk = self._walk
        return self.size if walk is None or offset > walk.end_offset else min(walk.position, self.size)

    def end_of(self, offset: int) -> int:
        """Return the end of the last batch that begins before an offset, or any position up to the next batch.

        Raises the errors of `start_of`.
        """
        if not self._knows(offset):
            number = self._number_of(offset)
            if number == len(self.sound_batches):
                return self.size
            batch = self.sound_batches[number]
            return batch.end if batch.base_offset is None or batch.base_offset < offset else batch.position
        place = self.segment.find_offset(offset)
        if place is None:
            return self.size
        return min(place.position + (place.size if place.base_offset < offset else 0), self.size)

    @property
    def end_offset(self) -> int:
        """The offset after the last batch. Raises `kbat.CorruptError` if corruption hides it."""
        walk = self._walk
        if walk is None and self._fails:
            return self.segment.end_offset
        if walk is not None and (walk.is_whole or self._fails):
            return walk.end_offset
        batches = self.sound_batches
        certain = batches[-1].last_offset + 1 if batches else self.segment.base_offset
        # an incomplete batch at the end does not change the offsets of the batches before it
        return certain if walk is None else max(certain, walk.end_offset)

    @property
    def is_whole(self) -> bool:
        """Whether headers lead to the end of the segment."""
        return self._walk is not None and self._walk.is_whole

    def sound_offset(self, position: int, offset: int) -> int:
        """Return the offset of a record in the batch at `position`, corrected if the batch's stored offset is corrupt.

        The batches before such a batch show which offset it had: the one after theirs.
        """
        try:
            place = self.segment.find_offset(offset)
            if place is not None and place.position == position and self.is_in_order(place):
                return offset
        except kbat.KbatError:
            pass
        before = [batch for batch in self.sound_batches if batch.position <= position]
        if not before:
            return self.segment.base_offset
        return offset if before[-1].position == position else before[-1].last_offset + 1

    def is_in_order(self, place: kbat.OffsetPlace) -> bool:
        """Whether the offsets of a batch are before those of the next batch, or of the next segment after the last."""
        if place.base_offset < self.segment.base_offset or place.last_offset >= _bound(self.next_base):
            return False
        try:
            following = next(self.segment.batches(place.position + place.size), None)
        except kbat.KbatError:
            return self._fails  # the task raises the error
        return following is None or following.base_offset > place.last_offset

    def is_right(self, place: kbat.OffsetPlace) -> bool:
        """Whether a position can be trusted: its batch is in order, and its header is valid.

        Most corruption is in the records, and then the header still leads to the next batch.
        """
        if not self.is_in_order(place):
            return False
        if self._fails:
            return True
        batch = next(self.segment.batches(place.position))
        return batch.crc_ok or batch.record_count == place.last_offset - place.base_offset + 1

    @functools.cached_property
    def batches(self) -> Sequence[ListedBatch]:
        """The batches with valid headers, in the order of the file; some may have a corrupt offset."""
        names = ("position", "size", "base_offset", "last_offset", "crc_ok", "record_count")
        scan = kbat.scan(
            self.log.source(self.path, 0, self.size),
            view="batches",
            columns=names,
            on_corrupt="skip",
            limits=self.options.limits,
            **self.log.keywords,
        )
        listed = list(_numbers(scan, *names))
        starts = [position for position, *_ in listed[1:]]
        return [
            ListedBatch(position, size, base_offset, last_offset, crc_ok)
            for (position, size, base_offset, last_offset, crc_ok, count), next_start in itertools.zip_longest(
                listed, starts
            )
            # if only the records are corrupt, the header has their number and leads to the next batch, if there is one
            if crc_ok or (next_start in {None, position + size} and count == last_offset - (base_offset or 0) + 1)
        ]

    @functools.cached_property
    def sound_batches(self) -> Sequence[ListedBatch]:
        """The largest subset of `batches` with increasing offsets, within the range of the segment."""
        low, high = self.segment.base_offset, _bound(self.next_base)
        inside = [batch for batch in self.batches if low <= batch.first_offset <= batch.last_offset < high]
        if all(batch.last_offset < later.first_offset for batch, later in itertools.pairwise(inside)):
            return inside
        return _longest_rising(inside)

    def _number_of(self, offset: int) -> int:
        """Return the number of the first sound batch whose last offset is `offset` or larger."""
        return bisect.bisect_left(self.sound_batches, offset, key=lambda batch: batch.last_offset)

    def _ends_at(self, position: int) -> bool:
        """Whether the file ends at a position, or continues with zeros, as a preallocated file does."""
        if position >= self.size:
            return True
        try:
            with open(self.path, "rb") as file:  # noqa: PTH123 -- strings in, strings out
                file.seek(position)
                return not any(file.read(_ZEROS_LEN))
        except FileNotFoundError:  # in a store, where files are not preallocated
            return False

    @property
    def _fails(self) -> bool:
        return self.options.on_corrupt == "fail"

    def _knows(self, offset: int) -> bool:
        """Whether the index's result for an offset is reliable. Raises `kbat.CorruptError` with `onCorrupt=fail`."""
        if offset not in self._known:
            try:
                self._known[offset] = self._can_answer(offset)
            except kbat.KbatError:
                if self._fails:
                    raise
                self._known[offset] = False
        return self._known[offset]

    def _can_answer(self, offset: int) -> bool:
        place = self.segment.find_offset(offset)
        if place is not None:
            return self.is_right(place)
        if offset >= self.segment.end_offset:
            walk = self._walk
            if walk is not None and (walk.is_whole or self._is_end(offset, walk)):
                return True
        if self._fails:
            raise _ends_early(self.path)
        return False

    def _is_end(self, offset: int, walk: _Walk) -> bool:
        return self.next_base is None if self._fails else offset == walk.end_offset

    @functools.cached_property
    def _walk(self) -> _Walk | None:
        """The end of the headers; None if it is unreliable."""
        try:
            end = self.segment.end_offset
            last = self.segment.find_offset(end - 1) if end > self.segment.base_offset else None
            if last is not None and not self.is_right(last):
                return None
        except kbat.KbatError:
            return None
        reached = 0 if last is None else last.position + last.size
        return _Walk(end, reached, self._ends_at(reached))


def _bound(next_base: int | None) -> int:
    return 1 << 63 if next_base is None else next_base


def _longest_rising(batches: Sequence[ListedBatch]) -> Sequence[ListedBatch]:
    """Return the longest run of batches, in their order, in which each begins after the one before it ends.

    `ends` has for each length the smallest last offset of such a run, as in patience sorting.
    """
    ends: list[int] = []
    tails: list[int] = []
    before: list[int | None] = []
    for number, batch in enumerate(batches):
        length = bisect.bisect_left(ends, batch.first_offset)
        before.append(tails[length - 1] if length else None)
        if length == len(ends):
            ends.append(batch.last_offset)
            tails.append(number)
        elif batch.last_offset < ends[length]:
            ends[length], tails[length] = batch.last_offset, number
    run: list[ListedBatch] = []
    at = tails[-1] if tails else None
    while at is not None:
        run.append(batches[at])
        at = before[at]
    return run[::-1]


def _numbers(scan: kbat.Scan, *names: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a scan."""
    rows = scan.to_pyarrow()
    yield from zip(*(rows.column(name).to_pylist() for name in names), strict=True)


def _ends_early(path: str) -> kbat.TruncatedError:
    """Return the error of a segment whose batches end before the offset that the next segment starts with."""
    message = (
        f"{path}: a batch is corrupt or truncated: its length extends past the end of the file, although other "
        "batches follow it"
    )
    return kbat.TruncatedError(message, kind="truncated", path=path)
