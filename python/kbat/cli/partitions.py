"""The partitions that a command reads one by one, and the errors of those that can't be read."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import kbat
from kbat.cli import output
from kbat.cli.guard import FailedError
from kbat.cli.location import Location
from kbat.cli.losses import Lost, note_uncounted
from kbat.cli.place import is_partition, locate, word
from kbat.cli.progress import progress

T = TypeVar("T")
Item = TypeVar("Item")

Log = kbat.PartitionLog | kbat.Segment
Errors = list[tuple[str, str]]
# Calls that wait for a store at the same time.
_AT_A_TIME = 16
# Topics that a message names.
_NAMED = 10


def logs_of(path: Location, chosen: dict[str, Any]) -> list[Log]:
    """Return the partitions of a log directory, one partition, or the segment that a file is.

    Raises:
        ValueError: The path is not a log.
        NothingToReadError: There is no segment.
    """
    segments = locate([path], **chosen).segments
    if path.is_file:
        return [kbat.Segment(str(path), **path.options)]
    if is_partition(path, segments):
        return [kbat.PartitionLog(str(path), **path.options)]
    return list(kbat.LogDirectory(str(path), **chosen, **path.options).partitions)


def call_each(what: str, unit: str, items: Sequence[Item], call: Callable[[Item], T], *, is_waiting: bool) -> list[T]:
    """Return the results of calls in their order, as `each` does, and show the progress in units."""
    results: list[T] = []
    with progress(what, unit=unit) as callback:
        for result in each(items, call, is_waiting=is_waiting):
            results.append(result)
            if callback:
                callback(len(results), len(items))
    return results


def each(items: Sequence[Item], call: Callable[[Item], T], *, is_waiting: bool) -> Iterator[T]:
    """Yield the results of calls in their order. Calls that wait for a store run several at a time."""
    if not is_waiting or len(items) <= 1:
        yield from map(call, items)
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - takes milliseconds to import

    pool = ThreadPoolExecutor(_AT_A_TIME)
    try:
        yield from pool.map(call, items)
    finally:
        # after an error or Ctrl-C, do not wait for the calls that have not begun
        pool.shutdown(cancel_futures=True)


def is_in_store(logs: Sequence[Log]) -> bool:
    """Return whether logs are objects, so that reading each of them takes several requests."""
    return bool(logs) and Location(path_of(logs[0])).is_url


def read_each(logs: Sequence[Log], read: Callable[[Log], T], what: str) -> tuple[list[tuple[Log, T]], Errors, int]:
    """Read every partition. One that can't be read does not hide the others: its error is returned.

    Returns:
        What was read, the errors, and the bytes of incomplete batches at the ends of the partitions.
    """
    found: list[tuple[Log, T]] = []
    errors: Errors = []
    incomplete = 0

    def outcome(log: Log) -> tuple[T, int] | str:
        try:
            return read(log), incomplete_bytes(log)
        except (kbat.KbatError, OSError) as error:
            return str(error)

    outcomes = call_each(what, "partitions", logs, outcome, is_waiting=is_in_store(logs))
    for log, one in zip(logs, outcomes, strict=True):
        if isinstance(one, str):
            errors.append((path_of(log), one))
        else:
            found.append((log, one[0]))
            incomplete += one[1]
    return found, errors, incomplete


def path_of(log: Log) -> str:
    """Return the directory of a partition, or the file of a segment."""
    return log.path if isinstance(log, kbat.Segment) else log.directory


def name_of(log: Log) -> dict[str, Any]:
    """Return topic and partition as members of a JSON object."""
    if isinstance(log, kbat.Segment):
        return {"topic": None, "partition": None}
    return {"topic": log.topic, "partition": log.partition}


def incomplete_bytes(log: Log) -> int:
    """Return the bytes of an incomplete batch at the end of a partition or segment, 0 without one."""
    segments = [log] if isinstance(log, kbat.Segment) else log.segments[-1:]
    return sum(one.incomplete_bytes for one in segments)


def note_incomplete(path: Location, segments: Sequence[kbat.SegmentFile], topic: str) -> None:
    """Report the bytes of incomplete batches at the ends of the partitions of a topic. Other files are not segments."""
    named = (one for one in segments if one.base_offset is not None)
    last = {path.at(one.path).parent: one for one in named if one.topic in (None, topic)}
    note_uncounted(Lost(bytes=sum(incomplete_bytes(kbat.Segment(one)) for one in last.values())))


def number_text(value: int | None) -> str:
    """Return an id, an offset or another number of Kafka's, a dash for none."""
    return "-" if value is None or value == -1 else str(value)


def json_errors(errors: Errors) -> list[dict[str, str]]:
    """Return the errors as members of a JSON document."""
    return [{"path": path, "error": error} for path, error in errors]


def fail_for(path: Location, errors: Errors) -> None:
    """Fail with one line about the parts of a path that can't be read, if there are any."""
    if errors:
        # most errors name the file themselves
        lines = [error if where in error else f"{where}: {error}" for where, error in errors]
        message = f"{'; '.join(dict.fromkeys(lines))}; 'kbat verify {word(path)}{path.again}' has the details"
        raise FailedError(message)


def check_topic(path: Location, segments: Sequence[kbat.SegmentFile], topic: str) -> None:
    """Refuse a path with partitions of other topics only. Directories whose names have no topic may be of any topic.

    Raises:
        ValueError: The topic is not there.
    """
    found = sorted({one.topic for one in segments if one.topic is not None})
    if not found or topic in found or any(one.topic is None for one in segments):
        return
    if is_partition(path, segments):
        what = f"belongs to the topic {found[0]}"
    else:
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        what = f"has the topics {', '.join(found[:_NAMED])}{more}"
    message = f'no topic matches "{topic}": {path} {what}; name a partition of {topic}, or its log directory'
    raise ValueError(message)


@contextmanager
def decoding(path: Location, topic: str) -> Iterator[None]:
    """Show warnings, as `warnings_as_notes` does. If no record is one of an internal topic, it is an error instead.

    Raises:
        ValueError: Records were read, and none of them is one of the topic.
    """
    from kbat.internal.records import UndecodedWarning  # noqa: PLC0415 - few commands need it

    with warnings_as_notes() as caught:
        yield
        for one in caught:
            if isinstance(one.message, UndecodedWarning) and one.message.is_all:
                _, _, reason = str(one.message).partition(": ")
                message = f"{path} does not contain records of {topic}: {reason}; name a directory of that topic"
                raise ValueError(message)


@contextmanager
def warnings_as_notes() -> Iterator[list[warnings.WarningMessage]]:
    """Show the warnings of the package as lines on the standard error, after the block."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield caught
    for message in dict.fromkeys(str(one.message) for one in caught):
        output.warn(message)
