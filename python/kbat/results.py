"""Classes of what functions return: reports, positions, entries of files, iterators.

They are for type annotations and `isinstance`; only functions of kbat create them. Each is an attribute of `kbat`, too.
"""

from typing import TYPE_CHECKING, Any

from kbat._core import BatchIterator, ControlRecord, RecordIterator, SegmentFile
from kbat._core.arrow import ScanStats
from kbat._core.build import Validation
from kbat._core.encode import EncodedBatch, EncodedBatchIterator
from kbat._core.files import AbortedTransaction, EpochEntry, PartitionOffset, ProducerEntry
from kbat._core.log import MetaProperties, OffsetPlace, StrayDirectory, TimestampPlace
from kbat._core.parquet import ParquetFile
from kbat._core.repair import DroppedRange, Finding, RepairedSegment, RepairReport, Report
from kbat._core.restore import OpenTransaction, RestoredPartition, RestoredSegment, RestoreReport
from kbat._core.rewrite import CompactReport, FilterReport, RewriteCounts, RewriteReport

if TYPE_CHECKING:
    from kbat.producer_states import Producer

__all__ = [
    "AbortedTransaction",
    "BatchIterator",
    "CompactReport",
    "ControlRecord",
    "DroppedRange",
    "EncodedBatch",
    "EncodedBatchIterator",
    "EpochEntry",
    "FilterReport",
    "Finding",
    "MetaProperties",
    "OffsetPlace",
    "OpenTransaction",
    "ParquetFile",
    "PartitionOffset",
    "Producer",
    "ProducerEntry",
    "RecordIterator",
    "RepairReport",
    "RepairedSegment",
    "Report",
    "RestoreReport",
    "RestoredPartition",
    "RestoredSegment",
    "RewriteCounts",
    "RewriteReport",
    "ScanStats",
    "SegmentFile",
    "StrayDirectory",
    "TimestampPlace",
    "Validation",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class
    if name != "Producer":
        message = f"module 'kbat.results' has no attribute {name!r}"
        raise AttributeError(message)
    from kbat.producer_states import Producer as Found  # noqa: PLC0415 - its module takes as long as the package

    globals()[name] = Found
    return Found


def __dir__() -> list[str]:
    return sorted(__all__)
