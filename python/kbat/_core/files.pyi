# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""The files beside a segment: indexes, producer snapshots, checkpoints."""

import os
from collections.abc import Iterable, Sequence
from typing import Literal, Self, TypeAlias, final

from kbat._core import SegmentFile

_Path: TypeAlias = str | os.PathLike[str]

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
    "discover",
    "foreign_file",
]

@final
class OffsetIndex:
    """The offset index of a segment: which batch begins where.

    The file is searched by small reads, never loaded. Zeros at the end, which a running or killed broker leaves, are no
    entries.

    Args:
        path: The ``.index`` file.
        base_offset: Base offset of the segment; default: that in the file's name.

    Raises:
        OSError: The file can't be read.
        ValueError: No base offset is given and the name does not tell one.

    Example:
        >>> kbat.OffsetIndex("orders-0/00000000000000000000.index").lookup(5000)
        (4987, 81920)
    """

    def __new__(cls, path: str | os.PathLike[str], base_offset: int | None = None) -> Self: ...
    @property
    def path(self) -> str:
        """The file."""

    @property
    def base_offset(self) -> int:
        """Base offset of the segment."""

    @property
    def entries(self) -> list[tuple[int, int]]:
        """All entries as ``(offset, position)``: last offset of a batch, byte at which it begins."""

    def lookup(self, offset: int) -> tuple[int, int]:
        """Find the entry with the largest offset that is at most ``offset``.

        Returns:
            Offset and position; base offset and 0 where there is none.
        """

    def sanity_check(self) -> None:
        """Check the file as Kafka does: whole entries only, the last one not below the base offset.

        Raises:
            CorruptError: The check fails.
        """

    def __len__(self) -> int: ...

@final
class TimeIndex:
    """The time index of a segment: up to which offset no record is younger than a timestamp.

    The file is searched by small reads, never loaded. Zeros at the end, which a running or killed broker leaves, are no
    entries.

    Args:
        path: The ``.timeindex`` file.
        base_offset: Base offset of the segment; default: that in the file's name.

    Raises:
        OSError: The file can't be read.
        ValueError: No base offset is given and the name does not tell one.
    """

    def __new__(cls, path: str | os.PathLike[str], base_offset: int | None = None) -> Self: ...
    @property
    def path(self) -> str:
        """The file."""

    @property
    def base_offset(self) -> int:
        """Base offset of the segment."""

    @property
    def entries(self) -> list[tuple[int, int]]:
        """All entries as ``(timestamp, offset)``.

        Largest timestamp so far in milliseconds since the epoch, last offset of the first batch that has it.
        """

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """Find the entry with the largest timestamp that is at most ``timestamp``.

        Returns:
            Timestamp and offset; -1 and the base offset where there is none.
        """

    def sanity_check(self) -> None:
        """Check the file as Kafka does: whole entries, the last one neither older than the first nor below the base.

        Raises:
            CorruptError: The check fails. It does for an index that ends in the zeros of a running broker.
        """

    def __len__(self) -> int: ...

@final
class AbortedTransaction:
    """An aborted transaction of a producer."""

    @property
    def version(self) -> int:
        """Version of the entry as stored."""

    @property
    def producer_id(self) -> int:
        """The producer."""

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
    """The transaction index of a segment: the transactions whose abort markers lie in it.

    Args:
        path: The ``.txnindex`` file. Segments without aborted transactions have none.

    Raises:
        OSError: The file can't be read.
    """

    def __new__(cls, path: str | os.PathLike[str]) -> Self: ...
    @property
    def path(self) -> str:
        """The file."""

    @property
    def entries(self) -> list[AbortedTransaction]:
        """All entries. Bytes after the last whole one are passed over.

        Raises:
            CorruptError: An entry of a version that Kafka does not read.
        """

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTransaction], bool]:
        """Tell the transactions that a reader must know, as a broker tells them in a fetch answer.

        Args:
            fetch_offset: First offset that is read.
            upper_bound: The offset after the last that is read.

        Returns:
            The transactions, and whether the indexes of later segments can't add to them.

        Raises:
            CorruptError: An entry of a version that Kafka does not read.
        """

    def sanity_check(self, base_offset: int) -> None:
        """Check the file as Kafka does: no marker below the segment's base offset.

        Args:
            base_offset: Base offset of the segment.

        Raises:
            CorruptError: The check fails.
        """

    def __len__(self) -> int: ...

