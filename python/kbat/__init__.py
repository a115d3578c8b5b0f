"""Kafka's record format as a library: reads and writes record batches and log segments without a broker.

```python
import kbat

for batch in kbat.read_batches("orders-0/00000000000000000000.log"):
    for record in batch:
        print(record.offset, record.key, record.value)

kbat.scan("/var/lib/kafka/data").to_polars()
```

`offset` is a Kafka offset, `position` a byte position; timestamps are milliseconds since the epoch, UTC.
"""

import importlib
from typing import TYPE_CHECKING, Any

from kbat._core import (
    Batch,
    BatchIterator,
    ControlRecord,
    Limits,
    Record,
    RecordIterator,
    SegmentFile,
    __version__,
    find_segments,
    read_batches,
)
from kbat._core.arrow import (
    EncodedBatch,
    EncodedBatchIterator,
    Scan,
    ScanStats,
    encode,
    encode_batches,
    scan,
    split,
)
from kbat._core.build import (
    BatchBuilder,
    Validation,
    batch_size,
    convert,
    end_transaction_marker,
    partition_for_key,
    set_base_offset,
    set_log_append_time,
    set_partition_leader_epoch,
    validate,
)
from kbat._core.files import (
    AbortedTransaction,
    Checkpoint,
    EpochEntry,
    OffsetIndex,
    PartitionOffset,
    ProducerEntry,
    ProducerSnapshot,
    TimeIndex,
    TransactionIndex,
)
from kbat._core.log import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    LogDirectory,
    MetaProperties,
    OffsetPlace,
    PartitionLog,
    Segment,
    StrayDirectory,
    TimestampPlace,
)
from kbat._core.parquet import ParquetFile, write_parquet
from kbat._core.repair import (
    DroppedRange,
    Finding,
    RepairedSegment,
    RepairReport,
    Report,
    rebuild_indexes,
    recover,
    salvage,
    verify,
)
from kbat._core.restore import OpenTransaction, RestoredPartition, RestoredSegment, RestoreReport, restore
from kbat._core.rewrite import (
    CompactReport,
    FilterReport,
    RewriteCounts,
    RewriteReport,
    compact,
    filter,  # noqa: A004 - kbat.filter is not meant to be imported by its name alone
    retain_records,
    rewrite,
)
from kbat._core.writer import LogWriter
from kbat.errors import (
    CorruptError,
    CrcError,
    DecompressionError,
    KbatError,
    LimitError,
    TruncatedError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from kbat.frames import dataset, register_duckdb, scan_polars
    from kbat.internal import consumer_groups, consumer_offsets, schemas, topics, transactional_ids
    from kbat.producer_states import Producer, producers

# Written in Python, and imported when they are used: they take as long as the rest of the package.
_LATER = {
    "Producer": "kbat.producer_states",
    "consumer_groups": "kbat.internal",
    "consumer_offsets": "kbat.internal",
    "dataset": "kbat.frames",
    "producers": "kbat.producer_states",
    "register_duckdb": "kbat.frames",
    "scan_polars": "kbat.frames",
    "schemas": "kbat.internal",
    "topics": "kbat.internal",
    "transactional_ids": "kbat.internal",
}

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "AbortedTransaction",
    "Batch",
    "BatchBuilder",
    "BatchIterator",
    "Checkpoint",
    "CompactReport",
    "ControlRecord",
    "CorruptError",
    "CrcError",
    "DecompressionError",
    "DroppedRange",
    "EncodedBatch",
    "EncodedBatchIterator",
    "EpochEntry",
    "FilterReport",
    "Finding",
    "KbatError",
    "LimitError",
    "Limits",
    "LogDirectory",
    "LogWriter",
    "MetaProperties",
    "OffsetIndex",
    "OffsetPlace",
    "OpenTransaction",
    "ParquetFile",
    "PartitionLog",
    "PartitionOffset",
    "Producer",
    "ProducerEntry",
    "ProducerSnapshot",
    "Record",
    "RecordIterator",
    "RepairReport",
    "RepairedSegment",
    "Report",
    "RestoreReport",
    "RestoredPartition",
    "RestoredSegment",
    "RewriteCounts",
    "RewriteReport",
    "Scan",
    "ScanStats",
    "Segment",
    "SegmentFile",
    "StrayDirectory",
    "TimeIndex",
    "TimestampPlace",
    "TransactionIndex",
    "TruncatedError",
    "UnsupportedError",
    "Validation",
    "__version__",
    "batch_size",
    "compact",
    "consumer_groups",
    "consumer_offsets",
    "convert",
    "dataset",
    "encode",
    "encode_batches",
    "end_transaction_marker",
    "filter",
    "find_segments",
    "partition_for_key",
    "producers",
    "read_batches",
    "rebuild_indexes",
    "recover",
    "register_duckdb",
    "restore",
    "retain_records",
    "rewrite",
    "salvage",
    "scan",
    "scan_polars",
    "schemas",
    "set_base_offset",
    "set_log_append_time",
    "set_partition_leader_epoch",
    "split",
    "topics",
    "transactional_ids",
    "validate",
    "verify",
    "write_parquet",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a function or a class
    if name not in _LATER:
        message = f"module 'kbat' has no attribute {name!r}"
        raise AttributeError(message)
    found = globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
