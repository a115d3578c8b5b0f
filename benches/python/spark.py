"""Compares kbat's readers for Spark with the alternatives on the same rows: rows per second, and CPU time per row.

    python benches/python/spark.py [--shapes 100B-none,1KB-lz4] [--rows 1000000] [--passes 3]
        [--parts default,queries,streams,floors] [--slots 2]

Writes topics of two partitions with kbat and a fixed seed (16-byte keys, JSON values, batches of 16 KB), serves them
with a local broker, and reads them into ``format("noop")`` on ``local[slots]``. Each pass runs all readers in turn.
Figures are medians over passes, and include the fixed costs of a query, planning among them. The first pass is not
counted. Before it, each reader must have returned the right number of rows, sum of offsets and sum of lengths of
values; each micro-batch of a stream must have the right number of rows. CPU time, from /proc, is that of the driver,
its JVM and the Python workers; that of the broker is separate. Each part is a Spark session in its own process, and
prints its tables as soon as they are measured:

- default: all columns by all readers, with Spark's default settings;
- queries: four queries by kbat in the JVM and in Python, and by Spark's Parquet scan;
- streams: streaming queries (availableNow) by kbat and by Spark's Kafka source, in one micro-batch and in five, of the
  uncompressed shapes;
- floors: what parts of queries need, beside kbat in the JVM and the reader that it is compared with
  (``spark_floors.py``);
- tuned: the readers in Python, aiokafka among them, in a session with `kbat.spark.SETTINGS`;
- socket, arrow: only the Unix socket of these settings, and only Java without Arrow's checks;
- settings: options and settings of the Python data source one by one, on the first shape;
- parquet: the ways to write the rows as Parquet.

The last table compares the figures of the first three parts with the goals.

*Prebuilt native memory* is the ceiling of kbat in the JVM: a data source in ``benches/java``, compiled for this run,
whose tasks return the first batch of kbat again and again, from the memory that Rust decoded it to, by kbat's own
vectors. Every session has kbat's jar and the connector's, so readers in Python are selected by ``engine=python``.

Requires aiokafka, kbat's jar (`kbat.spark.jar`) and, on the first run, the central Maven repository for the broker,
Spark's Kafka connector and the compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
from bench import SHAPES
from pyspark.sql import SparkSession
from spark_floors import QUERIES_WITH_FLOORS, floors
from spark_goals import goals_table
from spark_measure import Usage, loads, table, timed
from spark_prebuilt import prebuilt_jar
from spark_readers import (
    AIOKAFKA,
    ALL_COLUMNS,
    JVM,
    NATIVE,
    PARQUET,
    PYTHON,
    QUERIES,
    by_aiokafka,
    check,
    in_jvm,
    others,
    runs,
    through_python,
)
from spark_settings import settings, writers
from spark_streams import BATCHES, UNCOMPRESSED, streams
from spark_topics import Topic, serve

import kbat
import kbat.spark

HERE = Path(__file__).parent
sys.path.insert(0, os.fspath(HERE.parents[1] / "tests" / "python"))

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from spark_goals import Found
    from spark_measure import Passes
    from spark_readers import Reader

    Runs = dict[str, Callable[[], object]]

SETTINGS = {name: value for name, value in kbat.spark.SETTINGS.items() if name != "spark.jars"}
SOCKET = {name: value for name, value in SETTINGS.items() if "socket" in name}
ARROW = {name: value for name, value in SETTINGS.items() if "JavaOptions" in name}
PARTS: dict[str, dict[str, str]] = {
    "default": {},
    "queries": {},
    "streams": {},
    "floors": {},
    "tuned": SETTINGS,
    "socket": SOCKET,
    "arrow": ARROW,
    "settings": {},
    "parquet": {},
}
WITH_GOALS = "default,queries,streams"


def session(part: str, jars: list[str], warehouse: Path, slots: int) -> SparkSession:
    """Start Spark with the settings of a part. Its Python workers can import the modules in this directory."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYTHONPATH"] = os.pathsep.join([os.fspath(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    builder = SparkSession.builder.master(f"local[{slots}]").config("spark.jars", ",".join(jars))
    for name, setting in PARTS[part].items():
        builder = builder.config(name, setting)
    return (
        builder.config("spark.ui.enabled", value=False)
        .config("spark.ui.showConsoleProgress", value=False)
        .config("spark.log.level", "OFF")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.warehouse.dir", os.fspath(warehouse))
        .getOrCreate()
    )


def measures(
    part: str, spark: SparkSession, topics: list[Topic], bootstrap: str, scratch: Path
) -> Iterator[tuple[str, dict[str, Runs]]]:
    """Yield each query of a part, with its runs for each topic."""
    if part == "settings":
        yield "options and settings", {topic.name: dict(settings(spark, topic, scratch)) for topic in topics[:1]}
    elif part == "parquet":
        yield "writing Parquet", {topic.name: dict(writers(spark, topic, scratch)) for topic in topics}
    elif part == "streams":
        chosen = [topic for topic in topics if topic.name in UNCOMPRESSED] or topics
        by_topic = {topic.name: streams(spark, topic, bootstrap, scratch) for topic in chosen}
        for query in BATCHES:
            yield query, {name: dict(queries[query]) for name, queries in by_topic.items()}
    elif part == "floors":
        yield from floors_by_query(spark, topics, bootstrap, scratch)
    else:
        readers = {topic.name: readers_of(part, spark, topic, bootstrap) for topic in topics}
        for topic in topics:
            check(readers[topic.name], topic)
        for query in QUERIES if part == "queries" else (ALL_COLUMNS,):
            yield query, {name: runs(found, QUERIES[query]) for name, found in readers.items()}


def floors_by_query(
    spark: SparkSession, topics: list[Topic], bootstrap: str, scratch: Path
) -> Iterator[tuple[str, dict[str, Runs]]]:
    """Yield each query that has floors for any of the topics, with its runs."""
    least = {}
    for topic in topics:
        readers = readers_of("floors", spark, topic, bootstrap)
        check(readers, topic)
        least[topic.name] = floors(spark, topic, readers, bootstrap, scratch)
    for query in QUERIES_WITH_FLOORS:
        if by_topic := {name: queries[query] for name, queries in least.items() if query in queries}:
            yield query, by_topic


def readers_of(part: str, spark: SparkSession, topic: Topic, bootstrap: str) -> dict[str, Reader]:
    """The readers that a part compares. Writes the rows as Parquet unless an earlier part did."""
    in_python = through_python(spark, topic)
    if part == "tuned":
        return {**in_python, AIOKAFKA: by_aiokafka(spark, topic)}
    if part not in {"default", "queries", "floors"}:
        return in_python
    ours = in_jvm(spark, topic)
    if not Path(topic.parquet).exists():
        ours[JVM]().write.parquet(topic.parquet)
    readers = {**ours, **in_python, **others(spark, topic, bootstrap)}
    return readers if part == "default" else {name: readers[name] for name in (NATIVE, JVM, PYTHON, PARQUET)}


def run_part(part: str, given: dict[str, Any]) -> None:
    """Measure all topics in one session; print tables, and write the figures as JSON."""
    copies = Path(given["copies"])
    logs = Path(given["logs"])
    topics = [Topic(name, rows, value_len, logs, copies) for name, rows, value_len in given["topics"]]
    rows = {topic.name: topic.rows for topic in topics}
    spark = session(part, given["jars"], copies / "warehouse", given["slots"])
    measured: dict[str, dict[str, Passes]] = {}
    with tempfile.TemporaryDirectory(dir=copies) as scratch:
        for query, by_topic in measures(part, spark, topics, given["bootstrap"], Path(scratch)):
            measured[query] = {}
            for name, of_topic in by_topic.items():
                start = time.monotonic()
                measured[query][name] = timed(of_topic, given["passes"], given["broker"])
                say(f"{part}: {query}, {name}: {time.monotonic() - start:.0f} s")
            print(table(f"{part}: {query}", rows, measured[query]), flush=True)
            Path(given["found"], f"{part}.json").write_text(json.dumps(measured))
    spark.stop()


def found_in(directory: Path, parts: Iterable[str]) -> Found:
    """Return the figures that the parts have written."""
    found: Found = {}
    for part in parts:
        file = directory / f"{part}.json"
        queries = json.loads(file.read_text()) if file.exists() else {}
        found[part] = {
            query: {
                topic: {name: [Usage(*usage) for usage in usages] for name, usages in passes.items()}
                for topic, passes in topics.items()
            }
            for query, topics in queries.items()
        }
    return found


def say(text: str) -> None:
    """Report progress."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Print the tables of each part, and then the goals. Returns 1 if a part fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="100B-none,100B-lz4,1KB-none,1KB-lz4", help="as in bench.py, except v1")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of a 100-byte shape; a tenth of them at 1 KB")
    parser.add_argument("--passes", type=int, default=3, help="timed passes (default 3)")
    parser.add_argument("--parts", default=WITH_GOALS, help=f"which of {', '.join(PARTS)} (default {WITH_GOALS})")
    parser.add_argument("--slots", type=int, default=2, help="tasks at a time (default 2)")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run_part(arguments.run[0], json.loads(arguments.run[1]))
        return 0
    parts = arguments.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    from kafka_broker import Broker  # noqa: PLC0415 -- of the tests
    from kafka_jars import KAFKA_VERSION, find_java, kafka_jars, spark_connector  # noqa: PLC0415
    from kafka_server import KafkaServer  # noqa: PLC0415

    start = time.monotonic()
    jars = [str(jar) for jar in kafka_jars(find_java(), spark_connector(pyspark.__version__), say)]
    print(
        f"$ python {' '.join(sys.argv)}\n{time.strftime('%Y-%m-%d %H:%M')}, {os.cpu_count()} cores, "
        f"kbat {kbat.__version__}, PySpark {pyspark.__version__}, pyarrow {pa.__version__}, Kafka {KAFKA_VERSION}\n"
        f"load averages before: {loads()}",
        flush=True,
    )
    shapes = [shape for shape in SHAPES if shape.name in arguments.shapes.split(",")]
    with tempfile.TemporaryDirectory() as scratch, KafkaServer(say) as server:
        own = os.getpid()
        broker = Broker(server, Path(scratch, "broker"))
        topics = serve(broker, shapes, arguments.rows, Path(scratch))
        (java,) = (int(pid) for pid in Path(f"/proc/{own}/task/{own}/children").read_text().split())
        given = {
            "topics": [(topic.name, topic.rows, topic.value_len) for topic in topics],
            "logs": os.fspath(broker.logs),
            "copies": os.fspath(topics[0].copies),
            "jars": [*jars, kbat.spark.jar(), prebuilt_jar(Path(scratch, "prebuilt.jar"))],
            "bootstrap": broker.bootstrap,
            "broker": java,
            "passes": arguments.passes,
            "slots": arguments.slots,
            "found": scratch,
        }
        say(f"topics are ready after {time.monotonic() - start:.0f} s")
        failed = [part for part in parts if not completes(part, given)]
        broker.stop()
        print(goals_table(found_in(Path(scratch), parts)))
    print(f"\nload averages after all: {loads()}; {time.monotonic() - start:.0f} s")
    if failed:
        print(f"FAILED: {', '.join(failed)}")
    return len(failed) > 0


def completes(part: str, given: dict[str, Any]) -> bool:
    """Run a part in a process of its own, and return whether it succeeds."""
    command = [sys.executable, __file__, "--run", part, json.dumps(given)]
    start = time.monotonic()
    succeeds = subprocess.run(command, check=False).returncode == 0  # noqa: S603 -- this script
    print(f"\nload averages after {part}: {loads()}; {time.monotonic() - start:.0f} s", flush=True)
    return succeeds


if __name__ == "__main__":
    sys.exit(main())
