"""PyArrow: a scan as a dataset, and the bounds on offsets and times in its filters.

PyArrow's expressions are opaque in Python. But a dataset drops fragments for which a filter can't be true, according to
the known bounds of their rows. So the bounds of a filter are found by asking PyArrow's simplifier: could it be true of
rows with an offset below x?

The dataset is a subclass of PyArrow's, because DuckDB pushes filters only into these. PyArrow's operations in C++
(joins, sorting, unions, acero) never call methods of a subclass. So the class wraps a real dataset with one file, which
is written from the scan's rows when PyArrow opens it.
"""

from __future__ import annotations

import bisect
import itertools
import weakref
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import FSSpecHandler, LocalFileSystem, PyFileSystem

from kbat.frames.bounds import INT64_MAX, INT64_MIN, Bounds, Range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbat._core.arrow import Scan

FORMAT = ds.IpcFileFormat()
LOCAL_FILES = LocalFileSystem()

#: Arguments of PyArrow that a pass uses, and those about reading files, which have no effect here.
USED_OPTIONS = {"batch_size", "use_threads", "memory_pool"}
OF_FILES = {"batch_readahead", "fragment_readahead", "fragment_scan_options", "cache_metadata"}

#: Largest number of Arrow batches that PyArrow filters and projects in one step.
MAX_BATCHES_PER_STEP = 16


class Dataset(ds.UnionDataset):
    """A scan as a ``pyarrow.dataset.Dataset``; see :func:`kbat.dataset`."""

    def __init__(self, scan: Scan, where: ds.Expression | None = None) -> None:
        """Wrap the scan."""
        files = PyFileSystem(_Rows(scan, where))  # type: ignore[abstract]  # missing in PyArrow's stub
        rows = ds.FileSystemDataset([FORMAT.make_fragment("rows", files)], scan.schema, FORMAT, files)
        super().__init__(scan.schema, [rows])  # type: ignore[call-arg]  # missing in PyArrow's stub
        self._scan = scan
        self._where = where

    @property
    def schema(self) -> pa.Schema:
        """The scan's schema."""
        return self._scan.schema

    def filter(self, expression: ds.Expression) -> Dataset:
        """Return the dataset of the rows for which the expression is also true."""
        return Dataset(self._scan, _and(self._where, expression))

    # expressions as columns are missing in PyArrow's stub
    def scanner(  # type: ignore[override]
        self,
        columns: list[str] | dict[str, ds.Expression] | None = None,
        filter: ds.Expression | None = None,  # noqa: A002 -- PyArrow's name
        **options: Any,  # noqa: ANN401 -- those of PyArrow
    ) -> ds.Scanner:
        """Start a pass. PyArrow's other options are used if they apply to a stream."""
        # the scan's own stream: a PyArrow thread that reads from Python would keep the interpreter from exiting
        return _Pass(self._scan, columns, _and(self._where, filter), options).over_stream()

    def to_batches(self, columns: Any = None, filter: Any = None, **options: Any) -> Iterator[pa.RecordBatch]:  # type: ignore[override]  # noqa: A002, ANN401 -- PyArrow's
        """Iterate a pass in this thread, which stops at Ctrl-C and raises kbat's own exceptions."""
        return _Pass(self._scan, columns, _and(self._where, filter), options).batches()

    def to_table(self, columns: Any = None, filter: Any = None, **options: Any) -> pa.Table:  # type: ignore[override]  # noqa: A002, ANN401 -- PyArrow's
        """Return all rows, as ``to_batches`` does."""
        reading = _Pass(self._scan, columns, _and(self._where, filter), options)
        return pa.Table.from_batches(reading.batches(), reading.schema)

    def head(self, num_rows: int, columns: Any = None, filter: Any = None, **options: Any) -> pa.Table:  # type: ignore[override]  # noqa: A002, ANN401 -- PyArrow's
        """Return the first rows, as ``to_batches`` does."""
        reading = _Pass(self._scan, columns, _and(self._where, filter), options)
        return pa.Table.from_batches(_first(num_rows, reading.batches()), reading.schema)

    def take(self, indices: Any, columns: Any = None, filter: Any = None, **options: Any) -> pa.Table:  # type: ignore[override]  # noqa: A002, ANN401 -- PyArrow's
        """Return the rows with these indices, in this order, as ``to_batches`` does; other rows are not kept."""
        reading = _Pass(self._scan, columns, _and(self._where, filter), options)
        places = pa.array(indices, pa.int64())
        order = pc.sort_indices(places)
        rows = pa.Table.from_batches(_at(places.take(order), reading.batches()), reading.schema)
        if len(rows) < len(places):
            message = f"index {pc.max(places)} is beyond the last row"
            raise IndexError(message)
        return rows.take(pc.sort_indices(order))

    def count_rows(self, filter: Any = None, **options: Any) -> int:  # type: ignore[override]  # noqa: A002, ANN401 -- PyArrow's
        """Count the rows, as ``to_batches`` does."""
        return sum(batch.num_rows for batch in self.to_batches([], filter, **options))

    def get_fragments(self, filter: ds.Expression | None = None) -> Iterator[ds.Fragment]:  # noqa: A002 -- PyArrow's name
        """Unsupported: PyArrow does not read files of batches."""
        raise NotImplementedError("a kbat dataset has no fragments")  # noqa: EM101 -- one sentence

    def replace_schema(self, schema: pa.Schema) -> Dataset:  # type: ignore[override]  # a narrower result
        """Unsupported, except with the same schema, which a union passes."""
        if schema == self.schema:
            return self
        raise NotImplementedError("a kbat dataset keeps its schema")  # noqa: EM101 -- one sentence

    def __reduce__(self) -> Any:  # noqa: ANN401 -- pickle's own
        """Unsupported."""
        message = "a kbat dataset can't be pickled: pickle its path and options"
        raise TypeError(message)


