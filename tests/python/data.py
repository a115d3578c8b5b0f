"""The test data: finding files, reading Kafka's answers, and bytes to compare with.

The answers' form is described in `tests/data/README.md`.
"""

from __future__ import annotations

import base64
import gzip
import json
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kbat

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA = Path(__file__).parent.parent / "data"

Line = dict[str, Any]
Headers = list[tuple[str, bytes | None]]


def read_text(path: Path) -> str:
    """Read a text file that may have `.gz` added to its name."""
    packed = Path(f"{path}.gz")
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else path.read_text()


def json_lines(path: Path) -> list[Line]:
    """Read the lines of a JSON lines file."""
    return [json.loads(line) for line in read_text(path).splitlines()]


def from_base64(text: str | None) -> bytes | None:
    """Decode base64 or null."""
    return None if text is None else base64.b64decode(text)


def segments(folder: str) -> list[Path]:
    """Every file of a corpus that has answers, in the order of the paths."""
    found = [path for path in (DATA / folder).rglob("*") if path.suffix in {".log", ".checkpoint"}]
    return sorted(path for path in found if path.parent.name != "log-dir" and path.parent.parent.name != "log-dir")


def name_of(path: Path) -> str:
    """A test's id: the path below the test data."""
    return str(path.relative_to(DATA))


@dataclass
class Expected:
    """One batch of the answers: its line, the lines of its records, and Kafka's error."""

    position: int
    batch: Line | None = None
    records: list[Line] = field(default_factory=list)
    error: Line | None = None


@dataclass
class Answer:
    """The content of a file, as read by Kafka."""

    batches: list[Expected]
    framing_error: Line | None
    end: Line


def answer(path: Path) -> Answer:
    """Read the answers for a segment or a checkpoint."""
    lines = json_lines(path.with_name(f"{path.name.removesuffix('.log')}.expected.jsonl"))
    batches: dict[int, Expected] = {}
    framing_error, position = None, -1
    for line in lines[:-1]:
        if line["type"] == "error" and line["stage"] == "framing":
            framing_error = line
            continue
        position = line.get("position", position)
        expected = batches.setdefault(position, Expected(position))
        if line["type"] == "batch":
            expected.batch = line
        elif line["type"] == "record":
            expected.records.append(line)
        else:
            expected.error = line
    return Answer(list(batches.values()), framing_error, lines[-1])


def plain(record: kbat.Record) -> Line:
    """Return a record's fields with the names and in the form of the answers."""
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": record.key,
        "value": record.value,
        "headers": record.headers,
        "sequence": record.sequence,
    }


def decoded(line: Line) -> Line:
    """Convert a record of the answers to the form of :func:`plain`."""
    return {
        "offset": line["offset"],
        "timestamp": line["timestamp"],
        "key": from_base64(line["key"]),
        "value": from_base64(line["value"]),
        "headers": headers_of(line),
        "sequence": line["sequence"],
    }


def headers_of(line: Line) -> Headers:
    """Headers of a record of the answers or of a specification."""
    return [(key, from_base64(value)) for key, value in line.get("headers") or []]


def records_of(
    source: bytes | bytearray | Path, *, check_crc: bool = True, limits: kbat.Limits | None = None
) -> list[kbat.Record]:
    """All records of a source."""
    batches = kbat.read_batches(source, check_crc=check_crc, limits=limits)
    return [record for batch in batches for record in batch]


def build(
    records: Iterable[tuple[int, bytes | None, bytes | None]] = ((0, b"key", b"value"),),
    **settings: Any,  # noqa: ANN401 -- those of kbat.BatchBuilder
) -> bytes:
    """Build a batch of `(timestamp, key, value)` records."""
    builder = kbat.BatchBuilder(**settings)
    for timestamp, key, value in records:
        builder.append(key, value, timestamp=timestamp)
    return builder.finish()


def patched(data: bytes | bytearray, position: int, layout: str, *values: int) -> bytearray:
    """Copy `data` with fields of a `struct` layout written over it, checksums left as they are."""
    copy = bytearray(data)
    struct.pack_into(layout, copy, position, *values)
    return copy


def with_wrapper_timestamp(data: bytes, timestamp: int) -> bytes:
    """Copy a compressed v1 set with its client's timestamp and a matching checksum."""
    copy = patched(data, 18, ">q", timestamp)  # after offset, size, checksum, magic and attributes
    return bytes(patched(copy, 12, ">I", zlib.crc32(copy[16:])))


def with_right_crc(data: bytes | bytearray) -> bytearray:
    """Copy a single v2 batch with the checksum of its bytes: CRC-32C of all that follows the field, by the book."""
    crc = 0xFFFFFFFF
    for byte in data[21:]:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return patched(data, 17, ">I", crc ^ 0xFFFFFFFF)


def varint(value: int) -> bytes:
    """Encode a zigzag varint, by the book."""
    bits = (value << 1) ^ (value >> 63)
    bits &= (1 << 64) - 1
    out = bytearray()
    while bits > 0x7F:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    return bytes([*out, bits])
