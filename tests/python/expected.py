"""Kafka's answers in the form of Spark's records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from data import DATA, answer, from_base64, headers_of

if TYPE_CHECKING:
    from pathlib import Path

    from data import Line

_TIMESTAMP_TYPES = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}


class Row(NamedTuple):
    """A record as returned by Spark; the timestamp is in microseconds."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Segment(NamedTuple):
    """Kafka's result for a segment: rows of complete batches, and the positions of the batches it could not read."""

    rows: list[Row]
    unreadable: set[int]


def case_directories() -> list[Path]:
    """Every directory of both corpora that holds segments with answers."""
    logs = [log for corpus in ("corpus", "corpus-legacy") for log in (DATA / corpus).rglob("*.log")]
    return sorted({log.parent for log in logs if log.parent.name != "writes"})


def read_expected(log: Path) -> Segment:
    """Read the answers for a segment file."""
    batches = answer(log).batches
    rows = [_row(record) for batch in batches if not batch.error for record in batch.records]
    return Segment(rows, {batch.position for batch in batches if batch.error})


def _row(line: Line) -> Row:
    return Row(
        line["offset"],
        line["timestamp"] * 1000,
        _TIMESTAMP_TYPES[line["timestampType"]],
        from_base64(line["key"]),
        from_base64(line["value"]),
        tuple(headers_of(line)),
    )
