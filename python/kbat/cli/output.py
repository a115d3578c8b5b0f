"""What the commands print: tables for people, JSON for programs.

Answers go to the standard output, all else to the standard error. In tables sizes have a person's units and times are
UTC; in JSON sizes are bytes and timestamps milliseconds since the epoch.
"""

import datetime as dt
import json
import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# Columns of a table that goes to a file or a pipe: nothing is cut there.
_PIPE_WIDTH = 10_000
# Columns of a text that may be folded.
_MIN_WIDTH = 16
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
_UNIT = 1024


class _Console(Console):
    """A console that leaves a broken pipe to whoever runs the command."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Give a console on today's standard output or error."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return _Console(stderr=stderr, width=width, highlight=False, soft_wrap=True)


def write_line(text: str) -> None:
    """Write a line to the standard output as it is."""
    sys.stdout.write(f"{text}\n")


def write_json(value: object) -> None:
    """Write a document of JSON."""
    write_line(json.dumps(value, indent=2, ensure_ascii=False))


def write_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: Sequence[str] = ()) -> None:
    """Write a table; columns that are not in `left` stand to the right."""
    table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        if column in left:
            table.add_column(Text(column), overflow="fold", min_width=_MIN_WIDTH if column else None)
        else:
            table.add_column(Text(column), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    shown = console()
    # a terminal that is too narrow wraps the lines: nothing is cut
    least = shown.measure(table, options=shown.options.update(width=_PIPE_WIDTH)).minimum
    shown.print(table, width=max(least, shown.width))


def note(text: str) -> None:
    """Write a line to the standard error."""
    sys.stderr.write(f"{' '.join(text.split())}\n")


def size_text(size: float) -> str:
    """Give bytes in a person's units."""
    if size < _UNIT:
        return f"{size:.0f} B"
    for unit in _UNITS:
        size /= _UNIT
        if size < _UNIT or unit == _UNITS[-1]:
            break
    return f"{size:,.1f} {unit}"


def time_text(timestamp: int | None) -> str:
    """Give milliseconds since the epoch as a time in UTC; as they are where no calendar has them, such as -1."""
    if timestamp is None:
        return "-"
    if timestamp < 0:
        return str(timestamp)
    try:
        time = _EPOCH + dt.timedelta(milliseconds=timestamp)
    except OverflowError:
        return str(timestamp)
    return f"{time:%Y-%m-%d %H:%M:%S}.{timestamp % 1000:03}Z"


def text(value: object) -> str:
    """Give a value on one line that is safe on a terminal: null as a dash, what can't be printed escaped."""
    if value is None:
        return "-"
    shown = f"{value:,}" if isinstance(value, int) else str(value)
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)
