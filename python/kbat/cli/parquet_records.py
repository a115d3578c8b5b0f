"""Records from Parquet files, as `kbat export` and `kbat.write_parquet` write them."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from kbat.cli.json_records import Row
from kbat.cli.location import Location
from kbat.cli.record_input import RecordInput, opened

# Names that Parquet columns may have, in the order of `kbat.encode_batches`.
_COLUMNS = ("key", "value", "timestamp", "headers", "offset")
_NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
_ROWS = 65_536
_TIMESTAMP_TYPES = {None: "CreateTime", -1: None, 0: "CreateTime", 1: "LogAppendTime"}
_CREATE_TIME = (None, 0)


class Piece(NamedTuple):
    """Adjacent records of one partition."""

    topic: str | None
    partition: int | None
    batch: pa.RecordBatch


def parquet_pieces(file: Location, root: RecordInput) -> Iterator[Piece]:
    """Yield the records of a Parquet file below a directory, with one topic and one partition at a time.

    Raises:
        ValueError: The file is not Parquet, or has no values.
    """
    named = _of_directories(file, root)
    try:
        with opened(file) as stream, pq.ParquetFile(stream) as parquet:
            names = parquet.schema_arrow.names
            if "value" not in names:
                message = f"{file} has no column value; its columns are {', '.join(names)}"
                raise ValueError(message)
            wanted = [one for one in (*_COLUMNS, "topic", "partition", "timestamp_type") if one in names]
            for batch in parquet.iter_batches(_ROWS, columns=wanted):
                yield from _runs(batch, named)
    except (pa.ArrowException, OSError) as error:
        message = f"{file} can't be read as Parquet: {' '.join(str(error).split())}"
        raise ValueError(message) from error


def _of_directories(file: Location, root: RecordInput) -> dict[str, str | None]:
    """Return the columns that the names of directories have, such as `topic=orders`."""
    parts = root.parts(file)[:-1]
    found = (part.partition("=") for part in parts if "=" in part)
    return {unquote(name): None if value == _NULL_DIRECTORY else unquote(value) for name, _, value in found}


def _runs(batch: pa.RecordBatch, named: dict[str, str | None]) -> Iterator[Piece]:
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
            yield Piece(topic, None if partition is None else int(partition), batch.slice(begin, row - begin))
            begin = row


def first_offset(piece: Piece) -> int | None:
    """Return the offset of the first record, None if it is the next one."""
    if "offset" not in piece.batch.schema.names:
        return None
    found: int | None = piece.batch.column("offset")[0].as_py()
    return found


def is_plain(batch: pa.RecordBatch) -> bool:
    """Return whether all records have timestamps of the type CreateTime, or types that are unknown."""
    if "timestamp_type" not in batch.schema.names:
        return True
    return all(one in _CREATE_TIME for one in batch.column("timestamp_type").unique().to_pylist())


def encodable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns that `kbat.encode_batches` reads."""
    return batch.select([name for name in _COLUMNS if name in batch.schema.names])


def rows_of(piece: Piece) -> Iterator[Row]:
    """Yield records one by one."""
    batch = piece.batch
    names = batch.schema.names
    columns: dict[str, list[Any]] = {}
    for name in (*_COLUMNS, "timestamp_type"):
        column = batch.column(name) if name in names else pa.nulls(batch.num_rows)
        if name == "timestamp" and pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms", column.type.tz)).cast(pa.int64())
        elif name in {"key", "value"}:
            column = column.cast(pa.binary())
        columns[name] = column.to_pylist()
    for key, value, timestamp, headers, offset, kind in zip(*columns.values(), strict=True):
        pairs = [tuple(one.values()) if isinstance(one, dict) else one for one in headers or ()]
        time = -1 if timestamp is None else timestamp
        yield Row(piece.topic, piece.partition, offset, time, _TIMESTAMP_TYPES[kind], key, value, pairs)
