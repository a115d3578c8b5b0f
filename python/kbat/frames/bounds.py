"""Bounds on offsets, timestamps, topics and partitions derived from a predicate; every matching row is within them.

Bounds are derived from the parts of a predicate that kbat supports; other parts are :data:`EVERYTHING`. So rows within
them may not match, but no matching row is outside, and the caller still applies the predicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from kbat._core.arrow import Scan

T = TypeVar("T")

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Range:
    """Whole numbers from ``start`` up to, not including, ``end``."""

    start: int = INT64_MIN
    end: int = INT64_MAX + 1

    @property
    def empty(self) -> bool:
        """Whether no number is within."""
        return self.start >= self.end

    def __and__(self, other: Range) -> Range:
        """Return the intersection."""
        return Range(max(self.start, other.start), min(self.end, other.end))

    def __or__(self, other: Range) -> Range:
        """Return the smallest range that includes both."""
        return Range(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of rows; ``None`` is any topic or partition. Timestamps are milliseconds."""

    offsets: Range = Range()
    timestamps: Range = Range()
    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None

    @property
    def empty(self) -> bool:
        """Whether no row can be within."""
        return (
            self.offsets.empty
            or self.timestamps.empty
            or (self.topics is not None and not self.topics)
            or (self.partitions is not None and not self.partitions)
        )

    def __and__(self, other: Bounds) -> Bounds:
        """Return the intersection."""
        return Bounds(
            self.offsets & other.offsets,
            self.timestamps & other.timestamps,
            _both(self.topics, other.topics),
            _both(self.partitions, other.partitions),
        )

    def __or__(self, other: Bounds) -> Bounds:
        """Return bounds that include both."""
        if self.empty or other.empty:
            return other if self.empty else self
        return Bounds(
            self.offsets | other.offsets,
            self.timestamps | other.timestamps,
            None if self.topics is None or other.topics is None else self.topics | other.topics,
            None if self.partitions is None or other.partitions is None else self.partitions | other.partitions,
        )

    def narrow(self, scan: Scan, columns: list[str] | None = None) -> Scan:
        """Return the scan within the bounds. A column ``error`` is always included, as the last one."""
        names = None if columns is None else [name for name in columns if name != "error"]
        if self.offsets.empty or self.timestamps.empty:  # the ends may be outside of int64
            return scan.narrow(columns=names, start_offset=0, end_offset=0)
        return scan.narrow(
            columns=names,
            start_offset=_unless(self.offsets.start, INT64_MIN),
            end_offset=_unless(self.offsets.end, INT64_MAX + 1),
            start_timestamp=_unless(self.timestamps.start, INT64_MIN),
            end_timestamp=_unless(self.timestamps.end, INT64_MAX + 1),
            topics=None if self.topics is None else sorted(self.topics),
            partitions=None if self.partitions is None else sorted(self.partitions),
        )


EVERYTHING = Bounds()


def _both(one: frozenset[T] | None, other: frozenset[T] | None) -> frozenset[T] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _unless(value: int, unbounded: int) -> int | None:
    return None if value == unbounded else value
