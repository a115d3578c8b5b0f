"""The data source: the classes that Spark calls on the driver and in the tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)

from kbat.spark.filters import conditions
from kbat.spark.jvm import check_engine
from kbat.spark.options import ReadOptions, parse_options
from kbat.spark.plan import ReadPartition, plan
from kbat.spark.rows import RowReader
from kbat.spark.schema import schema_of
from kbat.spark.shallow import shallow
from kbat.spark.stream import KbatStreamReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kbat.spark.stores import Pairs


# Spark reads at least one partition.
NOTHING = ReadPartition(b"")


class KbatDataSource(DataSource):
    """`spark.read.format("kbat")`: the records of log segments, with the columns of Spark's Kafka source.

    ```python
    spark.read.format("kbat").load("/var/lib/kafka/data")
    spark.read.format("kbat").schema("offset bigint, value binary").load("/backup/orders-0")
    spark.read.format("kbat").option("storage.endpoint", "https://minio:9000").load("s3://bucket/prefix")
    ```
    """

    # The session's settings of S3, as `kbat.spark.register` found them; the process that plans a read has no session.
    session_storage: Pairs = ()
    # Whether this was pickled. Spark starts a micro-batch with a new source, and ends it with one that was pickled.
    is_restored = False

    @classmethod
    def name(cls) -> str:
        """Return the name of this source for `format`."""
        return "kbat"

    @shallow
    def schema(self) -> StructType:
        """Return the schema of a read for which the user sets none."""
        options = self._parsed()
        return schema_of(options.column_names, options.view)

    @shallow
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a schema's columns."""
        return KbatReader(schema, self._parsed())

    @shallow
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 -- Spark's signature
        """Return the writer of rows with a schema's columns."""
        from kbat.spark.writer import KbatWriter  # noqa: PLC0415 -- most jobs only read

        return KbatWriter(schema, self.options, overwrite=overwrite)

    @shallow
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 -- Spark's name
        """Return the reader of a stream with a schema's columns."""
        return KbatStreamReader(schema, self._parsed())

    @shallow
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, N802 -- Spark's signature
        """Return the writer of a micro-batch with a schema's columns."""
        from kbat.spark.stream_writer import KbatStreamWriter  # noqa: PLC0415 -- most jobs only read

        writer = KbatStreamWriter(schema, self.options, overwrite=overwrite)
        if not self.is_restored:
            writer.start()
        return writer

    def __getstate__(self) -> dict[str, object]:
        """Pickle for the processes that plan a read, or end a micro-batch."""
        return {**self.__dict__, "is_restored": True}

    def _parsed(self) -> ReadOptions:
        check_engine(self.options)
        return parse_options(self.options, self.session_storage)


class KbatReader(DataSourceReader):
    """Plans the tasks on the driver and reads in each of them. It is pickled."""

    def __init__(self, schema: StructType, options: ReadOptions) -> None:
        """Check schema and options. Raises `ValueError`."""
        options.check_batch()
        self.rows = RowReader.of(options, schema)
        self.options = options
        self.filters: list[list[str]] = []

    @shallow
    def partitions(self) -> list[ReadPartition]:
        """Return the tasks."""
        return plan(self.options, self.rows.fields, self.filters) or [NOTHING]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the Arrow batches of one task, straight from Rust. Raises the errors of `kbat.scan`."""
        if isinstance(partition, ReadPartition) and partition != NOTHING:
            yield from self.rows.read(partition)


class FilteringDataSource(KbatDataSource):
    """The source that accepts filters, for sessions that push them down; `register` explains the risk."""

    @shallow
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a schema's columns."""
        return FilteringReader(schema, self._parsed())


class FilteringReader(KbatReader):
    """A reader that omits rows that the query's filters exclude. Spark still filters all rows.

    Spark refuses to read from a reader with `pushFilters` unless the session pushes filters down to Python, which is
    off by default; so `KbatReader` does not have it.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 -- Spark's name
        """Store the filters, and return all of them, so that Spark applies each."""
        self.filters = conditions(filters)
        return filters
