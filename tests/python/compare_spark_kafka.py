"""Compares Spark's own Kafka source with kbat on a real broker's topics, row for row.

    python tests/python/compare_spark_kafka.py [name of a case ...]

Starts a broker, produces to it (every codec, headers, nulls, both timestamp types, transactions that are committed,
aborted and open, several partitions and segments), and reads the topics twice with the same options while it runs:
``format("kafka")`` from the broker, ``format("kbat")`` from its log directory. Compared are the schema, as Spark and as
Arrow have it, and every column of every row; for bad options, that both refuse. Prints a table, and ends with status 1
where anything differs. The jars of the broker and of Spark's connector are fetched on the first run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_broker import Broker, ProducerRecord
from kafka_jars import find_java, kafka_jars, spark_connector
from kafka_server import KafkaServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
START = 1_700_000_000_000
CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
KEEP: dict[str, Any] = {"retention_ms": -1, "internal_segment_bytes": 6000, "index_interval_bytes": 300}
HEADERS: tuple[tuple[tuple[str, bytes | None], ...], ...] = (
    (),
    (("trace", b"7f3a"),),
    (("null", None), ("empty", b""), ("", b"no name")),
    (("twice", b"1"), ("twice", b"2"), ("twice", None)),
    (("sch\u00fcssel \u9375 \U0001f511", bytes(range(0, 256, 9))),),
)


@dataclass(frozen=True)
class Case:
    """A read to compare. Both sources must raise an error if `refused`, otherwise return rows, unless `empty`."""

    name: str
    options: dict[str, object]
    refused: bool = False
    empty: bool = False
    stream: bool = False


@dataclass
class Outcome:
    """The result of a case."""

    case: Case
    rows: int = 0
    tasks: str = ""
    differences: list[str] = field(default_factory=list)


def records(count: int, *, partitions: int = 1, since: int = START) -> list[ProducerRecord]:
    """Records with null and empty keys and values, every kind of headers, and times that don't only grow."""
    return [
        ProducerRecord(
            key=None if number % 7 == 0 else b"" if number % 11 == 0 else b"key-%d" % (number % 13),
            value=None if number % 5 == 0 else b"" if number % 17 == 0 else b'{"number": %d}' % number * (number % 7),
            headers=HEADERS[number % len(HEADERS)],
            timestamp=since + 1000 * number - (2500 if number % 10 == 3 else 0),
            partition=number % partitions,
        )
        for number in range(count)
    ]


def produce(broker: Broker) -> None:
    """Make the topics."""
    for topic, partitions in (("orders", 3), ("codecs", 1), ("transactions", 2), ("empty", 2)):
        broker.create_topic(topic, partitions, **KEEP)
    broker.create_topic("appended", 2, message_timestamp_type="LogAppendTime", **KEEP)
    for turn in range(6):
        since = START + 60_000 * turn
        broker.produce("orders", records(60, partitions=3, since=since), compression=CODECS[turn % len(CODECS)])
    for turn, codec in enumerate(CODECS):
        broker.produce("codecs", records(40, since=START + 40_000 * turn), compression=codec)
    odd = (0, 1, START + 1, 253_402_300_799_999)
    broker.produce("codecs", [ProducerRecord(b"odd", b"time", (), timestamp) for timestamp in odd])
    for codec in CODECS:
        broker.produce("appended", records(30, partitions=2), compression=codec)
    produce_transactions(broker)


def produce_transactions(broker: Broker) -> None:
    """Interleave transactions of three producers with plain records; partition 1 ends in one that is left open."""

    def send(turn: int, name: str | None, end: str | None, count: int = 9, partitions: int = 2) -> None:
        rows = records(count, partitions=partitions, since=START + 20_000 * turn)
        broker.produce("transactions", rows, transactional_id=name, end=end)  # type: ignore[arg-type]

    send(0, None, None)
    send(1, "one", None)
    send(2, "two", None)
    send(3, "one", "abort")
    send(4, None, None)
    send(5, "two", "commit")
    send(6, "one", "commit")
    send(7, "two", "abort")
    send(8, "three", None, count=3)
    send(9, None, None)


