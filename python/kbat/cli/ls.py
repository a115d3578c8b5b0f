"""`kbat ls`: the partitions of a log directory, or the segments of a partition."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import typer

import kbat
from kbat._core.locations import discover
from kbat.cli import output
from kbat.cli.location import Location
from kbat.cli.losses import Lost, note_uncounted
from kbat.cli.options import Json, Partitions, PathArgument, Topics, Wide, selection
from kbat.cli.partitions import call_each, fail_for, incomplete_bytes
from kbat.cli.place import NothingToReadError, foreign, is_partition, locate
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, write_table

# Bytes of a store that are read at most for the last stable offset of a partition.
_MAX_READ = 8 << 20
# Errors of a partition that can't be read. ValueError: a pipe or a device has the name of a segment.
_UNREADABLE = (kbat.KbatError, OSError, ValueError)
_TIME = "largest timestamp (UTC)"
_PARTITION_COLUMNS = (
    Column("topic", left=True),
    Column("partition"),
    Column("segments", rank=4),
    Column("size", rank=1),
    Column("start offset", rank=3),
    Column("end offset"),
    Column("last stable offset", rank=5),
    Column(_TIME, rank=2),
)
_SEGMENT_COLUMNS = (
    Column("base offset"),
    Column("end offset"),
    Column("size"),
    Column(_TIME, rank=1),
    Column("files", left=True, rank=2),
)


@opens_logs
def ls(
    path: PathArgument,
    *,
    topic: Topics = None,
    partition: Partitions = None,
    json: Json = False,
    wide: Wide = False,
) -> None:
    """List the partitions of a log directory, or the segments of a partition.

    The end offset is the offset that the next record would get, after the last complete batch. The last stable offset
    is the limit for a `read_committed` consumer: if it is below the end offset, a transaction is open. In a store, it
    is a dash (null in JSON) if more than 8 MiB would have to be read for it. A dash under "largest timestamp" means
    that no record has a timestamp; "?" means that corruption hides the value.

    Examples: `kbat ls /var/lib/kafka/data`, `kbat ls /var/lib/kafka/data --topic 'orders*'`

    JSON of a log directory: `path`, `kind` ("log_directory"), `is_clean_shutdown`, `partitions`: `topic`, `partition`,
    `path`, `segments`, `bytes`, `start_offset`, `end_offset`, `last_stable_offset`, `incomplete_bytes` (of an
    incomplete batch after `end_offset`), `largest_timestamp`, `error`; `stray`, directories that are not live
    partitions: `path`, `topic`, `partition`, `state`, `error`.

    JSON of a partition: `path`, `kind` ("partition"), `topic`, `partition`, `start_offset`, `end_offset`,
    `last_stable_offset`, `error`, `segments`: `base_offset`, `end_offset`, `bytes`, `incomplete_bytes`,
    `largest_timestamp`, `path`, `files`, `error`; `leftovers`, paths of `.deleted`, `.cleaned` and `.swap` files. A
    `largest_timestamp` of null means that no record has a timestamp, or that `error` is set.

    JSON of a `.log` file: that of a partition, with only `path`, `kind`, `error` and `segments` set.

    Exit codes: 0; 1 for an empty directory, and if a partition or segment can't be read or its end is corrupt (`error`
    has the reason, and the unknown values are null in JSON and "?" in the table); 2 for wrong arguments and for a PATH
    that is not a log.
    """
    chosen = selection(topic, partition)
    try:
        segments, warned = locate([path], **chosen)
    except NothingToReadError:
        # partitions without a segment, and those that a broker is about to delete, are listed
        with suppress(ValueError):
            if _list_partitions(path, _directory(path, chosen), as_json=json, wide=wide):
                return
        raise
    except (OSError, kbat.KbatError) as error:
        # one partition that can't be read does not hide the others
        is_of_path = isinstance(error, OSError) and str(error.filename) == str(path)
        if is_of_path or not (path.is_local and path.is_dir) or _has_logs(path):
            raise
        _list_partitions(path, _directory(path, chosen), as_json=json, wide=wide, finds_errors=True)
        raise  # the error is of no partition
    if path.is_file:
        _list_segments(path, kbat.Segment(str(path), **path.options), as_json=json, wide=wide)
    elif is_partition(path, segments):
        _list_segments(path, kbat.PartitionLog(str(path), **path.options), as_json=json, wide=wide)
    else:
        _list_partitions(path, _directory(path, chosen), as_json=json, wide=wide, warned=warned)


def _has_logs(path: Location) -> bool:
    """Return whether a directory is that of a partition."""
    return any(one.suffix == ".log" for one in path.files)


def _directory(path: Location, chosen: dict[str, Any]) -> kbat.LogDirectory:
    return kbat.LogDirectory(str(path), **chosen, **path.options)


def _list_partitions(  # noqa: PLR0913 - one per option
    path: Location,
    directory: kbat.LogDirectory,
    *,
    as_json: bool,
    wide: bool,
    warned: Sequence[str] = (),
    finds_errors: bool = False,
) -> bool:
    """List the partitions; False if there is nothing to list. Errors that were warnings before are not repeated.

    `finds_errors`: whether to find the partitions of which readers would miss records.
    """
    logs = directory.partitions
    if not logs and all(one.state == "unknown" for one in directory.stray):
        return False
    partitions = call_each("listing", "partitions", logs, _partition, is_waiting=not path.is_local)
    if finds_errors:
        for row, log in zip(partitions, logs, strict=True):
            row["error"] = _error_of(log) or row["error"]
    stray = [
        {"path": one.path, "topic": one.topic, "partition": one.partition, "state": one.state, "error": one.error}
        for one in directory.stray
    ]
    if as_json:
        clean = {"is_clean_shutdown": directory.is_clean_shutdown}
        output.write_json(
            {"path": str(path), "kind": "log_directory", **clean, "partitions": partitions, "stray": stray}
        )
    else:
        _show_partitions(path, directory, partitions, wide=wide)
    _note_incomplete(partitions)
    errors = [(one["path"], one["error"]) for one in (*partitions, *stray) if one["error"] is not None]
    fail_for(path, [(where, error) for where, error in errors if error not in warned])
    if errors:
        raise typer.Exit(1)
    return True


def _values(one: kbat.PartitionLog | kbat.Segment, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of some attributes up to the first `error`; None for the others."""
    row: dict[str, Any] = dict.fromkeys((*names, "error"))
    try:
        for name in names:
            row[name] = getattr(one, name)
    except _UNREADABLE as error:
        row["error"] = _message(error)
    return row


