"""Where a read starts and ends: the bounds of Spark's Kafka source, their JSON forms and their precedence.

```
startingTimestamp  before  startingOffsetsByTimestamp  before  startingOffsets  before  the default
endingTimestamp    before  endingOffsetsByTimestamp    before  endingOffsets    before  latest
```

In a batch read, `startingTimestamp` and `endingTimestamp` filter rows: a read returns the records with starting <=
timestamp < ending, and those without a timestamp are in no such range. Times in JSON, and the start of a stream, become
offsets: that of the first record, in the order of the log, whose timestamp is not before the time. In JSON of offsets,
-2 is earliest and -1 latest. JSON names every partition that is read.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from kbat.spark.topics import TopicPartition
from kbat.spark.values import checked_milliseconds, parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typing_extensions import TypeIs

EARLIEST: Final = -2
LATEST: Final = -1

_OFFSET_FORM = 'earliest, latest, or JSON like {"orders": {"0": 23, "1": -2}} with -2 for earliest and -1 for latest'
_TIMESTAMP_FORM = (
    'JSON like {"orders": {"0": 1700000000000}} in milliseconds since 1970, UTC, '
    'or with text that has a zone, like {"orders": {"0": "2026-11-22T00:00:00Z"}}'
)


@dataclass(frozen=True)
class Offset:
    """The same offset for every partition: `EARLIEST` or `LATEST`."""

    offset: Literal[-2, -1]


@dataclass(frozen=True)
class _ByPartition:
    by_partition: tuple[tuple[TopicPartition, int], ...]

    @functools.cached_property
    def of(self) -> dict[TopicPartition, int]:
        """The values by partition."""
        return dict(self.by_partition)


class Offsets(_ByPartition):
    """An offset, `EARLIEST` or `LATEST` for each partition."""


@dataclass(frozen=True)
class Timestamp:
    """The same time for every partition, in milliseconds since the epoch."""

    timestamp: int


class Timestamps(_ByPartition):
    """A time for each partition, in milliseconds since the epoch."""


Bound: TypeAlias = Offset | Offsets | Timestamp | Timestamps


def parse_offsets(text: str) -> Offset | Offsets:
    """Parse `startingOffsets` or `endingOffsets`."""
    word = text.strip().lower()
    if word == "earliest":
        return Offset(EARLIEST)
    if word == "latest":
        return Offset(LATEST)
    return Offsets(_parse_json(text, _as_offset, f"must be {_OFFSET_FORM}"))


def parse_timestamps(text: str) -> Timestamps:
    """Parse `startingOffsetsByTimestamp` or `endingOffsetsByTimestamp`."""
    return Timestamps(_parse_json(text, _as_timestamp, f"must be {_TIMESTAMP_FORM}"))


def parse_bound_timestamp(text: str) -> Timestamp:
    """Parse `startingTimestamp` or `endingTimestamp`."""
    return Timestamp(parse_timestamp(text))


def _parse_json(text: str, parse: Callable[[object], int | None], form: str) -> tuple[tuple[TopicPartition, int], ...]:
    """Parse one value per partition. `parse` returns None for a value that does not have the form."""
    try:
        topics = json.loads(text)
        values = {
            TopicPartition(topic, int(number)): value
            for topic, numbers in topics.items()
            for number, value in numbers.items()
        }
    except (ValueError, AttributeError):
        raise ValueError(form) from None
    found = {}
    for partition, value in values.items():
        number = parse(value)
        if number is None:
            raise ValueError(form)
        found[partition] = number
    if not found:
        raise ValueError(form)
    return tuple(sorted(found.items()))


def _as_offset(value: object) -> int | None:
    return value if _is_number(value) and EARLIEST <= value < 1 << 63 else None


def _as_timestamp(value: object) -> int | None:
    if isinstance(value, str):
        return parse_timestamp(value)
    return checked_milliseconds(value) if _is_number(value) and 0 <= value < 1 << 63 else None


def _is_number(value: object) -> TypeIs[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def offsets_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return offsets in Kafka's JSON form, sorted."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(str(topic), {})[str(partition)] = offset
    return topics


def offsets_of_json(topics: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """Return the offsets that `offsets_json` wrote."""
    return {
        TopicPartition(topic, int(number)): offset
        for topic, numbers in topics.items()
        for number, offset in numbers.items()
    }


def check_batch_bounds(start: Bound, end: Bound) -> None:
    """Check bounds by the rules of a batch read. Raises `ValueError`."""
    if start == Offset(LATEST) or (isinstance(start, Offsets) and LATEST in start.of.values()):
        message = "kbat: startingOffsets can't be latest in a batch read: nothing comes after it; write earliest"
        raise ValueError(message)
    if end == Offset(EARLIEST) or (isinstance(end, Offsets) and EARLIEST in end.of.values()):
        message = "kbat: endingOffsets can't be earliest in a batch read: nothing comes before it; write latest"
        raise ValueError(message)
    if isinstance(start, Timestamp) and isinstance(end, Timestamp) and start.timestamp > end.timestamp:
        message = (
            f"kbat: startingTimestamp {start.timestamp} is after endingTimestamp {end.timestamp}: no record is between"
        )
        raise ValueError(message)
    if isinstance(start, Offsets) and isinstance(end, Offsets):
        _check_order(start, end, "offset")
    if isinstance(start, Timestamps) and isinstance(end, Timestamps):
        _check_order(start, end, "timestamp")


def _check_order(start: Offsets | Timestamps, end: Offsets | Timestamps, what: str) -> None:
    starts, ends = start.of, end.of
    different = starts.keys() ^ ends.keys()
    if different:
        names = ", ".join(sorted(map(str, different)))
        message = f"kbat: starting and ending {what}s name different partitions; only one of them has {names}"
        raise ValueError(message)
    for partition, first in starts.items():
        last = ends[partition]
        if 0 <= last < first:
            message = f"kbat: starting {what} {first} of {partition} is greater than its ending {what} {last}"
            raise ValueError(message)
