"""`kbat import`: records of JSON lines or Parquet files into partition directories."""

import os
import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from kbat.cli import output
from kbat.cli.codecs import Level
from kbat.cli.copies import refuse_existing, staged
from kbat.cli.json_records import BatchRow, JsonLines
from kbat.cli.location import Location
from kbat.cli.options import (
    STDIN,
    Json,
    OutArgument,
    Partitions,
    Wide,
    choice_option,
    size,
)
from kbat.cli.partition_writer import PartitionWriter, PartitionWriters, Place
from kbat.cli.place import NothingToReadError
from kbat.cli.progress import ProgressCallback, progress
from kbat.cli.record_input import RecordInput, opened, size_of
from kbat.cli.stores import StorageOptions, opened_source, opened_target
from kbat.cli.table import Column, write_table
from kbat.compression import CODECS, Compression

_PARQUET_MAGIC = b"PAR1"
# Timestamps that `JsonLines.row` may refuse, which the core would take. In a string, the quotes would be escaped.
_SECONDS = re.compile(rb'"timestamp"\s*:\s*1[5-9][0-9]{8}(?![0-9])')
# Formats of `kbat export` that lack types or are not read here, by the ends of their files' names.
_NOT_IMPORTED = {".csv": "CSV", ".arrow": "Arrow"}
# The partition of no line.
_NOWHERE: Place = ("", -1)
_COLUMNS = [
    Column("partition", left=True),
    Column("start offset", rank=2),
    Column("end offset", rank=1),
    Column("records"),
    Column("size"),
]


class InputFormat(StrEnum):
    """Formats of the input."""

    JSONL = "jsonl"
    PARQUET = "parquet"