def _error_of(log: kbat.PartitionLog) -> str | None:
    """Return why readers refuse a partition in a directory on this machine, if they do."""
    try:
        discover([log.directory])
    except _UNREADABLE as error:
        return _message(error)
    return None


def _message(error: Exception) -> str:
    """Return an error's message, and what the file is instead of a log."""
    place = getattr(error, "path", None)
    reason = foreign(Location(place)) if place is not None else ""
    return f"{error}; {reason}" if reason else str(error)


def _note_incomplete(rows: Sequence[dict[str, Any]]) -> None:
    note_uncounted(Lost(bytes=sum(one["incomplete_bytes"] or 0 for one in rows)))


def _largest(timestamps: list[int | None]) -> int | None:
    """Return the largest timestamp, None if no record has one."""
    known = [one for one in timestamps if one is not None and one != output.NO_TIMESTAMP]
    return max(known, default=None)


def _offsets_of(log: kbat.PartitionLog) -> tuple[str, ...]:
    """Return the offsets to show. The last stable one may take reading all batches after the last producer snapshot."""
    names = ("start_offset", "end_offset")
    if not Location(log.directory).is_url:
        return (*names, "last_stable_offset")
    known = {offset for offset, _ in log.snapshots}
    unread = 0
    for segment in reversed(log.segments):
        unread += segment.size
        if segment.base_offset in known:
            break
    with suppress(*_UNREADABLE):
        if unread <= _MAX_READ or log.end_offset in known:
            return (*names, "last_stable_offset")
    return names


def _partition(log: kbat.PartitionLog) -> dict[str, Any]:
    about = _values(log, _offsets_of(log))
    largest = incomplete = None
    if about["error"] is None:
        try:
            incomplete = incomplete_bytes(log)
            largest = _largest([segment.largest_timestamp for segment in log.segments])
        except _UNREADABLE as error:
            about["error"] = _message(error)
    return {
        "topic": log.topic,
        "partition": log.partition,
        "path": log.directory,
        "segments": len(log.segments),
        "bytes": sum(segment.size for segment in log.segments),
        "start_offset": about["start_offset"],
        "end_offset": about["end_offset"],
        "last_stable_offset": about.get("last_stable_offset"),
        "incomplete_bytes": incomplete,
        "largest_timestamp": largest,
        "error": about["error"],
    }


