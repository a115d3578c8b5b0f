"""Records from Parquet files, as `kbat export` and `kbat.write_parquet` write them."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kbat.cli import output
from kbat.cli.json_records import SECONDS, Row, seconds_message
from kbat.cli.location import Location
from kbat.cli.options import MAX_PARTITION
from kbat.cli.record_input import RecordInput, opened

# Names that Parquet columns may have, in the order of `kbat.encode_batches`.
_COLUMNS = ("key", "value", "timestamp", "headers", "offset")
_NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
_ROWS = 65_536
# The shortest integers that can be a time in seconds, in bits.
_SECONDS_BITS = 32
# Kafka's numbers, which `kbat.write_parquet` writes, and the texts of `kbat cat`.
_NO_TYPE = -1
_TIMESTAMP_TYPES = {0: "CreateTime", 1: "LogAppendTime", "CreateTime": "CreateTime", "LogAppendTime": "LogAppendTime"}


class Piece(NamedTuple):
    """Adjacent records of one partition."""

    topic: str | None
    partition: int | None
    #: Number of its first row in the file, from 1.
    first_row: int
    batch: pa.RecordBatch


def parquet_pieces(file: Location, root: RecordInput) -> Iterator[Piece]:
    """Yield the records of a Parquet file below a directory, with one topic and one partition at a time.

    Raises:
        ValueError: The file is not Parquet, or has no values or no timestamps.
    """
    named = _of_directories(file, root)
    try:
        with opened(file) as stream, pq.ParquetFile(stream) as parquet:
            names = parquet.schema_arrow.names
            for name, hint in (("value", ""), ("timestamp", "; add it, with nulls for records without a timestamp")):
                if name not in names:
                    message = f"{file} has no column {name}; its columns are {', '.join(names)}{hint}"
                    raise ValueError(message)
            first_row = 1
            wanted = [one for one in (*_COLUMNS, "topic", "partition", "timestamp_type") if one in names]
            for batch in parquet.iter_batches(_ROWS, columns=wanted):
                yield from _runs(_plain_topic(batch), named, first_row)
                first_row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        message = f"{file} can't be read as Parquet: {' '.join(str(error).split())}"
        raise ValueError(message) from error


def _of_directories(file: Location, root: RecordInput) -> dict[str, str | None]:
    """Return the columns that the names of directories have, such as `topic=orders`."""
    parts = root.parts(file)[:-1]
    found = (part.partition("=") for part in parts if "=" in part)
    return {unquote(name): None if value == _NULL_DIRECTORY else unquote(value) for name, _, value in found}


def _runs(batch: pa.RecordBatch, named: dict[str, str | None], first_row: int) -> Iterator[Piece]:
    """Yield the rows of a batch, divided where the topic or the partition changes."""
    names = batch.schema.names
    columns: list[list[Any]] = [
        batch.column(name).to_pylist() if name in names else [named.get(name)] * batch.num_rows
        for name in ("topic", "partition")
    ]
    begin = 0
    rows = list(zip(*columns, strict=True))
    for row in range(1, len(rows) + 1):
        if row == len(rows) or rows[row] != rows[begin]:
            topic, partition = rows[begin]
            number = _partition_of(partition, first_row + begin)
            yield Piece(topic, number, first_row + begin, batch.slice(begin, row - begin))
            begin = row


def _plain_topic(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with topics as text, which other programs may store as binary."""
    place = batch.schema.get_field_index("topic")
    if place < 0 or batch.column(place).type not in (pa.binary(), pa.large_binary()):
        return batch
    return batch.set_column(place, "topic", batch.column(place).cast(pa.string()))


def _partition_of(value: Any, row: int) -> int | None:  # noqa: ANN401 - of any column
    """Return the number of a partition; null for none. Pandas stores whole numbers with nulls as floats."""
    if value is None or value != value:  # noqa: PLR0124 - NaN
        return None
    if isinstance(value, str):
        is_whole = value.isascii() and value.isdigit()
    else:
        is_whole = isinstance(value, int | float | Decimal) and not isinstance(value, bool) and value == value // 1
    if not is_whole or not 0 <= int(value) <= MAX_PARTITION:
        message = f"row {row}: partition {value!r} is not a whole number from 0 to {MAX_PARTITION}"
        raise ValueError(message)
    return int(value)


def first_offset(piece: Piece) -> int | None:
    """Return the offset of the first record, None if it is the next one."""
    if "offset" not in piece.batch.schema.names:
        return None
    found: int | None = piece.batch.column("offset")[0].as_py()
    return found


