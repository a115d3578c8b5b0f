"""Ways to write the rows as Parquet, and options and settings of a read one by one, for the benchmark of Spark."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spark_readers import noop
from spark_topics import DDL, FIELDS, PARTITIONS

import kbat
import kbat.spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from spark_topics import Topic

DDL_HEADERS = f"{DDL}, headers array<struct<key:string,value:binary>>"
MAX_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
OPTIONS: dict[str, dict[str, str]] = {
    "all defaults": {},
    "columns=value": {"columns": "value"},
    "columns=offset": {"columns": "offset"},
    "checkCrc=false": {"checkCrc": "false"},
    "includeHeaders=true": {"includeHeaders": "true"},
    "maxPartitionBytes=4m": {"maxPartitionBytes": "4m"},
    "maxPartitionBytes=16m": {"maxPartitionBytes": "16m"},
    "minPartitions=8": {"minPartitions": "8"},
    "minPartitions=64": {"minPartitions": "64"},
    "isolationLevel=read_committed": {"isolationLevel": "read_committed"},
}


def writers(spark: SparkSession, topic: Topic, scratch: Path) -> dict[str, Callable[[], None]]:
    """The ways to write the rows as Parquet."""
    logs = os.fspath(topic.logs)
    paths = [topic.log(number) for number in range(PARTITIONS)]

    def by_spark(engine: str) -> None:
        frame = kbat.spark.read(spark, logs, subscribe=topic.name, engine=engine)
        frame.write.mode("overwrite").parquet(os.fspath(scratch / "spark.parquet"))

    def by_kbat() -> None:
        scan = kbat.scan(paths, columns=list(FIELDS), timestamp_unit="us")
        kbat.write_parquet(scan, scratch / "kbat.parquet")

    def by_tasks(engine: str) -> None:
        target = scratch / "tasks.parquet"
        kbat.spark.to_parquet(spark, logs, target, subscribe=topic.name, engine=engine)
        shutil.rmtree(target)

    return {
        "df.write.parquet, in the JVM": partial(by_spark, "jvm"),
        "df.write.parquet, mapInArrow": partial(by_spark, "python"),
        "kbat.spark.to_parquet, in the JVM": partial(by_tasks, "jvm"),
        "kbat.spark.to_parquet, mapInArrow": partial(by_tasks, "python"),
        "kbat.write_parquet, one thread": by_kbat,
    }


def settings(spark: SparkSession, topic: Topic, scratch: Path) -> dict[str, Callable[[], None]]:
    """Options of a read by the Python data source and settings, one by one."""
    logs = os.fspath(topic.logs)

    def read(options: dict[str, str]) -> None:
        noop(spark.read.format("kbat").options(subscribe=topic.name, engine="python", **options).load(logs))

    def scan(threads: int) -> None:
        paths = [topic.log(number) for number in range(PARTITIONS)]
        for _ in kbat.scan(paths, columns=list(FIELDS)).to_reader(threads=threads):
            pass

    target = os.fspath(scratch / "headers.parquet")
    if not Path(target).exists():
        reader = spark.read.format("kbat").options(subscribe=topic.name, includeHeaders="true")
        reader.load(logs).write.parquet(target)

    def to_python(conf: dict[str, str]) -> None:
        for name, setting in conf.items():
            spark.conf.set(name, setting)
        rows = spark.read.parquet(target)
        noop(rows.mapInArrow(lambda batches: (batch.slice(0, 1) for batch in batches), DDL_HEADERS))
        for name in conf:
            spark.conf.unset(name)

    largest = {MAX_BATCH_BYTES: str((1 << 31) - 1)}
    return {
        **{name: partial(read, options) for name, options in OPTIONS.items()},
        "rows with headers to Python, all defaults": partial(to_python, {}),
        "rows with headers to Python, maxBytesPerBatch=2147483647": partial(to_python, largest),
        "kbat.scan, no Spark, threads=1": partial(scan, 1),
        "kbat.scan, no Spark, threads=2": partial(scan, 2),
    }
