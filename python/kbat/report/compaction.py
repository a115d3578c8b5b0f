"""How far compaction is: the part of each partition that the broker's cleaner has not read yet.

| file | content |
|---|---|
| `cleaner-offset-checkpoint` in the log directory | the first offset that was not compacted, by partition |

The dirty ratio is the broker's own: bytes of segments from that offset on, without the last segment, divided by the
bytes of these segments and of those before. A cleaner runs from `min.cleanable.dirty.ratio` on, 0.5 by default.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kbat.results
from kbat.report.headers import Partition

_CHECKPOINT = "cleaner-offset-checkpoint"


@dataclass(frozen=True)
class Compaction:
    """The state of a partition that is compacted.

    Attributes:
        first_dirty_offset: The first offset that was not compacted; None if the broker has not recorded it.
        clean_bytes: Bytes of the segments before it.
        dirty_bytes: Bytes of the segments from it on, without the last one.
        active_bytes: Bytes of the last segment.
        kept: Part of the offsets that still have a record; None if unknown.
        horizons: Batches whose tombstones or markers a cleaner may remove after a time.
        last_horizon: The latest of these times, milliseconds since the epoch.
    """

    first_dirty_offset: int | None
    clean_bytes: int
    dirty_bytes: int
    active_bytes: int
    kept: float | None
    horizons: int
    last_horizon: int | None

    @property
    def dirty_ratio(self) -> float | None:
        """The dirty part of the segments that may be compacted; None if there is none."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total and self.first_dirty_offset is not None else None


def offsets(paths: Sequence[str], options: Mapping[str, Any]) -> tuple[dict[tuple[str, int], int], list[str]]:
    """Return the first offsets that were not compacted, of log directories and of local partition directories.

    The second part are messages about checkpoints that can't be read.
    """
    found: dict[tuple[str, int], int] = {}
    errors: list[str] = []
    for path in paths:
        try:
            found.update(_of_log_directory(path, options) or _beside_partition(path))
        except (kbat.KbatError, OSError) as error:
            errors.append(str(error))
    return found, errors


def _of_log_directory(path: str, options: Mapping[str, Any]) -> dict[tuple[str, int], int]:
    try:
        directory = kbat.LogDirectory(path, **options)
    except (ValueError, OSError):
        # a partition directory or a file
        return {}
    return directory.checkpoints.get(_CHECKPOINT, {})


def _beside_partition(path: str) -> dict[tuple[str, int], int]:
    checkpoint = Path(path).resolve().parent / _CHECKPOINT
    if not checkpoint.is_file():
        return {}
    entries = kbat.Checkpoint(checkpoint).entries
    return {(one.topic, one.partition): one.offset for one in entries if isinstance(one, kbat.results.PartitionOffset)}


def state(
    partition: Partition, segments: Sequence[kbat.results.SegmentFile], first_dirty_offset: int | None
) -> Compaction:
    """Return the state of a partition with segments in the order of their offsets."""
    *older, active = segments
    if first_dirty_offset is None:
        clean = dirty = 0
    else:
        clean = sum(one.size for one in older if (one.base_offset or 0) < first_dirty_offset)
        dirty = sum(one.size for one in older) - clean
    return Compaction(
        first_dirty_offset=first_dirty_offset,
        clean_bytes=clean,
        dirty_bytes=dirty,
        active_bytes=active.size,
        kept=_kept(partition),
        horizons=partition.horizons,
        last_horizon=partition.last_horizon,
    )


def _kept(partition: Partition) -> float | None:
    if partition.first_offset is None or partition.end_offset is None or partition.sums.uncounted_batches:
        return None
    span = partition.end_offset - partition.first_offset
    return min(1.0, partition.sums.records / span) if span > 0 else None
