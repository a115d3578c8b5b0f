"""Which task reads which segments.

```
paths ──► segments, sorted by topic, partition, base offset ──► runs of neighbours of about equal size ──► one task each
```

A Python task costs some 50 ms before its first row, so small segments go together; a task's size is bound by
`maxPartitionBytes` so that many machines get work. Listings are taken once, on the driver, and travel in the tasks.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

import kbat

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kbat.spark.options import ReadOptions

# Below this many bytes a task is mostly its own start.
MIN_TASK_LEN = 4 << 20


@dataclass(frozen=True)
class Segment:
    """A segment file as the driver found it: its absolute path and its bytes."""

    path: str
    size: int


@dataclass(frozen=True)
class SegmentsPartition(InputPartition):
    """What one task reads, in this order."""

    segments: tuple[Segment, ...]

    @property
    def size(self) -> int:
        """Bytes of all segments together."""
        return sum(segment.size for segment in self.segments)


def plan(options: ReadOptions) -> list[SegmentsPartition]:
    """List the segments of all paths and share them out. The list is never empty: no rows are read by one idle task.

    Raises `FileNotFoundError` for a path where nothing is, `ValueError` for one that is not in a local file system.
    """
    found = [segment for path in options.all_paths for segment in _segments(path)]
    segments = [segment for segment in found if segment.size]
    return list(pack(segments, options.max_partition_bytes, os.cpu_count() or 1)) or [SegmentsPartition(())]


def pack(segments: Sequence[Segment], max_len: int, cores: int) -> Iterator[SegmentsPartition]:
    """Group neighbours into tasks of about equal size, at most `max_len` bytes; a larger segment is a task of its own.

    There are as many tasks as that takes, or one for each core if each then has `MIN_TASK_LEN` bytes.
    """
    total = sum(segment.size for segment in segments)
    count = max(-(-total // max_len), min(cores, total // MIN_TASK_LEN), 1)
    run: list[Segment] = []
    run_len = run_place = start = 0
    for segment in segments:
        # a segment belongs to the task in whose share of all bytes its middle lies
        place = (2 * start + segment.size) * count // (2 * total)
        if run and (place != run_place or run_len + segment.size > max_len):
            yield SegmentsPartition(tuple(run))
            run, run_len = [], 0
        run.append(segment)
        run_len += segment.size
        run_place = place
        start += segment.size
    if run:
        yield SegmentsPartition(tuple(run))


def _segments(path: str) -> Iterator[Segment]:
    for local in _expand(_local(path)):
        for segment in kbat.find_segments(local):
            yield Segment(os.fspath(segment.path), segment.size)


def _local(path: str) -> str:
    """Return the absolute path that a path or `file:` URL means."""
    scheme, colon, rest = path.partition(":")
    if colon and scheme.lower() == "file":
        path = "/" + rest.lstrip("/")
    elif colon and rest.startswith("/") and scheme.isalnum():
        message = (
            f"kbat: {path} is not in a local file system; "
            "every task opens files by a path that all machines have: mount or copy it"
        )
        raise ValueError(message)
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 -- strings in, strings out


def _expand(path: str) -> list[str]:
    """Return the path, or what it matches if it is a glob."""
    if os.path.exists(path):  # noqa: PTH110 -- strings in, strings out
        return [path]
    found = sorted(glob.glob(path)) if glob.has_magic(path) else []  # noqa: PTH207 -- strings in, strings out
    if not found:
        message = f"kbat: nothing is at {path}; a path is a .log file, a partition directory or a log directory"
        raise FileNotFoundError(message)
    return found
