# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Kafka's record format, read and written without a broker: the compiled half of the package `kbat`."""

import os
from collections.abc import Iterable, Iterator
from typing import Any, Literal, Protocol, Self, TypeAlias, final

from typing_extensions import Buffer

from kbat._core.log import PartitionLog

_Source: TypeAlias = Buffer | str | os.PathLike[str]
_Compression: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]
_TimestampType: TypeAlias = Literal["CreateTime", "LogAppendTime"]
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
_Headers: TypeAlias = Iterable[tuple[str | Buffer, Buffer | None]]

__all__ = [
    "Batch",
    "BatchBuilder",
    "BatchIterator",
    "ControlRecord",
    "EncodedBatch",
    "EncodedBatchIterator",
    "Limits",
    "Record",
    "RecordIterator",
    "SegmentFile",
    "Validation",
    "__version__",
    "batch_size",
    "convert",
    "encode",
    "encode_batches",
    "end_transaction_marker",
    "find_segments",
    "partition_for_key",
    "read_batches",
    "set_base_offset",
    "set_log_append_time",
    "set_partition_leader_epoch",
    "validate",
]

__version__: str

def read_batches(source: _Source, *, check_crc: bool = True, limits: Limits | None = None) -> BatchIterator:
    """Iterate the batches of a buffer or a file, of every message format and in any order.

    Headers only are read: records are decompressed when a batch is iterated, and their bytes copied when asked for. Bad
    records or a bad checksum never end this iteration; they are raised where the batch is iterated.

    Args:
        source: A bytes-like object (``bytes`` are used in place, others copied) or the path of a ``.log`` file.
        check_crc: Whether iterating a batch checks its checksum, and those of v0 and v1 messages in it.
        limits: Bounds on untrusted input.

    Raises:
        CorruptError: While iterating, where no batch can be. ``skip_batch()`` goes on where that is possible.
        UnsupportedError: While iterating, a magic other than 0, 1, 2.
        OSError: The file can't be read.

    Example:
        >>> for batch in kbat.read_batches("topic-0/00000000000000000000.log"):
        ...     for record in batch:
        ...         print(record.offset, record.key, record.value)
    """

@final
class BatchIterator:
    """The iterator that :func:`read_batches` returns."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Batch: ...
    def skip_batch(self) -> bool:
        """After an error: step over the batch that caused it.

        Returns:
            Whether the iteration can go on: False where the batch's size can't be trusted, or nothing failed.
        """

    @property
    def position(self) -> int:
        """Place of the next batch in bytes from the start."""

    @property
    def remainder(self) -> bytes:
        """The bytes that no batch was made of yet: after the iteration a partial batch, zeros, or nothing."""

@final
class Batch:
    """A batch of records. Only its header has been read; iterate it for its records, as often as you like.

    For magic 0 and 1 every uncompressed message is a batch of one record, and a compressed message set one batch.
    """

    def __iter__(self) -> Iterator[Record]:
        """Iterate the records."""

    def __bytes__(self) -> bytes:
        """All bytes of the batch, a copy."""

    @property
    def position(self) -> int:
        """Place in the file or buffer, in bytes."""

    @property
    def size(self) -> int:
        """Bytes of the batch, its 12 bytes of log overhead included."""

    @property
    def magic(self) -> int:
        """Message format: 0, 1 or 2."""

    @property
    def base_offset(self) -> int:
        """Offset of the first record as the batch was written.

        Compressed sets of magic 0 and 1 are decompressed for it, once.
        """

    @property
    def last_offset(self) -> int:
        """Offset of the last record as the batch was written."""

    @property
    def next_offset(self) -> int:
        """``last_offset`` + 1."""

    @property
    def record_count(self) -> int | None:
        """Records as declared in the header.

        None for compressed sets of magic 0 and 1, which only tell when decompressed.
        """

    @property
    def partition_leader_epoch(self) -> int:
        """Leader epoch at the time of append, -1 for none."""

    @property
    def crc(self) -> int:
        """The stored checksum, unsigned: CRC-32C for magic 2, CRC-32 before."""

    @property
    def crc_ok(self) -> bool:
        """Whether the stored checksum is that of the bytes. Computed at each call."""

    @property
    def attributes(self) -> int:
        """The attributes as stored: 16 bits in magic 2, 8 before."""

    @property
    def compression(self) -> _Compression:
        """``"none"``, ``"gzip"``, ``"snappy"``, ``"lz4"`` or ``"zstd"``.

        Raises:
            UnsupportedError: The attributes name no codec.
        """

    @property
    def timestamp_type(self) -> _TimestampType | None:
        """``"CreateTime"``, ``"LogAppendTime"``, or None for magic 0, which has no timestamps."""

    @property
    def base_timestamp(self) -> int:
        """The stored base timestamp, milliseconds since the epoch.

        A delete horizon where ``delete_horizon_ms`` is not None; the message's timestamp for magic 1, -1 for magic 0.
        """

    @property
    def max_timestamp(self) -> int:
        """Largest timestamp of the records, milliseconds since the epoch, -1 for none."""

    @property
    def producer_id(self) -> int:
        """Producer id, -1 for none."""

    @property
    def producer_epoch(self) -> int:
        """Producer epoch, -1 for none."""

    @property
    def base_sequence(self) -> int:
        """Sequence of the first record, -1 for none."""

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 for none. After 2**31 - 1 comes 0."""

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records, which Kafka's consumers never show."""

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the batch's tombstones or markers, milliseconds since the epoch.

        None where not set.
        """

    def _repr_html_(self) -> str: ...

@final
class RecordIterator:
    """Iterates the records of a batch."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...

