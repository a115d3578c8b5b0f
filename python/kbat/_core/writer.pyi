# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Write partitions."""

import os
from types import TracebackType
from typing import Literal, Self, final

from typing_extensions import Buffer

from kbat._core import Limits, _Headers, _Time

__all__ = ["LogWriter"]

@final
class LogWriter:
    """Writes records and batches into a partition directory.

    Also writes the files that a broker keeps with them: indexes, producer snapshots, leader epochs.

    A missing directory is created. An existing log is continued: the writer checks each batch of the last segment,
    truncates an incomplete batch at its end, as a broker does after an unclean shutdown, and rebuilds its indexes.
    Corruption before whole batches raises an error. Records are durable once ``flush`` or ``close`` has returned. If
    the process ends before that, the last records may be lost. A directory can have only one writer; threads may
    share it.

    Args:
        directory: The partition directory, such as ``orders-0``.
        segment_bytes: Maximum bytes of a segment.
        segment_ms: Maximum distance of timestamps from those of a segment's first batch; None for no limit. A
            broker's default is 604800000.
        index_interval_bytes: Bytes between batches with an index entry.
        segment_index_bytes: Maximum bytes of an index.
        compression: Codec of batches made from records.
        level: Compression level, numbered as in Kafka.
        batch_size: Bytes of records, before compression, at which a batch is full.
        leader_epoch: Leader epoch of the batches; None for the partition's latest, or 0 if it has none.
        topic_id: 22 characters of base64url for ``partition.metadata``; None to omit the file.
        start_offset: First offset of a new partition.
        sync: When data is flushed to disk. ``"flush"``: by ``flush``, by ``close`` and at the end of a segment;
            ``"always"``: also after each batch.
        limits: Bounds on existing data and on appended batches.

    Raises:
        ValueError: An argument is invalid or breaks Kafka's rules, the directory has another writer or a running
            broker, or its topic id differs.
        CorruptError: The last segment has corruption before whole batches.
        OSError: Reading or writing failed.

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
        """The offset of the next record.

        Raises:
            ValueError: The writer is closed.
        """

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which all transactions are completed.

        The first offset of the earliest open transaction, or the end of the written batches if none is open.

        Raises:
            ValueError: The writer is closed.
        """

    @property
    def truncated_bytes(self) -> int:
        """Bytes that were truncated from the last segment when it was opened."""

    @property
    def closed(self) -> bool:
        """Whether the writer is closed."""

    def append(
        self,
        key: Buffer | None,
        value: Buffer | None,
        *,
        timestamp: _Time,
        headers: _Headers | None = None,
    ) -> int:
        """Append a record. The writer groups records into batches.

        Args:
            key: Bytes-like, or None for null.
            value: Bytes-like, or None for null.
            timestamp: Milliseconds since the epoch, -1 for none; a ``datetime`` or ISO 8601 text with a time zone.
            headers: A dictionary, or pairs of key and value as tuples, lists, or dictionaries with ``key`` and
                ``value``. Keys are ``str`` or bytes-like, values bytes-like or None.

        Returns:
            The record's offset. The record is durable once ``flush`` or ``close`` has returned.

        Raises:
            ValueError: Kafka's rules forbid the record, which is then not appended; or the writer is closed or has
                failed.
            OSError: A full batch can't be written.
        """

    def append_batch(self, data: Buffer, *, keep_offsets: bool = False) -> int:
        """Append whole batches: all of them, or none if one is rejected.

        Args:
            data: Bytes-like: one batch or several, of any message format.
            keep_offsets: False: assign the next offsets and the leader epoch, after a leader's checks (checksum,
                every record readable, consecutive offsets). True: keep offsets and leader epochs, after a follower's
                checks (checksum, rising offsets).

        Returns:
            The first offset of the first batch.

        Raises:
            CorruptError: A batch is damaged.
            ValueError: The bytes are not whole batches, a batch exceeds ``segment_bytes``, offsets do not rise, or
                the writer is closed or has failed.
            OSError: Writing failed.
        """

    def flush(self) -> None:
        """Write all appended records and flush them to disk. They are durable once this returns.

        Raises:
            OSError: Writing failed. Nothing can be appended afterwards: open the directory again.
            ValueError: The writer is closed or has failed.
        """

    def close(self) -> None:
        """Flush, and leave the files as a broker does after a clean shutdown. A second call has no effect.

        Raises:
            OSError: Writing failed.
            ValueError: An earlier write failed.
        """

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
