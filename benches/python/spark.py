"""Compares kbat's readers for Spark with the alternatives on the same rows: rows per second, and CPU time per row.

    python benches/python/spark.py [--shapes 100B-none,1KB-lz4] [--rows 1000000] [--passes 3] [--parts default,tuned]
        [--slots 2]

Writes topics of two partitions with kbat and a fixed seed (16-byte keys, JSON values, batches of 16 KB), serves them
with a local broker, and reads them into ``format("noop")`` on ``local[slots]``. Each pass runs all readers in turn.
Figures are medians over passes and include the fixed costs of a query. CPU time, from /proc, is that of the driver, its
JVM and the Python workers; that of the broker is separate. Each part is a Spark session in its own process:

- default: all readers, with Spark's default settings;
- tuned: the readers in Python, in a session with `kbat.spark.SETTINGS`;
- socket, arrow: only the Unix socket of these settings, and only Java without Arrow's checks;
- settings: options and settings one by one, on the first shape;
- parquet: the ways to write the rows as Parquet.

Requires aiokafka and, on the first run, the central Maven repository for the broker and Spark's Kafka connector.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
from bench import SHAPES, Shape, make_rows
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

import kbat
import kbat.spark

sys.path.insert(0, os.fspath(Path(__file__).parents[2] / "tests" / "python"))

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, DataFrameReader

PARTITIONS = 2
WARM_UP_PASSES = 2
SEGMENT = "00000000000000000000.log"
DDL = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
SETTINGS = kbat.spark.SETTINGS
SOCKET = {name: value for name, value in SETTINGS.items() if "socket" in name}
MAX_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
ARROW = {name: value for name, value in SETTINGS.items() if "JavaOptions" in name}
PARTS = {"default": {}, "tuned": dict(SETTINGS), "socket": SOCKET, "arrow": ARROW, "settings": {}, "parquet": {}}
TUNED_CONSUMER = {
    "kafka.max.poll.records": "10000",
    "kafka.fetch.max.bytes": str(8 << 20),
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.check.crcs": "false",
}


@dataclass
class Usage:
    """The cost of a run: wall-clock seconds, CPU seconds of Spark and of the broker."""

    seconds: float
    spark: float
    broker: float


def cpu_seconds(root: int) -> float:
    """CPU time of a process and its descendants, including those that have ended."""
    tick = os.sysconf("SC_CLK_TCK")
    parents, used = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[11:15]))
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(used.get(pid, 0) for pid in family) / tick


class Prebuilt(DataSource):
    """Existing Arrow batches, mapped from files: measures the cost of the Python data source itself."""

    @classmethod
    def name(cls) -> str:
        """Its name."""
        return "prebuilt"

    def schema(self) -> str:
        """The columns."""
        return DDL

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ANN401, ARG002 -- Spark's
        """A reader."""
        return PrebuiltReader(self.options["path"])


class PrebuiltReader(DataSourceReader):
    """Reads one file per task."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def partitions(self) -> list[InputPartition]:
        """Return one task per file."""
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Its batches."""
        yield from mapped(self._directory, partition.value)


def mapped(directory: str, number: int) -> Iterator[pa.RecordBatch]:
    """The batches of a file."""
    reader = pa.ipc.open_file(pa.memory_map(f"{directory}/{number}.arrow"))
    for place in range(reader.num_record_batches):
        yield reader.get_batch(place)


def by_aiokafka(path: str, topic: str, partition: int) -> Iterator[pa.RecordBatch]:
    """Read without kbat: aiokafka's C decoder, lists, Arrow."""
    from aiokafka.record.memory_records import MemoryRecords  # type: ignore[import-untyped]  # noqa: PLC0415

    records = MemoryRecords(Path(path).read_bytes())
    rows: list[Any] = []
    while (batch := records.next_batch()) is not None:
        if not batch.validate_crc():
            raise ValueError
        rows += [(r.key, r.value, r.offset, r.timestamp * 1000, r.timestamp_type) for r in batch]
        if len(rows) > 10_000:  # noqa: PLR2004 -- rows of an Arrow batch
            yield as_arrow(rows, topic, partition)
            rows = []
    if rows:
        yield as_arrow(rows, topic, partition)