def _existing_input(value: str) -> Location:
    """Return an existing path, a URL, or `-`. Whether a URL exists is known when its store is open."""
    if value == "-":
        return STDIN
    try:
        location = Location.parse(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if not location.is_url and not Path(str(location)).exists():
        message = f"path {value!r} does not exist"
        raise typer.BadParameter(message)
    return location


def import_records(  # noqa: PLR0913 - one per option
    path: Annotated[
        Location,
        typer.Argument(
            metavar="INPUT",
            parser=_existing_input,
            help="JSON lines, a Parquet file, or a directory of Parquet files, or its URL; - is the standard input.",
        ),
    ],
    out: OutArgument,
    *,
    log_directory: Annotated[
        bool,
        typer.Option("--log-directory", help="Write each topic and partition of the input as a directory in OUT."),
    ] = False,
    topic: Annotated[
        str | None,
        typer.Option("--topic", metavar="NAME", parser=str, help="Import only this topic.", show_default=False),
    ] = None,
    partition: Partitions = None,
    input_format: Annotated[
        InputFormat | None,
        choice_option(InputFormat, "--format", help="Format of INPUT. Default: by its content.", show_default=False),
    ] = None,
    compression: Annotated[Compression, choice_option(CODECS, help="Codec of the batches.")] = "none",
    level: Level = None,
    batch_bytes: Annotated[
        int, typer.Option(metavar="SIZE", parser=size, help="Bytes of a batch before compression.")
    ] = 16_384,
    segment_bytes: Annotated[
        int, typer.Option(metavar="SIZE", parser=size, help="Largest size of a segment.")
    ] = 1_073_741_824,
    json: Json = False,
    wide: Wide = False,
    storage_option: StorageOptions = None,
) -> None:
    """Write records in JSON lines or Parquet into a new partition directory, with their offsets and timestamps.

    `kbat cat` and `kbat export` write the input, in these formats. CSV and Arrow files can't be imported.

    The offsets of a partition must rise, which they may not do in the files of an export by date or hour, because times
    need not rise with the offsets. A record without an offset gets the next one. Records keep their timestamps with
    their type, and their headers. Batches are those that `kbat.LogWriter` would write, of message format 2. Records of
    message format 0, of which the timestamp and its type are null, are written in that format. A timestamp without a
    type is that of the producer. In a directory, files and directories whose names begin with _ or . are skipped, such
    as `_temporary` and the hidden files of other programs.

    The lines of `kbat cat --batches` also contain producers, transactions and the boundaries of batches: each batch is
    written again in its message format and with its codec, and --compression, --level and --batch-bytes have no effect
    on it. Without compression, its bytes are the same. A batch with another number of records than its `record_count`
    is refused, because the input is incomplete; remove this field if you remove records.

    Examples: `kbat cat orders-0 --batches | kbat import - copy/orders-0`, `kbat import orders.parquet orders-0`,
    `kbat export data archive --partition-by topic,partition`, then `kbat import archive data2 --log-directory`

    JSON: `path`, `out`, `format`, `records`, `partitions`: a list with `topic`, `partition`, `path`, `records`,
    `start_offset`, `end_offset`, `segments` and `bytes`. The fields of the input are those of `kbat cat`; all except
    `value` may be missing, and others have no effect. A Parquet file also needs the column `timestamp`.

    Exit codes: 0; 1 for files that can't be read or written, and for an input without records; 2 for wrong arguments,
    for a line or file that is not a record, and if OUT exists. Nothing is written unless everything can be written.
    """
    path, out = opened_source(path, out, storage_option, None), opened_target(out, storage_option)
    if storage_option and not (path.is_url or out.is_url):
        message = "--storage-option has no effect on a path in the file system: remove it, or name a URL"
        raise ValueError(message)
    refuse_existing(out)
    if batch_bytes < 1 or segment_bytes < 1:
        message = "--batch-bytes and --segment-bytes must be 1 or more"
        raise ValueError(message)
    source = RecordInput(path)
    found = input_format or _format_of(source)
    unit = "files" if found is InputFormat.PARQUET else ""
    with staged(out) as directory, progress("importing", unit) as callback:
        writers = PartitionWriters(
            directory,
            is_log_directory=log_directory,
            compression=compression,
            level=level,
            batch_size=batch_bytes,
            segment_bytes=segment_bytes,
        )
        import_all = _import_parquet if found is InputFormat.PARQUET else _import_json
        import_all(source, writers, _selected(topic, partition), callback)
        rows = writers.close(out)
        if not rows:
            which = "" if topic is None and partition is None else " of that topic and partition"
            message = f"{source.name} contains no record{which}"
            raise NothingToReadError(message)
    total = sum(one["records"] for one in rows)
    if json:
        report = {"path": str(path), "out": str(out), "format": found.value, "records": total, "partitions": rows}
        output.write_json(report)
    else:
        _show(f"{source.name} to {out}", rows, wide=wide)


def _selected(topic: str | None, partitions: list[int] | None) -> Callable[[Place], bool]:
    """Return whether records of a partition are imported."""
    wanted = None if partitions is None else set(partitions)

    def is_wanted(place: Place) -> bool:
        return (topic is None or place[0] == topic) and (wanted is None or place[1] in wanted)

    return is_wanted


def _format_of(source: RecordInput) -> InputFormat:
    if source.is_stdin:
        return InputFormat.JSONL
    if source.is_dir:
        return InputFormat.PARQUET
    if source.location.suffix in _NOT_IMPORTED:
        message = f"{_NOT_IMPORTED[source.location.suffix]} can't be imported: export to Parquet or JSON lines"
        raise ValueError(message)
    with opened(source.location) as file:
        return InputFormat.PARQUET if file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC else InputFormat.JSONL


def _import_json(
    source: RecordInput,
    writers: PartitionWriters,
    is_wanted: Callable[[Place], bool],
    callback: ProgressCallback | None,
) -> None:
    with opened(source.location) as file:
        length = size_of(source.location)
        lines = JsonLines(file, source.name)
        writer, place = None, _NOWHERE
        for piece in lines.pieces():
            start = 0
            is_doubtful = _SECONDS.search(piece) is not None
            while start < len(piece):
                if writer is not None and not is_doubtful:
                    first = start
                    start = writer.append_json_lines(piece, start, place)
                    lines.number += piece.count(b"\n", first, start)
                if start < len(piece):
                    # the first line of a partition, or one that the core does not take
                    end = piece.find(b"\n", start) + 1 or len(piece)
                    writer, place = _import_line(lines, piece[start:end], writers, is_wanted) or (writer, place)
                    start = end
            if callback is not None and length:
                callback(file.tell(), length)
        try:
            writers.end()
        except ValueError as error:
            raise lines.refused(str(error)) from error
        lines.note_faults()


def _import_line(
    lines: JsonLines, line: bytes, writers: PartitionWriters, is_wanted: Callable[[Place], bool]
) -> tuple[PartitionWriter, Place] | None:
    """Write a record, or begin a batch. Return the writer of its partition; None if the line is not written."""
    row = lines.row(line)
    if row is None or not is_wanted((row.topic, row.partition)):
        return None
    place = (row.topic, row.partition)
    try:
        writer = writers.of(place, row.offset)
        if isinstance(row, BatchRow):
            writer.begin_batch(row)
        else:
            writer.append(row)
    except (ValueError, TypeError) as error:
        raise lines.refused(str(error)) from error
    return writer, place


def _import_parquet(
    source: RecordInput,
    writers: PartitionWriters,
    is_wanted: Callable[[Place], bool],
    callback: ProgressCallback | None,
) -> None:
    from kbat.cli import parquet_records as parquet  # noqa: PLC0415 - imports pyarrow

    files = source.in_order(".parquet")
    if not files:
        if not source.location.is_url:
            # those of a directory that can't be read look as if there were none
            os.scandir(str(source.location)).close()
        hint = "; 'kbat copy' copies a log" if any(one.suffix == ".log" for one in source.files) else ""
        hint = hint or ("; those whose names begin with _ or . are skipped" if source.has_hidden(".parquet") else "")
        message = f"{source.name} contains no Parquet file{hint}"
        raise ValueError(message)
    for number, file in enumerate(files):
        for piece in parquet.parquet_pieces(file, source):
            place = (piece.topic, piece.partition)
            if not is_wanted(place):
                continue
            try:
                parquet.check_timestamps(piece)
                writer = writers.of(place, parquet.first_offset(piece))
                if parquet.is_plain(piece.batch):
                    writer.append_arrow(parquet.encodable(piece.batch))
                else:
                    for row in parquet.rows_of(piece):
                        writer.append(row)
            except (ValueError, TypeError) as error:
                message = f"{file}: {error}"
                raise ValueError(message) from error
        if callback is not None:
            callback(number + 1, len(files))


def _show(title: str, rows: list[dict[str, Any]], *, wide: bool) -> None:
    cells = [
        (
            output.text(Path(one["path"]).name),
            str(one["start_offset"]),
            str(one["end_offset"]),
            f"{one['records']:,}",
            output.size_text(one["bytes"]),
        )
        for one in rows
    ]
    write_table(title, _COLUMNS, cells, wide=wide)
    records, bytes_written = (sum(one[name] for one in rows) for name in ("records", "bytes"))
    partitions = output.count_text(len(rows), "partition")
    output.write_line(f"{partitions}, {output.count_text(records, 'record')}, {output.size_text(bytes_written)}")
