"""Arguments and options that several commands have, and parsers that name a wrong value in plain words."""

import datetime as dt
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from kbat.cli.location import Location, is_presented

E = TypeVar("E", bound=str)

# The largest offset, time and size in Kafka and kbat.
MAX = (1 << 63) - 1
MAX_PARTITION = (1 << 31) - 1

# Seconds since the epoch from 2001 on; as milliseconds they would be times before Kafka existed.
_SECONDS = range(1_000_000_000, 100_000_000_000)
STDIN = Location("-")

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SIZE = re.compile(r"(\d+)\s*(?:([kmg])(?:i?b)?|b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class Header:
    """A header that records must have; None for any value."""

    name: str
    value: str | None


class Form(StrEnum):
    """Forms of keys and values."""

    JSON = "json"
    TEXT = "text"
    HEX = "hex"
    BASE64 = "base64"


class Replicas(StrEnum):
    """What to do if several directories hold the same partition."""

    ERROR = "error"
    LONGEST = "longest"


class OnCorrupt(StrEnum):
    """What to do at corruption."""

    FAIL = "fail"
    SKIP = "skip"
    REPORT = "report"


class FailOrSkip(StrEnum):
    """What to do at corruption if the output does not have a line about it."""

    FAIL = "fail"
    SKIP = "skip"


def size(value: str) -> int:
    """Parse a size such as `1048576`, `64k` or `1MiB`; units are powers of 1024."""
    match = _SIZE.fullmatch(str(value).strip())
    if match is None:
        message = f"{value!r} is not a size; use a number of bytes, 64KiB or 1MiB"
        raise typer.BadParameter(message)
    found = int(match[1]) * _UNITS[(match[2] or "").lower()]
    if found > MAX:
        message = f"{value!r} is too large; the largest size is {MAX} bytes"
        raise typer.BadParameter(message)
    return found


def time(value: str) -> int:
    """Parse a time to milliseconds since the epoch, by the rule of `kbat.scan`.

    A time is ISO 8601 text with a time zone, or a number of milliseconds. Numbers that look like seconds are refused.
    """
    text = str(value).strip()
    if re.fullmatch(r"-?\d+", text):
        return _milliseconds(text)
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        message = f"{text!r} is not a time; write ISO 8601 with a time zone, such as 2024-05-01T12:30:00Z"
        raise typer.BadParameter(message) from None
    if moment.tzinfo is None:
        message = f"{text!r} has no time zone; for UTC write {moment.isoformat()}Z"
        raise typer.BadParameter(message)
    # up to the first millisecond that is not before the time
    return -((_EPOCH - moment) // dt.timedelta(milliseconds=1))


def _milliseconds(text: str) -> int:
    number = int(text)
    message = ""
    if abs(number) > MAX:
        message = f"{text!r} is too large for a time"
    elif date := _date(text):
        message = f"{text!r} looks like a date; write {date.isoformat()}Z"
    elif re.fullmatch(r"(19|20)\d{6}", text):
        message = f"{text!r} looks like a date that does not exist; write ISO 8601, such as 2024-05-01T00:00:00Z"
    elif number in _SECONDS:
        message = f"{text!r} looks like seconds since the epoch; write milliseconds, {number * 1000}"
    if message:
        raise typer.BadParameter(message)
    return number


def _date(text: str) -> dt.datetime | None:
    """Return the date and time that digits such as 2024, 20240501 or 202405011230 seem to mean, None for others."""
    if re.fullmatch(r"(19|20)(\d\d){1,6}", text) is None:
        return None
    # the year alone, then month, day, hour, minute and second
    form = "%Y%m%d%H%M%S"[: len(text) - 2]
    try:
        return dt.datetime.strptime(text, form)  # noqa: DTZ007 - the message adds the zone
    except ValueError:
        return None


def whole(smallest: int, largest: int) -> Callable[[str], int]:
    """Return a parser of whole numbers within bounds."""

    def integer(value: str) -> int:
        text = str(value).strip()
        if re.fullmatch(r"[+-]?\d+", text) is None:
            message = f"{text!r} is not a whole number"
        elif (number := int(text)) < smallest:
            message = f"{text} is too small; the smallest value is {smallest}"
        elif number > largest:
            message = f"{text} is too large; the largest value is {largest}"
        else:
            return number
        raise typer.BadParameter(message)

    return integer


def one_of(choices: Iterable[E]) -> Callable[[str], E]:
    """Return a parser of the values of an enumeration, in any case of letters."""
    values = {str(value): value for value in choices}

    def choice(value: str) -> E:
        found = values.get(str(value).lower())
        if found is None:
            message = f"{str(value)!r} is not one of {', '.join(values)}"
            raise typer.BadParameter(message)
        return found

    return choice


def choice_option(choices: Iterable[str], *names: str, **settings: Any) -> Any:  # noqa: ANN401 - typer's own
    """Return an option with one of the values of an enumeration, which a shell completes."""
    values = list(choices)

    def complete(incomplete: str) -> list[str]:
        return [str(value) for value in values if value.startswith(incomplete)]

    metavar = f"[{'|'.join(values)}]"
    return typer.Option(*names, parser=one_of(choices), metavar=metavar, autocompletion=complete, **settings)


def number_option(smallest: int, *names: str, largest: int = MAX, **settings: Any) -> Any:  # noqa: ANN401 - typer's own
    """Return an option with a whole number within bounds."""
    return typer.Option(*names, parser=whole(smallest, largest), **{"metavar": "NUMBER", **settings})


def header(value: str) -> Header:
    """Parse NAME or NAME=VALUE."""
    name, equals, text = str(value).partition("=")
    return Header(name, text if equals else None)


def partition_pattern(value: str) -> str:
    """Parse a partition number, or a pattern of such numbers."""
    text = str(value).strip()
    if re.fullmatch(r"[][0-9!*?-]*[][*?][][0-9!*?-]*", text):
        return text
    return str(whole(0, MAX_PARTITION)(text))


def existing(value: str) -> Location:
    """Return an existing path, or a URL. Whether a URL exists is known when its store is open."""
    try:
        location = Location.parse(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if not (location.is_url or location.is_local or is_presented(location)):
        message = f"path {str(value)!r} does not exist"
        if location == STDIN:
            message = "only `kbat cat` reads the standard input (-): write it to a file first"
        raise typer.BadParameter(message)
    if location.is_local and not (location.is_file or location.is_dir):
        message = f"{str(value)!r} is a pipe or a device: copy it to a file; for the standard input, `kbat cat -` works"
        raise typer.BadParameter(message)
    return location


def existing_directory(value: str) -> Location:
    """Return the path of a directory, or a URL."""
    location = existing(value)
    if location.is_local and not location.is_dir:
        message = f"{str(value)!r} is a file; name the partition directory"
        raise typer.BadParameter(message)
    return location


def existing_or_stdin(value: str) -> Location:
    """Return an existing path, a URL, or `-` for the standard input."""
    return STDIN if str(value) == "-" else existing(value)


def target(value: str) -> Path:
    """Return the path of a directory to write."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", str(value)):
        message = (
            "OUT is a URL, but this command writes only to the file system: name a local directory, then upload it"
        )
        raise typer.BadParameter(message)
    return Path(target_location(value).text)


def target_location(value: str) -> Location:
    """Return the location of a file or directory to write."""
    if str(value) == "-":
        message = (
            "- is not a file here, and nothing is written to the standard output: `kbat cat -f csv` prints records; "
            "name a file or directory, or write ./-"
        )
        raise typer.BadParameter(message)
    try:
        return Location.parse(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


PathArgument = Annotated[
    Location,
    typer.Argument(
        metavar="PATH", parser=existing, help="A log directory, a partition directory or a .log file, or its URL."
    ),
]
PathsArgument = Annotated[
    list[Location],
    typer.Argument(
        metavar="PATH", parser=existing, help="Log directories, partition directories or .log files, or their URLs."
    ),
]
PathsOrStdin = Annotated[
    list[Location],
    typer.Argument(
        metavar="PATH",
        parser=existing_or_stdin,
        help="Log directories, partition directories or .log files, or their URLs; - is the standard input.",
    ),
]
PartitionArgument = Annotated[
    Location,
    typer.Argument(
        metavar="PATH", parser=existing_directory, help="A partition directory, or its URL. It is only read."
    ),
]
DirectoryArgument = Annotated[
    Location,
    typer.Argument(
        metavar="PATH",
        parser=existing_directory,
        help="A partition directory or a log directory, or its URL. It is only read.",
    ),
]
OutArgument = Annotated[
    Location,
    typer.Argument(
        metavar="OUT",
        parser=target_location,
        help="Directory to write, or its URL. It must be missing or empty. A directory appears when it is complete; "
        "for a URL, files are uploaded when all are complete.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text; the fields are listed under JSON.")]
Wide = Annotated[bool, typer.Option("--wide", help="Show all columns, even if the terminal is too narrow for them.")]
LeavePageCache = Annotated[
    bool,
    typer.Option(
        "--leave-page-cache",
        help="Read around the page cache, so that a broker on this machine keeps its cached pages. This costs one "
        "small disk read per batch, and is ten times slower if the files are cached.",
    ),
]
IndexInterval = Annotated[
    int,
    typer.Option(
        metavar="SIZE", parser=size, help="Bytes between two index entries, the topic's index.interval.bytes."
    ),
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="NAME",
        help="Read only this topic: a name, or a quoted pattern with *, ? and [...]. Repeat it for more topics.",
        show_default=False,
    ),
]
Partitions = Annotated[
    list[int] | None,
    number_option(
        0,
        "--partition",
        largest=MAX_PARTITION,
        help="Read only partitions with this number. Repeat it for more partitions.",
        show_default=False,
    ),
]
PartitionPatterns = Annotated[
    list[str] | None,
    typer.Option(
        "--partition",
        metavar="NUMBER",
        parser=partition_pattern,
        help="Read only this partition: a number, or a quoted pattern with *, ? and [...]. Repeat it for more.",
        show_default=False,
    ),
]
KeyPattern = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="PATTERN",
        parser=str,
        help="Only records whose whole key matches this regular expression. For several keys, write 'c3|c4'.",
        show_default=False,
    ),
]
ValuePattern = Annotated[
    str | None,
    typer.Option(
        "--grep",
        metavar="PATTERN",
        parser=str,
        help="Only records whose value contains a match of this regular expression. For several, write 'a|b'.",
        show_default=False,
    ),
]
HeaderMatches = Annotated[
    list[Header] | None,
    typer.Option(
        "--header",
        metavar="NAME[=VALUE]",
        parser=header,
        help="Only records with this header, and with this value if it is set. Repeat it for more headers.",
        show_default=False,
    ),
]
FixedStrings = Annotated[
    bool, typer.Option("--fixed-strings", help="The patterns of --key and --grep are plain texts.")
]
ReplicasOption = Annotated[
    Replicas,
    choice_option(
        Replicas,
        "--replicas",
        help="If several directories hold a partition: stop (error), or read the one with the most offsets (longest).",
    ),
]

StartOffset = Annotated[int | None, number_option(0, "--start-offset", help="First offset to print.")]
EndOffset = Annotated[int | None, number_option(0, "--end-offset", help="Offset to stop before.")]
StartTime = Annotated[
    int | None,
    typer.Option("--start-time", metavar="TIME", parser=time, help="Print records with this timestamp or a later one."),
]
EndTime = Annotated[
    int | None,
    typer.Option("--end-time", metavar="TIME", parser=time, help="Print records with an earlier timestamp than this."),
]
OnCorruptOption = Annotated[
    OnCorrupt,
    choice_option(
        OnCorrupt,
        "--on-corrupt",
        help="At corruption: stop (fail), skip to the next complete batch (skip), or also print a line (report).",
    ),
]
FailOrSkipOption = Annotated[
    FailOrSkip, choice_option(FailOrSkip, help="At corruption: stop (fail), or skip to the next complete batch (skip).")
]


def selection(
    topics: list[str] | None, partitions: list[int] | None, replicas: Replicas = Replicas.ERROR
) -> dict[str, Any]:
    """Return the keyword arguments of `kbat.scan` and its relatives that choose partitions; defaults are omitted."""
    chosen: dict[str, Any] = {"topics": topics or None, "partitions": partitions or None}
    if replicas is not Replicas.ERROR:
        chosen["replicas"] = replicas.value
    return {name: value for name, value in chosen.items() if value is not None}


def patterns(key: str | None, grep: str | None, headers: list[Header] | None, *, fixed_strings: bool) -> dict[str, Any]:
    """Return the keyword arguments of `write_records` that choose records."""
    return {
        "key_pattern": key,
        "value_pattern": grep,
        "headers": [(one.name, one.value) for one in headers or ()],
        "fixed_strings": fixed_strings,
    }
