# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Read records, batches and segments as Arrow columns."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, Self, TypeAlias, final

import pandas as pd
import polars as pl
import pyarrow as pa
from typing_extensions import Buffer

from kbat._core import Limits, SegmentFile, _EncryptionKeys, _Time
from kbat._core.log import PartitionLog, Segment

_Path: TypeAlias = str | os.PathLike[str]
_Part: TypeAlias = tuple[_Path, int, int]
_Opened: TypeAlias = Segment | PartitionLog | SegmentFile
_Decoder: TypeAlias = Literal[
    "auto", "offsets", "transaction_log", "share_group_state", "cluster_metadata", "remote_log_metadata", "json"
]

__all__ = [
    "ArrowBatchIterator",
    "Scan",
    "ScanStats",
    "scan",
    "split",
    "sum_batches",
    "sum_records",
]

def scan(
    source: Buffer | _Path | _Part | _Opened | Sequence[Buffer | _Path | _Part | _Opened],
    *,
    columns: Iterable[str] | None = None,
    view: Literal["records", "batches", "segments", "internal"] = "records",
    decoder: _Decoder = "auto",
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
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> Scan:
    """Read records, batches or segments of buffers, files and directories as Arrow columns.

    Nothing is read until the result is used. Each use starts a new pass, in Rust, with the GIL released. One
    Arrow batch is in memory at a time; with several threads, batches of up to 256 MiB wait for their turn.

    Args:
        source: A bytes-like object, the path of a ``.log`` file, a partition directory or a log directory, a pattern
            such as ``/data/orders-*``, a part of a file as returned by :func:`split`, or a list of these. A segment
            that is listed twice is read once. Paths may be URLs.
        columns: Names of the columns, in order. Other columns cost nothing. Records: default ``key value topic
            partition offset timestamp timestamp_type headers``; also ``base_offset position partition_leader_epoch
            producer_id producer_epoch sequence is_transactional compression magic batch_size segment``. Batches:
            default all fields of the header; also ``crc_ok uncompressed_size ratio``, which read the whole batch.
            Segments: default all except ``batch_count``, which reads every header. Internal: default ``topic
            partition offset timestamp record_type type_id version key value is_tombstone reason``; also ``is_control
            schema_id`` and those of records.
        view: ``"records"``: one row per record. ``"batches"``: one row per batch, control batches included, from
            headers only. ``"segments"``: one row per ``.log`` file. ``"internal"``: one row per record of Kafka's
            internal topics, of ``_schemas`` and of ``.checkpoint`` files, with key and value as JSON text; other topics
            are not read. ``reason`` is why a key or value could not be decoded, such as a record type of a newer Kafka.
        decoder: How ``view="internal"`` decodes. ``"auto"``: by the topic's name. ``"offsets"``,
            ``"transaction_log"``, ``"share_group_state"``, ``"cluster_metadata"``, ``"remote_log_metadata"``: all
            topics as that internal topic. ``"json"``: all topics as JSON, text as strings, other bytes as
            ``{"base64": ...}``, and values in Confluent's wire format with the id of their schema, which is also the
            column ``schema_id``.
        topics: Read only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default: all.
        partitions: Read only partitions with these numbers. Default: all.
        replicas: What to do if a partition is in several directories, as in the log directories of several brokers:
            ``"error"`` raises an error, ``"longest"`` reads the directory with the largest range of offsets.
        start_offset: First offset to read. By default, this includes records that a broker has deleted but whose
            segment still exists; start at ``PartitionLog.start_offset`` to skip them.
        end_offset: Read up to, but not including, this offset.
        start_timestamp: Read records with this timestamp or a later one: milliseconds since the epoch, a
            ``datetime`` with a time zone, or ISO 8601 text with one. Segments and batches that are older according
            to their name, index or header are not read. Records without a timestamp never match a time range.
        end_timestamp: Read records with a timestamp before this one.
        isolation: ``"read_committed"`` skips records of aborted transactions and everything from the last stable offset
            on, as a consumer with that ``isolation.level`` does. Aborted transactions are found from the partition's
            control records and ``.txnindex`` files; for a buffer or a stand-alone file, from its own control records.
        include_control: Whether control records are included.
        check_crc: Whether checksums are verified. A view reads headers, and verifies a batch only if offsets are
            missing after it, or at the end of a segment, where a length could hide others: select ``crc_ok`` for all.
        on_corrupt: ``"fail"`` raises at the first corruption. ``"skip"`` drops corrupt batches, continues at the next
            batch, and counts the losses in ``Scan.stats``. ``"report"`` also emits one row per corruption, with nulls
            and a last column ``error``: a struct of ``kind message path position length first_offset last_offset``.
            With ``"fail"``, batches excluded by the bounds are only checksummed beside a gap in the offsets.
        limits: Bounds on untrusted input.
        topic: Topic of buffers, and of files outside a ``<topic>-<partition>`` directory. It does not select topics:
            use ``topics`` for that.
        partition: Partition number of buffers, and of files outside a ``<topic>-<partition>`` directory.
        timestamp_unit: ``"ms"`` as in Kafka, or ``"us"`` as in Spark.
        missing_timestamp: Value of the column ``timestamp``, in milliseconds, for records without a timestamp.
            Default: null. Column ``timestamp_type`` is 0 for CreateTime, 1 for LogAppendTime, -1 for magic 0, which
            has no timestamps.
        binary_view: Whether keys, values and header values are ``binary_view``. Those of uncompressed batches are then
            not copied, and the Arrow data keeps the buffers that were read.
        max_rows: Maximum rows of an Arrow batch.
        max_bytes: Target size of an Arrow batch in bytes of key, value and header data. An Arrow batch ends at the next
            Kafka batch boundary.
        leave_page_cache: Whether to drop the pages that reading adds to the page cache, for machines on which a
            broker runs. Pages that were cached before are kept. Slower; no effect outside Linux.
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
        OSError: The path can't be read.
        ValueError: An unknown column, topic or partition, an argument without effect, a partition in several
            directories, or a directory with files but no segment.

    Example:
        >>> kbat.scan("topic-0/", columns=["offset", "timestamp", "value"]).to_polars()
    """

def sum_batches(
    scan: Scan,
    by: Sequence[str],
    *,
    progress: Callable[[int, int], object] | bool | None = None,
) -> list[tuple[tuple[Any, ...], dict[str, Any], dict[int, int]]]:
    """Sum up the batches of a scan by groups, from their headers. Needs no PyArrow.

    Args:
        scan: A scan with ``view="batches"``. Its columns have no effect.
        by: What to group by: ``topic``, ``partition``, ``compression``, ``producer_id``, ``magic``, and ``day``, the
            number of days from the epoch to the largest timestamp.
        progress: Called periodically with the number of bytes processed and the bytes of all sources; True for a
            progress bar, if ``rich`` is installed.

    Returns:
        The groups in the order of their first batches, each a tuple of the values of ``by``, a dictionary of figures,
        and a dictionary of the number of batches by class of size, which is the smallest size with the same 7 leading
        bits. The figures: ``batches``, ``bytes``, ``records``, ``uncounted_batches`` and ``uncounted_bytes`` (of
        batches without a record count), ``batch_header_bytes``, ``control_batches``, ``transactional_batches``,
        ``gaps`` between batches, ``missing_offsets``, ``first_timestamp`` and ``last_timestamp`` of the headers,
        ``smallest_batch`` and ``largest_batch``.

    Raises:
        ValueError: An unknown group, or a scan of another view.
        KbatError: Corruption.
        OSError: A file can't be read.
    """

def sum_records(
    scan: Scan,
    by: Sequence[str],
    *,
    progress: Callable[[int, int], object] | bool | None = None,
) -> list[tuple[tuple[Any, ...], dict[str, Any], dict[int, int]]]:
    """Sum up the records of a scan by groups, on one thread. Needs no PyArrow.

    Args:
        scan: A scan with ``view="records"``. Its columns have no effect.
        by: What to group by, as for :func:`sum_batches`. The day of a record is that of its own timestamp.
        progress: As for :func:`sum_batches`.

    Returns:
        The groups in the order of their first records, as :func:`sum_batches` returns them, with the number of records
        by class of size. The size of a record is that of its key, value and headers, without compression. The figures:
        ``records``, ``key_bytes``, ``value_bytes``, ``header_bytes``, ``headers``, ``null_keys``, ``tombstones`` (with
        a key and a null value), ``smallest_record`` and ``largest_record``.

    Raises:
        ValueError: An unknown group, or a scan of another view.
        KbatError: Corruption.
        OSError: A file can't be read.
    """

def split(
    source: _Path | _Part | SegmentFile | Sequence[_Path | _Part | SegmentFile],
    max_bytes: int,
    *,
    limits: Limits | None = None,
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> list[tuple[str, int, int]]:
    """Split segments into parts of about equal size, each of which is a source for :func:`scan`.

    Parts begin at batch boundaries, and together they contain every batch once. Only headers are read to find them.

    Args:
        source: Path or URL of a ``.log`` file, a partition directory or a log directory, a pattern, or a list of these.
        max_bytes: Maximum bytes of a part. A larger batch is a part of its own.
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

    Returns:
        Path, first byte and byte after the last one of each part. A segment that may still grow is split at its
        current size.

    Raises:
        OSError: A path can't be read.
        ValueError: A source is not a file, or ``max_bytes`` is less than 1.
    """

class _ArrowStream(Protocol):
    """Arrow data as a stream of the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the stream."""

class _ArrowArray(Protocol):
    """An Arrow batch with the Arrow PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Return the schema and the array."""

@final
class Scan:
    """A lazy scan that can be read any number of times.

    Any consumer of the Arrow PyCapsule interface can read it, such as polars, DuckDB and PyArrow. Or use
    ``to_pyarrow()``, ``to_pandas()``, ``to_polars()``, ``to_batches()`` and ``to_reader()``.
    """

    @property
    def schema(self) -> pa.Schema:
        """The schema, a ``pyarrow.Schema``."""

    @property
    def stats(self) -> ScanStats | None:
        """What the most recently advanced pass has read and lost so far; None before the first pass.

        With several threads, rows that were decoded and not taken are counted, too.
        """

    @property
    def topic_partitions(self) -> list[tuple[str | None, int | None]]:
        """The distinct topics and partitions of the sources, in their order; None if they are unknown."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""

    def count(self, *, threads: int | None = None) -> int:
        """Count the rows. Only one column is decoded.

        Args:
            threads: See ``to_pyarrow()``.
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
        """Return the same scan with narrower bounds.

        Records without a timestamp are in no time range. So if ``missing_timestamp`` gives them one within the range,
        the scan is not narrowed by time, and returns rows outside of it too.

        Args:
            columns: Names of the columns, in order, as for :func:`scan`. Default: the columns of this scan.
            start_offset: First offset to read, if it is later than this scan's.
            end_offset: Read up to, but not including, this offset, if it is earlier than this scan's.
            start_timestamp: Read records with this timestamp or a later one, if it is later than this scan's.
            end_timestamp: Read records with a timestamp before this one, if it is earlier than this scan's.
            topics: Exact names. Sources of other topics are omitted; those with an unknown topic are kept.
            partitions: Sources of other partitions are omitted; those with an unknown partition are kept.

        Raises:
            ValueError: A column does not exist.
        """

    def __arrow_c_schema__(self) -> object:
        """Return the schema for the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Start a new pass for the Arrow PyCapsule interface, on one thread.

        If the consumer requests a schema, the pass has the schema's columns in its order, as ``binary`` or
        ``binary_view``. Other requested types are ignored, which the interface allows.
        """

    def to_batches(
        self,
        *,
        threads: int = 1,
        max_memory_bytes: int | None = None,
        progress: Callable[[int, int], object] | bool | None = None,
    ) -> ArrowBatchIterator:
        """Iterate over a new pass as ``pyarrow.RecordBatch``, raising kbat's own exceptions.

        Args:
            threads: Number of threads that decode parts of the sources ahead of the caller. The order of rows is
                kept. Has an effect on records only.
            max_memory_bytes: Maximum bytes of Arrow batches that threads may buffer. Default 256 MiB.
            progress: Called periodically with the number of bytes processed and the bytes of all sources; True for a
                progress bar, if ``rich`` is installed.
        """

    def to_reader(
        self,
        *,
        threads: int = 1,
        max_memory_bytes: int | None = None,
        progress: Callable[[int, int], object] | bool | None = None,
    ) -> pa.RecordBatchReader:
        """Return a new pass as a ``pyarrow.RecordBatchReader``, raising kbat's own exceptions.

        The arguments are those of ``to_batches()``.
        """

    def to_pyarrow(
        self,
        *,
        threads: int | None = None,
        max_memory_bytes: int | None = None,
        progress: Callable[[int, int], object] | bool | None = None,
    ) -> pa.Table:
        """Read all rows as a ``pyarrow.Table``.

        Args:
            threads: See ``to_batches()``. Default: the number of CPUs, at most 8, or 1 if the sources are small.
            max_memory_bytes: See ``to_batches()``.
            progress: See ``to_batches()``.
        """

    def to_pandas(
        self,
        *,
        threads: int | None = None,
        max_memory_bytes: int | None = None,
        progress: Callable[[int, int], object] | bool | None = None,
        **arguments: Any,  # noqa: ANN401 -- those of PyArrow
    ) -> pd.DataFrame:
        """Read all rows as a ``pandas.DataFrame``; needs pyarrow.

        Args:
            threads: See ``to_pyarrow()``.
            max_memory_bytes: See ``to_pyarrow()``.
            progress: See ``to_pyarrow()``.
            arguments: Keyword arguments of ``pyarrow.Table.to_pandas``, such as ``types_mapper=pandas.ArrowDtype``.
        """

    def to_polars(
        self,
        *,
        threads: int | None = None,
        max_memory_bytes: int | None = None,
        progress: Callable[[int, int], object] | bool | None = None,
    ) -> pl.DataFrame:
        """Read all rows as a ``polars.DataFrame``. The arguments are those of ``to_pyarrow()``."""

    def _empty(self) -> _ArrowStream: ...
    def _repr_html_(self) -> str: ...

@final
class ScanStats:
    """What a pass of a :class:`Scan` has read and lost."""

    @property
    def batches(self) -> int:
        """Number of batches whose records were returned."""

    @property
    def records(self) -> int:
        """Number of rows returned, without rows that describe an error."""

    @property
    def bytes_read(self) -> int:
        """Bytes read from files; for buffers, bytes of the batches processed."""

    @property
    def batches_skipped(self) -> int:
        """Number of corruptions skipped: damaged batches, or ranges of bytes without a valid batch."""

    @property
    def bytes_lost(self) -> int:
        """Bytes skipped, and of an incomplete batch at the end, which `fail` accepts too."""

    @property
    def offsets_lost(self) -> int:
        """Number of offsets between the last good batch before and the next one after each corruption.

        Includes offsets that compaction had removed.
        """

    @property
    def segments_deleted(self) -> int:
        """Number of segments that retention deleted after the log was listed, so that their records were not read."""

    @property
    def segments_overlapping(self) -> int:
        """Number of segments (or parts) with offsets of the next one, so that records may have been returned twice."""

    def to_dict(self) -> dict[str, int]:
        """Return the fields as a dictionary."""

@final
class ArrowBatchIterator:
    """Iterates over Arrow batches as ``pyarrow.RecordBatch``; see :meth:`Scan.to_batches`."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> pa.RecordBatch: ...
    def _next(self) -> _ArrowArray | None: ...
    def _next_columns(self) -> dict[str, list[Any]] | None: ...
    @property
    def stats(self) -> ScanStats:
        """What this pass has read and lost so far.

        With several threads, rows that were decoded and not taken are counted, too.
        """
