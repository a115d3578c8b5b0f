"""The SQL functions that `register` defines.

```sql
SELECT topic, inline(kbat_decode(value)) FROM responses
SELECT topic, partition, kbat_encode(array_sort(collect_list(struct(offset, timestamp, key, value))), 'zstd')
FROM events GROUP BY topic, partition
```

They are inverses of each other; records are an array of structs. In a session with kbat's jar, the functions are those
of the jar, which `spark.sql.extensions=kbat.Extensions` also registers. In any other, they are those of this module,
which process one row at a time: `kbat.spark.decode` and `encode` are several times faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row, functions
from pyspark.sql.types import ArrayType, BinaryType

import kbat
from kbat.spark.encoding import ARROW_FIELDS, RECORD_COLUMNS, check_case
from kbat.spark.jvm import register_in_jvm, runs_in_jvm
from kbat.spark.rows import null_headers
from kbat.spark.schema import column_named, schema_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

_COLUMNS = ("offset", "timestamp", "timestampType", "key", "value", "headers")
_FIELDS = [column_named(name).field for name in _COLUMNS]


def register_functions(spark: SparkSession) -> None:
    """Register `kbat_decode(batches)`, an array of records, and `kbat_encode(records[, compression])`, its inverse."""
    if runs_in_jvm(spark):
        register_in_jvm(spark)
        return
    records = ArrayType(schema_of(_COLUMNS))
    if hasattr(functions, "arrow_udf"):
        decode, encode = functions.arrow_udf(_decode, records), functions.arrow_udf(_encode, BinaryType())
    else:  # Spark 4.0
        decode, encode = functions.udf(_decode_one, records), functions.udf(encode_one, BinaryType())
    spark.udf.register("kbat_decode", decode)
    spark.udf.register("kbat_encode", encode)


def _decode(column: pa.Array) -> pa.Array:  # type: ignore[type-arg]  # Spark reads the hints
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        raise ValueError(_takes_bytes(column.type))
    parts = [_records_of(value.as_buffer()) if value.is_valid else None for value in column]
    counts = [0 if part is None else len(part) for part in parts]
    bounds = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    there = [part for part in parts if part is not None] or [_records_of(b"")]
    return pa.ListArray.from_arrays(bounds, pa.concat_arrays(there), mask=pa.array([part is None for part in parts]))


def _records_of(data: Any) -> pa.StructArray:  # noqa: ANN401 -- a buffer
    table = kbat.scan(data, columns=_FIELDS, timestamp_unit="us").to_pyarrow()
    columns = [column.combine_chunks() for column in table.columns]
    records = null_headers(pa.RecordBatch.from_arrays(columns, names=_FIELDS))
    return pa.StructArray.from_arrays(records.columns, names=list(_COLUMNS))


def _encode(column: pa.Array, compression: pa.Array = None) -> pa.Array:  # type: ignore[type-arg, assignment]  # Spark reads the hints, and does not support "| None"
    if not (pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type)):
        raise ValueError(_takes_records(column.type))
    codecs = [None] * len(column) if compression is None else compression.to_pylist()  # type: ignore[redundant-expr]
    batches = [
        _batches_of(records.values, codec) if records.is_valid else None
        for records, codec in zip(column, codecs, strict=True)
    ]
    return pa.array(batches, pa.binary())


def _batches_of(records: Any, compression: Any) -> bytes:  # noqa: ANN401 -- an array of structs, a word
    check_case((field.name for field in records.type), RECORD_COLUMNS)
    if records.null_count:
        raise ValueError(_null_record(records.is_null().to_pylist().index(True)))
    return kbat.encode(pa.RecordBatch.from_struct_array(records), compression=compression or "none", timestamp=-1)


def _takes_bytes(given: object) -> str:
    return f"kbat_decode takes a binary column with the bytes of record batches, not {given}"


def _takes_records(given: object) -> str:
    fields = ", ".join(RECORD_COLUMNS)
    return f"kbat_encode takes an array of structs whose fields are some of {fields}, not {given}"


def _null_record(place: int) -> str:
    return f"kbat_encode: element {place} of an array of records is null; remove it, or use a struct of nulls"


def _decode_one(data: bytes | None) -> list[Sequence[Any]] | None:
    if data is None:
        return None
    if not isinstance(data, bytes | bytearray):
        raise ValueError(_takes_bytes(type(data).__name__))  # noqa: TRY004 -- as of the vectorised function
    rows: list[Any] = pa.RecordBatch.from_struct_array(_records_of(data)).to_pylist()
    return [tuple(row[name] for name in _COLUMNS) for row in rows]


def encode_one(records: Any, compression: str | None = None) -> bytes | None:  # noqa: ANN401 -- a list of rows
    """Encode an array of records as Spark 4.0 passes it: `kbat_encode` for one row."""
    if records is None:
        return None
    if not isinstance(records, list):
        raise ValueError(_takes_records(type(records).__name__))  # noqa: TRY004 -- as of the vectorised function
    if not records:
        return b""
    if None in records:
        raise ValueError(_null_record(records.index(None)))
    if not isinstance(records[0], Row):
        raise ValueError(_takes_records(f"an array of {type(records[0]).__name__}"))  # noqa: TRY004 -- as of the vectorised function
    rows = [record.asDict(recursive=True) for record in records]
    check_case(rows[0], RECORD_COLUMNS)  # before other names are dropped
    fields = [field for field in ARROW_FIELDS if field.name in rows[0]]
    return _batches_of(pa.array(rows, pa.struct(fields)), compression)
