"""Ranges of whole numbers: offsets and timestamps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """The whole numbers from `start` up to but not including `end`; None if there is no bound."""

    start: int | None = None
    end: int | None = None

    def intersect(self, other: Interval) -> Interval:
        """Return the numbers that are in both."""
        starts = [start for start in (self.start, other.start) if start is not None]
        ends = [end for end in (self.end, other.end) if end is not None]
        return Interval(max(starts, default=None), min(ends, default=None))

    @property
    def is_empty(self) -> bool:
        """Whether no number is in it."""
        return self.start is not None and self.end is not None and self.start >= self.end


# The interval without bounds.
EVERYTHING = Interval()
