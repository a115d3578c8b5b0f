# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Build, edit, convert and validate batches, and make transaction markers."""

from collections.abc import Iterable
from typing import Literal, Self, TypeAlias, final

from typing_extensions import Buffer

from kbat._core import Limits, _Compression, _Headers, _Time, _TimestampType
from kbat._core.log import PartitionLog

_Loss: TypeAlias = Literal[
    "headers",
    "producer",
    "partition_leader_epoch",
    "transactional",
    "control_batches",
    "delete_horizon",
    "timestamps",
    "timestamp_type",
    "offset_range",
]
_ErrorCode: TypeAlias = Literal[
    "UNKNOWN_SERVER_ERROR",
    "CORRUPT_MESSAGE",
    "MESSAGE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE",
    "INVALID_TIMESTAMP",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    "UNSUPPORTED_COMPRESSION_TYPE",
    "INVALID_PRODUCER_EPOCH",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "INVALID_TXN_STATE",
    "INVALID_RECORD",
]

__all__ = [
    "BatchBuilder",
    "Validation",
    "batch_size",
    "codecs",
    "convert",
    "end_transaction_marker",
    "partition_for_key",
    "set_base_offset",
    "set_log_append_time",
    "set_partition_leader_epoch",
    "validate",
]

@final
class BatchBuilder:
    """Builds a batch record by record, by the rules of Kafka's own builder.

    Args:
        magic: Message format: 0, 1 or 2.
        compression: Kafka's name of the codec, such as ``"lz4"``; ``"zstd"`` needs magic 2.
        level: Compression level, numbered as in Kafka, such as 1 to 9 for gzip. Default: Kafka's own, such as 3 for
            zstd, and 9 for lz4, which is its fast compressor.
        base_offset: Offset of the batch, and of the first record unless ``append`` sets another.
        timestamp_type: ``"CreateTime"`` or ``"LogAppendTime"``; magic 0 has no timestamps.
        log_append_time: The timestamp of all records with ``"LogAppendTime"``, milliseconds since the epoch.
        producer_id: Producer id, -1 for none. If set, ``producer_epoch`` and ``base_sequence`` are required.
        producer_epoch: Producer epoch, -1 for none.
        base_sequence: Sequence of the first record, -1 for none.
        transactional: Whether the batch belongs to a transaction.
        control: Whether the batch holds control records.
        partition_leader_epoch: Leader epoch, -1 for none.
        delete_horizon_ms: Delete horizon to store instead of the base timestamp, milliseconds since the epoch.
        last_offset: Last offset of the batch, if that is not its last record's offset (as after compaction).

    Raises:
        ValueError: Kafka's rules forbid a setting. ``finish`` reports settings that contradict each other.

    Example:
        >>> builder = kbat.BatchBuilder(compression="lz4", base_offset=42)
        >>> builder.append(b"key", b"value", timestamp=1700000000000, headers=[("trace", b"1")])
        >>> data = builder.finish()
    """

    def __new__(
        cls,
        magic: int = 2,
        compression: _Compression = "none",
        level: int | None = None,
        *,
        base_offset: int = 0,
        timestamp_type: _TimestampType = "CreateTime",
        log_append_time: int | None = None,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
        control: bool = False,
        partition_leader_epoch: int = -1,
        delete_horizon_ms: int | None = None,
        last_offset: int | None = None,
    ) -> Self: ...
    def append(
        self,
        key: Buffer | None,
        value: Buffer | None,
        *,
        timestamp: _Time,
        headers: _Headers | None = None,
        offset: int | None = None,
    ) -> None:
        """Append a record.

        Args:
            key: Bytes-like, or None for null.
            value: Bytes-like, or None for null.
            timestamp: Milliseconds since the epoch, -1 for none; a ``datetime`` or ISO 8601 text with a time zone,
                whose microseconds round down to milliseconds.
            headers: A dictionary, or pairs of key and value as tuples, lists, or dictionaries with ``key`` and
                ``value``. Keys are ``str`` or bytes-like, values bytes-like or None.
            offset: Offset above the last one; the next one by default.

        Raises:
            ValueError: Kafka's rules forbid the record. The builder is unchanged.
            TypeError: A key, value or header has another type. The builder is unchanged.
        """

    @property
    def size(self) -> int:
        """Size of the batch in bytes before compression. Exact if the codec is ``"none"``; 0 without records."""

    @property
    def estimated_size(self) -> int:
        """Upper bound on the bytes that ``finish()`` returns. Equal to ``size`` if the codec is ``"none"``."""

    @property
    def record_count(self) -> int:
        """Records appended so far."""

    def finish(self) -> bytes:
        """Return the bytes of the batch; empty without records, as in Kafka. The builder can't be used afterwards.

        Raises:
            ValueError: Kafka's rules forbid a setting, or this is the second call.
        """

