"""Progress on the standard error, where that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from kbat.cli import output

ProgressCallback = Callable[[int, int], object]


@contextmanager
def progress(what: str) -> Iterator[ProgressCallback | None]:
    """Show a bar of bytes while the block runs.

    The callback takes the bytes done and the bytes to do; there is none where nobody looks.
    """
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=output.console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
