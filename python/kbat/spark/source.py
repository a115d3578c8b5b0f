"""The data source itself: what Spark calls, on the driver and in the tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)

from kbat.spark.filters import row_filter
from kbat.spark.options import ReadOptions, parse_options
from kbat.spark.plan import ReadPartition, plan
from kbat.spark.rows import RowReader
from kbat.spark.schema import schema_of
from kbat.spark.stream import KbatStreamReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
        options = parse_options(self.options)
        options.warn_ignored()
        return schema_of(options.column_names, options.view)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the columns that `schema` has."""
        return KbatReader(schema, parse_options(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 -- Spark's signature
        """Return the writer of rows that have the columns of `schema`."""
        from kbat.spark.writer import KbatWriter, parse_write_options  # noqa: PLC0415 -- needs numpy and pyarrow

        return KbatWriter(schema, parse_write_options(self.options), overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 -- Spark's name
        """Return the reader of a stream of the columns that `schema` has."""
        return KbatStreamReader(schema, parse_options(self.options))


class KbatReader(DataSourceReader):
    """Plans the tasks on the driver and reads in each of them; pickled in between."""

    def __init__(self, schema: StructType, options: ReadOptions) -> None:
        """Check schema and options. Raises `ValueError` where they ask for something that is not there."""
        options.check_batch()
        self.rows = RowReader.of(options, schema)
        self.options = options
        self.wanted = row_filter((), {})

    def partitions(self) -> list[ReadPartition]:
        """Return the tasks."""
        return plan(self.options, self.wanted)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the Arrow batches of one task, straight from Rust. Raises what `kbat.scan` raises."""
        if isinstance(partition, ReadPartition):
            yield from self.rows.read(partition)


class FilteringDataSource(KbatDataSource):
    """The source that takes filters, for sessions that have them pushed down; see `register` for what that costs."""

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the columns that `schema` has."""
        return FilteringReader(schema, parse_options(self.options))


class FilteringReader(KbatReader):
    """A reader that leaves out what the query's filters can't match. Spark filters the rows all the same.

    Spark refuses every read of a reader with `pushFilters` while it has the pushing down switched off, as it has by
    default; so `KbatReader` has none.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 -- Spark's name
        """Take note of the filters and give all of them back."""
        self.wanted = row_filter(filters, self.rows.fields)
        self.rows = self.rows.within(self.wanted)
        return filters
