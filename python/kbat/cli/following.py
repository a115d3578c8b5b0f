"""New records of growing logs: `kbat cat --follow`."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import kbat
from kbat.cli import output
from kbat.cli.printing import Printer
from kbat.cli.start import Partition

# Seconds before the files are checked again, and the objects of a store, whose listing costs a request.
_SECONDS = 0.25
_SECONDS_OF_STORE = 5.0


@dataclass(frozen=True)
class _Seen:
    """A partition when it was printed: its state on disk, the next offset, and the first bytes of some segments."""

    written: tuple[int, int] | None = None
    next_offset: int = 0
    heads: dict[str, bytes] | None = None

    def is_same(self, heads: dict[str, bytes]) -> bool:
        """Return whether a segment begins as it did before, so that this is the same log."""
        before = self.heads or {}
        return any(head and before.get(path) == head for path, head in heads.items())

    def is_replaced(self, heads: dict[str, bytes]) -> bool:
        """Return whether the last segment begins with another batch. Brokers compact only earlier segments."""
        before = self.heads or {}
        last = next(reversed(heads), "")
        is_known = last == next(reversed(before), "") and before.get(last) and heads.get(last)
        return bool(is_known and before[last] != heads[last])


class Follower:
    """Prints partitions again and again, each from where it ended before.

    A partition that was deleted and created again is printed from its beginning. If a broker has truncated its log,
    as after a change of the leader, printing continues at its new end.

    Args:
        printer: Prints the records.
        find: Returns the partitions that exist now.
        scan: Returns a scan of a partition from an offset on.
        options: How to open the store of the partitions.
        is_committed: Whether only records of committed transactions are printed.
    """

    def __init__(
        self,
        printer: Printer,
        find: Callable[[], list[Partition]],
        scan: Callable[[Partition, int], kbat.Scan],
        options: dict[str, Any],
        *,
        is_committed: bool = False,
    ) -> None:
        self._printer = printer
        self._find = find
        self._scan = scan
        self._options = options
        self._is_committed = is_committed
        self._seen: dict[str, _Seen] = {}
        self._missing: set[str] = set()

    def print(self, partition: Partition, first: int) -> None:
        """Print a partition from an offset on. A segment that is deleted in the meantime is not an error."""
        with suppress(FileNotFoundError):
            self._print(partition, first, partition.heads(self._options))

    def _print(self, partition: Partition, end: int, heads: dict[str, bytes]) -> None:
        """Print a partition segment by segment, and remember where it ended, also if a segment is gone."""
        written, is_complete = partition.written, False
        try:
            # transactions are determined for a partition as a whole
            for part in [partition] if self._is_committed else partition.parts(end):
                if not self._printer.is_done:
                    next_offset = self._printer.print(self._scan(part, end))
                    end = end if next_offset is None else max(end, next_offset)
            is_complete = True
        finally:
            if end <= partition.last_base_offset:
                # the first batch of the last segment is not complete
                heads = {**heads, next(reversed(heads), ""): b""}
            self._seen[partition.key] = _Seen(written if is_complete else None, end, heads)

    def follow(self, *, is_local: bool) -> None:
        """Print what is new until the printer is done or the process is interrupted."""
        while not self._printer.is_done:
            time.sleep(_SECONDS if is_local else _SECONDS_OF_STORE)
            # retention may delete a segment that was just found: the log is listed again
            with suppress(FileNotFoundError):
                found = self._find()
                self._missing |= self._seen.keys() - {partition.key for partition in found}
                for partition in found:
                    self._print_new(partition)

    def _print_new(self, partition: Partition) -> None:
        seen = self._seen.get(partition.key, _Seen())
        was_missing = partition.key in self._missing
        if self._printer.is_done or (partition.written == seen.written and not was_missing):
            return
        heads = partition.heads(self._options)
        first, change = self._first(partition, seen, heads, was_missing=was_missing)
        if change:
            # since the listing, its last segment may have been rolled and compacted
            listed = next((one for one in self._find() if one.key == partition.key), None)
            if listed is None:
                return
            partition, heads = listed, listed.heads(self._options)
            first, change = self._first(partition, seen, heads, was_missing=was_missing)
        if change:
            output.note(change)
        self._print(partition, first, heads)
        self._missing.discard(partition.key)

    def _first(
        self, partition: Partition, seen: _Seen, heads: dict[str, bytes], *, was_missing: bool
    ) -> tuple[int, str]:
        """Return the offset from which a partition is printed, and how its log changed, if it did."""
        if seen.heads is None:
            return seen.next_offset, ""
        end = self._end(partition)
        first = min(seen.next_offset, seen.next_offset if end is None else end)
        if seen.is_replaced(heads):
            first = min(first, partition.last_base_offset)
        name = PurePath(partition.key).name
        if (was_missing or first < seen.next_offset) and not seen.is_same(heads):
            return 0, f"kbat: the log of {name} begins again at offset {partition.base_offset}"
        if first < seen.next_offset:
            return first, f"kbat: the log of {name} was truncated; printing continues at offset {first}"
        return first, ""

    def _end(self, partition: Partition) -> int | None:
        """Return the end offset; None if the last segment can't be read at this moment."""
        with suppress(OSError, ValueError, kbat.KbatError):
            return partition.end_offset(self._options)
        return None
