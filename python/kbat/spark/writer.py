"""`df.write.format("kbat")`: writes rows to partition directories that a broker can serve.

```
each task    rows ──► a partition's rows ──► batches from offset 0 on ──► <path>/.kbat-<job>/<task>/<topic>-<partition>/
commit       the tasks' segments, in order, get the offsets after the existing ones and move into the partitions
abort        removes <path>/.kbat-<job>/
```

Offsets in indexes are relative to the base offset of the segment, so changing it takes eight bytes per batch and a
rename: no record is written twice, and the driver copies no data. Each task writes at least one segment for each
partition of its rows; `df.repartition("topic", "partition")` before the write results in few and large segments.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

import kbat
from kbat.spark import values
from kbat.spark.commit import CommitOptions, Fragment, commit_fragments, finish_commits, is_committed
from kbat.spark.job import remove_job
from kbat.spark.options import warn_of_broker_options
from kbat.spark.stores import local_path, scheme_of
from kbat.spark.table import option, parse_table
from kbat.spark.topics import TopicPartition, parse_topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Records are buffered up to about this many bytes per partition, and this many for all partitions of a task.
_RUN_LEN = 1 << 20
_WAITING_LEN = 256 << 20

_INT32_MAX = (1 << 31) - 1

# Number of logs that a task keeps open, if the limit of open files allows it; others are opened again.
_OPEN_LOGS = 512
_FILES_OF_A_LOG = 4

_TEXT = (BinaryType, StringType)
_COLUMN_TYPES: dict[str, tuple[type[DataType], ...]] = {
    "topic": (StringType,),
    "partition": (IntegerType, ShortType, LongType),
    "key": _TEXT,
    "value": _TEXT,
    "headers": (ArrayType,),
    "timestamp": (TimestampType, LongType),
}
# Columns of the source that a write ignores, as Spark's Kafka sink does, so that rows can be written as they were read.
_PASSED_OVER = ("offset", "timestampType")
# The columns that kbat.encode reads.
_RECORD_COLUMNS = ("key", "value", "headers", "timestamp")


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """The options of one `df.write.format("kbat")`."""

    path: str | None = option("path", values.parse_text, "the directory for the partition directories")
    topic: str | None = option("topic", parse_topic, "the topic of all rows, instead of the column topic")
    num_partitions: int | None = option(
        "numPartitions",
        values.at_most(_INT32_MAX, values.parse_positive_count),
        "the number of partitions of each new topic; required if the rows have no column partition",
    )
    compression: str = option(
        "compression",
        values.one_of("none", "gzip", "snappy", "lz4", "zstd"),
        "the codec of the batches",
        default="none",
        aliases=("kafka.compression.type",),
    )
    level: int | None = option("level", values.parse_number, "the codec's level, with Kafka's numbers")
    batch_size: int = option(
        "batchSize",
        values.parse_positive_len,
        "the size of a batch before compression, in bytes",
        default=128 << 10,
        aliases=("kafka.batch.size",),
    )
    segment_bytes: int = option(
        "segmentBytes",
        values.at_most(_INT32_MAX, values.parse_positive_len),
        "the largest size of a segment",
        default=1 << 30,
    )
    leader_epoch: int | None = option(
        "leaderEpoch", values.at_most(_INT32_MAX, values.parse_count), "the leader epoch of the batches"
    )
    has_metadata: bool = option(
        "partitionMetadata",
        values.parse_bool,
        "writes a partition.metadata into new partitions",
        default=False,
    )
    engine: str = option(
        "engine",
        values.one_of("auto", "python"),
        "which implementation writes: so far, Python does in every session",
        default="auto",
    )


def parse_write_options(given: Mapping[str, str]) -> WriteOptions:
    """Parse the options of a write. Raises `ValueError` that names the option and its values."""
    path = next((text for name, text in given.items() if name.lower() == "path"), "")
    if scheme_of(path):
        message = f"kbat: {path} is in a store, and rows are only written to a file system: save there, then upload it"
        raise ValueError(message)
    known = ("kafka.compression.type", "kafka.batch.size")
    ignored = [name for name in given if name.lower().startswith("kafka.") and name.lower() not in known]
    warn_of_broker_options(ignored)
    return parse_table(WriteOptions, {name: text for name, text in given.items() if name not in ignored})


class KbatWriter(DataSourceArrowWriter):
    """Writes rows. It is created on the driver and pickled for the tasks."""

    def __init__(self, schema: StructType, options: WriteOptions, *, overwrite: bool) -> None:
        """Check schema and options. Raises `ValueError` if they don't fit each other."""
        if options.path is None:
            message = 'kbat: no path; write .save("/path/to/directory")'
            raise ValueError(message)
        _check_schema(schema, options)
        kbat.encode(pa.table({"value": pa.array([], pa.binary())}), timestamp=-1, **_encoding(options))
        self.options = options
        self.overwrite = overwrite
        self.path = local_path(options.path)
        self.job = os.path.join(self.path, f".kbat-{uuid.uuid4().hex}")  # noqa: PTH118 -- strings travel
        finish_commits(Path(self.path))
        self.partition_counts = _partition_counts(self.path)
        self.has_partition = "partition" in schema.names
        self.is_new = not Path(self.path).exists()
        Path(self.job).mkdir(parents=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # as Spark has it
        """Write the rows of one task to the task's own directory."""
        from pyspark import TaskContext  # noqa: PLC0415 -- there are tasks only where Spark runs them

        context = TaskContext.get()
        number, attempt = (context.partitionId(), context.taskAttemptId()) if context else (0, 0)
        task = TaskWriter(self, Path(self.job) / f"{number}-{attempt}", number)
        for batch in iterator:
            task.add(batch)
        return Written(number, tuple(task.close()))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Set the offsets of all records and move them into the partitions."""
        written = sorted(
            (message for message in messages if isinstance(message, Written)), key=lambda task: task.number
        )
        fragments = [fragment for task in written for fragment in task.fragments]
        given = self.options
        options = CommitOptions(self.overwrite, given.leader_epoch, given.has_metadata, given.num_partitions)
        commit_fragments(Path(self.path), Path(self.job), fragments, options)
        self._clear()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove all files of the write, unless it is committed and only moving failed: the next write completes it."""
        del messages
        if not is_committed(Path(self.job)):
            self._clear()
            if self.is_new:
                with contextlib.suppress(OSError):  # it may have files of another write
                    Path(self.path).rmdir()

    def _clear(self) -> None:
        """Remove the job's directory. Tasks that are still running fail, as they can no longer write."""
        gone = Path(f"{self.job}-gone")
        with contextlib.suppress(FileNotFoundError):
            Path(self.job).rename(gone)
        remove_job(gone)


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """The fragments that a task wrote."""

    number: int
    fragments: tuple[Fragment, ...]


class TaskWriter:
    """Groups the rows of a task by partition, and writes the log of each partition from offset 0 on."""

    def __init__(self, job: KbatWriter, directory: Path, number: int) -> None:
        self.job = job
        self.directory = directory
        self.logs: dict[TopicPartition, kbat.LogWriter] = {}  # the least recently used first
        self.most_logs = _most_logs()
        self.counts: dict[TopicPartition, int] = {}
        self.waiting: dict[TopicPartition, list[pa.RecordBatch]] = {}
        self.waiting_len: dict[TopicPartition, int] = {}
        self.total_waiting_len = 0
        self.turn = number
        self.now = time.time_ns() // 1_000_000

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of an Arrow batch."""
        if batch.num_rows == 0:
            return
        self.turn += 1
        topics, partitions = self._topics(batch), self._partitions(batch)
        names = [name for name in _RECORD_COLUMNS if name in batch.schema.names]
        records = batch.select(names)
        for topic, partition, rows in _groups(topics, partitions):
            part = records if rows is None else records.take(pa.array(rows))
            self._wait(TopicPartition(topic, partition), part)

    def close(self) -> Iterator[Fragment]:
        """Write the buffered rows, and yield all fragments."""
        for partition in [*self.logs, *self.waiting]:  # open logs first
            if partition in self.waiting:
                self._write(partition)
            if partition in self.logs:
                self._close(partition)
        for partition, count in self.counts.items():
            yield Fragment(partition, os.fspath(self._directory(partition)), count)

    def _topics(self, batch: pa.RecordBatch) -> pa.Array[Any] | str:
        if self.job.options.topic is not None:
            return self.job.options.topic
        topics = batch.column(batch.schema.get_field_index("topic"))
        if topics.null_count:
            message = "kbat: a row has no topic: fill the column topic, or set the option topic"
            raise ValueError(message)
        return topics

    def _partitions(self, batch: pa.RecordBatch) -> Any:  # noqa: ANN401 -- a numpy array
        if not self.job.has_partition:
            return self._partitions_by_key(batch)
        column = batch.column(batch.schema.get_field_index("partition"))
        if column.null_count == 0:
            partitions = column.to_numpy()
        else:
            partitions = np.array(column.fill_null(0).to_numpy())
            is_null = column.is_null()
            partitions[is_null.to_numpy(zero_copy_only=False)] = self._partitions_by_key(batch.filter(is_null))
        if partitions.min() < 0 or partitions.max() >= 1 << 31:
            wrong = partitions.min() if partitions.min() < 0 else partitions.max()
            message = f"kbat: {wrong} is not a valid partition: partitions are 0 to 2147483647"
            raise ValueError(message)
        return partitions

    def _partitions_by_key(self, batch: pa.RecordBatch) -> Any:  # noqa: ANN401 -- a numpy array
        """Return the partitions that Kafka's producer would choose: by the key's hash, or one for all null keys."""
        topics = self._topics(batch)
        names = [topics] * batch.num_rows if isinstance(topics, str) else topics.to_pylist()
        counts = [self._count(str(name)) for name in names]
        place = batch.schema.get_field_index("key")
        keys = [None] * batch.num_rows if place < 0 else batch.column(place).cast(pa.binary()).to_pylist()
        return np.array(
            [
                self.turn % count if key is None else kbat.partition_for_key(key, count)
                for key, count in zip(keys, counts, strict=True)
            ]
        )

    def _count(self, topic: str) -> int:
        count = self.job.options.num_partitions or self.job.partition_counts.get(topic)
        if count is None:
            message = (
                f"kbat: rows of topic {topic} have no partition, and its number of partitions is unknown: "
                "add a column partition, or set the option numPartitions"
            )
            raise ValueError(message)
        return count

    def _wait(self, partition: TopicPartition, records: pa.RecordBatch) -> None:
        self.waiting.setdefault(partition, []).append(records)
        self.waiting_len[partition] = self.waiting_len.get(partition, 0) + records.nbytes
        self.total_waiting_len += records.nbytes
        if self.waiting_len[partition] >= max(_RUN_LEN, 8 * self.job.options.batch_size):
            self._write(partition)
        while self.total_waiting_len > _WAITING_LEN:
            self._write(max(self.waiting_len, key=self.waiting_len.__getitem__))

    def _write(self, partition: TopicPartition) -> None:
        records = pa.Table.from_batches(self.waiting.pop(partition))
        self.total_waiting_len -= self.waiting_len.pop(partition)
        options, log = self.job.options, self._log(partition)
        batches = kbat.encode_batches(
            records,
            base_offset=log.end_offset,
            timestamp=self.now,
            partition_leader_epoch=0,
            **_encoding(options),
        )
        for batch in batches:
            log.append_batch(batch.bytes, keep_offsets=True)

    def _log(self, partition: TopicPartition) -> kbat.LogWriter:
        log = self.logs.pop(partition, None)
        if log is None:
            while len(self.logs) >= self.most_logs:
                self._close(next(iter(self.logs)))
            _check_topic(str(partition.topic))
            directory = self._directory(partition)
            directory.parent.mkdir(exist_ok=True)  # fails if the job's directory is gone, as after a failed job
            log = kbat.LogWriter(directory, segment_bytes=self.job.options.segment_bytes)
        self.logs[partition] = log
        return log

    def _close(self, partition: TopicPartition) -> None:
        log = self.logs.pop(partition)
        self.counts[partition] = log.end_offset
        log.close()

    def _directory(self, partition: TopicPartition) -> Path:
        return self.directory / str(partition)


def _encoding(options: WriteOptions) -> dict[str, Any]:
    """Return the options of `kbat.encode_batches` that are set."""
    return {"compression": options.compression, "level": options.level, "batch_bytes": options.batch_size}


def _check_topic(name: str) -> None:
    try:
        parse_topic(name)
    except ValueError as error:
        message = f"kbat: a row has topic {name!r}, which is not a valid topic name: it {error}"
        raise ValueError(message) from None


def _most_logs() -> int:
    """Return how many logs a task may keep open; they use at most half of the process's limit of open files."""
    most_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most_files == resource.RLIM_INFINITY:
        return _OPEN_LOGS
    return max(min(most_files // (2 * _FILES_OF_A_LOG), _OPEN_LOGS), 1)


def _groups(topics: Any, partitions: Any) -> Iterator[tuple[str, int, Any]]:  # noqa: ANN401 -- numpy arrays
    """Yield topic, partition and the rows of each, in order; None for all rows."""
    if isinstance(topics, str):
        names, codes = [str(topics)], np.zeros(len(partitions), dtype=np.int64)
    else:
        coded = topics.dictionary_encode()
        names, codes = coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64)
    keys = codes << 32 | partitions.astype(np.int64)
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    for key, rows in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        yield names[key >> 32], key & 0xFFFF_FFFF, None if len(found) == 1 else rows


def _check_schema(schema: StructType, options: WriteOptions) -> None:
    for column in schema.fields:
        if column.name in _PASSED_OVER:
            continue
        types = _COLUMN_TYPES.get(column.name)
        if types is None:
            message = f"kbat: column {column.name} can't be written; choose among {', '.join(_COLUMN_TYPES)}"
            raise ValueError(message)
        if not isinstance(column.dataType, types):
            words = " or ".join(kind().simpleString() for kind in types if kind is not ArrayType)
            words = words or "array<struct<key:string,value:binary>>"
            message = f"kbat: column {column.name} has type {column.dataType.simpleString()}, but must be {words}"
            raise ValueError(message)  # noqa: TRY004 -- the value is the user's
    if "value" not in schema.names:
        message = "kbat: there is no column value; add one"
        raise ValueError(message)
    if "topic" not in schema.names and options.topic is None:
        message = "kbat: there is no column topic; add one, or set the option topic"
        raise ValueError(message)


def _partition_counts(path: str) -> dict[str, int]:
    """Return the number of partitions of each existing topic."""
    counts: dict[str, int] = {}
    with contextlib.suppress(FileNotFoundError):
        for log in kbat.LogDirectory(path).partitions:
            if log.topic is not None and log.partition is not None:
                counts[log.topic] = max(counts.get(log.topic, 0), log.partition + 1)
    return counts
