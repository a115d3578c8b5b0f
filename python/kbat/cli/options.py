"""Arguments and options that several commands have."""

import datetime as dt
import re
from pathlib import Path
from typing import Annotated

import typer

# The largest offset, time and size that Kafka and kbat know.
MAX = (1 << 63) - 1

_TIMES = "2024-05-01, 2024-05-01T12:30:00Z, or milliseconds since 1970, of 12 digits or more"

_SIZE = re.compile(r"(\d+)\s*(?:([kmg])(?:i?b)?|b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(value: str) -> int:
    """Parse a size such as `1048576`, `64k` or `1MiB`; units are powers of 1024."""
    match = _SIZE.fullmatch(str(value).strip())
    if match is None:
        message = f"{value!r} is no size; give bytes, or such as 64KiB or 1MiB"
        raise typer.BadParameter(message)
    found = int(match[1]) * _UNITS[(match[2] or "").lower()]
    if found > MAX:
        message = f"{value!r} is too large; at most {MAX} bytes"
        raise typer.BadParameter(message)
    return found


def time(value: str) -> int:
    """Parse a time, in ISO 8601 or as milliseconds since the epoch, to milliseconds. UTC where no zone is given.

    Numbers of fewer than 12 digits are dates such as 20240501, or refused: seconds would lie in January 1970.
    """
    if re.fullmatch(r"-?\d{12,}", value):
        found = int(value)
        if abs(found) > MAX:
            message = f"{value!r} is too large for a time"
            raise typer.BadParameter(message)
        return found
    try:
        moment = dt.datetime.fromisoformat(value)
    except ValueError:
        message = f"{value!r} is no time; give such as {_TIMES}"
        if re.fullmatch(r"\d{9,11}", value):
            message = f"{value!r} is taken for seconds; milliseconds have 12 digits or more, such as {value}000"
        raise typer.BadParameter(message) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)


def existing(value: str) -> Path:
    """Return a path where something is. A URL is told from a path that is wrong."""
    path = Path(value)
    if not path.exists():
        message = f"path {value!r} does not exist."
        if re.match(r"[A-Za-z0-9]+://", value):
            message = f"{value} is a URL, and kbat takes paths: mount it, or copy the files."
        raise typer.BadParameter(message)
    return path


def existing_directory(value: str) -> Path:
    """Return the path of a directory."""
    path = existing(value)
    if not path.is_dir():
        message = f"{value!r} is a file; give the partition directory."
        raise typer.BadParameter(message)
    return path


PathArgument = Annotated[
    Path,
    typer.Argument(metavar="PATH", parser=existing, help="A log directory, a partition directory or a .log file."),
]
PartitionArgument = Annotated[
    Path,
    typer.Argument(metavar="PATH", parser=existing_directory, help="A partition directory. It is only read."),
]
OutArgument = Annotated[
    Path, typer.Argument(metavar="OUT", help="Directory to write; missing or empty. It appears when it is complete.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text; fields as above.")]
IndexInterval = Annotated[
    int,
    typer.Option(
        metavar="SIZE", parser=size, help="Bytes between two index entries, the topic's index.interval.bytes."
    ),
]
