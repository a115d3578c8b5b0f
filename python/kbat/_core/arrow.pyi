# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Records, batches and segments as Arrow columns, and Arrow data as batches."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, Self, TypeAlias, final

import pandas as pd
import polars as pl
import pyarrow as pa
from typing_extensions import Buffer

from kbat._core import Limits, _Compression, _Time, _TimestampType

_Path: TypeAlias = str | os.PathLike[str]
_Part: TypeAlias = tuple[_Path, int, int]

__all__ = [
    "ArrowBatchIterator",
    "EncodedBatch",
    "EncodedBatchIterator",
    "Scan",
    "ScanStats",
    "encode",
    "encode_batches",
    "scan",
    "split",
]

def scan(
    source: Buffer | _Path | _Part | Sequence[Buffer | _Path | _Part],
    *,
    columns: Iterable[str] | None = None,
    view: Literal["records", "batches", "segments"] = "records",
    topics: str | Iterable[str] | None = None,
    partitions: int | Iterable[int] | None = None,
    replicas: Literal["error", "longest"] = "error",
    start_offset: int | None = None,
    end_offset: int | None = None,
    start_timestamp: _Time | None = None,
    end_timestamp: _Time | None = None,
    isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    include_control: bool = False,
    check_crc: bool = True,
    on_corrupt: Literal["fail", "skip", "report"] = "fail",
    limits: Limits | None = None,
    topic: str | None = None,
    partition: int | None = None,
    timestamp_unit: Literal["ms", "us"] = "ms",
    missing_timestamp: int | None = None,
    binary_view: bool = False,
    max_rows: int = 16384,
    max_bytes: int = 1048576,
    leave_page_cache: bool = False,
) -> Scan:
    """Read records, batches or segments of buffers, files and directories as Arrow columns.

    Nothing is read until the result is used. Each use starts a new pass, in Rust, with the GIL released; memory holds
    one Arrow batch per thread.

    Args: source: A bytes-like object, the path of a ``.log`` file, a partition directory or a log directory, a pattern
        such
            as ``/data/orders-*``, a part of a file as returned by :func:`split`, or a list of these. A segment that is
            listed twice is read once.
        columns: Names of the columns, in order. Other columns cost nothing. Records: default ``key value topic
            partition offset timestamp timestamp_type headers``; also ``base_offset position partition_leader_epoch
            producer_id producer_epoch sequence is_transactional compression magic batch_size segment``. Batches:
            default all fields of the header; also ``crc_ok uncompressed_size ratio``, which read the whole batch.
            Segments: default all except ``batch_count``, which reads every header.
        view: ``"records"``: one row per record. ``"batches"``: one row per batch, control batches included, from
            headers only. ``"segments"``: one row per ``.log`` file.
        topics: Read only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default: all.
        partitions: Read only partitions with these numbers. Default: all.
        replicas: What to do if a partition lies in several directories, as in the log directories of several brokers:
            ``"error"`` refuses them, ``"longest"`` reads the directory with the largest range of offsets.
        start_offset: First offset to read. By default records are included that a broker has deleted but whose segment
            still exists; start at ``PartitionLog.start_offset`` to skip them.
        end_offset: Read up to, but not including, this offset.
        start_timestamp: Read records with this timestamp or a later one: milliseconds since the epoch, a ``datetime``
            with a time zone, or ISO 8601 text with one. Segments and batches that are older according to their name,
            index or header are not read. Records without a timestamp are in no time range.
        end_timestamp: Read records with a timestamp before this one.
        isolation: ``"read_committed"`` skips records of aborted transactions and everything from the last stable offset
            on, as a consumer with that ``isolation.level`` does. Aborted transactions are found from the partition's
            control records and ``.txnindex`` files; for a buffer or a stand-alone file, from its own control records.
        include_control: Whether control records are included.
        check_crc: Whether checksums are verified. Views read headers only: their column ``crc_ok`` verifies checksums.
        on_corrupt: ``"fail"`` raises at the first corruption. ``"skip"`` drops corrupt batches, continues at the next
            batch, and counts the losses in ``Scan.stats``. ``"report"`` also emits one row per corruption, with nulls
            and a last column ``error``: a struct of ``kind message path position length first_offset last_offset``.
            With ``"fail"``, batches excluded by the bounds are not checksummed.
        limits: Bounds on untrusted input.
        topic: Topic of buffers, and of files outside a ``<topic>-<partition>`` directory. It does not select topics:
            use ``topics`` for that.
        partition: Partition number of buffers, and of files outside a ``<topic>-<partition>`` directory.
        timestamp_unit: ``"ms"`` as in Kafka, or ``"us"`` as in Spark.
        missing_timestamp: Value of the column ``timestamp``, in milliseconds, for records without a timestamp. Default:
            null. Column ``timestamp_type`` is 0 for CreateTime, 1 for LogAppendTime, -1 for magic 0, which has none.
        binary_view: Whether keys, values and header values are ``binary_view``. Those of uncompressed batches are then
            not copied, and the Arrow data keeps the buffers that were read.
        max_rows: Maximum rows of an Arrow batch.
        max_bytes: Target size of an Arrow batch in bytes of key, value and header data. An Arrow batch ends at the next
            Kafka batch boundary.
        leave_page_cache: Whether to drop pages from the page cache that reading brings in, for machines on which a
            broker runs. Pages that were cached before stay. Slower; no effect outside Linux.

    Raises:
        OSError: The path can't be read.
        ValueError: An unknown column, topic or partition, an argument without effect, replicas, a location that holds
            something but no segment.

    Example:
        >>> kbat.scan("topic-0/", columns=["offset", "timestamp", "value"]).to_polars()
    """

