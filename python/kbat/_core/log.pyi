# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Segments, their indexes, partitions and log directories."""

import os
from collections.abc import Iterable
from typing import Any, Final, Literal, Self, final

from kbat._core import BatchIterator, Limits, _Time
from kbat._core.arrow import Scan
from kbat._core.files import AbortedTransaction

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "LogDirectory",
    "MetaProperties",
    "OffsetPlace",
    "PartitionLog",
    "Segment",
    "StrayDirectory",
    "TimestampPlace",
]

EARLIEST: Final[int]
LATEST: Final[int]
MAX_TIMESTAMP: Final[int]

@final
class OffsetPlace:
    """The batch that holds an offset, or the next one where the offset lies in a gap."""

    @property
    def segment(self) -> str:
        """Path of the segment's ``.log`` file."""

    @property
    def position(self) -> int:
        """Where in the file the batch begins, in bytes."""

    @property
    def base_offset(self) -> int:
        """Base offset of the batch."""

    @property
    def last_offset(self) -> int:
        """Last offset of the batch."""

    @property
    def size(self) -> int:
        """Bytes of the batch with its 12 bytes of log overhead."""

    @property
    def index(self) -> Literal["used", "missing", "broken"]:
        """``"used"``, or why the offset index was not: ``"missing"`` or ``"broken"``. The place is the same."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class TimestampPlace:
    """The first record whose timestamp is large enough."""

    @property
    def timestamp(self) -> int:
        """Timestamp in milliseconds since the epoch; -1 for the answers to ``EARLIEST`` and ``LATEST``."""

    @property
    def offset(self) -> int:
        """Offset."""

    @property
    def leader_epoch(self) -> int | None:
        """Leader epoch of its batch, None where the batch has none."""

    @property
    def index(self) -> Literal["used", "missing", "broken"]:
        """``"used"``, or why the indexes were not: ``"missing"`` or ``"broken"``. The answer is the same."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Segment:
    """A segment: a ``.log`` file with the indexes beside it.

    The log decides every answer; an index only says where to begin looking, and a missing or broken one costs time,
    not truth. No file is held open: every call sees the files as they are then.

    Args:
        path: The ``.log`` file, named after its base offset.
        limits: Bounds on untrusted input.

    Raises:
        OSError: The file can't be read.
        ValueError: A name that tells no base offset.

    Example:
        >>> segment = kbat.Segment("orders-0/00000000000000000000.log")
        >>> place = segment.find_offset(5000)
        >>> next(iter(segment.batches(place.position)))
    """

    def __new__(cls, path: str | os.PathLike[str], *, limits: Limits | None = None) -> Self: ...
    @property
    def path(self) -> str:
        """The ``.log`` file."""

    @property
    def base_offset(self) -> int:
        """Base offset, from the name."""

    @property
    def size(self) -> int:
        """Bytes of the ``.log`` file when the segment was opened."""

    @property
    def state(self) -> Literal["live", "deleted", "cleaned", "swap"]:
        """``"live"``, ``"deleted"``, ``"cleaned"`` or ``"swap"``, from the name."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch; the base offset of a segment without batches."""

    @property
    def largest_timestamp(self) -> int:
        """Largest timestamp in milliseconds since the epoch, -1 where no record has one."""

    @property
    def files(self) -> dict[str, str]:
        """Paths of the files that are there: ``log``, ``index``, ``timeindex``, ``txnindex``, ``snapshot``."""

    def find_offset(self, offset: int) -> OffsetPlace | None:
        """Find the batch that holds an offset, or the next one where the offset lies in a gap or before the segment.

        Args:
            offset: The offset.

        Returns:
            The place; None where the segment ends before the offset.

        Raises:
            CorruptError: A log that can't be walked up to the batch.
            OSError: A file that can't be read.
        """

    def find_timestamp(self, timestamp: _Time, starting_offset: int | None = None) -> TimestampPlace | None:
        """Find the first record, in the order of the log, that is not older than a time.

        Args:
            timestamp: Milliseconds since the epoch.
            starting_offset: The record's offset is at least this; default the base offset.

        Returns:
            Timestamp, offset and leader epoch of the record, or None.

        Raises:
            CorruptError: A log or records that can't be read up to the record.
            OSError: A file that can't be read.
        """

    def is_older(self, timestamp: _Time) -> bool:
        """Tell whether all records are known to be older than a time, by the time index and headers.

        Args:
            timestamp: Milliseconds since the epoch.

        Returns:
            False also where that can't be told: with sets of v0 and v1, whose wrappers have what their client wrote,
            and with bytes at the end that are no batch.

        Raises:
            CorruptError: A log that can't be walked to its end.
            OSError: A file that can't be read.
        """

    def batches(self, start_position: int = 0, *, check_crc: bool = True) -> BatchIterator:
        """Iterate the batches from a byte on, where a batch must begin: 0, or the position of a place that was found.

        Args:
            start_position: Byte in the ``.log`` file.
            check_crc: Whether the checksum of a batch is checked before its records are read.

        Raises:
            OSError: The file can't be read.
        """

    def scan(self, **options: Any) -> Scan:  # noqa: ANN401 -- those of kbat.scan
        """Scan the segment's records as Arrow columns: :func:`kbat.scan` with this segment as its source."""

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Limits]]: ...
    def _repr_html_(self) -> str: ...

