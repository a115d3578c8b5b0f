"""`kbat groups`: the committed offsets of every group, with the lag against the logs beside them."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

import kbat.results
from kbat.cli import output
from kbat.cli.location import Location
from kbat.cli.options import FailOrSkip, FailOrSkipOption, Json, PathArgument, Wide
from kbat.cli.partitions import check_topic, decoding, each, note_incomplete, number_text
from kbat.cli.place import is_partition, locate, quiet
from kbat.cli.progress import progress
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, write_table

_INTERNAL = "__consumer_offsets"
_COLUMNS = (
    Column("group", left=True),
    Column("topic", left=True),
    Column("partition"),
    Column("offset"),
    Column("end offset", rank=1),
    Column("lag"),
    Column("committed (UTC)", rank=2),
    Column("metadata", left=True, rank=3),
)
_Group = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="NAME",
        help="Show only this group: a name, or a quoted pattern with *, ? and [...]. Repeat it for more groups.",
        show_default=False,
    ),
]
_Topic = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="NAME",
        help="Show only offsets of this topic: a name or a quoted pattern. Repeat it for more topics.",
        show_default=False,
    ),
]


@opens_logs
def groups(  # noqa: PLR0913 - options
    path: PathArgument,
    *,
    group: _Group = None,
    topic: _Topic = None,
    on_corrupt: FailOrSkipOption = FailOrSkip.FAIL,
    json: Json = False,
    wide: Wide = False,
) -> None:
    """Show the committed offsets of every group, from the records of `__consumer_offsets`.

    PATH is a log directory with partitions of this topic, or one of these partitions. The lag is the end offset of the
    partition's log minus the committed offset; it is unknown (-) for partitions that are not in the same log directory,
    and for a committed offset of -1, which means that there is none. It is negative for a log that is older than the
    offset; the total counts it as 0. Offsets of open and aborted transactions do not count. Tombstones, which a broker
    writes when an offset expires or its topic is deleted, remove offsets. After skipped corruption, offsets may be
    missing or old.

    Examples: `kbat groups /var/lib/kafka/data`, `kbat groups /var/lib/kafka/data --group 'billing-*'`

    JSON: `path`, `groups`: `group`, `type` (classic, consumer, share or streams), `protocol_type`, `protocol`, `epoch`
    (the generation of a classic group), `leader`, `members`, their number, and `offsets`: `topic`, `partition`,
    `offset`, null if kbat can't decode it, `leader_epoch`, `metadata`, `commit_timestamp`, `expire_timestamp`,
    `topic_id`, `end_offset`, `lag`.

    Exit codes: 0; 1 for corruption, and for an empty directory; 2 for wrong arguments, and for a PATH without
    `__consumer_offsets`.
    """
    found = _read(path, group, topic, on_corrupt)
    if json:
        output.write_json({"path": str(path), "groups": found})
        return
    rows = [{"group": one["group"], **offset} for one in found for offset in one["offsets"]]
    write_table(str(path), _COLUMNS, map(_cells, rows), wide=wide)
    # a log that was copied before the offsets does not reduce the lag of others
    known = [max(row["lag"], 0) for row in rows if row["lag"] is not None]
    lag = f"; total lag {sum(known):,}" if known else ""
    without = sum(not one["offsets"] for one in found)
    hidden = f", {without:,} without offsets" if without else ""
    output.write_line(
        f"{output.count_text(len(found), 'group')}{hidden}, {output.count_text(len(rows), 'offset')}{lag}"
    )


def _read(
    path: Location, groups: list[str] | None, topics: list[str] | None, on_corrupt: FailOrSkip
) -> list[dict[str, Any]]:
    from kbat.internal.groups import Groups  # noqa: PLC0415 - slow, and only needed here

    segments = locate([path]).segments
    check_topic(path, segments, _INTERNAL)
    with decoding(path, _INTERNAL), progress("reading") as callback:
        options = {"isolation": "read_committed", "on_corrupt": on_corrupt.value, **path.options}
        state = Groups(str(path), options, progress=callback)
    note_incomplete(path, segments, _INTERNAL)
    found = {one["group"]: {**one, "offsets": []} for one in state.groups() if _matches(one["group"], groups)}
    if groups and not found:
        message = f"no group matches {', '.join(map(repr, groups))}; omit --group to see all groups"
        raise ValueError(message)
    offsets = state.offsets()
    if topics and not any(_matches(row["topic"], topics) for row in offsets):
        message = f"no topic matches {', '.join(map(repr, topics))}; omit --topic to see all topics"
        raise ValueError(message)
    shown = [row for row in offsets if row["group"] in found and _matches(row["topic"], topics)]
    places = dict.fromkeys((row["topic"], row["partition"]) for row in shown)
    ends = _end_offsets(path.parent if is_partition(path, segments) else path, places)
    for row in shown:
        end = ends.get((row["topic"], row["partition"]))
        is_known = end is not None and row["offset"] is not None and row["offset"] >= 0
        lag = end - row["offset"] if is_known else None
        found[row["group"]]["offsets"].append(
            {name: value for name, value in row.items() if name != "group"} | {"end_offset": end, "lag": lag}
        )
    return list(found.values())


def _matches(name: str, patterns: list[str] | None) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _end_offsets(path: Location, wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Return the end offsets of those partitions whose logs are in a directory."""
    try:
        with quiet():
            directory = kbat.LogDirectory(str(path), **path.options)
    except (kbat.KbatError, OSError, ValueError):
        return {}
    found = [(place, log) for place in wanted if (log := directory.partition(*place)) is not None]
    ends: dict[tuple[str, int], int] = {}
    outcomes = each([log for _, log in found], _end_offset, is_waiting=path.is_url)
    for (place, _), end in zip(found, outcomes, strict=True):
        if isinstance(end, str):
            output.warn(f"the lag of {place[0]}-{place[1]} is unknown: {end}")
        else:
            ends[place] = end
    return ends


def _end_offset(log: kbat.PartitionLog) -> int | str:
    """Return the end offset of a log, or why it is unknown."""
    try:
        return log.end_offset
    except (kbat.KbatError, OSError) as error:
        return str(error)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        output.text(row["group"]),
        output.text(row["topic"]),
        *(number_text(row[name]) for name in ("partition", "offset", "end_offset")),
        "-" if row["lag"] is None else str(row["lag"]),
        output.time_text(row["commit_timestamp"]),
        output.text(row["metadata"] or None),
    )
