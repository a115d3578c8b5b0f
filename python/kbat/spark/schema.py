"""The columns of the Spark data source, and their selection by a schema.

The first seven columns of records are those of Spark's own Kafka source, with its names and types; `includeHeaders`
adds `headers`, as in that source. The option `columns` or a schema can name any others. The option `view` selects one
row per batch or segment, with different columns. A name matches in any case and with or without underscores:
`baseOffset` and `base_offset` name the same column, and the result keeps the requested spelling.
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
    DoubleType,
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
    """A column: its name in Spark, its name in `kbat.scan`, its type in Spark and its description."""

    name: str
    field: str
    data_type: DataType
    doc: str


def _column(field: str, data_type: DataType, doc: str) -> Column:
    """Return a column whose name in Spark is its name in `kbat.scan` in camel case."""
    first, *others = field.split("_")
    return Column(first + "".join(word.capitalize() for word in others), field, data_type, doc)


COLUMNS = (
    _column("key", BinaryType(), "key of the record"),
    _column("value", BinaryType(), "value of the record"),
    _column("topic", StringType(), "topic, from the directory's name or the option topic; else null"),
    _column(
        "partition",
        IntegerType(),
        "partition, from the directory's name or the option partition; else null",
    ),
    _column("offset", LongType(), "offset of the record"),
    _column(
        "timestamp",
        TimestampType(),
        "timestamp of the record; -1 ms, as in Spark's Kafka source, for records without one (format v0)",
    ),
    _column("timestamp_type", IntegerType(), "0 CreateTime, 1 LogAppendTime, -1 none (format v0)"),
    _column(
        "headers",
        HEADERS,
        "record headers, in their order; null for a record without headers, as in Spark's Kafka source",
    ),
    _column(
        "base_offset",
        LongType(),
        "base offset of the record's batch; for compressed sets of format v0 and v1, offset of the first message",
    ),
    _column("position", LongType(), "byte position of the record's batch in its file"),
    _column("partition_leader_epoch", IntegerType(), "leader epoch of the batch; -1 for none"),
    _column("producer_id", LongType(), "producer id of the batch; -1 for none"),
    _column("producer_epoch", ShortType(), "producer epoch of the batch; -1 for none"),
    _column("sequence", IntegerType(), "sequence of the record; -1 for none"),
    _column("is_transactional", BooleanType(), "whether the batch belongs to a transaction"),
    _column("compression", StringType(), "codec of the batch: none, gzip, snappy, lz4 or zstd"),
    _column("magic", ByteType(), "message format of the batch: 0, 1 or 2"),
    _column(
        "batch_size",
        IntegerType(),
        "bytes of the record's batch as stored, its 12 bytes of log overhead included",
    ),
    _column("segment", StringType(), "path of the file"),
)


BATCH_COLUMNS = (
    _column("topic", StringType(), "topic, from the directory's name or the option topic; else null"),
    _column("partition", IntegerType(), "partition, from the directory's name or the option partition; else null"),
    _column("segment", StringType(), "path of the file"),
    _column("position", LongType(), "byte position in the file"),
    _column("size", IntegerType(), "bytes as stored, the 12 bytes of log overhead included"),
    _column("base_offset", LongType(), "base offset; null for compressed sets of format v0 and v1"),
    _column("last_offset", LongType(), "last offset"),
    _column("record_count", IntegerType(), "number of records in the header; null for compressed v0 and v1 sets"),
    _column("magic", ByteType(), "message format: 0, 1 or 2"),
    _column("compression", StringType(), "codec: none, gzip, snappy, lz4 or zstd; unknown for the codec bits 5 to 7"),
    _column("stored_size", IntegerType(), "bytes after the header: the records as stored"),
    _column("timestamp_type", StringType(), "CreateTime or LogAppendTime; null in format v0"),
    _column("base_timestamp", TimestampType(), "base timestamp; null for none"),
    _column("max_timestamp", TimestampType(), "largest timestamp of the records; null for none"),
    _column("delete_horizon", TimestampType(), "when compaction may drop its tombstones or markers; null if not set"),
    _column("partition_leader_epoch", IntegerType(), "leader epoch; -1 for none"),
    _column("producer_id", LongType(), "producer id; -1 for none"),
    _column("producer_epoch", ShortType(), "producer epoch; -1 for none"),
    _column("base_sequence", IntegerType(), "sequence of the first record; -1 for none"),
    _column("last_sequence", IntegerType(), "sequence of the last record; -1 for none"),
    _column("is_transactional", BooleanType(), "whether it belongs to a transaction"),
    _column("is_control", BooleanType(), "whether it holds control records"),
    _column("crc", LongType(), "the stored checksum"),
    _column("crc_ok", BooleanType(), "whether the checksum is correct; reads the complete batch"),
    _column("uncompressed_size", LongType(), "bytes of the records after decompression; decompresses the batch"),
    _column("ratio", DoubleType(), "uncompressedSize divided by storedSize; decompresses the batch"),
)

SEGMENT_COLUMNS = (
    _column("topic", StringType(), "topic, from the directory's name or the option topic; else null"),
    _column("partition", IntegerType(), "partition, from the directory's name or the option partition; else null"),
    _column("segment", StringType(), "path of the file"),
    _column("state", StringType(), "live, deleted, cleaned or swap; null for a file not named like a segment"),
    _column("base_offset", LongType(), "base offset, from the name"),
    _column("end_offset", LongType(), "the offset after the last batch"),
    _column("size", LongType(), "bytes of the .log file"),
    _column("first_timestamp", TimestampType(), "base timestamp of the first batch; null for none"),
    _column("largest_timestamp", TimestampType(), "largest timestamp; null for none"),
    _column("index_size", LongType(), "bytes of the .index file; null if there is none"),
    _column("time_index_size", LongType(), "bytes of the .timeindex file; null if there is none"),
    _column("txn_index_size", LongType(), "bytes of the .txnindex file; null if there is none"),
    _column("has_snapshot", BooleanType(), "whether there is a producer snapshot for the base offset"),
    _column("batch_count", LongType(), "number of batches; reads every header"),
)

_ERROR_FIELDS = ("kind", "message", "path"), ("position", "length", "first_offset", "last_offset")
_ERROR = StructType(
    [StructField(name, StringType()) for name in _ERROR_FIELDS[0]]
    + [StructField(name, LongType()) for name in _ERROR_FIELDS[1]]
)
ERROR_COLUMN = _column(
    "error",
    _ERROR,
    "with onCorrupt=report: the corruption, and the bytes and offsets that it affects; null in other rows",
)

# The columns of each view, and how many of them are read by default: those that are cheap.
VIEWS = {"records": (COLUMNS, 7), "batches": (BATCH_COLUMNS, 23), "segments": (SEGMENT_COLUMNS, 13)}


def default_columns(view: str) -> tuple[str, ...]:
    """Return the names of the default columns; for records, those of Spark's Kafka source."""
    columns, count = VIEWS[view]
    return tuple(column.name for column in columns[:count])


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def column_named(name: str, view: str = "records") -> Column:
    """Return the column with a name.

    Raises `ValueError`, naming every column, if there is none.
    """
    columns, _ = VIEWS[view]
    for column in (*columns, ERROR_COLUMN):
        if _plain(column.name) == _plain(name):
            return column
    names = ", ".join(column.name for column in columns)
    message = f"kbat: there is no column {name!r}; choose among {names}"
    raise ValueError(message)


