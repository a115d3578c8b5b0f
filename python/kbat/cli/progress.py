"""Progress on the standard error, if it is a terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kbat.cli import output

if TYPE_CHECKING:
    from rich.progress import Progress

ProgressCallback = Callable[[int, int], object]

# Until then only figures are shown, because the import of the bar takes as long as a short command.
_SECONDS_BEFORE_BAR = 0.5


@contextmanager
def progress(what: str, unit: str = "") -> Iterator[ProgressCallback | None]:
    """Show a bar of bytes, or of things that `unit` names, with the rate and the remaining time while the block runs.

    The callback takes the number of bytes or things done and their total number. There is no callback if the standard
    error is not a terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    shown = _Shown(what, unit)
    try:
        yield shown.update
    finally:
        shown.remove()


class _Shown:
    """Progress as figures first, and as a bar from half a second on."""

    def __init__(self, what: str, unit: str) -> None:
        self._what = what
        self._unit = unit
        self._start = time.monotonic()
        self._last: tuple[int, int] | None = None
        self._bar: Progress | None = None

    def update(self, done: int, total: int) -> None:
        is_first, self._last = self._last is None, (done, total)
        if self._bar is not None:
            # the only task of the bar
            self._bar.update(self._bar.task_ids[0], completed=done, total=total)
        elif time.monotonic() - self._start >= _SECONDS_BEFORE_BAR:
            self._bar = _bar(self._what, self._unit)
            self.update(done, total)
        elif is_first:
            self._write_figures(done, total)

    def remove(self) -> None:
        """Remove the progress from the terminal; a failure of the terminal does not hide an error of the block."""
        with suppress(OSError):
            if self._bar is not None:
                self._bar.stop()
            elif self._last is not None:
                self._write_figures(*self._last)
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()

    def _write_figures(self, done: int, total: int) -> None:
        figures = f"{done}/{total} {self._unit}" if self._unit else output.sizes_text(done, total)
        sys.stderr.write(f"\r\x1b[K{self._what} {figures}")
        sys.stderr.flush()


def _bar(what: str, unit: str) -> "Progress":
    from rich.progress import (  # noqa: PLC0415 - slow
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text  # noqa: PLC0415

    class Rate(ProgressColumn):
        """Bytes or things per second. The column of rich has units of 1000 bytes."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed or 0
            rate = f"{speed:,.0f}" if unit else output.size_text(speed)
            return Text(f"{rate}/s" if speed else "", style="progress.data.speed")

    figures: tuple[ProgressColumn, ...] = (MofNCompleteColumn(), TextColumn(unit))
    if not unit:
        figures = (DownloadColumn(binary_units=True),)
    columns = (TextColumn("{task.description}"), BarColumn(), *figures, Rate(), TimeRemainingColumn())
    sys.stderr.write("\r\x1b[K")
    bar = Progress(*columns, console=output.console(stderr=True), transient=True)
    bar.add_task(what, total=None)
    bar.start()
    return bar