class _Pass:
    """Reads the part of a scan that a query needs, and applies PyArrow's filter and projection."""

    def __init__(self, scan: Scan, columns: Any, where: ds.Expression | None, options: dict[str, Any]) -> None:  # noqa: ANN401 -- names or expressions
        wanted = _columns_of(columns, where, scan.schema)
        bounds = bounds_of(where, scan, scan.schema) if where is not None else Bounds()
        self._scan = bounds.narrow(scan, wanted)
        if unknown := options.keys() - USED_OPTIONS - OF_FILES:
            message = f"there is no argument {min(unknown)}; choose among {', '.join(sorted(USED_OPTIONS | OF_FILES))}"
            raise TypeError(message)
        heeded: dict[str, Any] = {name: options[name] for name in USED_OPTIONS & options.keys()}
        self._asked: dict[str, Any] = {
            "columns": scan.schema.names if columns is None else columns,
            "filter": where,
            **heeded,
        }

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows after the projection."""
        return self._over([]).projected_schema

    def over_stream(self) -> ds.Scanner:
        """Return a scanner that reads the scan's stream."""
        return ds.Scanner.from_batches(pa.RecordBatchReader.from_stream(self._scan), **self._asked)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the scan in this thread, and pass complete Arrow batches to PyArrow."""
        self._over([])  # raises for a missing column
        return self._read()

    def _read(self) -> Iterator[pa.RecordBatch]:
        batches, count = self._scan.to_batches(), 1
        while some := list(itertools.islice(batches, count)):
            yield from self._over(some).to_batches()
            count = min(2 * count, MAX_BATCHES_PER_STEP)

    def _over(self, batches: list[pa.RecordBatch]) -> ds.Scanner:
        # a table's reader is C++: PyArrow threads that read a Python iterator would keep the interpreter from exiting
        rows = pa.Table.from_batches(batches, self._scan.schema)
        return ds.Scanner.from_batches(rows.to_reader(), **self._asked)


def _first(count: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.slice(0, count)
        count -= batch.num_rows
        if count <= 0:
            return


def _at(places: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 -- rising int64
    start = done = 0
    for batch in batches:
        if done == len(places):
            return
        end = start + batch.num_rows
        until = bisect.bisect_left(places, end, done, key=lambda place: place.as_py())
        yield batch.take(pc.subtract(places.slice(done, until - done), start))
        start, done = end, until


class _Rows(FSSpecHandler):
    """A file system with one file, which has the rows of a scan for which a filter holds, read when it is opened."""

    def __init__(self, scan: Scan, where: ds.Expression | None) -> None:
        super().__init__(scan)
        self._scan, self._where = scan, where
        self._made: Any = lambda: None

    def get_type_name(self) -> str:
        return "kbat"

    def open_input_file(self, path: str) -> pa.NativeFile:  # noqa: ARG002 -- there is one
        # PyArrow opens the file twice at the same time, first for its schema
        made = self._made()
        if made is None:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_file(sink, self._scan.schema) as file:
                for batch in _Pass(self._scan, None, self._where, {"use_threads": False}).batches():
                    file.write_batch(batch)
            made = memoryview(sink.getvalue())
            self._made = weakref.ref(made)
        return pa.BufferReader(made)


def _and(one: ds.Expression | None, other: ds.Expression | None) -> ds.Expression | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _columns_of(columns: Any, where: ds.Expression | None, schema: pa.Schema) -> list[str]:  # noqa: ANN401 -- names or expressions
    """Return the columns that a query reads: it fails without each of them."""
    expressions = [where, *(columns.values() if isinstance(columns, dict) else [])]
    if columns is None or any("FieldPath(" in str(one) for one in expressions):  # positions would change
        return list(schema.names)
    empty = pa.schema([field.with_type(_without_views(field.type)) for field in schema]).empty_table()
    needed = []
    for name in schema.names:
        rest = empty.drop_columns([name])
        try:
            ds.Scanner.from_batches(rest.to_reader(), columns=columns, filter=where).to_table()
        except pa.ArrowInvalid:
            needed.append(name)
    return needed


def _without_views(data_type: pa.DataType) -> pa.DataType:
    """Return the type without binary views, which PyArrow can't filter."""
    if pa.types.is_binary_view(data_type):
        return pa.binary()
    if pa.types.is_list(data_type):
        return pa.list_(_without_views(data_type.value_type))
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_without_views(field.type)) for field in data_type])
    return data_type


