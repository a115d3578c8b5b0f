"""Sums over the batches and records of a scan by groups, which the core computes."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import kbat
from kbat._core.arrow import sum_batches
from kbat.cli.progress import ProgressCallback
from kbat.sums import BatchSums, RecordSums, Sizes

#: Name of a group, and its column in the views of batches and records; `day` is computed.
GROUPS = {
    "topic": "topic",
    "codec": "compression",
    "partition": "partition",
    "producer": "producer_id",
    "magic": "magic",
    "day": "day",
}
DAY_MS = 86_400_000

Key = tuple[Any, ...]


def tally_batches(scan: kbat.Scan, keys: Sequence[str], callback: ProgressCallback | None) -> dict[Key, BatchSums]:
    """Sum up batches by the values of some columns. The day of a batch is that of its largest timestamp."""
    groups: dict[Key, BatchSums] = {}
    for key, figures, classes in sum_batches(scan, keys, progress=callback):
        sizes = Sizes(Counter(classes), figures.pop("smallest_batch"), figures.pop("largest_batch"))
        groups[key] = BatchSums(**figures, sizes=sizes)
    return groups


def tally_records(scan: kbat.Scan, keys: Sequence[str], callback: ProgressCallback | None) -> dict[Key, RecordSums]:
    """Sum up records by the values of some columns. The day of a record is that of its timestamp."""
    from kbat._core.arrow import sum_records  # noqa: PLC0415 - only --records needs it

    groups: dict[Key, RecordSums] = {}
    for key, figures, classes in sum_records(scan, keys, progress=callback):
        sizes = Sizes(Counter(classes), figures.pop("smallest_record"), figures.pop("largest_record"))
        groups[key] = RecordSums(**figures, sizes=sizes)
    return groups
