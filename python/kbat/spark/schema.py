"""The columns of the Spark data source, and how a schema chooses among them.

The first seven are those of Spark's own Kafka source, with its names and types; `headers` comes with `includeHeaders`,
as there. The rest come when the option `columns` or a schema names them. A name is understood in any case and with or
without underscores, so that both `baseOffset` and `base_offset` name one column, and the column keeps the spelling it
was asked by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


@dataclass(frozen=True)
class Column:
    """A column: its name in Spark, its name in `kbat.scan`, its type in Spark and what it holds."""

    name: str
    field: str
    data_type: DataType
    doc: str


COLUMNS = (
    Column("key", "key", BinaryType(), "key of the record"),
    Column("value", "value", BinaryType(), "value of the record"),
    Column("topic", "topic", StringType(), "topic, from the directory's name or the option topic; else null"),
    Column(
        "partition",
        "partition",
        IntegerType(),
        "partition, from the directory's name or the option partition; else null",
    ),
    Column("offset", "offset", LongType(), "offset of the record"),
    Column("timestamp", "timestamp", TimestampType(), "timestamp of the record; -1 ms where format v0 has none"),
    Column("timestampType", "timestamp_type", IntegerType(), "0 CreateTime, 1 LogAppendTime, -1 none (format v0)"),
    Column("headers", "headers", HEADERS, "record headers, in their order; empty where there are none"),
    Column(
        "baseOffset",
        "base_offset",
        LongType(),
        "base offset of the record's batch; in compressed sets of format v0 and v1 that of its first message",
    ),
    Column("position", "position", LongType(), "byte position of the record's batch in its file"),
    Column("partitionLeaderEpoch", "partition_leader_epoch", IntegerType(), "leader epoch of the batch; -1 for none"),
    Column("producerId", "producer_id", LongType(), "producer id of the batch; -1 for none"),
    Column("producerEpoch", "producer_epoch", ShortType(), "producer epoch of the batch; -1 for none"),
    Column("sequence", "sequence", IntegerType(), "sequence of the record; -1 for none"),
    Column("isTransactional", "is_transactional", BooleanType(), "whether the batch belongs to a transaction"),
    Column("compression", "compression", StringType(), "codec of the batch: none, gzip, snappy, lz4 or zstd"),
    Column("magic", "magic", ByteType(), "message format of the batch: 0, 1 or 2"),
    Column(
        "batchSize",
        "batch_size",
        IntegerType(),
        "bytes of the record's batch as stored, its 12 bytes of log overhead included",
    ),
    Column("segment", "segment", StringType(), "path of the file"),
)

KAFKA_COLUMNS = tuple(column.name for column in COLUMNS[:7])


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


_BY_PLAIN_NAME = {_plain(column.name): column for column in COLUMNS}


def column_named(name: str) -> Column:
    """Return the column that `name` means.

    Raises `ValueError`, naming every column, if there is none.
    """
    try:
        return _BY_PLAIN_NAME[_plain(name)]
    except KeyError:
        names = ", ".join(column.name for column in COLUMNS)
        message = f"kbat: there is no column {name!r}; there are {names}"
        raise ValueError(message) from None


def schema_of(names: Iterable[str]) -> StructType:
    """Return the Spark schema of the columns named, under those names, all nullable."""
    return StructType([StructField(name, column_named(name).data_type) for name in names])


def columns_of(schema: StructType) -> tuple[Column, ...]:
    """Return the columns that a schema, maybe a user's own, asks for.

    Raises `ValueError` for a schema of no column, a column that does not exist, stands twice, or has another type here.
    """
    columns = tuple(_column_of(field) for field in schema.fields)
    if not columns:
        message = "kbat: the schema has no column; the cheapest one to count rows by is offset"
        raise ValueError(message)
    for place, column in enumerate(columns):
        if column in columns[:place]:
            message = f"kbat: the schema names the column {column.name} twice"
            raise ValueError(message)
    return columns


def _column_of(field: StructField) -> Column:
    column = column_named(field.name)
    if field.dataType != column.data_type:
        right, wrong = column.data_type.simpleString(), field.dataType.simpleString()
        message = (
            f"kbat: column {field.name} is {right}, and the schema says {wrong}; "
            f"declare it as {right} and convert afterwards: CAST({field.name} AS {wrong.upper()})"
        )
        raise ValueError(message)
    if not field.nullable:
        message = (
            f"kbat: the schema says that column {field.name} is NOT NULL; "
            "every column is nullable here: leave NOT NULL out"
        )
        raise ValueError(message)
    return column
