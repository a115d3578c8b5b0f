"""Records from JSON lines, as `kbat cat` prints them."""

import base64
import binascii
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from kbat.cli import output
from kbat.cli.options import MAX, MAX_PARTITION

# Longer lines are refused. A record of 100 MB in base64 is shorter.
_MAX_LINE_LEN = 512 << 20
_TIMESTAMP_TYPES = (None, "CreateTime", "LogAppendTime")
_CREATE_TIME = "CreateTime"
# `json.loads` takes twice as long, to detect UTF-16.
_decode = json.JSONDecoder().decode


class Row(NamedTuple):
    """A record, and the partition that it belongs to. An offset of None is the next one."""

    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int
    timestamp_type: str | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def json_rows(file: BinaryIO, name: str) -> Iterator[tuple[int, Row]]:
    """Yield the records of JSON lines with the numbers of the lines. A note counts lines about corruption.

    Raises:
        ValueError: A line that is not a record, with its number.
    """
    faults = 0
    number = 0
    while line := file.readline(_MAX_LINE_LEN + 1):
        number += 1
        try:
            fields = _parsed(line)
            if fields is None:
                continue
            if fields.keys() == {"error"}:
                faults += 1
                continue
            row = _row(fields)
        except (ValueError, RecursionError) as error:
            message = f"{name}, line {number}: {_reason(error)}"
            raise ValueError(message) from error
        yield number, row
    if faults:
        what = output.count_text(faults, "line")
        output.note(f"kbat: {what} of {name} about corruption: the records there were not exported, and are missing")


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return f"it is not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, None for an empty line."""
    if len(line) > _MAX_LINE_LEN:
        message = f"the line is longer than {output.size_text(_MAX_LINE_LEN)}"
        raise ValueError(message)
    if not line.strip():
        return None
    fields = _decode(line.decode())
    if not isinstance(fields, dict):
        message = "it is not a JSON object, such as kbat cat prints"
        raise ValueError(message)  # noqa: TRY004 - as for every other line that is wrong
    return fields


def _row(fields: dict[str, Any]) -> Row:
    timestamp_type = fields.get("timestamp_type", _CREATE_TIME)
    if timestamp_type not in _TIMESTAMP_TYPES:
        message = f'timestamp_type is {_shown(timestamp_type)}; it must be null, "CreateTime" or "LogAppendTime"'
        raise ValueError(message)
    if "key" not in fields and "value" not in fields:
        message = f"it has no key and no value, but {_shown(sorted(fields))}"
        raise ValueError(message)
    topic = fields.get("topic")
    if topic is not None and not isinstance(topic, str):
        message = f"topic is {_shown(topic)}; it must be text or null"
        raise ValueError(message)
    timestamp = _integer(fields, "timestamp", -MAX - 1, MAX)
    return Row(
        topic,
        _integer(fields, "partition", 0, MAX_PARTITION),
        _integer(fields, "offset", 0, MAX - 1),
        -1 if timestamp is None else timestamp,
        timestamp_type,
        _content(fields.get("key"), "key"),
        _content(fields.get("value"), "value"),
        _headers(fields.get("headers")),
    )


def _integer(fields: dict[str, Any], name: str, smallest: int, largest: int) -> int | None:
    value = fields.get(name)
    if value is None or (type(value) is int and smallest <= value <= largest):
        return value
    message = f"{name} is {_shown(value)}; it must be null or a whole number from {smallest} to {largest}"
    raise ValueError(message)


def _content(value: Any, name: str) -> bytes | None:  # noqa: ANN401 - JSON
    if value is None:
        return None
    if type(value) is str:
        try:
            return value.encode()
        except UnicodeEncodeError:
            message = f"{name} has half of a surrogate pair, which UTF-8 does not have"
            raise ValueError(message) from None
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, ValueError):
            message = f"{name} has invalid base64"
            raise ValueError(message) from None
    message = f'{name} is {_shown(value)}; it must be text, null or {{"base64": "…"}}: export without --value'
    raise ValueError(message)


def _headers(value: Any) -> list[tuple[str, bytes | None]]:  # noqa: ANN401 - JSON
    if not value and (value is None or isinstance(value, list)):
        return []
    pairs = value if isinstance(value, list) else [value]
    if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):  # noqa: PLR2004 - a pair
        message = f"headers is {_shown(value)}; it must be a list of pairs of name and value"
        raise ValueError(message)
    return [(_name(name), _content(content, "the value of a header")) for name, content in pairs]


def _name(name: str) -> str:
    _content(name, "the name of a header")
    return name


def _shown(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return JSON as text for a message, shortened."""
    text = json.dumps(value, ensure_ascii=True)
    most = 60
    return text if len(text) <= most else f"{text[: most - 1]}…"