def as_arrow(rows: list[Any], topic: str, partition: int) -> pa.RecordBatch:
    """Rows to Spark's columns."""
    keys, values, offsets, times, kinds = zip(*rows, strict=True)
    count = len(rows)
    arrays: list[Any] = [
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        pa.array([topic] * count, pa.string()),
        pa.array([partition] * count, pa.int32()),
        pa.array(offsets, pa.int64()),
        pa.array(times, pa.timestamp("us", "UTC")),
        pa.array(kinds, pa.int32()),
    ]
    names = [column.split()[0] for column in DDL.split(", ")]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def in_tasks(spark: SparkSession, of_task: Callable[[int], Iterator[pa.RecordBatch]]) -> DataFrame:
    """Run one task per partition, by mapInArrow."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_numpy().tolist():
                yield from of_task(number)

    return spark.range(0, PARTITIONS, 1, PARTITIONS).mapInArrow(read, DDL)


@dataclass(frozen=True)
class Topic:
    """A topic on disk: its segments, the same rows as Arrow files and as Parquet."""

    name: str
    rows: int
    logs: Path
    copies: Path

    def log(self, partition: int) -> str:
        """The segment of a partition."""
        return os.fspath(self.logs / f"{self.name}-{partition}" / SEGMENT)

    @property
    def arrow(self) -> str:
        """Directory of the Arrow files."""
        return os.fspath(self.copies / self.name)

    @property
    def parquet(self) -> str:
        """Directory of the Parquet files, as Spark writes them."""
        return os.fspath(self.copies / f"{self.name}.parquet")


def make_log(shape: Shape, count: int) -> bytes:
    """One partition."""
    sample = make_rows(min(count, 50_000), shape.value_len)
    times, keys, values = zip(*(sample * (count // len(sample) + 1))[:count], strict=True)
    table = pa.table({"key": pa.array(keys), "value": pa.array(values), "timestamp": pa.array(times, pa.int64())})
    return kbat.encode(table, compression=shape.compression, batch_bytes=16 << 10, partition_leader_epoch=0)


def make_topics(shapes: list[Shape], rows: int, logs: Path, copies: Path) -> list[Topic]:
    """Write segments, and Arrow files of the same rows."""
    topics = []
    for shape in shapes:
        count = rows * 100 // shape.value_len * 2 if shape.value_len > 100 else rows  # noqa: PLR2004 -- the two sizes
        topic = Topic(shape.name, count // PARTITIONS * PARTITIONS, logs, copies)
        Path(topic.arrow).mkdir(parents=True)
        for number in range(PARTITIONS):
            Path(topic.log(number)).parent.mkdir(parents=True, exist_ok=True)
            Path(topic.log(number)).write_bytes(make_log(shape, topic.rows // PARTITIONS))
            scan = kbat.scan(topic.log(number), timestamp_unit="us", columns=list(FIELDS))
            names = [column.split()[0] for column in DDL.split(", ")]
            batches = [batch.rename_columns(names) for batch in scan.to_pyarrow().to_batches()]
            with pa.ipc.new_file(f"{topic.arrow}/{number}.arrow", batches[0].schema) as file:
                for batch in batches:
                    file.write_batch(batch)
        topics.append(topic)
    return topics


FIELDS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type")


def session(part: str, jars: list[str], warehouse: Path, slots: int = 2) -> SparkSession:
    """Start Spark with the settings of a part."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
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


def noop(frame: DataFrame) -> None:
    """Read all rows and discard them."""
    frame.write.format("noop").mode("overwrite").save()


def through_python(spark: SparkSession, topic: Topic) -> dict[str, Callable[[], DataFrame]]:
    """The readers that pass rows from Python to Spark."""
    directory = topic.arrow
    logs = os.fspath(topic.logs)

    def source() -> DataFrameReader:
        return spark.read.format("kbat").option("subscribe", topic.name)

    return {
        "prebuilt Arrow, data source": lambda: spark.read.format("prebuilt").load(directory),
        "kbat source": lambda: source().load(logs),
        "prebuilt Arrow, mapInArrow": lambda: in_tasks(spark, partial(mapped, directory)),
        "kbat fast path": lambda: kbat.spark.read(spark, logs, subscribe=topic.name),
        "kbat source, only offset": lambda: source().schema("offset bigint").load(logs),
    }


def others(spark: SparkSession, topic: Topic, bootstrap: str) -> dict[str, Callable[[], DataFrame]]:
    """The readers that don't use kbat."""

    def kafka() -> DataFrameReader:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        return reader.option("subscribe", topic.name)

    paths = [topic.log(number) for number in range(PARTITIONS)]
    name = topic.name
    return {
        "Spark's Parquet scan": lambda: spark.read.parquet(topic.parquet),
        "aiokafka in mapInArrow": lambda: in_tasks(spark, lambda number: by_aiokafka(paths[number], name, number)),
        "Spark's Kafka source": lambda: kafka().load(),
        "Spark's Kafka source, tuned": lambda: kafka().options(**TUNED_CONSUMER).load(),
    }


