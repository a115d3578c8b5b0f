# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Kafka's record format, read and written without a broker: the compiled half of the package `kbat`."""

import datetime as dt
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias, final

from typing_extensions import Buffer

_Source: TypeAlias = Buffer | str | os.PathLike[str]
_Compression: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]
_TimestampType: TypeAlias = Literal["CreateTime", "LogAppendTime"]
_EncryptionKeys: TypeAlias = Mapping[str, str | os.PathLike[str]] | Callable[[str], str | None]
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

def read_batches(
    source: _Source,
    *,
    check_crc: bool = True,
    limits: Limits | None = None,
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> BatchIterator:
    """Iterate over the batches of a buffer or a file, of any message format and in any order.

    Only headers are parsed, although payloads are read too; ``scan(view="batches")`` reads only the
    headers of a file. Iterating a batch decompresses its records; accessing a field of a record copies its bytes.
    Invalid records or checksums do not end this iteration: the error is raised when the batch is iterated.

    Args:
        source: A bytes-like object (``bytes`` are used in place, others copied) or the path or URL of a ``.log`` file.
        check_crc: Whether iterating a batch checks its checksum and those of the v0 and v1 messages in it.
        limits: Bounds on untrusted input.
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
        CorruptError: While iterating, if the bytes at the current position are not a valid batch. ``skip_batch()``
            resumes after it if possible.
        UnsupportedError: While iterating, if the magic is not 0, 1 or 2.
        OSError: The file can't be read.

    Example:
        >>> for batch in kbat.read_batches("topic-0/00000000000000000000.log"):
        ...     for record in batch:
        ...         print(record.offset, record.key, record.value)
    """

@final
class BatchIterator:
    """The iterator returned by :func:`read_batches`."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Batch: ...
    def skip_batch(self) -> bool:
        """After an error, skip the batch that caused it.

        Returns:
            Whether the iteration can continue: False if the size of the batch can't be trusted, or if no batch
            failed.
        """

    @property
    def position(self) -> int:
        """Position of the next batch in bytes from the start."""

    @property
    def remainder(self) -> bytes:
        """The bytes after the last batch: after the iteration a partial batch, zeros, or nothing."""

@final
class Batch:
    """A batch of records. Only its header is parsed up front. Iterate it to get its records, any number of times.

    For magic 0 and 1, every uncompressed message is a batch of one record, and a compressed message set is one
    batch.

    Batches are equal if their bytes and positions are. They can be hashed and pickled.
    """

    def __iter__(self) -> Iterator[Record]:
        """Iterate the records."""

    def asdict(self) -> dict[str, Any]:
        """Return the fields of the header as a dictionary.

        ``base_offset`` is ``None`` for compressed sets of magic 0 and 1, because computing it requires decompression.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __bytes__(self) -> bytes:
        """Copy the bytes of the batch."""

    @property
    def position(self) -> int:
        """Position in the file or buffer, in bytes."""

    @property
    def size(self) -> int:
        """Bytes of the batch, including its 12 bytes of log overhead."""

    @property
    def magic(self) -> int:
        """Message format: 0, 1 or 2."""

    @property
    def base_offset(self) -> int:
        """Offset of the first record when the batch was written.

        For compressed sets of magic 0 and 1, the first access decompresses the set.
        """

    @property
    def last_offset(self) -> int:
        """Offset of the last record when the batch was written."""

    @property
    def next_offset(self) -> int:
        """``last_offset`` + 1."""

    @property
    def record_count(self) -> int | None:
        """Record count as declared in the header.

        None for compressed sets of magic 0 and 1, whose headers do not have it.
        """

    @property
    def partition_leader_epoch(self) -> int:
        """Leader epoch at the time of append, -1 if there is none."""

    @property
    def crc(self) -> int:
        """The stored checksum, unsigned: CRC-32C for magic 2, CRC-32 for magic 0 and 1."""

    @property
    def crc_ok(self) -> bool:
        """Whether the stored checksum matches the bytes. Computed on each access."""

    @property
    def attributes(self) -> int:
        """The attributes as stored: 16 bits in magic 2, 8 bits in magic 0 and 1."""

    @property
    def compression(self) -> _Compression:
        """Kafka's name of the codec, such as ``"zstd"``; ``"none"`` if the batch is not compressed.

        Raises:
            UnsupportedError: The attributes do not name a codec.
        """

    @property
    def timestamp_type(self) -> _TimestampType | None:
        """``"CreateTime"``, ``"LogAppendTime"``, or None for magic 0, which has no timestamps."""

    @property
    def base_timestamp(self) -> int:
        """The stored base timestamp, milliseconds since the epoch.

        The delete horizon if ``delete_horizon_ms`` is not None; the message's timestamp for magic 1, -1 for magic 0.
        """

    @property
    def max_timestamp(self) -> int:
        """Largest timestamp of the records, milliseconds since the epoch, -1 if there is none."""

    @property
    def producer_id(self) -> int:
        """Producer id, -1 if there is none."""

    @property
    def producer_epoch(self) -> int:
        """Producer epoch, -1 if there is none."""

    @property
    def base_sequence(self) -> int:
        """Sequence of the first record, -1 if there is none."""

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 if there is none. Sequences wrap from 2**31 - 1 to 0."""

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records, which Kafka's consumers never return."""

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may remove the batch's tombstones or markers, milliseconds since the epoch.

        None if it is not set.
        """

    def _repr_html_(self) -> str: ...

@final
class RecordIterator:
    """Iterates over the records of a batch."""

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
        """Milliseconds since the epoch, -1 if there is none."""

    @property
    def timestamp_type(self) -> _TimestampType | None:
        """``"CreateTime"``, ``"LogAppendTime"``, or None for magic 0."""

    @property
    def key(self) -> bytes | None:
        """The key, or None for Kafka's null, which differs from an empty key."""

    @property
    def value(self) -> bytes | None:
        """The value, or None for Kafka's null, which is a tombstone in compacted topics."""

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Headers in their order, including duplicates, as ``(str, bytes | None)``.

        Bytes that are not valid UTF-8 are replaced with U+FFFD.
        """

    @property
    def raw_headers(self) -> list[tuple[bytes, bytes | None]]:
        """Headers as stored: ``(bytes, bytes | None)``."""

    @property
    def sequence(self) -> int:
        """Sequence from its producer, -1 if there is none."""

    @property
    def control(self) -> ControlRecord | None:
        """The content of a control record; None for data records.

        Raises:
            CorruptError: The key or value of a control record can't be parsed.
        """

    def asdict(self) -> dict[str, Any]:
        """Return the fields as a dictionary: ``offset timestamp timestamp_type key value headers sequence``."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class ControlRecord:
    """The content of a control record: a transaction marker or one of KRaft's own records."""

    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @property
    def type(self) -> str:
        """Kafka's name for the type.

        ``ABORT``, ``COMMIT``, ``LEADER_CHANGE``, ``SNAPSHOT_HEADER``, ``SNAPSHOT_FOOTER``, ``KRAFT_VERSION``,
        ``KRAFT_VOTERS``, or ``UNKNOWN(n)``.
        """

    @property
    def type_id(self) -> int:
        """Number of the type."""

    @property
    def coordinator_epoch(self) -> int | None:
        """Epoch of the transaction coordinator; None except for ``ABORT`` and ``COMMIT``."""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the record by Kafka's names in ``snake_case``. Directory ids are 16 bytes."""

@final
class Limits:
    """Bounds on untrusted input.

    The defaults suit brokers with a ``message.max.bytes`` of up to 100 MB: a batch may have 128 MiB, and its records
    1 GiB after decompression.

    Args:
        batch_len: Maximum bytes of one batch. Default 128 MiB.
        decompressed_len: Maximum bytes of one batch's records after decompression. Default 1 GiB.
        ratio: Maximum ratio of decompressed to compressed bytes. Default 1000.
        ratio_free_len: Number of decompressed bytes up to which ``ratio`` does not apply. Default 128 MiB.
        record_count: Maximum records of one batch. Default 200 million.
        header_count: Maximum headers of one record. Default 16,777,216.
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
        """Supports pickling."""

    @property
    def batch_len(self) -> int:
        """Maximum bytes of one batch, of a file or a buffer."""

    @property
    def decompressed_len(self) -> int:
        """Maximum bytes of one batch's records after decompression."""

    @property
    def ratio(self) -> int:
        """Maximum ratio of decompressed to compressed bytes."""

    @property
    def ratio_free_len(self) -> int:
        """Number of decompressed bytes up to which ``ratio`` does not apply."""

    @property
    def record_count(self) -> int:
        """Maximum records of one batch."""

    @property
    def header_count(self) -> int:
        """Maximum headers of one record."""

@final
class SegmentFile:
    """A segment's ``.log`` file, as found by :func:`find_segments`."""

    @property
    def path(self) -> str:
        """Path of the file."""

    @property
    def topic(self) -> str | None:
        """Topic, if the directory's name contains one."""

    @property
    def partition(self) -> int | None:
        """Partition, if the directory's name contains one."""

    @property
    def base_offset(self) -> int | None:
        """Base offset, if the file's name contains one."""

    @property
    def size(self) -> int:
        """Bytes of the file when it was found."""

def find_segments(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    topics: str | Iterable[str] | None = None,
    partitions: int | Iterable[int] | None = None,
    replicas: Literal["error", "longest"] = "error",
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> list[SegmentFile]:
    """Find the segments at a path: a ``.log`` file, a partition directory, a log directory, or a pattern.

    A file with any name is accepted, unless its content is clearly something else, such as a gzip file. In
    directories, files that are not segments and directories that are not live partitions are skipped.

    Args:
        path: A path, a URL, a pattern such as ``/data/orders-*``, or a list of these.
        topics: Only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default: all.
        partitions: Only partitions with these numbers. Default: all.
        replicas: What to do if a partition is in several directories: ``"error"`` raises an error, ``"longest"``
            uses the directory with the largest range of offsets.
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

    Returns:
        Each segment once, sorted by topic, partition and base offset within each path. Nothing, with a warning, for
        an empty directory.

    Raises:
        OSError: The path can't be read, or nothing matches the pattern.
        ValueError: The path has files but no segment, a topic or partition does not exist, or a partition is in several
            directories.
    """
