# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Rewriting a partition's directory into a new one: compaction, filtering, recompression."""

import os
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, final

from typing_extensions import Buffer

from kbat._core import Limits, Record

_Path: TypeAlias = str | os.PathLike[str]
_Compression: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]
_ProgressCallback: TypeAlias = Callable[[int, int], object]

__all__ = [
    "CompactReport",
    "FilterReport",
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
) -> CompactReport:
    """Compact a partition into a new directory, as a broker's cleaner does it.

    Of each key the last record stays. Tombstones and transaction markers without data stay until the delete horizon
    that their first compaction sets. Records without a key and those of aborted transactions go. Batches without
    records go, unless they hold the last sequence of a producer or end the compacted part. The last segment and all
    from the first open transaction on are copied. Messages of magic 0 and 1 become batches of magic 2.

    Args:
        path: The partition's directory, which is only read.
        out: Directory to write; it must be missing or empty. It appears when it is complete.
        delete_retention_ms: How long tombstones stay after their first compaction.
        now_ms: The time to go by, milliseconds since the epoch. Default: now.
        first_dirty_offset: Where the part begins that was not compacted before. Default: the log's start.
        min_compaction_lag_ms: Segments with a younger record, and all after them, are not compacted.
        include_active: Whether the last segment is compacted too.
        segment_bytes: Neighbours become one segment up to this size.
        index_interval_bytes: Bytes between two index entries.
        max_index_bytes: Bytes of an index at the most.
        producer_expiration_ms: Producers idle for so long lose their empty batches. Default: none does.
        max_map_bytes: Memory for keys, about; past it, they go through temporary files beside ``out``.
        check_crc: Whether checksums are checked.
        limits: Bounds on untrusted input.
        progress: Called with the bytes done and the bytes to do, every few megabytes.

    Raises:
        ValueError: ``out`` is not empty; ``path`` holds no segment; the keys are more than 256 times ``max_map_bytes``.
        CorruptError: A batch, record or checksum is wrong.
        OSError: Reading or writing failed.

    Example:
        >>> kbat.compact("orders-0", "compacted/orders-0", include_active=True).dropped["superseded"]
    """

def filter(  # noqa: A001 - as kbat.filter
    path: _Path,
    out: _Path,
    predicate: Callable[[Record], object] | None = None,
    *,
    drop_keys: Iterable[Buffer] | None = None,
    index_interval_bytes: int = 4096,
    max_index_bytes: int = 10_485_760,
    check_crc: bool = True,
    limits: Limits | None = None,
    progress: _ProgressCallback | None = None,
) -> FilterReport:
    """Write a partition without some of its records into a new directory: "remove this person's data".

    What stays keeps its offset, timestamp, headers, producer and sequence. Control records stay and are not shown to
    the predicate. A batch without records goes, unless its header is needed: it holds the last sequence of its
    producer, belongs to an open transaction, or ends the log.

    Args:
        path: The partition's directory, which is only read.
        out: Directory to write; it must be missing or empty. It appears when it is complete.
        predicate: Called with each record; those for which it is true stay. What it raises ends the call, without
            ``out``.
        drop_keys: Keys whose records go, without asking the predicate.
        index_interval_bytes: Bytes between two index entries.
        max_index_bytes: Bytes of an index at the most.
        check_crc: Whether checksums are checked.
        limits: Bounds on untrusted input.
        progress: Called with the bytes done and the bytes to do, every few megabytes.

    Raises:
        ValueError: Neither ``predicate`` nor ``drop_keys`` is given; ``out`` is not empty; ``path`` holds no segment.
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
    """Give batches without some of their records, as Kafka's ``MemoryRecords.filterTo`` leaves them.

    Checksums are not looked at. A batch that loses records is built anew with its own codec, offsets, producer and
    leader epoch; the others are copied.

    Args:
        data: Bytes-like: whole batches, of every format and in any order. An incomplete one at the end is left out.
        predicate: Called with each record; those for which it is true stay. Records of control batches are shown to it
            too.
        retention: What becomes of batches without records: ``"delete_empty"`` drops them, ``"retain_empty"`` leaves
            their headers, ``"delete"`` drops every batch unread.
        delete_horizon_ms: Delete horizon for batches that keep a tombstone and have none.
        is_marker_of_empty_transaction: Whether batches get that horizon without a tombstone too.
        upgrade: Whether messages of magic 0 and 1 become batches of magic 2, as today's cleaner has it.
        limits: Bounds on untrusted input.

    Raises:
        CorruptError: A batch or record that can't be read.
        ValueError: A retention that does not exist; records that can't be written again.
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
) -> RewriteReport:
    """Write a partition anew: with another codec, batch size or message format.

    Offsets and timestamps stay. A batch with a producer id keeps its boundaries unless producers are taken out. Where
    they are, and below magic 2, records of aborted transactions are dropped with all markers, and a log with an open
    transaction is refused.

    Args:
        path: The partition's directory, which is only read.
        out: Directory to write; it must be missing or empty. It appears when it is complete.
        compression: Codec to write with. Default: each batch's own. Control batches are never compressed.
        level: Level of that codec, as Kafka counts.
        batch_bytes: Bytes of a batch before compression, about: neighbours are joined up to it, larger ones split.
        magic: Message format. Default: each batch's own.
        keep_producer_state: Whether producer ids, epochs, sequences, transactions and producer snapshots are kept.
        index_interval_bytes: Bytes between two index entries.
        max_index_bytes: Bytes of an index at the most.
        check_crc: Whether checksums are checked.
        limits: Bounds on untrusted input.
        progress: Called with the bytes done and the bytes to do, every few megabytes.

    Raises:
        ValueError: Options that contradict each other; ``out`` is not empty; ``path`` holds no segment; an open
            transaction where transactions can't be kept.
        CorruptError: A batch or checksum is wrong, or a record of a batch that changes; others are copied unread.
        UnsupportedError: zstd below magic 2, where no other codec is asked for.
        OSError: Reading or writing failed.

    Example:
        >>> kbat.rewrite("orders-0", "small/orders-0", compression="zstd", level=19, batch_bytes=1 << 20)
    """