@final
class PartitionLog:
    """A partition directory: its segments as one log.

    Listed once, when made; a segment that is deleted later gives an error when it is read.

    Args:
        directory: The partition directory. Topic and partition come from its name.
        limits: Bounds on untrusted input, for everything that is read from it.

    Raises:
        OSError: The directory can't be read.

    Example:
        >>> log = kbat.PartitionLog("/var/lib/kafka/data/orders-0")
        >>> log.start_offset, log.end_offset
        (0, 1250)
        >>> log.find_timestamp(1_700_000_000_000).offset
        318
    """

    def __new__(cls, directory: str | os.PathLike[str], *, limits: Limits | None = None) -> Self: ...
    @property
    def directory(self) -> str:
        """The directory."""

    @property
    def topic(self) -> str | None:
        """Topic, if the directory is named after one."""

    @property
    def partition(self) -> int | None:
        """Partition, if the directory is named after one."""

    @property
    def topic_id(self) -> str | None:
        """Topic id as in ``partition.metadata``, 22 characters of base64url; None in logs of old brokers."""

    @property
    def segments(self) -> list[Segment]:
        """The segments by base offset."""

    @property
    def snapshots(self) -> list[tuple[int, str]]:
        """Producer snapshots as ``(offset, path)``: each holds the state before its offset."""

    @property
    def leftovers(self) -> list[str]:
        """What a broker was about to delete or to put in place: ``.deleted``, ``.cleaned`` and ``.swap`` files."""

    @property
    def start_offset(self) -> int:
        """First offset that consumers may read.

        That of the log directory's ``log-start-offset-checkpoint`` where it is past the first segment's base offset.
        """

    @property
    def end_offset(self) -> int:
        """The offset that the next record would get."""

    @property
    def leader_epochs(self) -> list[tuple[int, int]]:
        """Leader epochs as ``(epoch, start_offset)``, from ``leader-epoch-checkpoint``."""

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which a ``read_committed`` consumer may read.

        The first offset of the earliest transaction that is still open at the end, else ``end_offset``.
        """

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """List the aborted transactions that a reader of a range of offsets must know.

        From the transaction indexes; of segments without one, from one pass over headers and markers.

        Args:
            start_offset: First offset of the range.
            end_offset: First offset after the range.

        Returns:
            The transactions in the order of their markers.

        Raises:
            OSError: A file that can't be read.
        """

    def find_offset(self, offset: int) -> OffsetPlace | None:
        """Find the batch that holds an offset, or the next one where the offset lies in a gap.

        Args:
            offset: The offset.

        Returns:
            The place; None below ``start_offset`` and from ``end_offset`` on.

        Raises:
            CorruptError: A log that can't be walked up to the batch.
            OSError: A file that can't be read.
        """

    def find_timestamp(self, timestamp: _Time) -> TimestampPlace | None:
        """Answer a timestamp as a broker answers a ``ListOffsets`` request.

        Args: timestamp: Milliseconds since the epoch, a ``datetime`` or ISO 8601 text with a time zone, or
            ``kbat.EARLIEST``, ``kbat.LATEST``, ``kbat.MAX_TIMESTAMP``.

        Returns:
            The first record that is not older, from the first segment whose largest timestamp is not; None where there
            is none. A segment without timestamps (v0) counts with the time of its last modification, as in a broker.

        Raises:
            CorruptError: A log or records that can't be read up to the record.
            OSError: A file that can't be read.
        """

    def scan(self, **options: Any) -> Scan:  # noqa: ANN401 -- those of kbat.scan
        """Scan the partition's records as Arrow columns: :func:`kbat.scan` with this directory as its source."""

    def __len__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Limits]]: ...
    def _repr_html_(self) -> str: ...

