"""`kbat export`: records as Parquet, Arrow, CSV or JSON lines."""

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from kbat._core.locations import refuse_inside
from kbat.cli import output
from kbat.cli.cat import Isolation
from kbat.cli.copies import staged
from kbat.cli.location import Location
from kbat.cli.losses import lost_in, note_losses
from kbat.cli.options import (
    EndOffset,
    EndTime,
    FailOrSkip,
    FailOrSkipOption,
    Json,
    Partitions,
    PathsArgument,
    Replicas,
    ReplicasOption,
    StartOffset,
    StartTime,
    Topics,
    Wide,
    choice_option,
    number_option,
    one_of,
    selection,
    target_location,
)
from kbat.cli.place import locate
from kbat.cli.progress import ProgressCallback, progress
from kbat.cli.ranges import check_ranges
from kbat.cli.record_files import RecordFiles, Segments, Settings, Written
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, write_table

if TYPE_CHECKING:
    from kbat.results import SegmentFile

_MAX_THREADS = 8
_NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
_COLUMNS = [Column("file", left=True), Column("records"), Column("size")]


class ExportFormat(StrEnum):
    """Formats of files."""

    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"
    JSONL = "jsonl"


class PartitionKey(StrEnum):
    """Columns that name directories."""

    TOPIC = "topic"
    PARTITION = "partition"
    DATE = "date"
    HOUR = "hour"


_SUFFIXES = {
    ".parquet": ExportFormat.PARQUET,
    ".pq": ExportFormat.PARQUET,
    ".arrow": ExportFormat.ARROW,
    ".feather": ExportFormat.ARROW,
    ".ipc": ExportFormat.ARROW,
    ".csv": ExportFormat.CSV,
    ".jsonl": ExportFormat.JSONL,
    ".ndjson": ExportFormat.JSONL,
    ".json": ExportFormat.JSONL,
}


def _keys(value: str) -> str:
    """Check names that are separated by commas."""
    return ",".join(one_of(PartitionKey)(one.strip()) for one in str(value).split(","))


@opens_logs
def export(  # noqa: PLR0913 - one per option
    paths: PathsArgument,
    out: Annotated[
        Location,
        typer.Argument(
            metavar="OUT",
            parser=target_location,
            help="File to write, or directory with --partition-by, or its URL. It must not exist, and appears when it "
            "is complete.",
        ),
    ],
    *,
    output_format: Annotated[
        ExportFormat | None,
        choice_option(ExportFormat, "--format", help="Format. Default: by the ending of OUT.", show_default=False),
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            "--partition-by",
            metavar="NAME[,NAME]",
            parser=_keys,
            help="Write a directory with a file for each value: topic, partition; Parquet also date and hour (UTC).",
            show_default=False,
        ),
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option(
            metavar="CODEC",
            parser=str,
            help="Codec of Parquet (none, snappy, lz4, gzip, zstd, zstd:3; default snappy) or Arrow (none, lz4, zstd).",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        number_option(1, largest=1024, help="Threads that read. Default: the number of CPUs, at most 8."),
    ] = None,
    topic: Topics = None,
    partition: Partitions = None,
    start_offset: StartOffset = None,
    end_offset: EndOffset = None,
    start_time: StartTime = None,
    end_time: EndTime = None,
    isolation: Annotated[
        Isolation, choice_option(Isolation, help="read_committed: omit records of aborted and open transactions.")
    ] = Isolation.READ_UNCOMMITTED,
    on_corrupt: FailOrSkipOption = FailOrSkip.FAIL,
    replicas: ReplicasOption = Replicas.ERROR,
    json: Json = False,
    wide: Wide = False,
) -> None:
    """Write records to a Parquet, Arrow, CSV or JSON Lines file, or to a directory with a file for each partition.

    The columns are those of `kbat.scan`: key, value, topic, partition, offset, timestamp, timestamp_type and headers.
    Parquet and Arrow have keys and values as binary. CSV and JSON lines are those of `kbat cat`. In CSV, bytes that are
    not UTF-8 are `0x` and hexadecimal digits, and a text that begins with 0x looks the same: use another format if that
    matters. `kbat import` reads Parquet and JSON lines.

    Examples: `kbat export data records.parquet`, `kbat export orders-0 orders.csv --start-time 2024-05-01T00:00:00Z`,
    `kbat export data archive --partition-by topic,date --compression zstd`

    JSON: `paths`, `out`, `format`, `records`, `bytes`, `files`: a list with `path`, `records` and `bytes`;
    `bytes_lost`, `offsets_lost` and `batches_skipped`: corruption.

    Exit codes: 0, also if corruption was skipped (a line on the standard error shows how much); 1 for corruption, for
    files that can't be read or written, and for an empty directory; 2 for wrong arguments, for a PATH that is not a
    log, and if OUT exists.
    """
    check_ranges(start_offset, end_offset, start_time, end_time)
    keys = [PartitionKey(key) for one in partition_by or () for key in one.split(",")]
    found = _format(output_format, out, keys)
    _check(found, keys, compression)
    for path in paths:
        refuse_inside(str(path), str(out), **out.options)
    chosen = selection(topic, partition, replicas)
    segments = locate(paths, **chosen).segments
    bounds: dict[str, Any] = {
        "start_offset": start_offset,
        "end_offset": end_offset,
        "start_timestamp": start_time,
        "end_timestamp": end_time,
        "isolation": isolation.value,
        "on_corrupt": on_corrupt.value,
    }
    threads = threads or min(os.cpu_count() or 1, _MAX_THREADS)
    files = RecordFiles(Settings(found.value, bounds, paths[0].options, compression, threads))
    with staged(out) as place, progress("exporting") as callback:
        written = _write(files, place, segments, keys, callback)
        listed = [_listed(one, place, out) for one in written]
    note_losses(*files.stats)
    report = {"paths": [str(path) for path in paths], "out": str(out), "format": found.value, **_sums(files, listed)}
    if json:
        output.write_json(report)
    else:
        _show(out, report, wide=wide)


