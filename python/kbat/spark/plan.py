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
    """A window of a segment, in bytes, and the offsets to read of it; None if there is no bound.

    `part` limits a window of one batch to some of its records; other pieces read the rest.
    """

    path: str
    start: int
    end: int
    topic: str | None = None
    partition: int | None = None
    start_offset: int | None = None
    end_offset: int | None = None
    part: tuple[int | None, int | None] = (None, None)
    is_labelled: bool = False
    is_whole: bool = False

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
        return tuple(
            Piece(
                **{name: value for name, value in piece.items() if name in Piece.__dataclass_fields__ and name != "part"},
                part=(piece["part"]["start"], piece["part"]["end"]),
            )
            for piece in json.loads(self.task)["pieces"]
        )

    @property
    def size(self) -> int:
        """Bytes of all pieces together."""
        return sum(piece.size for piece in self.pieces)

    def __repr__(self) -> str:
        """Return the pieces, without the options."""
        return f"ReadPartition(pieces={self.pieces!r})"


def plan(
    options: ReadOptions, columns: Sequence[str] = (), filters: Sequence[list[str]] = (), *, splits: bool = True
) -> list[ReadPartition]:
    """List the segments of all paths and distribute them to tasks, of which none is idle.

    Args:
        options: The options of the read.
        columns: Names of columns.
        filters: Conditions of the query, as `conditions` returns them: what they exclude is omitted.
        splits: Whether several tasks may read a batch that has more than `maxRecordsPerPartition` offsets.

    Raises:
        FileNotFoundError: A path does not exist.
        ValueError: Wrong options, or bounds that do not fit the existing partitions.
    """
    return [ReadPartition(task) for task in core.plan(options, list(columns), list(filters), splits=splits)]
