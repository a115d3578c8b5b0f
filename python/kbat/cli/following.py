"""New records of growing logs: `kbat cat --follow`."""

import time
from collections.abc import Callable
from contextlib import suppress

import kbat
from kbat.cli.printing import Printer
from kbat.cli.start import Partition

# Seconds before the files are checked again, and the objects of a store, whose listing costs a request.
_SECONDS = 0.25
_SECONDS_OF_STORE = 5.0


class Follower:
    """Prints partitions again and again, each from where it ended before.

    Args:
        printer: Prints the records.
        find: Returns the partitions that exist now.
        scan: Returns a scan of a partition from an offset on.
    """

    def __init__(
        self,
        printer: Printer,
        find: Callable[[], list[Partition]],
        scan: Callable[[Partition, int], kbat.Scan],
    ) -> None:
        self._printer = printer
        self._find = find
        self._scan = scan
        self._seen: dict[str, tuple[int, int]] = {}

    def print(self, partition: Partition, first: int) -> None:
        """Print a partition from an offset on, and remember where it ended."""
        next_offset = self._printer.print(self._scan(partition, first))
        self._seen[partition.key] = (partition.size, first if next_offset is None else max(first, next_offset))

    def follow(self, *, is_local: bool) -> None:
        """Print what is new until the printer is done or the process is interrupted."""
        while not self._printer.is_done:
            time.sleep(_SECONDS if is_local else _SECONDS_OF_STORE)
            # retention may delete a segment that was just found: the log is listed again
            with suppress(FileNotFoundError):
                for partition in self._find():
                    size, first = self._seen.get(partition.key, (-1, 0))
                    if partition.size != size and not self._printer.is_done:
                        self.print(partition, first)