def schema_of(names: Iterable[str], view: str = "records") -> StructType:
    """Return the Spark schema of some columns with the requested names; all are nullable."""
    return StructType([StructField(name, column_named(name, view).data_type) for name in names])


def columns_of(schema: StructType, view: str = "records") -> tuple[Column, ...]:
    """Return the columns of a schema, which may be the user's.

    Raises `ValueError` for a schema without columns, and for a column that does not exist, is repeated, or has another
    type in the source.
    """
    columns = tuple(_column_of(field, view) for field in schema.fields)
    if not columns:
        message = "kbat: the schema has no column; the cheapest column for counting rows is offset"
        raise ValueError(message)
    for place, column in enumerate(columns):
        if column in columns[:place]:
            message = f"kbat: the schema names the column {column.name} twice"
            raise ValueError(message)
    return columns


def _column_of(field: StructField, view: str) -> Column:
    column = column_named(field.name, view)
    if field.dataType != column.data_type:
        right, wrong = column.data_type.simpleString(), field.dataType.simpleString()
        message = (
            f"kbat: column {field.name} has type {right}, but the schema declares {wrong}; "
            f"declare it as {right} and convert afterwards: CAST({field.name} AS {wrong.upper()})"
        )
        raise ValueError(message)
    if not field.nullable:
        message = (
            f"kbat: the schema declares column {field.name} NOT NULL, but every column is nullable: remove NOT NULL"
        )
        raise ValueError(message)
    return column