def writers(spark: SparkSession, topic: Topic, scratch: Path) -> dict[str, Callable[[], None]]:
    """The ways to write the rows as Parquet."""
    logs = os.fspath(topic.logs)
    paths = [topic.log(number) for number in range(PARTITIONS)]

    def by_spark() -> None:
        frame = kbat.spark.read(spark, logs, subscribe=topic.name)
        frame.write.mode("overwrite").parquet(os.fspath(scratch / "spark.parquet"))

    def by_kbat() -> None:
        scan = kbat.scan(paths, columns=list(FIELDS), timestamp_unit="us")
        kbat.write_parquet(scan, scratch / "kbat.parquet")

    def by_tasks() -> None:
        kbat.spark.to_parquet(spark, logs, scratch / "tasks.parquet", subscribe=topic.name)
        shutil.rmtree(scratch / "tasks.parquet")

    return {
        "df.write.parquet": by_spark,
        "kbat.spark.to_parquet": by_tasks,
        "kbat.write_parquet, one thread": by_kbat,
    }


def settings(spark: SparkSession, topic: Topic, scratch: Path) -> dict[str, Callable[[], None]]:
    """Options of a read and settings, one by one."""
    logs = os.fspath(topic.logs)

    def read(**options: str) -> Callable[[], None]:
        return lambda: noop(spark.read.format("kbat").option("subscribe", topic.name).options(**options).load(logs))

    def scan(threads: int) -> Callable[[], None]:
        paths = [topic.log(number) for number in range(PARTITIONS)]

        def run() -> None:
            for _ in kbat.scan(paths, columns=list(FIELDS)).to_reader(threads=threads):
                pass

        return run

    def to_python(**conf: str) -> Callable[[], None]:
        target = os.fspath(scratch / "headers.parquet")
        if not Path(target).exists():
            reader = spark.read.format("kbat").options(subscribe=topic.name, includeHeaders="true")
            reader.load(logs).write.parquet(target)

        def run() -> None:
            for name, setting in conf.items():
                spark.conf.set(name, setting)
            noop(spark.read.parquet(target).mapInArrow(lambda batches: (batch.slice(0, 1) for batch in batches), DDL_H))
            for name in conf:
                spark.conf.unset(name)

        return run

    return {
        "all defaults": read(),
        "columns=value": read(columns="value"),
        "columns=offset": read(columns="offset"),
        "checkCrc=false": read(checkCrc="false"),
        "includeHeaders=true": read(includeHeaders="true"),
        "maxPartitionBytes=4m": read(maxPartitionBytes="4m"),
        "maxPartitionBytes=16m": read(maxPartitionBytes="16m"),
        "minPartitions=8": read(minPartitions="8"),
        "minPartitions=64": read(minPartitions="64"),
        "isolationLevel=read_committed": read(isolationLevel="read_committed"),
        "rows with headers to Python, all defaults": to_python(),
        "rows with headers to Python, maxBytesPerBatch=2147483647": to_python(**{MAX_BATCH_BYTES: str((1 << 31) - 1)}),
        "kbat.scan, no Spark, threads=1": scan(1),
        "kbat.scan, no Spark, threads=2": scan(2),
    }


DDL_H = f"{DDL}, headers array<struct<key:string,value:binary>>"


def timed(runs: dict[str, Callable[[], None]], passes: int, broker: int | None) -> dict[str, Usage]:
    """Run everything in turn, after a warm-up, and return medians."""
    usages: dict[str, list[Usage]] = {name: [] for name in runs}
    for turn in range(WARM_UP_PASSES + passes):
        for name, run in runs.items():
            before = time.perf_counter(), cpu_seconds(os.getpid()), cpu_seconds(broker) if broker else 0.0
            run()
            after = time.perf_counter(), cpu_seconds(os.getpid()), cpu_seconds(broker) if broker else 0.0
            if turn >= WARM_UP_PASSES:
                usages[name].append(Usage(*(end - start for start, end in zip(before, after, strict=True))))
    return {
        name: Usage(*(statistics.median(getattr(usage, field) for usage in found) for field in Usage.__annotations__))
        for name, found in usages.items()
    }


def run_part(part: str, given: dict[str, Any]) -> None:
    """Measure all topics in one session; print JSON."""
    topics = [Topic(name, rows, Path(given["logs"]), Path(given["copies"])) for name, rows in given["topics"]]
    spark = session(part, given["jars"], Path(given["copies"]) / "warehouse", given["slots"])
    spark.dataSource.register(Prebuilt)
    found = {}
    for topic in topics[: 1 if part == "settings" else None]:
        frames = through_python(spark, topic)
        if part == "default":
            frames |= others(spark, topic, given["bootstrap"])
            frames["kbat fast path"]().write.parquet(topic.parquet)
        for name, frame in frames.items():
            count = frame().count() if part != "settings" else topic.rows
            if count != topic.rows:
                message = f"{name} read {count} of {topic.rows} rows of {topic.name}"
                raise SystemExit(message)
        runs = {} if part == "parquet" else {name: partial(run_noop, frame) for name, frame in frames.items()}
        with tempfile.TemporaryDirectory(dir=given["copies"]) as scratch:
            if part in {"default", "parquet"}:
                runs |= writers(spark, topic, Path(scratch))  # type: ignore[arg-type]
            chosen = settings(spark, topic, Path(scratch)) if part == "settings" else runs
            usages = timed(dict(chosen), given["passes"], given["broker"])
        found[topic.name] = {name: vars(usage) for name, usage in usages.items()}
        print(f"{part}: {topic.name} done", file=sys.stderr, flush=True)
    spark.stop()
    print(json.dumps(found))


