# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Restore backups and tiered storage to a new broker."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, final

from kbat._core import Limits, _EncryptionKeys, _Time

_Path: TypeAlias = str | os.PathLike[str]
_ProgressCallback: TypeAlias = Callable[[int, int], object]

__all__ = ["OpenTransaction", "RestoreReport", "RestoredPartition", "RestoredSegment", "restore"]

def restore(
    source: _Path,
    out: _Path,
    *,
    until_timestamp: _Time | None = None,
    until_offset: int | Mapping[str, int] | None = None,
    topics: str | Iterable[str] | None = None,
    partitions: int | Iterable[int] | None = None,
    replicas: Literal["error", "longest"] = "error",
    topic_ids: Mapping[str, str] | None = None,
    log_directory: _Path | None = None,
    open_transactions: Literal["keep", "abort"] = "keep",
    keep_producers: bool = False,
    leader_epoch: int | None = None,
    committed_offsets: _Path | None = None,
    offsets_source: _Path | None = None,
    dry_run: bool = False,
    index_interval_bytes: int = 4096,
    limits: Limits | None = None,
    progress: _ProgressCallback | None = None,
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> RestoreReport:
    """Restore partitions to a log directory that a new broker serves with unchanged offsets.

    Batches are copied byte for byte; indexes, transaction indexes, producer snapshots and leader epochs are built
    from them. ``out`` gets a directory for each partition, and the checkpoints of log start offsets and recovery
    points. Gaps, repeated offsets and omitted objects are in the report, and the rest is restored. Any other
    corruption is an error.

    Args:
        source: A log directory, a partition directory, or a directory that contains log directories at any depth, in
            any layout that kbat reads, or its URL. It is only read.
        out: Directory to write, or its URL; it must be missing or empty. It is created when it is complete.
        until_timestamp: End each log before its first record with this time or a later one: milliseconds since the
            epoch, a ``datetime`` with a time zone, or ISO 8601 text with one. A batch with this record is written
            again, with the records before it.
        until_offset: End each log at this offset; records from there on are not restored. A mapping of names such as
            ``"orders-0"`` to offsets ends only these partitions.
        topics: Only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default: all except internal
            topics such as ``__consumer_offsets``.
        partitions: Only partitions with these numbers. Default: all.
        replicas: What to do if a partition is in several directories: ``"error"`` raises an error, ``"longest"``
            uses the directory with the largest range of offsets.
        topic_ids: Ids of the topics in the new cluster by name, for ``partition.metadata``. A KRaft broker accepts no
            partition without it.
        log_directory: The log directory of the broker that will get the partitions. Ids that ``topic_ids`` does not
            contain are read from it, and the checkpoints in ``out`` contain its other partitions too.
        open_transactions: How to treat transactions that are open at the end of a log: ``"keep"`` or ``"abort"``, which
            appends abort markers.
        keep_producers: Whether the result contains the state of all producers of the source at the end of a log, not
            only of those with an open transaction. In a new cluster, producers get the ids of old ones again: its
            broker would take their first batches for duplicates, acknowledge them, and drop them. Use it for a broker
            of the same cluster.
        leader_epoch: Replace the leader epoch of every batch, usually by 0. This is necessary if batches have epochs
            above that of their partition in the new cluster, which is a warning: consumers would wait for a leader
            after their first commit. Default: keep them.
        committed_offsets: Directory to write with one file per group, for ``kafka-consumer-groups --reset-offsets
            --from-file``. Offsets are at least the start and at most the end of the restored log.
        offsets_source: Path or URL of a log directory with ``__consumer_offsets``. Default: ``source``.
        dry_run: Write nothing and report the plan. It comes from names, indexes and a few batches of each segment.
        index_interval_bytes: Bytes between two index entries, the topic's ``index.interval.bytes``.
        limits: Bounds on untrusted input.
        progress: Called with the bytes done and the total bytes, every few megabytes.
        storage_options: How to open the store of a URL, with the names of object_store, such as
            ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
            ``AWS_ACCESS_KEY_ID``, or the role of the machine.
        store: A store of obstore; paths are relative to it.
        encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
            function that returns the PEM text of an id.
        remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
            offset is read once, from ``source`` if it is there. ``storage_options`` are those of the URLs,
            and ``store`` is that of ``remote``.
        remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
            ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
            partitions in the log directory, if any.

    Raises:
        ValueError: ``out`` is not empty, there is no partition, a partition is in several directories, or an argument
            is wrong.
        CorruptError: A batch, its checksum or its offset is wrong, or a segment ends inside a batch although the log
            continues. Nothing is written.
        LimitError: A batch exceeds the limits.
        OSError: Reading or writing failed.

    Warns:
        UserWarning: Objects of tiered storage that are omitted.

    Example:
        >>> print(kbat.restore("s3://bucket/kafka", "restored", dry_run=True))
        >>> kbat.restore("s3://bucket/kafka", "restored", log_directory="/var/lib/kafka/data")
    """

@final
class RestoredSegment:
    """A segment in the result of a restore."""

    @property
    def base_offset(self) -> int:
        """Base offset in the file's name."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""

    @property
    def path(self) -> str:
        """Path or URL of the file that was read."""

    @property
    def source_bytes(self) -> int:
        """Bytes of the file that was read."""

    @property
    def bytes(self) -> int:
        """Bytes of batches in the result."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class RestoredPartition:
    """A partition in the result of a restore. ``str(partition)`` is a text with one line per finding."""

    @property
    def topic(self) -> str:
        """Name of the topic."""

    @property
    def partition(self) -> int:
        """Number of the partition."""

    @property
    def path(self) -> str:
        """Path or URL of the source directory."""

    @property
    def topic_id(self) -> str | None:
        """Id of the topic in the new cluster; None if unknown, so that there is no ``partition.metadata``."""

    @property
    def source_topic_id(self) -> str | None:
        """Id of the topic in the source's ``partition.metadata``, if there is one."""

    @property
    def segments(self) -> list[RestoredSegment]:
        """The segments, sorted by base offset."""

    @property
    def byte_count(self) -> int:
        """Bytes of batches in the result."""

    @property
    def start_offset(self) -> int:
        """First offset that consumers may read."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""

    @property
    def first_timestamp(self) -> int | None:
        """Timestamp of the first record, milliseconds since the epoch; None if it has none or is unknown."""

    @property
    def max_timestamp(self) -> int | None:
        """Largest timestamp, milliseconds since the epoch; None if no record has one."""

    @property
    def leader_epoch(self) -> int | None:
        """The latest leader epoch; None if unknown."""

    @property
    def cut_offset(self) -> int | None:
        """First offset that is not restored because of ``until_timestamp`` or ``until_offset``, if there is one."""

    @property
    def cut_timestamp(self) -> int | None:
        """Timestamp of the record at ``cut_offset`` if that ended the log, milliseconds since the epoch."""

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """First and last offsets that are in no segment, between two segments. Compaction leaves such gaps too."""

    @property
    def overlaps(self) -> list[tuple[int, int]]:
        """First and last offsets that a segment repeats from the one before it. They were restored once."""

    @property
    def tail_bytes(self) -> int:
        """Bytes after the last batches of segments, which were not restored: an incomplete batch, or zeros."""

    @property
    def open_transactions(self) -> list[OpenTransaction]:
        """Transactions that are open at the end, sorted by first offset. Empty in a dry run."""

    @property
    def warnings(self) -> list[str]:
        """What else is missing or remarkable, such as objects of tiered storage that were omitted."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class OpenTransaction:
    """A transaction that was open at the end of a restored log."""

    @property
    def producer_id(self) -> int:
        """Producer id."""

    @property
    def producer_epoch(self) -> int:
        """Producer epoch."""

    @property
    def first_offset(self) -> int:
        """First offset of the transaction."""

    @property
    def aborted(self) -> bool:
        """Whether an abort marker was appended."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class RestoreReport:
    """The result of :func:`restore`. ``str(report)`` is a text with one line per partition and finding."""

    @property
    def source(self) -> str:
        """Path or URL that was read."""

    @property
    def out(self) -> str:
        """Path of the new log directory."""

    @property
    def dry_run(self) -> bool:
        """Whether this is a dry run: nothing was written, and the report describes the plan."""

    @property
    def partitions(self) -> list[RestoredPartition]:
        """The partitions, sorted by topic and number."""

    @property
    def skipped(self) -> list[tuple[str, int, str, str]]:
        """Partitions of the source that are not in the result, as ``(topic, partition, path, reason)``."""

    @property
    def committed_offsets(self) -> list[tuple[str, str, int, int, int]]:
        """Committed offsets as ``(group, topic, partition, committed, offset)``, sorted.

        ``offset`` is the committed offset, but at least the start and at most the end of the restored log.
        """

    @property
    def warnings(self) -> list[str]:
        """Findings that do not concern a single partition."""

    @property
    def byte_count(self) -> int:
        """Bytes of batches in the result."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
