"""Which topics, partitions, offsets and times the filters of a query exclude before anything is read.

Spark still applies the filters to every row. So a function here may keep rows that do not match, but never omits one
that does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import datasource

from kbat.spark.intervals import Interval
from kbat.spark.values import LEAST_MILLISECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kbat.spark.topics import TopicPartition

Value = TypeVar("Value")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RowFilter:
    """The filters of a query, all of which a row passes. `columns` gives for a name in the query our column."""

    filters: tuple[Any, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()

    def takes(self, partition: TopicPartition) -> bool:
        """Whether a partition may have rows that match."""
        constants = {"topic": partition.topic, "partition": partition.partition}
        return all(self._truth(item, constants) is not False for item in self.filters)

    @property
    def offsets(self) -> Interval:
        """The offsets that rows may have."""
        return self._interval("offset", _offset_interval)

    @property
    def timestamps(self) -> Interval:
        """The timestamps that rows may have, in milliseconds since the epoch."""
        return self._interval("timestamp", _timestamp_interval)

    @property
    def scannable_times(self) -> Interval:
        """The timestamps as bounds of a scan, which has no rows without a timestamp if it has any such bound.

        Spark sees -1 ms where a record has no timestamp. A filter that -1 ms passes bounds no scan.
        """
        times = self.timestamps
        if times.start is None or times.start < 0 or times.is_empty:
            return Interval()
        start = 0 if times.start < LEAST_MILLISECONDS else times.start  # a scan refuses small numbers
        return Interval(start, None if times.end is None else max(times.end, LEAST_MILLISECONDS))

    def _interval(self, column: str, interval_of: Any) -> Interval:  # noqa: ANN401 -- one of the two functions below
        interval = Interval()
        for item in self.filters:
            if self._column(item) == column:
                interval = interval.intersect(interval_of(item))
        return interval

    def _column(self, item: Any) -> str | None:  # noqa: ANN401 -- Spark 4.0 has no class of filters
        path: tuple[str, ...] = getattr(item, "attribute", ())
        return dict(self.columns).get(path[0].lower()) if len(path) == 1 else None

    def _truth(self, item: Any, constants: dict[str, Any]) -> bool | None:  # noqa: ANN401 -- see above
        """Evaluate a filter on topic and partition: False if no row matches, None if that is unknown."""
        if isinstance(item, datasource.Not):
            child = item.child
            column = self._column(child)
            if column not in constants or isinstance(child, datasource.Not):
                return None
            if constants[column] is None and not isinstance(
                child, datasource.IsNull | datasource.IsNotNull | datasource.EqualNullSafe
            ):
                return False  # not true of a null either way
            matches = _matches(child, constants[column])
            return None if matches is None else not matches
        column = self._column(item)
        return None if column not in constants else _matches(item, constants[column])


def _matches(item: Any, value: Any) -> bool | None:  # noqa: ANN401 -- see above
    """Whether a filter is true of a constant; None for a filter that is not known."""
    null_tests = {datasource.IsNull: value is None, datasource.IsNotNull: value is not None}
    if type(item) in null_tests:
        return null_tests[type(item)]
    if isinstance(item, datasource.EqualNullSafe):
        return bool(value == item.value)
    if value is None:
        return False  # its negation is not true either, which the caller handles
    tests: dict[type[Any], Callable[[], Any]] = {
        datasource.EqualTo: lambda: value == item.value,
        datasource.GreaterThan: lambda: value > item.value,
        datasource.GreaterThanOrEqual: lambda: value >= item.value,
        datasource.LessThan: lambda: value < item.value,
        datasource.LessThanOrEqual: lambda: value <= item.value,
        datasource.In: lambda: value in item.value,
        datasource.StringStartsWith: lambda: value.startswith(item.value),
        datasource.StringEndsWith: lambda: value.endswith(item.value),
        datasource.StringContains: lambda: item.value in value,
    }
    test = tests.get(type(item))
    return None if test is None else bool(test())


def _offset_interval(item: Any) -> Interval:  # noqa: ANN401 -- see above
    values = _values(item, int)
    return _interval(item, min(values), max(values)) if values else Interval()


def _timestamp_interval(item: Any) -> Interval:  # noqa: ANN401 -- see above
    values = _values(item, datetime)
    if not values:
        return Interval()
    micros = [(value.replace(tzinfo=value.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1) for value in values]
    return _interval(item, min(micros) // 1000, -(-max(micros) // 1000))


def _values(item: Any, kind: type[Value]) -> list[Value]:  # noqa: ANN401 -- see above
    """Return the literals of a filter, or none if one is of another type."""
    values = list(item.value) if isinstance(item, datasource.In) else [getattr(item, "value", None)]
    there = [value for value in values if isinstance(value, kind)]
    return there if len(there) == len([value for value in values if value is not None]) else []


def _interval(item: Any, floor: int, ceiling: int) -> Interval:  # noqa: ANN401 -- see above
    """Return the whole numbers that a comparison may take, given its smallest literal rounded down, its largest up."""
    intervals: dict[type[Any], Interval] = {
        datasource.In: Interval(floor, ceiling + 1),
        datasource.EqualTo: Interval(floor, ceiling + 1),
        datasource.EqualNullSafe: Interval(floor, ceiling + 1),
        datasource.GreaterThan: Interval(floor, None),
        datasource.GreaterThanOrEqual: Interval(floor, None),
        datasource.LessThan: Interval(None, ceiling + 1),
        datasource.LessThanOrEqual: Interval(None, ceiling + 1),
    }
    return intervals.get(type(item), Interval())


def row_filter(filters: Sequence[Any], columns: dict[str, str]) -> RowFilter:
    """Return the filters of a query; `columns` gives for the names in it the names of our columns."""
    return RowFilter(tuple(filters), tuple((name.lower(), column) for name, column in columns.items()))
