"""What the commands print: tables for people, JSON for programs.

Answers go to the standard output, all else to the standard error. In tables sizes have a person's units and times are
UTC; in JSON sizes are bytes and timestamps milliseconds since the epoch.
"""

import datetime as dt
import json
import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# Columns of a table that goes to a file or a pipe: nothing is cut there.
_PIPE_WIDTH = 10_000
# Between the columns of a table.
_GAP = "  "
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
    """Write a table; columns that are not in `left` stand to the right. A narrow terminal wraps its lines."""
    # a table of rich's takes a second for 3000 rows, and cuts cells where the terminal is narrow
    lines = [tuple(columns), *map(tuple, rows)]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    is_left = [column in left for column in columns]
    head, *body = (_table_line(cells, widths, is_left) for cells in lines)
    shown = console()
    write_line(f"{text(title)}\n")
    shown.print(Text(head, style="bold"))
    write_line("─" * min(sum(widths) + len(_GAP) * (len(widths) - 1), shown.width))
    write_line("\n".join([*body, ""]))


def _table_line(cells: Sequence[str], widths: Sequence[int], is_left: Sequence[bool]) -> str:
    padded = []
    for cell, width, at_left in zip(cells, widths, is_left, strict=True):
        space = " " * (width - cell_len(cell))
        padded.append(cell + space if at_left else space + cell)
    return _GAP.join(padded).rstrip()


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