def batch_size(
    records: Iterable[
        tuple[int, Buffer | None, Buffer | None] | tuple[int, Buffer | None, Buffer | None, _Headers | None]
    ],
    *,
    magic: int = 2,
    compression: _Compression = "none",
) -> int:
    """Compute the size of a batch of these records without building it.

    Args:
        records: ``(timestamp, key, value)`` or ``(timestamp, key, value, headers)`` tuples; offsets count from 0.
        magic: Message format: 0, 1 or 2.
        compression: As for :class:`BatchBuilder`.

    Returns:
        Bytes: exact without compression, an upper bound with it; 0 without records.
    """

def set_base_offset(data: bytearray, base_offset: int, *, position: int = 0) -> None:
    """Set the base offset of a batch, in place. Its checksum does not cover the offset.

    Args:
        data: A bytearray.
        base_offset: The new base offset. For a compressed set of magic 1, the offset of its first message.
        position: Where in ``data`` the batch begins.

    Raises:
        CorruptError: The bytes at ``position`` are not a batch.
        UnsupportedError: The magic is not 0, 1 or 2.
        ValueError: The bytes end inside the batch, or it is a compressed set of magic 0, whose offsets are
            compressed.
    """

def set_partition_leader_epoch(data: bytearray, partition_leader_epoch: int, *, position: int = 0) -> None:
    """Set the partition leader epoch of a batch, in place. Its checksum does not cover the epoch.

    Args:
        data: A bytearray.
        partition_leader_epoch: The new epoch.
        position: Where in ``data`` the batch begins.

    Raises:
        CorruptError: The bytes at ``position`` are not a batch.
        UnsupportedError: The magic is not 0, 1 or 2.
        ValueError: The bytes end inside the batch, or its magic is 0 or 1, which have no epoch.
    """

def set_log_append_time(data: bytearray, timestamp: int, *, position: int = 0) -> None:
    """Set the timestamp type of a batch to ``LogAppendTime``, in place, and update the checksum.

    Args:
        data: A bytearray.
        timestamp: The new timestamp of all records of the batch, milliseconds since the epoch.
        position: Where in ``data`` the batch begins.

    Raises:
        CorruptError: The bytes at ``position`` are not a batch.
        UnsupportedError: The magic is not 0, 1 or 2.
        ValueError: The bytes end inside the batch, its magic is 0, which has no timestamps, or the timestamp is
            negative.
    """

def end_transaction_marker(
    *,
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    timestamp: int,
    base_offset: int = 0,
    coordinator_epoch: int = 0,
    partition_leader_epoch: int = -1,
) -> bytes:
    """Make a batch with one transaction marker, as a transaction coordinator writes it: 78 bytes.

    Args:
        base_offset: Offset of the marker.
        timestamp: Milliseconds since the epoch.
        producer_id: Producer of the transaction.
        producer_epoch: Its epoch.
        coordinator_epoch: Epoch of the transaction coordinator.
        commit: True for COMMIT, False for ABORT.
        partition_leader_epoch: Leader epoch, -1 for none.

    Raises:
        ValueError: A producer id or epoch is negative.
    """

def codecs() -> list[tuple[_Compression, int | None, tuple[int, int] | None, int]]:
    """Return all codecs, in the order of Kafka's numbers, beginning with ``none``.

    Returns:
        The name of each codec, Kafka's default level, the lowest and the highest level, and the oldest message format
        that may use the codec. Codecs without levels have None twice.
    """

def convert(
    data: Buffer,
    magic: int,
    *,
    compression: _Compression | None = None,
    level: int | None = None,
    first_offset: int | None = None,
    limits: Limits | None = None,
) -> tuple[bytes, list[_Loss]]:
    """Convert batches to a message format. Offsets are kept; batches that need no conversion are copied.

    Args:
        data: Bytes-like: whole batches, of any format and in any order. An incomplete batch at the end is omitted.
        magic: Message format to convert to: 0, 1 or 2.
        compression: Codec to write with. Default: each batch keeps its codec. Control batches are never compressed.
        level: Compression level, numbered as in Kafka.
        first_offset: Convert as a broker up to 3.9 did for a consumer that fetches from this offset: copy batches of
            the target's magic or a lower one, drop the records of uncompressed batches before this offset, and
            reject zstd.
        limits: Bounds on untrusted input.

    Returns:
        The bytes, and the names of the features that the target format does not support.

    Raises:
        CorruptError: A batch can't be read or has a wrong checksum.
        UnsupportedError: A batch uses zstd, the target is below magic 2, and ``compression`` is not set.
        ValueError: Options contradict each other, offsets do not rise, or a timestamp is negative.

    Example:
        >>> old, losses = kbat.convert(data, 1, compression="gzip")
    """

