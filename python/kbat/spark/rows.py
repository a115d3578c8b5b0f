"""Reading in a task: the Arrow batches of what was planned, for every way that rows get into Spark."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import kbat
from kbat.spark.options import LIMIT_OPTIONS, ReadOptions
from kbat.spark.ranges import report_data_loss
from kbat.spark.schema import ERROR_COLUMN, columns_of
from kbat.spark.tally import Tally
from kbat.spark.worker import settle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kbat.spark.filters import RowFilter
    from kbat.spark.plan import Piece, ReadPartition


_ERROR_DDL = f"error {ERROR_COLUMN.data_type.simpleString()}"


@dataclass(frozen=True)
class RowReader:
    """Reads tasks' pieces; pickled with what it needs: the options, and for each name of a column our column."""

    options: ReadOptions
    columns: tuple[tuple[str, str], ...]
    start_timestamp: int | None = None
    end_timestamp: int | None = None

    @classmethod
    def of(cls, options: ReadOptions, schema: StructType) -> RowReader:
        """Return a reader of the columns that a schema has. Raises `ValueError` for one that does not fit."""
        columns = columns_of(schema, options.view)
        if options.on_corrupt == "report" and ERROR_COLUMN not in columns:
            message = f"kbat: the schema has no column error, which onCorrupt=report fills: add {_ERROR_DDL}"
            raise ValueError(message)
        if options.on_corrupt != "report" and ERROR_COLUMN in columns:
            message = "kbat: the column error is there with onCorrupt=report only"
            raise ValueError(message)
        return cls(options, tuple((name, column.field) for name, column in zip(schema.names, columns, strict=True)))

    @property
    def fields(self) -> dict[str, str]:
        """For a column's name in Spark that in `kbat.scan`."""
        return dict(self.columns)

    def within(self, wanted: RowFilter) -> RowReader:
        """Return a reader that may leave out rows that are not wanted."""
        if self.options.on_corrupt != "fail":
            return self  # what a scan passes over by time it passes over by headers, which damage may have changed
        times = wanted.timestamps
        return replace(self, start_timestamp=times.start, end_timestamp=times.end)

    def read(self, partition: ReadPartition) -> Iterator[pa.RecordBatch]:
        """Yield the Arrow batches of one task, straight from Rust. Raises what `kbat.scan` raises."""
        settle()
        tally = Tally(self.options.metrics_path, partition)
        try:
            with advising():
                for pieces in partition.scans():
                    for arrow_batch in tally.over(self.scan(pieces)):
                        yield self._in_order(self._without_others_faults(arrow_batch, pieces))
                    check_sizes(pieces)  # it may have been cut meanwhile
        finally:
            tally.write()

    def scan(self, pieces: Sequence[Piece]) -> kbat.Scan:
        """Return the scan of a run of pieces: columns in their order, but `error` last, under their names there.

        Raises `OSError` for a file that has become shorter than it was planned, and for one that is gone, if
        `failOnDataLoss` does not say to go on without it.
        """
        options = self.options
        check_sizes(pieces)
        topic, partition = pieces[0].partition
        return kbat.scan(
            [piece.source for piece in pieces if _is_there(piece, options)],
            columns=[field for _, field in self.columns if field != "error"],
            view=cast("Any", options.view),
            start_offset=pieces[0].start_offset,
            end_offset=pieces[0].end_offset,
            start_timestamp=self.start_timestamp,
            end_timestamp=self.end_timestamp,
            isolation=cast("Any", options.isolation),
            include_control=options.include_control,
            check_crc=options.check_crc,
            on_corrupt=cast("Any", options.on_corrupt),
            limits=options.limits,
            topic=topic,
            partition=partition,
            timestamp_unit="us",
            leave_page_cache=options.leave_page_cache,
        )

    def _without_others_faults(self, arrow_batch: pa.RecordBatch, pieces: Sequence[Piece]) -> pa.RecordBatch:
        """Leave out faults that a neighbour tells of: a batch that several windows read is damaged once."""
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

    def _in_order(self, arrow_batch: pa.RecordBatch) -> pa.RecordBatch:
        """Give the columns their order and names; the scan puts `error` last, and has an empty list for no headers."""
        if arrow_batch.num_columns and self.columns[-1][1] != "error" and arrow_batch.schema.names[-1] == "error":
            arrow_batch = arrow_batch.select([field for _, field in self.columns])
        return null_headers(arrow_batch).rename_columns([name for name, _ in self.columns])


