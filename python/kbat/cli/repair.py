"""`kbat recover`, `kbat salvage`, `kbat rebuild-indexes`: commands for a corrupt log."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

import kbat.results
from kbat.cli import output
from kbat.cli.location import Location
from kbat.cli.options import IndexInterval, Json, OutArgument, existing, existing_directory, target, target_location
from kbat.cli.place import check_partition, word
from kbat.cli.progress import progress
from kbat.cli.stores import opens_logs

_Partition = Annotated[
    Location, typer.Argument(metavar="PATH", parser=existing_directory, help="A partition directory, or its URL.")
]
_SegmentOrPartition = Annotated[
    Location, typer.Argument(metavar="PATH", parser=existing, help="A partition directory or a .log file, or its URL.")
]
_Out = Annotated[
    Path | None,
    typer.Argument(
        metavar="OUT",
        parser=target,
        help="Directory to write. It must be missing or empty, and appears when it is complete.",
    ),
]
_OutOrUrl = Annotated[
    Location | None,
    typer.Argument(
        metavar="OUT",
        parser=target_location,
        help="Directory to write, or its URL. It must be missing or empty. A directory appears when it is complete; "
        "for a URL, files are uploaded when all are complete.",
    ),
]
_InPlace = Annotated[bool, typer.Option("--in-place", help="Change PATH itself. Refused while a broker runs on it.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would be dropped and written.")]

# Actions on files, and their wording in a dry run.
_WOULD = {"written": "would write", "deleted": "would delete", "truncated": "would truncate", "renamed": "would rename"}

_REPORT = """
    JSON: `path`, `out`, `dry_run`, `is_complete` (every byte of the input is in the result), `start_offset`,
    `end_offset`, `segments`: `base_offset`, `path`, `bytes_before`, `bytes_after`, `batch_count`; `dropped`: `path`,
    `position`, `length`, `first_offset`, `last_offset`, `reason` (a stable name), `message`, `open_transactions`: pairs
    of a producer id and the first offset of a transaction whose end may be in the dropped bytes; `files`: pairs of a
    name and "written", "deleted", "truncated" or "renamed".

    Exit codes: 0, also if something was dropped; 1 for files that can't be read or written, and for an empty directory;
    2 for wrong arguments{wrong}.
