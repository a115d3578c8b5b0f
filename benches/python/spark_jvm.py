"""Compares both faces of the Spark source with Spark's Parquet scan of the same rows: rows per second, and CPU time.

    python benches/python/spark_jvm.py [--shapes 100B-none,1KB-lz4] [--rows 2000000] [--passes 5] [--jar PATH]

Writes two partitions with a fixed seed (16-byte keys, JSON values, batches of 16 KB), and the same rows with
``df.write.parquet``. Each pass runs all readers in turn, on ``local[2]``, for each of four queries. Figures are medians
over passes and include the fixed costs of a query. CPU time, from /proc, is that of the driver, its JVM and the Python
workers.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench import SHAPES, Shape
from pyspark.sql import SparkSession, functions
from spark import DDL, cpu_seconds, make_log

import kbat.spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

PARTITIONS = 2
WARM_UP_PASSES = 2
QUERIES: dict[str, Callable[[DataFrame], object]] = {
    "all columns": lambda frame: frame.write.format("noop").mode("overwrite").save(),
    "sum(length(value))": lambda frame: frame.select(functions.sum(functions.length("value"))).collect(),
    "select(offset)": lambda frame: frame.select("offset").write.format("noop").mode("overwrite").save(),
    "count()": lambda frame: frame.count(),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", default="100B-none,100B-lz4,1KB-none,1KB-lz4")
    parser.add_argument("--rows", type=int, default=2_000_000, help="records of a 100-byte shape")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--jar", default=None, help="default: that of the installed wheel")
    arguments = parser.parse_args()
    print(f"$ python {' '.join(sys.argv)}")
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", arguments.jar or kbat.spark.jar())
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as directory:
        for shape in [shape for shape in SHAPES if shape.name in arguments.shapes.split(",")]:
            rows = arguments.rows * 100 // shape.value_len // PARTITIONS * PARTITIONS
            measure(spark, shape, rows, arguments.passes, Path(directory))
    spark.stop()


def measure(spark: SparkSession, shape: Shape, rows: int, passes: int, directory: Path) -> None:
    """Print a table of one shape."""
    logs, copy = directory / shape.name / "logs", directory / shape.name / "parquet"
    for number in range(PARTITIONS):
        log = logs / f"rows-{number}" / "00000000000000000000.log"
        log.parent.mkdir(parents=True)
        log.write_bytes(make_log(shape, rows // PARTITIONS))
    reader = spark.read.format("kbat")
    frames = {
        "jvm": reader.option("engine", "jvm").load(str(logs)),
        "python": reader.option("engine", "python").load(str(logs)),
    }
    frames["jvm"].write.parquet(str(copy))
    frames["parquet"] = spark.read.schema(DDL).parquet(str(copy))
    print(f"\n{shape.name}, {rows:,} rows: M rows/s (CPU us/row), medians of {passes} passes")
    print(f"{'':20}" + "".join(f"{name:>16}" for name in frames) + "   jvm/parquet, wall and CPU")
    for query, run in QUERIES.items():
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in frames}
        for number in range(WARM_UP_PASSES + passes):
            for name, frame in frames.items():
                wall, cpu = time.monotonic(), cpu_seconds(os.getpid())
                run(frame)
                if number >= WARM_UP_PASSES:
                    times[name].append((time.monotonic() - wall, cpu_seconds(os.getpid()) - cpu))
        medians = {
            name: tuple(statistics.median(column) for column in zip(*pairs, strict=True))
            for name, pairs in times.items()
        }
        cells = "".join(f"{rows / wall / 1e6:9.2f} ({cpu / rows * 1e6:.2f})" for wall, cpu in medians.values())
        (wall, cpu), (other_wall, other_cpu) = medians["jvm"], medians["parquet"]
        print(f"{query:20}{cells}   {other_wall / wall:.2f} {other_cpu / max(cpu, 1e-9):.2f}", flush=True)


if __name__ == "__main__":
    main()
