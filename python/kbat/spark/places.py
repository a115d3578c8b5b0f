"""Where offsets and times lie in a segment, sound or damaged.

A segment is asked first, whose indexes make that cheap. Its walk over headers ends where damage begins, and at a
length that leads beyond the file just as if the file ended there. So the answer that there is nothing counts only where
nothing can be left. Else it is an error, or with `onCorrupt=skip` and `report` the batches are listed in one pass that
steps over damage as the tasks do. Only those with a right checksum are places then; between them anything may lie.
"""

from __future__ import annotations

import bisect
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import kbat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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


class SegmentPlaces:
    """A segment's places: of `size` bytes, before the segment with `next_base`, if there is one."""

    def __init__(self, path: str, size: int, next_base: int | None, options: ReadOptions) -> None:
        """Nothing is opened before something is looked up, which raises `OSError` if the file is gone."""
        self.path = path
        self.size = size
        self.next_base = next_base
        self.options = options
        self.is_damaged = False

    @functools.cached_property
    def segment(self) -> kbat.Segment:
        """The segment. Raises `ValueError` if the file is not named after its base offset."""
        return kbat.Segment(self.path, limits=self.options.limits)

    def survey(self, offsets: Iterable[int]) -> None:
        """Find out whether the segment can be asked for all of some offsets; if not, none of them is left to it.

        Raises `kbat.CorruptError` where the segment ends before an offset that it should have, with `onCorrupt=fail`.
        """
        self.is_damaged = not all(self._knows(offset) for offset in offsets)

    def start_of(self, offset: int) -> int:
        """Return where the first batch begins whose last offset is `offset` or larger."""
        if self.is_damaged:
            if self._fails:
                return 0  # the task walks there, and says what is wrong
            number = self._number_of(offset)
            return self._batches[number - 1].end if number else 0
        place = self.segment.find_offset(offset)
        return self.size if place is None else min(place.position, self.size)

    def end_of(self, offset: int) -> int:
        """Return where the last batch ends that begins before an offset, or any place up to the next batch."""
        if self.is_damaged:
            number = None if self._fails else self._number_of(offset)
            if number is None or number == len(self._batches):
                return self.size
            batch = self._batches[number]
            return batch.end if batch.base_offset is None or batch.base_offset < offset else batch.position
        place = self.segment.find_offset(offset)
        if place is None:
            return self.size
        return min(place.position + (place.size if place.base_offset < offset else 0), self.size)

    @property
    def end_offset(self) -> int:
        """The offset after the last batch. Raises `kbat.CorruptError` if that can't be told."""
        end, is_whole = self._walked
        if end is None and self._fails:
            return self.segment.end_offset  # raises
        if end is not None and (is_whole or self._fails):
            return end
        return max((batch.last_offset + 1 for batch in self._batches), default=self.segment.base_offset)

    @property
    def largest_timestamp(self) -> int | None:
        """The largest timestamp, None if damage may hide a larger one."""
        if not self._walked[1]:
            return None
        try:
            return self.segment.largest_timestamp
        except kbat.KbatError:
            return None

    def is_older(self, timestamp: int) -> bool:
        """Whether all records are known to be older than a time, damage or not."""
        try:
            return self._walked[1] and self.segment.is_older(timestamp)
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

    def _knows(self, offset: int) -> bool:
        """Whether the segment's answer for an offset counts."""
        try:
            place = self.segment.find_offset(offset)
            if place is not None:
                return self._is_right(place)
        except kbat.KbatError:
            return False
        end, is_whole = self._walked
        is_sealed = self.next_base is not None
        if end is not None and offset >= end and (is_whole or (self._fails and not is_sealed)):
            return True
        if self._fails:
            raise _ends_early(self.path)
        return False

    @functools.cached_property
    def _walked(self) -> tuple[int | None, bool]:
        """The end offset as a walk tells it, and whether that walk got to the end of the file, or to zeros there."""
        try:
            end = self.segment.end_offset
            last = self.segment.find_offset(end - 1) if end > self.segment.base_offset else None
            if last is not None and not self._is_right(last):
                return end, False
        except kbat.KbatError:
            return None, False
        reached = 0 if last is None else last.position + last.size
        return end, self._ends_at(reached)

    @functools.cached_property
    def _batches(self) -> Sequence[_Batch]:
        """The batches that are certain to be ones, in their order."""
        scan = kbat.scan(
            (self.path, 0, self.size),
            view="batches",
            columns=["position", "size", "base_offset", "last_offset", "max_timestamp", "crc_ok"],
            on_corrupt="skip",
            limits=self.options.limits,
        )
        fields = _numbers(scan, "position", "size", "base_offset", "last_offset", "max_timestamp", "crc_ok")
        return [
            _Batch(position, size, base_offset, last_offset, -1 if time is None else time)
            for position, size, base_offset, last_offset, time, is_right in fields
            if is_right
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