@final
class Record:
    """A record. Its key, value and headers are copied out of the batch when asked for."""

    @property
    def offset(self) -> int:
        """Offset in the partition."""

    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch, -1 where there is none."""

    @property
    def timestamp_type(self) -> _TimestampType | None:
        """``"CreateTime"``, ``"LogAppendTime"``, or None for magic 0."""

    @property
    def key(self) -> bytes | None:
        """The key; None is Kafka's null, which is not the empty key."""

    @property
    def value(self) -> bytes | None:
        """The value; None is Kafka's null, a tombstone in compacted topics."""

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Headers in their order, duplicates included, as ``(str, bytes | None)``.

        Bytes that are no UTF-8 show as U+FFFD.
        """

    @property
    def raw_headers(self) -> list[tuple[bytes, bytes | None]]:
        """Headers as stored: ``(bytes, bytes | None)``."""

    @property
    def sequence(self) -> int:
        """Sequence of its producer, -1 for none."""

    @property
    def control(self) -> ControlRecord | None:
        """What a control record says; None for records of data.

        Raises:
            CorruptError: A control record whose key or value can't be read.
        """

@final
class ControlRecord:
    """What a control record says: a transaction marker or one of KRaft's own records."""

    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @property
    def type(self) -> str:
        """Kafka's name of the type.

        ``ABORT``, ``COMMIT``, ``LEADER_CHANGE``, ``SNAPSHOT_HEADER``, ``SNAPSHOT_FOOTER``, ``KRAFT_VERSION``,
        ``KRAFT_VOTERS``, or ``UNKNOWN(n)``.
        """

    @property
    def type_id(self) -> int:
        """Number of the type."""

    @property
    def coordinator_epoch(self) -> int | None:
        """Epoch of the transaction coordinator; None but for ``ABORT`` and ``COMMIT``."""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the record under Kafka's names in ``snake_case``. Directory ids are 16 bytes."""

@final
class Limits:
    """Bounds on untrusted input.

    The defaults read every batch that a broker accepts with ``message.max.bytes`` raised to 100 MB, and refuse a 32 KB
    batch that unpacks to 1 GiB.

    Args:
        batch_len: Bytes of one batch. Default 128 MiB.
        decompressed_len: Bytes of one batch's records after decompression. Default 1 GiB.
        ratio: How many times larger than compressed they may become past ``ratio_free_len``. Default 1000.
        ratio_free_len: Decompressed bytes up to which ``ratio`` is not looked at. Default 128 MiB.
        record_count: Records of one batch. Default 200 million.
        header_count: Headers of one record. Default 16 million.
    """

    def __new__(
        cls,
        *,
        batch_len: int | None = None,
        decompressed_len: int | None = None,
        ratio: int | None = None,
        ratio_free_len: int | None = None,
        record_count: int | None = None,
        header_count: int | None = None,
    ) -> Self: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int]]:
        """For pickling."""

    @property
    def batch_len(self) -> int:
        """Bytes of one batch of a file."""

    @property
    def decompressed_len(self) -> int:
        """Bytes of one batch's records after decompression."""

    @property
    def ratio(self) -> int:
        """How many times larger than compressed records may become."""

    @property
    def ratio_free_len(self) -> int:
        """Decompressed bytes up to which ``ratio`` is not looked at."""

    @property
    def record_count(self) -> int:
        """Records of one batch."""

    @property
    def header_count(self) -> int:
        """Headers of one record."""

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
        ValueError: Settings that Kafka's rules forbid.

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
        timestamp: int,
        headers: _Headers | None = None,
        offset: int | None = None,
    ) -> None:
        """Append a record.

        Args:
            key: Bytes-like, or None for null.
            value: Bytes-like, or None for null.
            timestamp: Milliseconds since the epoch, -1 for none.
            headers: ``(key, value)`` pairs: keys ``str`` or bytes-like, values bytes-like or None.
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

@final
class SegmentFile:
    """A segment's ``.log`` file, as :func:`find_segments` found it."""

    @property
    def path(self) -> str:
        """Where it is."""

    @property
    def topic(self) -> str | None:
        """Topic, if the directory is named after one."""

    @property
    def partition(self) -> int | None:
        """Partition, if the directory is named after one."""

    @property
    def base_offset(self) -> int | None:
        """Base offset, if the file is named after one."""

    @property
    def size(self) -> int:
        """Bytes when it was found."""