def _format(chosen: ExportFormat | None, out: Location, keys: Sequence[PartitionKey]) -> ExportFormat:
    if chosen is not None:
        return chosen
    if keys:
        return ExportFormat.PARQUET
    found = _SUFFIXES.get(out.suffix.lower())
    if found is None:
        message = f"{out} has no ending that names a format, such as .parquet: set --format"
        raise ValueError(message)
    return found


def _check(found: ExportFormat, keys: Sequence[PartitionKey], compression: str | None) -> None:
    """Refuse what a format does not support."""
    if len(set(keys)) < len(keys):
        message = "--partition-by has a name twice"
        raise ValueError(message)
    if found is ExportFormat.PARQUET:
        return
    if PartitionKey.DATE in keys or PartitionKey.HOUR in keys:
        message = f"--partition-by date and hour need --format parquet, not {found}"
        raise ValueError(message)
    codecs = ("none", "lz4", "zstd") if found is ExportFormat.ARROW else ()
    if compression is not None and compression not in codecs:
        known = f"use {', '.join(codecs)}" if codecs else f"{found} has no codec; compress the file, such as with zstd"
        message = f"--compression {compression} is not possible: {known}"
        raise ValueError(message)


def _write(
    files: RecordFiles,
    place: Path,
    segments: Segments,
    keys: Sequence[PartitionKey],
    callback: ProgressCallback | None,
) -> list[Written]:
    """Write one file, or a directory if there are keys."""
    if not keys:
        return files.write(place, segments, callback)
    if files.output_format == ExportFormat.PARQUET:
        return files.write_parquet(place, segments, [key.value for key in keys], callback)
    return _write_directories(files, place, segments, keys, callback)


def _write_directories(
    files: RecordFiles,
    place: Path,
    segments: Segments,
    keys: Sequence[PartitionKey],
    callback: ProgressCallback | None,
) -> list[Written]:
    """Write a directory in Hive's layout, with a file for each topic or partition."""
    groups: dict[Path, list[SegmentFile]] = {}
    for one in segments:
        names = (f"{key.value}={_directory(getattr(one, key.value))}" for key in keys)
        groups.setdefault(place.joinpath(*names), []).append(one)
    total, done = sum(one.size for one in segments), 0
    written: list[Written] = []
    for directory, group in groups.items():
        written += files.write(directory / f"part-0.{files.output_format}", group, None)
        done += sum(one.size for one in group)
        if callback is not None:
            callback(done, total)
    return written


def _directory(value: str | int | None) -> str:
    return _NULL_DIRECTORY if value is None else quote(str(value), safe="")


def _listed(one: Written, place: Path, out: Location) -> dict[str, Any]:
    """Return the figures of a file, which is moved from one place to another."""
    path = out if one.path == place else out.child(one.path.relative_to(place).as_posix())
    return {"path": str(path), "records": one.records, "bytes": one.path.stat().st_size}


def _sums(files: RecordFiles, listed: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the files for JSON, with their sums and the losses by corruption."""
    return {
        "records": sum(one["records"] for one in listed),
        "bytes": sum(one["bytes"] for one in listed),
        "files": listed,
        **lost_in(*files.stats).to_dict(),
    }


def _show(out: Location, report: dict[str, Any], *, wide: bool) -> None:
    files = report["files"]
    if len(files) > 1:
        names = [output.text(one["path"].removeprefix(f"{out}/")) for one in files]
        figures = [(f"{one['records']:,}", output.size_text(one["bytes"])) for one in files]
        rows = [(name, *figure) for name, figure in zip(names, figures, strict=True)]
        write_table(str(out), _COLUMNS, rows, wide=wide)
    counts = f"{output.count_text(report['records'], 'record')}, {output.size_text(report['bytes'])}"
    output.write_line(f"{out}: {output.count_text(len(files), 'file')}, {counts}")
