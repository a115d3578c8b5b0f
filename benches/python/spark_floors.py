"""The time that parts of a query need, beside the query by kbat and by Parquet, for the benchmark of Spark.

The parts are

- for all columns and for `sum(length(value))`: rows that were decoded before, and kbat's scan of one column without
  Spark, which reads, verifies and decompresses the batches and parses all records. The sum is not a strict limit;
- for `select(offset)`: Spark's own rows of `spark.range`, and reading the bytes, whose checksums must be verified;
- for `count()`: Spark's count of two rows;
- for a stream: as many micro-batches of four rows.

What runs without Spark has one thread per partition, like Spark's tasks.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bench import SHAPES
from spark_readers import ALL_COLUMNS, COUNT, JVM, KAFKA, NATIVE, OFFSET, PARQUET, QUERIES, SUM_LENGTH, noop, runs
from spark_streams import SEVERAL, UNCOMPRESSED, streams
from spark_topics import PARTITIONS, Topic, make_topics

import kbat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession
    from spark_readers import Reader

T = TypeVar("T")
RANGE = "spark.range of as many rows"
TWO_ROWS = "spark.range of two rows"
READING = "reading the segments"
SCAN = "kbat.scan of the timestamps"
FOUR_ROWS_EACH = "kbat in the JVM, four rows each"
QUERIES_WITH_FLOORS = (ALL_COLUMNS, OFFSET, COUNT, SUM_LENGTH, SEVERAL)
WINDOW = 1 << 20
"""Bytes that kbat reads at a time."""


def floors(
    spark: SparkSession, topic: Topic, readers: Mapping[str, Reader], bootstrap: str, scratch: Path
) -> dict[str, dict[str, Callable[[], object]]]:
    """The queries by kbat and by the reader it is compared with, and their parts."""
    by_both = {name: readers[name] for name in (JVM, PARQUET)}
    paths = [topic.log(number) for number in range(PARTITIONS)]
    scanning = partial(in_threads, scan, paths)
    of_native = {name: readers[name] for name in (JVM, NATIVE)}
    queries: dict[str, dict[str, Callable[[], object]]] = {
        OFFSET: {
            **runs(by_both, QUERIES[OFFSET]),
            RANGE: lambda: noop(spark.range(0, topic.rows, 1, PARTITIONS)),
            READING: partial(in_threads, read, paths),
        },
        COUNT: {**runs(by_both, QUERIES[COUNT]), TWO_ROWS: spark.range(0, PARTITIONS, 1, PARTITIONS).count},
        SUM_LENGTH: {**runs({**by_both, **of_native}, QUERIES[SUM_LENGTH]), SCAN: scanning},
    }
    if topic.name in UNCOMPRESSED:
        queries[ALL_COLUMNS] = {**runs(of_native, QUERIES[ALL_COLUMNS]), SCAN: scanning}
        queries[SEVERAL] = stream_floors(spark, topic, bootstrap, scratch)
    return queries


def stream_floors(spark: SparkSession, topic: Topic, bootstrap: str, scratch: Path) -> dict[str, Callable[[], object]]:
    """A stream of several micro-batches by kbat and by Spark's Kafka source, and by kbat with four rows each."""
    found = streams(spark, topic, bootstrap, scratch)[SEVERAL]
    small = scratch / f"small-{topic.name}"
    shapes = [shape for shape in SHAPES if shape.name == topic.name]
    (few,) = make_topics(shapes, 0, small / "logs", small / "copies")
    least = streams(spark, few, bootstrap, small)[SEVERAL]
    return {JVM: found[JVM], KAFKA: found[KAFKA], FOUR_ROWS_EACH: least[JVM]}


def in_threads(work: Callable[[T], None], parts: list[T]) -> None:
    """Work on all partitions at the same time."""
    with ThreadPoolExecutor(PARTITIONS) as threads:
        list(threads.map(work, parts))


def read(path: str) -> None:
    """Read a file from the page cache, and discard it."""
    window = bytearray(WINDOW)
    with Path(path).open("rb", buffering=0) as file:
        while file.readinto(window):
            pass


def scan(path: str) -> None:
    """Read the timestamps of a file: a column that is not in the headers, so that all records are parsed."""
    for _ in kbat.scan(path, columns=["timestamp"], timestamp_unit="us"):
        pass
