"""Topics for the benchmarks of Spark: segments that a broker serves, and the same rows as Arrow files."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from bench import Shape, make_rows

import kbat

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTITIONS = 2
SEGMENT = "00000000000000000000.log"
DDL = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
FIELDS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type")
SAMPLE_ROWS = 50_000
ROUND = 10 * PARTITIONS
"""Numbers of rows are a multiple of this, so that micro-batches can have equally many of each partition."""


@dataclass(frozen=True)
class Topic:
    """A topic on disk: its segments, the same rows as Arrow files and as Parquet."""

    name: str
    rows: int
    value_len: int
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

    @property
    def offset_sum(self) -> int:
        """The sum of all offsets."""
        each = self.rows // PARTITIONS
        return PARTITIONS * (each * (each - 1) // 2)


def row_count(shape: Shape, rows: int) -> int:
    """The rows of a shape: as many bytes of values as in `rows` values of 100 bytes. Partitions have equally many."""
    return max(rows * 100 // shape.value_len // ROUND * ROUND, ROUND)


def make_log(shape: Shape, count: int) -> bytes:
    """One partition."""
    sample = make_rows(min(count, SAMPLE_ROWS), shape.value_len)
    times, keys, values = zip(*sample, strict=True)
    part = pa.table({"key": pa.array(keys), "value": pa.array(values), "timestamp": pa.array(times, pa.int64())})
    table = pa.concat_tables([part] * (count // len(sample) + 1)).slice(0, count)
    return kbat.encode(table, compression=shape.compression, batch_bytes=16 << 10, partition_leader_epoch=0)


def make_topics(shapes: Sequence[Shape], rows: int, logs: Path, copies: Path) -> list[Topic]:
    """Write segments, and Arrow files of the same rows."""
    topics = []
    for shape in shapes:
        topic = Topic(shape.name, row_count(shape, rows), shape.value_len, logs, copies)
        Path(topic.arrow).mkdir(parents=True)
        content = make_log(shape, topic.rows // PARTITIONS)
        for number in range(PARTITIONS):
            Path(topic.log(number)).parent.mkdir(parents=True, exist_ok=True)
            Path(topic.log(number)).write_bytes(content)
            scan = kbat.scan(topic.log(number), timestamp_unit="us", columns=list(FIELDS))
            names = [column.split()[0] for column in DDL.split(", ")]
            batches = [batch.rename_columns(names) for batch in scan.to_pyarrow().to_batches()]
            with pa.ipc.new_file(f"{topic.arrow}/{number}.arrow", batches[0].schema) as file:
                for batch in batches:
                    file.write_batch(batch)
        topics.append(topic)
    return topics


def serve(broker: Any, shapes: Sequence[Shape], rows: int, directory: Path) -> list[Topic]:  # noqa: ANN401 -- of the tests
    """Put the topics into the broker's log directory, and start it."""
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
    shutil.rmtree(directory / "made")
    broker.start()
    return [Topic(topic.name, topic.rows, topic.value_len, broker.logs, topic.copies) for topic in made]
