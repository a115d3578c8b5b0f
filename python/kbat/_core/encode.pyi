# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Encode Arrow data to record batches."""

from typing import Self, final

from kbat._core import _Compression, _Time, _TimestampType
from kbat._core.arrow import _ArrowArray, _ArrowStream

__all__ = [
    "EncodedBatch",
    "EncodedBatchIterator",
    "encode",
    "encode_batches",
    "encode_settings",
]

def encode(
    data: _ArrowStream | _ArrowArray,
    *,
    compression: _Compression = "none",
    level: int | None = None,
    batch_bytes: int = 131072,
    batch_rows: int | None = None,
    base_offset: int | None = None,
    timestamp: _Time | None = None,
    timestamp_type: _TimestampType = "CreateTime",
    log_append_time: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    partition_leader_epoch: int = -1,
    magic: int = 2,
) -> bytes:
    """Encode Arrow data to record batches, as one ``bytes`` object.

    See :func:`encode_batches` for the columns and the options.

    Example:
        >>> frame = pl.DataFrame({"key": [b"k"], "value": [b"v"]})
        >>> data = kbat.encode(frame, timestamp=1700000000000, compression="zstd")
    """

def encode_batches(
    data: _ArrowStream | _ArrowArray,
    *,
    compression: _Compression = "none",
    level: int | None = None,
    batch_bytes: int = 131072,
    batch_rows: int | None = None,
    base_offset: int | None = None,
    timestamp: _Time | None = None,
    timestamp_type: _TimestampType = "CreateTime",
    log_append_time: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    partition_leader_epoch: int = -1,
    magic: int = 2,
) -> EncodedBatchIterator:
    """Encode Arrow data to record batches, one by one.

    The columns are named as in Spark's Kafka source and sink. Other columns are ignored.

    * ``value``: binary or string of any Arrow kind.
    * ``key``: binary or string of any Arrow kind; without the column all keys are null.
    * ``timestamp``: timestamp of any unit and zone, or int64 milliseconds since the epoch.
    * ``headers``: list<struct<key, value>> or map; keys and values binary or string.
    * ``offset``: int64, rising; without the column offsets count from ``base_offset``.

    Args:
        data: Anything with the Arrow PyCapsule interface: tables, batches and readers of pyarrow, frames of polars,
            DuckDB and pandas, a :class:`Scan`.
        compression: Codec of the batches; zstd needs magic 2.
        level: Compression level, numbered as in Kafka.
        batch_bytes: Maximum bytes of a batch before compression. A single larger record gets its own batch.
        batch_rows: Maximum number of records in a batch.
        base_offset: Offset of the first record if there is no column ``offset``; 0 by default.
        timestamp: Milliseconds since the epoch, for records without a timestamp. Required if there is no column
            ``timestamp``; without it, nulls in that column become -1, Kafka's "none".
        timestamp_type: ``"CreateTime"`` or ``"LogAppendTime"``; magic 0 has no timestamps.
        log_append_time: The timestamp of all records with ``"LogAppendTime"``, milliseconds since the epoch.
        producer_id: Producer id, -1 for none. If set, ``producer_epoch`` and ``base_sequence`` are required.
        producer_epoch: Producer epoch, -1 for none.
        base_sequence: Sequence of the first record, -1 for none.
        transactional: Whether the batches belong to a transaction.
        partition_leader_epoch: Leader epoch, -1 for none.
        magic: Message format: 0, 1 or 2.

    Raises:
        TypeError: ``data`` does not have the Arrow PyCapsule interface.
        ValueError: Options contradict each other, or a column is missing or of an unsupported type. While iterating:
            Kafka's rules forbid a row.

    Example:
        >>> for batch in kbat.encode_batches(table, compression="lz4"):
        ...     print(batch.base_offset, batch.record_count, len(batch.bytes))
    """

def encode_settings(encoder: EncodedBatchIterator) -> str:
    """Return the options of an encoder as JSON, which Spark's JVM parses."""

@final
class EncodedBatchIterator:
    """Iterates over record batches; see :func:`encode_batches`."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> EncodedBatch: ...

@final
class EncodedBatch:
    """A record batch encoded from Arrow rows; see :func:`encode_batches`.

    Below magic 2 without compression: a group of messages that would otherwise form one batch.
    """

    @property
    def bytes(self) -> bytes:
        """Bytes of the batch."""

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""

    @property
    def record_count(self) -> int:
        """Number of records."""
