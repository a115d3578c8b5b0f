"""`kbat batches`: one row per batch, from the headers."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from json import JSONEncoder
from typing import Annotated, Any

import typer

import kbat
from kbat.cli import output
from kbat.cli.guard import FailedError
from kbat.cli.location import Location
from kbat.cli.losses import note_losses
from kbat.cli.options import (
    EndOffset,
    EndTime,
    Json,
    LeavePageCache,
    OnCorrupt,
    OnCorruptOption,
    Partitions,
    PathsArgument,
    Replicas,
    ReplicasOption,
    StartOffset,
    StartTime,
    Topics,
    Wide,
    number_option,
    selection,
)
from kbat.cli.place import locate, quiet
from kbat.cli.progress import ProgressCallback, progress
from kbat.cli.ranges import check_ranges
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, stream_table

_Row = dict[str, Any]

# Rows that are read before they are written: few, so that the first ones appear at once.
_MAX_ROWS = 1024
# `json.dumps` makes an encoder for each call.
_encode = JSONEncoder(ensure_ascii=False).encode
# What a header has instead of a producer, an epoch or a sequence.
_NONE = -1
_FLAGS = {"txn": "is_transactional", "control": "is_control"}
_FIELDS = (
    "topic",
    "partition",
    "segment",
    "position",
    "size",
    "base_offset",
    "last_offset",
    "record_count",
    "magic",
    "compression",
    "stored_size",
    "timestamp_type",
    "base_timestamp",
    "max_timestamp",
    "delete_horizon",
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "last_sequence",
    "is_transactional",
    "is_control",
    "crc",
)

_TEXTS = {"topic", "segment", "compression", "timestamp_type"}


@opens_logs
def batches(  # noqa: PLR0913 - options
    paths: PathsArgument,
    *,
    topic: Topics = None,
    partition: Partitions = None,
    start_offset: StartOffset = None,
    end_offset: EndOffset = None,
    start_time: StartTime = None,
    end_time: EndTime = None,
    limit: Annotated[int | None, number_option(0, "--limit", "-n", help="Largest number of batches to print.")] = None,
    check_crc: Annotated[
        bool, typer.Option("--check-crc", help="Verify checksums. This reads the records too.")
    ] = False,
    ratio: Annotated[
        bool, typer.Option("--ratio", help="Decompress the records for their size and the compression ratio.")
    ] = False,
    on_corrupt: OnCorruptOption = OnCorrupt.FAIL,
    replicas: ReplicasOption = Replicas.ERROR,
    leave_page_cache: LeavePageCache = False,
    json: Json = False,
    wide: Wide = False,
) -> None:
    """List batches, one row per batch, partition by partition in the order of the log.

    Reads only headers, except for the last batch of each segment and batches before missing offsets, which are read
    completely.

    Batches that can't have a record in the range of offsets or times are omitted. A compressed set of magic 1 with
    CreateTime is in every range of times: some clients did not write its largest timestamp correctly. A "?" is a number
    that the header of a compressed set of magic 0 or 1 does not have. Flags: "txn" for a batch of a transaction,
    "control" for the marker that ends one.

    Examples: `kbat batches orders-0`, `kbat batches data --topic 'orders*' --start-time 2024-05-01T00:00:00Z -n 20`,
    `kbat batches data --json | jq -c 'select(.size > 1000000) | [.segment, .position]'`

    JSON lines: `topic`, `partition`, `segment` (path), `position` (byte), `size` (bytes), `base_offset`,
    `last_offset`, `record_count`, `magic`, `compression`, `stored_size` (bytes of the records), `timestamp_type`,
    `base_timestamp`, `max_timestamp`, `delete_horizon` (milliseconds since the epoch), `partition_leader_epoch`,
    `producer_id`, `producer_epoch`, `base_sequence`, `last_sequence`, `is_transactional`, `is_control`, `crc`; with
    --check-crc `crc_ok`; with --ratio `uncompressed_size` and `ratio`. Unknown values are null. With --on-corrupt
    report, a line with the single field `error` describes each corruption: `kind`, `message`, `path`, `position`,
    `length`, `first_offset`, `last_offset`.

    Exit codes: 0, also if corruption was skipped (a line on the standard error shows how much); 1 for corruption, for
    files that can't be read and for an empty directory; 2 for wrong arguments and for a PATH that is not a log; 141 if
    the reader of a pipe has closed it.
    """
    check_ranges(start_offset, end_offset, start_time, end_time)
    chosen = selection(topic, partition, replicas)
    segments = locate(paths, **chosen).segments
    payload = [*(["crc_ok"] if check_crc else []), *(["uncompressed_size", "ratio"] if ratio else [])]
    with quiet():
        scan = kbat.scan(
            list(map(str, paths)),
            view="batches",
            columns=[*_FIELDS, *payload],
            start_offset=start_offset,
            end_offset=end_offset,
            start_timestamp=start_time,
            end_timestamp=end_time,
            on_corrupt=on_corrupt.value,
            max_rows=max(1, min(limit or _MAX_ROWS, _MAX_ROWS)),
            leave_page_cache=leave_page_cache,
            **chosen,
            **paths[0].options,
        )
    # on a terminal the rows themselves show how far it is
    wrong: list[int] = []
    with nullcontext() if sys.stdout.isatty() else progress("reading headers") as callback:
        pieces = _checked(_limited(_pieces(scan, callback), limit), wrong)
        if json:
            for line in _json_lines(pieces):
                output.write_line(line)
        else:
            partitions = {(segment.topic, segment.partition) for segment in segments}
            _show(paths, _rows(pieces), payload, has_one_partition=len(partitions) == 1, wide=wide)
    note_losses(scan.stats)
    if any(wrong):
        found = f"{output.count_text(sum(wrong), 'batch', 'batches')} with a wrong checksum"
        if on_corrupt is OnCorrupt.FAIL:
            message = f"{found}; 'kbat verify' has the details"
            raise FailedError(message)
        output.note(f"kbat: {found}; 'kbat verify' lists them")


def _checked(pieces: Iterable[dict[str, list[Any]]], wrong: list[int]) -> Iterator[dict[str, list[Any]]]:
    """Yield the columns unchanged, and add their numbers of wrong checksums to a list."""
    for columns in pieces:
        wrong.append(columns.get("crc_ok", []).count(False))
        yield columns


def _pieces(scan: kbat.Scan, callback: ProgressCallback | None) -> Iterator[dict[str, list[Any]]]:
    """Yield the columns of the batches as lists, because PyArrow takes longer to import than a short command."""
    batches = scan.to_batches(progress=callback)
    while (columns := batches._next_columns()) is not None:  # noqa: SLF001 - of the same package
        yield columns
        # whoever reads a pipe sees what was read so far
        sys.stdout.flush()


def _limited(pieces: Iterable[dict[str, list[Any]]], limit: int | None) -> Iterator[dict[str, list[Any]]]:
    """Yield columns of a number of batches at most, and the errors before the last one."""
    remaining = limit
    for columns in pieces if limit != 0 else ():
        count = len(columns["size"])
        if remaining is None:
            yield columns
            continue
        errors = columns.get("error") or [None] * count
        are_counted = [place for place, error in enumerate(errors) if error is None]
        last = count if len(are_counted) < remaining else are_counted[remaining - 1] + 1
        yield {name: values[:last] for name, values in columns.items()}
        remaining -= min(remaining, len(are_counted))
        if not remaining:
            return


def _rows(pieces: Iterable[dict[str, list[Any]]]) -> Iterator[_Row]:
    for columns in pieces:
        for values in zip(*columns.values(), strict=True):
            yield dict(zip(columns, values, strict=True))


def _json_lines(pieces: Iterable[dict[str, list[Any]]]) -> Iterator[str]:
    """Yield a line per batch. Columns are encoded at once, because an object per batch takes four times as long."""
    for columns in pieces:
        errors = columns.pop("error", None)
        line = "{" + ", ".join(f'"{name}": %s' for name in columns) + "}"
        lines = map(line.__mod__, zip(*map(_encoded, columns, columns.values()), strict=True))
        for place, text in enumerate(lines):
            error = errors[place] if errors else None
            yield text if error is None else _encode({"error": error})


def _encoded(name: str, values: list[Any]) -> list[str]:
    """Return the JSON of each value of a column."""
    if name in _TEXTS:
        known = {value: _encode(value) for value in set(values)}
        return [known[value] for value in values]
    # numbers, flags and nulls contain no commas
    return _encode(values)[1:-1].split(", ") if values else []


def _show(
    paths: Sequence[Location], rows: Iterable[_Row], payload: Sequence[str], *, has_one_partition: bool, wide: bool
) -> None:
    columns = _columns(payload, has_one_partition=has_one_partition)
    totals = _Totals()
    stream_table(
        ", ".join(map(str, paths)), [column for column, _ in columns], _cells(rows, columns, totals), wide=wide
    )
    batches = output.count_text(totals.batches, "batch", "batches")
    least = "at least " if totals.uncounted else ""
    output.write_line(
        f"{batches}, {least}{output.count_text(totals.records, 'record')}, {output.size_text(totals.size)}"
    )


@dataclass
class _Totals:
    """Sums over the rows of a table."""

    batches: int = 0
    records: int = 0
    uncounted: int = 0
    size: int = 0

    def add(self, row: _Row) -> None:
        self.batches += 1
        self.records += row["record_count"] or 0
        self.uncounted += row["record_count"] is None
        self.size += row["size"]


_Shown = list[tuple[Column, Callable[[_Row], str]]]


def _columns(payload: Sequence[str], *, has_one_partition: bool) -> _Shown:
    """Return the columns of the table, and the text of each in a row."""
    # the same in all rows of one partition
    first = 14 if has_one_partition else 0
    shown: _Shown = [
        (Column("topic", left=True, rank=first), lambda row: output.text(row["topic"])),
        (Column("partition", rank=first), _number("partition")),
        (Column("base offset", width=9), lambda row: _known(row["base_offset"])),
        (Column("last offset", rank=3, width=9), _number("last_offset")),
        (Column("records", rank=1), lambda row: _known(row["record_count"])),
        (Column("size", width=9), lambda row: output.size_text(row["size"])),
        (Column("codec", left=True, rank=2), lambda row: row["compression"]),
        (Column("largest timestamp (UTC)", rank=4, width=24), _time("max_timestamp")),
        (Column("flags", left=True, rank=7), _flags),
        (Column("producer id", rank=5), _number("producer_id")),
        (Column("epoch", rank=9), _number("producer_epoch")),
        (Column("sequence", rank=8), _number("base_sequence")),
        (Column("leader epoch", rank=11), _number("partition_leader_epoch")),
        (Column("magic", rank=12), _number("magic")),
        (Column("timestamp type", left=True, rank=15), lambda row: output.text(row["timestamp_type"])),
        (Column("base timestamp (UTC)", rank=15, width=24), _time("base_timestamp")),
        (Column("delete horizon (UTC)", rank=15), _time("delete_horizon")),
        (Column("crc", rank=13), lambda row: f"{row['crc']:08x}"),
        (Column("position", rank=6, width=9), _number("position")),
        (Column("segment", left=True, rank=10), lambda row: output.text(row["segment"].rpartition("/")[2])),
    ]
    if "crc_ok" in payload:
        shown.append((Column("checksum", left=True), lambda row: "ok" if row["crc_ok"] else "wrong"))
    if "ratio" in payload:
        shown.append((Column("uncompressed", width=9), lambda row: _size(row["uncompressed_size"])))
        shown.append((Column("ratio"), lambda row: "?" if row["ratio"] is None else f"{row['ratio']:.2f}"))
    return shown


def _cells(rows: Iterable[_Row], columns: _Shown, totals: _Totals) -> Iterator[list[str] | str]:
    for row in rows:
        if (error := row.get("error")) is not None:
            yield f"-- corruption: {output.text(error['message'])}"
        else:
            totals.add(row)
            yield [cell(row) for _, cell in columns]


def _number(name: str) -> Callable[[_Row], str]:
    """Return the text of a number; a dash for -1, which means none in a header."""
    return lambda row: "-" if row[name] in {None, _NONE} else str(row[name])


def _time(name: str) -> Callable[[_Row], str]:
    return lambda row: output.time_text(row[name])


def _known(value: int | None) -> str:
    return "?" if value is None else str(value)


def _size(value: int | None) -> str:
    return "?" if value is None else output.size_text(value)


def _flags(row: _Row) -> str:
    return " ".join(name for name, field in _FLAGS.items() if row[field]) or "-"
