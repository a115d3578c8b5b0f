"""Kafka's record format as a library: reads and writes record batches and log segments without a broker.

```python
import kbat

for batch in kbat.read_batches("orders-0/00000000000000000000.log"):
    for record in batch:
        print(record.offset, record.key, record.value)

kbat.scan("/var/lib/kafka/data").to_polars()
```

`offset` is a Kafka offset, `position` a byte position; timestamps are milliseconds since the epoch, UTC.

The classes of what functions return are in `kbat.results`, functions for the bytes of single batches in `kbat.batches`,
all exceptions in `kbat.errors`. Their names are attributes of `kbat`, too.
"""

import importlib
from typing import TYPE_CHECKING, Any

from kbat._core import Batch, Limits, Record, __version__, find_segments, read_batches
from kbat._core.arrow import Scan, scan, split
from kbat._core.build import BatchBuilder, convert, validate
from kbat._core.encode import encode, encode_batches
from kbat._core.files import Checkpoint, OffsetIndex, ProducerSnapshot, TimeIndex, TransactionIndex
from kbat._core.log import EARLIEST, LATEST, MAX_TIMESTAMP, LogDirectory, PartitionLog, Segment
from kbat._core.parquet import write_parquet
from kbat._core.repair import rebuild_indexes, recover, salvage, verify
from kbat._core.restore import restore
from kbat._core.rewrite import (
    compact,
    filter,  # noqa: A004 - kbat.filter is not meant to be imported by its name alone
    rewrite,
)
from kbat._core.writer import LogWriter
from kbat.errors import CorruptError, KbatError

if TYPE_CHECKING:
    from kbat import batches as batches
    from kbat import results as results
    from kbat.batches import *  # noqa: F403 - as __getattr__ does
    from kbat.errors import *  # noqa: F403
    from kbat.frames import dataset, register_duckdb, scan_polars
    from kbat.internal import consumer_groups, consumer_offsets, schemas, topics, transactional_ids
    from kbat.producer_states import producers
    from kbat.results import *  # noqa: F403

# Written in Python, and imported when they are used: they take as long as the rest of the package.
_LATER = {
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

# Modules whose names are attributes of this one, too, but not in `__all__`.
_MORE = ("kbat.results", "kbat.batches", "kbat.errors")

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Batch",
    "BatchBuilder",
    "Checkpoint",
    "CorruptError",
    "KbatError",
    "Limits",
    "LogDirectory",
    "LogWriter",
    "OffsetIndex",
    "PartitionLog",
    "ProducerSnapshot",
    "Record",
    "Scan",
    "Segment",
    "TimeIndex",
    "TransactionIndex",
    "__version__",
    "compact",
    "consumer_groups",
    "consumer_offsets",
    "convert",
    "dataset",
    "encode",
    "encode_batches",
    "filter",
    "find_segments",
    "producers",
    "read_batches",
    "rebuild_indexes",
    "recover",
    "register_duckdb",
    "restore",
    "rewrite",
    "salvage",
    "scan",
    "scan_polars",
    "schemas",
    "split",
    "topics",
    "transactional_ids",
    "validate",
    "verify",
    "write_parquet",
]


if not TYPE_CHECKING:  # a type checker would accept every name

    def __getattr__(name: str) -> Any:  # noqa: ANN401 - a function, a class or a module
        if f"kbat.{name}" in _MORE:
            return importlib.import_module(f"kbat.{name}")
        in_more = (more for more in _MORE if name in importlib.import_module(more).__all__)
        module = _LATER.get(name) or next(in_more, None)
        if module is None:
            message = f"module 'kbat' has no attribute {name!r}"
            raise AttributeError(message)
        found = globals()[name] = getattr(importlib.import_module(module), name)
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
