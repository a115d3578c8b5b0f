# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Plans of reads: options, tasks, micro-batches."""

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, TypeAlias, final

import pyarrow as pa

from kbat import Limits, ParquetFile, ScanStats

__all__ = [
    "ReadOptions",
    "Stream",
    "TaskReader",
    "check",
    "columns",
    "error_column",
    "local_path",
    "nothing",
    "options",
    "plan",
    "write_parquet",
]

_Pairs: TypeAlias = Sequence[tuple[str, str]]
_Described: TypeAlias = tuple[str, str, str, str]

@final
class ReadOptions:
    """The options of a read, parsed from names and texts.

    Args:
        given: Names and texts, in any case.
        session: Options of the store that apply to ``s3://`` URLs if the read has none.

    Raises:
        ValueError: An option that is unknown, has a wrong value, or excludes another one.
    """

    def __new__(cls, given: _Pairs = ..., session: _Pairs = ...) -> ReadOptions: ...
    @property
    def view(self) -> str:
        """``records``, ``batches`` or ``segments``."""

    @property
    def column_names(self) -> list[str]:
        """The columns of a read for which the user sets no schema."""

    @property
    def all_paths(self) -> list[str]:
        """The paths to read: URLs, and absolute paths of files."""

    @property
    def keywords(self) -> dict[str, Any]:
        """The keyword arguments with which kbat opens the paths."""

    @property
    def has_storage(self) -> bool:
        """Whether the read itself names options of a store."""

    @property
    def on_corrupt(self) -> str:
        """``fail``, ``skip`` or ``report``."""

    @property
    def isolation(self) -> str:
        """``read_uncommitted`` or ``read_committed``."""

    @property
    def check_crc(self) -> bool:
        """Whether checksums are verified."""

    @property
    def include_control(self) -> bool:
        """Whether control records are rows."""

    @property
    def offsets_per_trigger(self) -> tuple[int | None, int | None]:
        """The largest and the smallest number of offsets in a micro-batch."""

    @property
    def limits(self) -> Limits:
        """Bounds on untrusted input."""

    @property
    def ignored(self) -> list[str]:
        """Names of options that have no effect because they concern a broker."""

    def check_batch(self) -> None:
        """Check the rules of a batch read.

        Raises:
            ValueError: Bounds that exclude each other.
        """

    def check_stream(self) -> None:
        """Check the rules of a stream.

        Raises:
            ValueError: An option that has no effect on a stream.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __getnewargs__(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Supports pickling."""

@final
class Stream:
    """Plans the micro-batches of a stream. Offsets are JSON, as Kafka writes them.

    Args:
        options: The options of the read.
        columns: Names of columns.

    Raises:
        ValueError: A wrong option.
    """

    def __new__(cls, options: ReadOptions, columns: Sequence[str]) -> Stream: ...
    def initial_offset(self) -> str:
        """Return the offsets at which a new query starts."""

    def latest_offset(self, start: str | None = None, *, is_limited: bool = True) -> str:
        """Return the end of the next micro-batch, which is its start if there is nothing to read yet.

        Args:
            start: Its start. Default: the end of the last one.
            is_limited: Whether the limits of the options apply.
        """

    def report_latest_offset(self) -> str | None:
        """Return the last known ends of all logs; None before the first call of :meth:`latest_offset`."""

    def prepare_for_available_now(self) -> None:
        """Fix the end of the query: the ends of all logs now."""

    def plan(self, start: str, end: str) -> list[bytes]:
        """Return the tasks of a micro-batch, as bytes for :class:`TaskReader`."""

@final
class TaskReader:
    """Iterates over the rows of a task as ``pyarrow.RecordBatch``.

    Args:
        task: The bytes that :func:`plan` or :meth:`Stream.plan` returned.

    Raises:
        ValueError: Other bytes.
    """

    def __new__(cls, task: bytes) -> TaskReader: ...
    def __iter__(self) -> Iterator[pa.RecordBatch]: ...
    def __next__(self) -> pa.RecordBatch: ...
    @property
    def stats(self) -> ScanStats:
        """What was read and lost so far."""

def check(options: ReadOptions, schema: Sequence[tuple[str, str, bool]]) -> list[str]:
    """Check the schema of a read, and return the names of its columns in a scan.

    Args:
        options: The options of the read.
        schema: Name, type in SQL and whether it may be null, for each column.

    Raises:
        ValueError: A column that does not exist or has another type.
    """

def columns(view: str) -> tuple[list[_Described], int]:
    """Return the name in a schema, the name in a scan, the type in SQL and the description of every column.

    Args:
        view: ``records``, ``batches`` or ``segments``.

    Returns:
        The columns, and how many of them are read by default.

    Raises:
        ValueError: Another view.
    """

def error_column() -> _Described:
    """Return the column that describes corruption, like those of :func:`columns`."""

def local_path(path: str) -> str:
    """Return the absolute path of a path or ``file:`` URL.

    Args:
        path: The path.

    Raises:
        ValueError: A URL of another scheme.
    """

def nothing(options: ReadOptions, columns: Sequence[str]) -> bytes:
    """Return a task that reads nothing, to check what the others would do.

    Args:
        options: The options of the read.
        columns: Names of columns.

    Raises:
        ValueError: A column that does not exist.
    """

def options() -> list[tuple[str, str, str]]:
    """Return the name, default and description of every option."""

def plan(
    options: ReadOptions, columns: Sequence[str], filters: Sequence[Sequence[str]] = ..., *, splits: bool = True
) -> list[bytes]:
    """Plan a batch read.

    Args:
        options: The options of the read.
        columns: Names of columns.
        filters: Conditions that the query applies to each row: operator, column, type and values as texts.
        splits: Whether several tasks may read a batch with more than ``maxRecordsPerPartition`` offsets.

    Returns:
        The tasks, as bytes for :class:`TaskReader`. They contain the options, which may be secret.

    Raises:
        FileNotFoundError: A path does not exist.
        KbatError: Corruption hides a bound.
        ValueError: A wrong option, or bounds that do not fit the existing partitions.
    """

def write_parquet(
    task: bytes,
    target: str | PathLike[str],
    partition_by: Sequence[str],
    compression: str,
    names: Sequence[str],
    file_stem: str,
) -> list[ParquetFile]:
    """Write the rows of a task to Parquet files. ``headers`` of a record without headers is an empty list.

    Args:
        task: The bytes that :func:`plan` returned.
        target: The file, or the directory if ``partition_by`` names columns.
        partition_by: As for :func:`kbat.write_parquet`.
        compression: As for :func:`kbat.write_parquet`.
        names: Names of the columns, in their order, without those that name directories.
        file_stem: Beginning of the names of files in a partitioned directory.

    Returns:
        The files written.

    Raises:
        KbatError: Reading the rows failed.
        OSError: A file can't be read or written.
        ValueError: A column or codec does not exist, or a column can't name a directory.
    """
