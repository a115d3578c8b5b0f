"""`kbat ls`: what lies in a log directory or a partition."""

from pathlib import Path
from typing import Any

import kbat
from kbat.cli import output
from kbat.cli.guard import FailedError
from kbat.cli.options import Json, PathArgument

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
    `last_stable_offset`, `segments`: `base_offset`, `end_offset`, `bytes`, `largest_timestamp`, `path`, `files`;
    `leftovers`, paths of `.deleted`, `.cleaned` and `.swap` files.

    Exit codes: 0; 1 where a partition can't be read (its `error` says why); 2 for wrong arguments.
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
    if not directory.partitions and not directory.stray:
        message = f"{path} holds neither <topic>-<partition> directories nor .log files"
        raise ValueError(message)
    partitions = [_partition(log) for log in directory.partitions]
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
    broken = [f"{one['path']}: {one['error']}" for one in (*partitions, *stray) if one["error"] is not None]
    if broken:
        raise FailedError("; ".join(broken))


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
                _offset(one["start_offset"]),
                _offset(one["end_offset"]),
                _offset(one["last_stable_offset"]),
                output.time_text(one["largest_timestamp"]),
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
    segments = [log] if isinstance(log, kbat.Segment) else log.segments
    rows = [
        {
            "base_offset": one.base_offset,
            "end_offset": one.end_offset,
            "bytes": one.size,
            "largest_timestamp": one.largest_timestamp,
            "path": one.path,
            "files": sorted(one.files),
        }
        for one in segments
    ]
    about = _about(log)
    if as_json:
        output.write_json({"path": str(path), "kind": "partition", **about, "segments": rows, **_leftovers(log)})
        return
    output.write_table(
        str(path),
        ("base offset", "end offset", "size", _TIME, "files"),
        (
            (
                str(one.base_offset),
                str(one.end_offset),
                output.size_text(one.size),
                output.time_text(one.largest_timestamp),
                " ".join(sorted(one.files)),
            )
            for one in segments
        ),
        left=("files",),
    )
    for leftover in _leftovers(log)["leftovers"]:
        output.write_line(f"left over: {output.text(leftover)}")
    total = output.size_text(sum(one.size for one in segments))
    offsets = f"offsets {about['start_offset']} to {about['end_offset']}, last stable {about['last_stable_offset']}"
    output.write_line(f"{len(segments)} segments, {total}" + ("" if isinstance(log, kbat.Segment) else f"; {offsets}"))


def _about(log: kbat.PartitionLog | kbat.Segment) -> dict[str, Any]:
    names = ("topic", "partition", "start_offset", "end_offset", "last_stable_offset")
    return {name: getattr(log, name) if isinstance(log, kbat.PartitionLog) else None for name in names}


def _leftovers(log: kbat.PartitionLog | kbat.Segment) -> dict[str, list[str]]:
    return {"leftovers": log.leftovers if isinstance(log, kbat.PartitionLog) else []}


def _offset(offset: int | None) -> str:
    return "?" if offset is None else str(offset)
