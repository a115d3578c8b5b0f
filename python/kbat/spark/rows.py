"""Reads the Arrow batches of a task's pieces, for all entry points of the package."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import kbat
from kbat.spark.intervals import EVERYTHING, Interval
from kbat.spark.options import LIMIT_OPTIONS, ReadOptions
from kbat.spark.ranges import report_data_loss
from kbat.spark.schema import ERROR_COLUMN, columns_of
from kbat.spark.stores import look_up, named_as_option, scheme_of
from kbat.spark.tally import Tally
from kbat.spark.topics import NO_PARTITION
from kbat.spark.worker import settle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kbat.spark.filters import RowFilter
    from kbat.spark.plan import Piece, ReadPartition


_ERROR_DDL = f"error {ERROR_COLUMN.data_type.simpleString()}"


@dataclass(frozen=True)
class RowReader:
    """Reads the pieces of tasks. It is pickled; `columns` are pairs of names in Spark and in `kbat.scan`."""

    options: ReadOptions
    columns: tuple[tuple[str, str], ...]
    times: Interval = EVERYTHING

    @classmethod
    def of(cls, options: ReadOptions, schema: StructType) -> RowReader:
        """Return a reader of a schema's columns, for a batch read. Raises `ValueError` for a wrong schema."""
        columns = columns_of(schema, options.view)
        if options.on_corrupt == "report" and ERROR_COLUMN not in columns:
            message = f"kbat: the schema has no column error, which onCorrupt=report fills: add {_ERROR_DDL}"
            raise ValueError(message)
        if options.on_corrupt != "report" and ERROR_COLUMN in columns:
            message = "kbat: the column error requires onCorrupt=report"
            raise ValueError(message)
        pairs = tuple((name, column.field) for name, column in zip(schema.names, columns, strict=True))
        return cls(options, pairs, options.times)

    @property
    def fields(self) -> dict[str, str]:
        """The names of columns in `kbat.scan`, by their names in Spark."""
        return dict(self.columns)

    def within(self, wanted: RowFilter) -> RowReader:
        """Return a reader that may omit rows that the filters of a query exclude."""
        if self.options.on_corrupt != "fail":
            return self  # a scan within times does not report corruption outside of them
        times = self.times.intersect(wanted.scannable_times)
        return self if times.is_empty else replace(self, times=times)

    def unbounded(self) -> RowReader:
        """Return a reader of rows with any timestamp, for streams."""
        return replace(self, times=EVERYTHING)

    def read(self, partition: ReadPartition) -> Iterator[pa.RecordBatch]:
        """Yield the Arrow batches of one task, straight from Rust. Raises the errors of `kbat.scan`."""
        settle()
        tally = Tally(self.options.metrics_path, partition)
        try:
            with advising(keywords=self.options.keywords):
                for pieces in partition.scans():
                    for arrow_batch in tally.over(self.scan(pieces)):
                        own = self._own_part(self._own_faults(arrow_batch, pieces), pieces[0].part)
                        yield self._in_order(own)
                    check_sizes(pieces)
        finally:
            tally.write()

    def scan(self, pieces: Sequence[Piece]) -> kbat.Scan:
        """Return the scan of a run of pieces: columns in order, with their names in `kbat.scan`, and `error` last.

        For a piece that is a part of a batch, adds the column `offset`. Raises `OSError` for a file that is shorter
        than at planning, and for one that no longer exists unless `failOnDataLoss=false`.
        """
        options = self.options
        found = look_up(list(dict.fromkeys(piece.path for piece in pieces)), options.keywords)
        _check_found(pieces, found)
        topic, partition = pieces[0].partition if pieces[0].is_labelled else NO_PARTITION
        columns = [field for _, field in self.columns if field != "error"]
        if pieces[0].part != EVERYTHING and "offset" not in columns:
            columns.append("offset")
        return kbat.scan(
            [_source(piece, found[piece.path]) for piece in pieces if _is_there(piece, found, options)],
            columns=columns,
            view=cast("Any", options.view),
            start_offset=pieces[0].start_offset,
            end_offset=pieces[0].end_offset,
            start_timestamp=self.times.start,
            end_timestamp=self.times.end,
            isolation=cast("Any", options.isolation),
            include_control=options.include_control,
            check_crc=options.check_crc,
            on_corrupt=cast("Any", options.on_corrupt),
            limits=options.limits,
            topic=topic,
            partition=partition,
            timestamp_unit="us",
            leave_page_cache=options.leave_page_cache,
            **(missing_timestamps() if options.view == "records" else {}),
            **(options.keywords if any(not isinstance(file, int) for file in found.values()) else {}),
        )

    def _own_faults(self, arrow_batch: pa.RecordBatch, pieces: Sequence[Piece]) -> pa.RecordBatch:
        """Omit corruption that another window reports, as several windows may read one batch."""
        if self.options.on_corrupt != "report" or all(piece.own_end is None for piece in pieces):
            return arrow_batch
        errors = arrow_batch.column(ERROR_COLUMN.field)
        if errors.null_count == len(errors):
            return arrow_batch
        ends = [(piece.path, piece.start, piece.end if piece.own_end is None else piece.own_end) for piece in pieces]
        is_own = [
            error is None
            or any(error["path"] == path and start <= error["position"] < end for path, start, end in ends)
            for error in errors.to_pylist()
        ]
        return arrow_batch.filter(is_own)

    def _own_part(self, arrow_batch: pa.RecordBatch, part: Interval) -> pa.RecordBatch:
        """Omit the rows outside a part of a batch; the last part reports corruption.

        A scan with offset bounds would not find a batch whose stored offset is corrupt.
        """
        if part == EVERYTHING:
            return arrow_batch
        compute: Any = importlib.import_module("pyarrow.compute")  # slow, and only needed here
        if part.start is not None:
            is_after = compute.greater_equal(arrow_batch.column("offset"), part.start)
            arrow_batch = arrow_batch.filter(compute.fill_null(is_after, fill_value=True))
        if part.end is not None:
            is_before = compute.less(arrow_batch.column("offset"), part.end)
            arrow_batch = arrow_batch.filter(compute.fill_null(is_before, fill_value=False))
        return arrow_batch

    def _in_order(self, arrow_batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns in the schema's order under its names; the scan has an empty list for no headers."""
        fields = [field for _, field in self.columns]
        if arrow_batch.schema.names != fields:
            arrow_batch = arrow_batch.select(fields)
        return null_headers(arrow_batch).rename_columns([name for name, _ in self.columns])


def check_sizes(pieces: Sequence[Piece]) -> None:
    """Raise `OSError` for a file that was truncated during the read and ends before one of the pieces does.

    A file that was deleted during the read is not an error: its open handle stays valid. Objects of a store do not
    change while kbat reads them: it raises an error for one that was replaced.
    """
    local = list(dict.fromkeys(piece.path for piece in pieces if not scheme_of(piece.path)))
    sizes: dict[str, int | kbat.SegmentFile] = {}
    for path in local:
        with contextlib.suppress(FileNotFoundError):
            sizes[path] = os.stat(path).st_size  # noqa: PTH116 -- strings in, strings out
    _check_found(pieces, sizes)


def _check_found(pieces: Sequence[Piece], found: Mapping[str, int | kbat.SegmentFile]) -> None:
    """Raise `OSError` for a file that ends before one of the pieces does.

    A scan would stop at the end of the file without an error, and the rows after it would be missing.
    """
    for piece in pieces:
        file = found.get(piece.path)
        if file is None:
            continue
        size = file if isinstance(file, int) else file.size
        if size < piece.end and not piece.is_whole:
            message = (
                f"kbat: {piece.path} has {size} bytes, and had {piece.end} or more when the read was planned: it was "
                "truncated or replaced since then; run the query again, or read a copy that does not change"
            )
            raise OSError(message)


def _is_there(piece: Piece, found: Mapping[str, object], options: ReadOptions) -> bool:
    """Whether the file of a piece still exists; retention may have deleted it after planning."""
    is_there = piece.path in found
    if not is_there:
        report_data_loss(f"{piece.path} was deleted after the read was planned", options)
    return is_there


def _source(piece: Piece, file: int | kbat.SegmentFile) -> str | tuple[str, int, int] | kbat.SegmentFile:
    """Return a piece for `kbat.scan`; a complete file in a store is already open."""
    is_complete = not isinstance(file, int) and (piece.is_whole or (piece.start, piece.end) == (0, file.size))
    return file if is_complete and not isinstance(file, int) else piece.source


def null_headers(arrow_batch: pa.RecordBatch) -> pa.RecordBatch:
    """Make `headers` null for records without headers, as Spark's Kafka source does."""
    place = arrow_batch.schema.get_field_index("headers")
    if place < 0:
        return arrow_batch
    import pyarrow as pa  # noqa: PLC0415 -- slow, and not needed by the driver

    lists: Any = arrow_batch.column(place)
    bounds = lists.offsets.to_numpy()
    is_empty = pa.array(bounds[1:] == bounds[:-1])
    arrays = arrow_batch.columns
    arrays[place] = pa.ListArray.from_arrays(pa.array(bounds), lists.values, type=lists.type, mask=is_empty)
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_batch.schema)


