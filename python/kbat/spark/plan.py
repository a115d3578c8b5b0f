"""The tasks of a batch read, which the core plans: which task reads which bytes.

The driver lists the segments once and includes the list in the tasks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from kbat._core import plan as core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbat.spark.options import ReadOptions


@dataclass(frozen=True)
class Piece:
    """A window of a segment, in bytes."""

    path: str
    start: int
    end: int

    @property
    def size(self) -> int:
        """Bytes of the window."""
        return self.end - self.start


@dataclass(frozen=True)
class ReadPartition(InputPartition):
    """What one task reads: bytes that the core understands. They contain the options, which may be secret."""

    task: bytes

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The windows that the task reads, in order."""
        pieces = json.loads(self.task)["pieces"] if self.task else ()
        return tuple(Piece(piece["path"], piece["start"], piece["end"]) for piece in pieces)

    @property
    def size(self) -> int:
        """Bytes of all pieces together."""
        return sum(piece.size for piece in self.pieces)

    def __repr__(self) -> str:
        """Return the pieces, without the options."""
        return f"ReadPartition(pieces={self.pieces!r})"


def plan(
    options: ReadOptions,
    columns: Sequence[str] | None = None,
    filters: Sequence[list[str]] = (),
    *,
    splits: bool = True,
) -> list[ReadPartition]:
    """List the segments of all paths and distribute them to tasks, of which none is idle.

    Args:
        options: The options of the read.
        columns: Names of columns; by default those of the options.
        filters: Conditions of the query, as `conditions` returns them: what they exclude is omitted.
        splits: Whether several tasks may read a batch that has more than `maxRecordsPerPartition` offsets.

    Raises:
        FileNotFoundError: A path does not exist.
        ValueError: Wrong options, or bounds that do not fit the existing partitions.
    """
    names = options.column_names if columns is None else columns
    return [ReadPartition(task) for task in core.plan(options, names, filters, splits=splits)]
