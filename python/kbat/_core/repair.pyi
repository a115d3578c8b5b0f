# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Damaged logs: verifying, recovering, salvaging, rebuilding indexes."""

import os
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, final

from kbat._core import Limits

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
) -> Report:
    """Verify a ``.log`` file with the indexes beside it, a partition directory, or a log directory with its partitions.

    Everything that a broker's recovery and ``kafka-dump-log`` check, and more. Nothing is changed; damage of any kind
    is in the report, never an exception.

    Args:
        path: The file or directory.
        topics: Of a log directory, only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default: all.
        partitions: Of a log directory, only partitions with these numbers. Default: all.
        limits: Bounds on untrusted input.
        progress: Called with the bytes done and the bytes to do, every few megabytes.

    Raises:
        LimitError: A batch is longer than ``limits.batch_len``. A record over another limit is a finding ``limit``.
        OSError: A file can't be read.
        ValueError: The path holds something but no segment, or a topic or partition does not exist.

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
) -> RepairReport:
    """Recover a partition directory as a broker does when it starts after an unclean shutdown.

    The log is cut at the first batch that is incomplete or whose size, magic or checksum is wrong, and all later
    segments are deleted; indexes, transaction indexes, producer snapshots and leader epochs are made from what is
    left. Files of interrupted compactions and deletions are settled. To keep what lies after the first fault, use
    ``salvage``.

    Args:
        path: The partition's directory.
        out: Directory for the recovered copy; it must be missing or empty. It appears when it is complete.
        dry_run: Change nothing and report what would be done.
        in_place: Change the directory itself. Refused where a broker holds the log directory's ``.lock`` (seen on
            Linux only).
        index_interval_bytes: Bytes between two index entries, the topic's ``index.interval.bytes``.
        limits: Bounds on untrusted input.
        progress: Called with the bytes done and the bytes to do, every few megabytes.

    Raises:
        ValueError: Neither or both of ``out`` and ``in_place``; ``out`` is not empty; no segment; a segment of
            2 GiB or more; a broker runs.
        LimitError: A batch whose checksum is right is over the limits.
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
) -> RepairReport:
    """Keep every whole batch of a file or partition directory that a broker would cut at the first fault.

    A batch is whole if its size, magic and checksum are right, all its records can be read, and its offsets lie after
    those of the batch before it. After damage the next batch is looked for; bytes inside a record are never taken for
    one. What was left out is in ``dropped`` of the report and in the file ``holes.jsonl`` of the result.

    Args:
        path: The file or directory, which is only read.
        out: Directory to write; it must be missing or empty. It appears when it is complete: segments with their
            offsets as they were, indexes, producer snapshots, leader epochs.
        index_interval_bytes: Bytes between two index entries.
        limits: Bounds on untrusted input.
        progress: Called with the bytes done and the bytes to do, every few megabytes.

    Raises:
        ValueError: ``out`` is not empty; no segment.
        LimitError: A batch that is whole is over the limits.
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
    """Make ``.index``, ``.timeindex``, ``.txnindex`` and producer snapshots anew, for a partition or one segment.

    No byte of a ``.log`` file is changed. Indexes reach up to a segment's first fault. Snapshots that can be read are
    kept.

    Args:
        path: The partition's directory, or a ``.log`` file.
        out: Directory for the new files; it must be missing or empty. Default: they replace those beside the log.
        index_interval_bytes: Bytes between two index entries, the topic's ``index.interval.bytes``.
        limits: Bounds on untrusted input.
        progress: Called with the bytes done and the bytes to do, every few megabytes.

    Raises:
        ValueError: ``out`` is not empty; no segment; a broker runs and the files would be replaced.
        LimitError: A batch whose checksum is right is over the limits.
        OSError: Reading or writing failed.

    Example:
        >>> kbat.rebuild_indexes("orders-0")
    """

@final
class Finding:
    """Something that is not as it should be."""

    @property
    def severity(self) -> Literal["info", "warning", "error"]:
        """How bad it is.

        ``"info"``: normal in some logs; ``"warning"``: a broker lives with it; ``"error"``: data is lost, a broker
        would cut the log or not start, or its answers would be wrong.
        """

    @property
    def kind(self) -> str:
        """What it is, a stable name in snake_case."""

    @property
    def path(self) -> str:
        """The file or directory."""

    @property
    def position(self) -> int | None:
        """Where in the file, in bytes."""

    @property
    def offset(self) -> int | None:
        """The Kafka offset it is about."""

    @property
    def message(self) -> str:
        """What it means and what to do."""

    def to_dict(self) -> dict[str, Any]:
        """All of it under its names."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Report:
    """What :func:`verify` found. ``str(report)`` is a text of a line a finding."""

    @property
    def path(self) -> str:
        """What was verified."""

    @property
    def ok(self) -> bool:
        """Whether there is no error."""

    @property
    def exit_code(self) -> int:
        """What a command should exit with: 0 where nothing is wrong, 1 for warnings, 2 for errors."""

    @property
    def findings(self) -> list[Finding]:
        """Everything found, in the order of the files; of one kind in one file only the first twenty."""

    @property
    def omitted_count(self) -> int:
        """Findings that are not listed."""

    @property
    def segment_count(self) -> int:
        """Segments read."""

    @property
    def batch_count(self) -> int:
        """Batches that are whole."""

    @property
    def record_count(self) -> int:
        """Records in them."""

    @property
    def byte_count(self) -> int:
        """Bytes of ``.log`` files."""

    def to_dict(self) -> dict[str, Any]:
        """All of it under its names; paths as text."""

