"""Where a read starts and ends: the bounds of Spark's Kafka source, their JSON forms and their precedence.

```
startingTimestamp  before  startingOffsetsByTimestamp  before  startingOffsets  before  the default
endingTimestamp    before  endingOffsetsByTimestamp    before  endingOffsets    before  latest
```

An offset for a time is the earliest offset whose timestamp is not before it. In JSON of offsets, -2 is earliest and -1
latest. JSON names every partition that is read.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from kbat.spark.topics import TopicPartition
from kbat.spark.values import parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

EARLIEST: Final = -2
LATEST: Final = -1

_OFFSET_FORM = 'earliest, latest, or JSON like {"orders": {"0": 23, "1": -2}} with -2 for earliest and -1 for latest'
_TIMESTAMP_FORM = 'JSON like {"orders": {"0": 1700000000000}} in milliseconds since 1970, UTC'


@dataclass(frozen=True)
class Offset:
    """The same offset for every partition: `EARLIEST` or `LATEST`."""

    offset: Literal[-2, -1]


@dataclass(frozen=True)
class _ByPartition:
    by_partition: tuple[tuple[TopicPartition, int], ...]

    @functools.cached_property
    def of(self) -> dict[TopicPartition, int]:
        """What a partition has."""
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
    return Offsets(_parse_json(text, EARLIEST, f"it is {_OFFSET_FORM}"))


def parse_timestamps(text: str) -> Timestamps:
    """Parse `startingOffsetsByTimestamp` or `endingOffsetsByTimestamp`."""
    return Timestamps(_parse_json(text, 0, f"it is {_TIMESTAMP_FORM}"))


def parse_bound_timestamp(text: str) -> Timestamp:
    """Parse `startingTimestamp` or `endingTimestamp`."""
    return Timestamp(parse_timestamp(text))


def _parse_json(text: str, smallest: int, form: str) -> tuple[tuple[TopicPartition, int], ...]:
    try:
        topics = json.loads(text)
        found = {
            TopicPartition(topic, int(number)): value
            for topic, numbers in topics.items()
            for number, value in numbers.items()
        }
    except (ValueError, AttributeError):
        raise ValueError(form) from None
    if not found or not all(_is_number(value, smallest) for value in found.values()):
        raise ValueError(form)
    return tuple(sorted(found.items()))


def _is_number(value: object, smallest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and smallest <= value < 1 << 63


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
