"""`kbat recover`, `kbat salvage`, `kbat rebuild-indexes`: what to do with a damaged log."""

from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

import kbat
from kbat.cli import output
from kbat.cli.options import IndexInterval, Json, OutArgument, existing, existing_directory
from kbat.cli.place import check_partition
from kbat.cli.progress import progress

_Partition = Annotated[Path, typer.Argument(metavar="PATH", parser=existing_directory, help="A partition directory.")]
_SegmentOrPartition = Annotated[
    Path, typer.Argument(metavar="PATH", parser=existing, help="A partition directory or a .log file.")
]
_Out = Annotated[
    Path | None,
    typer.Argument(metavar="OUT", help="Directory to write; missing or empty. It appears when it is complete."),
]
_InPlace = Annotated[bool, typer.Option("--in-place", help="Change PATH itself. Refused while a broker runs on it.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would be dropped and written.")]

_REPORT = """
    JSON: `path`, `out`, `dry_run`, `is_complete` (every byte of the input is in the result), `start_offset`,
    `end_offset`, `segments`: `base_offset`, `path`, `bytes_before`, `bytes_after`, `batch_count`; `dropped`: `path`,
    `position`, `length`, `first_offset`, `last_offset`, `reason` (a stable name), `message`; `files`: pairs of a name
    and "written", "deleted", "truncated" or "renamed".

    Exit codes: 0, also where something was dropped; 1 for files that can't be read or written; 2 for wrong arguments.
"""


def recover(  # noqa: PLR0913 - the options of kbat.recover
    path: _Partition,
    out: _Out = None,
    *,
    in_place: _InPlace = False,
    dry_run: _DryRun = False,
    index_interval_bytes: IndexInterval = 4096,
    json: Json = False,
) -> None:
    """Recover a partition as a broker does when it starts after an unclean shutdown.

    The log is cut at the first batch that is broken; all after it is gone, indexes, snapshots and leader epochs are
    made from what is left. With OUT the result is a copy. To keep what lies after the fault, use `kbat salvage`.

    A dry run tells what both ways would do. They differ where the offsets of a segment lie too far apart: a copy gets
    it split, in place it is cut there; a line on the standard error says so.

    Examples: `kbat recover orders-0 --dry-run`, then `kbat recover orders-0 recovered/orders-0`
    """
    if (out is not None) == (in_place or dry_run):
        message = "give one of: OUT for a recovered copy, --in-place, or --dry-run"
        raise ValueError(message)
    check_partition(path)
    with progress("recovering") as callback:
        report = kbat.recover(
            path, out, dry_run, in_place=in_place, index_interval_bytes=index_interval_bytes, progress=callback
        )
    _show(report, as_json=json)
    if dry_run:
        _note_split(report)


def _note_split(report: kbat.RepairReport) -> None:
    for part, rest in pairwise(report.segments):
        if part.path == rest.path:
            output.note(
                f"kbat: {part.path} is split at byte {part.bytes_after} in a copy only: --in-place cuts the log there, "
                "and deletes all after it"
            )
            return


def salvage(
    path: _SegmentOrPartition, out: OutArgument, *, index_interval_bytes: IndexInterval = 4096, json: Json = False
) -> None:
    """Keep every whole batch of a damaged segment or partition, also those after the damage.

    PATH is only read. The result has the offsets as they were, valid indexes, and a list of the holes in `holes.jsonl`.

    Example: `kbat salvage orders-0 salvaged/orders-0`
    """
    check_partition(path)
    with progress("salvaging") as callback:
        report = kbat.salvage(path, out, index_interval_bytes=index_interval_bytes, progress=callback)
    _show(report, as_json=json)


def rebuild_indexes(
    path: _SegmentOrPartition, out: _Out = None, *, index_interval_bytes: IndexInterval = 4096, json: Json = False
) -> None:
    """Make indexes and missing producer snapshots anew from the log. No byte of a `.log` file is changed.

    Without OUT the new files replace those beside the log; that is refused while a broker runs on them.

    Examples: `kbat rebuild-indexes orders-0`, `kbat rebuild-indexes orders-0 new-indexes`
    """
    check_partition(path)
    with progress("indexing") as callback:
        report = kbat.rebuild_indexes(path, out, index_interval_bytes=index_interval_bytes, progress=callback)
    _show(report, as_json=json)


for _command in (recover, salvage, rebuild_indexes):
    _command.__doc__ = f"{_command.__doc__}{_REPORT}"


def _show(report: kbat.RepairReport, *, as_json: bool) -> None:
    if as_json:
        output.write_json(report.to_dict())
    else:
        output.write_line(str(report))
