# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Writes of rows to partition directories: options, tasks, commits."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias, final

__all__ = ["TaskWriter", "abort", "commit", "directory", "is_committed", "options", "start"]

_Pairs: TypeAlias = Sequence[tuple[str, str]]

@final
class TaskWriter:
    """Writes the rows of one task, grouped by partition.

    Args:
        job: The bytes that :func:`start` returned.
        number: The number of the task; the commit puts the rows of the tasks in this order.
        attempt: A number that differs between runs of the same task.

    Raises:
        ValueError: Other bytes.
    """

    def __new__(cls, job: bytes, number: int, attempt: int = 0) -> TaskWriter: ...
    def write(self, data: Any) -> None:  # noqa: ANN401 -- any class with the Arrow PyCapsule interface
        """Write rows, or keep them until there are enough for a batch.

        Args:
            data: Arrow data with the columns of the write.

        Raises:
            OSError: Writing failed, as after the write was aborted.
            ValueError: A row without a topic or a partition, or with one that is not valid; a record that Kafka's
                rules forbid.
        """

    def finish(self) -> bytes:
        """Write the remaining rows and close the files.

        Returns:
            What was written, as bytes for :func:`commit`.

        Raises:
            OSError: Writing failed.
            ValueError: A record that Kafka's rules forbid, or the writer is finished.
        """

def options() -> list[tuple[str, str | None, str, str]]:
    """Return the name, the other name, the default and the description of every option of a write."""

def start(given: _Pairs, columns: _Pairs, *, overwrite: bool) -> bytes:
    """Start a write, and create the directory in which its tasks write.

    Completes the commits of drivers that died.

    Args:
        given: Names and texts of options, in any case.
        columns: Name and type in SQL of each column.
        overwrite: Whether the commit replaces all partitions of the topics of the rows.

    Returns:
        The write, as bytes for the other functions and for :class:`TaskWriter`.

    Raises:
        OSError: The directory can't be created, or moving the files of an interrupted commit failed.
        ValueError: A wrong option, or a column that can't be written.
    """

def directory(job: bytes) -> Path:
    """Return the directory in which the tasks of a write create files.

    Args:
        job: The bytes that :func:`start` returned.

    Raises:
        ValueError: Other bytes.
    """

def is_committed(job: bytes) -> bool:
    """Return whether a write is committed, although some files may not be moved yet.

    Args:
        job: The bytes that :func:`start` returned.

    Raises:
        ValueError: Other bytes.
    """

def commit(job: bytes, written: Sequence[bytes], *, epoch: tuple[str, int] | None = None) -> None:
    """Set the offsets of all records, and move them into the partitions, task by task.

    Before the commit, nothing is visible; after it, the next write to the path moves the remaining files.

    Args:
        job: The bytes that :func:`start` returned.
        written: What :meth:`TaskWriter.finish` returned for each task.
        epoch: The id of a streaming query and the number of its micro-batch, which is written once: the commit
            discards the records if the target already has them.

    Raises:
        CorruptError: The end of an existing partition is corrupt.
        FileExistsError: A concurrent write created the same files, and locks have no effect here.
        OSError: A file can't be read, written or moved.
        ValueError: Other bytes, ``leaderEpoch`` is below the latest epoch of a partition, or the id of the query is not
            1 to 100 ASCII letters, digits and dashes.
    """

def abort(job: bytes) -> None:
    """Remove all files of a write, unless it is committed and only moving failed: the next write completes it.

    Args:
        job: The bytes that :func:`start` returned.

    Raises:
        OSError: A file can't be removed.
        ValueError: Other bytes.
    """
