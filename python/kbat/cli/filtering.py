"""`kbat filter`: partitions with only some of their records."""

from pathlib import Path
from typing import Annotated, Any

import typer

import kbat
from kbat._core.rewrite import RecordMatcher
from kbat.cli import output
from kbat.cli.copies import Copy, copies, run_each
from kbat.cli.options import (
    DirectoryArgument,
    FixedStrings,
    HeaderMatches,
    Json,
    KeyPattern,
    OutArgument,
    Partitions,
    Replicas,
    ReplicasOption,
    Topics,
    ValuePattern,
    Wide,
    number_option,
    patterns,
    selection,
    time,
)
from kbat.cli.progress import ProgressCallback
from kbat.cli.ranges import check_ranges
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, write_table

_COLUMNS = [
    Column("partition", left=True),
    Column("records before", rank=2),
    Column("records"),
    Column("dropped", rank=1),
    Column("size", rank=3),
]


@opens_logs
def filter_records(  # noqa: PLR0913 - one per option
    path: DirectoryArgument,
    out: OutArgument,
    *,
    key: KeyPattern = None,
    grep: ValuePattern = None,
    header: HeaderMatches = None,
    fixed_strings: FixedStrings = False,
    start_offset: Annotated[
        int | None, number_option(0, "--start-offset", help="Only records from this offset on.")
    ] = None,
    end_offset: Annotated[int | None, number_option(0, "--end-offset", help="Only records before this offset.")] = None,
    start_time: Annotated[
        int | None,
        typer.Option(
            "--start-time", metavar="TIME", parser=time, help="Only records with this timestamp or a later one."
        ),
    ] = None,
    end_time: Annotated[
        int | None,
        typer.Option("--end-time", metavar="TIME", parser=time, help="Only records with an earlier timestamp."),
    ] = None,
    invert_match: Annotated[
        bool,
        typer.Option(
            "--invert-match",
            "-v",
            help="Drop the records that match all conditions, and keep all others. To drop those that match any "
            "condition, run the command once for each condition.",
        ),
    ] = False,
    topic: Topics = None,
    partition: Partitions = None,
    replicas: ReplicasOption = Replicas.ERROR,
    json: Json = False,
    wide: Wide = False,
) -> None:
    r"""Write a partition, or all partitions of a log directory, with only the records that match all conditions.

    The records keep their offsets, timestamps, headers, producers and sequences, and batches without dropped records
    their bytes. Control records are kept. A batch without records is dropped, unless its header is needed: it has the
    last sequence of its producer, belongs to an open transaction, or ends the log. Of a log directory, each partition
    becomes a directory in OUT.

    Keys are matched as UTF-8 text, in which `.` does not match a newline without the flag `(?s)`. A key that is not
    UTF-8 needs the flag `(?-u)`, such as `--key '(?-u:\xff\xfe)'`. In Python, `kbat.filter(drop_keys=[...])` takes the
    bytes of keys.

    Examples: `kbat filter orders-0 eu/orders-0 --header region=eu`,
    `kbat filter data without-alice --key 'user-alice' --invert-match` (deletes one user's data),
    `kbat filter orders-0 may/orders-0 --start-time 2024-05-01T00:00:00Z --end-time 2024-06-01T00:00:00Z`

    JSON: `path`, `out`, `partitions`: a list with `path`, `out`, `read` and `written` (`segments`, `batches`,
    `records`, `bytes`), `dropped_records`, `dropped_batches`, `emptied_batches` (only their header was kept),
    `rebuilt_batches` (they lost some of their records), `end_offset`, `tail_bytes`.

    Exit codes: 0, also if no record matches; 1 for a corrupt log, for files that can't be read or written, and for an
    empty directory; 2 for wrong arguments, for a PATH that is not a log, and if a directory to write exists.
    """
    bounds: dict[str, Any] = {
        "start_offset": start_offset,
        "end_offset": end_offset,
        "start_timestamp": start_time,
        "end_timestamp": end_time,
    }
    if not header and all(one is None for one in (key, grep, *bounds.values())):
        message = "no condition: set --key, --grep, --header, or a range of offsets or times"
        raise ValueError(message)
    check_ranges(start_offset, end_offset, start_time, end_time)
    conditions = patterns(key, grep, header, fixed_strings=fixed_strings)
    matcher = RecordMatcher(**bounds, **conditions, invert=invert_match)

    def work(one: Copy, callback: ProgressCallback | None) -> dict[str, Any]:
        source = str(one.source)
        report = kbat.filter(source, str(one.target), matcher, progress=callback, **one.options)
        return {"path": source, "out": str(one.target), **report.to_dict()}

    found = run_each("filtering", copies(path, out, **selection(topic, partition, replicas)), work)
    if json:
        output.write_json({"path": str(path), "out": str(out), "partitions": found})
    else:
        _show(f"{path} to {out}", found, wide=wide)
    count = (key is not None) + (grep is not None) + len(header or ()) + any(one is not None for one in bounds.values())
    if invert_match and count > 1 and not any(one["dropped_records"] for one in found):
        output.note(
            f"kbat: no record matches all {count} conditions, so none was dropped: to drop the records that match any "
            "of them, run the command once for each condition"
        )


def _show(title: str, found: list[dict[str, Any]], *, wide: bool) -> None:
    rows = [
        (
            output.text(Path(one["out"]).name),
            f"{one['read']['records']:,}",
            f"{one['written']['records']:,}",
            f"{one['dropped_records']:,}",
            output.size_text(one["written"]["bytes"]),
        )
        for one in found
    ]
    write_table(title, _COLUMNS, rows, wide=wide)
    dropped, read = sum(one["dropped_records"] for one in found), sum(one["read"]["records"] for one in found)
    output.write_line(f"{output.count_text(len(found), 'partition')}: {dropped:,} of {read:,} records dropped")
    output.write_tail_bytes(sum(one["tail_bytes"] or 0 for one in found))
