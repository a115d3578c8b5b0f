"""Counts of the rows and bytes that tasks read: each writes a file into `metricsPath`, and `metrics` adds them up.

Spark gives a Python data source no way to count: accumulators don't reach it, and its metrics are those of the JVM. So
each task leaves a small file, named after what it read, which a second run of the task replaces.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from kbat.spark.listing import local_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    import kbat
    from kbat.spark.plan import ReadPartition

_SUFFIX = ".kbat-metrics.json"


class Tally:
    """Counts what one task reads, and writes it to a file."""

    def __init__(self, directory: str | None, partition: ReadPartition) -> None:
        self.directory = directory
        self.name = hashlib.sha256(repr(partition.pieces).encode()).hexdigest()[:32] + _SUFFIX
        self.counts: dict[str, int] = {}

    def over(self, scan: kbat.Scan) -> Iterator[pa.RecordBatch]:
        """Yield the Arrow batches of a scan, and count what it read."""
        passing = scan.to_batches()
        try:
            yield from passing
        finally:
            self.add(passing.stats)

    def add(self, stats: kbat.ScanStats) -> None:
        """Count what a pass read."""
        for name, count in stats.to_dict().items():
            self.counts[name] = self.counts.get(name, 0) + count

    def write(self) -> None:
        """Write the counts, if the option `metricsPath` is set."""
        if self.directory is None:
            return
        path = Path(self.directory)
        path.mkdir(parents=True, exist_ok=True)
        begun = path / f".{self.name}.{os.getpid()}"
        begun.write_text(json.dumps(self.counts))
        begun.replace(path / self.name)


def metrics(path: str | os.PathLike[str]) -> dict[str, int]:
    """Add up the counts in a directory that the option `metricsPath` named.

    Returns:
        `tasks`, and by the names of `kbat.ScanStats`: `batches`, `records`, `bytes_read`, `batches_skipped`,
        `bytes_lost`, `offsets_lost`. A task that was run again counts once; one that a `LIMIT` stopped early counts
        what it had read. A query that is run again, with the same files and the same bounds, replaces its counts; give
        each query a directory of its own.

    Raises:
        ValueError: A path that is not in a local file system.
    """
    total: dict[str, int] = {"tasks": 0}
    for file in sorted(Path(local_path(os.fspath(path))).glob(f"*{_SUFFIX}")):
        total["tasks"] += 1
        for name, count in json.loads(file.read_text()).items():
            total[name] = total.get(name, 0) + count
    return total
