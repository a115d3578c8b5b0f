"""`kbat cat`: records as lines."""

import fnmatch
import functools
from enum import StrEnum
from typing import Annotated, Any

import typer

import kbat
from kbat._core.locations import discover
from kbat.cli.following import Follower
from kbat.cli.location import Location
from kbat.cli.options import (
    STDIN,
    EndOffset,
    EndTime,
    FixedStrings,
    Form,
    HeaderMatches,
    KeyPattern,
    OnCorrupt,
    OnCorruptOption,
    PartitionPatterns,
    PathsOrStdin,
    Replicas,
    ReplicasOption,
    StartOffset,
    StartTime,
    Topics,
    ValuePattern,
    choice_option,
    number_option,
    patterns,
    selection,
)
from kbat.cli.place import NothingToReadError, foreign_bytes, locate, quiet, standard_input
from kbat.cli.printing import Printer
from kbat.cli.ranges import check_ranges
from kbat.cli.start import BEGINNING, Partition, Start, offset_of, partitions_of, start
from kbat.cli.stores import opens_logs


class Isolation(StrEnum):
    """As a consumer's `isolation.level`."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


@opens_logs
def cat(  # noqa: PLR0913 - one per option
    paths: PathsOrStdin,
    *,
    topic: Topics = None,
    partition: PartitionPatterns = None,
    output_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            parser=str,
            help="jsonl, csv, text, raw (only the bytes of values), or a format string as in kcat. Default: jsonl.",
            show_default=False,
        ),
    ] = None,
    offset: Annotated[
        Start | None,
        typer.Option(
            "--offset",
            "-o",
            metavar="WHERE",
            parser=start,
            help="Where to begin in each partition: beginning, end, an offset, -N for the last N records, or a TIME.",
            show_default=False,
        ),
    ] = None,
    start_offset: StartOffset = None,
    end_offset: EndOffset = None,
    start_time: StartTime = None,
    end_time: EndTime = None,
    key: KeyPattern = None,
    grep: ValuePattern = None,
    header: HeaderMatches = None,
    fixed_strings: FixedStrings = False,
    value: Annotated[
        Form | None, choice_option(Form, "--value", help="Form of values. Default: what suits the format.")
    ] = None,
    key_form: Annotated[
        Form | None, choice_option(Form, "--key-form", help="Form of keys. Default: what suits the format.")
    ] = None,
    isolation: Annotated[
        Isolation,
        choice_option(Isolation, help="read_committed: omit records of aborted and open transactions."),
    ] = Isolation.READ_UNCOMMITTED,
    on_corrupt: OnCorruptOption = OnCorrupt.FAIL,
    replicas: ReplicasOption = Replicas.ERROR,
    batches: Annotated[
        bool,
        typer.Option(
            "--batches",
            help="Also print a line per batch, with which `kbat import` writes the same batches again.",
        ),
    ] = False,
    limit: Annotated[int | None, number_option(0, "--limit", "-n", help="Largest number of records to print.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-F", help="Wait for new records and print them too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")] = False,
    as_text: Annotated[bool, typer.Option("--text", help="The same as --format text: lines for people.")] = False,
) -> None:
    r"""Print records, one line per record, partition by partition in the order of the log.

    A TIME is ISO 8601 with a time zone, such as `2024-05-01T12:30:00Z`, or a number of milliseconds since 1970; numbers
    that look like seconds are refused. With `-o`, a number of milliseconds is written `s@1714566600000`. `-o -N` counts
    all records; `--key`, `--grep` and `--header` select among the last N. The standard input (PATH `-`) is read
    completely before anything is printed. With `-F`, a partition that is deleted and created again is printed from its
    beginning, and a line on the standard error reports it, as it does for a log that a broker has truncated.

    Examples: `kbat cat orders-0 --limit 10`, `kbat cat data --topic 'orders*' --start-time 2024-05-01T00:00:00Z`,
    `kbat cat data | jq -c '.value | fromjson?'`, `kbat cat orders-0 -o -5 -F` (the last five records, then new ones),
    `kbat cat data --grep 'error|timeout' -f '%t %p %o %k %s\n'`, `kbat cat orders-0 --batches | kbat import - orders-1`

    JSON lines: `topic` and `partition` (null if the directory's name does not contain them), `offset`, `timestamp`
    (milliseconds since the epoch, null if the record does not have one), `timestamp_type` ("CreateTime" or
    "LogAppendTime"; null in message format 0), `key`, `value`, and `headers`, a list of pairs of key and value.
    A key or value is a string if its bytes are UTF-8, and `{"base64": "…"}` otherwise; null is null. With --on-corrupt
    report, a line with the single field `error` describes each corruption: `kind`, `message`, `path`, `position`,
    `length`, `first_offset`, `last_offset`. With --batches, a line with `topic`, `partition` and `batch` is before the
    records of each batch, also of batches of markers and without records: `base_offset`, `last_offset`, `magic`,
    `attributes`, `partition_leader_epoch`, `base_timestamp`, `max_timestamp`, `producer_id`, `producer_epoch`,
    `base_sequence`, each as stored, -1 for none, and `record_count`, the number of its records that follow. Records
    then also have `create_time`, the producer's timestamp, if their own is that of an append. CSV has the same columns;
    null is an empty field, and bytes that are not UTF-8 are `0x` and hexadecimal digits. A text that begins with 0x
    looks the same in CSV: use JSON lines, or `--value` and `--key-form` with hex or base64, to distinguish them.

    A format string contains `%t` topic, `%p` partition, `%o` offset, `%T` timestamp (-1 for none), `%k` key, `%K` its
    length, `%s` value, `%S` its length (-1 for null), `%h` headers, `%%`, and `\n`, `\r`, `\t`, `\\`, `\xNN`. Nothing
    is added to it, so end it with `\n`. `-f` is the format, as in kcat, and `-F` follows, as in tail. On a terminal,
    characters that would change it are escaped in every format.

    Exit codes: 0, also if corruption was skipped (a line on the standard error shows how much); 1 for corruption, for
    files that can't be read and for an empty directory; 2 for wrong arguments and for a PATH that is not a log; 141 if
    the reader of a pipe has closed it.
    """
    check_ranges(start_offset, end_offset, start_time, end_time)
    _check(as_json=as_json, as_text=as_text, output_format=output_format)
    if offset is not None and (start_offset, start_time) != (None, None):
        message = "--offset, --start-offset and --start-time exclude each other: each is where to begin"
        raise ValueError(message)
    if follow and (STDIN in paths or (end_offset, end_time) != (None, None)):
        message = "--follow waits for the end of files: it excludes the standard input, --end-offset and --end-time"
        raise ValueError(message)
    printer = Printer(
        limit,
        is_followed=follow,
        output_format=output_format or ("text" if as_text else "jsonl"),
        key="auto" if key_form is None else key_form.value,
        value="auto" if value is None else value.value,
        **patterns(key, grep, header, fixed_strings=fixed_strings),
        **({"batches": True} if batches else {}),
    )
    bounds: dict[str, Any] = {
        "start_offset": start_offset,
        "end_offset": end_offset,
        "start_timestamp": start_time,
        "end_timestamp": end_time,
        "isolation": isolation.value,
        "on_corrupt": on_corrupt.value,
        # markers are in batches
        "include_control": batches,
    }
    chosen = _chosen(paths, topic, partition, replicas)
    if offset is not None or follow:
        _print_partitions(paths, chosen, offset, bounds, printer, follow=follow)
    else:
        sources = _sources(paths, chosen)
        with quiet():
            scan = kbat.scan(sources, **bounds, **chosen, **paths[0].options)
        printer.print(scan)
    printer.note_losses()
    is_range = (offset, start_offset, end_offset, start_time, end_time) != (None,) * 5
    if is_range and not (follow or key or grep or header):
        printer.note_empty_range()


def _check(*, as_json: bool, as_text: bool, output_format: str | None) -> None:
    if as_json + as_text + (output_format is not None) > 1:
        message = "--format, --json and --text exclude each other"
        raise ValueError(message)


def _chosen(
    paths: list[Location], topics: list[str] | None, numbers: list[str] | None, replicas: Replicas
) -> dict[str, Any]:
    """Return the arguments that choose partitions, with the numbers that match patterns."""
    wanted = numbers or []
    if all(one.isdecimal() for one in wanted):
        return selection(topics, [int(one) for one in wanted], replicas)
    files = [str(path) for path in paths if path != STDIN]
    if not files:
        return selection(topics, [0], replicas)
    segments, _, _ = discover(files, **selection(topics, None, replicas), **paths[0].options)
    found = sorted({one.partition for one in segments if one.partition is not None})
    matching = [one for one in found if any(fnmatch.fnmatchcase(str(one), pattern) for pattern in wanted)]
    if not matching:
        shown = ", ".join(map(str, found[:20])) or "none"
        message = f"no partition matches {', '.join(wanted)}; the numbers found are {shown}"
        raise ValueError(message)
    return selection(topics, matching, replicas)


def _sources(paths: list[Location], chosen: dict[str, Any]) -> list[str | bytes]:
    """Return what to scan, each path checked."""
    files = _files(paths, chosen)
    if files:
        locate(files, **chosen)
    return [_stdin(is_alone=not files) if path == STDIN else str(path) for path in paths]


def _files(paths: list[Location], chosen: dict[str, Any]) -> list[Location]:
    files = [path for path in paths if path != STDIN]
    if len(paths) - len(files) > 1:
        message = "the standard input (-) can be read only once"
        raise ValueError(message)
    if not files and paths[0].remote is not None:
        message = "--remote has no effect on the standard input (-): remove it, or name the partition's directory"
        raise ValueError(message)
    if len(files) < len(paths) and ("topics" in chosen or "partitions" in chosen):
        message = "--topic and --partition choose directories, but the standard input (-) has no topic"
        raise ValueError(message)
    return files


def _print_partitions(  # noqa: PLR0913 - what `cat` has prepared
    paths: list[Location],
    chosen: dict[str, Any],
    begin: Start | None,
    bounds: dict[str, Any],
    printer: Printer,
    *,
    follow: bool,
) -> None:
    """Print partitions one by one, each from an offset of its own on."""
    options = paths[0].options
    partitions = []
    files = _files(paths, chosen)
    if files:
        partitions = partitions_of(locate(files, **chosen).segments)
    if STDIN in paths:
        partitions.append(Partition("-", _stdin(is_alone=not files)))

    def scan_of(partition: Partition, **narrower: Any) -> kbat.Scan:  # noqa: ANN401 - those of kbat.scan
        changed = {name: value for name, value in narrower.items() if value is not None}
        with quiet():
            return kbat.scan(partition.source, **{**bounds, **changed}, **({} if STDIN in paths else options))

    def scan_from(partition: Partition, first: int) -> kbat.Scan:
        return scan_of(partition, start_offset=max(first, bounds["start_offset"] or 0) or None)

    def find() -> list[Partition]:
        # a topic may be deleted, and created again
        return partitions_of(discover([str(path) for path in files], is_required=False, **chosen, **options)[0])

    is_committed = bounds["isolation"] == Isolation.READ_COMMITTED
    follower = Follower(printer, find, scan_from, options, is_committed=is_committed)
    for partition in partitions:
        if printer.is_done:
            break
        counted = functools.partial(
            scan_of, partition, on_corrupt=_without_rows(bounds["on_corrupt"]), include_control=False
        )
        first = offset_of(begin or BEGINNING, partition, counted, options, bounds["end_offset"])
        if follow:
            follower.print(partition, first)
        else:
            printer.print(scan_from(partition, first))
    if follow:
        follower.follow(is_local=all(path.is_local for path in files))


def _without_rows(on_corrupt: str) -> str:
    """Return how corruption is handled if there are no lines for it."""
    return OnCorrupt.SKIP if on_corrupt == OnCorrupt.REPORT else on_corrupt


def _stdin(*, is_alone: bool) -> bytes:
    """Return the standard input, if it may be a log."""
    data = standard_input().read()
    if not data and is_alone:
        message = "the standard input is empty: no batch to read"
        raise NothingToReadError(message)
    if reason := foreign_bytes(data, "the standard input"):
        raise ValueError(reason)
    return data
