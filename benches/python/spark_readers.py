"""The readers that the benchmarks of Spark compare, and the queries that they run.

A reader is a function that returns a DataFrame of all rows of a topic. Names of readers are those of the tables.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions
from spark_topics import DDL, PARTITIONS
from spark_workers import PrebuiltArrow, aiokafka_batches, mapped

import kbat.spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from spark_topics import Topic

    Reader = Callable[[], DataFrame]

NATIVE = "prebuilt native memory"
JVM = "kbat in the JVM"
PYTHON = "kbat in Python"
PYTHON_OFFSET = "kbat in Python, only offset"
MAP_IN_ARROW = "kbat in mapInArrow"
ARROW = "prebuilt Arrow, data source"
ARROW_MAP = "prebuilt Arrow, mapInArrow"
PARQUET = "Spark's Parquet scan"
AIOKAFKA = "aiokafka in mapInArrow"
KAFKA = "Spark's Kafka source"
KAFKA_TUNED = "Spark's Kafka source, tuned"

ALL_COLUMNS = "all columns"
SUM_LENGTH = "sum(length(value))"
OFFSET = "select(offset)"
COUNT = "count()"

TUNED_CONSUMER = {
    "kafka.max.poll.records": "10000",
    "kafka.fetch.max.bytes": str(8 << 20),
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.check.crcs": "false",
}


def noop(frame: DataFrame) -> None:
    """Read all rows and discard them."""
    frame.write.format("noop").mode("overwrite").save()


QUERIES: dict[str, Callable[[DataFrame], object]] = {
    ALL_COLUMNS: noop,
    SUM_LENGTH: lambda frame: frame.select(functions.sum(functions.length("value"))).collect(),
    OFFSET: lambda frame: noop(frame.select("offset")),
    COUNT: lambda frame: frame.count(),
}


def in_jvm(spark: SparkSession, topic: Topic) -> dict[str, Reader]:
    """Kbat in Spark's JVM, and its ceiling (benches/java)."""
    logs = os.fspath(topic.logs)

    def reader(name: str, **options: str | int) -> DataFrameReader:
        return spark.read.format(name).options(subscribe=topic.name, **options)

    return {
        NATIVE: lambda: reader("kbat.spark.Prebuilt", rows=topic.rows).load(logs),
        JVM: lambda: reader("kbat", engine="jvm").load(logs),
    }


def through_python(spark: SparkSession, topic: Topic) -> dict[str, Reader]:
    """The readers that pass rows from Python to Spark."""
    spark.dataSource.register(PrebuiltArrow)
    logs = os.fspath(topic.logs)

    def source() -> DataFrameReader:
        return spark.read.format("kbat").options(subscribe=topic.name, engine="python")

    return {
        ARROW: lambda: spark.read.format("prebuilt").schema(DDL).load(topic.arrow),
        PYTHON: lambda: source().load(logs),
        ARROW_MAP: lambda: in_tasks(spark, partial(mapped, topic.arrow)),
        MAP_IN_ARROW: lambda: kbat.spark.read(spark, logs, subscribe=topic.name, engine="python"),
        PYTHON_OFFSET: lambda: source().schema("offset bigint").load(logs),
    }


def others(spark: SparkSession, topic: Topic, bootstrap: str) -> dict[str, Reader]:
    """The readers that don't use kbat. Parquet's schema is set: its scan starts without a job that reads it."""

    def kafka() -> DataFrameReader:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        return reader.option("subscribe", topic.name)

    return {
        PARQUET: lambda: spark.read.schema(DDL).parquet(topic.parquet),
        KAFKA: lambda: kafka().load(),
        KAFKA_TUNED: lambda: kafka().options(**TUNED_CONSUMER).load(),
    }


def by_aiokafka(spark: SparkSession, topic: Topic) -> Reader:
    """The rows by a Python package that decodes in C, in mapInArrow."""
    paths = [topic.log(number) for number in range(PARTITIONS)]
    name, columns = topic.name, [column.split()[0] for column in DDL.split(", ")]
    return lambda: in_tasks(spark, lambda number: aiokafka_batches(paths[number], name, columns, number))


def in_tasks(spark: SparkSession, of_task: Callable[[int], Iterator[pa.RecordBatch]]) -> DataFrame:
    """Run one task per partition, by mapInArrow."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_numpy().tolist():
                yield from of_task(number)

    return spark.range(0, PARTITIONS, 1, PARTITIONS).mapInArrow(read, DDL)


def runs(readers: dict[str, Reader], query: Callable[[DataFrame], object]) -> dict[str, Callable[[], object]]:
    """The query by each reader. It creates the DataFrame, to include planning."""
    return {name: partial(_run, reader, query) for name, reader in readers.items()}


def _run(reader: Reader, query: Callable[[DataFrame], object]) -> object:
    return query(reader())


def check(readers: dict[str, Reader], topic: Topic) -> None:
    """Stop if a reader does not return the topic's rows. Native memory has the offsets of one batch only."""
    expected = {"count": topic.rows, "bytes": topic.rows * topic.value_len, "offsets": topic.offset_sum}
    for name, reader in readers.items():
        frame = reader()
        found = {"count": functions.count(functions.lit(1))}
        if "value" in frame.columns:
            found["bytes"] = functions.sum(functions.length("value"))
        if name != NATIVE:
            found["offsets"] = functions.sum("offset")
        row = frame.select(*(column.alias(alias) for alias, column in found.items())).collect()[0]
        for alias in found:
            if row[alias] != expected[alias]:
                message = f"{name} read other rows of {topic.name}: {alias} is {row[alias]}, not {expected[alias]}"
                raise SystemExit(message)
