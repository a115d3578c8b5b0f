"""Counts of the rows and bytes that tasks read: each writes a file into `metricsPath`, and `metrics` adds them up.

A Python data source can't report counts to Spark: accumulators are not available, and metrics are those of the JVM. So
each task writes a small file, named after its pieces, which a second run of the task replaces.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from kbat.spark.stores import local_path

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
        """Yield the Arrow batches of a scan, and add its counts."""
        passing = scan.to_batches()
        try:
            yield from passing
        finally:
            self.add(passing.stats)

    def add(self, stats: kbat.ScanStats) -> None:
        """Add the counts of a scan."""
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
    """Add up the counts in a directory that was set as the option `metricsPath`.

    Returns:
        `tasks`, and the counts of `kbat.ScanStats`: `batches`, `records`, `bytes_read`, `batches_skipped`,
        `bytes_lost`, `offsets_lost`. A task that ran again counts once. A task that a `LIMIT` stopped early
        counts only the part that it read. A query that runs again with the same files and bounds replaces its
        counts, so use a separate directory for each query.

    Raises:
        ValueError: A path that is not in a local file system.
    """
    total: dict[str, int] = {"tasks": 0}
    for file in sorted(Path(local_path(os.fspath(path))).glob(f"*{_SUFFIX}")):
        total["tasks"] += 1
        for name, count in json.loads(file.read_text()).items():
            total[name] = total.get(name, 0) + count
    return total
