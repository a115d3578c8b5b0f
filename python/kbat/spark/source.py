"""The data source itself: what Spark calls, on the driver and in the tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

import kbat
from kbat.spark.options import LIMIT_OPTIONS, ReadOptions, parse_options
from kbat.spark.plan import SegmentsPartition, plan
from kbat.spark.schema import columns_of, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType


class KbatDataSource(DataSource):
    """`spark.read.format("kbat")`: the records of log segments, with the columns of Spark's Kafka source.

    ```python
    spark.read.format("kbat").load("/var/lib/kafka/data")
    spark.read.format("kbat").schema("offset bigint, value binary").load("/backup/orders-0")
    ```
    """

    @classmethod
    def name(cls) -> str:
        """Return the name that `format` knows this source by."""
        return "kbat"

    def schema(self) -> StructType:
        """Return the schema of a read that brings none of its own."""
        return schema_of(parse_options(self.options).column_names)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the columns that `schema` has."""
        return KbatReader(schema, parse_options(self.options))


class KbatReader(DataSourceReader):
    """Plans the tasks on the driver and reads in each of them; pickled in between."""

    def __init__(self, schema: StructType, options: ReadOptions) -> None:
        """Check the schema. Raises `ValueError` where it asks for something that is not there."""
        self.fields = [column.field for column in columns_of(schema)]
        self.names = schema.fieldNames()
        self.options = options

    def partitions(self) -> list[SegmentsPartition]:
        """Return the tasks."""
        return plan(self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the Arrow batches of one task, straight from Rust. Raises what `kbat.scan` raises."""
        if not isinstance(partition, SegmentsPartition) or not partition.segments:
            return
        try:
            for arrow_batch in self._scan(partition).to_batches():
                yield arrow_batch.rename_columns(self.names)
        except kbat.KbatError as error:
            _add_advice(error)
            raise

    def _scan(self, partition: SegmentsPartition) -> kbat.Scan:
        options = self.options
        return kbat.scan(
            [segment.path for segment in partition.segments],
            columns=self.fields,
            include_control=options.include_control,
            check_crc=options.check_crc,
            on_corrupt=options.on_corrupt,
            limits=options.limits,
            topic=options.topic,
            partition=options.partition,
            timestamp_unit="us",
        )


def _add_advice(error: kbat.KbatError) -> None:
    """Add to an error, which names file, byte and offset, the option that lets the job go on."""
    if isinstance(error, kbat.CrcError):
        error.add_note("option checkCrc=false reads on past wrong checksums")
    elif isinstance(error, kbat.LimitError):
        error.add_note(f"for files you trust, raise the limit with one of the options {', '.join(LIMIT_OPTIONS)}")
