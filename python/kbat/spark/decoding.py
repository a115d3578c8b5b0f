"""`kbat.spark.decode`: decodes a column of record batches to rows.

```
rows with bytes ──► slices of a few megabytes ──► one scan over a slice of Arrow's buffer
                                                 ──► records, each with the row that contains its batch's position
```

The bytes of adjacent rows are adjacent in an Arrow column, so one scan reads them all without a copy if each row
contains complete batches. If a row does not, or anything is corrupt, the slice is read row by row.

In a session with kbat's jar, the JVM decodes, and no row passes through Python:

```
rows with bytes ──► kbat_parts: parts of a few megabytes ──► kbat_decode_part: an array of records ──► inline
```
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions
from pyspark.sql.types import BinaryType, StructType

import kbat
from kbat.spark.column_names import listed, map_in_arrow, quoted
from kbat.spark.jvm import register_in_jvm, runs_in_jvm
from kbat.spark.options import parse_options
from kbat.spark.rows import null_headers
from kbat.spark.schema import ERROR_COLUMN, column_named, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from kbat.spark.options import ReadOptions

# Number of bytes that are decoded together.
SLICE_LEN = 4 << 20

_COLUMNS = ("key", "value", "offset", "timestamp", "timestampType", "headers")
# Options of the data source that also apply to bytes in a column.
_OPTIONS = {
    "on_corrupt": "onCorrupt",
    "check_crc": "checkCrc",
    "include_control": "includeControl",
}
LIMITS = {
    "batch_len": "maxBatchLen",
    "decompressed_len": "maxDecompressedLen",
    "ratio": "maxRatio",
    "ratio_free_len": "ratioFreeLen",
    "record_count": "maxRecordCount",
    "header_count": "maxHeaderCount",
}


def decode(
    df: DataFrame,
    column: str,
    *,
    columns: str | Sequence[str] = _COLUMNS,
    keep: str | Sequence[str] | None = None,
    **options: object,
) -> DataFrame:
    """Decode a column of record batches to one row per record.

    The bytes in a row are one or more batches, as in a Fetch response, in a `.log` file or from `encode`. An incomplete
    last batch is skipped, as by a consumer; with `on_corrupt="report"`, a row of kind `truncated` reports it. A null
    has no records.

    Args:
        df: The DataFrame with the column.
        column: Name of the column, whose type is binary.
        columns: Columns of the records: those of the data source except `topic`, `partition` and `segment`.
        keep: Other columns of `df` to repeat for each record; by default all except `column`.
        options: `on_corrupt` (`"fail"`, `"skip"`, or `"report"`, which adds the column `error`), `check_crc`,
            `include_control`, and the limits by the names of `kbat.Limits`. None means the default.

    Raises:
        TypeError: `column` is not a name.
        ValueError: An unknown column or option, a column that is named twice, or a column of `df` with the name of a
            column of the records.

    Example:
        >>> kbat.spark.decode(spark.read.format("binaryFile").load("/dumps/*.bin"), "content", keep=["path"])
    """
    if not isinstance(column, str):
        message = "kbat: column must be the name of a column, not a Column"
        raise TypeError(message)
    given = _given(options)
    parsed = parse_options(given)
    asked = listed(columns, "columns")
    if ERROR_COLUMN.name in asked:
        message = 'kbat: the column error is added as the last column with on_corrupt="report"; remove it from columns'
        raise ValueError(message)
    names = [*asked, *(ERROR_COLUMN.name,) * (parsed.on_corrupt == "report")]
    kept = [name for name in df.columns if name != column] if keep is None else listed(keep, "keep")
    _check(df, column, names, kept)
    if not names and not kept:
        message = "kbat: columns and keep are both empty; name at least one column; offset is the cheapest"
        raise ValueError(message)
    if runs_in_jvm(df.sparkSession):
        return _decode_in_jvm(df, column, kept, names, given)
    fields = tuple((name, column_named(name).field) for name in names)
    schema = StructType([*(df.schema[name] for name in kept), *schema_of(names).fields])
    decoder = Decoder(parsed, column, tuple(kept), fields)
    taken = tuple(dict.fromkeys((column, *kept)))
    return map_in_arrow(df, taken, lambda batches: chain.from_iterable(map(decoder.decode, batches)), schema)


def _decode_in_jvm(
    df: DataFrame, column: str, kept: Sequence[str], names: Sequence[str], given: dict[str, str]
) -> DataFrame:
    """Decode the columns `names` with the functions of the jar, which are registered in the session for that."""
    register_in_jvm(df.sparkSession, is_internal=True)
    taken = {name.lower() for name in kept}
    part = next(name for name in ("part" + "_" * count for count in range(len(taken) + 1)) if name not in taken)
    asked = [name for name in names if name != ERROR_COLUMN.name]
    # all bytes of a row are scanned together if rows report positions in them
    is_divided = functions.lit(asked == list(names))
    settings = functions.lit(json.dumps({"columns": ",".join(asked or ["offset"]), **given}))
    keys = [functions.col(quoted(name)) for name in kept]
    parts = functions.explode(functions.call_function("kbat_parts", functions.col(quoted(column)), is_divided))
    records = functions.inline(functions.call_function("kbat_decode_part", functions.col(part), settings))
    decoded = df.select(*keys, parts.alias(part)).select(*keys, records.alias(*names if asked else (part, *names)))
    return decoded if asked else decoded.drop(part)


def _given(options: dict[str, object]) -> dict[str, str]:
    names = _OPTIONS | LIMITS
    unknown = [name for name in options if name not in names]
    if unknown:
        message = f"kbat: decode has no option {unknown[0]}; choose among {', '.join(names)}"
        raise ValueError(message)
    return {names[name]: str(value) for name, value in options.items() if value is not None}


def _check(df: DataFrame, column: str, names: Sequence[str], kept: Sequence[str]) -> None:
    missing = [name for name in (column, *kept) if name not in df.columns]
    if missing:
        message = f"kbat: the DataFrame has no column {missing[0]}; it has {', '.join(df.columns)}"
        raise ValueError(message)
    if not isinstance(df.schema[column].dataType, BinaryType):
        message = f"kbat: column {column} has type {df.schema[column].dataType.simpleString()}, but must be binary"
        raise ValueError(message)  # noqa: TRY004 -- as for all that the user names
    fields = listed((column_named(name).field for name in names), "columns")
    wrong = [name for name, field in zip(names, fields, strict=True) if field in {"topic", "partition", "segment"}]
    if wrong:
        message = f"kbat: record batches do not contain a {wrong[0]}; list a column of the DataFrame in keep instead"
        raise ValueError(message)
    taken = {name.lower() for name in kept} & {name.lower() for name in names}
    if taken:
        message = (
            f"kbat: both the DataFrame and the records have a column {min(taken)}; "
            "rename it, or choose the columns with keep and columns"
        )
        raise ValueError(message)


@dataclass(frozen=True)
class Decoder:
    """Decodes the column `column` and repeats `kept`; `fields` has the names in Spark and in `kbat.scan`."""

    options: ReadOptions
    column: str
    kept: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]

    def decode(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the records of the rows of an Arrow batch."""
        place = batch.schema.get_field_index(self.column)
        column: Any = batch.column(place).cast(pa.large_binary())
        for start, end in _slices(_bounds(column)):
            part = column.slice(start, end - start)
            for rows, records in self._records(part):
                for first, after in self._parts(batch, rows + start):
                    yield self._joined(batch, rows[first:after] + start, records.slice(first, after - first))

    def _parts(self, batch: pa.RecordBatch, rows: Any) -> Iterator[tuple[int, int]]:  # noqa: ANN401 -- numpy
        """Yield runs of records whose repeated columns have a few megabytes: an Arrow column is limited to 2 GiB."""
        lengths = np.zeros(batch.num_rows, dtype=np.int64)
        for name in self.kept:
            column = batch.column(batch.schema.get_field_index(name))
            lengths += _lengths(column)
        yield from _slices(np.concatenate([[0], np.cumsum(lengths[rows])]))

    def _joined(self, batch: pa.RecordBatch, rows: Any, records: pa.RecordBatch) -> pa.RecordBatch:  # noqa: ANN401 -- numpy
        kept = [batch.column(batch.schema.get_field_index(name)).take(pa.array(rows)) for name in self.kept]
        if self.options.on_corrupt == "report" and ERROR_COLUMN.field not in records.schema.names:
            records = records.append_column(ERROR_COLUMN.field, pa.nulls(records.num_rows, _error_type()))
        records = null_headers(records)
        arrays = [*kept, *(records.column(field) for _, field in self.fields)]
        return pa.RecordBatch.from_arrays(arrays, names=[*self.kept, *(name for name, _ in self.fields)])

    def _records(self, part: Any) -> Iterator[tuple[Any, pa.RecordBatch]]:  # noqa: ANN401 -- large binary
        """Yield records and the number of each record's row, counted from the start of `part`."""
        bounds = _bounds(part)
        together = self._together(part, bounds)
        if together is not None:
            yield from together
            return
        try:
            for row in range(len(part)):
                if part[row].is_valid:
                    for records in self._scan(part[row].as_buffer(), self.options.on_corrupt).to_batches():
                        yield np.full(records.num_rows, row), records
        except kbat.KbatError as error:
            _advise(error)
            raise

    def _together(self, part: Any, bounds: Any) -> list[tuple[Any, pa.RecordBatch]] | None:  # noqa: ANN401 -- numpy
        """Read all rows at once; None if a row does not contain complete batches, or anything is corrupt."""
        if bounds[-1] == bounds[0]:
            return []
        data = part.buffers()[2].slice(bounds[0], bounds[-1] - bounds[0])
        starts = bounds[:-1] - bounds[0]
        try:
            if not self._holds_whole_batches(data, starts[bounds[:-1] != bounds[1:]]):
                return None
            found = []
            for records in self._scan(data, "fail", with_position=True).to_batches():
                positions = records.column("position").to_numpy()
                rows = np.searchsorted(starts, positions, side="right") - 1
                within = pa.array(positions - starts[rows], pa.int64())  # the position within its row
                found.append((rows, records.set_column(records.schema.get_field_index("position"), "position", within)))
        except kbat.KbatError:
            return None
        return found

    def _holds_whole_batches(self, data: pa.Buffer, starts: Any) -> bool:  # noqa: ANN401 -- numpy
        scan = kbat.scan(data, view="batches", columns=["position", "size"], limits=self.options.limits)
        batches = scan.to_pyarrow()
        positions, sizes = (batches.column(name).to_numpy() for name in ("position", "size"))
        is_whole = len(positions) > 0 and positions[-1] + sizes[-1] == data.size
        return bool(is_whole and np.isin(starts, positions).all())

    def _scan(self, data: pa.Buffer, on_corrupt: Any, *, with_position: bool = False) -> kbat.Scan:  # noqa: ANN401 -- a word
        fields = [field for _, field in self.fields if field != ERROR_COLUMN.field]
        if with_position and "position" not in fields:
            fields.append("position")
        options = self.options
        return kbat.scan(
            data,
            columns=fields,
            include_control=options.include_control,
            check_crc=options.check_crc,
            on_corrupt=on_corrupt,
            limits=options.limits,
            timestamp_unit="us",
        )


