# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Segments, their indexes, partitions and log directories."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, Self, final

from kbat._core import BatchIterator, Limits, SegmentFile, _EncryptionKeys, _Time
from kbat._core.arrow import Scan
from kbat._core.files import AbortedTransaction, ProducerEntry, ProducerSnapshot, TransactionIndex

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
    """The batch that contains an offset, or the next batch if the offset is in a gap."""

    @property
    def segment(self) -> str:
        """Path of the segment's ``.log`` file."""

    @property
    def position(self) -> int:
        """Position of the batch in the file, in bytes."""

    @property
    def base_offset(self) -> int:
        """Base offset of the batch."""

    @property
    def last_offset(self) -> int:
        """Last offset of the batch."""

    @property
    def size(self) -> int:
        """Bytes of the batch, including its 12 bytes of log overhead."""

    @property
    def index(self) -> Literal["used", "missing", "broken"]:
        """``"used"``, or why the offset index was not used: ``"missing"`` or ``"broken"``. The result is the same."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class TimestampPlace:
    """The first record with the requested timestamp or a later one."""

    @property
    def timestamp(self) -> int:
        """Timestamp in milliseconds since the epoch; -1 for the answers to ``EARLIEST`` and ``LATEST``."""

    @property
    def offset(self) -> int:
        """Offset of the record."""

    @property
    def leader_epoch(self) -> int | None:
        """Leader epoch of its batch, None if the batch does not have one."""

    @property
    def index(self) -> Literal["used", "missing", "broken"]:
        """``"used"``, or why the indexes were not used: ``"missing"`` or ``"broken"``. The result is the same."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Segment:
    """A segment: a ``.log`` file and its indexes.

    Indexes only speed up lookups. A missing or broken index makes them slower, never wrong. No file is kept open:
    every call reads the current files.

    Args:
        path: The ``.log`` file, named after its base offset, or its URL; or a :class:`SegmentFile`, which has its
            store.
        limits: Bounds on untrusted input.
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
        ValueError: The file's name does not contain a base offset, or ``remote`` has no effect on a local file.

    Example:
        >>> segment = kbat.Segment("orders-0/00000000000000000000.log")
        >>> place = segment.find_offset(5000)
        >>> next(iter(segment.batches(place.position)))
    """

    def __new__(
        cls,
        path: str | os.PathLike[str] | SegmentFile,
        *,
        limits: Limits | None = None,
        storage_options: Mapping[str, object] | None = None,
        store: object | None = None,
        encryption_keys: _EncryptionKeys | None = None,
        remote: str | os.PathLike[str] | None = None,
        remote_log_metadata: str | os.PathLike[str] | None = None,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """Path of the ``.log`` file."""

    @property
    def base_offset(self) -> int:
        """Base offset, from the file's name."""

    @property
    def size(self) -> int:
        """Bytes of the ``.log`` file when the segment was opened."""

    @property
    def state(self) -> Literal["live", "deleted", "cleaned", "swap"]:
        """``"live"``, ``"deleted"``, ``"cleaned"`` or ``"swap"``, from the file's name."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch; the base offset of a segment without batches."""

    @property
    def incomplete_bytes(self) -> int:
        """Bytes of an incomplete batch at the end of the file, which ``end_offset`` does not count.

        A broker that is writing leaves one, and so does a crash. 0 if a batch or zeros end the file.
        """

    @property
    def largest_timestamp(self) -> int:
        """Largest timestamp in milliseconds since the epoch, -1 if no record has one."""

    @property
    def files(self) -> dict[str, str]:
        """Paths of the existing files: ``log``, ``index``, ``timeindex``, ``txnindex``, ``snapshot``."""

    def transaction_index(self) -> TransactionIndex | None:
        """Open the transaction index.

        Returns:
            None if the segment has no ``.txnindex`` file.

        Raises:
            OSError: The file can't be read.
        """

    def _producers(self) -> list[ProducerEntry]:
        """Return the producers at the end of the segment, as if the log began with it."""

    def find_offset(self, offset: int) -> OffsetPlace | None:
        """Find the batch that contains an offset, or the next batch if the offset is in a gap or before the segment.

        Args:
            offset: The offset.

        Returns:
            The batch; None if the segment ends before the offset.

        Raises:
            CorruptError: The log can't be read up to the batch.
            OSError: A file can't be read.
        """

    def find_timestamp(self, timestamp: _Time, starting_offset: int | None = None) -> TimestampPlace | None:
        """Find the first record, in the order of the log, with this timestamp or a later one.

        Args:
            timestamp: Milliseconds since the epoch.
            starting_offset: Smallest offset of the record. Default: the base offset.

        Returns:
            Timestamp, offset and leader epoch of the record, or None.

        Raises:
            CorruptError: The log or its records can't be read up to the record.
            OSError: A file can't be read.
        """

    def is_older(self, timestamp: _Time) -> bool:
        """Check whether all records are older than a timestamp, using the time index and headers.

        Args:
            timestamp: Milliseconds since the epoch.

        Returns:
            False also if this is unknown: for compressed sets of v0 and v1, whose wrappers have the timestamp that
            their client wrote, and if bytes at the end are not a batch or offsets are missing, as a corrupt length
            may hide newer batches.

        Raises:
            CorruptError: The log can't be read to its end.
            OSError: A file can't be read.
        """

    def batches(self, start_position: int = 0, *, check_crc: bool = True) -> BatchIterator:
        """Iterate over the batches, starting at a position at which a batch begins: 0 or that of a lookup's result.

        Args:
            start_position: Byte in the ``.log`` file.
            check_crc: Whether to verify the checksum of a batch before its records are read.

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

    The constructor lists the directory once. Reading a segment that was deleted afterwards raises an error.

    Args:
        directory: The partition directory, or its URL. Topic and partition come from its name.
        limits: Bounds on untrusted input, for everything read from the directory.
        storage_options: How to open the store of a URL, with the names of object_store, such as
            ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
            ``AWS_ACCESS_KEY_ID``, or the role of the machine.
        store: A store of obstore; paths are relative to it.
        encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
            function that returns the PEM text of an id.
        remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
            offset is read once, from ``directory`` if it is there. ``storage_options`` are those of the URLs,
            and ``store`` is that of ``remote``.
        remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
            ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
            partitions in the log directory, if any.

    Raises:
        OSError: The directory can't be read.

    Example:
        >>> log = kbat.PartitionLog("/var/lib/kafka/data/orders-0")
        >>> log.start_offset, log.end_offset
        (0, 1250)
        >>> log.find_timestamp(1_700_000_000_000).offset
        318
    """

    def __new__(
        cls,
        directory: str | os.PathLike[str],
        *,
        limits: Limits | None = None,
        storage_options: Mapping[str, object] | None = None,
        store: object | None = None,
        encryption_keys: _EncryptionKeys | None = None,
        remote: str | os.PathLike[str] | None = None,
        remote_log_metadata: str | os.PathLike[str] | None = None,
    ) -> Self: ...
    @property
    def directory(self) -> str:
        """Path of the directory."""

    @property
    def topic(self) -> str | None:
        """Topic, if the directory's name contains one."""

    @property
    def partition(self) -> int | None:
        """Partition, if the directory's name contains one."""

    @property
    def topic_id(self) -> str | None:
        """Topic id from ``partition.metadata``, 22 characters of base64url; None in logs of old brokers."""

    @property
    def segments(self) -> list[Segment]:
        """The segments, sorted by base offset."""

    @property
    def snapshots(self) -> list[tuple[int, str]]:
        """Producer snapshots as ``(offset, path)``: each holds the state before its offset."""

    def producer_snapshot(self, offset: int) -> ProducerSnapshot:
        """Read a producer snapshot of this directory.

        Args:
            offset: The offset of one of ``snapshots``.

        Raises:
            ValueError: There is no snapshot of this offset.
            CorruptError: The snapshot is damaged.
            OSError: The file can't be read.
        """

    def _producers(self) -> list[ProducerEntry]:
        """Return the producers at the end of the log: of the newest readable snapshot, and of the batches after it."""

    @property
    def metadata_snapshots(self) -> list[tuple[int, int, str]]:
        """KRaft snapshots of ``__cluster_metadata`` as ``(end_offset, epoch, path)``, the newest last."""

    @property
    def leftovers(self) -> list[str]:
        """Files of an interrupted deletion or compaction: ``.deleted``, ``.cleaned`` and ``.swap`` files."""

    @property
    def start_offset(self) -> int:
        """First offset that consumers may read.

        The offset in the log directory's ``log-start-offset-checkpoint`` if it is past the first segment's base
        offset, which is the default.
        """

    @property
    def end_offset(self) -> int:
        """The offset that the next record will get."""

    @property
    def leader_epochs(self) -> list[tuple[int, int]]:
        """Leader epochs as ``(epoch, start_offset)``, from ``leader-epoch-checkpoint``."""

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which a ``read_committed`` consumer may read.

        The first offset of the earliest transaction that is still open at the end of the log, or ``end_offset`` if
        none is. Corrupt batches are skipped, and so are transactions that begin in them: a scan with
        ``isolation="read_committed"`` raises an error for these.
        """

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """List the aborted transactions that a reader of a range of offsets needs.

        Uses the transaction indexes; scans the headers and markers of segments without one.

        Args:
            start_offset: First offset of the range.
            end_offset: First offset after the range.

        Returns:
            The transactions in the order of their markers.

        Raises:
            OSError: A file can't be read.
        """

    def find_offset(self, offset: int) -> OffsetPlace | None:
        """Find the batch that contains an offset, or the next batch if the offset is in a gap.

        Args:
            offset: The offset.

        Returns:
            The batch; None below ``start_offset`` and from ``end_offset`` on.

        Raises:
            CorruptError: The log can't be read up to the batch.
            OSError: A file can't be read.
        """

    def find_timestamp(self, timestamp: _Time) -> TimestampPlace | None:
        """Look up a timestamp as a broker does for a ``ListOffsets`` request.

        Args:
            timestamp: Milliseconds since the epoch, a ``datetime`` or ISO 8601 text with a time zone, or
                ``kbat.EARLIEST``, ``kbat.LATEST``, ``kbat.MAX_TIMESTAMP``.

        Returns:
            The first record with this timestamp or a later one, in the first segment whose largest timestamp is not
            earlier; None if there is none. For a segment without timestamps (v0, or empty), the modification time of
            its file is used instead, as in a broker.

        Raises:
            CorruptError: The log or its records can't be read up to the record.
            OSError: A file can't be read.
        """

    def scan(self, **options: Any) -> Scan:  # noqa: ANN401 -- those of kbat.scan
        """Scan the partition's records as Arrow columns: :func:`kbat.scan` with this directory as its source."""

    def __len__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Limits]]: ...
    def _repr_html_(self) -> str: ...

