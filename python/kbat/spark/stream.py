"""The streaming source: reads growing log directories in micro-batches.

```
initialOffset ──► startingOffsets, resolved                {"orders": {"0": 23, "1": 0}}
latestOffset  ──► the ends of all logs, within the limits   only complete batches; read_committed: only stable offsets
partitions    ──► from start to end of a micro-batch        new partitions start at their first record
```

Offsets are the next ones to read, in Kafka's JSON form. A micro-batch is defined by offsets only, so that it has the
same rows if it runs again after a restart. Deleted segments and partitions are lost data: see `failOnDataLoss`.

From version 4.2 on, Spark passes the start of a micro-batch and its limit. In earlier versions, the reader uses the
last offsets that it returned, so the first micro-batch after a restart has no limit.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kbat.spark.bounds import LATEST, Offset, offsets_json, offsets_of_json
from kbat.spark.listing import Log, list_logs
from kbat.spark.plan import ReadPartition, plan_ranges
from kbat.spark.ranges import (
    LogRange,
    check_names_all,
    check_no_copies,
    end_offset,
    latest_offset,
    report_data_loss,
    starting_offset,
)
from kbat.spark.rows import RowReader, advising
from kbat.spark.shallow import shallow
from kbat.spark.topics import some_of

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows, SupportsTriggerAvailableNow
except ImportError:  # Spark before 4.2, which does not use them

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]  # replaces Spark's class
        """Replaces Spark's marker class."""


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from kbat.spark.options import ReadOptions
    from kbat.spark.topics import TopicPartition

Offsets = dict[str, dict[str, int]]


class KbatStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver, where it keeps the last offsets, and reads in the tasks."""

    def __init__(self, schema: StructType, options: ReadOptions) -> None:
        """Check schema and options. Raises `ValueError` if they don't fit each other or the files."""
        options.check_stream()
        if options.view == "segments":
            message = (
                "kbat: view=segments can't be streamed, because a segment's row changes while the segment grows; "
                "read it as a batch, or stream view=batches"
            )
            raise ValueError(message)
        self.rows = RowReader.of(options, schema).unbounded()
        self.options = options
        self.latest: Mapping[TopicPartition, int] = {}
        self.last: Mapping[TopicPartition, int] | None = None
        self.target: Mapping[TopicPartition, int] | None = None
        self.last_trigger = -math.inf
        self.is_new = False

    @shallow
    def initialOffset(self) -> Offsets:  # noqa: N802 -- Spark's name
        """Return the offsets at which a new query starts."""
        logs = self._logs(is_complete=True)
        bound = self.options.start or Offset(LATEST)
        self.is_new = True
        self._warn_of_no_rows()
        check_names_all("starting", bound, [log.partition for log in logs])
        self.last = {log.partition: starting_offset(log, bound, self.options) for log in logs}
        return offsets_json(self.last)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 -- Spark's name
        """Return the limit of the options."""
        if self.options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self.options.max_offsets_per_trigger)
        if self.options.min_offsets_per_trigger is not None:
            return ReadMinRows(self.options.min_offsets_per_trigger)
        return ReadAllAvailable()

    @shallow
    def latestOffset(self, *start_and_limit: Any) -> Offsets:  # noqa: ANN401, N802 -- no arguments before Spark 4.2
        """Return the end of the next micro-batch, which is its start if there is nothing to read yet.

        Args:
            start_and_limit: The start of the micro-batch and its `ReadLimit`; empty before Spark 4.2.
        """
        start = offsets_of_json(start_and_limit[0]) if start_and_limit else self.last
        is_limited = not (start_and_limit and isinstance(start_and_limit[1], ReadAllAvailable))
        self.latest = self._latest(start or {})
        if start is None or not is_limited:
            return offsets_json(self.latest)
        return offsets_json(self._within_limits(start, self.latest))

    def reportLatestOffset(self) -> Offsets | None:  # noqa: N802 -- Spark's name
        """Return the last known ends of all logs, for the progress of the query."""
        return offsets_json(self.latest) if self.latest else None

    @shallow
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 -- Spark's name
        """Store the ends of all logs: the query reads up to them."""
        self.target = self._ends(self._logs())
        self._warn_of_no_rows()

    def _warn_of_no_rows(self) -> None:
        """Warn once if a new query with `availableNow` starts and ends at the ends of all logs."""
        if self.is_new and self.target is not None and self.options.start is None:
            self.is_new = False
            warnings.warn(
                "kbat: a stream starts at the latest offsets unless startingOffsets is set, so this new query with "
                "trigger(availableNow=True) reads no existing record; set startingOffsets=earliest to read them",
                stacklevel=2,
            )

    @shallow
    def partitions(self, start: Offsets, end: Offsets) -> list[ReadPartition]:
        """Return the tasks of a micro-batch."""
        with advising(keywords=self.options.keywords):
            return self._plan(start, end)

    def _plan(self, start: Offsets, end: Offsets) -> list[ReadPartition]:
        starts, ends = offsets_of_json(start), offsets_of_json(end)
        self.last = ends
        logs = {log.partition: log for log in self._logs()}
        ranges = [
            a_range
            for partition, end_offset in ends.items()
            if (a_range := self._range(partition, logs.get(partition), starts.get(partition), end_offset)) is not None
        ]
        return [task for task in plan_ranges(ranges, self.options) if task.pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the Arrow batches of one task."""
        if isinstance(partition, ReadPartition):
            yield from self.rows.read(partition)

    def _logs(self, *, is_complete: bool = False) -> list[Log]:
        logs = list_logs(self.options, is_complete=is_complete, is_stream=True)
        for log in logs:
            if not log.is_named or log.partition.topic is None or log.partition.partition is None:
                message = (
                    f"kbat: {log.segments[0].path} is not named <topic>-<partition>/<base offset>.log, so a stream "
                    "can't store its offset; read it as a batch, or rename it"
                )
                raise ValueError(message)
        check_no_copies(logs)
        return logs

    def _ends(self, logs: list[Log]) -> dict[TopicPartition, int]:
        return {log.partition: latest_offset(log, self.options) for log in logs}

    def _latest(self, start: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the ends of all logs; a log that no longer exists keeps its offset, in case it returns."""
        logs = self._logs()
        ends = self._ends(logs) if self.target is None else dict(self.target)
        there = {log.partition for log in logs}
        read = {partition for partition, end in (self.target or {}).items() if start.get(partition, -1) >= end}
        known = there | read
        gone = [partition for partition in start if partition not in known]
        if gone:
            report_data_loss(f"{some_of(gone)} no longer exists; records may be lost", self.options)
        for partition, offset in start.items():
            if ends.get(partition, offset) < offset:
                report_data_loss(
                    f"the end of {partition} went from {offset} back to {ends[partition]}; records may be lost",
                    self.options,
                )
        return {**ends, **{partition: start[partition] for partition in gone}}

    def _within_limits(
        self, start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        firsts = {**self._first_offsets(latest.keys() - start.keys()), **start}
        counts = {partition: max(end - firsts.get(partition, end), 0) for partition, end in latest.items()}
        least, most = self.options.min_offsets_per_trigger, self.options.max_offsets_per_trigger
        if least is not None and self.target is None and self._is_too_early(sum(counts.values()), least):
            return start
        return latest if most is None else share(most, latest, counts)

    def _is_too_early(self, count: int, least: int) -> bool:
        now = time.monotonic()
        if count < least and (now - self.last_trigger) * 1000 < self.options.max_trigger_delay:
            return True
        self.last_trigger = now
        return False

    def _first_offsets(self, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
        logs = self._logs() if partitions else []
        return {log.partition: log.on_disk.start_offset for log in logs if log.partition in partitions}

    def _range(self, partition: TopicPartition, log: Log | None, start: int | None, end: int) -> LogRange | None:
        """Return the range to read of a log, None for nothing. Reports lost data first."""
        if log is None:
            if start is None or start < end:
                report_data_loss(f"{partition} no longer exists, nor do its offsets before {end}", self.options)
            return None
        first = log.on_disk.start_offset
        if start is None and first > 0:
            report_data_loss(f"{partition} is new and starts with offset {first}, not 0", self.options)
        if start is not None and start < min(first, end):
            report_data_loss(f"offsets {start} to {min(first, end) - 1} of {partition} no longer exist", self.options)
        if end > end_offset(log, self.options):
            report_data_loss(f"{partition} ends before offset {end}", self.options)
        start = first if start is None else max(start, first)
        return LogRange(log, start, end, continues=True) if start < end else None


def share(
    most: int, latest: Mapping[TopicPartition, int], counts: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Distribute `most` offsets over partitions as Spark's Kafka source does: in proportion to `counts`, at least one.

    A partition without offsets ends at its latest offset, which is before its start if the log became shorter.
    """
    total = sum(counts.values())
    ends = {}
    for partition, count in counts.items():
        part = most * count / total if total else 0
        taken = min(count, math.ceil(part) if part < 1 else math.floor(part))
        ends[partition] = latest[partition] - count + taken
    return ends
