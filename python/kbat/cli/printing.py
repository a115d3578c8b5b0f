"""Records on the standard output."""

import os
import stat
import sys
from contextlib import nullcontext
from typing import Any

import kbat.results
from kbat._core.text import write_records
from kbat.cli import output
from kbat.cli.losses import note_losses
from kbat.cli.progress import progress


class Printer:
    """Prints the records of scans, up to a number of them, and remembers what the scans have skipped.

    Args:
        limit: Largest number of records to print.
        is_followed: Whether a reader waits for each record.
        form: Format of records and patterns that they match, as for `write_records`.
    """

    def __init__(self, limit: int | None, *, is_followed: bool, **form: Any) -> None:  # noqa: ANN401 - as described
        self._left = limit
        self._form = form
        self._is_terminal = sys.stdout.isatty()
        self._is_followed = is_followed
        self._is_at_once = is_followed or self._is_terminal
        # a bar beside a pipe would disturb the program at its end, such as `less`
        self._shows_progress = _is_to_file() and not is_followed
        self._is_first = True
        self._has_printed = False
        self._lossy: list[kbat.results.ScanStats] = []

    @property
    def is_done(self) -> bool:
        """Whether no more records are to be printed."""
        return self._left == 0

    def print(self, scan: kbat.Scan) -> int | None:
        """Print records, and return the offset after the last batch that was read."""
        # what was written as text comes first
        sys.stdout.flush()
        with progress("reading") if self._shows_progress else nullcontext() as callback:
            count, next_offset = write_records(
                scan,
                self._write,
                limit=self._left,
                terminal=self._is_terminal,
                header=self._is_first,
                progress=callback,
                **self._form,
            )
        self._is_first = False
        self._has_printed |= count > 0
        if self._left is not None:
            self._left -= count
        if scan.stats is not None and not self._is_followed:
            self._lossy.append(scan.stats)
        elif scan.stats is not None and scan.stats.batches_skipped:
            # at once: only a signal ends such a reader, who waits for the rest of the last batch
            note_losses(scan.stats)
        return next_offset

    def note_losses(self) -> None:
        """Write a line about the bytes that were skipped to the standard error."""
        note_losses(*self._lossy)

    def note_empty_range(self) -> None:
        """Write a line to the standard error if nothing was printed."""
        if not self._has_printed and not self.is_done:
            output.note("kbat: no record is in this range of offsets and times")

    def _write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        if self._is_at_once:
            sys.stdout.buffer.flush()


def _is_to_file() -> bool:
    try:
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        return False
