"""Progress bars of long operations, if `rich` is installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Bar:
    """A bar of processed bytes, which disappears when it is full or deleted."""

    def __init__(self, progress: Any) -> None:  # noqa: ANN401 -- rich may not be installed
        """Start a `rich.progress.Progress`."""
        self._progress = progress
        self._task = progress.add_task("reading", total=None)
        progress.start()

    def __call__(self, done: int, total: int) -> None:
        """Show the number of processed bytes."""
        self._progress.update(self._task, completed=done, total=total)
        if done >= total:
            self._progress.stop()

    def __del__(self) -> None:
        """Remove the bar after the operation was dropped or failed."""
        self._progress.stop()


def bar() -> Bar | None:
    """Return a bar, or None if `rich` is not installed."""
    try:
        rich = import_module("rich.progress")
    except ImportError:
        return None
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.DownloadColumn(binary_units=True),
        rich.TransferSpeedColumn(),
        rich.TimeRemainingColumn(),
    )
    return Bar(rich.Progress(*columns))