@functools.cache
def missing_timestamps() -> dict[str, Any]:
    """Return the argument of `kbat.scan` with which records without a timestamp have -1 ms, as in Spark's Kafka source.

    Empty for a compiled module that has -1 anyway.
    """
    return {"missing_timestamp": -1} if "missing_timestamp" in inspect.signature(kbat.scan).parameters else {}


@dataclass(frozen=True)
class Advice:
    """The options that let a job continue after an error, worded for the call that raised it."""

    skip: str
    read_on: str
    raise_limit: str

    def add_to(self, error: kbat.KbatError, keywords: Mapping[str, Any]) -> None:
        """Add it to an error, after the offsets that the corruption affects."""
        if isinstance(error, kbat.CorruptError) and (lost := _lost_offsets(error, keywords)):
            error.add_note(lost)
        if isinstance(error, kbat.CrcError):
            error.add_note(f"{self.skip}, {self.read_on}")
        elif isinstance(error, kbat.CorruptError):
            error.add_note(self.skip)
        elif isinstance(error, kbat.LimitError):
            error.add_note(self.raise_limit)


_OPTIONS = Advice(
    skip="option onCorrupt=skip omits the batch, onCorrupt=report adds a row that describes it",
    read_on="checkCrc=false reads its records all the same",
    raise_limit=f"for files you trust, raise the limit with one of the options {', '.join(LIMIT_OPTIONS)}",
)


