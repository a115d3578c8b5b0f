# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Verify, recover and salvage damaged logs, and rebuild indexes."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, final

from kbat._core import Limits, _EncryptionKeys

_Path: TypeAlias = str | os.PathLike[str]
_ProgressCallback: TypeAlias = Callable[[int, int], object]

__all__ = [
    "DroppedRange",
    "Finding",
    "RepairReport",
    "RepairedSegment",
    "Report",
    "rebuild_indexes",
    "recover",
    "salvage",
    "verify",
]

def verify(
    path: _Path,
    *,
    topics: str | Iterable[str] | None = None,
    partitions: int | Iterable[int] | None = None,
    limits: Limits | None = None,
    progress: _ProgressCallback | None = None,
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> Report:
    """Verify a ``.log`` file with its indexes, a partition directory, or a log directory with its partitions.

    Checks everything that a broker's recovery and ``kafka-dump-log`` check, and more. Nothing is changed. Corruption
    of any kind is in the report and never raises.

    Args:
        path: The file or directory, or its URL.
        topics: In a log directory, only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default:
            all.
        partitions: In a log directory, only partitions with these numbers. Default: all.
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
        LimitError: A batch is longer than ``limits.batch_len``. Other exceeded limits are findings of kind
            ``limit``.
        OSError: A file can't be read.
        ValueError: The directory is not empty but contains no segment, or a topic or partition does not exist.

    Example:
        >>> report = kbat.verify("/var/lib/kafka/data")
        >>> print(report)
        >>> sys.exit(report.exit_code)
    """

def recover(
    path: _Path,
    out: _Path | None = None,
    dry_run: bool = False,
    *,
    in_place: bool = False,
    index_interval_bytes: int = 4096,
    limits: Limits | None = None,
    progress: _ProgressCallback | None = None,
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> RepairReport:
    """Recover a partition directory as a broker does when it starts after an unclean shutdown.

    The log is truncated at the first batch that is incomplete or whose size, magic or checksum is wrong, and all
    later segments are deleted. Indexes, transaction indexes, producer snapshots and leader epochs are rebuilt from
    the remaining batches. Interrupted compactions and deletions are completed or undone. To keep the batches after
    the first corruption, use ``salvage``.

    Args:
        path: The partition's directory, or its URL.
        out: Directory for the recovered copy, or its URL; it must be missing or empty. It is created when the copy is
            complete.
        dry_run: Change nothing and report what would be done.
        in_place: Change the directory itself. Fails if a broker holds the log directory's ``.lock`` (detected only
            on Linux).
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
            offset is read once, from ``path`` if it is there. ``storage_options`` are those of the URLs,
            and ``store`` is that of ``remote``.
        remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
            ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
            partitions in the log directory, if any.

    Raises:
        ValueError: Neither or both of ``out`` and ``in_place`` are set, ``out`` is not empty, there is no segment, a
            segment has 2 GiB or more, or a broker is running.
        LimitError: A batch with a valid checksum exceeds the limits.
        OSError: Reading or writing failed.

    Example:
        >>> print(kbat.recover("orders-0", dry_run=True))
        >>> kbat.recover("orders-0", "recovered/orders-0").end_offset
    """

def salvage(
    path: _Path,
    out: _Path,
    *,
    index_interval_bytes: int = 4096,
    limits: Limits | None = None,
    progress: _ProgressCallback | None = None,
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> RepairReport:
    """Keep every whole batch of a file or partition directory, including those that ``recover`` would drop.

    A batch is whole if its size, magic and checksum are correct, all its records can be read, and its offsets come
    after those of the previous batch. After corruption, the search for the next batch never mistakes bytes inside a
    record for a batch. The report lists the omitted bytes in ``dropped``, and the file ``holes.jsonl`` in ``out``
    lists them too.

    Args:
        path: The file or directory, or its URL. It is only read.
        out: Directory to write, or its URL; it must be missing or empty. It is created when it is complete: segments
            with unchanged offsets, indexes, producer snapshots, leader epochs.
        index_interval_bytes: Bytes between two index entries.
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
        ValueError: ``out`` is not empty, or there is no segment.
        LimitError: A whole batch exceeds the limits.
        OSError: Reading or writing failed.

    Example:
        >>> for hole in kbat.salvage("orders-0", "saved/orders-0").dropped:
        ...     print(hole.position, hole.length, hole.first_offset, hole.last_offset, hole.reason)
    """

def rebuild_indexes(
    path: _Path,
    out: _Path | None = None,
    *,
    index_interval_bytes: int = 4096,
    limits: Limits | None = None,
    progress: _ProgressCallback | None = None,
) -> RepairReport:
    """Rebuild ``.index``, ``.timeindex``, ``.txnindex`` and producer snapshots of a partition or one segment.

    ``.log`` files are not changed. Indexes cover a segment up to its first corruption. Readable snapshots are kept.

    Args:
        path: The partition's directory, or a ``.log`` file.
        out: Directory for the new files; it must be missing or empty. Default: replace the existing ones.
        index_interval_bytes: Bytes between two index entries, the topic's ``index.interval.bytes``.
        limits: Bounds on untrusted input.
        progress: Called with the bytes done and the total bytes, every few megabytes.

    Raises:
        ValueError: ``out`` is not empty, there is no segment, or the files would be replaced while a broker is
            running.
        LimitError: A batch with a valid checksum exceeds the limits.
        OSError: Reading or writing failed.

    Example:
        >>> kbat.rebuild_indexes("orders-0")
    """

@final
class Finding:
    """One finding of :func:`verify`."""

    @property
    def severity(self) -> Literal["info", "warning", "error"]:
        """Severity of the finding.

        ``"info"``: normal in some logs. ``"warning"``: a broker works despite it. ``"error"``: data is lost, a
        broker would truncate the log or fail to start, or it would return wrong results.
        """

    @property
    def kind(self) -> str:
        """Kind of the finding, a stable name in snake_case."""

    @property
    def path(self) -> str:
        """Path of the file or directory."""

    @property
    def position(self) -> int | None:
        """Position in the file, in bytes."""

    @property
    def offset(self) -> int | None:
        """The Kafka offset that the finding concerns."""

    @property
    def message(self) -> str:
        """Meaning of the finding, and what to do."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Report:
    """The result of :func:`verify`. ``str(report)`` is a text with one line per finding."""

    @property
    def path(self) -> str:
        """Path that was verified."""

    @property
    def ok(self) -> bool:
        """Whether there is no error."""

    @property
    def exit_code(self) -> int:
        """Exit code for a command: 0 if nothing is wrong, 1 for warnings, 2 for errors."""

    @property
    def findings(self) -> list[Finding]:
        """Findings in the order of the files; of each kind, only the first twenty per file."""

    @property
    def omitted_count(self) -> int:
        """Number of findings that are not listed."""

    @property
    def segment_count(self) -> int:
        """Number of segments read."""

    @property
    def batch_count(self) -> int:
        """Number of whole batches."""

    @property
    def record_count(self) -> int:
        """Number of records in them."""

    @property
    def byte_count(self) -> int:
        """Bytes of the ``.log`` files."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""

@final
class RepairedSegment:
    """A segment in the result of a repair."""

    @property
    def base_offset(self) -> int:
        """Base offset from the file's name."""

    @property
    def path(self) -> str:
        """Path of the file that was read."""

    @property
    def bytes_before(self) -> int:
        """Bytes of the file that was read."""

    @property
    def bytes_after(self) -> int:
        """Bytes of batches in the result."""

    @property
    def batch_count(self) -> int:
        """Number of batches in the result."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class DroppedRange:
    """Bytes of the input that are not in the result of a repair."""

    @property
    def path(self) -> str:
        """Path of the file."""

    @property
    def position(self) -> int:
        """Position of the first byte."""

    @property
    def length(self) -> int:
        """Number of bytes."""

    @property
    def first_offset(self) -> int | None:
        """The first offset that may be lost; None if no offset is."""

    @property
    def last_offset(self) -> int | None:
        """The last offset that may be lost; None if no offset is, or if it is unknown."""

    @property
    def reason(self) -> str:
        """Why the bytes were dropped, a stable name in snake_case."""

    @property
    def message(self) -> str:
        """Why the bytes were dropped, in words."""

    @property
    def open_transactions(self) -> list[tuple[int, int]]:
        """Transactions that were open before the range, as ``(producer_id, first_offset)``: their ends may be in it.

        Only :func:`salvage` lists them, at most 100, for the first of several ranges without a batch between them.
        """

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class RepairReport:
    """The result of :func:`recover`, :func:`salvage` or :func:`rebuild_indexes`.

    ``str(report)`` is a text with one line per finding.
    """

    @property
    def path(self) -> str:
        """Path that was read."""

    @property
    def out(self) -> str | None:
        """Path of the result; None if the directory was changed in place or nothing was written."""

    @property
    def dry_run(self) -> bool:
        """Whether this is a dry run: nothing was written, and the report describes what would be done."""

    @property
    def segments(self) -> list[RepairedSegment]:
        """The segments of the result, sorted by base offset."""

    @property
    def dropped(self) -> list[DroppedRange]:
        """Bytes of the input that are not in any segment of the result.

        For :func:`rebuild_indexes`, bytes that no index covers.
        """

    @property
    def files(self) -> list[tuple[str, Literal["written", "deleted", "truncated", "renamed"]]]:
        """Files as ``(name, action)``: ``"written"``, ``"deleted"``, ``"truncated"``, ``"renamed"``.

        ``.log`` files of a copy are omitted.
        """

    @property
    def is_complete(self) -> bool:
        """Whether every byte of the input is in the result."""

    @property
    def start_offset(self) -> int:
        """Base offset of the first segment."""

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
