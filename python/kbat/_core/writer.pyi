# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Writing partitions."""

import os
from types import TracebackType
from typing import Literal, Self, final

from typing_extensions import Buffer

from kbat._core import Limits, _Headers, _Time

__all__ = ["LogWriter"]

@final
class LogWriter:
    """Writes records and batches into a partition directory.

    With the files that a broker writes beside them: indexes, producer snapshots, leader epochs.

    A directory that is not there is made. Opening one that is continues it: the last segment is looked at batch by
    batch, half a batch at its end is cut, as a broker does on an unclean start, and its indexes are made anew;
    damage that whole batches follow is refused. What ``flush`` or ``close`` returned for is never lost; without them,
    as after a kill, the last records may be. One writer a directory; threads may share it.

    Args:
        directory: The partition directory, such as ``orders-0``.
        segment_bytes: Most bytes of a segment.
        segment_ms: How far timestamps may be past those of a segment's first batch; None for no bound. A broker has
            604800000 unless its topic says otherwise.
        index_interval_bytes: Bytes between batches with an index entry.
        segment_index_bytes: Most bytes of an index.
        compression: Codec of batches made from records.
        level: Level of that codec, as Kafka counts.
        batch_size: Bytes of records, before compression, that make a batch full.
        leader_epoch: Leader epoch of the batches; None for the partition's latest, or 0.
        topic_id: 22 characters of base64url for ``partition.metadata``; None writes none.
        start_offset: First offset of a partition that is new.
        sync: ``"flush"``: flushed to the disk by ``flush``, by ``close`` and where a segment ends; ``"always"``: also
            after each batch.
        limits: Bounds on what is read and on batches that are appended.

    Raises:
        ValueError: What Kafka's rules forbid; another writer or a running broker in the directory; another topic id.
        CorruptError: Damage in the last segment that whole batches follow.
        OSError: Reading and writing.

    Example:
        >>> with kbat.LogWriter("out/orders-0", compression="zstd") as writer:
        ...     writer.append(b"key", b"value", timestamp=1_700_000_000_000)
        0
    """

    def __new__(
        cls,
        directory: str | os.PathLike[str],
        *,
        segment_bytes: int = 1073741824,
        segment_ms: int | None = None,
        index_interval_bytes: int = 4096,
        segment_index_bytes: int = 10485760,
        compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none",
        level: int | None = None,
        batch_size: int = 16384,
        leader_epoch: int | None = None,
        topic_id: str | None = None,
        start_offset: int = 0,
        sync: Literal["flush", "always"] = "flush",
        limits: Limits | None = None,
    ) -> Self: ...
    @property
    def directory(self) -> str:
        """Path of the directory."""

    @property
    def start_offset(self) -> int:
        """Base offset of the first segment."""

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets.

        Raises:
            ValueError: The writer is closed.
        """

    @property
    def last_stable_offset(self) -> int:
        """Up to where transactions are decided.

        First offset of the earliest open one, else the end of the batches written.

        Raises:
            ValueError: The writer is closed.
        """

    @property
    def truncated_bytes(self) -> int:
        """Bytes that were cut from the last segment when it was opened."""

    @property
    def closed(self) -> bool:
        """Whether it is closed."""

    def append(
        self,
        key: Buffer | None,
        value: Buffer | None,
        *,
        timestamp: _Time,
        headers: _Headers | None = None,
    ) -> int:
        """Append a record, to be written with others as a batch.

        Args: key: Bytes-like, or None for null. value: Bytes-like, or None for null. timestamp: Milliseconds since the
            epoch, -1 for none; a ``datetime`` or ISO 8601 text with a time zone. headers: A dictionary, or pairs of
            key and value as tuples, lists, or dictionaries with ``key`` and ``value``.
                Keys are ``str`` or bytes-like, values bytes-like or None.

        Returns:
            Its offset. The record is there to stay once ``flush`` or ``close`` returned.

        Raises:
            ValueError: What Kafka's rules forbid, with nothing appended; a writer that is closed, or failed before.
            OSError: A batch that was full can't be written.
        """

    def append_batch(self, data: Buffer, *, keep_offsets: bool = False) -> int:
        """Append whole batches: all of them, or none where one is refused.

        Args:
            data: Bytes-like: one batch or several, of any message format.
            keep_offsets: False: they get the next offsets and the leader epoch, after a leader's checks (checksum,
                every record readable, offsets that count up). True: offsets and leader epochs are kept, after a
                follower's checks (checksum, offsets that rise).

        Returns:
            The first offset of the first batch.

        Raises:
            CorruptError: A batch that is damaged.
            ValueError: Bytes that are not whole batches; a batch over ``segment_bytes``; offsets that do not rise; a
                writer that is closed, or failed before.
            OSError: Writing.
        """

    def flush(self) -> None:
        """Write what was appended and flush it to the disk. What was appended before can't be lost after it.

        Raises:
            OSError: Writing. Nothing can be appended after that: open the directory again.
            ValueError: The writer is closed, or failed before.
        """

    def close(self) -> None:
        """Flush, and leave the files as a broker leaves them after a clean shutdown. Nothing happens the second time.

        Raises:
            OSError: Writing.
            ValueError: A write failed before.
        """

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
