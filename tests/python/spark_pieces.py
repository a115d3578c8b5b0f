"""The pieces of segments that a task of a batch read has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kbat.spark.plan import ReadPartition


class Piece(NamedTuple):
    """A window of a segment, in bytes."""

    path: str
    start: int
    end: int


def pieces_of(task: ReadPartition) -> tuple[Piece, ...]:
    """Return the windows that a task reads, in order."""
    # the version of kbat comes first
    pieces = json.loads(task.task.split(b"\n", 1)[1])["pieces"] if task.task else ()
    return tuple(Piece(piece["path"], piece["start"], piece["end"]) for piece in pieces)


def size_of(task: ReadPartition) -> int:
    """Return the bytes of all windows together."""
    return sum(piece.end - piece.start for piece in pieces_of(task))
