"""`kbat lookup`: where an offset or a time is, and how the indexes lead there."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any, NamedTuple

import typer

import kbat
from kbat.cli import output
from kbat.cli.guard import FailedError
from kbat.cli.location import Location
from kbat.cli.options import Json, Partitions, PathArgument, Topics, Wide, number_option, selection, time
from kbat.cli.partitions import call_each, is_in_store
from kbat.cli.place import is_partition, locate, quiet, word
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, write_table

# Partitions without a result that an error names.
_NAMED = 3

_Log = kbat.PartitionLog | kbat.Segment


@dataclass(frozen=True)
class _Wanted:
    """What is searched: an offset or a timestamp, in a store that is opened with some options."""

    offset: int | None
    timestamp: int | None
    options: dict[str, Any]


@dataclass(frozen=True)
class _Entry:
    """An entry of an index that is the last one not after what is searched, or the start of the segment."""

    path: str
    entries: int
    offset: int
    timestamp: int | None
    position: int | None


@dataclass(frozen=True)
class _Found:
    """A record, and the steps to it."""

    segment: dict[str, Any]
    index: str
    time_index: _Entry | None
    offset_index: _Entry | None
    scan: dict[str, int] | None
    batch: dict[str, Any]
    record: dict[str, Any]
    is_exact: bool


@opens_logs
def lookup(  # noqa: PLR0913 - options
    path: PathArgument,
    *,
    offset: Annotated[int | None, number_option(0, "--offset", help="Offset to find.")] = None,
    at: Annotated[
        int | None,
        typer.Option("--time", metavar="TIME", parser=time, help="Find the first record with this timestamp or later."),
    ] = None,
    topic: Topics = None,
    partition: Partitions = None,
    json: Json = False,
    wide: Wide = False,
) -> None:
    """Find an offset or a time: the segment, the batch, the record, and the index entries that lead there.

    A broker answers consumers in the same way. It reads the last entry of the time index and of the offset index that
    is not too late, and then the log from there on. An offset that is missing, as after compaction, leads to the next
    record. A TIME is ISO 8601 with a time zone, or a number of milliseconds since 1970. In a log directory, the answer
    has a row per partition.

    Examples: `kbat lookup orders-0 --offset 5000`, `kbat lookup data --topic orders --time 2024-05-01T00:00:00Z`

    JSON: `path`, `offset` or `timestamp` as requested, `results`: `topic`, `partition`, `path`, `found`, `reason` (why
    nothing was found, else null), `is_corrupt` (whether corruption is the reason), `segment` (`path`, `base_offset`,
    `bytes`, `number` from 1, `count`), `index` ("used", "missing" or "broken"), `time_index` and `offset_index`:
    `path`, `entries`, and the entry with `offset`, `timestamp` or `position`; `scan` (`position` of the first byte
    read, `batches` and `bytes` up to the end of the batch), `batch` (`position`, `size`, `base_offset`, `last_offset`,
    `record_count`, `magic`, `compression`, `max_timestamp`, `producer_id`, `is_control`), `record` (`number` in the
    batch from 0, `offset`, `timestamp`, `key_bytes` and `value_bytes`, null for null, `headers`), `is_exact` (whether
    the record has the requested offset or timestamp). The indexes are null if they are not used.

    Exit codes: 0; 1 if nothing was found, for corruption and for files that can't be read; 2 for wrong arguments and
    for a PATH that is not a log.
    """
    if (offset is None) == (at is None):
        message = "choose one of --offset NUMBER and --time TIME"
        raise ValueError(message)
    chosen = selection(topic, partition)
    logs = _logs(path, chosen)
    wanted = _Wanted(offset, at, path.options)
    answer = partial(_answer, wanted=wanted, is_alone=len(logs) == 1)
    answers = call_each("searching", "partitions", logs, answer, is_waiting=is_in_store(logs))
    if json:
        request = {"offset": offset} if at is None else {"timestamp": at}
        output.write_json({"path": str(path), **request, "results": [about for about, _ in answers]})
    elif len(logs) > 1:
        _show_partitions(path, answers, wide=wide)
    else:
        for about, found in answers:
            if found is not None:
                _show_steps(about, found, wide=wide)
                if at is None and not found.is_exact:
                    output.write_line("the offset is missing: this is the next record")
                where, shown = word(about["path"]), found.record["offset"]
                output.write_line(f"next: kbat cat {where} --start-offset {shown} -n 1{path.again}")
    failed = [about for about, found in answers if found is None]
    if len(failed) == len(answers) or any(about["is_corrupt"] for about in failed):
        what = f"offset {offset} was not found" if at is None else f"no record at or after {output.time_text(at)}"
        named = sorted(failed, key=lambda about: not about["is_corrupt"])[:_NAMED]
        reasons = "; ".join(f"{about['path']}: {about['reason']}" for about in named)
        more = f"; {output.count_text(len(failed) - _NAMED, 'more partition')}" if len(failed) > _NAMED else ""
        message = f"{what}: {reasons}{more}"
        raise FailedError(message)


def _logs(path: Location, chosen: dict[str, Any]) -> Sequence[_Log]:
    """Return the partitions to search, or a single segment."""
    segments = locate([path], **chosen).segments
    with quiet():
        if path.is_file:
            return [kbat.Segment(str(path), **path.options)]
        if is_partition(path, segments):
            return [kbat.PartitionLog(str(path), **path.options)]
        return kbat.LogDirectory(str(path), **chosen, **path.options).partitions


def _answer(log: _Log, wanted: _Wanted, *, is_alone: bool) -> tuple[dict[str, Any], _Found | None]:
    """Return the answer for one partition as JSON, and what was found. Corruption of one does not hide the others."""
    about: dict[str, Any] = {"topic": None, "partition": None}
    if isinstance(log, kbat.PartitionLog):
        about = {"topic": log.topic, "partition": log.partition, "path": log.directory}
    else:
        about["path"] = log.path
    found, reason, is_corrupt = None, None, False
    try:
        found = _find(log, wanted)
        reason = None if found else _reason(log, wanted)
    except (kbat.KbatError, OSError) as error:
        if is_alone:
            raise
        reason, is_corrupt = str(error), True
    about = {**about, "found": found is not None, "reason": reason, "is_corrupt": is_corrupt}
    return {**about, **(asdict(found) if found else {})}, found


def _reason(log: _Log, wanted: _Wanted) -> str:
    """Return why an offset or a time is not in a log."""
    offset = wanted.offset
    start, end = log.start_offset if isinstance(log, kbat.PartitionLog) else log.base_offset, log.end_offset
    if start >= end:
        return f"it has no records, and starts at offset {start}"
    if offset is not None:
        return f"it has offsets {start} to {end - 1}{', and no record from there on' if start <= offset < end else ''}"
    largest = max(segment.largest_timestamp for segment in _segments(log))
    if wanted.timestamp is None or largest < wanted.timestamp:
        return f"its largest timestamp is {output.time_text(largest)}"
    return (
        "a broker searches only the first segment that is new enough, and compaction has left no such record in it; "
        f"'kbat cat PATH --start-time {wanted.timestamp} -n 1' searches all segments"
    )


def _segments(log: _Log) -> Sequence[kbat.Segment]:
    return log.segments if isinstance(log, kbat.PartitionLog) else [log]


def _find(log: _Log, wanted: _Wanted) -> _Found | None:
    index, offset = "used", wanted.offset
    if wanted.timestamp is not None:
        moment = log.find_timestamp(wanted.timestamp)
        if moment is None:
            return None
        index, offset = moment.index, moment.offset
    place = None if offset is None else log.find_offset(offset)
    if place is None or offset is None:
        return None
    index = place.index if wanted.timestamp is None else index
    segments = _segments(log)
    first = next(number for number, one in enumerate(segments) if one.path == place.segment)
    time_entry = offset_entry = None
    if index == "used":
        time_entry = None if wanted.timestamp is None else _time_entry(segments[first], wanted.timestamp, wanted)
        offset_entry = _offset_entry(segments[first], offset if time_entry is None else time_entry.offset, wanted)
    is_shown = offset_entry is not None or index != "used"
    position = 0 if is_shown else place.position
    if offset_entry is not None:
        position = offset_entry.position or 0
    walk = _walk(segments[first:], position, offset)
    if walk is None:
        return None
    return _Found(
        segment={
            "path": walk.segment.path,
            "base_offset": walk.segment.base_offset,
            "bytes": walk.segment.size,
            "number": segments.index(walk.segment) + 1,
            "count": len(segments),
        },
        index=index,
        time_index=time_entry,
        offset_index=offset_entry,
        scan={"position": position, "batches": walk.batches, "bytes": walk.bytes} if is_shown else None,
        batch=_batch_fields(walk.batch),
        record=_record_fields(walk.record, walk.number),
        is_exact=wanted.offset == walk.record.offset or wanted.timestamp == walk.record.timestamp,
    )


class _Walk(NamedTuple):
    """A record, and the batches that were read up to it."""

    segment: kbat.Segment
    batch: kbat.Batch
    record: kbat.Record
    number: int
    batches: int
    bytes: int


def _walk(segments: Sequence[kbat.Segment], position: int, offset: int) -> _Walk | None:
    """Return the first record from an offset on. Compaction may have removed all records at the end of a batch."""
    batches = read = 0
    for segment in segments:
        for batch in segment.batches(position):
            batches, read = batches + 1, read + batch.size
            if batch.last_offset < offset:
                continue
            for number, record in enumerate(batch):
                if record.offset >= offset:
                    return _Walk(segment, batch, record, number, batches, read)
        position = 0
    return None


def _time_entry(segment: kbat.Segment, timestamp: int, wanted: _Wanted) -> _Entry | None:
    """Return the last entry of the time index that is not after a timestamp."""
    path = segment.files.get("timeindex")
    if path is None:
        return None
    with suppress(OSError):
        index = kbat.TimeIndex(path, segment.base_offset, **wanted.options)
        at, offset = index.lookup(timestamp)
        return _Entry(path, len(index), offset, at, None)
    return None


def _offset_entry(segment: kbat.Segment, offset: int, wanted: _Wanted) -> _Entry | None:
    """Return the last entry of the offset index that is not after an offset."""
    path = segment.files.get("index")
    if path is None:
        return None
    with suppress(OSError):
        index = kbat.OffsetIndex(path, segment.base_offset, **wanted.options)
        found, position = index.lookup(offset)
        return _Entry(path, len(index), found, None, position)
    return None


def _batch_fields(batch: kbat.Batch) -> dict[str, Any]:
    names = (
        "position",
        "size",
        "base_offset",
        "last_offset",
        "record_count",
        "magic",
        "compression",
        "max_timestamp",
        "producer_id",
        "is_control",
    )
    return {name: getattr(batch, name) for name in names}


def _record_fields(record: kbat.Record, number: int) -> dict[str, Any]:
    return {
        "number": number,
        "offset": record.offset,
        "timestamp": None if record.timestamp == output.NO_TIMESTAMP else record.timestamp,
        "key_bytes": None if record.key is None else len(record.key),
        "value_bytes": None if record.value is None else len(record.value),
        "headers": len(record.headers),
    }


def _show_steps(about: dict[str, Any], found: _Found, *, wide: bool) -> None:
    segment, batch, record = found.segment, found.batch, found.record
    rows: list[tuple[str, str, str, str]] = []
    number = f"{segment['number']} of {output.count_text(segment['count'], 'segment')}"
    rows.append(("segment", ".log", "0", f"{number}, from offset {segment['base_offset']}"))
    if (entry := found.time_index) is not None and entry.timestamp is not None:
        up_to = "before the first entry" if entry.timestamp < 0 else f"up to {output.time_text(entry.timestamp)}"
        rows.append(("time index", ".timeindex", "", f"{up_to}: offset {entry.offset}"))
    if (entry := found.offset_index) is not None:
        where = "before the first entry" if entry.position == 0 else f"offset {entry.offset}"
        rows.append(("offset index", ".index", "", f"{where}: byte {entry.position:,}"))
    if found.index != "used":
        rows.append((f"{found.index} index", "", "", "the search starts at the first batch"))
    if (scan := found.scan) is not None:
        batches = output.count_text(scan["batches"], "batch", "batches")
        rows.append(("scan", ".log", f"{scan['position']:,}", f"{batches}, {output.size_text(scan['bytes'])}"))
    count = "?" if batch["record_count"] is None else output.count_text(batch["record_count"], "record")
    kind = "control" if batch["is_control"] else batch["compression"]
    offsets = f"offsets {batch['base_offset']} to {batch['last_offset']}"
    rows.append(("batch", ".log", f"{batch['position']:,}", f"{offsets}, {count}, {kind}"))
    when = output.time_text(record["timestamp"])
    rows.append(("record", "", "", f"number {record['number'] + 1}: offset {record['offset']}, {when}"))
    columns = (
        Column("step", left=True),
        Column("file", left=True, rank=2),
        Column("byte", rank=1),
        Column("found", left=True),
    )
    write_table(f"{about['path']}: segment {PurePath(segment['path']).stem}", columns, rows, wide=wide)


_COLUMNS: tuple[tuple[Column, Callable[[_Found], str]], ...] = (
    (Column("offset"), lambda found: str(found.record["offset"])),
    (Column("timestamp (UTC)", rank=1), lambda found: output.time_text(found.record["timestamp"])),
    (Column("segment", left=True, rank=4), lambda found: PurePath(found.segment["path"]).name),
    (Column("batch position", rank=2), lambda found: f"{found.batch['position']:,}"),
    (Column("record", rank=5), lambda found: str(found.record["number"] + 1)),
    (Column("index", left=True, rank=6), lambda found: found.index),
    (Column("read", rank=3), lambda found: "-" if found.scan is None else output.size_text(found.scan["bytes"])),
)


def _show_partitions(path: Location, answers: Sequence[tuple[dict[str, Any], _Found | None]], *, wide: bool) -> None:
    columns = [Column("topic", left=True), Column("partition"), *(column for column, _ in _COLUMNS)]
    rows = [
        (
            output.text(about["topic"]),
            str(about["partition"]),
            *("-" if found is None else cell(found) for _, cell in _COLUMNS),
        )
        for about, found in answers
    ]
    write_table(str(path), columns, rows, wide=wide)
