"""`kbat ls`: what lies in a log directory or a partition."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import kbat
from kbat.cli import output
from kbat.cli.guard import FailedError
from kbat.cli.options import Json, PathArgument
from kbat.cli.place import log_directories_in, word
from kbat.cli.progress import progress

_OFFSETS = ("start offset", "end offset")
_TIME = "largest timestamp (UTC)"


def ls(path: PathArgument, *, json: Json = False) -> None:
    """List the partitions of a log directory, or the segments of a partition.

    The end offset is the offset that the next record would get. The last stable offset is how far a `read_committed`
    consumer may read: below the end offset, a transaction is open. A timestamp of -1 means that no record has one.

    Example: `kbat ls /var/lib/kafka/data`

    JSON of a log directory: `path`, `kind` ("log_directory"), `is_clean_shutdown`, `partitions`: `topic`, `partition`,
    `path`, `segments`, `bytes`, `start_offset`, `end_offset`, `last_stable_offset`, `largest_timestamp`, `error`;
    `stray`, directories that are no live partition: `path`, `topic`, `partition`, `state`, `error`.

    JSON of a partition: `path`, `kind` ("partition"), `topic`, `partition`, `start_offset`, `end_offset`,
    `last_stable_offset`, `error`, `segments`: `base_offset`, `end_offset`, `bytes`, `largest_timestamp`, `path`,
    `files`, `error`; `leftovers`, paths of `.deleted`, `.cleaned` and `.swap` files.

    JSON of a `.log` file: that of a partition, with nothing but `path`, `kind`, `error` and `segments` filled.

    Exit codes: 0; 1 where a partition or segment can't be read (its `error` says why, and what it hides is null, in
    the table "?"); 2 for wrong arguments.
    """
    if path.is_file():
        _list_segments(path, kbat.Segment(path), as_json=json)
        return
    log = kbat.PartitionLog(path)
    if log.segments:
        _list_segments(path, log, as_json=json)
    else:
        _list_partitions(path, kbat.LogDirectory(path), as_json=json)


def _list_partitions(path: Path, directory: kbat.LogDirectory, *, as_json: bool) -> None:
    if not directory.partitions and all(one.state == "unknown" for one in directory.stray):
        raise ValueError(_no_log_directory(path))
    logs = directory.partitions
    with progress("listing", unit="partitions") as callback:
        partitions = []
        for log in logs:
            partitions.append(_partition(log))
            if callback:
                callback(len(partitions), len(logs))
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
        _show_partitions(path, directory, partitions)
    _fail_for(path, [f"{one['path']}: {one['error']}" for one in (*partitions, *stray) if one["error"] is not None])


def _no_log_directory(path: Path) -> str:
    message = f"{path} holds neither <topic>-<partition> directories nor .log files"
    for directory in log_directories_in(path):
        return f"{message}, but {directory} does: 'kbat ls {word(directory)}'"
    return message


def _fail_for(path: Path, errors: list[str]) -> None:
    if errors:
        message = f"{'; '.join(dict.fromkeys(errors))}; 'kbat verify {word(path)}' says more"
        raise FailedError(message)


def _values(one: kbat.PartitionLog | kbat.Segment, names: tuple[str, ...]) -> dict[str, Any]:
    """Give what can be read up to the first `error`, the rest as None."""
    row: dict[str, Any] = dict.fromkeys((*names, "error"))
    try:
        for name in names:
            row[name] = getattr(one, name)
    except (kbat.KbatError, OSError) as error:
        row["error"] = str(error)
    return row


def _partition(log: kbat.PartitionLog) -> dict[str, Any]:
    row: dict[str, Any] = {
        "topic": log.topic,
        "partition": log.partition,
        "path": log.directory,
        "segments": len(log.segments),
        "bytes": sum(segment.size for segment in log.segments),
        "start_offset": None,
        "end_offset": None,
        "last_stable_offset": None,
        "largest_timestamp": None,
        "error": None,
    }
    try:
        row["start_offset"] = log.start_offset
        row["end_offset"] = log.end_offset
        row["last_stable_offset"] = log.last_stable_offset
        row["largest_timestamp"] = max((segment.largest_timestamp for segment in log.segments), default=-1)
    except (kbat.KbatError, OSError) as error:
        row["error"] = str(error)
    return row


def _show_partitions(path: Path, directory: kbat.LogDirectory, partitions: list[dict[str, Any]]) -> None:
    output.write_table(
        str(path),
        ("topic", "partition", "segments", "size", *_OFFSETS, "last stable offset", _TIME),
        (
            (
                output.text(one["topic"]),
                str(one["partition"]),
                str(one["segments"]),
                output.size_text(one["bytes"]),
                *(_known(one[name]) for name in ("start_offset", "end_offset", "last_stable_offset")),
                _known(one["largest_timestamp"], output.time_text),
            )
            for one in partitions
        ),
        left=("topic",),
    )
    for one in directory.stray:
        output.write_line(f"no live partition ({one.state}): {output.text(one.path)}")
    total = output.size_text(sum(one["bytes"] for one in partitions))
    state = "yes" if directory.is_clean_shutdown else "no (the broker runs, or was killed)"
    output.write_line(f"{len(partitions)} partitions, {total}; clean shutdown: {state}")


def _list_segments(path: Path, log: kbat.PartitionLog | kbat.Segment, *, as_json: bool) -> None:
    rows = [_segment(one) for one in ([log] if isinstance(log, kbat.Segment) else log.segments)]
    about = _about(log)
    if as_json:
        output.write_json({"path": str(path), "kind": "partition", **about, "segments": rows, **_leftovers(log)})
    else:
        _show_segments(path, log, rows, about)
    _fail_for(path, [one["error"] for one in (*rows, about) if one["error"] is not None])


def _segment(segment: kbat.Segment) -> dict[str, Any]:
    found = _values(segment, ("end_offset", "largest_timestamp"))
    return {
        "base_offset": segment.base_offset,
        "end_offset": found["end_offset"],
        "bytes": segment.size,
        "largest_timestamp": found["largest_timestamp"],
        "path": segment.path,
        "files": sorted(segment.files),
        "error": found["error"],
    }


def _show_segments(
    path: Path, log: kbat.PartitionLog | kbat.Segment, rows: list[dict[str, Any]], about: dict[str, Any]
) -> None:
    output.write_table(
        str(path),
        ("base offset", "end offset", "size", _TIME, "files"),
        (
            (
                str(one["base_offset"]),
                _known(one["end_offset"]),
                output.size_text(one["bytes"]),
                _known(one["largest_timestamp"], output.time_text),
                " ".join(one["files"]),
            )
            for one in rows
        ),
        left=("files",),
    )
    for leftover in _leftovers(log)["leftovers"]:
        output.write_line(f"left over: {output.text(leftover)}")
    start, end, stable = (_known(about[name]) for name in ("start_offset", "end_offset", "last_stable_offset"))
    offsets = "" if isinstance(log, kbat.Segment) else f"; offsets {start} to {end}, last stable {stable}"
    output.write_line(f"{len(rows)} segments, {output.size_text(sum(one['bytes'] for one in rows))}{offsets}")


def _about(log: kbat.PartitionLog | kbat.Segment) -> dict[str, Any]:
    names = ("topic", "partition", "start_offset", "end_offset", "last_stable_offset")
    return _values(log, names) if isinstance(log, kbat.PartitionLog) else dict.fromkeys((*names, "error"))


def _leftovers(log: kbat.PartitionLog | kbat.Segment) -> dict[str, list[str]]:
    return {"leftovers": log.leftovers if isinstance(log, kbat.PartitionLog) else []}


def _known(value: int | None, as_text: Callable[[int], str] = str) -> str:
    return "?" if value is None else as_text(value)
