"""`kbat.spark.read`: reads the rows of the source as fast as the session can.

In a session with kbat's jar, that is `format("kbat")`. Without it, it is `mapInArrow` over one row per task:

```
plan, on the driver ──► range(tasks), one row and partition per task ──► mapInArrow: each row reads its task
```

A Python data source passes on its rows one Arrow batch at a time and checks each of them; `mapInArrow` does not. There
is no shuffle, and no file goes through the JVM. It also works with Spark Connect, where the client plans the tasks; it
must see the files under the same paths as the workers. If the server has the jar, only the server and its workers do.
"""

from __future__ import annotations

import glob
import json
import os
import pickle
from typing import TYPE_CHECKING, cast

from pyspark.sql.types import StructType

from kbat._core import plan as core
from kbat._core.locations import store_scheme
from kbat.spark.connect import is_connect
from kbat.spark.jvm import check_engine, has_jar, session_defaults
from kbat.spark.options import ReadOptions, parse_options
from kbat.spark.rows import RowReader
from kbat.spark.schema import schema_of
from kbat.spark.stores import s3a_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from kbat.spark.plan import ReadPartition

_Path = str | os.PathLike[str]


def read(
    spark: SparkSession, source: _Path | Sequence[_Path], *, schema: StructType | str | None = None, **options: object
) -> DataFrame:
    """Read log segments as `spark.read.format("kbat")` does, in the fastest way that the session has.

    In a session with kbat's jar, such as one that [session][kbat.spark.session] starts, this is
    `spark.read.format("kbat")`, and each query on the DataFrame lists the segments.

    In any other session, this is faster than the Python data source if tasks read more than a few megabytes. This call
    lists the segments once: every use of the DataFrame reads the same offsets. `engine="python"` selects this way.

    Args:
        spark: The session, classic or Connect.
        source: A log directory, a partition directory, a `.log` file or a glob, or the URL of one in a store, or
            several of them. For S3, the session's settings `spark.hadoop.fs.s3a.*` apply unless an option
            `storage.<name>` is set: `**{"storage.endpoint": "https://minio:9000"}`.
        schema: The columns to read, as for the data source; by default those of the options.
        options: The options of the data source by their names: `includeHeaders=True`, `assign={"orders": [0]}`,
            `columns=["offset", "value"]`, `startingTimestamp=1700000000000`. None means the default, as in Spark.

    Raises:
        ValueError: An unknown option, a wrong value, or bounds that do not fit the existing partitions; in a session
            with the jar, the first query reports the latter.
        FileNotFoundError: A path does not exist. If a Spark Connect server has the jar, the first query reports it.
    """
    if has_jar(spark) and str(options.get("engine", "auto")).lower() != "python":
        return _read_in_jvm(spark, source, options, schema)
    rows, tasks, wanted = planned(options_of(source, options, spark), schema, spark=spark)
    if not tasks:
        return spark.createDataFrame([], wanted)
    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(_reading(rows, tasks), wanted)


def planned(
    given: dict[str, str],
    schema: StructType | str | None = None,
    *,
    splits: bool = True,
    spark: SparkSession | None = None,
) -> tuple[RowReader, list[ReadPartition], StructType]:
    """Return the reader, the tasks with at least one piece, and the schema, for options of `options_of`.

    `splits` is as for `plan`. With `spark`, the settings of the session apply to S3.

    Raises the errors of `read`.
    """
    from kbat.spark.plan import plan  # noqa: PLC0415 -- needs Spark 4

    check_engine(given)
    parsed = parse_options(given)
    if spark is not None and not parsed.has_storage and any(store_scheme(path) == "s3" for path in parsed.all_paths):
        parsed = parse_options(given, s3a_settings(spark))
    rows, wanted = _checked(parsed, schema)
    return rows, plan(parsed, rows.fields, splits=splits), wanted


def _read_in_jvm(
    spark: SparkSession,
    source: _Path | Sequence[_Path],
    options: Mapping[str, object],
    schema: StructType | str | None,
) -> DataFrame:
    given = options_of(source, options, spark)
    parsed = parse_options(given)
    rows, _ = _checked(parsed, schema)
    # with Connect, only the server may see the files
    if not is_connect(spark) and any(
        not (store_scheme(path) or os.path.lexists(path) or glob.has_magic(path)) for path in parsed.all_paths
    ):
        core.plan(parsed, rows.fields, [], splits=False)  # raises the error for a missing path
    reader = spark.read.format("kbat").options(**given)
    return (reader if schema is None else reader.schema(schema)).load()


def options_of(
    source: _Path | Sequence[_Path], options: Mapping[str, object], spark: SparkSession | None = None
) -> dict[str, str]:
    """Return the options of a read as text: with absolute paths, and with the defaults of a session with the jar."""
    sources = [source] if isinstance(source, str | os.PathLike) else source
    given = {"paths": json.dumps([os.fspath(path) for path in sources])}
    given |= {name: _text(value) for name, value in options.items() if value is not None}
    names = {name.lower() for name in given}
    if spark is not None and has_jar(spark):
        given |= {name: text for name, text in session_defaults(spark).items() if name.lower() not in names}
    paths = parse_options(given).all_paths
    return {name: text for name, text in given.items() if name.lower() not in {"path", "paths"}} | {
        "paths": json.dumps(paths)
    }


def _checked(parsed: ReadOptions, schema: StructType | str | None) -> tuple[RowReader, StructType]:
    """Check the options of a batch read, and return its reader and schema. Raises `ValueError`."""
    parsed.check_batch()
    wanted = schema_of(parsed.column_names, parsed.view) if schema is None else _struct(schema)
    return RowReader.of(parsed, wanted), wanted


class PackedTasks:
    """Tasks on their way to the workers, pickled one by one: each worker gets all of them, and unpacks its own."""

    def __init__(self, tasks: Iterable[ReadPartition]) -> None:
        self._packed = [pickle.dumps(task) for task in tasks]

    def of(self, numbers: pa.RecordBatch) -> Iterator[tuple[int, ReadPartition]]:
        """Yield the tasks whose numbers are in the first column, each unpacked when it is its turn."""
        for number in cast("list[int]", numbers.column(0).to_pylist()):  # to_numpy would import pandas
            yield number, pickle.loads(self._packed[number])  # noqa: S301 -- what __init__ pickled


def _reading(
    rows: RowReader, tasks: Sequence[ReadPartition]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    packed = PackedTasks(tasks)

    def read_tasks(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for _, task in packed.of(batch):
                yield from rows.read(task)

    return read_tasks


def _text(value: object) -> str:
    """Return the text of an option's value: names with commas between them, JSON of a mapping."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(str(name) for name in value)
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _struct(schema: StructType | str) -> StructType:
    if isinstance(schema, StructType):
        return schema
    parsed = StructType.fromDDL(schema)
    if not isinstance(parsed, StructType):
        message = f"kbat: {schema!r} is not a schema; write columns with types, like 'offset bigint, value binary'"
        raise ValueError(message)  # noqa: TRY004 -- the value is the user's
    return parsed
