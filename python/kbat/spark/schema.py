"""The columns of the Spark data source: names and types in Spark of the core's table of columns.

The first seven columns of records are those of Spark's own Kafka source, with its names and types; `includeHeaders`
adds `headers`, as in that source. The option `columns` or a schema can name any others. The option `view` selects one
row per batch, segment or record of an internal topic, with different columns. A name matches in any case and with or
without underscores: `baseOffset` and `base_offset` name the same column, and the result keeps the requested spelling.
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

from kbat._core import plan as core

if TYPE_CHECKING:
    from collections.abc import Iterable

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

_ERROR_FIELDS = ("kind", "message", "path"), ("position", "length", "first_offset", "last_offset")
_ERROR = StructType(
    [StructField(name, StringType()) for name in _ERROR_FIELDS[0]]
    + [StructField(name, LongType()) for name in _ERROR_FIELDS[1]]
)
_TYPES: dict[str, DataType] = {
    data_type.simpleString(): data_type
    for data_type in (
        BinaryType(),
        BooleanType(),
        ByteType(),
        DoubleType(),
        HEADERS,
        IntegerType(),
        LongType(),
        ShortType(),
        StringType(),
        TimestampType(),
        _ERROR,
    )
}


@dataclass(frozen=True)
class Column:
    """A column: its name in Spark, its name in `kbat.scan`, its type in Spark and its description."""

    name: str
    field: str
    data_type: DataType
    doc: str


def _columns(view: str) -> tuple[tuple[Column, ...], int]:
    columns, count = core.columns(view)
    return tuple(Column(name, field, _TYPES[data_type], doc) for name, field, data_type, doc in columns), count


# The columns of each view, and how many of them are read by default: those that are cheap.
VIEWS = {view: _columns(view) for view in ("records", "batches", "segments", "internal")}
COLUMNS = VIEWS["records"][0]
ERROR_COLUMN = Column("error", "error", _ERROR, core.error_column()[3])


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
