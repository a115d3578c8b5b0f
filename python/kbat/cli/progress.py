"""Progress on the standard error, if it is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from kbat.cli import output

ProgressCallback = Callable[[int, int], object]


@contextmanager
def progress(what: str, unit: str = "") -> Iterator[ProgressCallback | None]:
    """Show a bar of bytes, or of things that `unit` names, while the block runs.

    The callback takes the number of bytes or things done and their total number. There is no callback if the standard
    error is not a terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    figures: tuple[ProgressColumn, ...] = (DownloadColumn(binary_units=True), TransferSpeedColumn())
    if unit:
        figures = (MofNCompleteColumn(), TextColumn(unit))
    columns = (TextColumn("{task.description}"), BarColumn(), *figures, TimeRemainingColumn())
    with Progress(*columns, console=output.console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