def bounds_of(where: ds.Expression, scan: Scan, schema: pa.Schema) -> Bounds:
    """Return the bounds that all rows are within for which the filter holds."""
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
    """Whether a filter can hold for rows with known bounds."""

    def __init__(self, where: ds.Expression, schema: pa.Schema) -> None:
        self._where, self._schema = where, schema

    def possible(self, known: ds.Expression) -> bool:
        fragment = FORMAT.make_fragment("", LOCAL_FILES, partition_expression=known)
        whole = ds.FileSystemDataset([fragment], self._schema, FORMAT, LOCAL_FILES)
        try:
            return any(True for _ in whole.get_fragments(self._where))
        except pa.ArrowException:  # a literal does not fit the type that the filter compares
            return True


def _range(ask: _Question, name: str, schema: pa.Schema) -> Range:
    data_type = schema.field(name).type
    per = 1000 if data_type == pa.timestamp("us", "UTC") else 1
    lowest, highest = -(-INT64_MIN // per), INT64_MAX // per

    def scalar(value: int) -> ds.Expression:
        return ds.scalar(pa.scalar(value * per, pa.int64()).cast(data_type))

    field = ds.field(name)
    if ask.possible(field.is_null()):  # rows of corruption have nulls
        return Range()
    # the largest x without rows below it, and the smallest without rows from it on
    start = _bisect(lowest, highest, lambda x: not ask.possible(field < scalar(x)))
    end = -_bisect(-highest, -lowest, lambda x: not ask.possible(field >= scalar(-x)))
    return Range(INT64_MIN if start == lowest else start, INT64_MAX + 1 if end == highest else end)


def _bisect(low: int, high: int, holds: Any) -> int:  # noqa: ANN401 -- a function of a number
    """Return the largest number for which ``holds`` is true, or ``low``."""
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
