# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Write partitions."""

import os
from types import TracebackType
from typing import Literal, Self, final

from typing_extensions import Buffer

from kbat._core import Limits, _Compression, _Headers, _Time, _TimestampType

__all__ = ["LogWriter", "RecordWriter", "max_open_logs"]

@final
class LogWriter:
    """Writes records and batches into a partition directory.

    Also writes the files that a broker keeps with them: indexes, producer snapshots, leader epochs.

    A missing directory is created. An existing log is continued: the writer checks each batch of the last segment,
    truncates an incomplete batch at its end, as a broker does after an unclean shutdown, and rebuilds its indexes.
    Corruption before whole batches raises an error. Records are durable once ``flush`` or ``close`` has returned. If
    the process ends before that, or the writer is dropped without being closed, the last records are lost (a
    ``ResourceWarning`` counts them). A directory can have only one writer; threads may share it.

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
        limits: Bounds on existing data and on the batches that are written: none is larger than ``batch_len``.

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
        compression: _Compression = "none",
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
            timestamp: Milliseconds since the epoch, -1 for none; a ``datetime`` or ISO 8601 text with a time zone,
                whose microseconds round down to milliseconds.
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

@final
class RecordWriter:
    """Writes a partition whose records keep their offsets and timestamps.

    Records with consecutive offsets and ``CreateTime`` become the batches that :class:`kbat.LogWriter` makes of them.
    Others are in batches with gaps, with the time of an append, or of message format 0.

    Args:
        directory: The partition directory.
        start_offset: First offset of a new partition.
        compression: Codec of the batches.
        level: Compression level, numbered as in Kafka.
        batch_size: Bytes of records, before compression, at which a batch is full.
        segment_bytes: Maximum bytes of a segment.

    Raises:
        ValueError: An argument is invalid, or the directory has another writer.
        OSError: Reading or writing failed.
    """

    def __new__(
        cls,
        directory: str | os.PathLike[str],
        *,
        start_offset: int = 0,
        compression: _Compression = "none",
        level: int | None = None,
        batch_size: int = 16384,
        segment_bytes: int = 1073741824,
    ) -> Self: ...
    @property
    def end_offset(self) -> int:
        """The offset after the last record.

        Raises:
            ValueError: The writer is closed.
        """

    def append(
        self,
        key: Buffer | None,
        value: Buffer | None,
        *,
        timestamp: int,
        offset: int | None = None,
        timestamp_type: _TimestampType | None = "CreateTime",
        create_time: int | None = None,
        headers: _Headers | None = None,
    ) -> None:
        """Append a record.

        Args:
            key: Bytes-like, or None for null.
            value: Bytes-like, or None for null.
            offset: An offset above the last one; None for the next one.
            timestamp: Milliseconds since the epoch, -1 for none.
            timestamp_type: ``"CreateTime"`` or ``"LogAppendTime"``; None for a record of message format 0.
            create_time: The producer's timestamp, which a batch stores below the time of an append, if it is known.
            headers: Pairs of key and value, as for :meth:`kbat.LogWriter.append`.

        Raises:
            ValueError: An offset that does not rise, or Kafka's rules forbid the record, which is then not appended.
            OSError: A full batch can't be written.
        """

    def append_batches(self, data: Buffer) -> None:
        """Append complete batches, which keep their offsets.

        Args:
            data: Bytes-like: one batch or several.

        Raises:
            CorruptError: A batch is damaged.
            ValueError: The bytes are not whole batches, or offsets do not rise.
            OSError: Writing failed.
        """

    def begin_batch(
        self,
        *,
        base_offset: int,
        last_offset: int,
        magic: int,
        attributes: int,
        partition_leader_epoch: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        record_count: int | None = None,
    ) -> None:
        """Begin a batch with these fields, of which those that a message format does not have are -1.

        It has the next records up to its last offset, however large it becomes. With the records that it had before,
        and without compression, it is the same byte for byte.

        Args:
            base_offset: Offset of the first record when the batch was written.
            last_offset: Offset of the last record when the batch was written.
            magic: Message format: 0, 1 or 2.
            attributes: The attributes as stored: codec, timestamp type and flags.
            partition_leader_epoch: Leader epoch of the append.
            base_timestamp: The stored base timestamp, or the delete horizon, in milliseconds since the epoch.
            max_timestamp: The largest timestamp, or the time of the append, in milliseconds since the epoch.
            producer_id: Producer id.
            producer_epoch: Producer epoch.
            base_sequence: Sequence of the first record.
            record_count: Number of records that will be appended; None if it is unknown.

        Raises:
            ValueError: Offsets that are not above those before, fields that Kafka's rules forbid, or another number of
                records in the batch before than its record count.
            OverflowError: A number does not fit its field.
            OSError: The batch before can't be written.
        """

    def append_json_lines(self, data: bytes, start: int, topic: str | None, partition: int | None) -> tuple[int, int]:
        """Append the records of JSON lines of one topic and partition, as ``kbat cat`` prints them.

        Args:
            data: The lines.
            start: Byte at which the first line begins.
            topic: The topic that the lines must have.
            partition: The partition that they must have.

        Returns:
            The byte at which the first line begins that was not appended, and the number of records. That line has
            another form, topic or partition, or :meth:`append` would refuse its record or :meth:`begin_batch` its
            batch.

        Raises:
            OSError: A full batch can't be written.
        """

    def close(self) -> None:
        """Write everything, and close the files. A second call has no effect.

        Raises:
            OSError: Writing failed.
        """

def max_open_logs() -> int:
    """Return how many logs this process can keep open: they use at most half of the files that it may open."""