def find_segments(path: str | os.PathLike[str]) -> list[SegmentFile]:
    """Find the segments of a path: a ``.log`` file, a partition directory, or a log directory.

    Args:
        path: A file is taken whatever its name is. In directories, files that are no segments and directories that are
            no live partitions are passed over.

    Returns:
        Sorted by topic, partition and base offset.

    Raises:
        OSError: The path can't be read.
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

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object = None) -> object: ...

def encode(
    data: _ArrowStream | _ArrowArray,
    *,
    compression: _Compression = "none",
    level: int | None = None,
    batch_bytes: int = 131072,
    batch_rows: int | None = None,
    base_offset: int | None = None,
    timestamp: int | None = None,
    timestamp_type: _TimestampType = "CreateTime",
    log_append_time: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    partition_leader_epoch: int = -1,
    magic: int = 2,
) -> bytes:
    """Encode Arrow data to record batches, in one run of bytes.

    See :func:`encode_batches` for the columns and the options.

    Example:
        >>> frame = pl.DataFrame({"key": [b"k"], "value": [b"v"]})
        >>> data = kbat.encode(frame, timestamp=1700000000000, compression="zstd")
    """

def encode_batches(
    data: _ArrowStream | _ArrowArray,
    *,
    compression: _Compression = "none",
    level: int | None = None,
    batch_bytes: int = 131072,
    batch_rows: int | None = None,
    base_offset: int | None = None,
    timestamp: int | None = None,
    timestamp_type: _TimestampType = "CreateTime",
    log_append_time: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    partition_leader_epoch: int = -1,
    magic: int = 2,
) -> EncodedBatchIterator:
    """Encode Arrow data to record batches, one by one.

    Columns, named as in Spark's Kafka source and sink; others are not looked at:

    * ``value``: binary or string of any Arrow kind.
    * ``key``: likewise; without the column all keys are null.
    * ``timestamp``: timestamp of any unit and zone, or int64 milliseconds since the epoch.
    * ``headers``: list<struct<key, value>> or map; keys and values binary or string.
    * ``offset``: int64, rising; without the column offsets are counted from ``base_offset``.

    Args:
        data: Anything with the Arrow PyCapsule interface: tables, batches and readers of pyarrow, frames of polars,
            DuckDB and pandas, a :class:`Scan`.
        compression: Codec of the batches; zstd needs magic 2.
        level: Level as Kafka counts.
        batch_bytes: A batch has no more bytes than this before compression, but for a record that is larger itself.
        batch_rows: A batch has no more records than this.
        base_offset: Offset of the first record where there is no column ``offset``; 0 by default.
        timestamp: Milliseconds since the epoch, for records without a timestamp: needed where there is no column
            ``timestamp``; nulls in it are else -1, Kafka's "none".
        timestamp_type: ``"CreateTime"`` or ``"LogAppendTime"``; magic 0 has no timestamps.
        log_append_time: The time all records get with ``"LogAppendTime"``, milliseconds since the epoch.
        producer_id: Producer id, -1 for none; with one, ``producer_epoch`` and ``base_sequence`` are needed.
        producer_epoch: Producer epoch, -1 for none.
        base_sequence: Sequence of the first record, -1 for none.
        transactional: Whether the batches belong to a transaction.
        partition_leader_epoch: Leader epoch, -1 for none.
        magic: Message format: 0, 1 or 2.

    Raises:
        TypeError: ``data`` without the Arrow PyCapsule interface.
        ValueError: Options that contradict each other, a column that is missing or of a type that can't be used; while
            iterating, a row that Kafka's rules forbid.

    Example:
        >>> for batch in kbat.encode_batches(table, compression="lz4"):
        ...     print(batch.base_offset, batch.record_count, len(batch.bytes))
    """

@final
class EncodedBatchIterator:
    """Iterates record batches; see :func:`encode_batches`."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> EncodedBatch: ...

@final
class EncodedBatch:
    """A record batch that was made of Arrow rows; see :func:`encode_batches`.

    Below magic 2 without compression: the messages that would be one.
    """

    @property
    def bytes(self) -> bytes:
        """The batch's bytes."""

    @property
    def base_offset(self) -> int:
        """Offset of its first record."""

    @property
    def last_offset(self) -> int:
        """Offset of its last record."""

    @property
    def record_count(self) -> int:
        """Its records."""
