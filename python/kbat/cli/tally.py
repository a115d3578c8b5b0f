"""Sums over the batches and records of a scan by groups. Memory use does not depend on the log.

The core sums up headers. Records are summed up by PyArrow, whose import takes longer than a short command.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import kbat
from kbat._core.arrow import sum_batches
from kbat.cli import arrow
from kbat.cli.progress import ProgressCallback
from kbat.cli.sums import CLASS_BITS, BatchSums, RecordSums, Sizes

if TYPE_CHECKING:
    import pyarrow as pa

#: Name of a group, and its column in the views of batches and records; `day` is computed.
GROUPS = {
    "topic": "topic",
    "codec": "compression",
    "partition": "partition",
    "producer": "producer_id",
    "magic": "magic",
    "day": "day",
}
DAY_MS = 86_400_000

Key = tuple[Any, ...]

_MERGED_ROWS = 16_384
_MERGED_BYTES = 8 << 20

_RECORD_COLUMNS = ("timestamp", "key", "value", "headers")
_RECORD_SUMS = {
    "key_size": "key_bytes",
    "value_size": "value_bytes",
    "header_size": "header_bytes",
    "headers": "headers",
    "null_key": "null_keys",
    "tombstone": "tombstones",
}


def columns_of_records(keys: Sequence[str]) -> list[str]:
    """Return the columns that `tally_records` needs of a scan."""
    return list(dict.fromkeys([*(key for key in keys if key != "day"), *_RECORD_COLUMNS]))


def tally_batches(scan: kbat.Scan, keys: Sequence[str], callback: ProgressCallback | None) -> dict[Key, BatchSums]:
    """Sum up batches by the values of some columns. The day of a batch is that of its largest timestamp."""
    groups: dict[Key, BatchSums] = {}
    for key, figures, classes in sum_batches(scan, keys, progress=callback):
        sizes = Sizes(Counter(classes), figures.pop("smallest_batch"), figures.pop("largest_batch"))
        groups[key] = BatchSums(**figures, sizes=sizes)
    return groups


def tally_records(
    scan: kbat.Scan, keys: Sequence[str], callback: ProgressCallback | None, threads: int
) -> dict[Key, RecordSums]:
    """Sum up records by the values of some columns. The day of a record is that of its timestamp."""
    groups: dict[Key, RecordSums] = {}
    with arrow.without_pandas():
        for batch in _merged(scan.to_batches(threads=threads, progress=callback)):
            for key, row, sizes in _grouped(_record_table(batch, keys), keys, _RECORD_SUMS):
                sums = RecordSums(
                    **{name: row[f"{column}_sum"] or 0 for column, name in _RECORD_SUMS.items()},
                    records=row["size_count"],
                    sizes=sizes,
                )
                groups.setdefault(key, RecordSums()).add(sums)
    return groups


def _merged(batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    """Merge small Arrow batches, such as those of many small files, because each costs as much as thousands of rows."""
    pa, _ = _arrow()
    waiting: list[Any] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _MERGED_ROWS or size >= _MERGED_BYTES:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting, rows, size = [], 0, 0
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def _grouped(
    table: "pa.Table", keys: Sequence[str], sums: dict[str, str]
) -> Iterator[tuple[Key, dict[str, Any], Sizes]]:
    """Yield the values, the sums and the distribution of sizes of each group of rows."""
    wanted: list[Any] = [(name, "sum") for name in sums]
    wanted += [("size", "count"), ("size", "min"), ("size", "max")]
    distributions: dict[Key, Sizes] = {}
    for row in table.group_by([*keys, "class"]).aggregate([("size", "count")]).to_pylist():
        sizes = distributions.setdefault(tuple(row[key] for key in keys), Sizes())
        sizes.counts[row["class"]] += row["size_count"]
    for row in table.group_by(list(keys)).aggregate(wanted).to_pylist():
        key = tuple(row[name] for name in keys)
        sizes = distributions[key]
        sizes.smallest, sizes.largest = row["size_min"], row["size_max"]
        yield key, row, sizes


def _record_table(batch: "pa.RecordBatch", keys: Sequence[str]) -> Any:  # noqa: ANN401
    """Return what is summed up for each record."""
    pa, pc = _arrow()
    key, value = batch.column("key"), batch.column("value")
    key_sizes, value_sizes = _lengths(key), _lengths(value)
    header_sizes, headers = _headers(batch.column("headers"))
    sizes = pc.add(pc.add(key_sizes, value_sizes), header_sizes)
    values = {
        "size": sizes,
        "key_size": key_sizes,
        "value_size": value_sizes,
        "header_size": header_sizes,
        "headers": headers,
        "null_key": pc.is_null(key).cast(pa.int64()),
        "tombstone": pc.and_(pc.is_valid(key), pc.is_null(value)).cast(pa.int64()),
        "class": _classes(sizes),
    }
    return pa.table({**_key_columns(batch, keys, _numbers(batch, "timestamp")), **values})


def _arrow() -> tuple[Any, Any]:
    import pyarrow as pa  # noqa: PLC0415 - slow, and other commands do not need it
    import pyarrow.compute as pc  # noqa: PLC0415

    return pa, pc


def _numbers(batch: "pa.RecordBatch", name: str) -> Any:  # noqa: ANN401 - any array of PyArrow
    """Return a column of numbers or times as `int64`."""
    pa, _ = _arrow()
    column = batch.column(name)
    return column if column.type == pa.int64() else column.cast(pa.int64())


def _key_columns(batch: "pa.RecordBatch", keys: Sequence[str], timestamps: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the columns to group by; days are counted from the epoch."""
    pa, pc = _arrow()
    computed: dict[str, Callable[[], Any]] = {
        "day": lambda: pc.floor(pc.divide(timestamps.cast(pa.float64(), safe=False), DAY_MS)).cast(pa.int64())
    }
    return {key: computed[key]() if key in computed else batch.column(key) for key in keys}


def _classes(sizes: Any) -> Any:  # noqa: ANN401 - an array of PyArrow
    """Return the smallest size of each size's class: its leading bits."""
    pa, pc = _arrow()
    # exact, because sizes are below 2 ** 53
    bits = pc.floor(pc.log2(pc.max_element_wise(sizes, 1).cast(pa.float64()))).cast(pa.int64())
    shift = pc.max_element_wise(pc.subtract(bits, CLASS_BITS - 1), 0)
    return pc.shift_left(pc.shift_right(sizes, shift), shift)


def _lengths(column: Any) -> Any:  # noqa: ANN401 - an array of PyArrow
    """Return the bytes of each value, 0 for null."""
    pa, pc = _arrow()
    return pc.fill_null(pc.binary_length(column), 0).cast(pa.int64())


def _headers(column: Any) -> tuple[Any, Any]:  # noqa: ANN401 - a list array of PyArrow
    """Return the bytes and the number of headers of each record."""
    pa, pc = _arrow()
    values, offsets = column.values, column.offsets
    sizes = pc.add(_lengths(values.field("key")), _lengths(values.field("value")))
    ends = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(sizes)])
    starts, stops = offsets.slice(0, len(column)), offsets.slice(1)
    counts = pc.subtract(stops, starts).cast(pa.int64())
    return pc.subtract(ends.take(stops), ends.take(starts)), counts
