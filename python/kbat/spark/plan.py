"""The tasks of a batch read, which the core plans: which task reads which bytes.

The driver lists the segments once and includes the list in the tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from kbat._core import plan as core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbat.spark.options import ReadOptions


@dataclass(frozen=True)
class ReadPartition(InputPartition):
    """What one task reads: bytes that the core understands. They contain the options, which may be secret."""

    task: bytes = field(repr=False)


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
