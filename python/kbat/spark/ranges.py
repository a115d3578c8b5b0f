"""From bounds to offsets: which offsets of each partition a read gives.

```
earliest            the log's start offset
latest              its end, in read_committed its last stable offset
an offset           itself; outside of the log it is lost data: an error, or with failOnDataLoss=false the nearest one
a time              the first record that is not older; without one the strategy (start) or latest (end)
```
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import kbat
from kbat.spark.bounds import EARLIEST, LATEST, Bound, Offset, Offsets, Timestamp, Timestamps
from kbat.spark.places import SegmentPlaces
from kbat.spark.topics import some_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbat.spark.listing import Log
    from kbat.spark.options import ReadOptions
    from kbat.spark.topics import TopicPartition


@dataclass(frozen=True)
class LogRange:
    """A log and the offsets to read of it: from `start`, and before `end`; None where there is no bound.

    With `goes_on`, as in a stream, a later read starts at `end`.
    """

    log: Log
    start: int | None = None
    end: int | None = None
    goes_on: bool = False


def resolve(logs: Sequence[Log], options: ReadOptions) -> list[LogRange]:
    """Return the offsets to read of each log.

    Raises `ValueError` where JSON does not name the partitions there are, where a partition lies in two directories and
    bounds are asked for, where no record is as new as a starting time, and for offsets that are gone.
    """
    if options.view != "records" and options.start is None and options.end is None:
        return [LogRange(log) for log in logs]  # all that is on disk
    start, end = options.start or Offset(EARLIEST), options.end or Offset(LATEST)
    for name, bound in (("starting", start), ("ending", end)):
        check_names_all(name, bound, [log.partition for log in logs])
    if not (isinstance(start, Offset) and isinstance(end, Offset)):
        check_no_copies(logs)
    return [LogRange(log, _start_of(log, start, options), _end_of(log, end, options)) for log in logs]


def check_no_copies(logs: Sequence[Log]) -> None:
    """Raise `ValueError` where a partition lies in two directories, of two brokers say."""
    seen: dict[TopicPartition, str] = {}
    for log in logs:
        other = seen.setdefault(log.partition, log.directory)
        if other != log.directory:
            message = (
                f"kbat: partition {log.partition} is in {other} and in {log.directory}, copies of one log; "
                "load one of them, or leave the bounds out to read both"
            )
            raise ValueError(message)


def check_names_all(name: str, bound: Bound, partitions: Sequence[TopicPartition]) -> None:
    """Raise `ValueError` unless JSON names exactly the partitions that are read."""
    if not isinstance(bound, Offsets | Timestamps):
        return
    read = set(partitions)
    missing = [partition for partition in partitions if partition not in bound.of]
    extra = [partition for partition in bound.of if partition not in read]
    if missing or extra:
        parts = ([f"{some_of(missing)} is missing"] if missing else []) + (
            [f"{some_of(extra)} is not read"] if extra else []
        )
        unset = "-2 is earliest and -1 latest" if isinstance(bound, Offsets) else "0 is before all records"
        message = (
            f"kbat: JSON of {name} {'offsets' if isinstance(bound, Offsets) else 'timestamps'} names every partition "
            f"that is read, and no other: {'; '.join(parts)} ({unset})"
        )
        raise ValueError(message)


def starting_offset(log: Log, bound: Bound, options: ReadOptions) -> int:
    """Return the offset at which a read of a log starts."""
    wanted = _offset_of(log, bound, options)
    if wanted is None:
        if options.timestamp_strategy == "error":
            message = (
                f"kbat: no record of {log.partition} is as new as the starting timestamp {_time_of(log, bound)}; "
                "with startingOffsetsByTimestampStrategy=latest that partition gives no rows"
            )
            raise ValueError(message)
        return latest_offset(log, options)
    if wanted == EARLIEST:
        return log.on_disk.start_offset
    if wanted == LATEST:
        return latest_offset(log, options)
    return _within(log, wanted, options) if isinstance(bound, Offsets) else wanted


def _start_of(log: Log, bound: Bound, options: ReadOptions) -> int | None:
    if not log.is_named:
        return _unchecked(log, bound, options)
    start = starting_offset(log, bound, options)
    # most logs start with their first segment, and then nothing has to be looked up or left out
    return start if any((segment.base_offset or 0) < start for segment in log.segments) else None


def _end_of(log: Log, bound: Bound, options: ReadOptions) -> int | None:
    if not log.is_named:
        return _unchecked(log, bound, options)
    wanted = _offset_of(log, bound, options)
    if wanted in {None, LATEST}:
        return latest_offset(log, options) if options.isolation == "read_committed" else None
    if isinstance(bound, Offsets) and wanted is not None:
        wanted = _within(log, wanted, options)
    if options.isolation == "read_committed" and wanted is not None:
        return min(wanted, latest_offset(log, options))
    return wanted


def latest_offset(log: Log, options: ReadOptions) -> int:
    """Return the offset after the last one that a reader of this isolation level sees."""
    if options.isolation == "read_committed":
        return log.on_disk.last_stable_offset
    return end_offset(log, options)


def end_offset(log: Log, options: ReadOptions) -> int:
    """Return the offset after the last one of a log; with `onCorrupt=skip` and `report` behind damage too."""
    segments = log.on_disk.segments
    if options.on_corrupt == "fail" or not segments:
        return log.on_disk.end_offset
    return SegmentPlaces(segments[-1].path, segments[-1].size, None, options).end_offset


def _find_timestamp(log: Log, timestamp: int, options: ReadOptions) -> int | None:
    """Return the offset of the first record that is not older than a time, as a broker tells it; None for none.

    Where damage hides records from that answer it is an error, or with `onCorrupt=skip` and `report` the first one that
    can be read.
    """
    try:
        found = log.on_disk.find_timestamp(timestamp)
    except kbat.KbatError:
        if options.on_corrupt == "fail":
            raise
        found = None
    start, segments = log.on_disk.start_offset, log.on_disk.segments
    nexts = [segment.base_offset for segment in segments[1:]]
    for segment, next_base in itertools.zip_longest(segments, nexts):
        if found is not None and found.offset < segment.base_offset:
            break
        if next_base is not None and next_base <= start:
            continue
        places = SegmentPlaces(segment.path, segment.size, next_base, options)
        if places.hides(timestamp, start):
            offset = places.find_timestamp(timestamp, start)
            if offset is not None:
                return offset
    return None if found is None else found.offset


def _offset_of(log: Log, bound: Bound, options: ReadOptions) -> int | None:
    """Return the offset that a bound means, perhaps `EARLIEST` or `LATEST`; None if no record is as new as its time."""
    if isinstance(bound, Offset):
        return bound.offset
    if isinstance(bound, Offsets):
        return bound.of[log.partition]
    return _find_timestamp(log, _time_of(log, bound), options)


def _time_of(log: Log, bound: Bound) -> int:
    if isinstance(bound, Timestamp):
        return bound.timestamp
    return bound.of[log.partition] if isinstance(bound, Timestamps) else -1


def _unchecked(log: Log, bound: Bound, options: ReadOptions) -> int | None:
    """Return the offset of a file that is not named after its base offset: there is nothing to look it up in."""
    if isinstance(bound, Timestamp | Timestamps):
        message = (
            f"kbat: {log.segments[0].path} is not named after its base offset, so times can't be looked up; "
            "filter the column: .where(\"timestamp >= '2026-01-01 00:00:00'\")"
        )
        raise ValueError(message)  # noqa: TRY004 -- the value is the user's
    wanted = _offset_of(log, bound, options)
    return None if wanted in {EARLIEST, LATEST} else wanted


def _within(log: Log, wanted: int, options: ReadOptions) -> int:
    """Return the offset wanted, or what `failOnDataLoss` says of one that the log does not reach to."""
    first, last = log.on_disk.start_offset, end_offset(log, options)
    if first <= wanted <= last:
        return wanted
    report_data_loss(
        f"offset {wanted} of {log.partition} is not in {log.directory}, which has {first} to {last}", options
    )
    return min(max(wanted, first), last)


def report_data_loss(what: str, options: ReadOptions) -> None:
    """Raise `ValueError` or warn, as `failOnDataLoss` says."""
    if options.fail_on_data_loss:
        message = f"kbat: {what}; option failOnDataLoss=false goes on with what is there"
        raise ValueError(message)
    warnings.warn(f"kbat: {what}; reading what is there, as failOnDataLoss=false says", stacklevel=2)
