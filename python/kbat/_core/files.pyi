# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Files that accompany a segment: indexes, producer snapshots, checkpoints."""

import os
from collections.abc import Mapping
from typing import Literal, Self, final

from kbat._core import _EncryptionKeys

__all__ = [
    "AbortedTransaction",
    "Checkpoint",
    "EpochEntry",
    "OffsetIndex",
    "PartitionOffset",
    "ProducerEntry",
    "ProducerSnapshot",
    "TimeIndex",
    "TransactionIndex",
]

@final
class OffsetIndex:
    """The offset index of a segment: the positions of some of its batches.

    Lookups read only a few entries; the file is never loaded whole. Trailing zeros, which a running or killed broker
    leaves, are ignored.

    Args:
        path: The ``.index`` file, or its URL.
        base_offset: Base offset of the segment. Default: the one in the file's name.
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
        OSError: The file can't be read.
        ValueError: ``base_offset`` is not set and the file's name does not contain one.

    Example:
        >>> kbat.OffsetIndex("orders-0/00000000000000000000.index").lookup(5000)
        (4987, 81920)
    """

    def __new__(
        cls,
        path: str | os.PathLike[str],
        base_offset: int | None = None,
        *,
        storage_options: Mapping[str, object] | None = None,
        store: object | None = None,
        encryption_keys: _EncryptionKeys | None = None,
        remote: str | os.PathLike[str] | None = None,
        remote_log_metadata: str | os.PathLike[str] | None = None,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """Path of the file."""

    @property
    def base_offset(self) -> int:
        """Base offset of the segment."""

    @property
    def entries(self) -> list[tuple[int, int]]:
        """All entries as ``(offset, position)``: last offset of a batch, byte at which it begins."""

    def lookup(self, offset: int) -> tuple[int, int]:
        """Find the entry with the largest offset that is at most ``offset``.

        Returns:
            Offset and position; base offset and 0 if there is no such entry.
        """

    def sanity_check(self) -> None:
        """Check the file as Kafka does: whole entries only, the last one not below the base offset.

        Raises:
            CorruptError: The check fails.
        """

    def __len__(self) -> int: ...

@final
class TimeIndex:
    """The time index of a segment: the largest timestamp up to some of its offsets.

    Lookups read only a few entries; the file is never loaded whole. Trailing zeros, which a running or killed broker
    leaves, are ignored.

    Args:
        path: The ``.timeindex`` file, or its URL.
        base_offset: Base offset of the segment. Default: the one in the file's name.
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
        OSError: The file can't be read.
        ValueError: ``base_offset`` is not set and the file's name does not contain one.
    """

    def __new__(
        cls,
        path: str | os.PathLike[str],
        base_offset: int | None = None,
        *,
        storage_options: Mapping[str, object] | None = None,
        store: object | None = None,
        encryption_keys: _EncryptionKeys | None = None,
        remote: str | os.PathLike[str] | None = None,
        remote_log_metadata: str | os.PathLike[str] | None = None,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """Path of the file."""

    @property
    def base_offset(self) -> int:
        """Base offset of the segment."""

    @property
    def entries(self) -> list[tuple[int, int]]:
        """All entries as ``(timestamp, offset)``.

        The timestamp is the largest so far, in milliseconds since the epoch. The offset is the last one of the first
        batch that has this timestamp.
        """

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """Find the entry with the largest timestamp that is at most ``timestamp``.

        Returns:
            Timestamp and offset; -1 and the base offset if there is no such entry.
        """

    def sanity_check(self) -> None:
        """Check the file as Kafka does: whole entries, the last one neither older than the first nor below the base.

        Raises:
            CorruptError: The check fails. This includes an index that ends in the zeros of a running broker.
        """

    def __len__(self) -> int: ...

@final
class AbortedTransaction:
    """An aborted transaction of a producer."""

    @property
    def version(self) -> int:
        """Version of the entry, as stored."""

    @property
    def producer_id(self) -> int:
        """Producer id."""

    @property
    def first_offset(self) -> int:
        """First offset of the transaction."""

    @property
    def last_offset(self) -> int:
        """Offset of its abort marker."""

    @property
    def last_stable_offset(self) -> int:
        """The last stable offset when the marker was written."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class TransactionIndex:
    """The transaction index of a segment: the transactions whose abort markers are in the segment.

    Args:
        path: The ``.txnindex`` file, or its URL. Segments without aborted transactions do not have one.
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
        OSError: The file can't be read.
    """

    def __new__(
        cls,
        path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, object] | None = None,
        store: object | None = None,
        encryption_keys: _EncryptionKeys | None = None,
        remote: str | os.PathLike[str] | None = None,
        remote_log_metadata: str | os.PathLike[str] | None = None,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """Path of the file."""

    @property
    def entries(self) -> list[AbortedTransaction]:
        """All entries. Bytes after the last whole entry are ignored.

        Raises:
            CorruptError: An entry has a version that Kafka does not read.
        """

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTransaction], bool]:
        """Collect the aborted transactions that a reader of a range needs, as a broker's fetch response lists them.

        Args:
            fetch_offset: First offset of the range.
            upper_bound: First offset after the range.

        Returns:
            The transactions, and whether they are complete without the indexes of later segments.

        Raises:
            CorruptError: An entry has a version that Kafka does not read.
        """

    def sanity_check(self, base_offset: int) -> None:
        """Check the file as Kafka does: no abort marker below the segment's base offset.

        Args:
            base_offset: Base offset of the segment.

        Raises:
            CorruptError: The check fails.
        """

    def __len__(self) -> int: ...

@final
class ProducerEntry:
    """The state of a producer in a producer snapshot."""

    @property
    def producer_id(self) -> int:
        """Producer id."""

    @property
    def producer_epoch(self) -> int:
        """Producer epoch."""

    @property
    def first_sequence(self) -> int:
        """Sequence of the first record of its last batch."""

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record of its last batch, -1 if there is none."""

    @property
    def first_offset(self) -> int:
        """Offset of the first record of its last batch."""

    @property
    def last_offset(self) -> int:
        """Offset of the last record of its last batch, -1 if unknown."""

    @property
    def offset_delta(self) -> int:
        """Last minus first offset of its last batch."""

    @property
    def timestamp(self) -> int:
        """Timestamp of its last batch or marker, milliseconds since the epoch."""

    @property
    def coordinator_epoch(self) -> int:
        """Epoch of the coordinator that wrote its last marker, -1 if there is none."""

    @property
    def current_txn_first_offset(self) -> int | None:
        """First offset of its open transaction, None if there is none."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class ProducerSnapshot:
    """A producer snapshot: the state of each producer at one offset. The constructor reads the whole file.

    Args:
        path: The ``.snapshot`` file.

    Raises:
        CrcError: The checksum does not match the entries.
        TruncatedError: The file is empty or ends too early.
        CorruptError: The version is not 1.
        OSError: The file can't be read.
    """

    def __new__(cls, path: str | os.PathLike[str]) -> Self: ...
    @property
    def path(self) -> str:
        """Path of the file."""

    @property
    def offset(self) -> int | None:
        """The first offset that the snapshot does not cover, from the file's name; None if the name has no offset."""

    @property
    def entries(self) -> list[ProducerEntry]:
        """One entry per producer, in the order of the file."""

    def __len__(self) -> int: ...

@final
class PartitionOffset:
    """The entry of a partition in an offset checkpoint."""

    @property
    def topic(self) -> str:
        """Name of the topic."""

    @property
    def partition(self) -> int:
        """Number of the partition."""

    @property
    def offset(self) -> int:
        """The offset."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class EpochEntry:
    """A leader epoch and its first offset."""

    @property
    def epoch(self) -> int:
        """The leader epoch."""

    @property
    def start_offset(self) -> int:
        """First offset that the leader of this epoch wrote."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Checkpoint:
    """A checkpoint file in text format.

    It contains either an offset for each partition of a log directory (``*-offset-checkpoint``) or the leader epochs
    of a partition (``leader-epoch-checkpoint``). The format of its lines determines which. The constructor reads the
    whole file.

    Args:
        path: The file.

    Raises:
        CorruptError: The text is malformed.
        OSError: The file can't be read.

    Example:
        >>> kbat.Checkpoint("orders-0/leader-epoch-checkpoint").entries
        [EpochEntry(epoch=0, start_offset=0), EpochEntry(epoch=2, start_offset=40)]
    """

    def __new__(cls, path: str | os.PathLike[str]) -> Self: ...
    @property
    def path(self) -> str:
        """Path of the file."""

    @property
    def version(self) -> int:
        """Version of the format: 0 is the only one."""

    @property
    def kind(self) -> Literal["offsets", "leader_epochs"]:
        """Kind of the entries: ``"offsets"`` or ``"leader_epochs"``."""

    @property
    def entries(self) -> list[PartitionOffset] | list[EpochEntry]:
        """Offsets in the order of the file, or leader epochs from the oldest.

        Offsets have ``topic``, ``partition`` and ``offset``; leader epochs have ``epoch`` and ``start_offset``.
        """

    def __len__(self) -> int: ...
