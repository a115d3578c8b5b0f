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
_PIECE_LEN = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
# Seconds since the epoch from 2017 to 2033, which `kbat.LogWriter` refuses too.
SECONDS = range(1_500_000_000, 2_000_000_000)
_TIMESTAMP_TYPES = (None, "CreateTime", "LogAppendTime")
_CREATE_TIME = "CreateTime"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# The fields of a batch, with their smallest and largest values.
_BATCH_FIELDS = {
    "base_offset": (0, MAX - 1),
    "last_offset": (0, MAX - 1),
    "magic": (0, 2),
    "attributes": (0, (1 << 16) - 1),
    "partition_leader_epoch": (-(1 << 31), (1 << 31) - 1),
    "base_timestamp": (-MAX - 1, MAX),
    "max_timestamp": (-MAX - 1, MAX),
    "producer_id": (-MAX - 1, MAX),
    "producer_epoch": (-(1 << 15), (1 << 15) - 1),
    "base_sequence": (-(1 << 31), (1 << 31) - 1),
}
_RECORD_COUNT = "record_count"
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
    headers: list[tuple[str | bytes, bytes | None]]
    #: The producer's timestamp, if the timestamp is that of an append.
    create_time: int | None = None


class BatchRow(NamedTuple):
    """The batch of the next records: its partition, its fields, and the offset at which it begins."""

    topic: str | None
    partition: int | None
    offset: int
    fields: dict[str, int]


class JsonLines:
    """Reads JSON lines in pieces of whole lines.

    Args:
        file: The lines.
        name: What messages call them.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._faults = 0
        #: Number of the last line that was read, from 1.
        self.number = 0

    def pieces(self) -> Iterator[bytes]:
        """Yield the lines, many at once."""
        while piece := self._file.read(_PIECE_LEN):
            yield piece if piece.endswith(b"\n") else piece + self._file.readline(_MAX_LINE_LEN + 1)

    def row(self, line: bytes) -> Row | BatchRow | None:
        """Return the record or the batch of the next line.

        None for an empty line, and for one about corruption, which is counted.

        Raises:
            ValueError: It is neither. The message has the number of the line.
        """
        self.number += 1
        try:
            fields = _parsed(line.removeprefix(_BYTE_ORDER_MARK) if self.number == 1 else line)
            if fields is None:
                return None
            if fields.keys() == {"error"}:
                self._faults += 1
                return None
            return _batch(fields) if fields.get("batch") is not None else _row(fields)
        except (ValueError, RecursionError) as error:
            raise self.refused(_reason(error)) from error

    def refused(self, reason: str) -> ValueError:
        """Return the error about the last line."""
        return ValueError(f"{self._name}, line {self.number}: {reason}")

    def note_faults(self) -> None:
        """Report the lines about corruption, if there were any."""
        if self._faults:
            what = output.count_text(self._faults, "line")
            output.note(
                f"kbat: {what} of {self._name} about corruption: the records there were not exported, and are missing"
            )


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
    if line.startswith(_GZIP_MAGIC):
        message = "it is gzip-compressed; decompress it first"
        raise ValueError(message)
    if not line.strip():
        return None
    fields = _decode(line.decode())
    if not isinstance(fields, dict):
        message = "it is not a JSON object, such as kbat cat prints"
        raise ValueError(message)  # noqa: TRY004 - as for every other line that is wrong
    return fields


def _row(fields: dict[str, Any]) -> Row:
    if "value" not in fields:
        message = f"it has no value, but {_shown(sorted(fields))}"
        raise ValueError(message)
    timestamp_type = fields.get("timestamp_type", _CREATE_TIME)
    if timestamp_type not in _TIMESTAMP_TYPES:
        message = f'timestamp_type is {_shown(timestamp_type)}; it must be null, "CreateTime" or "LogAppendTime"'
        raise ValueError(message)
    timestamp = _integer(fields, "timestamp", -MAX - 1, MAX)
    if timestamp is None:
        timestamp = output.NO_TIMESTAMP
    # records of a log have the timestamps that they have
    if timestamp in SECONDS and "offset" not in fields:
        raise ValueError(seconds_message(timestamp))
    if timestamp_type is None and timestamp != output.NO_TIMESTAMP:
        timestamp_type = _CREATE_TIME
    return Row(
        *_place(fields),
        _integer(fields, "offset", 0, MAX - 1),
        timestamp,
        timestamp_type,
        _content(fields.get("key"), "key"),
        _content(fields["value"], "value"),
        _headers(fields.get("headers")),
        _integer(fields, "create_time", -MAX - 1, MAX),
    )


def seconds_message(timestamp: int) -> str:
    """Return the error about a timestamp in seconds."""
    return f"timestamp {timestamp} looks like seconds since the epoch: write milliseconds, {timestamp * 1000}"


def _batch(fields: dict[str, Any]) -> BatchRow:
    batch = fields["batch"]
    if not isinstance(batch, dict) or "key" in fields or "value" in fields:
        message = "batch must be an object, on a line without a record"
        raise ValueError(message)
    found = {}
    for name, (smallest, largest) in _BATCH_FIELDS.items():
        number = _integer(batch, name, smallest, largest)
        if number is None:
            message = f"the batch has no {name}"
            raise ValueError(message)
        found[name] = number
    count = _integer(batch, _RECORD_COUNT, 0, (1 << 31) - 1)
    if count is not None:
        found[_RECORD_COUNT] = count
    return BatchRow(*_place(fields), found["base_offset"], found)


def _place(fields: dict[str, Any]) -> tuple[str | None, int | None]:
    """Return the topic and the partition."""
    topic = fields.get("topic")
    if topic is not None and not isinstance(topic, str):
        message = f"topic is {_shown(topic)}; it must be text or null"
        raise ValueError(message)
    return topic, _integer(fields, "partition", 0, MAX_PARTITION)


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


def _headers(value: Any) -> list[tuple[str | bytes, bytes | None]]:  # noqa: ANN401 - JSON
    if not value and (value is None or isinstance(value, list)):
        return []
    pairs = value if isinstance(value, list) else [value]
    if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str | dict) for pair in pairs):  # noqa: PLR2004 - a pair
        message = f"headers is {_shown(value)}; it must be a list of pairs of name and value"
        raise ValueError(message)
    return [(_name(name), _content(content, "the value of a header")) for name, content in pairs]


def _name(name: Any) -> str | bytes:  # noqa: ANN401 - JSON
    """Return the name of a header, as bytes if it is not text."""
    found = _content(name, "the name of a header")
    return name if isinstance(name, str) or found is None else found


def _shown(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return JSON as text for a message, shortened."""
    text = json.dumps(value, ensure_ascii=True)
    most = 60
    return text if len(text) <= most else f"{text[: most - 1]}…"
