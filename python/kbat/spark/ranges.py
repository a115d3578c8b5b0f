"""Converts bounds to the offsets that are read of each partition.

```
earliest            the log's start offset
latest              its end, in read_committed its last stable offset
an offset           itself; outside the log it is lost data: an error, or with failOnDataLoss=false the nearest one
a time by JSON      the offset of the first record since then; if there is none, the strategy (start) or latest (end)
the time of a read  no offset: the tasks filter rows by it
```

The first record since a time is the first in a full scan of the log whose timestamp is not before it. For segments
without timestamps, a broker uses the modification times of the files instead.
"""

from __future__ import annotations

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
    """A log and the offsets to read of it, from `start` up to but not including `end`; None if there is no bound.

    With `continues`, as in a stream, a later read starts at `end`.
    """

    log: Log
    start: int | None = None
    end: int | None = None
    continues: bool = False


def resolve(logs: Sequence[Log], options: ReadOptions) -> list[LogRange]:
    """Return the offsets to read of each log in a batch read.

    Raises `ValueError` if JSON does not name exactly the partitions that are read, if a partition is in two directories
    and bounds apply, if a partition has no record since a starting time and the strategy is error, and for offsets that
    no longer exist.
    """
    start, end = options.start or Offset(EARLIEST), options.end or Offset(LATEST)
    if isinstance(start, Timestamp):
        _check_starting_time(logs, start, options)
        start = Offset(EARLIEST)
    if isinstance(end, Timestamp):
        end = Offset(LATEST)
    if options.view != "records" and isinstance(start, Offset) and isinstance(end, Offset):
        return [LogRange(log) for log in logs]  # everything on disk
    for name, bound in (("starting", start), ("ending", end)):
        check_names_all(name, bound, [log.partition for log in logs])
    if not (isinstance(start, Offset) and isinstance(end, Offset)):
        check_no_copies(logs)
    return [LogRange(log, _start_of(log, start, options), _end_of(log, end, options)) for log in logs]


def _check_starting_time(logs: Sequence[Log], start: Timestamp, options: ReadOptions) -> None:
    """Raise `ValueError` for a log without a record since a time, if the options set the strategy error."""
    if options.timestamp_strategy == "error":
        for log in logs:
            if _find_timestamp(log, start.timestamp, options) is None:
                raise ValueError(_no_record_since(log, start.timestamp))


def _no_record_since(log: Log, timestamp: int) -> str:
    return (
        f"kbat: {log.partition} has no record with the timestamp {timestamp} or a later one; "
        "with startingOffsetsByTimestampStrategy=latest it is read without rows"
    )


def check_no_copies(logs: Sequence[Log]) -> None:
    """Raise `ValueError` if a partition is in two directories: the option `topic` names files of any directory."""
    seen: dict[TopicPartition, str] = {}
    for log in logs:
        other = seen.setdefault(log.partition, log.directory)
        if other != log.directory:
            message = (
                f"kbat: partition {log.partition} is in {other} and in {log.directory}, and offsets are of one log; "
                "load one directory, or remove the bounds to read both"
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
        parts = [
            f"{some_of(names)} {'is' if len(names) == 1 else 'are'} {what}"
            for names, what in ((missing, "missing"), (extra, "not read"))
            if names
        ]
        unset = "-2 is earliest and -1 latest" if isinstance(bound, Offsets) else "0 is before all records"
        message = (
            f"kbat: JSON of {name} {'offsets' if isinstance(bound, Offsets) else 'timestamps'} must name every "
            f"partition that is read, and no other: {'; '.join(parts)} ({unset})"
        )
        raise ValueError(message)


def starting_offset(log: Log, bound: Bound, options: ReadOptions) -> int:
    """Return the offset at which a read of a log starts."""
    wanted = _offset_of(log, bound, options)
    if wanted is None:
        if options.timestamp_strategy != "latest":
            raise ValueError(_no_record_since(log, _time_of(log, bound)))
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
    # most logs start with their first segment, and then no search is necessary
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
    """Return the offset after the last one of a log; with `onCorrupt=skip` and `report` also after corruption."""
    segments = log.on_disk.segments
    if options.on_corrupt == "fail" or not segments:
        return log.on_disk.end_offset
    return SegmentPlaces(log, segments[-1].path, segments[-1].size, None, options).end_offset


def _find_timestamp(log: Log, timestamp: int, options: ReadOptions) -> int | None:
    """Return the offset of the first record since a time, as a full scan of the log finds it; None if there is none.

    Control records count, as they do for a broker. Raises the errors of the scan; with `onCorrupt=skip` and `report`
    corrupt batches are skipped.
    """
    scan = kbat.scan(
        log.sources,
        columns=["offset", "position", "segment"],
        start_offset=log.on_disk.start_offset,
        start_timestamp=timestamp,
        include_control=True,
        check_crc=options.check_crc,
        on_corrupt="fail" if options.on_corrupt == "fail" else "skip",
        limits=options.limits,
        max_rows=1,
        leave_page_cache=options.leave_page_cache,
        **log.keywords,
    )
    for arrow_batch in scan.to_batches():
        for row in arrow_batch.to_pylist():
            return _places_of(log, row["segment"], options).sound_offset(row["position"], row["offset"])
    return None


def _places_of(log: Log, path: str, options: ReadOptions) -> SegmentPlaces:
    number = next(number for number, segment in enumerate(log.segments) if segment.path == path)
    segment, later = log.segments[number], log.segments[number + 1 :]
    return SegmentPlaces(log, path, segment.size, later[0].base_offset if later else None, options)


def _offset_of(log: Log, bound: Bound, options: ReadOptions) -> int | None:
    """Return the offset of a bound, perhaps `EARLIEST` or `LATEST`; None if there is no record since its time."""
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
    """Return the offset of a bound for a file that is not named after its base offset, without a search."""
    if isinstance(bound, Timestamp | Timestamps):
        message = (
            f"kbat: {log.segments[0].path} is not named after its base offset, so it can't be searched for a time; "
            "filter its rows with startingTimestamp and endingTimestamp"
        )
        raise ValueError(message)  # noqa: TRY004 -- the value is the user's
    wanted = _offset_of(log, bound, options)
    return None if wanted in {EARLIEST, LATEST} else wanted


def _within(log: Log, wanted: int, options: ReadOptions) -> int:
    """Return an offset, or the nearest one of the log if it is outside and `failOnDataLoss` is false."""
    first, last = log.on_disk.start_offset, end_offset(log, options)
    if first <= wanted <= last:
        return wanted
    report_data_loss(
        f"offset {wanted} of {log.partition} is not in {log.directory}, which has {first} to {last}", options
    )
    return min(max(wanted, first), last)


def report_data_loss(what: str, options: ReadOptions) -> None:
    """Raise `ValueError`, or warn with `failOnDataLoss=false`."""
    if options.fail_on_data_loss:
        message = f"kbat: {what}; option failOnDataLoss=false reads the existing records"
        raise ValueError(message)
    warnings.warn(f"kbat: {what}; reading the existing records, because of failOnDataLoss=false", stacklevel=2)
