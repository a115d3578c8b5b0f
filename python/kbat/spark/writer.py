"""`df.write.format("kbat")` in Python: Rust groups and encodes the rows of the tasks, and commits them.

The files of a commit are those of the writer in the JVM, so either completes what the other began. Each task writes at
least one segment for each partition of its rows; `df.repartition("topic", "partition")` before the write results in few
and large segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from kbat._core import sink as core
from kbat.spark.jvm import check_engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType


class KbatWriter(DataSourceArrowWriter):
    """Writes rows. It is created on the driver and pickled for the tasks."""

    def __init__(self, schema: StructType, options: Mapping[str, str], *, overwrite: bool) -> None:
        """Check schema and options. Raises `ValueError` if they don't fit each other."""
        check_engine(options)
        self.job = core.start(list(options.items()), columns_of(schema), overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # as Spark has it
        """Write the rows of one task to the task's own directory."""
        task = task_writer(self.job)
        for batch in iterator:
            task.write(batch)
        return Written(task.finish())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Set the offsets of all records and move them into the partitions."""
        core.commit(self.job, [message.task for message in messages if isinstance(message, Written)])

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove all files of the write, unless it is committed and only moving failed: the next write completes it."""
        del messages
        core.abort(self.job)


def columns_of(schema: StructType) -> list[tuple[str, str]]:
    """Return name and type in SQL of each column."""
    return [(column.name, column.dataType.simpleString()) for column in schema.fields]


def task_writer(job: bytes) -> core.TaskWriter:
    """Return what writes the rows of the task that runs in this process."""
    from pyspark import TaskContext  # noqa: PLC0415 -- there are tasks only where Spark runs them

    context = TaskContext.get()
    number, attempt = (context.partitionId(), context.taskAttemptId()) if context else (0, 0)
    return core.TaskWriter(job, number, attempt)


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task wrote."""

    task: bytes
