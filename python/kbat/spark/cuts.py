"""Splits a segment into windows with a maximum number of offsets, for `maxRecordsPerPartition`.

```
batches   [0 .. 9] [10 .. 19] [20 .. 99]                          at most 25 offsets
windows   0 ....... 19 │ 20 .. 44 │ 45 .. 69 │ 70 .. 94 │ 95 ..   the third batch is split, the others are not
```

A window is a range of bytes between two batch boundaries. A batch belongs to a window by its position, not by its
offset: a corrupt offset could otherwise put it into no window or into two. Only a batch with more offsets than a window
may have is split by its own offsets; each of its windows decodes it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import kbat
from kbat.spark.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbat.spark.places import SegmentPlaces
    from kbat.spark.plan import Piece


@dataclass(frozen=True)
class Cut:
    """The end of one window and the start of the next: at a byte, or at an offset inside the batch there."""

    position: int
    end: int
    offset: int | None = None
    # approximate number of offsets of the window that ends here
    count: int = 0

    @classmethod
    def at(cls, position: int, count: int = 0) -> Cut:
        """Return the boundary between two batches."""
        return cls(position, position, None, count)


@dataclass(frozen=True)
class Counter:
    """Splits the window `start` to `end` of a segment, in bytes, into windows of at most `most` offsets.

    With `splits`, batches with more offsets are split; without it, each of them is a window of its own.
    """

    places: SegmentPlaces
    start: int
    end: int
    most: int
    splits: bool = True

    def pieces(self, piece: Piece, first_offset: int) -> Iterator[Piece]:
        """Yield the pieces of `piece`, in order; `first_offset` is the first offset that is read."""
        cuts = self._by_search(first_offset)
        cuts = self._by_list() if cuts is None else cuts
        for first, after in itertools.pairwise([Cut.at(self.start), *cuts, Cut.at(self.end, self.most)]):
            # the first piece has the count of the window, so that all of them go into one task
            counts = itertools.chain([after.count], itertools.repeat(0))
            for found, count in zip(_between(piece, first, after), counts, strict=False):
                yield replace(found, offset_count=count)

    def _by_search(self, start: int) -> list[Cut] | None:
        """Return the boundaries of windows, found by a few searches; None if a batch is out of order or corrupt."""
        cuts: list[Cut] = []
        at = self.start
        while True:
            try:
                place = self.places.segment.find_offset(start + self.most)
                if place is not None and not self.places.is_right(place):
                    return None
            except kbat.KbatError:
                return None
            if place is None:
                return cuts if self.places.is_whole else None
            if place.position >= self.end:
                return cuts
            if place.position < at:
                return None
            if place.base_offset >= start + self.most or place.last_offset - place.base_offset < self.most:
                cuts.append(Cut.at(place.position, min(place.base_offset - start, self.most)))
                start, at = place.base_offset, place.position
            elif not self.splits:
                cuts.append(Cut.at(place.position + place.size, self.most))
                start, at = place.last_offset + 1, place.position + place.size
            elif not next(self.places.segment.batches(place.position)).crc_ok:
                return None
            else:
                edges = range(start + self.most, place.last_offset + 1, self.most)
                cuts += [Cut(place.position, place.position + place.size, edge, self.most) for edge in edges]
                start, at = edges[-1], place.position

    def _by_list(self) -> list[Cut]:
        """Return the boundaries of windows by the number of offsets of each batch, even if offsets are out of order."""
        cuts: list[Cut] = []
        count = previous = 0
        for batch in self.places.batches:
            if batch.base_offset is None:
                size = max(batch.last_offset - previous, 1)
                size = size if previous and size <= self.most else 1
            else:
                size = max(batch.last_offset - batch.base_offset + 1, 1)
            previous = batch.last_offset
            if not self.start <= batch.position < self.end:
                continue
            if size > self.most and self.splits and batch.crc_ok:
                if count:
                    cuts.append(Cut.at(batch.position, count))
                edges = range(batch.last_offset + 1 - size + self.most, batch.last_offset + 1, self.most)
                cuts += [Cut(batch.position, batch.end, edge, self.most) for edge in edges]
                count = batch.last_offset + 1 - edges[-1]
                continue
            if count and count + size > self.most:
                cuts.append(Cut.at(batch.position, count))
                count = 0
            count = min(count + size, self.most)
        return cuts


def _between(piece: Piece, first: Cut, after: Cut) -> Iterator[Piece]:
    """Yield the pieces of the window between two boundaries: parts of split batches, and the batches between them."""
    if first.offset is not None and first.position == after.position:
        yield replace(piece, start=first.position, end=first.end, part=Interval(first.offset, after.offset))
        return
    if first.offset is not None:
        yield replace(piece, start=first.position, end=first.end, part=Interval(first.offset, None))
    if first.end < after.position:
        yield replace(piece, start=first.end, end=after.position)
    if after.offset is not None:
        yield replace(piece, start=after.position, end=after.end, part=Interval(None, after.offset))
