"""`kbat cat`: records as lines."""

import base64
import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

import kbat
from kbat.cli import output
from kbat.cli.options import MAX, PathArgument, time
from kbat.cli.place import check_segments

_COLUMNS = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
_TIMESTAMP_TYPES = {0: "CreateTime", 1: "LogAppendTime"}
_MAX_ROWS = 16_384


class Isolation(StrEnum):
    """As a consumer's `isolation.level`."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class OnCorrupt(StrEnum):
    """What to do at damage."""

    FAIL = "fail"
    SKIP = "skip"
    REPORT = "report"


def cat(  # noqa: PLR0913 - the options of kbat.scan
    path: PathArgument,
    *,
    start_offset: Annotated[int | None, typer.Option(min=0, max=MAX, help="First offset to print.")] = None,
    end_offset: Annotated[int | None, typer.Option(min=0, max=MAX, help="First offset not to print any more.")] = None,
    start_time: Annotated[
        int | None, typer.Option(metavar="TIME", parser=time, help="Records of this time or later.")
    ] = None,
    end_time: Annotated[int | None, typer.Option(metavar="TIME", parser=time, help="Records before this time.")] = None,
    isolation: Annotated[
        Isolation, typer.Option(help="read_committed: no records of aborted or open transactions.")
    ] = Isolation.READ_UNCOMMITTED,
    on_corrupt: Annotated[
        OnCorrupt,
        typer.Option(
            help="At damage: end (fail), go on at the next whole batch (skip), print a line and go on (report)."
        ),
    ] = OnCorrupt.FAIL,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="Records to print at the most.")] = None,
    as_json: Annotated[bool, typer.Option("--json/--text", help="Lines of JSON, or lines for people.")] = True,
) -> None:
    """Print records, a line each, partition by partition in the order of the log.

    A TIME is such as `2024-05-01`, `2024-05-01T12:30:00Z` (UTC where no zone is given) or milliseconds since 1970, of
    12 digits or more; seconds are refused.

    Examples: `kbat cat orders-0 --limit 10`, `kbat cat data --start-time 2024-05-01 | jq -c .value`

    JSON lines: `topic` and `partition` (null where the directory's name tells none), `offset`, `timestamp`
    (milliseconds since the epoch, -1 where there is none), `timestamp_type` ("CreateTime", "LogAppendTime", null in
    message format 0), `key`, `value`, `headers`: pairs of a key and a value.
    Bytes are a string where they are UTF-8, else `{"base64": "…"}`; null is null. With --on-corrupt report, damage is a
    line with the one field `error`: `kind`, `message`, `path`, `position`, `length`, `first_offset`, `last_offset`.

    Exit codes: 0, also where damage was skipped, which a line on the standard error counts; 1 for damage and for files
    that can't be read; 2 for wrong arguments; 141 where the reader of a pipe is gone.
    """
    scan = kbat.scan(
        path,
        columns=_COLUMNS,
        start_offset=start_offset,
        end_offset=end_offset,
        start_timestamp=start_time,
        end_timestamp=end_time,
        isolation=isolation.value,
        on_corrupt=on_corrupt.value,
        max_rows=min(limit or _MAX_ROWS, _MAX_ROWS),
    )
    check_segments(scan, path)
    line = _json_line if as_json else _text_line
    left = limit
    for row in _rows(scan) if limit != 0 else ():
        output.write_line(line(row))
        if row.get("error") is None and left is not None:
            left -= 1
            if left == 0:
                break
    stats = scan.stats
    if stats is not None and stats.batches_skipped:
        output.note(
            f"kbat: {stats.batches_skipped} faults passed over: {stats.bytes_lost:,} bytes and {stats.offsets_lost:,} "
            "offsets lost; 'kbat verify' lists them"
        )


def _rows(scan: kbat.Scan) -> Iterator[dict[str, Any]]:
    import pyarrow as pa  # noqa: PLC0415 - slow, and other commands need none

    for batch in scan.to_batches():
        place = batch.schema.get_field_index("timestamp")
        # as numbers: times may lie past what Python's datetime can hold
        yield from batch.set_column(place, "timestamp", batch.column(place).cast(pa.int64())).to_pylist()


def _json_line(row: dict[str, Any]) -> str:
    if row.get("error") is not None:
        return json.dumps({"error": row["error"]}, ensure_ascii=False)
    shown = {
        **{name: row[name] for name in ("topic", "partition", "offset", "timestamp")},
        "timestamp_type": _TIMESTAMP_TYPES.get(row["timestamp_type"]),
        "key": _bytes(row["key"]),
        "value": _bytes(row["value"]),
        "headers": [[header["key"], _bytes(header["value"])] for header in row["headers"]],
    }
    return json.dumps(shown, ensure_ascii=False)


def _bytes(value: bytes | None) -> str | dict[str, str] | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _text_line(row: dict[str, Any]) -> str:
    if (error := row.get("error")) is not None:
        return f"-- damage: {output.text(error['message'])}"
    time_of_record = output.time_text(row["timestamp"])
    place = f"{output.text(row['topic'])}-{'?' if row['partition'] is None else row['partition']}@{row['offset']}"
    headers = "".join(f"  {output.text(header['key'])}={_shown(header['value'])}" for header in row["headers"])
    return f"{place}  {time_of_record}  {_shown(row['key'])}  {_shown(row['value'])}{headers}"


def _shown(value: bytes | None) -> str:
    """Give a key or value: quoted text or hexadecimal, so that null, empty and a dash are told apart."""
    if value is None:
        return "null"
    try:
        return f'"{output.text(value.decode())}"'
    except UnicodeDecodeError:
        return f"0x{value.hex()}"