@final
class RewriteCounts:
    """How much was read or written."""

    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

    @property
    def segments(self) -> int:
        """Segments."""

    @property
    def batches(self) -> int:
        """Batches; a message of magic 0 or 1 outside of a compressed set is one."""

    @property
    def records(self) -> int:
        """Records, control records included."""

    @property
    def bytes(self) -> int:
        """Bytes of batches."""

    def to_dict(self) -> dict[str, int]:
        """Give the counts under their names."""

@final
class CompactReport:
    """What :func:`compact` did."""

    @property
    def read(self) -> RewriteCounts:
        """What was read of the part that was compacted."""

    @property
    def written(self) -> RewriteCounts:
        """What was written for it."""

    @property
    def untouched_segments(self) -> int:
        """Segments after that part, copied."""

    @property
    def dropped(self) -> dict[str, int]:
        """Records dropped, by reason: ``superseded``, ``tombstones``, ``null_keys``, ``aborted``, ``markers``."""

    @property
    def tombstones_retained(self) -> int:
        """Tombstones that stay."""

    @property
    def delete_horizons_set(self) -> int:
        """Batches that got a delete horizon."""

    @property
    def emptied_batches(self) -> int:
        """Batches of which the header stays."""

    @property
    def first_dirty_offset(self) -> int:
        """Where the part began that was not compacted before."""

    @property
    def first_uncleanable_offset(self) -> int:
        """Where the part ends that was compacted: the next run's ``first_dirty_offset``."""

    @property
    def last_stable_offset(self) -> int:
        """First offset that is not decided."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""

    @property
    def key_parts(self) -> int:
        """How many parts the keys were spread over; 1 where they fit ``max_map_bytes``."""

    @property
    def tail_bytes(self) -> int:
        """Bytes at the ends of segments that are no batch, such as one that is cut; they are not copied."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""

@final
class FilterReport:
    """What :func:`filter` did."""

    @property
    def read(self) -> RewriteCounts:
        """Path that was read."""

    @property
    def written(self) -> RewriteCounts:
        """What was written."""

    @property
    def dropped_records(self) -> int:
        """Records that went."""

    @property
    def dropped_batches(self) -> int:
        """Batches that went because no record was left."""

    @property
    def emptied_batches(self) -> int:
        """Batches of which the header stays."""

    @property
    def rebuilt_batches(self) -> int:
        """Batches that lost some of their records."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""

    @property
    def tail_bytes(self) -> int:
        """Bytes at the ends of segments that are no batch, such as one that is cut; they are not copied."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""

@final
class RewriteReport:
    """What :func:`rewrite` did."""

    @property
    def read(self) -> RewriteCounts:
        """Path that was read."""

    @property
    def written(self) -> RewriteCounts:
        """What was written."""

    @property
    def dropped(self) -> dict[str, int]:
        """Records dropped because transactions can't be kept: ``aborted``, ``control``."""

    @property
    def losses(self) -> list[str]:
        """What the message format has no room for, under the names of :func:`convert`."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch of the source."""

    @property
    def tail_bytes(self) -> int:
        """Bytes at the ends of segments that are no batch, such as one that is cut; they are not copied."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
