"""Where offsets and times lie in a segment, sound or damaged.

A segment is asked first, whose indexes make that cheap. Its walk over headers ends where damage begins, and at a
length that leads beyond the file just as if the file ended there. So the answer that there is nothing counts only where
nothing can be left. Else it is an error, or with `onCorrupt=skip` and `report` the batches are listed in one pass that
steps over damage as the tasks do. Only those that are certain to be ones are places then; anything may lie between.
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

    from kbat.spark.options import ReadOptions

# Bytes that tell whether zeros follow, as in a file that was allocated ahead.
_ZEROS_LEN = 4096


@dataclass(frozen=True)
class _Batch:
    """A batch that is certain to be one."""

    position: int
    size: int
    base_offset: int | None
    last_offset: int
    max_timestamp: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.position + self.size


@dataclass(frozen=True)
class _Walk:
    """How far headers lead: the offset after the last batch, where that batch ends, and whether nothing can follow."""

    end_offset: int
    position: int
    is_whole: bool


class SegmentPlaces:
    """A segment's places: of `size` bytes, before the segment with `next_base`, if there is one."""

    def __init__(self, path: str, size: int, next_base: int | None, options: ReadOptions) -> None:
        """Nothing is opened before something is looked up, which raises `OSError` if the file is gone."""
        self.path = path
        self.size = size
        self.next_base = next_base
        self.options = options
        self._known: dict[int, bool] = {}

    @functools.cached_property
    def segment(self) -> kbat.Segment:
        """The segment. Raises `ValueError` if the file is not named after its base offset."""
        return kbat.Segment(self.path, limits=self.options.limits)

    def start_of(self, offset: int) -> int:
        """Return where the first batch begins whose last offset is `offset` or larger.

        It is the same place whatever else is asked for, so that what ends at an offset and what starts there meet.
        Raises `kbat.CorruptError` where the segment ends before an offset that it should have, with `onCorrupt=fail`.
        """
        if not self._knows(offset):
            if self._fails:
                return 0  # the task walks there, and says what is wrong
            number = self._number_of(offset)
            return self._batches[number - 1].end if number else 0
        place = self.segment.find_offset(offset)
        if place is not None:
            return min(place.position, self.size)
        walk = self._walk
        return self.size if walk is None or offset > walk.end_offset else min(walk.position, self.size)

    def end_of(self, offset: int) -> int:
        """Return where the last batch ends that begins before an offset, or any place up to the next batch.

        Raises what `start_of` raises.
        """
        if not self._knows(offset):
            number = None if self._fails else self._number_of(offset)
            if number is None or number == len(self._batches):
                return self.size
            batch = self._batches[number]
            return batch.end if batch.base_offset is None or batch.base_offset < offset else batch.position
        place = self.segment.find_offset(offset)
        if place is None:
            return self.size
        return min(place.position + (place.size if place.base_offset < offset else 0), self.size)

    def past_gap(self, offset: int) -> int:
        """Return an offset, or if it is known to lie between two batches, the base offset of the second one.

        Raises what `start_of` raises.
        """
        place = self.segment.find_offset(offset) if self._knows(offset) else None
        if place is None or place.base_offset <= offset:
            return offset
        # of a compressed set of v0 or v1 only the last offset is known
        return next(self.segment.batches(place.position)).base_offset or offset

    @property
    def end_offset(self) -> int:
        """The offset after the last batch. Raises `kbat.CorruptError` if that can't be told."""
        walk = self._walk
        if walk is None and self._fails:
            return self.segment.end_offset  # raises
        if walk is not None and (walk.is_whole or self._fails):
            return walk.end_offset
        certain = max((batch.last_offset + 1 for batch in self._batches), default=self.segment.base_offset)
        # what follows the last header that can be right, half a batch perhaps, takes nothing back
        return certain if walk is None else max(certain, walk.end_offset)

    @property
    def largest_timestamp(self) -> int | None:
        """The largest timestamp, None if damage may hide a larger one."""
        if not self._is_whole:
            return None
        try:
            return self.segment.largest_timestamp
        except kbat.KbatError:
            return None

    def is_older(self, timestamp: int) -> bool:
        """Whether all records are known to be older than a time, damage or not."""
        try:
            return self._is_whole and self.segment.is_older(timestamp)
        except kbat.KbatError:
            return False

    def hides(self, timestamp: int, starting_offset: int) -> bool:
        """Whether damage may hide a record that is not older than a time, from an offset on.

        Raises `kbat.CorruptError` if so, with `onCorrupt=fail`.
        """
        largest = self.largest_timestamp
        if largest is None:
            is_hidden = self.next_base is not None or not self._fails
        else:
            # an empty batch that compaction left has a timestamp and no record
            is_hidden = (
                largest >= timestamp and not self._has_since(timestamp, starting_offset) and not self._is_sound()
            )
        if is_hidden and self._fails:
            raise _ends_early(self.path)
        return is_hidden

    def find_timestamp(self, timestamp: int, starting_offset: int) -> int | None:
        """Return the offset of the first record that is not older than a time and that damage leaves; None for none."""
        return next(self._offsets_since(timestamp, starting_offset), None)

    def _has_since(self, timestamp: int, starting_offset: int) -> bool:
        try:
            place = self.segment.find_timestamp(timestamp, starting_offset)
        except kbat.KbatError:
            return False
        # a record of that time may lie before the offset
        return place is not None or starting_offset > self.segment.base_offset

    def _offsets_since(self, timestamp: int, starting_offset: int) -> Iterator[int]:
        for batch in self._batches:
            if batch.max_timestamp < timestamp or batch.last_offset < starting_offset:
                continue
            records = kbat.scan(
                (self.path, batch.position, batch.end),
                columns=["offset", "timestamp"],
                include_control=True,
                on_corrupt="skip",
                limits=self.options.limits,
            )
            for offset, time in _numbers(records, "offset", "timestamp"):
                if offset >= starting_offset and time >= timestamp:
                    yield offset

    def _is_right(self, place: kbat.OffsetPlace) -> bool:
        """Whether the offsets of a batch that was found can be true; with `onCorrupt=fail` the task finds that out.

        Damage is nearly always in the records, and then the header leads on.
        """
        if self._fails:
            return True
        batch = next(self.segment.batches(place.position))
        return batch.crc_ok or batch.record_count == place.last_offset - place.base_offset + 1

    def _number_of(self, offset: int) -> int:
        """Return the number of the first batch whose last offset is `offset` or larger."""
        return bisect.bisect_left(self._batches, offset, key=lambda batch: batch.last_offset)

    def _is_sound(self) -> bool:
        """Whether headers lead to the end of the file, or to zeros there."""
        try:
            end = self._end_of_batches()
        except kbat.KbatError:
            return False
        return self._ends_at(end)

    def _end_of_batches(self) -> int:
        """Return where the batches end, by their headers. Raises `kbat.CorruptError` for a header that can't be one."""
        headers = kbat.scan(
            (self.path, 0, self.size),
            view="batches",
            columns=["position", "size"],
            limits=self.options.limits,
            leave_page_cache=self.options.leave_page_cache,
        )
        end = 0
        for arrow_batch in headers.to_batches():
            if arrow_batch.num_rows:
                end = sum(column[-1].as_py() for column in arrow_batch.columns)
        return end

    def _ends_at(self, position: int) -> bool:
        """Whether the file ends at a position, or zeros follow there: one that was allocated ahead ends so."""
        if position >= self.size:
            return True
        with open(self.path, "rb") as file:  # noqa: PTH123 -- strings in, strings out
            file.seek(position)
            return not any(file.read(_ZEROS_LEN))

    @property
    def _fails(self) -> bool:
        return self.options.on_corrupt == "fail"

    @property
    def _is_whole(self) -> bool:
        return self._walk is not None and self._walk.is_whole

    def _knows(self, offset: int) -> bool:
        """Whether the segment's answer for an offset counts."""
        if offset not in self._known:
            self._known[offset] = self._can_tell(offset)
        return self._known[offset]

    def _can_tell(self, offset: int) -> bool:
        try:
            place = self.segment.find_offset(offset)
            if place is not None:
                return self._is_right(place)
        except kbat.KbatError:
            return False
        walk = self._walk
        if walk is not None and offset >= walk.end_offset:
            is_last = self.next_base is None if self._fails else offset == walk.end_offset
            if walk.is_whole or is_last:
                return True
        if self._fails:
            raise _ends_early(self.path)
        return False

    @functools.cached_property
    def _walk(self) -> _Walk | None:
        """What a walk over headers tells; None if it can't be true."""
        try:
            end = self.segment.end_offset
            last = self.segment.find_offset(end - 1) if end > self.segment.base_offset else None
            if last is not None and not self._is_right(last):
                return None
        except kbat.KbatError:
            return None
        reached = 0 if last is None else last.position + last.size
        return _Walk(end, reached, self._ends_at(reached))

    @functools.cached_property
    def _batches(self) -> Sequence[_Batch]:
        """The batches that are certain to be ones, in their order."""
        names = ("position", "size", "base_offset", "last_offset", "max_timestamp", "crc_ok", "record_count")
        scan = kbat.scan(
            (self.path, 0, self.size), view="batches", columns=names, on_corrupt="skip", limits=self.options.limits
        )
        listed = list(_numbers(scan, *names))
        starts = [position for position, *_ in listed[1:]]
        return [
            _Batch(position, size, base_offset, last_offset, -1 if time is None else time)
            for (position, size, base_offset, last_offset, time, is_right, count), next_start in itertools.zip_longest(
                listed, starts
            )
            # damage in the records leaves a header that counts them and leads to the next batch
            if is_right or (next_start == position + size and count == last_offset - (base_offset or 0) + 1)
        ]


def _numbers(scan: kbat.Scan, *names: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a scan, timestamps as milliseconds."""
    import pyarrow as pa  # noqa: PLC0415 -- slow, and the driver needs none but for damage

    rows = scan.to_pyarrow()
    columns = [rows.column(name) for name in names]
    yield from zip(
        *(
            column.cast(pa.int64()).to_pylist() if pa.types.is_timestamp(column.type) else column.to_pylist()
            for column in columns
        ),
        strict=True,
    )


def _ends_early(path: str) -> kbat.TruncatedError:
    """Return the error of a segment whose batches end, though more must be there."""
    message = (
        f"{path}: a batch is damaged or cut: its length leads beyond the end of the file, though there are "
        "batches after it"
    )
    return kbat.TruncatedError(message, kind="truncated", path=path)
