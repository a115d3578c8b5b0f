"""Arguments and options that several commands have."""

import datetime as dt
import re
from pathlib import Path
from typing import Annotated

import typer

_SIZE = re.compile(r"(\d+)\s*(?:([kmg])(?:i?b)?|b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(value: str) -> int:
    """Parse a size such as `1048576`, `64k` or `1MiB`; units are powers of 1024."""
    match = _SIZE.fullmatch(str(value).strip())
    if match is None:
        message = f"{value!r} is no size; give bytes, or such as 64KiB or 1MiB"
        raise typer.BadParameter(message)
    return int(match[1]) * _UNITS[(match[2] or "").lower()]


def time(value: str) -> int:
    """Parse a time, in ISO 8601 or as milliseconds since the epoch, to milliseconds. UTC where no zone is given."""
    if re.fullmatch(r"-?\d{9,}", value):
        return int(value)
    try:
        moment = dt.datetime.fromisoformat(value)
    except ValueError:
        message = f"{value!r} is no time; give such as 2024-05-01, 2024-05-01T12:30:00Z, or milliseconds since 1970"
        raise typer.BadParameter(message) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)


PathArgument = Annotated[
    Path, typer.Argument(metavar="PATH", exists=True, help="A log directory, a partition directory or a .log file.")
]
PartitionArgument = Annotated[
    Path, typer.Argument(metavar="PATH", exists=True, file_okay=False, help="A partition directory. It is only read.")
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
