"""`kbat.spark.encode`: encodes rows as record batches.

```
rows ──► repartitioned and sorted by partition ──► runs of rows of one partition ──► batches of each run
```

A run continues from one Arrow batch to the next, so that the size of record batches does not depend on how Spark splits
its rows.

In a session with kbat's jar, the JVM encodes, and no row passes through Python:

```
rows, sorted ──► kbat_struct_bytes: the bytes of a row ──► LogEncoder, in Rust ──► kbat_struct: the columns of a batch
```
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions, types

import kbat.results
from kbat._core import encode as core
from kbat.spark.column_names import listed, map_in_arrow, quoted
from kbat.spark.connect import is_connect
from kbat.spark.jvm import encode_in_jvm, register_in_jvm, runs_in_jvm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

# An Arrow batch ends when it has this many bytes of record batches.
ARROW_LEN = 2 << 20

# The columns that kbat.encode_batches reads.
ARROW_FIELDS: list[pa.Field[Any]] = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("timestamp", pa.timestamp("us", "UTC")),
    pa.field("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    pa.field("offset", pa.int64()),
]
RECORD_COLUMNS = tuple(field.name for field in ARROW_FIELDS)

_BATCH_FIELDS = (
    types.StructField("baseOffset", types.LongType()),
    types.StructField("lastOffset", types.LongType()),
    types.StructField("recordCount", types.IntegerType()),
    types.StructField("batch", types.BinaryType()),
)

_BINARY = "UTF8_BINARY"

# The types whose values can be compared row by row. Fractions are excluded, as NaN is not equal to itself.
_KEY_TYPES = (
    types.BinaryType,
    types.BooleanType,
    types.ByteType,
    types.DateType,
    types.DecimalType,
    types.IntegerType,
    types.LongType,
    types.ShortType,
    types.StringType,
    types.TimestampNTZType,
    types.TimestampType,
)


def encode(
    df: DataFrame,
    *,
    by: str | Sequence[str] | None = None,
    order_by: str | Sequence[str] | None = None,
    repartition: bool = True,
    **options: Any,  # noqa: ANN401 -- those of kbat.encode_batches
) -> DataFrame:
    """Encode rows as record batches, one row per batch.

    The returned rows have the columns of `by`, and `baseOffset`, `lastOffset`, `recordCount` and the bytes `batch`. The
    columns of records are those of Spark's Kafka source and sink: `value`, and `key`, `timestamp`, `headers` and
    `offset` if they exist. Without `offset`, offsets of each log count up from `base_offset`, by default 0.

    Args:
        df: The rows.
        by: Columns that identify the log of a record; by default `topic` and `partition`, if they exist. Their types
            are text, binary, whole numbers, decimals, booleans, dates or times.
        order_by: Columns that determine the order in each log; by default `offset`, if it exists. Otherwise the order
            is arbitrary.
        repartition: Whether to group and sort the rows of each log. Set it to False if they are: sorted by `by` in each
            Spark partition, and no log in two partitions. Spark can't sort a stream: encode each of its batches in
            `foreachBatch`, unless its rows are sorted already.
        options: The options of `kbat.encode_batches`: `compression`, `level`, `batch_bytes`, `timestamp` and more.

    Raises:
        ValueError: An unknown column, a wrong value of an option, a column of `by` whose type can't identify a log, or
            a stream that would have to be sorted.
        TypeError: An unknown option.

    Example:
        >>> kbat.spark.encode(df, by=["topic", "partition"], order_by=["timestamp"], compression="zstd")
    """
    keys = [name for name in ("topic", "partition") if name in df.columns] if by is None else listed(by, "by")
    order = [name for name in ("offset",) if name in df.columns] if order_by is None else listed(order_by, "order_by")
    records = [name for name in RECORD_COLUMNS if name in df.columns]
    check_case(df.columns, RECORD_COLUMNS if by is not None else (*RECORD_COLUMNS, "topic", "partition"))
    missing = [name for name in (*keys, *order, "value") if name not in df.columns]
    if missing:
        message = f"kbat: the DataFrame has no column {missing[0]}; it has {', '.join(df.columns)}"
        raise ValueError(message)
    _check_keys(df, keys)
    if repartition and (keys or order) and df.isStreaming:
        message = "kbat: Spark can't sort a stream: call encode in foreachBatch, or if it is sorted, repartition=False"
        raise ValueError(message)
    # checks the options
    nothing = kbat.encode_batches(pa.schema(ARROW_FIELDS).empty_table().select(records), **options)
    if repartition:
        df = df.repartition(*map(quoted, keys)) if keys else df.coalesce(1)
        df = df.sortWithinPartitions(*map(quoted, (*keys, *order))) if keys or order else df
    if not is_connect(df.sparkSession) and runs_in_jvm(df.sparkSession):
        return _encode_in_jvm(df, keys, records, core.encode_settings(nothing))
    schema = types.StructType([*(df.schema[name] for name in keys), *_BATCH_FIELDS])
    encoder = Encoder(tuple(keys), tuple(records), tuple(options.items()))
    return map_in_arrow(df, tuple(dict.fromkeys([*keys, *records])), encoder.encode, schema)


def _encode_in_jvm(df: DataFrame, keys: Sequence[str], records: Sequence[str], settings: str) -> DataFrame:
    """Encode sorted rows with the functions of the jar, which are registered in the session for that."""
    register_in_jvm(df.sparkSession, is_internal=True)
    log = types.StructField("log", types.StructType([df.schema[name] for name in keys]), nullable=False)
    fields = types.StructType([log, *(df.schema[name] for name in records)]).json()
    of_log = functions.struct(*(functions.col(quoted(name)) for name in keys)).alias("log")
    row = functions.struct(of_log, *(functions.col(quoted(name)) for name in records))
    rows = df.select(functions.call_function("kbat_struct_bytes", row, functions.lit(fields)).alias("row"))
    made = functions.lit(types.StructType([log, *_BATCH_FIELDS]).json())
    batches = encode_in_jvm(rows, fields, settings)
    batches = batches.select(functions.call_function("kbat_struct", functions.col("value"), made).alias("made"))
    return batches.select(
        *(functions.col(f"made.log.{quoted(name)}") for name in keys),
        *(functions.col(f"made.{field.name}") for field in _BATCH_FIELDS),
    )


def check_case(given: Iterable[str], known: Iterable[str]) -> None:
    """Raise `ValueError` for a name that differs only in case from an expected one, as it would be ignored."""
    names = {name.lower(): name for name in known}
    for name in given:
        right = names.get(name.lower(), name)
        if right != name:
            message = f"kbat: column {name}: rename it to {right}"
            raise ValueError(message)


def _check_keys(df: DataFrame, keys: Sequence[str]) -> None:
    made = {field.name.lower() for field in _BATCH_FIELDS}
    taken = [name for name in keys if name.lower() in made]
    if taken:
        message = f"kbat: by={taken[0]!r}: the result has a column of that name already; rename yours"
        raise ValueError(message)
    for name in keys:
        data_type = df.schema[name].dataType
        if not isinstance(data_type, _KEY_TYPES):
            message = f"kbat: by={name!r}: type {data_type.simpleString()} can't identify a log; cast it to string"
            raise ValueError(message)  # noqa: TRY004 -- as for all that the user names
        if getattr(data_type, "collation", _BINARY) != _BINARY:  # sorting by it would mix the rows of two logs
            message = f"kbat: by={name!r}: type {data_type.simpleString()} is not supported; cast it to a plain string"
            raise ValueError(message)


@dataclass(frozen=True)
class Encoder:
    """Encodes runs of rows with equal `keys`."""

    keys: tuple[str, ...]
    records: tuple[str, ...]
    options: tuple[tuple[str, Any], ...]

    def encode(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each record batch."""
        for key, parts in itertools.groupby(runs(batches, self.keys), lambda run: run[0]):
            rows = (part.select(list(self.records)) for _, part in parts)
            first = next(rows)
            reader = pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], rows))
            made = kbat.encode_batches(reader, **dict(self.options))
            try:
                yield from self._packed(key, made)
            except ValueError as error:
                name = self._log_name(key)
                raise ValueError(f"{name}: {error}" if name else str(error)) from None

    def _log_name(self, key: tuple[Any, ...]) -> str:
        """Return the name of a log for messages, as `LogKey` of the JVM engine does."""
        shown = [(name, value) for name, value in zip(self.keys, key, strict=True) if _is_shown(value.type)]
        return ", ".join(f"{name}={_text(value.as_py())}" for name, value in shown)

    def _packed(self, key: tuple[Any, ...], made: Iterable[kbat.results.EncodedBatch]) -> Iterator[pa.RecordBatch]:
        held: list[kbat.results.EncodedBatch] = []
        held_len = 0
        for batch in made:
            held.append(batch)
            held_len += len(batch.bytes)
            if held_len >= ARROW_LEN:
                yield self._rows(key, held)
                held, held_len = [], 0
        if held:
            yield self._rows(key, held)

    def _rows(self, key: tuple[Any, ...], made: Sequence[kbat.results.EncodedBatch]) -> pa.RecordBatch:
        columns = [pa.array([value.as_py()] * len(made), value.type) for value in key]
        columns += [
            pa.array([batch.base_offset for batch in made], pa.int64()),
            pa.array([batch.last_offset for batch in made], pa.int64()),
            pa.array([batch.record_count for batch in made], pa.int32()),
            pa.array([batch.bytes for batch in made], pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, names=[*self.keys, *(field.name for field in _BATCH_FIELDS)])


def _is_shown(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)


def _text(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def runs(batches: Iterable[pa.RecordBatch], keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """Split Arrow batches where a key column changes; yield the key and the rows of each part."""
    for batch in batches:
        if batch.num_rows == 0:
            continue
        columns = [batch.column(batch.schema.get_field_index(name)) for name in keys]
        starts = [0, *(_changes(columns) if columns else [])]
        for start, end in itertools.pairwise([*starts, batch.num_rows]):
            yield tuple(column[start] for column in columns), batch.slice(start, end - start)


def _changes(columns: Sequence[pa.Array[Any]]) -> list[int]:
    """Return the rows at which any column differs from the row before."""
    differs = np.zeros(len(columns[0]) - 1, dtype=bool)
    for column in columns:
        before, after = column.slice(0, len(column) - 1), column.slice(1)
        differs |= pc.not_equal(before, after).fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003 -- pyarrow's
        differs |= pc.not_equal(pc.is_null(before), pc.is_null(after)).to_numpy(zero_copy_only=False)
    return [int(place) + 1 for place in np.flatnonzero(differs)]
