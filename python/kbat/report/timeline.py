"""Bytes over time, with buckets that adapt to the log, so that neither a second nor ten years need much memory."""

import datetime as dt
from collections import Counter
from dataclasses import dataclass, field

#: Timestamps from this one on, the year 10000, have no date.
END_OF_TIME = 253_402_300_800_000

_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_WIDTHS = (
    _SECOND, 10 * _SECOND, _MINUTE, 10 * _MINUTE, _HOUR, 6 * _HOUR, _DAY, 7 * _DAY, 28 * _DAY, 91 * _DAY, 364 * _DAY,
    3640 * _DAY, 36_400 * _DAY,
)  # fmt: skip
_NAMES = (
    "second", "10 seconds", "minute", "10 minutes", "hour", "6 hours", "day", "week", "4 weeks", "13 weeks", "52 weeks",
    "520 weeks", "5,200 weeks",
)  # fmt: skip
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
#: Buckets count from the Monday before the epoch, which was a Thursday, so that weeks begin on a Monday.
MONDAY = 3 * _DAY
# Entries in memory, and buckets that a plot shows.
_MAX_ENTRIES = 50_000
_MAX_BUCKETS = 120
# The ends of a range that are omitted, as a part of the bytes, if the rest needs this part of the range at most.
_OUTLIERS = 0.005
_SHORTER = 0.25


@dataclass(frozen=True)
class Span:
    """Bytes by name in equal parts of a range of time.

    Attributes:
        unit: Length of a part, in words.
        width: The same in milliseconds.
        starts: First millisecond of each part.
        series: Bytes in each part, by name.
        omitted: Bytes with timestamps far outside the range, which are not shown.
    """

    unit: str
    width: int
    starts: list[int]
    series: dict[int, list[int]]
    omitted: int


@dataclass
class Timeline:
    """Adds up bytes by time and a small number, the index of a name."""

    untimed: int = 0
    _level: int = 0
    _sums: Counter[tuple[int, int]] = field(default_factory=Counter)

    @property
    def width(self) -> int:
        """Milliseconds of a bucket. It grows while bytes are added: ask for it before every addition."""
        return _WIDTHS[self._level]

    def add(self, bucket: int | None, name: int, size: int) -> None:
        """Add bytes to a bucket of the current width: a number since the Monday before the epoch; None for no time."""
        if bucket is None:
            self.untimed += size
        else:
            self._sums[bucket, name] += size

    def settle(self) -> None:
        """Make the buckets wider if there are too many."""
        while len(self._sums) > _MAX_ENTRIES and self._level + 1 < len(_WIDTHS):
            self._level, self._sums = self._level + 1, self._wider(self._level + 1)

    def _wider(self, level: int) -> Counter[tuple[int, int]]:
        wider: Counter[tuple[int, int]] = Counter()
        for (bucket, name), size in self._sums.items():
            wider[bucket * self.width // _WIDTHS[level], name] += size
        return wider

    def span(self) -> Span | None:
        """Return the bytes in at most 120 parts; None if no batch has a timestamp."""
        if not self._sums:
            return None
        first, last = self._range()
        level = self._level
        while (last * self.width // _WIDTHS[level]) - (first * self.width // _WIDTHS[level]) >= _MAX_BUCKETS:
            if level + 1 == len(_WIDTHS):
                break
            level += 1
        sums = self._wider(level)
        start, end = (bucket * self.width // _WIDTHS[level] for bucket in (first, last))
        shown = {key: size for key, size in sums.items() if start <= key[0] <= end}
        names = sorted({name for _, name in shown})
        starts = [bucket * _WIDTHS[level] - MONDAY for bucket in range(start, end + 1)]
        series = {name: [shown.get((bucket, name), 0) for bucket in range(start, end + 1)] for name in names}
        omitted = sum(sums.values()) - sum(shown.values())
        return Span(_NAMES[level], _WIDTHS[level], starts, series, omitted)

    def _range(self) -> tuple[int, int]:
        """Return the first and the last bucket, without a few bytes that lie far away from the others."""
        by_bucket: Counter[int] = Counter()
        for (bucket, _), size in self._sums.items():
            by_bucket[bucket] += size
        ordered = sorted(by_bucket)
        limit = sum(by_bucket.values()) * _OUTLIERS
        first, last = _from(ordered, by_bucket, limit), _from(ordered[::-1], by_bucket, limit)
        if first <= last and (last - first) < (ordered[-1] - ordered[0]) * _SHORTER:
            return first, last
        return ordered[0], ordered[-1]


def _from(ordered: list[int], sizes: Counter[int], limit: float) -> int:
    """Return the bucket from which on more bytes than a limit have been seen."""
    seen = 0
    for bucket in ordered:
        seen += sizes[bucket]
        if seen > limit:
            return bucket
    return ordered[-1]


def date_text(timestamp: int) -> str:
    """Return a time before the year 10000 for a plot, in UTC."""
    return f"{_EPOCH + dt.timedelta(milliseconds=timestamp):%Y-%m-%d %H:%M:%S}"
