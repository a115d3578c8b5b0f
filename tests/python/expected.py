"""Kafka's own answers: the `expected.jsonl` files beside the segments, as `tests/data/README.md` describes them."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent.parent / "data"

_TIMESTAMP_TYPES = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}


class Row(NamedTuple):
    """A record as Spark gives it; the timestamp in microseconds."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Segment(NamedTuple):
    """What Kafka read in a segment: rows of whole batches, and the positions of the batches it could not read."""

    rows: list[Row]
    unreadable: set[int]


def case_directories() -> list[Path]:
    """Every directory of both corpora that holds segments with answers."""
    return sorted(
        {
            log.parent
            for corpus in ("corpus", "corpus-legacy")
            for log in (DATA / corpus).rglob("*.log")
            if log.parent.name != "writes"
        }
    )


def read_expected(log: Path) -> Segment:
    """Read the answers for a segment file."""
    plain = log.with_suffix(".expected.jsonl")
    packed = Path(f"{plain}.gz")
    text = gzip.decompress(packed.read_bytes()).decode() if packed.exists() else plain.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    unreadable = {line["position"] for line in lines if line["type"] == "error" and line["stage"] != "framing"}
    rows = []
    position = -1
    for line in lines:
        if line["type"] == "batch":
            position = line["position"]
        elif line["type"] == "record" and position not in unreadable:
            rows.append(_row(line))
    return Segment(rows, unreadable)


def _row(line: dict[str, object]) -> Row:
    headers = line["headers"]
    assert isinstance(headers, list)
    timestamp, offset = line["timestamp"], line["offset"]
    assert isinstance(timestamp, int)
    assert isinstance(offset, int)
    return Row(
        offset,
        timestamp * 1000,
        _TIMESTAMP_TYPES[str(line["timestampType"])],
        _bytes(line["key"]),
        _bytes(line["value"]),
        tuple((key, _bytes(value)) for key, value in headers),
    )


def _bytes(text: object) -> bytes | None:
    return None if text is None else base64.b64decode(str(text))
