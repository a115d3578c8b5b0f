"""What the benchmarks of Spark run in its Python workers, which import this module by its name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    from collections.abc import Iterator


class PrebuiltArrow(DataSource):
    """Existing Arrow batches, mapped from files: measures the cost of the Python data source itself."""

    @classmethod
    def name(cls) -> str:
        """Its name."""
        return "prebuilt"

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ANN401, ARG002 -- Spark's
        """A reader."""
        return PrebuiltReader(self.options["path"])


class PrebuiltReader(DataSourceReader):
    """Reads one file per task."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def partitions(self) -> list[InputPartition]:
        """Return one task per file."""
        return [InputPartition(number) for number in range(len(list(Path(self._directory).iterdir())))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Its batches."""
        yield from mapped(self._directory, partition.value)


def mapped(directory: str, number: int) -> Iterator[pa.RecordBatch]:
    """The batches of a file."""
    reader = pa.ipc.open_file(pa.memory_map(f"{directory}/{number}.arrow"))
    for place in range(reader.num_record_batches):
        yield reader.get_batch(place)


def aiokafka_batches(path: str, topic: str, columns: list[str], partition: int) -> Iterator[pa.RecordBatch]:
    """Read without kbat: aiokafka's C decoder, lists, Arrow."""
    from aiokafka.record.memory_records import MemoryRecords  # type: ignore[import-untyped]  # noqa: PLC0415

    records = MemoryRecords(Path(path).read_bytes())
    rows: list[Any] = []
    while (batch := records.next_batch()) is not None:
        if not batch.validate_crc():
            raise ValueError
        rows += [(r.key, r.value, r.offset, r.timestamp * 1000, r.timestamp_type) for r in batch]
        if len(rows) > 10_000:  # noqa: PLR2004 -- rows of an Arrow batch
            yield as_arrow(rows, topic, columns, partition)
            rows = []
    if rows:
        yield as_arrow(rows, topic, columns, partition)


def as_arrow(rows: list[Any], topic: str, columns: list[str], partition: int) -> pa.RecordBatch:
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
    return pa.RecordBatch.from_arrays(arrays, names=columns)
