# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Rewrite a partition directory into a new one: compaction, filtering, recompression."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias, final

from typing_extensions import Buffer

from kbat._core import Limits, Record, _Compression, _EncryptionKeys

_Path: TypeAlias = str | os.PathLike[str]
_ProgressCallback: TypeAlias = Callable[[int, int], object]

__all__ = [
    "CompactReport",
    "FilterReport",
    "RecordMatcher",
    "RewriteCounts",
    "RewriteReport",
    "compact",
    "filter",
    "retain_records",
    "rewrite",
]

def compact(
    path: _Path,
    out: _Path,
    *,
    delete_retention_ms: int = 86_400_000,
    now_ms: int | None = None,
    first_dirty_offset: int | None = None,
    min_compaction_lag_ms: int = 0,
    include_active: bool = False,
    segment_bytes: int = ...,
    index_interval_bytes: int = 4096,
    max_index_bytes: int = 10_485_760,
    producer_expiration_ms: int | None = None,
    max_map_bytes: int = ...,
    check_crc: bool = True,
    limits: Limits | None = None,
    progress: _ProgressCallback | None = None,
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> CompactReport:
    """Compact a partition into a new directory, as a broker's cleaner does.

    Keeps the last record of each key. Keeps tombstones, and transaction markers without data, until the delete
    horizon that their first compaction sets. Drops records without a key and those of aborted transactions. Drops
    batches without records, unless they hold the last sequence of a producer or end the compacted part. Copies the
    last segment and everything from the first open transaction on. Converts messages of magic 0 and 1 to batches of
    magic 2.

    Args:
        path: The partition directory, or its URL. It is only read.
        out: Directory to write, or its URL; it must be missing or empty. It is created when it is complete.
        delete_retention_ms: How long tombstones are kept after their first compaction.
        now_ms: The current time for all delays, milliseconds since the epoch. Default: the system clock.
        first_dirty_offset: First offset that was not compacted before. Default: the log's start.
        min_compaction_lag_ms: Segments with a younger record, and all later segments, are not compacted.
        include_active: Whether the last segment is compacted too.
        segment_bytes: Adjacent segments are merged up to this size.
        index_interval_bytes: Bytes between two index entries.
        max_index_bytes: Maximum bytes of an index.
        producer_expiration_ms: Empty batches of producers that were idle for this long are dropped. Default: none are.
        max_map_bytes: Approximate memory for keys; more keys use temporary files next to ``out``.
        check_crc: Whether checksums are checked.
        limits: Bounds on untrusted input.
        progress: Called with the bytes done and the total bytes, every few megabytes.
        storage_options: How to open the store of a URL, with the names of object_store, such as
            ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
            ``AWS_ACCESS_KEY_ID``, or the role of the machine.
        store: A store of obstore; paths are relative to it.
        encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
            function that returns the PEM text of an id.
        remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
            offset is read once, from ``path`` if it is there. ``storage_options`` are those of the URLs,
            and ``store`` is that of ``remote``.
        remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
            ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
            partitions in the log directory, if any.

    Raises:
        ValueError: ``out`` is not empty, ``path`` contains no segment, or the keys need more than 256 times
            ``max_map_bytes``.
        CorruptError: A batch, record or checksum is wrong.
        OSError: Reading or writing failed.

    Example:
        >>> kbat.compact("orders-0", "compacted/orders-0", include_active=True).dropped["superseded"]
    """

def filter(  # noqa: A001 - as kbat.filter
    path: _Path,
    out: _Path,
    predicate: Callable[[Record], object] | RecordMatcher | None = None,
    *,
    drop_keys: Iterable[Buffer] | None = None,
    index_interval_bytes: int = 4096,
    max_index_bytes: int = 10_485_760,
    check_crc: bool = True,
    limits: Limits | None = None,
    progress: _ProgressCallback | None = None,
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> FilterReport:
    """Write a partition without some of its records into a new directory, for example to delete one user's data.

    The remaining records keep their offset, timestamp, headers, producer and sequence. Control records are kept and
    not passed to the predicate. A batch without records is dropped, unless its header is needed: it holds the last
    sequence of its producer, belongs to an open transaction, or ends the log.

    Args:
        path: The partition directory, or its URL. It is only read.
        out: Directory to write, or its URL; it must be missing or empty. It is created when it is complete.
        predicate: Called with each record; records for which it returns true are kept. An exception that it raises
            ends the call, and ``out`` is not created.
        drop_keys: Keys whose records are dropped without a call of the predicate.
        index_interval_bytes: Bytes between two index entries.
        max_index_bytes: Maximum bytes of an index.
        check_crc: Whether checksums are checked.
        limits: Bounds on untrusted input.
        progress: Called with the bytes done and the total bytes, every few megabytes.
        storage_options: How to open the store of a URL, with the names of object_store, such as
            ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
            ``AWS_ACCESS_KEY_ID``, or the role of the machine.
        store: A store of obstore; paths are relative to it.
        encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
            function that returns the PEM text of an id.
        remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
            offset is read once, from ``path`` if it is there. ``storage_options`` are those of the URLs,
            and ``store`` is that of ``remote``.
        remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
            ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
            partitions in the log directory, if any.

    Raises:
        ValueError: ``predicate`` and ``drop_keys`` are both missing, ``out`` is not empty, or ``path`` contains no
            segment.
        CorruptError: A batch, record or checksum is wrong.
        OSError: Reading or writing failed.

    Example:
        >>> kbat.filter("orders-0", "clean/orders-0", lambda record: b"alice" not in (record.value or b""))
    """

def retain_records(
    data: Buffer,
    predicate: Callable[[Record], object],
    *,
    retention: Literal["delete", "delete_empty", "retain_empty"] = "delete_empty",
    delete_horizon_ms: int | None = None,
    is_marker_of_empty_transaction: bool = False,
    upgrade: bool = False,
    limits: Limits | None = None,
) -> bytes:
    """Remove some records from batches, as Kafka's ``MemoryRecords.filterTo`` does.

    Checksums are not verified. A batch that loses records is rebuilt with its own codec, offsets, producer and
    leader epoch; the others are copied.

    Args:
        data: Bytes-like: whole batches, of any format and in any order. An incomplete batch at the end is omitted.
        predicate: Called with each record, including control records; records for which it returns true are kept.
        retention: What to do with batches without records: ``"delete_empty"`` drops them, ``"retain_empty"`` keeps
            their headers, ``"delete"`` drops every batch without reading it.
        delete_horizon_ms: Delete horizon for batches that keep a tombstone and do not have a horizon.
        is_marker_of_empty_transaction: Whether batches without a tombstone get that horizon too.
        upgrade: Whether messages of magic 0 and 1 become batches of magic 2, as in the cleaner of current Kafka
            versions.
        limits: Bounds on untrusted input.

    Raises:
        CorruptError: A batch or record can't be read.
        ValueError: ``retention`` is unknown, or records can't be rewritten.
    """

def rewrite(
    path: _Path,
    out: _Path,
    *,
    compression: _Compression | None = None,
    level: int | None = None,
    batch_bytes: int | None = None,
    magic: int | None = None,
    keep_producer_state: bool = True,
    index_interval_bytes: int = 4096,
    max_index_bytes: int = 10_485_760,
    check_crc: bool = True,
    limits: Limits | None = None,
    progress: _ProgressCallback | None = None,
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> RewriteReport:
    """Rewrite a partition into a new directory with another codec, batch size or message format.

    Offsets and timestamps are kept. A batch with a producer id keeps its boundaries unless producer state is
    removed. If it is removed, or below magic 2, records of aborted transactions and all markers are dropped, and a
    log with an open transaction is rejected.

    Args:
        path: The partition directory, or its URL. It is only read.
        out: Directory to write, or its URL; it must be missing or empty. It is created when it is complete.
        compression: Codec to write with. Default: each batch keeps its codec. Control batches are never compressed.
        level: Compression level, numbered as in Kafka.
        batch_bytes: Approximate bytes of a batch before compression: adjacent batches are joined up to this size,
            and larger ones are split.
        magic: Message format. Default: each batch keeps its format.
        keep_producer_state: Whether producer ids, epochs, sequences, transactions and producer snapshots are kept.
        index_interval_bytes: Bytes between two index entries.
        max_index_bytes: Maximum bytes of an index.
        check_crc: Whether checksums are checked.
        limits: Bounds on untrusted input.
        progress: Called with the bytes done and the total bytes, every few megabytes.
        storage_options: How to open the store of a URL, with the names of object_store, such as
            ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
            ``AWS_ACCESS_KEY_ID``, or the role of the machine.
        store: A store of obstore; paths are relative to it.
        encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
            function that returns the PEM text of an id.
        remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
            offset is read once, from ``path`` if it is there. ``storage_options`` are those of the URLs,
            and ``store`` is that of ``remote``.
        remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
            ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
            partitions in the log directory, if any.

    Raises:
        ValueError: Options contradict each other, ``out`` is not empty, ``path`` contains no segment, or a
            transaction is open and transactions can't be kept.
        CorruptError: A batch or checksum is wrong, or a record of a batch that changes. Records of other batches are
            copied without parsing.
        UnsupportedError: A batch uses zstd, the target is below magic 2, and ``compression`` is not set.
        OSError: Reading or writing failed.

    Example:
        >>> kbat.rewrite("orders-0", "small/orders-0", compression="zstd", level=19, batch_bytes=1 << 20)
    """

@final
class RewriteCounts:
    """Counts of what was read or written."""

    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

    @property
    def segments(self) -> int:
        """Number of segments."""

    @property
    def batches(self) -> int:
        """Number of batches. A message of magic 0 or 1 outside of a compressed set counts as one."""

    @property
    def records(self) -> int:
        """Number of records, including control records."""

    @property
    def bytes(self) -> int:
        """Bytes of batches."""

    def to_dict(self) -> dict[str, int]:
        """Return the fields as a dictionary."""

@final
class CompactReport:
    """The result of :func:`compact`."""

    @property
    def read(self) -> RewriteCounts:
        """Counts of the input in the compacted part."""

    @property
    def written(self) -> RewriteCounts:
        """Counts of the output in the compacted part."""

    @property
    def untouched_segments(self) -> int:
        """Number of segments after that part, which were copied."""

    @property
    def dropped(self) -> dict[str, int]:
        """Records dropped, by reason: ``superseded``, ``tombstones``, ``null_keys``, ``aborted``, ``markers``."""

    @property
    def tombstones_retained(self) -> int:
        """Number of tombstones kept."""

    @property
    def delete_horizons_set(self) -> int:
        """Number of batches that got a delete horizon."""

    @property
    def emptied_batches(self) -> int:
        """Number of batches of which only the header was kept."""

    @property
    def first_dirty_offset(self) -> int:
        """First offset that was not compacted before."""

    @property
    def first_uncleanable_offset(self) -> int:
        """First offset after the compacted part: the next run's ``first_dirty_offset``."""

    @property
    def last_stable_offset(self) -> int:
        """First offset of the earliest open transaction, or the end of the log."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""

    @property
    def key_parts(self) -> int:
        """Number of parts into which the keys were split; 1 if all keys fit ``max_map_bytes``."""

    @property
    def tail_bytes(self) -> int:
        """Bytes at the ends of segments that are not a batch, such as a truncated one; they are not copied."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""

@final
class FilterReport:
    """The result of :func:`filter`."""

    @property
    def read(self) -> RewriteCounts:
        """Counts of the input."""

    @property
    def written(self) -> RewriteCounts:
        """Counts of the output."""

    @property
    def dropped_records(self) -> int:
        """Number of records dropped."""

    @property
    def dropped_batches(self) -> int:
        """Number of batches dropped because they had no record left."""

    @property
    def emptied_batches(self) -> int:
        """Number of batches of which only the header was kept."""

    @property
    def rebuilt_batches(self) -> int:
        """Number of batches that lost some of their records."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""

    @property
    def tail_bytes(self) -> int:
        """Bytes at the ends of segments that are not a batch, such as a truncated one; they are not copied."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""

@final
class RewriteReport:
    """The result of :func:`rewrite`."""

    @property
    def read(self) -> RewriteCounts:
        """Counts of the input."""

    @property
    def written(self) -> RewriteCounts:
        """Counts of the output."""

    @property
    def dropped(self) -> dict[str, int]:
        """Records dropped because transactions can't be kept: ``aborted``, ``control``."""

    @property
    def losses(self) -> list[str]:
        """Features that the message format does not support, by the names of :func:`convert`."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch of the source."""

    @property
    def tail_bytes(self) -> int:
        """Bytes at the ends of segments that are not a batch, such as a truncated one; they are not copied."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""

@final
class RecordMatcher:
    """Conditions on records, as the predicate of :func:`kbat.filter`: records that meet all of them are kept.

    Args:
        start_offset: Only records from this offset on.
        end_offset: Only records before this offset.
        start_timestamp: Only records with this timestamp in milliseconds or a later one.
        end_timestamp: Only records with an earlier timestamp in milliseconds.
        key_pattern: Only records whose whole key matches this regular expression, in the syntax of Rust's crate
            ``regex``.
        value_pattern: Only records in whose value this regular expression is found.
        headers: Only records that have all of these headers: pairs of a name, and a value or None for any value.
        fixed_strings: Whether both patterns are texts instead of regular expressions.
        invert: Whether the records that do not meet all conditions are kept instead.

    Raises:
        ValueError: A pattern that is not a regular expression.
    """

    def __new__(
        cls,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: int | None = None,
        end_timestamp: int | None = None,
        key_pattern: str | None = None,
        value_pattern: str | None = None,
        headers: Sequence[tuple[str, str | None]] | None = None,
        fixed_strings: bool = False,
        invert: bool = False,
    ) -> Self: ...