def _advise(error: kbat.KbatError) -> None:
    """Add the arguments that let a job continue after an error."""
    if isinstance(error, kbat.errors.LimitError):
        error.add_note(f"for bytes you trust, raise the limit with one of the arguments {', '.join(LIMITS)}")
    elif isinstance(error, kbat.CorruptError):
        read_on = ", check_crc=False reads its records all the same" if isinstance(error, kbat.errors.CrcError) else ""
        error.add_note(f'on_corrupt="skip" omits the batch, "report" adds a row that describes it{read_on}')


def _error_type() -> Any:  # noqa: ANN401 -- pyarrow's overloads know no type in general
    return kbat.scan(b"", on_corrupt="report").schema.field(ERROR_COLUMN.field).type


def _bounds(column: Any) -> Any:  # noqa: ANN401 -- numpy
    """Return the position of each row's bytes in the array's buffer, and the end of the last row."""
    return np.frombuffer(column.buffers()[1], dtype=np.int64)[column.offset : column.offset + len(column) + 1]


def _lengths(column: Any) -> Any:  # noqa: ANN401 -- numpy
    """Return the approximate number of bytes of each value of a column."""
    kinds = pa.types.is_binary, pa.types.is_string, pa.types.is_large_binary, pa.types.is_large_string
    if any(is_kind(column.type) for is_kind in kinds):
        return pc.binary_length(column).fill_null(0).to_numpy().astype(np.int64)
    return np.full(len(column), column.nbytes // max(len(column), 1), dtype=np.int64)


def _slices(bounds: Any) -> Iterator[tuple[int, int]]:  # noqa: ANN401 -- numpy
    """Yield runs of rows of about `SLICE_LEN` bytes."""
    start = 0
    count = len(bounds) - 1
    while start < count:
        end = int(np.searchsorted(bounds, bounds[start] + SLICE_LEN, side="right")) - 1
        end = min(max(end, start + 1), count)
        yield start, end
        start = end
