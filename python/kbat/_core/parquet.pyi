# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Columns to Parquet files."""

import os
from collections.abc import Callable, Sequence
from typing import final

from kbat._core.arrow import Scan

__all__ = ["ParquetFile", "write_parquet"]

@final
class ParquetFile:
    """A Parquet file that was written."""

    @property
    def path(self) -> str:
        """Where it is."""

    @property
    def row_count(self) -> int:
        """Its rows."""

    @property
    def size(self) -> int:
        """Its bytes."""

def write_parquet(
    scan: Scan,
    target: str | os.PathLike[str],
    *,
    partition_by: Sequence[str] | None = None,
    compression: str = "snappy",
    names: Sequence[str] | None = None,
    file_stem: str = "part",
    row_group_bytes: int = ...,
    max_memory_bytes: int = ...,
    threads: int = 1,
    progress: Callable[[int, int], object] | bool | None = None,
) -> list[ParquetFile]:
    """Write a scan to Parquet in Rust: one file, or a directory partitioned in Hive's layout.

    Memory holds ``max_memory_bytes`` of rows, and half a megabyte a file. A directory gets one file; of more than 1,024
    directories, whose rows come in no order, some get several. Files get their names when all of them are whole; an
    error leaves none.
    A file that has such a name is replaced, one that a link leads to as well; others in the directory stay.

    Args:
        scan: What :func:`kbat.scan` gives.
        target: The file; the directory where ``partition_by`` names something.
        partition_by: Columns that become directories, outermost first: ``topic``, ``partition`` and the like, also
            ``"date"`` and ``"hour"`` of the timestamp in UTC.
        compression: ``none``, ``snappy``, ``lz4``, ``gzip``, ``zstd``; the last two also with a level: ``"zstd:3"``.
        names: Other names for the columns that are written, in their order.
        file_stem: Beginning of the names of files in a partitioned directory.
        row_group_bytes: Bytes of encoded data after which a row group ends.
        max_memory_bytes: Bytes that all open files together may hold.
        threads: Threads that read; with more than one, writing goes on beside them.
        progress: Called every now and then with the bytes walked over and the bytes of all sources; True for a
            progress bar, if ``rich`` is installed.

    Returns:
        The files.

    Raises:
        ValueError: A column or codec that does not exist, a column that can't name a directory.
        KbatError: What reading the scan raises.
        OSError: A file that can't be written.

    Example:
        >>> kbat.write_parquet(kbat.scan("/var/lib/kafka/data"), "out", partition_by=["topic", "date"])
    """