@final
class RepairedSegment:
    """A segment of the result of a repair."""

    @property
    def base_offset(self) -> int:
        """Base offset in the file's name."""

    @property
    def path(self) -> str:
        """The file that was read."""

    @property
    def bytes_before(self) -> int:
        """Bytes of the file that was read."""

    @property
    def bytes_after(self) -> int:
        """Bytes of batches in the result."""

    @property
    def batch_count(self) -> int:
        """Batches in the result."""

    def to_dict(self) -> dict[str, Any]:
        """All of it under its names."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class DroppedRange:
    """Bytes of the input that are not in the result of a repair."""

    @property
    def path(self) -> str:
        """The file."""

    @property
    def position(self) -> int:
        """First byte."""

    @property
    def length(self) -> int:
        """How many bytes."""

    @property
    def first_offset(self) -> int | None:
        """The first offset that may be lost; None where none is."""

    @property
    def last_offset(self) -> int | None:
        """The last offset that may be lost; None where none is, or nothing tells it."""

    @property
    def reason(self) -> str:
        """Why, a stable name in snake_case."""

    @property
    def message(self) -> str:
        """Why, in words."""

    def to_dict(self) -> dict[str, Any]:
        """All of it under its names."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class RepairReport:
    """What :func:`recover`, :func:`salvage` or :func:`rebuild_indexes` found and did.

    ``str(report)`` is a text of a line a finding.
    """

    @property
    def path(self) -> str:
        """What was read."""

    @property
    def out(self) -> str | None:
        """Where the result lies; None where it was worked in place or nothing was written."""

    @property
    def dry_run(self) -> bool:
        """Whether nothing was written: this is what would be done."""

    @property
    def segments(self) -> list[RepairedSegment]:
        """The segments of the result, by base offset."""

    @property
    def dropped(self) -> list[DroppedRange]:
        """Bytes of the input that are in no segment of the result.

        For :func:`rebuild_indexes`, bytes that no index covers.
        """

    @property
    def files(self) -> list[tuple[str, Literal["written", "deleted", "truncated", "renamed"]]]:
        """Files as ``(name, action)``: ``"written"``, ``"deleted"``, ``"truncated"``, ``"renamed"``.

        ``.log`` files of a copy are left out.
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
        """All of it under its names."""
