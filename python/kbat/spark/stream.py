"""The streaming source: reads growing log directories in micro-batches, which the core plans.

Offsets are the next ones to read, in Kafka's JSON form. A micro-batch is defined by offsets only, so that it has the
same rows if it runs again after a restart. Deleted segments and partitions are lost data: see `failOnDataLoss`.

From version 4.2 on, Spark passes the start of a micro-batch and its limit. In earlier versions, the reader uses the
last offsets that it returned, so the first micro-batch after a restart has no limit.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kbat._core import plan as core
from kbat.spark.plan import ReadPartition
from kbat.spark.rows import RowReader
from kbat.spark.shallow import shallow

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows, SupportsTriggerAvailableNow
except ImportError:  # Spark before 4.2, which does not use them

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]  # replaces Spark's class
        """Replaces Spark's marker class."""


if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from kbat.spark.options import ReadOptions

Offsets = dict[str, dict[str, int]]


class KbatStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver, where the core keeps the last offsets, and reads in the tasks."""

    def __init__(self, schema: StructType, options: ReadOptions) -> None:
        """Check schema and options. Raises `ValueError` if they don't fit each other or the files."""
        options.check_stream()
        self.rows = RowReader.of(options, schema)
        self.options = options

    @functools.cached_property
    def core(self) -> core.Stream:
        """The planner, which is not pickled."""
        return core.Stream(self.options, self.rows.fields)

    def __getstate__(self) -> dict[str, object]:
        """Pickle for the tasks, which only read."""
        return {"rows": self.rows, "options": self.options}

    @shallow
    def initialOffset(self) -> Offsets:  # noqa: N802 -- Spark's name
        """Return the offsets at which a new query starts."""
        return _parsed(self.core.initial_offset())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 -- Spark's name
        """Return the limit of the options."""
        most, least = self.options.offsets_per_trigger
        if most is not None:
            return ReadMaxRows(most)
        if least is not None:
            return ReadMinRows(least)
        return ReadAllAvailable()

    @shallow
    def latestOffset(self, *start_and_limit: Any) -> Offsets:  # noqa: ANN401, N802 -- no arguments before Spark 4.2
        """Return the end of the next micro-batch, which is its start if there is nothing to read yet.

        Args:
            start_and_limit: The start of the micro-batch and its `ReadLimit`; empty before Spark 4.2.
        """
        start = json.dumps(start_and_limit[0]) if start_and_limit and start_and_limit[0] is not None else None
        is_limited = not (start_and_limit and isinstance(start_and_limit[1], ReadAllAvailable))
        return _parsed(self.core.latest_offset(start, is_limited=is_limited))

    def reportLatestOffset(self) -> Offsets | None:  # noqa: N802 -- Spark's name
        """Return the last known ends of all logs, for the progress of the query."""
        latest = self.core.report_latest_offset()
        return None if latest is None else _parsed(latest)

    @shallow
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 -- Spark's name
        """Store the ends of all logs: the query reads up to them."""
        self.core.prepare_for_available_now()

    @shallow
    def partitions(self, start: Offsets, end: Offsets) -> list[ReadPartition]:
        """Return the tasks of a micro-batch."""
        return [ReadPartition(task) for task in self.core.plan(json.dumps(start), json.dumps(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the Arrow batches of one task."""
        if isinstance(partition, ReadPartition):
            yield from self.rows.read(partition)


def _parsed(offsets: str) -> Offsets:
    found: Offsets = json.loads(offsets)
    return found