@final
class LogDirectory:
    """A broker's log directory. It is listed once, by the constructor.

    Args:
        path: The directory, one of the broker's ``log.dirs``, or its URL.
        topics: Only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default: all.
        partitions: Only partitions with these numbers. Default: all.
        limits: Bounds on untrusted input, for everything read from the directory.
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
        OSError: The directory can't be read. Subdirectories that are not live partitions are in ``stray``.
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
        storage_options: Mapping[str, object] | None = None,
        store: object | None = None,
        encryption_keys: _EncryptionKeys | None = None,
        remote: str | os.PathLike[str] | None = None,
        remote_log_metadata: str | os.PathLike[str] | None = None,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """Path of the directory."""

    @property
    def partitions(self) -> list[PartitionLog]:
        """The live partitions, sorted by topic and partition."""

    def partition(self, topic: str, partition: int) -> PartitionLog | None:
        """Find a partition. Returns None if it does not exist."""

    def end_offsets(self) -> dict[tuple[str, int], int]:
        """Read ``PartitionLog.end_offset`` of each partition, with the same errors; of a store, 16 at a time."""

    @property
    def stray(self) -> list[StrayDirectory]:
        """Directories that are not live partitions: deleted, future and stray ones, and foreign names."""

    @property
    def is_clean_shutdown(self) -> bool:
        """Whether the broker marked its shutdown as clean. A running broker's directory does not have the mark."""

    @property
    def meta(self) -> MetaProperties | None:
        """The content of ``meta.properties``, or None if the file does not exist.

        Raises:
            CorruptError: The file is malformed.
        """

    @property
    def checkpoints(self) -> dict[str, dict[tuple[str, int], int]]:
        """The existing offset checkpoints, by file name: ``(topic, partition) -> offset``.

        Raises:
            CorruptError: One of the files is malformed.
        """

    def _repr_html_(self) -> str: ...

@final
class MetaProperties:
    """The broker's properties in ``meta.properties``."""

    @property
    def version(self) -> int:
        """Version of the format: 0 or 1."""

    @property
    def node_id(self) -> int | None:
        """Id of the node; ``broker.id`` in version 0."""

    @property
    def cluster_id(self) -> str | None:
        """Id of the cluster."""

    @property
    def directory_id(self) -> str | None:
        """Id of the log directory."""

@final
class StrayDirectory:
    """A directory that is not a live partition."""

    @property
    def path(self) -> str:
        """Path of the directory."""

    @property
    def topic(self) -> str | None:
        """Topic, if the name contains one; possibly only its beginning."""

    @property
    def partition(self) -> int | None:
        """Partition, if the name contains one."""

    @property
    def state(self) -> Literal["delete", "future", "stray", "unreadable", "unknown"]:
        """Why the directory is not a live partition.

        ``"delete"``, ``"future"`` or ``"stray"``; ``"unreadable"`` for a live partition that can't be listed,
        ``"unknown"`` for a name that brokers do not create.
        """

    @property
    def error(self) -> str | None:
        """Why a live partition can't be listed; None for the other states."""