def split(
    source: _Path | _Part | Sequence[_Path | _Part], max_bytes: int, *, limits: Limits | None = None
) -> list[tuple[str, int, int]]:
    """Cut segments into parts of about equal size, to be read apart: each part is a source for :func:`scan`.

    Parts begin where batches begin, and side by side they hold every batch once. No payload is read to find them.

    Args:
        source: The path of a ``.log`` file, of a partition or log directory, a pattern, or a list of these.
        max_bytes: Bytes of a part at the most; more only where a single batch has more.
        limits: Bounds on untrusted input.

    Returns:
        Path, first byte and byte after the last one of each part. A segment that may still grow is cut as it is now.

    Raises:
        OSError: A path can't be read.
        ValueError: A source that is no file, or ``max_bytes`` below 1.
    """

class _ArrowStream(Protocol):
    """Arrow data, given by the Arrow PyCapsule interface as a stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Give the stream."""

class _ArrowArray(Protocol):
    """An Arrow batch, given by the Arrow PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Give schema and array."""

@final
class Scan:
    """A scan that can be passed over as often as you like.

    By anything that takes the Arrow PyCapsule interface (polars, DuckDB, pandas, PyArrow), or by ``to_pyarrow()``,
    ``to_pandas()``, ``to_polars()``, ``to_batches()`` and ``to_reader()``.
    """

    @property
    def schema(self) -> pa.Schema:
        """The schema, a ``pyarrow.Schema``."""

    @property
    def stats(self) -> ScanStats | None:
        """What the pass that went on last read and lost so far; None before the first."""

    @property
    def topic_partitions(self) -> list[tuple[str | None, int | None]]:
        """Topics and partitions of the sources, each once, in their order; None where they are not known."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""

    def count(self, *, threads: int | None = None) -> int:
        """Count the rows. Of the columns, only one is decoded.

        Args:
            threads: As for ``to_pyarrow()``.
        """

    def head(self, rows: int = 10) -> pa.Table:
        """Read the first rows as a ``pyarrow.Table``.

        Args:
            rows: Maximum number of rows.
        """

    def __iter__(self) -> ArrowBatchIterator: ...
    def narrow(
        self,
        *,
        columns: Iterable[str] | None = None,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: _Time | None = None,
        end_timestamp: _Time | None = None,
        topics: Sequence[str] | None = None,
        partitions: Sequence[int] | None = None,
    ) -> Scan:
        """Give the same scan within narrower bounds.

        Args:
            columns: Names, in the order wanted, as for :func:`scan`. Default those of this scan.
            start_offset: First offset to give, if it is later than this scan's.
            end_offset: First offset not to give any more, if it is earlier.
            start_timestamp: Smallest timestamp to give, if it is later.
            end_timestamp: Smallest timestamp not to give any more, if it is earlier.
            topics: Sources of other topics are left out; those whose topic is not known stay.
            partitions: Likewise.

        Raises:
            ValueError: A column that does not exist.
        """

    def __arrow_c_schema__(self) -> object:
        """Give the schema for the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Start a fresh pass for the Arrow PyCapsule interface, on one thread.

        Of a requested schema, the columns it names are given, in its order, and ``binary_view`` where it asks for
        that or not. Other types are not heeded, which the interface allows.
        """

    def to_batches(
        self,
        *,
        threads: int = 1,
        max_memory_bytes: int | None = None,
        progress: Callable[[int, int], object] | bool | None = None,
    ) -> ArrowBatchIterator:
        """Iterate a fresh pass as ``pyarrow.RecordBatch``, raising kbat's own exceptions.

        Args:
            threads: Threads that decode, ahead of the caller, parts of files and buffers; rows come in their order.
                Only of records.
            max_memory_bytes: Bytes of Arrow batches that threads may have ready. Default 256 MiB.
            progress: Called every now and then with the bytes walked over and the bytes of all sources; True for a
                progress bar, if ``rich`` is installed.
        """

    def to_reader(
        self,
        *,
        threads: int = 1,
        max_memory_bytes: int | None = None,
        progress: Callable[[int, int], object] | bool | None = None,
    ) -> pa.RecordBatchReader:
        """Give a fresh pass as a ``pyarrow.RecordBatchReader``, raising kbat's own exceptions.

        The arguments are those of ``to_batches()``.
        """

    def to_pyarrow(
        self,
        *,
        threads: int | None = None,
        max_memory_bytes: int | None = None,
        progress: Callable[[int, int], object] | bool | None = None,
    ) -> pa.Table:
        """Everything as a ``pyarrow.Table``.

        Args:
            threads: As for ``to_batches()``; default the machine's, 8 at the most, or 1 where there is little to read.
            max_memory_bytes: As for ``to_batches()``.
            progress: As for ``to_batches()``.
        """

    def to_pandas(
        self,
        *,
        threads: int | None = None,
        max_memory_bytes: int | None = None,
        progress: Callable[[int, int], object] | bool | None = None,
        **arguments: Any,  # noqa: ANN401 -- those of PyArrow
    ) -> pd.DataFrame:
        """Everything as a ``pandas.DataFrame``; needs pyarrow.

        Args:
            threads: As for ``to_pyarrow()``.
            max_memory_bytes: As for ``to_pyarrow()``.
            progress: As for ``to_pyarrow()``.
            arguments: Keyword arguments of ``pyarrow.Table.to_pandas``, such as ``types_mapper=pandas.ArrowDtype``.
        """

    def to_polars(
        self,
        *,
        threads: int | None = None,
        max_memory_bytes: int | None = None,
        progress: Callable[[int, int], object] | bool | None = None,
    ) -> pl.DataFrame:
        """Everything as a ``polars.DataFrame``. The arguments are those of ``to_pyarrow()``."""

    def _empty(self) -> _ArrowStream: ...
    def _repr_html_(self) -> str: ...

@final
class ScanStats:
    """What a pass of a :class:`Scan` read and lost."""

    @property
    def batches(self) -> int:
        """Batches whose records were given."""

    @property
    def records(self) -> int:
        """Rows given, those of errors not counted."""

    @property
    def bytes_read(self) -> int:
        """Bytes read from files; of buffers, bytes of the batches walked over."""

    @property
    def batches_skipped(self) -> int:
        """Faults passed over: damaged batches, or stretches of bytes in which no batch could be found."""

    @property
    def bytes_lost(self) -> int:
        """Bytes of them, with those of cut batches at the ends of files."""

    @property
    def offsets_lost(self) -> int:
        """Offsets between the last good batch before and the next one after each fault.

        Those that compaction had removed count too.
        """

    def to_dict(self) -> dict[str, int]:
        """All of them by name."""

@final
class ArrowBatchIterator:
    """Iterates Arrow batches as ``pyarrow.RecordBatch``; see :meth:`Scan.to_batches`."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> pa.RecordBatch: ...
    def _next(self) -> _ArrowArray | None: ...
    @property
    def stats(self) -> ScanStats:
        """What this pass read and lost so far."""

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
    """Encode Arrow data to record batches, as one ``bytes`` object.

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

    The columns are named as in Spark's Kafka source and sink. Other columns are ignored.

    * ``value``: binary or string of any Arrow kind.
    * ``key``: binary or string of any Arrow kind; without the column all keys are null.
    * ``timestamp``: timestamp of any unit and zone, or int64 milliseconds since the epoch.
    * ``headers``: list<struct<key, value>> or map; keys and values binary or string.
    * ``offset``: int64, rising; without the column offsets count from ``base_offset``.

    Args:
        data: Anything with the Arrow PyCapsule interface: tables, batches and readers of pyarrow, frames of polars,
            DuckDB and pandas, a :class:`Scan`.
        compression: Codec of the batches; zstd needs magic 2.
        level: Compression level, numbered as in Kafka.
        batch_bytes: Maximum bytes of a batch before compression. A single larger record gets its own batch.
        batch_rows: Maximum number of records in a batch.
        base_offset: Offset of the first record if there is no column ``offset``; 0 by default.
        timestamp: Milliseconds since the epoch, for records without a timestamp. Required if there is no column
            ``timestamp``; without it, nulls in that column become -1, Kafka's "none".
        timestamp_type: ``"CreateTime"`` or ``"LogAppendTime"``; magic 0 has no timestamps.
        log_append_time: The timestamp of all records with ``"LogAppendTime"``, milliseconds since the epoch.
        producer_id: Producer id, -1 for none. If set, ``producer_epoch`` and ``base_sequence`` are required.
        producer_epoch: Producer epoch, -1 for none.
        base_sequence: Sequence of the first record, -1 for none.
        transactional: Whether the batches belong to a transaction.
        partition_leader_epoch: Leader epoch, -1 for none.
        magic: Message format: 0, 1 or 2.

    Raises:
        TypeError: ``data`` does not have the Arrow PyCapsule interface.
        ValueError: Options contradict each other, or a column is missing or of an unsupported type. While iterating:
            Kafka's rules forbid a row.

    Example:
        >>> for batch in kbat.encode_batches(table, compression="lz4"):
        ...     print(batch.base_offset, batch.record_count, len(batch.bytes))
    """

@final
class EncodedBatchIterator:
    """Iterates over record batches; see :func:`encode_batches`."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> EncodedBatch: ...

@final
class EncodedBatch:
    """A record batch encoded from Arrow rows; see :func:`encode_batches`.

    Below magic 2 without compression: a group of messages that would otherwise form one batch.
    """

    @property
    def bytes(self) -> bytes:
        """Bytes of the batch."""

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""

    @property
    def record_count(self) -> int:
        """Number of records."""