def check_timestamps(piece: Piece) -> None:
    """Refuse numbers that look like seconds instead of milliseconds. Columns of times have a unit.

    Raises:
        ValueError: There is such a number. The message has the number of the row.
    """
    column = piece.batch.column("timestamp")
    if not pa.types.is_integer(column.type) or column.type.bit_width < _SECONDS_BITS:
        return
    start, stop = (pa.scalar(one, column.type) for one in (SECONDS.start, SECONDS.stop))
    is_seconds = pc.and_(pc.greater_equal(column, start), pc.less(column, stop))
    row = pc.index(is_seconds, value=True).as_py()
    if row >= 0:
        message = f"row {piece.first_row + row}: {seconds_message(column[row].as_py())}"
        raise ValueError(message)


def is_plain(batch: pa.RecordBatch) -> bool:
    """Return whether all records have timestamps of the type CreateTime, or types that are unknown."""
    if "timestamp_type" not in batch.schema.names:
        return True
    column = batch.column("timestamp_type")
    if pa.types.is_nested(column.type):
        return False
    plain = ("CreateTime",) if _is_text(column.type) else (None, 0)
    return all(one in plain for one in column.unique().to_pylist())


def _is_text(kind: pa.DataType) -> bool:
    """Return whether timestamp types are texts, of which a null may be that of message format 0, as in JSON lines."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def encodable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns that `kbat.encode_batches` reads."""
    kept = batch.select([name for name in _COLUMNS if name in batch.schema.names])
    place = kept.schema.get_field_index("offset")
    if place < 0 or not pa.types.is_integer(kept.column(place).type):
        return kept
    return kept.set_column(place, "offset", kept.column(place).cast(pa.int64()))


def rows_of(piece: Piece) -> Iterator[Row]:
    """Yield records one by one.

    Raises:
        ValueError: A timestamp type is unknown. The message has the number of the row.
    """
    batch = piece.batch
    names = batch.schema.names
    columns: dict[str, list[Any]] = {}
    for name in (*_COLUMNS, "timestamp_type"):
        column = batch.column(name) if name in names else pa.nulls(batch.num_rows)
        if name == "timestamp" and pa.types.is_timestamp(column.type):
            column = _milliseconds(column)
        elif name in {"key", "value"}:
            column = column.cast(pa.binary())
        columns[name] = column.to_pylist()
    is_text = "timestamp_type" in names and _is_text(batch.column("timestamp_type").type)
    records = zip(*columns.values(), strict=True)
    for number, (key, value, timestamp, headers, offset, kind) in enumerate(records, piece.first_row):
        pairs = [_header_of(one) for one in headers or ()]
        time = output.NO_TIMESTAMP if timestamp is None else timestamp
        try:
            named = _type_of(kind, time, is_text=is_text)
        except ValueError as error:
            message = f"row {number}: {error}"
            raise ValueError(message) from None
        yield Row(piece.topic, piece.partition, offset, time, named, key, value, pairs)


def _milliseconds(column: "pa.Array[Any]") -> "pa.Array[Any]":
    """Return timestamps as whole milliseconds, rounded down as `kbat.encode_batches` does."""
    per_unit = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}
    times, parts = per_unit[column.type.unit]
    values = column.cast(pa.int64()).to_pylist()
    return pa.array([None if one is None else one * times // parts for one in values], pa.int64())


def _header_of(pair: Any) -> tuple[Any, Any]:  # noqa: ANN401 - a struct, or an entry of a map
    """Return key and value of a header: by their names, or by position if neither has its name."""
    if isinstance(pair, dict):
        key, value = (pair["key"], pair["value"]) if {"key", "value"} <= pair.keys() else pair.values()
    else:
        key, value = pair
    return key.decode() if isinstance(key, bytes) else key, value.encode() if isinstance(value, str) else value


def _type_of(kind: Any, timestamp: int, *, is_text: bool) -> str | None:  # noqa: ANN401 - of any column
    """Return the timestamp type of a record; None for one of message format 0."""
    if kind is None:
        return None if is_text and timestamp == output.NO_TIMESTAMP else "CreateTime"
    if kind == _NO_TYPE and timestamp == output.NO_TIMESTAMP:
        return None
    if isinstance(kind, str | int | float) and kind in _TIMESTAMP_TYPES:
        return _TIMESTAMP_TYPES[kind]
    if kind == _NO_TYPE:
        message = f"timestamp_type is -1, which is for records without a timestamp, but the timestamp is {timestamp}"
        raise ValueError(message)
    message = f'timestamp_type is {kind!r}; it must be 0 or "CreateTime", 1 or "LogAppendTime", -1 or null'
    raise ValueError(message)