def cases() -> Iterator[Case]:
    """Every read that is compared."""
    everything = "orders,codecs,appended,transactions,empty"
    at, early, late = START + 90_000, START + 30_000, START + 300_000
    three = '{"orders": {"0": %s, "1": %s, "2": %s}}'
    for isolation in ("read_uncommitted", "read_committed"):
        asked: dict[str, object] = {"kafka.isolation.level": isolation}
        yield Case("all topics", {"subscribe": everything, "includeHeaders": True, **asked})
        # not startingTimestamp and endingTimestamp: of a batch read of kbat these are filters of rows
        both = f'{{"transactions": {{"0": {at}, "1": {at}}}}}'
        yield Case("times in transactions", {"subscribe": "transactions", "startingOffsetsByTimestamp": both, **asked})
        yield Case("until a time", {"subscribe": "transactions", "endingOffsetsByTimestamp": both, **asked})
        ends: dict[str, object] = {"startingOffsets": '{"transactions": {"0": 7, "1": -2}}', "includeHeaders": True}
        yield Case("offsets in transactions", {"subscribe": "transactions", **ends, **asked})
        yield Case("small tasks", {"subscribe": "transactions", "minPartitions": 7, "includeHeaders": True, **asked})
    yield Case("no headers", {"subscribe": "orders"})
    yield Case("no records", {"subscribe": "empty", "includeHeaders": True}, empty=True)
    yield Case("pattern", {"subscribePattern": "(ord|cod).*s", "includeHeaders": True})
    yield Case("assign", {"assign": '{"orders": [2, 0], "appended": [1]}'})
    ends = {"startingOffsets": three % (10, -2, 100), "endingOffsets": three % (-1, 50, 101)}
    yield Case("offsets", {"subscribe": "orders", "includeHeaders": True, **ends})
    ends = {"startingOffsets": three % (5, 9, 7), "endingOffsets": three % (5, 9, 7)}
    yield Case("offsets of nothing", {"subscribe": "orders", **ends}, empty=True)
    yield Case("times", {"subscribe": "orders", "startingTimestamp": at, "endingTimestamp": late})
    yield Case("until a late time", {"subscribe": "orders", "endingTimestamp": START * 2})
    ends = {"startingOffsetsByTimestamp": three % (at, 0, early), "endingOffsetsByTimestamp": three % (late, at, late)}
    yield Case("times by partition", {"subscribe": "orders", **ends})
    ends = {"startingOffsets": three % (1, 1, 1), "startingTimestamp": at}
    yield Case("time before offsets", {"subscribe": "orders", **ends})
    late_start = {"startingOffsetsByTimestamp": three % (at, START * 2, late)}
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    yield Case("a start past the end", {"subscribe": "orders", **late_start, **latest})
    yield Case("many tasks", {"subscribe": "orders", "minPartitions": 20, "includeHeaders": True})
    yield Case("tasks of 17", {"subscribe": "orders", "maxRecordsPerPartition": 17})
    yield Case("stream", {"subscribe": "orders", "startingOffsets": "earliest", "includeHeaders": True}, stream=True)
    asked = {"startingOffsets": "earliest", "kafka.isolation.level": "read_committed", "maxOffsetsPerTrigger": 20}
    yield Case("stream", {"subscribe": "transactions", **asked}, stream=True)
    yield Case("no start at that time", {"subscribe": "orders", **late_start}, refused=True)
    yield Case("a partition too few", {"subscribe": "orders", "startingOffsets": '{"orders": {"0": 1}}'}, refused=True)
    yield Case("two ways", {"subscribe": "orders", "assign": '{"orders": [0]}'}, refused=True)
    yield Case("start at the end", {"subscribe": "orders", "startingOffsets": "latest"}, refused=True)
    yield Case("end at the start", {"subscribe": "orders", "endingOffsets": "earliest"}, refused=True)
    ends = {"startingOffsets": three % (5, -1, 7)}
    yield Case("one start at the end", {"subscribe": "orders", **ends}, refused=True)
    yield Case("no count", {"subscribe": "orders", "minPartitions": "few"}, refused=True)
    yield Case("a consumer's setting", {"subscribe": "orders", "kafka.auto.offset.reset": "latest"}, refused=True)
    lost: dict[str, object] = {
        "subscribe": "orders",
        "startingOffsets": three % (5000, 0, 0),
        "kafkaConsumer.pollTimeoutMs": 3000,
    }
    yield Case("an offset that is not there", lost, refused=True)


