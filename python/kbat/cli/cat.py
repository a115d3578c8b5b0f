"""`kbat cat`: records as lines."""

import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import typer

import kbat
from kbat.cli import output
from kbat.cli.location import Location
from kbat.cli.losses import note_losses
from kbat.cli.options import (
    STDIN,
    EncryptionKeys,
    EndOffset,
    EndTime,
    OnCorrupt,
    OnCorruptOption,
    Partitions,
    PathsOrStdin,
    Replicas,
    ReplicasOption,
    StartOffset,
    StartTime,
    StorageOptions,
    Topics,
    choice_option,
    number_option,
    selection,
)
from kbat.cli.place import NothingToReadError, foreign_bytes, locate, quiet

_MAX_ROWS = 16_384


class Isolation(StrEnum):
    """As a consumer's `isolation.level`."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


def cat(  # noqa: PLR0913 - the options of kbat.scan
    paths: PathsOrStdin,
    *,
    topic: Topics = None,
    partition: Partitions = None,
    start_offset: StartOffset = None,
    end_offset: EndOffset = None,
    start_time: StartTime = None,
    end_time: EndTime = None,
    isolation: Annotated[
        Isolation,
        choice_option(Isolation, help="read_committed: omit records of aborted and open transactions."),
    ] = Isolation.READ_UNCOMMITTED,
    on_corrupt: OnCorruptOption = OnCorrupt.FAIL,
    replicas: ReplicasOption = Replicas.ERROR,
    limit: Annotated[int | None, number_option(0, "--limit", "-n", help="Largest number of records to print.")] = None,
    as_json: Annotated[bool, typer.Option("--json/--text", help="Print lines of JSON, or lines for people.")] = True,
    storage_option: StorageOptions = None,
    encryption_key: EncryptionKeys = None,
) -> None:
    """Print records, one line per record, partition by partition in the order of the log.

    A TIME is ISO 8601 with a time zone, such as `2024-05-01T12:30:00Z`, or a number of milliseconds since 1970; numbers
    that look like seconds are refused. The standard input (PATH `-`) is read completely before anything is printed.

    Examples: `kbat cat orders-0 --limit 10`, `kbat cat data --topic 'orders*' --start-time 2024-05-01T00:00:00Z`,
    `kbat cat data | jq -c '.value | fromjson'`

    JSON lines: `topic` and `partition` (null if the directory's name does not contain them), `offset`, `timestamp`
    (milliseconds since the epoch, null if the record does not have one), `timestamp_type` ("CreateTime" or
    "LogAppendTime"; null in message format 0), `key`, `value`, and `headers`, a list of pairs of key and value.
    A key or value is a string if its bytes are UTF-8, and `{"base64": "…"}` otherwise; null is null. With --on-corrupt
    report, a line with the single field `error` describes each corruption: `kind`, `message`, `path`, `position`,
    `length`, `first_offset`, `last_offset`.

    Exit codes: 0, also if corruption was skipped (a line on the standard error shows how much); 1 for corruption, for
    files that can't be read and for an empty directory; 2 for wrong arguments and for a PATH that is not a log; 141 if
    the reader of a pipe has closed it.
    """
    paths = [path.opened_with(storage_option, encryption_key) for path in paths]
    sources = _sources(paths, topic, partition, replicas)
    with quiet():
        scan = kbat.scan(
            sources,
            columns=_columns(),
            start_offset=start_offset,
            end_offset=end_offset,
            start_timestamp=start_time,
            end_timestamp=end_time,
            isolation=isolation.value,
            on_corrupt=on_corrupt.value,
            max_rows=min(limit or _MAX_ROWS, _MAX_ROWS),
            **selection(topic, partition, replicas),
            **paths[0].options,
        )
    for lines in _lines(scan, limit, as_json=as_json) if limit != 0 else ():
        output.write_lines(lines)
    note_losses(scan.stats)


def _columns() -> tuple[str, ...]:
    from kbat.cli.lines import COLUMNS  # noqa: PLC0415 - imports pyarrow, which is slow

    return COLUMNS


def _sources(
    paths: list[Location], topics: list[str] | None, partitions: list[int] | None, replicas: Replicas
) -> list[str | bytes]:
    """Return what to scan, each path checked."""
    files = [path for path in paths if path != STDIN]
    if len(paths) - len(files) > 1:
        message = "the standard input (-) can be read only once"
        raise ValueError(message)
    if len(files) < len(paths) and (topics or partitions):
        message = "--topic and --partition choose directories, but the standard input (-) has no topic"
        raise ValueError(message)
    if files:
        locate(files, **selection(topics, partitions, replicas))
    return [_stdin(is_alone=not files) if path == STDIN else str(path) for path in paths]


def _stdin(*, is_alone: bool) -> bytes:
    """Return the standard input, if it may be a log."""
    data = sys.stdin.buffer.read()
    if not data and is_alone:
        message = "the standard input is empty: no batch to read"
        raise NothingToReadError(message)
    if reason := foreign_bytes(data, "the standard input"):
        raise ValueError(reason)
    return data


def _lines(scan: kbat.Scan, limit: int | None, *, as_json: bool) -> Iterator[list[str]]:
    """Yield the lines of each Arrow batch, up to the limit of records. Lines of corruption are not counted."""
    from kbat.cli.lines import errors, json_lines, text_lines  # noqa: PLC0415 - imports pyarrow, which is slow

    left = limit
    for batch in scan.to_batches():
        lines = json_lines(batch) if as_json else text_lines(batch)
        if left is None:
            yield lines
            continue
        are_records = [error is None for error in errors(batch)] or [True] * len(lines)
        records = sum(are_records)
        if records >= left:
            yield lines[: _end_of(left, are_records)]
            return
        left -= records
        yield lines


def _end_of(count: int, are_records: list[bool]) -> int:
    """Return the number of lines that end with a number of records."""
    ends = [index for index, is_record in enumerate(are_records, 1) if is_record]
    return ends[count - 1]
