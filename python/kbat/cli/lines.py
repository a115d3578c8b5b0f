"""Records as lines, for `kbat cat`: JSON for programs, text for people."""

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kbat.cli import output

if TYPE_CHECKING:
    Headers = list[dict[str, Any]]
    Record = tuple[str | None, int | None, int, int | None, int | None, str | bytes | None, str | bytes | None, Headers]

COLUMNS = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
_TIMESTAMP_TYPES = {0: "CreateTime", 1: "LogAppendTime"}


def json_lines(batch: pa.RecordBatch) -> list[str]:
    """Return one line of JSON per row of an Arrow batch."""
    # the parts are joined here, not by `json.dumps`, which takes three times as long for a complete record
    types: defaultdict[int | None, str] = defaultdict(lambda: "null")
    types.update((value, json.dumps(name)) for value, name in _TIMESTAMP_TYPES.items())
    starts: dict[tuple[str | None, int | None], str] = {}
    lines = []
    for topic, partition, offset, timestamp, timestamp_type, key, value, headers in _records(batch):
        start = starts.get((topic, partition))
        if start is None:
            start = f'{{"topic": {json.dumps(topic, ensure_ascii=False)}, "partition": {json.dumps(partition)}'
            starts[topic, partition] = start
        shown = ", ".join([f"[{quoted(one['key'])}, {_json(one['value'])}]" for one in headers]) if headers else ""
        time = "null" if timestamp is None else timestamp
        lines.append(
            f'{start}, "offset": {offset}, "timestamp": {time}, '
            f'"timestamp_type": {types[timestamp_type]}, "key": {_json(key)}, "value": {_json(value)}, '
            f'"headers": [{shown}]}}'
        )
    return _with_errors(batch, lines, lambda error: json.dumps({"error": error}, ensure_ascii=False))


def text_lines(batch: pa.RecordBatch) -> list[str]:
    """Return one line for people per row of an Arrow batch."""
    lines = []
    for topic, partition, offset, timestamp, _, key, value, headers in _records(batch):
        number = "?" if partition is None else partition
        name = f"{output.text(topic)}-{number}"
        shown = "".join([f"  {output.text(one['key'])}={_text(one['value'])}" for one in headers or ()])
        lines.append(f"{name}@{offset}  {output.time_text(timestamp)}  {_text(key)}  {_text(value)}{shown}")
    return _with_errors(batch, lines, lambda error: f"-- corruption: {output.text(error['message'])}")


def errors(batch: pa.RecordBatch) -> list[dict[str, Any] | None]:
    """Return the `error` of each row, None for a record; an empty list if all rows are records."""
    index = batch.schema.get_field_index("error")
    if index < 0 or batch.column(index).null_count == batch.num_rows:
        return []
    return batch.column(index).to_pylist()


def _with_errors(batch: pa.RecordBatch, lines: list[str], shown: Callable[[dict[str, Any]], str]) -> list[str]:
    for index, error in enumerate(errors(batch)):
        if error is not None:
            lines[index] = shown(error)
    return lines


def _records(batch: pa.RecordBatch) -> "Iterator[Record]":
    columns = {name: batch.column(name) for name in COLUMNS}
    # as numbers, because times may be outside the range of Python's datetime
    columns["timestamp"] = columns["timestamp"].cast(pa.int64())
    headers: Any = columns.pop("headers")
    values = [_as_text(column).to_pylist() for column in columns.values()]
    # most logs have no headers, and lists of structs are slow to convert
    all_headers = headers.to_pylist() if len(headers.flatten()) else [None] * len(headers)
    return zip(*values, all_headers, strict=True)


def _as_text(column: Any) -> Any:  # noqa: ANN401 - any array of PyArrow's
    """Return a column of bytes as text if all of it is UTF-8: PyArrow decodes quicker than Python."""
    if not pa.types.is_binary(column.type):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return column


def _json(value: str | bytes | None) -> str:
    if isinstance(value, bytes):
        try:
            return quoted(value.decode())
        except UnicodeDecodeError:
            return f'{{"base64": "{base64.b64encode(value).decode()}"}}'
    return "null" if value is None else quoted(value)


def _text(value: str | bytes | None) -> str:
    """Return a key or value as quoted text or hexadecimal, so that null, empty and a dash differ."""
    if value is None:
        return "null"
    try:
        return f'"{output.text(value.decode() if isinstance(value, bytes) else value)}"'
    except UnicodeDecodeError as error:
        return f"0x{bytes(error.object).hex()}"