@final
class LogDirectory:
    """A broker's log directory, listed once.

    Args:
        path: The directory, one of the broker's ``log.dirs``.
        topics: Only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default: all.
        partitions: Only partitions with these numbers. Default: all.
        limits: Bounds on untrusted input, for everything that is read from it.

    Raises:
        OSError: The directory can't be read. Directories in it that are not live partitions are in ``stray``.
        ValueError: The path is a partition directory; a topic or partition does not exist.

    Example:
        >>> for log in kbat.LogDirectory("/var/lib/kafka/data").partitions:
        ...     print(log.topic, log.partition, log.start_offset, log.end_offset)
    """

    def __new__(
        cls,
        path: str | os.PathLike[str],
        *,
        topics: str | Iterable[str] | None = None,
        partitions: int | Iterable[int] | None = None,
        limits: Limits | None = None,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """The directory."""

    @property
    def partitions(self) -> list[PartitionLog]:
        """The live partitions by topic and partition."""

    def partition(self, topic: str, partition: int) -> PartitionLog | None:
        """Find a partition; None where there is no such directory."""

    @property
    def stray(self) -> list[StrayDirectory]:
        """Directories that are no live partition: deleted, future and stray ones, and names that no broker gives."""

    @property
    def is_clean_shutdown(self) -> bool:
        """Whether the broker left the mark of a clean shutdown; a running broker's directory has none."""

    @property
    def meta(self) -> MetaProperties | None:
        """What ``meta.properties`` says, None where there is no such file.

        Raises:
            CorruptError: The file is malformed.
        """

    @property
    def checkpoints(self) -> dict[str, dict[tuple[str, int], int]]:
        """The offset checkpoints that are there, by file name: ``(topic, partition) -> offset``.

        Raises:
            CorruptError: One of the files is malformed.
        """

    def _repr_html_(self) -> str: ...

@final
class MetaProperties:
    """What ``meta.properties`` says of the broker."""

    @property
    def version(self) -> int:
        """0 or 1."""

    @property
    def node_id(self) -> int | None:
        """Id of the node, ``broker.id`` in version 0."""

    @property
    def cluster_id(self) -> str | None:
        """Id of the cluster."""

    @property
    def directory_id(self) -> str | None:
        """Id of the log directory."""

@final
class StrayDirectory:
    """A directory that holds no live partition."""

    @property
    def path(self) -> str:
        """Where it is."""

    @property
    def topic(self) -> str | None:
        """Topic, if the name tells one; perhaps only its beginning."""

    @property
    def partition(self) -> int | None:
        """Partition, if the name tells one."""

    @property
    def state(self) -> Literal["delete", "future", "stray", "unreadable", "unknown"]:
        """Why it holds no live partition.

        ``"delete"``, ``"future"``, ``"stray"``; ``"unreadable"`` for a live partition that can't be listed,
        ``"unknown"`` for a name that no broker gives.
        """

    @property
    def error(self) -> str | None:
        """Why a live partition can't be listed."""