def partition_for_key(key: bytes, partition_count: int) -> int:
    """Compute the partition for a key as Kafka's default partitioner does, with murmur2.

    Args:
        key: The key of a record. Producers distribute records without a key by other rules.
        partition_count: Number of partitions of the topic.

    Raises:
        ValueError: ``partition_count`` is less than 1.

    Example:
        >>> kbat.partition_for_key(b"21", 12)
        0
    """

def validate(
    data: Buffer,
    *,
    request_version: int | None = 13,
    origin: Literal["client", "coordinator", "raft_leader"] = "client",
    magic: int = 2,
    compression: Literal["producer"] | _Compression = "producer",
    level: int | None = None,
    timestamp_type: _TimestampType = "CreateTime",
    timestamp_before_max_ms: int | None = None,
    timestamp_after_max_ms: int = 3600000,
    compacted: bool = False,
    max_message_bytes: int = 1048588,
    segment_bytes: int = 1073741824,
    now_ms: int | None = None,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    log: PartitionLog | None = None,
    limits: Limits | None = None,
) -> Validation:
    """Check whether a broker (Kafka 4.3) would accept a produce request with these bytes.

    Checks that depend on the partition's history (sequences, duplicates, producer epochs) need ``log``.

    Args:
        data: Bytes-like: the records of a produce request for one partition.
        request_version: Version of the produce request, which determines the allowed content: one batch of magic 2,
            zstd from version 7 on. None omits these checks.
        origin: The kind of sender.
        magic: Message format of the log; since Kafka 4 always 2.
        compression: The topic's ``compression.type``: ``"producer"``, ``"none"`` (Kafka's ``uncompressed``) or a codec.
        level: Compression level of that codec.
        timestamp_type: The topic's ``message.timestamp.type``.
        timestamp_before_max_ms: The topic's ``message.timestamp.before.max.ms``; None for any age.
        timestamp_after_max_ms: The topic's ``message.timestamp.after.max.ms``.
        compacted: Whether the topic's ``cleanup.policy`` has ``compact``.
        max_message_bytes: The topic's ``max.message.bytes``.
        segment_bytes: The topic's ``segment.bytes``.
        now_ms: The broker's clock, milliseconds since the epoch; now by default.
        base_offset: Log end offset: the offset of the first record.
        partition_leader_epoch: The leader epoch to store in batches.
        log: The target partition, whose producer epochs, sequences and open transactions are then checked.
            Duplicates are detected only against a producer's last batch.
        limits: Bounds on untrusted input.

    Raises:
        ValueError: Settings contradict each other.
        LimitError: The bytes exceed ``limits``.

    Example:
        >>> kbat.validate(data, compacted=True).error
        'INVALID_RECORD'
    """

@final
class Validation:
    """The response of a broker; see :func:`validate`. Fields that do not apply to the outcome are ``None``."""

    @property
    def ok(self) -> bool:
        """Whether the broker would append the batches."""

    @property
    def error(self) -> _ErrorCode | None:
        """Name of the error in Kafka's protocol, such as ``"CORRUPT_MESSAGE"``."""

    @property
    def error_code(self) -> int:
        """Number of the error in Kafka's protocol, 0 for none."""

    @property
    def message(self) -> str | None:
        """Why the broker would reject the request, in Kafka's own words if it has a message."""

    @property
    def record_errors(self) -> list[tuple[int, str]]:
        """Index and message of each invalid record that the broker would report, at most 100,000."""

    @property
    def position(self) -> int | None:
        """Position in ``data`` at which the error was found."""

    @property
    def bytes(self) -> bytes | None:
        """The batches as the broker would store them."""

    @property
    def next_offset(self) -> int | None:
        """Offset after the last record."""

    @property
    def max_timestamp(self) -> int | None:
        """Largest timestamp in milliseconds since the epoch, -1 if there is none."""

    @property
    def shallow_offset_of_max_timestamp(self) -> int | None:
        """Offset for that timestamp in a time index, -1 if there is none."""

    @property
    def is_rebuilt(self) -> bool | None:
        """Whether the batch was rebuilt because of another codec or format, or offsets that do not count from 0."""

    @property
    def duplicate_offset(self) -> int | None:
        """First offset of the existing batch that this one duplicates.

        The broker responds with this offset and appends nothing.
        """

    @property
    def valid_len(self) -> int | None:
        """Bytes of the whole batches in ``data``. A broker ignores the bytes after them without an error."""

    def __bool__(self) -> bool: ...
