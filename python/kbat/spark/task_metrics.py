"""Counts of the rows and bytes that tasks read: each writes a file into `metricsPath`, and `metrics` adds them up.

A Python data source can't report counts to Spark: accumulators are not available, and metrics are those of the JVM. So
each task writes a small file, named after its pieces, which a second run of the task replaces.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from kbat._core.plan import local_path


def metrics(path: str | os.PathLike[str]) -> dict[str, int]:
    """Add up the counts in a directory that was set as the option `metricsPath`.

    Returns:
        `tasks`, and the counts of `kbat.results.ScanStats`: `batches`, `records`, `bytes_read`, `batches_skipped`,
        `bytes_lost`, `offsets_lost`. A task that ran again counts once. A task that a `LIMIT` stopped early
        counts only the part that it read. A query that runs again with the same files and bounds replaces its
        counts, so use a separate directory for each query.

    Raises:
        ValueError: A path that is not in a local file system.
    """
    total: dict[str, int] = {"tasks": 0}
    for file in sorted(Path(local_path(os.fspath(path))).glob("*.kbat-metrics.json")):
        total["tasks"] += 1
        for name, count in json.loads(file.read_text()).items():
            total[name] = total.get(name, 0) + count
    return total
