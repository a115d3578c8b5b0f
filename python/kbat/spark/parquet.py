"""`kbat.spark.to_parquet`: writes segments to Parquet files, in Rust, distributed over Spark's tasks.

```
plan, on the driver ──► range(tasks) ──► mapInArrow: each task writes <target>/.kbat-<job>/<task>-<attempt>/… in Rust
                                         and returns one row per file
driver: moves the files of those rows to <target>/topic=orders/part-….parquet, removes <target>/.kbat-<job>
```

In a session with kbat's jar, no Python worker runs: the tasks of a read in the JVM write the files and return the
rows.

No record goes through Python or the JVM. A task that runs again writes to another directory, and only the files of the
successful attempt are moved, so no row is duplicated.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kbat._core import plan as core
from kbat.spark.jvm import runs_in_jvm
from kbat.spark.map_in_arrow import PackedTasks, options_of, planned
from kbat.spark.worker import freeze_gc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    import kbat.results
    from kbat.spark.plan import ReadPartition
    from kbat.spark.rows import RowReader

PARTITION_KEYS = ("topic", "partition", "date", "hour")

_ROW_OF_A_FILE = "directory string, name string, row_count bigint, size bigint"
# An empty file in the job's directory while the job runs.
_OPEN = "open"


@dataclass(frozen=True)
class WrittenFile:
    """A Parquet file: its path, its rows, its bytes."""

    path: str
    row_count: int
    size: int


@dataclass(frozen=True)
class WrittenFiles:
    """What `to_parquet` wrote: the files, by their paths."""

    files: tuple[WrittenFile, ...]

    @property
    def row_count(self) -> int:
        """Rows of all files."""
        return sum(file.row_count for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def to_parquet(  # noqa: PLR0913 -- all but three by keyword
    spark: SparkSession,
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    partition_by: Sequence[str] | None = None,
    compression: str = "snappy",
    mode: Literal["error", "append"] = "error",
    **options: object,
) -> WrittenFiles:
    """Write log segments to Parquet files in parallel. No row passes through the JVM.

    The columns are those of `format("kbat")` with the same names; timestamps are microseconds in UTC. `headers` of a
    record without headers is an empty list, not null as in the data source. The driver and the workers must see source
    and target under the same paths. Files appear in the target when all of them are complete; after an error, there
    are none. A task writes one file in each directory.

    Args:
        spark: The session, classic or Connect.
        source: A log directory, a partition directory, a `.log` file or a glob, or the URL of one in a store, or
            several of them, as in `kbat.spark.read`.
        target: The directory to write to, in a local file system.
        partition_by: The keys after which directories are named, outermost first: any of `topic`, `partition`, and
            `date` and `hour` of the timestamp in UTC, which are null for a record without a timestamp although its
            column `timestamp` has the time of -1 ms. By default `topic`, if it is one of the columns. An empty list
            writes all files to `target` itself.
        compression: `none`, `snappy`, `lz4`, `gzip`, `zstd`; the last two also with a level: `"zstd:3"`.
        mode: `"append"` adds files to `target`; by default `target` must be empty or not exist.
        options: The options of the data source by their names, as in `kbat.spark.read`.

    Returns:
        The files, each with its number of rows and bytes. If there are no rows, no file is written.

    Raises:
        ValueError: An unknown option, or a wrong value of an option, key, column or codec.
        FileNotFoundError: A path does not exist.
        FileExistsError: `target` is not empty.
        pyspark.errors.PySparkException: A task failed.

    Example:
        >>> written = kbat.spark.to_parquet(spark, "/var/lib/kafka/data", "/lake/raw", partition_by=["topic", "date"])
        >>> written.row_count, len(written.files)
        >>> spark.read.parquet("/lake/raw").where("topic = 'orders'")
    """
    _check(partition_by or (), mode)
    in_jvm = runs_in_jvm(spark, options.get("engine"))
    engine = {"engine": "auto"} if in_jvm else {}
    given = options_of(source, options, spark)
    rows, tasks, _ = planned(given | engine, splits=False, spark=spark)
    keys = ("topic",) * ("topic" in rows.fields) if partition_by is None else tuple(partition_by)
    directory = Path(core.local_path(os.fspath(target)))
    if mode != "append" and directory.is_dir() and any(not path.name.startswith(".") for path in directory.iterdir()):
        message = f'kbat: {directory} is not empty; name another directory, or add to it with mode="append"'
        raise FileExistsError(message)
    with _job(directory) as job:
        writer = PartWriter(rows, job, keys, compression)
        writer.check(rows.nothing)
        if not tasks:
            return WrittenFiles(())
        if in_jvm:
            frame = _files_in_jvm(spark, given, writer)
        else:
            frame = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(_writing(writer, tasks), _ROW_OF_A_FILE)
        found = [(row.directory, WrittenFile(row.name, row.row_count, row.size)) for row in frame.collect()]
        return _move(directory, sorted(found, key=lambda pair: pair[1].path))


@dataclass(frozen=True)
class PartWriter:
    """Writes the files of a task. It is pickled."""

    rows: RowReader
    job: Path
    partition_by: tuple[str, ...]
    compression: str

    def check(self, nothing: bytes) -> None:
        """Check the arguments with a task that reads nothing. Raises `ValueError`."""
        self._write(nothing, self.job / "nothing", "nothing")

    def write(self, number: int, task: ReadPartition) -> Iterator[tuple[str, kbat.results.ParquetFile]]:
        """Yield the files of one task, each with the directory of this attempt. Raises what `kbat.scan` raises."""
        from pyspark import TaskContext  # noqa: PLC0415 -- only Spark's workers have tasks

        freeze_gc()
        context = TaskContext.get()
        directory = self.job / f"{number}-{context.taskAttemptId() if context else 0}"
        try:
            if not (self.job / _OPEN).exists():
                message = f"kbat: the job of {self.job} has ended"
                raise RuntimeError(message)
            stem = f"part-{number:05}-{self.job.name.removeprefix('.kbat-')[:12]}"
            for file in self._write(task.task, directory, stem):
                if file.row_count:
                    yield str(directory), file
        finally:
            if not (self.job / _OPEN).exists():  # the job has failed
                shutil.rmtree(self.job, ignore_errors=True)

    def _write(self, task: bytes, directory: Path, stem: str) -> list[kbat.results.ParquetFile]:
        directory.mkdir(exist_ok=True)  # fails if the job's directory is gone, as after a failed job
        return core.write_parquet(
            task,
            directory if self.partition_by else directory / f"{stem}.parquet",
            list(self.partition_by),
            self.compression,
            self.names,
            stem,
        )

    @property
    def names(self) -> list[str]:
        """The columns of the files: those that do not name directories."""
        pairs = zip(self.rows.names, self.rows.fields, strict=True)
        return [name for name, field in pairs if field not in self.partition_by]


def _files_in_jvm(spark: SparkSession, options: dict[str, str], writer: PartWriter) -> DataFrame:
    """Return the rows of a read whose tasks write the files; each row describes a file."""
    settings = {"partition_by": writer.partition_by, "compression": writer.compression, "names": writer.names}
    job = {"kbat.parquet.directory": str(writer.job.absolute()), "kbat.parquet.settings": json.dumps(settings)}
    return spark.read.format("kbat").options(**options, **job).load()


def _writing(
    writer: PartWriter, tasks: Sequence[ReadPartition]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    packed = PackedTasks(tasks)

    def write_tasks(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 -- slow, and not needed by the driver

        for batch in numbers:
            for number, task in packed.of(batch):
                files = list(writer.write(number, task))
                columns: list[pa.Array[Any]] = [
                    pa.array([directory for directory, _ in files], pa.string()),
                    pa.array([os.path.relpath(file.path, directory) for directory, file in files], pa.string()),
                    pa.array([file.row_count for _, file in files], pa.int64()),
                    pa.array([file.size for _, file in files], pa.int64()),
                ]
                yield pa.RecordBatch.from_arrays(columns, names=["directory", "name", "row_count", "size"])

    return write_tasks


def _check(partition_by: Sequence[str], mode: str) -> None:
    if isinstance(partition_by, str) or any(key not in PARTITION_KEYS for key in partition_by):
        message = f"kbat: partition_by={partition_by!r}: must be a list of any of {', '.join(PARTITION_KEYS)}"
        raise ValueError(message)
    if len(set(partition_by)) < len(partition_by):
        message = f"kbat: partition_by={partition_by!r}: names a key twice"
        raise ValueError(message)
    if mode not in ("error", "append"):
        message = f"kbat: mode={mode!r}: must be error or append"
        raise ValueError(message)


@contextlib.contextmanager
def _job(directory: Path) -> Iterator[Path]:
    """Create a job's directory, and remove it at the end; after a failure also the target if the job created it."""
    was_there = directory.exists()
    job = directory / f".kbat-{uuid.uuid4().hex}"
    job.mkdir(parents=True)
    (job / _OPEN).touch()
    try:
        yield job
    except BaseException:
        _clear(job)
        if not was_there:
            with contextlib.suppress(OSError):
                directory.rmdir()
        raise
    _clear(job)


def _clear(job: Path) -> None:
    """Remove a job's directory. Tasks that are still running notice it and end."""
    (job / _OPEN).unlink(missing_ok=True)
    for _ in range(100):  # a task may still create files
        shutil.rmtree(job, ignore_errors=True)
        if not job.exists():
            break
        time.sleep(0.02)


def _move(directory: Path, found: Sequence[tuple[str, WrittenFile]]) -> WrittenFiles:
    """Move the files to the target; if moving one fails, remove the files moved so far."""
    files: list[WrittenFile] = []
    try:
        for attempt, file in found:
            path = directory / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            (Path(attempt) / file.path).rename(path)
            files.append(replace(file, path=str(path)))
    except BaseException:
        for file in files:
            Path(file.path).unlink(missing_ok=True)
        raise
    return WrittenFiles(tuple(files))