def _lost_offsets(error: kbat.CorruptError, keywords: Mapping[str, Any]) -> str | None:
    """Return the offsets that a corrupt batch of a file affects, as reported with `on_corrupt="report"`."""
    first = error.base_offset
    if error.path is None or first is None or first < 0:
        return None
    with contextlib.suppress(kbat.KbatError, ValueError, OSError):
        bounds: dict[str, Any] = {"start_offset": first, "end_offset": first + 1}
        scan = kbat.scan(error.path, columns=[], on_corrupt="report", **bounds, **keywords)
        for arrow_batch in scan.to_batches():
            for fault in arrow_batch.column(ERROR_COLUMN.field).to_pylist():
                if fault is not None and None not in (fault["first_offset"], fault["last_offset"]):
                    return _offsets_text(fault["first_offset"], fault["last_offset"])
    return None


def _offsets_text(first: int, last: int) -> str:
    return f"offset {first} can't be read" if first == last else f"offsets {first} to {last} can't be read"


@contextlib.contextmanager
def advising(advice: Advice = _OPTIONS, keywords: Mapping[str, Any] = MappingProxyType({})) -> Iterator[None]:
    """Add advice to the errors of the block, in which kbat opens files with `keywords`."""
    try:
        yield
    except kbat.KbatError as error:
        advice.add_to(error, keywords)
        raise
    except ValueError as error:
        named = named_as_option(error)
        if named is error:
            raise
        raise named from None
