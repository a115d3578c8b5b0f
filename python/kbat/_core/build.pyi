# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Making batches: builder, edits, markers, conversion, and what a broker would say to them."""

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
    """Builds a batch, record by record, by the rules of Kafka's own builder.

    Args:
        magic: Message format: 0, 1 or 2.
        compression: ``"none"``, ``"gzip"``, ``"snappy"``, ``"lz4"`` or ``"zstd"`` (magic 2 only).
        level: Level as Kafka counts: gzip 1 to 9, lz4 1 to 17 (9, its default, is the fast compressor), zstd -131072 to
            22.
        base_offset: Offset of the batch, and of the first record unless ``append`` says otherwise.
        timestamp_type: ``"CreateTime"`` or ``"LogAppendTime"``; magic 0 has no timestamps.
        log_append_time: The time all records get with ``"LogAppendTime"``, milliseconds since the epoch.
        producer_id: Producer id, -1 for none; with one, ``producer_epoch`` and ``base_sequence`` are needed.
        producer_epoch: Producer epoch, -1 for none.
        base_sequence: Sequence of the first record, -1 for none.
        transactional: Whether the batch belongs to a transaction.
        control: Whether the batch holds control records.
        partition_leader_epoch: Leader epoch, -1 for none.
        delete_horizon_ms: Delete horizon to store in place of the base timestamp, milliseconds since the epoch.
        last_offset: Where the batch ends, if that is not its last record's offset (as after compaction).

    Raises:
        ValueError: Settings that Kafka's rules forbid; those that contradict each other, ``finish`` refuses.

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

        Args: key: Bytes-like, or None for null. value: Bytes-like, or None for null. timestamp: Milliseconds since the
            epoch, -1 for none; a ``datetime`` or ISO 8601 text with a time zone. headers: A dictionary, or pairs of
            key and value as tuples, lists, or dictionaries with ``key`` and ``value``.
                Keys are ``str`` or bytes-like, values bytes-like or None.
            offset: Offset above the last one; the next one by default.

        Raises:
            ValueError: What Kafka's rules forbid. The builder is as before.
            TypeError: A key, value or header of another type. The builder is as before.
        """

    @property
    def size(self) -> int:
        """Bytes that ``finish()`` gives if nothing is compressed: exact without compression. 0 without records."""

    @property
    def estimated_size(self) -> int:
        """The most bytes that ``finish()`` can give: ``size`` without compression."""

    @property
    def record_count(self) -> int:
        """Records appended so far."""

    def finish(self) -> bytes:
        """Give the bytes of the batch; empty without records, as in Kafka. The builder can't be used any more.

        Raises:
            ValueError: Settings that Kafka's rules forbid, or a second call.
        """

def batch_size(
    records: Iterable[
        tuple[int, Buffer | None, Buffer | None] | tuple[int, Buffer | None, Buffer | None, _Headers | None]
    ],
    *,
    magic: int = 2,
    compression: _Compression = "none",
) -> int:
    """Bytes that a batch of these records takes, before anything is built.

    Args:
        records: ``(timestamp, key, value)`` or ``(timestamp, key, value, headers)`` tuples; offsets rise from 0.
        magic: Message format: 0, 1 or 2.
        compression: As for :class:`BatchBuilder`.

    Returns:
        Bytes: exact without compression, an upper bound with it; 0 without records.
    """

def set_base_offset(data: bytearray, base_offset: int, *, position: int = 0) -> None:
    """Give a batch another base offset, in place. Its checksum does not cover the offset.

    Args:
        data: A bytearray.
        base_offset: The new one. For a compressed set of magic 1, that of its first message.
        position: Where in ``data`` the batch begins.

    Raises:
        CorruptError: What begins there is no batch.
        UnsupportedError: A magic other than 0, 1 and 2.
        ValueError: Less than a batch; a compressed set of magic 0, whose offsets lie in the compressed bytes.
    """

def set_partition_leader_epoch(data: bytearray, partition_leader_epoch: int, *, position: int = 0) -> None:
    """Give a batch another partition leader epoch, in place. Its checksum does not cover the epoch.

    Args:
        data: A bytearray.
        partition_leader_epoch: The new one.
        position: Where in ``data`` the batch begins.

    Raises:
        CorruptError: What begins there is no batch.
        UnsupportedError: A magic other than 0, 1 and 2.
        ValueError: Less than a batch; magic 0 and 1, which have no epoch.
    """