def check_sizes(pieces: Sequence[Piece]) -> None:
    """Raise `OSError` for a file that ends before a piece of it does.

    A scan would take the end of the file for the end of the log, and the rows behind it would be missing in silence.
    One that is gone is not missed after it was read: what is open stays.
    """
    for piece in pieces:
        try:
            size = os.stat(piece.path).st_size  # noqa: PTH116 -- strings in, strings out
        except FileNotFoundError:
            continue
        if size < piece.end and not piece.is_whole:
            message = (
                f"kbat: {piece.path} has {size} bytes, and had {piece.end} or more when the read was planned: it was "
                "truncated or replaced meanwhile; read again what is there, or a copy that nobody writes to"
            )
            raise OSError(message)


def _is_there(piece: Piece, options: ReadOptions) -> bool:
    """Whether the file of a piece is there still; retention may have come between the plan and the task."""
    is_there = os.path.exists(piece.path)  # noqa: PTH110 -- strings in, strings out
    if not is_there:
        report_data_loss(f"{piece.path} is gone since the read was planned", options)
    return is_there


def null_headers(arrow_batch: pa.RecordBatch) -> pa.RecordBatch:
    """Make `headers` null where a record has none, as Spark's Kafka source does."""
    place = arrow_batch.schema.get_field_index("headers")
    if place < 0:
        return arrow_batch
    import pyarrow as pa  # noqa: PLC0415 -- slow, and the driver needs none

    lists: Any = arrow_batch.column(place)
    bounds = lists.offsets.to_numpy()
    is_empty = pa.array(bounds[1:] == bounds[:-1])
    arrays = arrow_batch.columns
    arrays[place] = pa.ListArray.from_arrays(pa.array(bounds), lists.values, type=lists.type, mask=is_empty)
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_batch.schema)


@dataclass(frozen=True)
class Advice:
    """What lets a job go on after an error, in the words of who gets it."""

    skip: str
    read_on: str
    raise_limit: str

    def add_to(self, error: kbat.KbatError) -> None:
        """Add it to an error, which names file, byte and offset, after the offsets that the damage takes."""
        if isinstance(error, kbat.CorruptError) and (lost := _lost_offsets(error)):
            error.add_note(lost)
        if isinstance(error, kbat.CrcError):
            error.add_note(f"{self.skip}, {self.read_on}")
        elif isinstance(error, kbat.CorruptError):
            error.add_note(self.skip)
        elif isinstance(error, kbat.LimitError):
            error.add_note(self.raise_limit)


_OPTIONS = Advice(
    skip="option onCorrupt=skip leaves the batch out, report tells of it",
    read_on="checkCrc=false reads on",
    raise_limit=f"for files you trust, raise the limit with one of the options {', '.join(LIMIT_OPTIONS)}",
)


def _lost_offsets(error: kbat.CorruptError) -> str | None:
    """Say which offsets a damaged batch of a file takes with it, as a scan that goes on reports them."""
    first = error.base_offset
    if error.path is None or first is None or first < 0:
        return None
    with contextlib.suppress(kbat.KbatError, ValueError, OSError):
        scan = kbat.scan(error.path, columns=[], start_offset=first, end_offset=first + 1, on_corrupt="report")
        for arrow_batch in scan.to_batches():
            for fault in arrow_batch.column(ERROR_COLUMN.field).to_pylist():
                if fault is not None and None not in (fault["first_offset"], fault["last_offset"]):
                    return f"offsets {fault['first_offset']} to {fault['last_offset']} can't be read"
    return None


@contextlib.contextmanager
def advising(advice: Advice = _OPTIONS) -> Iterator[None]:
    """Add advice to the errors of what is done within."""
    try:
        yield
    except kbat.KbatError as error:
        advice.add_to(error)
        raise
