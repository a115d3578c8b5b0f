"""Reads by either of the two data sources, the JVM's and Python's, and what they show of themselves."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.sql.types import StructType

from kbat.spark.jvm import runs_in_jvm
from kbat.spark.source import KbatDataSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

ENGINES = ("jvm", "python")


def asks_for_limits(spark: SparkSession) -> bool:
    """Return whether Spark asks the stream for limits: Python sources only from 4.2 on."""
    return pyspark.__version__ >= "4.2" or runs_in_jvm(spark)


def read(
    spark: SparkSession, *paths: Path, engine: str = "jvm", schema: str | None = None, **options: object
) -> DataFrame:
    reader = spark.read.format("kbat").option("engine", engine)
    reader = reader.options(**{name: str(value) for name, value in options.items()})
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load([os.fspath(path) for path in paths] if len(paths) != 1 else os.fspath(paths[0]))


def rows_of(spark: SparkSession, *paths: Path, **options: Any) -> pa.Table:  # noqa: ANN401 -- those of read
    """Return the rows of a read."""
    return read(spark, *paths, **options).toArrow().combine_chunks()


def both(spark: SparkSession, *paths: Path, where: str | None = None, **options: Any) -> pa.Table:  # noqa: ANN401 -- those of read
    """Return the rows of the JVM's data source, which are those of Python's, in the same order."""
    frames = [read(spark, *paths, engine=engine, **options) for engine in ENGINES]
    assert frames[0].schema == frames[1].schema
    found, expected = [(frame.where(where) if where else frame).toArrow().combine_chunks() for frame in frames]
    assert found == expected
    return found


def plan_of(frame: DataFrame) -> str:
    """Return the physical plan as `explain` shows it."""
    plan = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001
    return str(plan.toString())


def run(frame: DataFrame) -> tuple[int, dict[str, int]]:
    """Run a query, and return the number of its rows and the metrics of its one read."""
    execution = frame._jdf.queryExecution()  # noqa: SLF001
    count = execution.toRdd().count()
    metrics = execution.executedPlan().collectLeaves().apply(0).metrics()
    names = ["kbatBatches", "kbatRecords", "kbatBytesRead", "kbatBatchesSkipped", "kbatBytesLost", "kbatOffsetsLost"]
    return count, {name.removeprefix("kbat"): metrics.apply(name).value() for name in names}


def message_of(call: Callable[[], object], start: str = "kbat: ") -> str:
    """Return kbat's message, from its start to the end of the line, of the error that a call raises."""
    with pytest.raises(Exception, match=start) as raised:
        call()
    found = re.search(f"{start}.*?(?= SQLSTATE|$)", str(raised.value), re.MULTILINE)
    assert found is not None
    return found[0]


def read_in_python(path: Path, *, schema: str | None = None, is_stream: bool = False, **options: object) -> None:
    """Read with the classes of the Python data source in this process, without Spark's workers."""
    source = KbatDataSource({"path": os.fspath(path), **{name: str(value) for name, value in options.items()}})
    columns = source.schema() if schema is None else StructType.fromDDL(schema)
    assert isinstance(columns, StructType)
    if is_stream:
        source.streamReader(columns).initialOffset()
        return
    reader = source.reader(columns)
    for partition in reader.partitions():
        for _ in reader.read(partition):
            pass
