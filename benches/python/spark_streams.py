"""Streaming queries over a topic's existing rows, for the benchmark of Spark."""

from __future__ import annotations

import itertools
import os
from functools import partial
from typing import TYPE_CHECKING

from spark_readers import JVM, KAFKA, PYTHON

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from spark_topics import Topic

SEVERAL = "5 micro-batches"
BATCHES = {"one micro-batch": 1, SEVERAL: 5}
"""The queries, and how many micro-batches of equally many rows each of them has."""
UNCOMPRESSED = ("100B-none", "1KB-none")
"""The topics of streams: micro-batches cost the same for compressed ones."""


def streams(
    spark: SparkSession, topic: Topic, bootstrap: str, scratch: Path
) -> dict[str, dict[str, Callable[[], None]]]:
    """The queries by each reader. A run is a query of its own, with a new checkpoint."""
    kafka = {"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest"}
    kbat = {"path": os.fspath(topic.logs), "startingOffsets": "earliest"}
    readers: dict[str, tuple[str, dict[str, str]]] = {
        JVM: ("kbat", {**kbat, "engine": "jvm"}),
        PYTHON: ("kbat", {**kbat, "engine": "python"}),
        KAFKA: ("kafka", kafka),
    }
    checkpoints = (scratch / f"{topic.name}-{number}" for number in itertools.count())

    def run(name: str, count: int) -> None:
        source, options = readers[name]
        limit = {"maxOffsetsPerTrigger": topic.rows // count} if count > 1 else {}
        reader = spark.readStream.format(source).options(subscribe=topic.name, **options, **limit)
        read(reader, next(checkpoints), [topic.rows // count] * count, name)

    return {
        query: {name: partial(run, name, count) for name in readers}
        for query, count in BATCHES.items()
    }  # fmt: skip


def read(reader: DataStreamReader, checkpoint: Path, expected: list[int], name: str) -> None:
    """Run a query until it has read all rows, and check how many each micro-batch had."""
    writer = reader.load().writeStream.format("noop").option("checkpointLocation", os.fspath(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    found = [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
    if found != expected:
        message = f"the micro-batches of a stream by {name} had {found} rows, not {expected}"
        raise SystemExit(message)
