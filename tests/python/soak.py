"""Soak: a streaming query over growing logs, whose executors and driver are killed, until nothing is left to read.

    python tests/python/soak.py [--seconds 1200] [--engine jvm|python] [--seed 1]

```
this process: appends, rolls and deletes segments ──► logs/soak-<n>/
driver (killed, restarted) ──► executors of two workers (killed) ──► out/, Parquet files with Spark's own list of them
```

A segment is deleted as soon as the checkpoint shows that the query has read it. At the end, the query reads what is
left, and the rows are counted: each offset of each partition exactly once, with the value that was written. In a run of
ten minutes or more, the resident memory of the executors in the second half must not be much larger than in the first.
Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

import kbat.spark
from growing_log import GrowingLog
from spark_cluster import Cluster, children_of, resident_of, started

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTITIONS = 4
STEP_SECONDS = 0.25
MAX_BATCHES = 3
MAX_RECORDS = 200
# Shares of the steps in which a segment is rolled, and in which a batch is written in two parts.
ROLLS, HALVES = 0.05, 0.1
# Factor by which the memory of the executors may be larger in the second half, and least seconds to compare halves.
GROWTH, LEAST_SECONDS = 1.25, 600
# Within this time, Spark has started and committed a micro-batch, also on a busy machine.
START_SECONDS = 300
MIB = 1 << 20

# Runs the query until it is killed, or until all existing records are read; then prints what was written, by partition.
DRIVER = """
import json, sys
from pyspark.sql import SparkSession, functions
master, jar, engine, directory, is_last = json.loads(sys.argv[1])
builder = SparkSession.builder.master(master).config("spark.jars", jar).config("spark.ui.enabled", False)
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "512m")
builder = builder.config("spark.executor.memory", "512m").config("spark.task.maxFailures", 1000)
spark = builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
reader = spark.readStream.format("kbat").option("engine", engine).option("startingOffsets", "earliest")
rows = reader.option("maxOffsetsPerTrigger", 20000).load(directory + "/logs")
writer = rows.selectExpr("topic", "partition", "offset", "CAST(value AS STRING) AS value").writeStream
writer = writer.format("parquet").option("path", directory + "/out")
writer = writer.option("checkpointLocation", directory + "/checkpoint")
writer = writer.trigger(availableNow=True) if is_last else writer.trigger(processingTime="500 milliseconds")
writer.start().awaitTermination()
rows = spark.read.parquet(directory + "/out").groupBy("partition").agg(
    functions.expr("count(*) AS rows"),
    functions.expr("count(DISTINCT offset) AS offsets"),
    functions.expr("min(offset) AS first"),
    functions.expr("max(offset) AS last"),
    functions.expr("count_if(value != concat(topic, '-', partition, ':', offset)) AS wrong"),
)
for row in rows.collect():
    print("found " + json.dumps(row.asDict()), flush=True)
"""


@dataclass
class Soak:
    """A run: the logs, and what happened so far."""

    directory: Path
    engine: str
    cluster: Cluster
    chance: random.Random
    logs: list[GrowingLog] = field(default_factory=list)
    kills: dict[str, int] = field(default_factory=lambda: {"executor": 0, "driver": 0})
    deleted: int = 0
    rolled: int = 0
    # Seconds since the start, and bytes of the largest executor.
    memory: list[tuple[float, int]] = field(default_factory=list)

    def grow(self) -> None:
        """Append to one of the logs; sometimes roll its segment."""
        log = self.chance.choice(self.logs)
        if self.chance.random() < ROLLS:
            log.roll()
            self.rolled += 1
        if self.chance.random() < HALVES:
            count = self.chance.randint(1, MAX_RECORDS)
            batch = log.batch(count)
            middle = self.chance.randrange(len(batch))
            log.append_bytes(batch[:middle])
            time.sleep(STEP_SECONDS)
            log.append_bytes(batch[middle:])
            log.end_offset += count
            return
        log.append(*[self.chance.randint(1, MAX_RECORDS) for _ in range(self.chance.randint(1, MAX_BATCHES))])

    def delete_what_is_read(self) -> None:
        """Delete segments whose records are all before the end of the last micro-batch that is committed."""
        for partition, offset in self.committed().items():
            log = self.logs[partition]
            segments = sorted(log.directory.glob("*.log"))
            for segment, following in itertools.pairwise(segments):
                if int(following.stem) <= offset:
                    segment.unlink()
                    self.deleted += 1

    def committed(self) -> dict[int, int]:
        """Return the end of the last committed micro-batch, by partition."""
        numbers = [int(path.name) for path in (self.directory / "checkpoint" / "commits").glob("[0-9]*")]
        if not numbers:
            return {}
        offsets = (self.directory / "checkpoint" / "offsets" / str(max(numbers))).read_text().splitlines()[-1]
        return {int(partition): offset for partition, offset in json.loads(offsets)["soak"].items()}

    def start_driver(self, *, is_last: bool = False) -> subprocess.Popen[str]:
        """Start the driver in a process group of its own."""
        arguments = [self.cluster.url, kbat.spark.jar(), self.engine, str(self.directory), is_last]
        log = (self.directory / "driver.log").open("a")
        return subprocess.Popen(  # noqa: S603 -- from above
            [sys.executable, "-c", DRIVER, json.dumps(arguments)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            env=environment(),
        )

    def kill_executor(self) -> None:
        """Kill one of the executors."""
        running = self.cluster.executors()
        if running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.chance.choice(running), signal.SIGKILL)
                self.kills["executor"] += 1

    def kill_driver(self, driver: subprocess.Popen[str]) -> subprocess.Popen[str]:
        """Kill the driver with its JVM, and start it again."""
        end(driver)
        self.kills["driver"] += 1
        return self.start_driver()

    def measure(self, seconds: float) -> None:
        """Note the memory of the largest executor."""
        largest = max(map(resident_of, self.cluster.executors()), default=0)
        if largest:
            self.memory.append((seconds, largest))


def end(driver: subprocess.Popen[str]) -> None:
    """Kill a driver and its JVM, which are a process group of their own."""
    processes = [driver.pid, *children_of(driver.pid)]
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    driver.communicate()


def environment() -> dict[str, str]:
    """Return the environment of all processes of Spark."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    settings = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(next(iter(pyspark.__path__)))),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # a master gives up on an application whose executors end, after ten of them
        "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
    }
    return kept | settings