@final
class ProducerEntry:
    """What a broker knew of a producer."""

    @property
    def producer_id(self) -> int:
        """The producer."""

    @property
    def producer_epoch(self) -> int:
        """Its epoch."""

    @property
    def first_sequence(self) -> int:
        """Sequence of the first record of its last batch."""

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record of its last batch, -1 for none."""

    @property
    def first_offset(self) -> int:
        """Offset of the first record of its last batch."""

    @property
    def last_offset(self) -> int:
        """Offset of the last record of its last batch, -1 where none is known."""

    @property
    def offset_delta(self) -> int:
        """Last minus first offset of its last batch."""

    @property
    def timestamp(self) -> int:
        """Of its last batch or marker, in milliseconds since the epoch."""

    @property
    def coordinator_epoch(self) -> int:
        """Epoch of the coordinator that wrote its last marker, -1 for none."""

    @property
    def current_txn_first_offset(self) -> int | None:
        """First offset of its open transaction, None without one."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class ProducerSnapshot:
    """A producer snapshot: what a broker knew of each producer at one offset. Read whole when made.

    Args:
        path: The ``.snapshot`` file.

    Raises:
        CrcError: The checksum is not that of the entries.
        TruncatedError: The file is empty or ends too early.
        CorruptError: A version other than 1.
        OSError: The file can't be read.
    """

    def __new__(cls, path: str | os.PathLike[str]) -> Self: ...
    @property
    def path(self) -> str:
        """The file."""

    @property
    def offset(self) -> int | None:
        """The first offset that it knows nothing of, from the file's name; None if that tells none."""

    @property
    def entries(self) -> list[ProducerEntry]:
        """One entry a producer, in the order of the file."""

    def __len__(self) -> int: ...

@final
class PartitionOffset:
    """A partition's line in an offset checkpoint."""

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
    """A leader epoch and where it began."""

    @property
    def epoch(self) -> int:
        """The leader epoch."""

    @property
    def start_offset(self) -> int:
        """First offset that its leader wrote."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Checkpoint:
    """A checkpoint in text.

    An offset for each partition at the top of a log directory (``*-offset-checkpoint``), or the leader epochs of a
    partition (``leader-epoch-checkpoint``). Its lines tell which; read whole when made.

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
        """The file."""

    @property
    def version(self) -> int:
        """Version of the format: 0, the only one there is."""

    @property
    def kind(self) -> Literal["offsets", "leader_epochs"]:
        """What it holds: ``"offsets"`` or ``"leader_epochs"``."""

    @property
    def entries(self) -> list[PartitionOffset] | list[EpochEntry]:
        """Offsets in the order of the file, or leader epochs from the oldest on.

        Offsets have ``topic``, ``partition`` and ``offset``; leader epochs ``epoch`` and ``start_offset``.
        """

    def __len__(self) -> int: ...

def discover(
    paths: _Path | Sequence[_Path],
    *,
    topics: str | Iterable[str] | None = None,
    partitions: int | Iterable[int] | None = None,
    replicas: Literal["error", "longest"] = "error",
) -> tuple[list[SegmentFile], list[str]]:
    """As ``kbat.find_segments``, with the warnings as a list of texts in place of Python's warnings."""

def foreign_file(path: _Path) -> str | None:
    """What a file is that is plainly not a log segment, by its first bytes, such as ``"gzip-compressed"``.

    Args:
        path: The file.

    Returns:
        None for a file that may be a segment.

    Raises:
        OSError: The file can't be read.
    """
