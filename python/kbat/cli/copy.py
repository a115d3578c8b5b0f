"""`kbat copy`: partitions, or ranges of them, as new directories that are compared with their source."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import kbat
from kbat.cli import output
from kbat.cli.copies import Copy, copies, run_each, staged
from kbat.cli.guard import FailedError
from kbat.cli.location import Location
from kbat.cli.options import (
    DirectoryArgument,
    Json,
    OutArgument,
    Partitions,
    Replicas,
    ReplicasOption,
    Topics,
    Wide,
    number_option,
    selection,
    time,
)
from kbat.cli.progress import ProgressCallback
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, write_table

# Bytes of batches that are written at once.
_PIECE_LEN = 1 << 20
_COLUMNS = [
    Column("partition", left=True),
    Column("start offset", rank=2),
    Column("end offset", rank=1),
    Column("batches", rank=3),
    Column("size"),
]


class Range(NamedTuple):
    """Offsets of records to copy, the second one exclusive; None for those at the ends of the log."""

    start: int | None
    end: int | None


class _EmptyRangeError(ValueError):
    """No record is in the range."""


@opens_logs
def copy(  # noqa: PLR0913 - one per option
    path: DirectoryArgument,
    out: OutArgument,
    *,
    start_offset: Annotated[int | None, number_option(0, "--start-offset", help="First offset to copy.")] = None,
    end_offset: Annotated[int | None, number_option(0, "--end-offset", help="Offset to stop before.")] = None,
    start_time: Annotated[
        int | None,
        typer.Option(
            "--start-time",
            metavar="TIME",
            parser=time,
            help="Begin at the first record with this timestamp or a later one.",
        ),
    ] = None,
    end_time: Annotated[
        int | None,
        typer.Option(
            "--end-time",
            metavar="TIME",
            parser=time,
            help="Stop before the first record with this timestamp or a later one.",
        ),
    ] = None,
    topic: Topics = None,
    partition: Partitions = None,
    replicas: ReplicasOption = Replicas.ERROR,
    json: Json = False,
    wide: Wide = False,
) -> None:
    """Copy a partition, or all partitions of a log directory, and compare the copies with their source.

    Batches keep their bytes, codec, offsets, timestamps and producers. Indexes, producer snapshots and leader epochs
    are built for the copy. A batch that contains the start or end of a range is written again with the records of the
    range. Without a range, the segments keep their boundaries. A copy appears only after every batch of it was read
    again and was equal to the source.

    Of a log directory, each partition becomes a directory in OUT. A time becomes the offset that a broker returns for
    it: a range may contain older records if timestamps are not in order.

    Examples: `kbat copy data backup --topic 'orders*'`,
    `kbat copy orders-0 may/orders-0 --start-time 2024-05-01T00:00:00Z --end-time 2024-06-01T00:00:00Z`

    JSON: `path`, `out`, `partitions`: a list with `path`, `out`, `start_offset`, `end_offset`, `segments`, `batches`,
    `bytes`, `rebuilt_batches` (at the ends of a range), `tail_bytes` (after the last complete batch of a segment, not
    copied; null for a range) and `is_verified` (always true).

    Exit codes: 0; 1 for a corrupt log, for files that can't be read or written, for a copy that differs, and for an
    empty directory; 2 for wrong arguments, for a PATH that is not a log, for a range without records, and if a
    directory to write exists.
    """
    if None not in (start_offset, start_time) or None not in (end_offset, end_time):
        message = "a range begins and ends at an offset or a time: set only one of them for each end"
        raise ValueError(message)
    offsets, times = Range(start_offset, end_offset), Range(start_time, end_time)

    jobs = copies(path, out, **selection(topic, partition, replicas))

    def work(one: Copy, callback: ProgressCallback | None) -> dict[str, Any] | None:
        log = kbat.PartitionLog(str(one.source), **one.source.options)
        bounds = Range(_offset(log, offsets.start, times.start), _offset(log, offsets.end, times.end))
        try:
            return _copied(one, log, bounds, callback)
        except _EmptyRangeError:
            if len(jobs) == 1:
                raise
            return None

    found = [report for report in run_each("copying", jobs, work) if report is not None]
    if not found:
        message = f"no partition of {path} has a record in the range"
        raise ValueError(message)
    if without := len(jobs) - len(found):
        output.note(f"kbat: {output.count_text(without, 'partition')} without a record in the range: not copied")
    if json:
        output.write_json({"path": str(path), "out": str(out), "partitions": found})
    else:
        _show(f"{path} to {out}", found, wide=wide)


def _offset(log: kbat.PartitionLog, offset: int | None, timestamp: int | None) -> int | None:
    if timestamp is None:
        return offset
    place = log.find_timestamp(timestamp)
    return log.end_offset if place is None else place.offset


def _copied(one: Copy, log: kbat.PartitionLog, bounds: Range, callback: ProgressCallback | None) -> dict[str, Any]:
    """Write and compare a copy, and return its report."""
    tail_bytes, end_offset = None, log.end_offset
    with staged(one.target) as directory:
        if bounds == (None, None):
            report = kbat.rewrite(str(one.source), directory, progress=callback, **one.source.options)
            tail_bytes, rebuilt = report.tail_bytes, 0
        else:
            rebuilt = _write_range(one.source, log, bounds, directory)
        figures = _compare(one.source, end_offset, bounds, directory)
    return {
        "path": str(one.source),
        "out": str(one.target),
        **figures,
        "rebuilt_batches": rebuilt,
        "tail_bytes": tail_bytes,
        "is_verified": True,
    }


def _write_range(source: Location, log: kbat.PartitionLog, bounds: Range, directory: Path) -> int:
    """Write the batches of a range, and return how many of them lost records outside of the range."""
    rebuilt = 0
    writer: kbat.LogWriter | None = None
    piece = bytearray()
    for batch in _batches(log, bounds):
        data = _within(batch, bounds)
        if not data:
            continue
        rebuilt += len(data) != batch.size or data != bytes(batch)
        if writer is None:
            first = max(batch.base_offset, bounds.start or 0)
            writer = kbat.LogWriter(directory, start_offset=first, topic_id=log.topic_id)
        piece += data
        if len(piece) >= _PIECE_LEN:
            writer.append_batch(piece, keep_offsets=True)
            piece.clear()
    if writer is None:
        known = f"the log has the offsets {log.start_offset} to {log.end_offset - 1}"
        message = f"no record of {source} is in the range: {known}"
        raise _EmptyRangeError(message)
    if piece:
        writer.append_batch(piece, keep_offsets=True)
    writer.close()
    return rebuilt


def _batches(log: kbat.PartitionLog, bounds: Range) -> Iterator[kbat.Batch]:
    """Yield the batches of a log that may have records of a range."""
    place = None if bounds.start is None else log.find_offset(bounds.start)
    begins = bounds.start is None or bounds.start < log.start_offset
    for segment in log.segments:
        position = 0
        if place is not None and segment.path == place.segment:
            begins, position = True, place.position
        if not begins:
            continue
        for batch in segment.batches(position):
            if bounds.end is not None and batch.base_offset >= bounds.end:
                return
            yield batch


def _within(batch: kbat.Batch, bounds: Range) -> bytes:
    """Return a batch with only the records of a range: its own bytes if all of them are."""
    start = bounds.start or 0
    end = batch.next_offset if bounds.end is None else bounds.end
    if start <= batch.base_offset and batch.next_offset <= end:
        return bytes(batch)
    records = [one for one in batch if start <= one.offset < end]
    if not records:
        return b""
    has_producer = batch.producer_id >= 0
    builder = kbat.BatchBuilder(
        batch.magic,
        batch.compression,
        base_offset=records[0].offset,
        timestamp_type=batch.timestamp_type or "CreateTime",
        log_append_time=batch.max_timestamp if batch.timestamp_type == "LogAppendTime" else None,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=records[0].sequence if has_producer else -1,
        transactional=batch.is_transactional,
        control=batch.is_control,
        partition_leader_epoch=batch.partition_leader_epoch,
        delete_horizon_ms=batch.delete_horizon_ms,
    )
    for one in records:
        builder.append(one.key, one.value, timestamp=one.timestamp, headers=one.raw_headers, offset=one.offset)
    return builder.finish()


def _compare(source: Location, end_offset: int, bounds: Range, directory: Path) -> dict[str, int]:
    """Read a copy again, compare each batch with the source, and return figures of the copy.

    Args:
        source: The source.
        end_offset: End of the source before it was copied. A broker may have appended batches since.
        bounds: The range.
        directory: The copy.
    """
    log, new = kbat.PartitionLog(str(source), **source.options), kbat.PartitionLog(directory)
    expected = ((batch, data) for batch in _batches(log, bounds) if (data := _within(batch, bounds)))
    written = (batch for segment in new.segments for batch in segment.batches())
    batches = size = 0
    for original, batch in zip_longest(expected, written):
        if batch is None and original is not None and original[0].base_offset >= end_offset:
            break
        if original is None or batch is None or original[1] != bytes(batch):
            where = "its end" if batch is None else f"offset {batch.base_offset}"
            message = f"the copy of {source} differs at {where} and was removed: is another process changing the log?"
            raise FailedError(message)
        batches += 1
        size += batch.size
    return {
        "start_offset": new.start_offset,
        "end_offset": new.end_offset,
        "segments": len(new.segments),
        "batches": batches,
        "bytes": size,
    }


def _show(title: str, found: list[dict[str, Any]], *, wide: bool) -> None:
    rows = [
        (
            output.text(Path(one["out"]).name),
            str(one["start_offset"]),
            str(one["end_offset"]),
            f"{one['batches']:,}",
            output.size_text(one["bytes"]),
        )
        for one in found
    ]
    write_table(title, _COLUMNS, rows, wide=wide)
    batches, size = (sum(one[name] for one in found) for name in ("batches", "bytes"))
    count = f"{output.count_text(len(found), 'partition')}, {output.count_text(batches, 'batch', 'batches')}"
    output.write_line(f"{count}, {output.size_text(size)}: each batch was compared with its source")
    output.write_tail_bytes(sum(one["tail_bytes"] or 0 for one in found))