def run(soak: Soak, seconds: float) -> list[str]:
    """Run, and return what is wrong."""
    soak.logs = [GrowingLog(soak.directory / "logs" / f"soak-{number}") for number in range(PARTITIONS)]
    driver = soak.start_driver()
    start = time.monotonic()
    is_reading = False
    next_executor, next_driver, next_line = seconds / 8, seconds / 4, 0.0
    while (elapsed := time.monotonic() - start) < seconds:
        time.sleep(STEP_SECONDS)
        soak.grow()
        soak.delete_what_is_read()
        soak.measure(elapsed)
        if driver.poll() is not None:
            end(driver)
            return [f"the driver has ended with code {driver.returncode}: {tail(soak.directory / 'driver.log')}"]
        if not is_reading:
            is_reading = bool(soak.committed())
            if is_reading:
                start = time.monotonic()  # starting Spark is no part of the run
            elif elapsed > START_SECONDS:
                end(driver)
                return [f"no micro-batch was committed in {START_SECONDS} s: {tail(soak.directory / 'driver.log')}"]
            continue
        if elapsed >= next_executor:
            soak.kill_executor()
            next_executor = elapsed + min(30, seconds / 5) * soak.chance.uniform(0.5, 1.5)
        if elapsed >= next_driver:
            driver = soak.kill_driver(driver)
            next_driver = elapsed + min(90, seconds / 2) * soak.chance.uniform(0.5, 1.5)
        if elapsed >= next_line:
            next_line = elapsed + 15
            report(soak, elapsed)
    end(driver)
    report(soak, seconds)
    return [*check_rows(soak), *check_memory(soak, seconds)]


def report(soak: Soak, elapsed: float) -> None:
    """Print how far the run is."""
    written = sum(log.end_offset for log in soak.logs)
    largest = soak.memory[-1][1] // MIB if soak.memory else 0
    say(
        f"{elapsed:6.0f} s: {written:,} records written, {sum(soak.committed().values()):,} read; "
        f"{soak.rolled} rolls, {soak.deleted} segments deleted; kills: {soak.kills['executor']} executors, "
        f"{soak.kills['driver']} drivers; largest executor {largest} MiB"
    )


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)  # noqa: T201 - a message to a person


def check_rows(soak: Soak) -> list[str]:
    """Read what is left, and return what is wrong with the rows."""
    driver = soak.start_driver(is_last=True)
    output, _ = driver.communicate(timeout=900)
    if driver.returncode:
        return [f"the last driver ended with code {driver.returncode}: {tail(soak.directory / 'driver.log')}"]
    found = [json.loads(line.removeprefix("found ")) for line in output.splitlines() if line.startswith("found ")]
    by_partition = {row["partition"]: row for row in found}
    wrong = []
    for number, log in enumerate(soak.logs):
        count = log.end_offset
        expected = {"partition": number, "rows": count, "offsets": count, "first": 0, "last": count - 1, "wrong": 0}
        if by_partition.get(number) != expected:
            wrong.append(f"partition {number}: found {by_partition.get(number)}, expected {expected}")
    return wrong


def check_memory(soak: Soak, seconds: float) -> list[str]:
    """Return what is wrong with the memory of the executors."""
    halves = [
        max((size for at, size in soak.memory if (at >= seconds / 2) == is_second), default=0)
        for is_second in (False, True)
    ]
    say(f"largest executor: {halves[0] // MIB} MiB in the first half, {halves[1] // MIB} MiB in the second")
    if seconds >= LEAST_SECONDS and halves[1] > GROWTH * halves[0]:
        return ["the memory of the executors grew"]
    return []


def tail(path: Path) -> str:
    """Return the end of a text file."""
    return path.read_text(errors="replace")[-3000:]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak that the command line describes; return 0 if nothing is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--engine", choices=["jvm", "python"], default="jvm")
    parser.add_argument("--seed", type=int, default=1, help="of the random sizes, kills and rolls")
    given = parser.parse_args(arguments)
    home = Path(next(iter(pyspark.__path__)))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        path = Path(directory)
        with started(home, path, environment()) as cluster:
            wrong = run(Soak(path, given.engine, cluster, random.Random(given.seed)), given.seconds)  # noqa: S311
    for text in wrong:
        say(f"wrong: {text}")
    say("nothing lost, nothing twice" if not wrong else "FAILED")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