def set_log_append_time(data: bytearray, timestamp: int, *, position: int = 0) -> None:
    """Make a batch one of ``LogAppendTime``, in place. The checksum is computed anew.

    Args:
        data: A bytearray.
        timestamp: What all records of the batch get, milliseconds since the epoch.
        position: Where in ``data`` the batch begins.

    Raises:
        CorruptError: What begins there is no batch.
        UnsupportedError: A magic other than 0, 1 and 2.
        ValueError: Less than a batch; magic 0, which has no timestamps; a negative timestamp.
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
    """Make a batch with one transaction marker, as a transaction coordinator has it written: 78 bytes.

    Args:
        base_offset: Offset of the marker.
        timestamp: Milliseconds since the epoch.
        producer_id: Producer of the transaction.
        producer_epoch: Its epoch.
        coordinator_epoch: Epoch of the transaction coordinator.
        commit: True for COMMIT, False for ABORT.
        partition_leader_epoch: Leader epoch, -1 for none.

    Raises:
        ValueError: A negative producer id or epoch.
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
    """Convert batches to a message format. Offsets stay as they are; what need not change is copied.

    Args:
        data: Bytes-like: whole batches, of every format and in any order. An incomplete one at the end is left out.
        magic: Message format to convert to: 0, 1 or 2.
        compression: Codec to write with; each batch's own by default. Control batches are never compressed.
        level: Level of that codec, as Kafka counts.
        first_offset: Converts as a broker up to 3.9 did for a consumer that fetches from this offset: batches of the
            target's magic or a lower one are copied, of an uncompressed batch the records before this offset are
            dropped, and zstd is refused.
        limits: Bounds on untrusted input.

    Returns:
        The bytes, and the names of what the target has no room for.

    Raises:
        CorruptError: A batch that can't be read, or with a wrong checksum.
        UnsupportedError: zstd below magic 2, where no other codec is asked for.
        ValueError: Options that contradict each other; offsets that do not rise; negative timestamps.

    Example:
        >>> old, losses = kbat.convert(data, 1, compression="gzip")
    """

def partition_for_key(key: bytes, partition_count: int) -> int:
    """Give the partition to which a Kafka producer sends records with this key: murmur2, as its default partitioner.

    Args:
        key: The key; producers spread records without one as they like.
        partition_count: Partitions of the topic.

    Raises:
        ValueError: A count below 1.

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
    compression: Literal["producer", "none", "gzip", "snappy", "lz4", "zstd"] = "producer",
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
    """Say what a broker (Kafka 4.3) would answer to a produce request with these bytes, without one.

    What depends on the partition's past (sequences, duplicates, producer epochs) is looked at where ``log`` gives that.

    Args:
        data: Bytes-like: the records of a produce request for one partition.
        request_version: Version of the produce request, which says what it may hold: one batch of magic 2, zstd from
            version 7 on. None leaves these checks out.
        origin: Who appends.
        magic: Message format of the log; since Kafka 4 always 2.
        compression: The topic's ``compression.type``: ``"producer"``, ``"none"`` (Kafka's ``uncompressed``) or a codec.
        level: Level of that codec.
        timestamp_type: The topic's ``message.timestamp.type``.
        timestamp_before_max_ms: The topic's ``message.timestamp.before.max.ms``; None for any age.
        timestamp_after_max_ms: The topic's ``message.timestamp.after.max.ms``.
        compacted: Whether the topic's ``cleanup.policy`` has ``compact``.
        max_message_bytes: The topic's ``max.message.bytes``.
        segment_bytes: The topic's ``segment.bytes``.
        now_ms: The broker's clock, milliseconds since the epoch; now by default.
        base_offset: Log end offset: what the first record gets.
        partition_leader_epoch: The leader's epoch, which batches get.
        log: The partition that the request is for: its producers' epochs and sequences count then, and its open
            transactions. Duplicates are known of a producer's last batch.
        limits: Bounds on untrusted input.

    Raises:
        ValueError: Settings that contradict each other.
        LimitError: The bytes ask for more than ``limits`` allow.

    Example:
        >>> kbat.validate(data, compacted=True).error
        'INVALID_RECORD'
    """

@final
class Validation:
    """What a broker would answer; see :func:`validate`. What belongs to the other answer is None."""

    @property
    def ok(self) -> bool:
        """Whether the broker would append."""

    @property
    def error(self) -> _ErrorCode | None:
        """The error's name in Kafka's protocol, such as ``"CORRUPT_MESSAGE"``."""

    @property
    def error_code(self) -> int:
        """The error's number in Kafka's protocol, 0 for none."""

    @property
    def message(self) -> str | None:
        """Why the broker would refuse, in Kafka's words where it has some."""

    @property
    def record_errors(self) -> list[tuple[int, str]]:
        """Index and message of the records at fault, where the broker says which: the first 100,000."""

    @property
    def position(self) -> int | None:
        """Byte of ``data`` at which the fault was found."""

    @property
    def bytes(self) -> bytes | None:
        """The batches as the broker would store them."""

    @property
    def next_offset(self) -> int | None:
        """Offset after the last record."""

    @property
    def max_timestamp(self) -> int | None:
        """Largest timestamp in milliseconds since the epoch, -1 for none."""

    @property
    def shallow_offset_of_max_timestamp(self) -> int | None:
        """Offset that belongs to it in a time index, -1 for none."""

    @property
    def is_rebuilt(self) -> bool | None:
        """Whether the batch was built anew: another codec or format, or offsets that do not count from 0."""

    @property
    def duplicate_offset(self) -> int | None:
        """First offset of the batch in the log that this one repeats.

        The broker answers with it and appends nothing.
        """

    @property
    def valid_len(self) -> int | None:
        """Bytes of the whole batches of ``data``; a broker cuts off what follows without a word."""

    def __bool__(self) -> bool: ...