class Comparison:
    """Reads of one broker through both sources."""

    def __init__(self, spark: SparkSession, broker: Broker, scratch: Path) -> None:
        self._spark = spark
        self._broker = broker
        self._scratch = scratch
        self._stream_count = 0

    def run(self, case: Case) -> Outcome:
        """Compare one case."""
        outcome = Outcome(case)
        if case.refused:
            outcome.differences += [
                f"{source} takes it" for source in ("kafka", "kbat") if not self._refuses(source, case)
            ]
            return outcome
        try:
            frames = self._frame("kafka", case), self._frame("kbat", case)
            self._compare(outcome, *frames)
        except (PySparkException, Py4JError) as error:
            outcome.differences.append(str(error)[:2000])
        return outcome

    def _compare(self, outcome: Outcome, kafka: DataFrame, kbat: DataFrame) -> None:
        if kafka.schema != kbat.schema:
            outcome.differences.append(f"schema: {kafka.schema.simpleString()} | {kbat.schema.simpleString()}")
        theirs, ours = ordered(kafka), ordered(kbat)
        if theirs.schema != ours.schema:
            outcome.differences.append(f"Arrow schema: {theirs.schema} | {ours.schema}")
        outcome.rows = theirs.num_rows
        if not outcome.case.stream:
            outcome.tasks = f"{task_count(kafka)} | {task_count(kbat)}"
        if bool(theirs.num_rows) == outcome.case.empty:
            outcome.differences.append(f"{theirs.num_rows} rows of Spark's source: the case shows nothing")
        outcome.differences += differences(theirs, ours)

    def _refuses(self, source: str, case: Case) -> bool:
        try:
            self._frame(source, case).collect()
        except (PySparkException, Py4JError):
            return True
        return False

    def _frame(self, source: str, case: Case) -> DataFrame:
        if case.stream:
            return self._streamed(source, case.options)
        options = {name: option_text(given) for name, given in case.options.items()}
        reader = self._spark.read.format(source).options(**options)
        if source == "kafka":
            return reader.option("kafka.bootstrap.servers", self._broker.bootstrap).load()
        return reader.load(os.fspath(self._broker.logs))

    def _streamed(self, source: str, options: dict[str, object]) -> DataFrame:
        """Run a stream over the existing records, into Parquet files."""
        self._stream_count += 1
        place = self._scratch / f"stream-{self._stream_count}"
        reader = self._spark.readStream.format(source)
        reader = reader.options(**{name: option_text(given) for name, given in options.items()})
        if source == "kafka":
            frame = reader.option("kafka.bootstrap.servers", self._broker.bootstrap).load()
        else:
            frame = reader.load(os.fspath(self._broker.logs))
        writer = frame.writeStream.format("parquet").option("checkpointLocation", os.fspath(place / "checkpoint"))
        query = writer.trigger(availableNow=True).start(os.fspath(place / "rows"))
        query.awaitTermination()
        return self._spark.read.schema(frame.schema).parquet(os.fspath(place / "rows"))


def option_text(given: object) -> str:
    """Return an option's text as Spark's `option` makes it."""
    return str(given).lower() if isinstance(given, bool) else str(given)


def ordered(frame: DataFrame) -> pa.Table:
    """Collect the rows, by partition and offset; a partition's order is not changed."""
    table = frame.toArrow()
    keys: list[tuple[str, Literal["ascending", "descending"]]] = [
        (name, "ascending") for name in ("topic", "partition", "offset")
    ]
    return table.sort_by(keys) if table.num_rows else table


def task_count(frame: DataFrame) -> int:
    """Count the tasks of a read."""
    return frame.rdd.getNumPartitions()


def differences(theirs: pa.Table, ours: pa.Table) -> list[str]:
    """Describe how two tables differ: the number of rows, and the first row of each column that is not the same."""
    if theirs.num_rows != ours.num_rows:
        return [f"{theirs.num_rows} rows | {ours.num_rows} rows"]
    found = []
    for name in theirs.schema.names:
        left, right = theirs[name].to_pylist(), ours[name].to_pylist()
        wrong = [place for place, pair in enumerate(zip(left, right, strict=True)) if pair[0] != pair[1]]
        if wrong:
            place = wrong[0]
            where = "-".join(str(theirs[column][place]) for column in ("topic", "partition", "offset"))
            found.append(f"{name} of {len(wrong)} rows, first {where}: {left[place]!r} | {right[place]!r}")
    return found


def session(jars: list[Path], scratch: Path) -> SparkSession:
    """Start Spark with its connector."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(map(str, jars)))
        .config("spark.ui.enabled", value=False)
        .config("spark.ui.showConsoleProgress", value=False)
        .config("spark.log.level", "OFF")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.warehouse.dir", os.fspath(scratch / "warehouse"))
        .getOrCreate()
    )


def say(text: str) -> None:
    """Report slow steps."""
    print(text, file=sys.stderr, flush=True)


def show(outcome: Outcome) -> None:
    """Print a row of the table, and the differences below it."""
    options = json.dumps(outcome.case.options)[1:-1].replace('\\"', '"')
    rows = "both refuse" if outcome.case.refused and not outcome.differences else outcome.rows
    verdict = "DIFFERENT" if outcome.differences else "equal"
    print(f"| {outcome.case.name} | `{options}` | {rows} | {outcome.tasks} | {verdict} |", flush=True)
    for difference in outcome.differences:
        print(f"    {difference}", flush=True)


def main() -> int:
    """Compare the cases named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", help="names of cases; all without them")
    chosen = set(parser.parse_args().case) or {case.name for case in cases()}
    jars = kafka_jars(find_java(), spark_connector(pyspark.__version__), say)
    with tempfile.TemporaryDirectory() as scratch, KafkaServer(say) as server:
        broker = Broker(server, Path(scratch, "broker"))
        spark = session(jars, Path(scratch))
        warnings.simplefilter("ignore")
        try:
            produce(broker)
            print(f"PySpark {pyspark.__version__}, {', '.join(jar.name for jar in jars)}\n")
            print("| case | options | rows | tasks, kafka and kbat | |\n|---|---|---|---|---|", flush=True)
            comparison = Comparison(spark, broker, Path(scratch))
            different = 0
            for case in (case for case in cases() if case.name in chosen):
                outcome = comparison.run(case)
                different += bool(outcome.differences)
                show(outcome)
        finally:
            spark.stop()
            broker.stop()
    print(f"\n{different} of the cases differ" if different else "\nall equal")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
