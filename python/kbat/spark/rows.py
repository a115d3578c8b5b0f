"""Reads the Arrow batches of tasks, for all entry points of the package."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kbat._core import plan as core
from kbat.spark.worker import freeze_gc

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kbat.spark.options import ReadOptions
    from kbat.spark.plan import ReadPartition


@dataclass(frozen=True)
class RowReader:
    """Reads tasks. It is pickled; `names` are those of the schema, `fields` those of `kbat.scan`."""

    names: list[str]
    fields: list[str]
    # a task that reads nothing; its options may be secret
    nothing: bytes = field(repr=False)

    @classmethod
    def of(cls, options: ReadOptions, schema: StructType) -> RowReader:
        """Return a reader of a schema's columns. Raises `ValueError` for a wrong schema."""
        columns = [(field.name, field.dataType.simpleString(), field.nullable) for field in schema.fields]
        fields = core.check(options, columns)
        return cls(list(schema.names), fields, core.nothing(options, fields))

    def read(self, partition: ReadPartition) -> Iterator[pa.RecordBatch]:
        """Yield the Arrow batches of one task, straight from Rust. Raises the errors of `kbat.scan`."""
        freeze_gc()
        for arrow_batch in core.TaskReader(partition.task):
            yield arrow_batch.rename_columns(self.names)


def null_headers(arrow_batch: pa.RecordBatch) -> pa.RecordBatch:
    """Make `headers` null for records without headers, as Spark's Kafka source does."""
    place = arrow_batch.schema.get_field_index("headers")
    if place < 0:
        return arrow_batch
    import pyarrow as pa  # noqa: PLC0415 -- slow, and not needed by the driver

    lists: Any = arrow_batch.column(place)
    bounds = lists.offsets.to_numpy()
    is_empty = pa.array(bounds[1:] == bounds[:-1])
    arrays = arrow_batch.columns
    arrays[place] = pa.ListArray.from_arrays(pa.array(bounds), lists.values, type=lists.type, mask=is_empty)
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_batch.schema)