def _show_partitions(
    path: Location, directory: kbat.LogDirectory, partitions: list[dict[str, Any]], *, wide: bool
) -> None:
    rows = (
        (
            output.text(one["topic"]),
            str(one["partition"]),
            str(one["segments"]),
            output.size_text(one["bytes"]),
            *(_known(one[name]) for name in ("start_offset", "end_offset")),
            _stable(one),
            _time(one),
        )
        for one in partitions
    )
    write_table(str(path), _PARTITION_COLUMNS, rows, wide=wide)
    for one in directory.stray:
        output.write_line(f"not a live partition ({one.state}): {output.text(one.path)}")
    total = output.size_text(sum(one["bytes"] for one in partitions))
    state = "yes" if directory.is_clean_shutdown else "no (the broker runs, or was killed)"
    output.write_line(f"{output.count_text(len(partitions), 'partition')}, {total}; clean shutdown: {state}")


def _list_segments(path: Location, log: kbat.PartitionLog | kbat.Segment, *, as_json: bool, wide: bool) -> None:
    segments = [log] if isinstance(log, kbat.Segment) else log.segments
    rows = call_each("listing", "segments", segments, _segment, is_waiting=not path.is_local)
    about = _about(log)
    if as_json:
        output.write_json({"path": str(path), "kind": "partition", **about, "segments": rows, **_leftovers(log)})
    else:
        _show_segments(path, log, rows, about, wide=wide)
    _note_incomplete(rows)
    errors = [(one["path"], one["error"]) for one in rows if one["error"] is not None]
    if about["error"] is not None:
        errors.append((str(path), about["error"]))
    fail_for(path, errors)


def _segment(segment: kbat.Segment) -> dict[str, Any]:
    found = _values(segment, ("end_offset", "incomplete_bytes", "largest_timestamp"))
    return {
        "base_offset": segment.base_offset,
        "end_offset": found["end_offset"],
        "bytes": segment.size,
        "incomplete_bytes": found["incomplete_bytes"],
        "largest_timestamp": _largest([found["largest_timestamp"]]),
        "path": segment.path,
        "files": sorted(segment.files),
        "error": found["error"],
    }


def _show_segments(
    path: Location,
    log: kbat.PartitionLog | kbat.Segment,
    rows: list[dict[str, Any]],
    about: dict[str, Any],
    *,
    wide: bool,
) -> None:
    cells = (
        (
            str(one["base_offset"]),
            _known(one["end_offset"]),
            output.size_text(one["bytes"]),
            _time(one),
            " ".join(one["files"]),
        )
        for one in rows
    )
    write_table(str(path), _SEGMENT_COLUMNS, cells, wide=wide)
    for leftover in _leftovers(log)["leftovers"]:
        output.write_line(f"leftover of a broker: {output.text(leftover)}")
    start, end = (_known(about[name]) for name in ("start_offset", "end_offset"))
    offsets = f"; start offset {start}, end offset {end}, last stable {_stable(about)}"
    offsets = "" if isinstance(log, kbat.Segment) else offsets
    size = output.size_text(sum(one["bytes"] for one in rows))
    output.write_line(f"{output.count_text(len(rows), 'segment')}, {size}{offsets}")


def _about(log: kbat.PartitionLog | kbat.Segment) -> dict[str, Any]:
    names = ("topic", "partition")
    empty = dict.fromkeys((*names, "start_offset", "end_offset", "last_stable_offset", "error"))
    return empty | _values(log, (*names, *_offsets_of(log))) if isinstance(log, kbat.PartitionLog) else empty


def _leftovers(log: kbat.PartitionLog | kbat.Segment) -> dict[str, list[str]]:
    return {"leftovers": log.leftovers if isinstance(log, kbat.PartitionLog) else []}


def _known(value: int | None, as_text: Callable[[int], str] = str) -> str:
    return "?" if value is None else as_text(value)


def _stable(row: dict[str, Any]) -> str:
    """Return the last stable offset; "?" if corruption hides it, a dash if it was not read."""
    value = row["last_stable_offset"]
    return "-" if value is None and row["error"] is None else _known(value)


def _time(row: dict[str, Any]) -> str:
    """Return the largest timestamp; "?" if corruption hides it."""
    hidden = row["largest_timestamp"] is None and row["error"] is not None
    return "?" if hidden else output.time_text(row["largest_timestamp"])