"""


@opens_logs
def recover(  # noqa: PLR0913 - the options of kbat.recover
    path: _Partition,
    out: _OutOrUrl = None,
    *,
    in_place: _InPlace = False,
    dry_run: _DryRun = False,
    index_interval_bytes: IndexInterval = 4096,
    json: Json = False,
) -> None:
    """Recover a partition as a broker does when it starts after an unclean shutdown.

    The log is truncated at the first broken batch, and everything after it is lost. Indexes, snapshots and leader
    epochs are rebuilt from the rest. With OUT, the result is a recovered copy. To keep the batches after the
    corruption, use `kbat salvage`.

    --in-place truncates files, so it also changes a backup that consists of hard links (`cp -al`): make a real copy.

    A dry run shows what a recovery with OUT or --in-place would do. The two differ only if the offsets of a segment are
    too far apart: with OUT the segment is split, with --in-place the log is truncated there. A line on the standard
    error reports such a segment.

    Examples: `kbat recover orders-0 --dry-run`, then `kbat recover orders-0 recovered/orders-0`
    """
    if (out is not None) == (in_place or dry_run):
        message = "choose one of: OUT for a recovered copy, --in-place, or --dry-run"
        raise ValueError(message)
    if in_place and not path.is_local:
        message = f"{path} can't be changed in place: 'kbat recover {word(path)} OUT{path.again}' writes a copy"
        raise ValueError(message)
    check_partition(path, 'recover "$p" --dry-run')
    with progress("recovering") as callback, _nothing_kept():
        report = kbat.recover(
            str(path),
            None if out is None else str(out),
            dry_run,
            in_place=in_place,
            index_interval_bytes=index_interval_bytes,
            progress=callback,
            **((out.options if out else {}) | path.options),
        )
    _show(report, as_json=json)
    if dry_run:
        _note_split(report)


def _note_split(report: kbat.results.RepairReport) -> None:
    for part, rest in pairwise(report.segments):
        if part.path == rest.path:
            output.note(
                f"kbat: {part.path} is split at byte {part.bytes_after} in a copy only: --in-place truncates the log "
                "there and deletes everything after it"
            )
            return


@contextmanager
def _nothing_kept() -> Iterator[None]:
    """Turn the error about a path with nothing to keep into one about a wrong argument."""
    try:
        yield
    except kbat.CorruptError as error:
        if "nothing to keep" in str(error):
            raise ValueError(str(error)) from error
        raise


@opens_logs
def salvage(
    path: _SegmentOrPartition,
    out: OutArgument,
    *,
    index_interval_bytes: IndexInterval = 4096,
    json: Json = False,
) -> None:
    """Keep every complete batch of a corrupt segment or partition, including those after the corruption.

    PATH is only read. The result has the original offsets, valid indexes, and a list of the holes in `holes.jsonl`.

    Example: `kbat salvage orders-0 salvaged/orders-0`
    """
    check_partition(path, f'salvage "$p" {word(out)}/"$(basename "$p")"')
    options = out.options | path.options
    with progress("salvaging") as callback, _nothing_kept():
        report = kbat.salvage(
            str(path), str(out), index_interval_bytes=index_interval_bytes, progress=callback, **options
        )
    _show(report, as_json=json, holes=out.child("holes.jsonl"))


@opens_logs
def rebuild_indexes(
    path: _SegmentOrPartition,
    out: _Out = None,
    *,
    index_interval_bytes: IndexInterval = 4096,
    json: Json = False,
) -> None:
    """Rebuild indexes and missing producer snapshots from the log. No byte of a `.log` file is changed.

    Without OUT, the new files replace those beside the log; this is refused while a broker runs on the directory. A log
    in a store is refused: `kbat salvage` writes a copy with new indexes.

    Examples: `kbat rebuild-indexes orders-0`, `kbat rebuild-indexes orders-0 new-indexes`
    """
    if not path.is_local:
        message = (
            f"rebuild-indexes reads and changes only the file system: 'kbat salvage {word(path)} OUT{path.again}' "
            "writes a copy with new indexes"
        )
        raise ValueError(message)
    check_partition(path)
    with progress("indexing") as callback:
        report = kbat.rebuild_indexes(str(path), out, index_interval_bytes=index_interval_bytes, progress=callback)
    _show(report, as_json=json, indexes_only=True)


for _command, _wrong in (
    (recover, ", for a PATH that is not a log, and with --in-place if nothing can be kept"),
    (salvage, ", for a PATH that is not a log, and if nothing can be kept"),
    (rebuild_indexes, " and for a PATH that is not a log"),
):
    _command.__doc__ = f"{_command.__doc__}{_REPORT.format(wrong=_wrong)}"


def _show(
    report: kbat.results.RepairReport, *, as_json: bool, indexes_only: bool = False, holes: Location | None = None
) -> None:
    if as_json:
        output.write_json(report.to_dict())
        return
    segments = output.count_text(len(report.segments), "segment")
    end = " (dry run: nothing was changed)" if report.dry_run else ""
    output.write_line(
        f"{report.path}: {segments}, start offset {report.start_offset}, end offset {report.end_offset}{end}"
    )
    for one in report.segments:
        batches = output.count_text(one.batch_count, "batch", "batches")
        output.write_line(f"  {one.base_offset:020}.log: {batches}, {one.bytes_after:,} of {one.bytes_before:,} bytes")
    verb = "not indexed" if indexes_only else "would drop" if report.dry_run else "dropped"
    for hole in report.dropped:
        output.write_line(f"  {verb}: {_hole(hole)}")
    for name, action in report.files:
        output.write_line(f"  {_WOULD.get(action, action) if report.dry_run else action} {name}")
    if report.dropped and holes is not None:
        output.write_line(f"  {holes} lists what was dropped: move it away before a broker reads the directory")
    output.write_line(_verdict(report, verb))


def _hole(hole: kbat.results.DroppedRange) -> str:
    where = f"{output.count_text(hole.length, 'byte')} of {Path(hole.path).name} at byte {hole.position}"
    offsets = ""
    if hole.first_offset is not None:
        last = hole.last_offset
        offsets = f"; offset {hole.first_offset} is lost"
        if last is None:
            offsets = f"; offsets from {hole.first_offset} on are lost"
        elif last != hole.first_offset:
            offsets = f"; offsets {hole.first_offset} to {last} are lost"
    return f"{where}: {output.in_shell(output.text(hole.message))}{offsets}{_open_transactions(hole)}"


def _open_transactions(hole: kbat.results.DroppedRange) -> str:
    """Name the transactions whose ends may be in a hole."""
    if not hole.open_transactions:
        return ""
    producer_id, first_offset = hole.open_transactions[0]
    count = len(hole.open_transactions) - 1
    others = f", and those of {output.count_text(count, 'more transaction')}" if count else ""
    return (
        f"; the end of the transaction of producer {producer_id} from offset {first_offset} on may be among them"
        f"{others}"
    )


def _verdict(report: kbat.results.RepairReport, verb: str) -> str:
    if not report.dropped:
        return "nothing would be lost" if report.dry_run else "nothing lost"
    size = output.count_text(sum(hole.length for hole in report.dropped), "byte")
    return f"{size} {verb}; they are still in the log" if verb == "not indexed" else f"{verb} {size}"
