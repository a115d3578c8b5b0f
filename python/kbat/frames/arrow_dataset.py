"""PyArrow: a scan as a dataset, and what its filters say of offsets and times.

PyArrow's expressions can't be looked into from Python. But a dataset drops fragments of which a filter can't be true,
by what is known of their rows. So the bounds of a filter are found by asking: could it be true of rows with an offset
below x? PyArrow's own simplifier answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from kbat.frames.bounds import INT64_MAX, INT64_MIN, Bounds, Range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbat._core.arrow import Scan

FORMAT = ds.IpcFileFormat()
NOWHERE = LocalFileSystem()


class Dataset(ds.Dataset):
    """A scan as a ``pyarrow.dataset.Dataset``; see :func:`kbat.dataset`."""

    def __init__(self, scan: Scan, where: ds.Expression | None = None) -> None:  # the base's can't be called
        """Take the scan."""
        self._scan = scan
        self._where = where

    @property
    def schema(self) -> pa.Schema:
        """The scan's schema."""
        return self._scan.schema

    @property
    def partition_expression(self) -> ds.Expression:
        """What is known of all rows: nothing."""
        return ds.scalar(True)  # noqa: FBT003 -- the expression

    def filter(self, expression: ds.Expression) -> Dataset:
        """Give the dataset of the rows for which the expression holds, too."""
        return Dataset(self._scan, _and(self._where, expression))

    # PyArrow's stub lacks expressions as columns
    def scanner(  # type: ignore[override]
        self,
        columns: list[str] | dict[str, ds.Expression] | None = None,
        filter: ds.Expression | None = None,  # noqa: A002 -- PyArrow's name
        **options: Any,  # noqa: ANN401 -- those of PyArrow
    ) -> ds.Scanner:
        """Start a pass. Of PyArrow's other options, those that make sense for a stream are heeded."""
        where = _and(self._where, filter)
        schema = self.schema
        wanted = _columns_of(columns, where, schema)
        bounds = bounds_of(where, self._scan, schema) if where is not None else Bounds()
        narrowed = bounds.narrow(self._scan, wanted)
        heeded = {name: options[name] for name in ("batch_size", "use_threads", "memory_pool") if name in options}
        if columns is None:
            columns = schema.names
        return ds.Scanner.from_batches(
            _batches(narrowed), schema=narrowed.schema, columns=columns, filter=where, **heeded
        )

    def get_fragments(self, filter: ds.Expression | None = None) -> Iterator[ds.Fragment]:  # noqa: A002 -- PyArrow's name
        """Not to be had: files of batches are no format of PyArrow's."""
        raise NotImplementedError("a kbat dataset has no fragments")  # noqa: EM101 -- one sentence

    def replace_schema(self, schema: pa.Schema) -> None:
        """Not to be had."""
        raise NotImplementedError("a kbat dataset keeps its schema")  # noqa: EM101 -- one sentence

    def __reduce__(self) -> Any:  # noqa: ANN401 -- pickle's own
        """Not to be had."""
        message = "a kbat dataset can't be pickled: pickle its path and options"
        raise TypeError(message)


def _batches(scan: Scan) -> Iterator[pa.RecordBatch]:
    # a Python iterator, not the scan's own stream: its exceptions arrive as what they are
    yield from scan.to_batches()


def _and(one: ds.Expression | None, other: ds.Expression | None) -> ds.Expression | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _columns_of(columns: Any, where: ds.Expression | None, schema: pa.Schema) -> list[str]:  # noqa: ANN401 -- names or expressions
    """Give the columns that a query reads: those whose absence it would not survive."""
    if columns is None:
        return list(schema.names)
    empty = schema.empty_table()
    needed = []
    for name in schema.names:
        rest = empty.drop_columns([name])
        try:
            ds.Scanner.from_batches(rest.to_reader(), columns=columns, filter=where).to_table()
        except pa.ArrowInvalid:
            needed.append(name)
    return needed


def bounds_of(where: ds.Expression, scan: Scan, schema: pa.Schema) -> Bounds:
    """Give the bounds that all rows are within for which the filter holds."""
    ask = _Question(where, schema)
    offsets = timestamps = Range()
    if "offset" in schema.names:
        offsets = _range(ask, "offset", schema)
    if "timestamp" in schema.names:
        timestamps = _range(ask, "timestamp", schema)
    places = [place for place in scan.topic_partitions if ask.possible(_of_place(place, schema))]
    return Bounds(
        offsets,
        timestamps,
        frozenset(topic for topic, _ in places if topic is not None),
        frozenset(partition for _, partition in places if partition is not None),
    )


class _Question:
    """Whether a filter can hold for rows of which something is known."""

    def __init__(self, where: ds.Expression, schema: pa.Schema) -> None:
        self._where, self._schema = where, schema

    def possible(self, known: ds.Expression) -> bool:
        fragment = FORMAT.make_fragment("", NOWHERE, partition_expression=known)
        whole = ds.FileSystemDataset([fragment], self._schema, FORMAT, NOWHERE)
        return any(True for _ in whole.get_fragments(self._where))


def _range(ask: _Question, name: str, schema: pa.Schema) -> Range:
    data_type = schema.field(name).type
    per = 1000 if data_type == pa.timestamp("us", "UTC") else 1
    lowest, highest = -(-INT64_MIN // per), INT64_MAX // per

    def scalar(value: int) -> ds.Expression:
        return ds.scalar(pa.scalar(value * per, pa.int64()).cast(data_type))

    field = ds.field(name)
    # the largest x with nothing below it, the smallest with nothing from it on
    start = _bisect(lowest, highest, lambda x: not ask.possible(field < scalar(x)))
    end = -_bisect(-highest, -lowest, lambda x: not ask.possible(field >= scalar(-x)))
    return Range(INT64_MIN if start == lowest else start, INT64_MAX + 1 if end == highest else end)


def _bisect(low: int, high: int, holds: Any) -> int:  # noqa: ANN401 -- a function of a number
    """Give the largest number found for which it holds, ``low`` where none was."""
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _of_place(place: tuple[str | None, int | None], schema: pa.Schema) -> ds.Expression:
    known = ds.scalar(True)  # noqa: FBT003 -- the expression
    for name, value in zip(("topic", "partition"), place, strict=True):
        if name in schema.names:
            field = ds.field(name)
            known = known & (field.is_null() if value is None else field == pa.scalar(value, schema.field(name).type))
    return known
