"""`df.writeStream.format("kbat")` in Python: each micro-batch is one commit, with the files and the name of the JVM's.

Spark calls a writer in three kinds of processes:

```
on the driver                    tasks                        on the driver, in another process
start(): the directory of   ──►  write(): the rows, then  ──► commit() or abort(): of a new writer, which has
the job, and a file with         a message with the id        the messages only, and the number of the micro-batch
the job in it                    of the query
```

Only the tasks learn the id of the query, from a property that Spark sets for the jobs of a streaming query. It is the
id in the checkpoint, so a query that restarts keeps it, and it is the one that Spark passes to the writer in the JVM.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage

from kbat._core import sink as core
from kbat._core.plan import local_path
from kbat.spark.jvm import check_engine
from kbat.spark.writer import columns_of, task_writer

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # Spark 4.0, which passes Arrow batches to every writer of this class

    class DataSourceStreamArrowWriter(DataSourceStreamWriter, DataSourceArrowWriter):  # type: ignore[no-redef, misc]
        """Replaces Spark's class."""


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

_QUERY_ID = "sql.streaming.queryId"


class KbatStreamWriter(DataSourceStreamArrowWriter):
    """Writes one micro-batch. It is pickled for the tasks."""

    def __init__(self, schema: StructType, options: Mapping[str, str], *, overwrite: bool) -> None:
        """Store columns and options. Raises `ValueError` for an engine that does not run here."""
        check_engine(options)
        # in one order in all processes, because `_name` depends on it
        self.options = sorted((name.lower(), text) for name, text in options.items())
        self.columns = columns_of(schema)
        self.overwrite = overwrite
        self.job = b""

    def start(self) -> None:
        """Create the directory of the job. Raises `ValueError` if columns and options don't fit each other."""
        self.job = core.start(self.options, self.columns, overwrite=self.overwrite)
        (core.directory(self.job) / self._name).write_bytes(self.job)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StreamWritten:  # type: ignore[override]  # as Spark has it
        """Write the rows of one task to the task's own directory. Raises `ValueError` if Spark names no query."""
        from pyspark import TaskContext  # noqa: PLC0415 -- there are tasks only where Spark runs them

        context = TaskContext.get()
        query = context.getLocalProperty(_QUERY_ID) if context else None
        if not query:
            message = (
                f"kbat: the task has no property {_QUERY_ID} with the id of the streaming query, without which the "
                "rows could be written twice: start the session with the settings kbat.spark.SETTINGS, so that the JVM "
                "writes"
            )
            raise ValueError(message)
        task = task_writer(self.job)
        for batch in iterator:
            task.write(batch)
        return StreamWritten(str(core.directory(self.job)), query, task.finish())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 -- Spark's name
        """Append the records to the partitions, unless the target has the micro-batch already."""
        written = [message for message in messages if isinstance(message, StreamWritten)]
        if not written:
            self.abort(messages, batchId)
            return
        job = (Path(written[0].directory) / self._name).read_bytes()
        core.commit(job, [message.task for message in written], epoch=(written[0].query, batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 -- Spark's name
        """Remove all files of the micro-batch, unless it is committed and only moving failed."""
        del batchId
        directories = [Path(message.directory) for message in messages if isinstance(message, StreamWritten)]
        file = directories[0] / self._name if directories else self._last_started()
        if file is not None and file.exists():  # a commit that is complete has removed it
            core.abort(file.read_bytes())

    @property
    def _name(self) -> str:
        """The name of the file with the job: the same in all processes of a query, different for other queries."""
        given = json.dumps([self.options, self.columns, self.overwrite])
        return f"stream-{hashlib.sha256(given.encode()).hexdigest()[:32]}"

    def _last_started(self) -> Path | None:
        """Return the file of the last job of this query, whose tasks have all failed.

        Only a checkpoint makes the options of a query unique. Without that option, the files remain.
        """
        options = dict(self.options)
        if "checkpointlocation" not in options or "path" not in options:
            return None
        files = Path(local_path(options["path"])).glob(f".kbat-*/{self._name}")
        return max(files, key=lambda file: file.stat().st_mtime_ns, default=None)


@dataclass(frozen=True)
class StreamWritten(WriterCommitMessage):
    """What a task wrote, for which query, in the directory of which job."""

    directory: str
    query: str
    task: bytes
