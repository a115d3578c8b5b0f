# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Write columns to Parquet files."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import final

from kbat._core.arrow import Scan

__all__ = ["ParquetFile", "write_parquet"]

@final
class ParquetFile:
    """A Parquet file written by :func:`write_parquet`."""

    @property
    def path(self) -> str:
        """Path of the file."""

    @property
    def row_count(self) -> int:
        """Number of rows."""

    @property
    def size(self) -> int:
        """Bytes of the file."""

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
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
) -> list[ParquetFile]:
    """Write a scan to Parquet in Rust: one file, or a directory partitioned in Hive's layout.

    Memory use is up to ``max_memory_bytes`` of rows, plus half a megabyte per open file. Each directory gets one
    file; with more than 1,024 directories and unsorted rows, some get several. Files get their final names when all
    of them are complete, and an error leaves none. Existing files of these names are replaced, including the targets
    of links; other files in the directory are kept. A file that is read is never replaced.

    Args:
        scan: A scan from :func:`kbat.scan`.
        target: The file, or the directory if ``partition_by`` names columns. For a URL, the files are uploaded when all
            of them are complete; until then they take room in the system's temporary directory.
        partition_by: Columns that become directories, outermost first: ``topic``, ``partition`` and similar, also
            ``"date"`` and ``"hour"`` of the timestamp in UTC.
        compression: ``none``, ``snappy``, ``lz4``, ``gzip``, ``zstd``; the last two also with a level: ``"zstd:3"``.
        names: Names for the written columns, in their order, to replace the scan's names.
        file_stem: Beginning of the names of files in a partitioned directory.
        row_group_bytes: Target size of a row group in bytes of encoded data.
        max_memory_bytes: Maximum bytes that all open files together may buffer.
        threads: Number of threads that read. With more than one, another thread writes at the same time.
        progress: Called periodically with the number of bytes processed and the bytes of all sources; True for a
            progress bar, if ``rich`` is installed.
        storage_options: How to open the store of a target that is a URL, with the names of object_store, such as
            ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
            ``AWS_ACCESS_KEY_ID``, or the role of the machine.
        store: A store of obstore; a target without a scheme stays a path in the file system.

    Returns:
        The files written.

    Raises:
        ValueError: A column or codec does not exist, a column can't name a directory, or the target is one of the files
            that are read.
        KbatError: Reading the scan failed.
        OSError: A file can't be written.

    Example:
        >>> kbat.write_parquet(kbat.scan("/var/lib/kafka/data"), "out", partition_by=["topic", "date"])
    """