def run_noop(frame: Callable[[], DataFrame]) -> None:
    """Create a frame and read it, to include planning."""
    noop(frame())


def serve(broker: Any, shapes: list[Shape], rows: int, directory: Path) -> list[Topic]:  # noqa: ANN401 -- of the tests
    """Put the topics into the broker's log directory."""
    from kafka_broker import place  # noqa: PLC0415 -- of the tests

    made = make_topics(shapes, rows, directory / "made", directory / "copies")
    for topic in made:
        broker.create_topic(topic.name, PARTITIONS, retention_ms=-1)
    broker.stop()
    for topic in made:
        for number in range(PARTITIONS):
            source = Path(topic.log(number)).parent
            place(source, broker.partition_dir(topic.name, number), keep_indexes=False)
    (broker.logs / ".kafka_cleanshutdown").unlink()
    broker.start()
    return [Topic(topic.name, topic.rows, broker.logs, topic.copies) for topic in made]


def show(part: str, topics: dict[str, int], found: dict[str, dict[str, dict[str, float]]]) -> None:
    """Print a table: M rows/s, and CPU µs per row of Spark and Python + of the broker."""
    shown = {name: rows for name, rows in topics.items() if name in found}
    print(f"\n{part}: M rows/s; CPU µs per row (+ the broker's)\n")
    print(
        "|  | "
        + " | ".join(f"{name}, {rows:,} rows" for name, rows in shown.items())
        + " |\n|---|"
        + "---|" * len(shown)
    )
    for contestant in next(iter(found.values())):
        cells = []
        for name, rows in shown.items():
            usage = found[name][contestant]
            broker = f" + {usage['broker'] / rows * 1e6:.2f}" if usage["broker"] / rows > 5e-8 else ""  # noqa: PLR2004
            cells.append(f"{rows / usage['seconds'] / 1e6:.2f}; {usage['spark'] / rows * 1e6:.2f}{broker}")
        print(f"| {contestant} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print one table per part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="100B-none,100B-lz4,1KB-none,1KB-lz4", help="as in bench.py, except v1")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of a 100-byte shape; a fifth of them at 1 KB")
    parser.add_argument("--passes", type=int, default=3, help="timed passes (default 3)")
    parser.add_argument("--parts", default="default,tuned", help=f"which of {', '.join(PARTS)}")
    parser.add_argument("--slots", type=int, default=2, help="tasks at a time (default 2)")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run_part(arguments.run[0], json.loads(arguments.run[1]))
        return
    from kafka_broker import Broker  # noqa: PLC0415 -- of the tests
    from kafka_jars import find_java, kafka_jars, spark_connector  # noqa: PLC0415
    from kafka_server import KafkaServer  # noqa: PLC0415

    say = partial(print, file=sys.stderr)
    jars = [str(jar) for jar in kafka_jars(find_java(), spark_connector(pyspark.__version__), say)]
    shapes = [shape for shape in SHAPES if shape.name in arguments.shapes.split(",")]
    print(
        f"$ python {' '.join(sys.argv)}\n"
        f"{os.cpu_count()} cores, PySpark {pyspark.__version__}, pyarrow {pa.__version__}"
    )
    with tempfile.TemporaryDirectory() as scratch, KafkaServer(say) as server:
        own = os.getpid()
        broker = Broker(server, Path(scratch, "broker"))
        topics = serve(broker, shapes, arguments.rows, Path(scratch))
        (java,) = (int(pid) for pid in Path(f"/proc/{own}/task/{own}/children").read_text().split())
        given = {
            "topics": [(topic.name, topic.rows) for topic in topics],
            "logs": os.fspath(broker.logs),
            "copies": os.fspath(topics[0].copies),
            "jars": jars,
            "bootstrap": broker.bootstrap,
            "broker": java,
            "passes": arguments.passes,
            "slots": arguments.slots,
        }
        for part in arguments.parts.split(","):
            command = [sys.executable, __file__, "--run", part, json.dumps(given)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 -- this script
            show(part, {topic.name: topic.rows for topic in topics}, json.loads(done.stdout.splitlines()[-1]))
        broker.stop()


if __name__ == "__main__":
    main()
