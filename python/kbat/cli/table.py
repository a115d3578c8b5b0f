"""Tables that fit a narrow terminal: less important columns are hidden first, then long names are shortened."""

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from kbat.cli.output import output_width, styled, text, write_line

# Between the columns of a table.
_GAP = "  "
_ELLIPSIS = "…"
# Characters as wide as those of ASCII: Latin letters, signs and blocks. rich, which knows all, takes long to import.
_NARROW = re.compile(r"[\x00-\u02ff\u2010-\u2027\u2190-\u22ff\u2500-\u259f]*")
# A name is shortened to this width before a column is hidden, and never below the second one.
_SHORT = 20
_SHORTEST = 8
# Columns that are shown in the narrowest terminal.
_FEWEST = 2
# Hidden columns that are named.
_NAMED = 6
# Rows by which a table is laid out that is written while it is read.
_MEASURED_ROWS = 100


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        name: What it is called.
        left: Whether it is aligned to the left, and may be shortened, as names are.
        rank: How early a narrow terminal hides it: the largest rank first, and 0 only if others with 0 do not fit.
        width: Smallest width, for tables whose later rows are unknown when the first ones are written.
    """

    name: str
    left: bool = False
    rank: int = 0
    width: int = 0


def write_table(title: str, columns: Sequence[Column], rows: Iterable[Sequence[str]], *, wide: bool = False) -> None:
    """Write a table. On a terminal it has the terminal's width, unless `wide` is set."""
    # a table of rich takes a second for 3000 rows
    body = [tuple(row) for row in rows]
    _write(title, columns, body, body, wide=wide)


def stream_table(
    title: str, columns: Sequence[Column], rows: Iterable[Sequence[str] | str], *, wide: bool = False
) -> None:
    """Write a table of any length while its rows are read. A row may also be a line of text.

    The first rows decide which columns are shown, and how wide they are.
    """
    remaining = iter(rows)
    first = list(islice(remaining, _MEASURED_ROWS))
    _write(
        title, columns, [tuple(row) for row in first if not isinstance(row, str)], chain(first, remaining), wide=wide
    )


def _write(
    title: str,
    columns: Sequence[Column],
    measured: list[tuple[str, ...]],
    rows: Iterable[Sequence[str] | str],
    *,
    wide: bool,
) -> None:
    limit = output_width(sys.stdout)
    indexes, heads, widths = _layout(columns, measured, None if wide else limit)
    write_line(f"{text(title)}\n")
    for head in heads:
        write_line(styled(_line(head, columns, indexes, widths), "bold"))
    write_line("─" * min(_width(widths), limit))
    is_left = [columns[index].left for index in indexes]
    lefts = [(place, width) for place, width in enumerate(widths) if is_left[place]]
    padded = _GAP.join(f"%{'-' if left else ''}{width}s" for left, width in zip(is_left, widths, strict=True))
    for row in rows:
        if isinstance(row, str):
            write_line(row)
            continue
        cells = [row[index] for index in indexes]
        for place, width in lefts:
            cells[place] = _shortened(cells[place], width)
        # most rows; a table of a log may have millions
        line = padded % tuple(cells)
        write_line(line.rstrip() if line.isascii() else _line(cells, columns, indexes, widths))
    write_line("")
    if hidden := [column.name for index, column in enumerate(columns) if index not in indexes]:
        left_out = ", ".join(hidden) if len(hidden) <= _NAMED else f"{len(hidden)} columns"
        write_line(f"hidden in this narrow terminal: {left_out}; --wide shows all columns\n")


def _layout(
    columns: Sequence[Column], body: list[tuple[str, ...]], limit: int | None
) -> tuple[list[int], list[list[str]], list[int]]:
    """Choose the columns to show, the lines of their names, and their widths."""
    indexes = list(range(len(columns)))
    heads, widths = _measured(columns, body, indexes, lines=1)
    if limit is None or _width(widths) <= limit:
        return indexes, heads, widths
    cells = _measured(columns, body, indexes, lines=2)[1]
    by_rank = sorted(indexes, key=lambda index: columns[index].rank)
    shown: list[int] = []
    for index in by_rank:
        wanted = [*shown, index]
        # long names are shortened before columns of figures are hidden
        spare = max((cells[one] - _SHORT for one in wanted if columns[one].left), default=0)
        if columns[index].rank == 0 or _width([cells[one] for one in wanted]) <= limit + max(0, spare):
            shown = wanted
    shown.sort()
    while True:
        heads, widths = _measured(columns, body, shown, lines=2)
        _narrow([columns[index].left for index in shown], widths, _width(widths) - limit)
        if _width(widths) <= limit or len(shown) <= _FEWEST:
            return shown, heads, widths
        # with the longest offsets, not even the columns that are always shown fit
        shown.pop()


def _measured(
    columns: Sequence[Column], body: list[tuple[str, ...]], indexes: list[int], lines: int
) -> tuple[list[list[str]], list[int]]:
    """Return the lines of the names of some columns, and the widths of the columns."""
    names = [_head(columns[index].name, lines) for index in indexes]
    widths = [
        max([columns[index].width, *map(_cell_len, name), *(_cell_len(row[index]) for row in body)])
        for index, name in zip(indexes, names, strict=True)
    ]
    return [list(line) for line in zip(*names, strict=True) if any(line)], widths


def _width(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _narrow(are_names: list[bool], widths: list[int], excess: int) -> None:
    """Take the excess from the widest column of names."""
    named = [place for place, is_name in enumerate(are_names) if is_name]
    if named and excess > 0:
        widest = max(named, key=lambda place: widths[place])
        widths[widest] = max(_SHORTEST, widths[widest] - excess)


def _head(name: str, lines: int) -> list[str]:
    """Split the name of a column into lines, the first one empty if one is enough."""
    words = name.split(" ")
    if lines == 1:
        return [name]
    splits = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(len(words))]
    return list(min(splits, key=lambda two: max(map(_cell_len, two))))


def _line(cells: Sequence[str], columns: Sequence[Column], indexes: list[int], widths: list[int]) -> str:
    padded = []
    for cell, index, width in zip(cells, indexes, widths, strict=True):
        # characters of other alphabets may be wider
        length = width if cell.isascii() else width - _cell_len(cell) + len(cell)
        padded.append(cell.ljust(length) if columns[index].left else cell.rjust(length))
    return _GAP.join(padded).rstrip()


def _shortened(cell: str, width: int) -> str:
    """Take characters from the middle of a cell that is too long."""
    if (cell.isascii() and len(cell) <= width) or _cell_len(cell) <= width:
        return cell
    start, end = cell[: len(cell) // 2], cell[len(cell) // 2 :]
    while _cell_len(start) + _cell_len(end) + len(_ELLIPSIS) > width:
        if _cell_len(start) > _cell_len(end):
            start = start[:-1]
        else:
            end = end[1:]
    return f"{start}{_ELLIPSIS}{end}"


def _cell_len(text: str) -> int:
    """Return the columns of a terminal that some text takes."""
    if text.isascii() or _NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - few names need it

    return cell_len(text)
