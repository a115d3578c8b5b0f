# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Kafka's record format, read and written without a broker: the compiled half of the package `kbat`."""

import datetime as dt
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias, final

from typing_extensions import Buffer

_Source: TypeAlias = Buffer | str | os.PathLike[str]
_Compression: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]
_TimestampType: TypeAlias = Literal["CreateTime", "LogAppendTime"]
_Time: TypeAlias = int | dt.datetime | str  # noqa: PYI047 -- the submodules use it
_HeaderKey: TypeAlias = str | Buffer
_HeaderValue: TypeAlias = Buffer | None
_Header: TypeAlias = (
    tuple[_HeaderKey, _HeaderValue] | Sequence[_HeaderKey | _HeaderValue] | Mapping[str, _HeaderKey | _HeaderValue]
)
_Headers: TypeAlias = (  # noqa: PYI047 -- the submodules use it
    Mapping[str, _HeaderValue] | Mapping[bytes, _HeaderValue] | Iterable[_Header]
)

__all__ = [
    "Batch",
    "BatchIterator",
    "ControlRecord",
    "Limits",
    "Record",
    "RecordIterator",
    "SegmentFile",
    "__version__",
    "find_segments",
    "read_batches",
]

__version__: str

def read_batches(source: _Source, *, check_crc: bool = True, limits: Limits | None = None) -> BatchIterator:
    """Iterate the batches of a buffer or a file, of every message format and in any order.

    Headers only are looked at, though a file is read whole, once: ``scan(view="batches")`` reads its headers alone.
    Records are decompressed when a batch is iterated, and their bytes copied when asked for. Bad records or a bad
    checksum never end this iteration; they are raised where the batch is iterated.

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

    Batches are equal if their bytes and positions are. They can be hashed and pickled.
    """

    def __iter__(self) -> Iterator[Record]:
        """Iterate the records."""

    def asdict(self) -> dict[str, Any]:
        """Return the fields of the header as a dictionary.

        ``base_offset`` is None for compressed sets of magic 0 and 1, which show it only when decompressed.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
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
    """A record. Its key, value and headers are copied out of the batch on access.

    Records are equal if all their fields are. They can be hashed and pickled.
    """

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

    def asdict(self) -> dict[str, Any]:
        """Return the fields as a dictionary: ``offset timestamp timestamp_type key value headers sequence``."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

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
        """Bytes of one batch, of a file or a buffer."""

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

def find_segments(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    topics: str | Iterable[str] | None = None,
    partitions: int | Iterable[int] | None = None,
    replicas: Literal["error", "longest"] = "error",
) -> list[SegmentFile]:
    """Find segments: of a ``.log`` file, a partition directory, a log directory, or a pattern that matches such.

    A file is read whatever its name is, unless it is plainly something else, such as a gzip file. In directories, files
    that are not segments and directories that are not live partitions are skipped.

    Args:
        path: A path, a pattern such as ``/data/orders-*``, or a list of these.
        topics: Only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default: all.
        partitions: Only partitions with these numbers. Default: all.
        replicas: What to do if a partition lies in several directories: ``"error"``, or ``"longest"`` to take the
            directory that holds the largest range of offsets.

    Returns:
        Each segment once, sorted by topic, partition and base offset within each path. Nothing, with a warning, for a
        directory that is empty.

    Raises:
        OSError: The path can't be read, or nothing matches the pattern.
        ValueError: The path holds something but no segment, a topic or partition does not exist, or replicas.
    """
