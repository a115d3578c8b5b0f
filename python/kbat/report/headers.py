"""The headers of all batches, read once: what a report shows by partition, producer, time and size."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute

import kbat.results
from kbat.advise.headers import Survey, Writer, counted_as
from kbat.report.timeline import END_OF_TIME, MONDAY, Timeline
from kbat.sums import Sums

#: Durations in milliseconds at which the classes of lateness begin; the first class is "none".
DURATIONS = (1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)

# The stubs do not know how its functions combine arrays and numbers.
compute: Any = pyarrow.compute

_COLUMNS = (
    "topic", "partition", "size", "stored_size", "record_count", "compression", "producer_id", "producer_epoch",
    "is_control", "base_offset", "last_offset", "base_timestamp", "max_timestamp", "delete_horizon",
)  # fmt: skip
_PARTITION = ["topic", "partition"]
_WRITER = ["topic", "producer_id", "compression", "is_control"]
# Corrupt ranges that are listed.
_MAX_CORRUPTIONS = 1000

Callback = Callable[[int, int], object]
Key = tuple[str | None, int | None]


@dataclass
class Partition:
    """The batches of a partition.

    Attributes:
        sums: Counts and bytes, with control batches.
        control_batches: Number of control batches.
        first_offset: Base offset of the first batch, None if unknown.
        end_offset: The offset after the last batch.
        first_timestamp: The smallest timestamp of a batch, None if there is none.
        last_timestamp: The largest one.
        late_batches: Batches whose newest record is older than one before it.
        lateness: The longest of these delays, in milliseconds.
        horizons: Batches with a delete horizon.
        last_horizon: The latest delete horizon.
        compression: Bytes by codec, without control batches.
    """

    sums: Sums = field(default_factory=Sums)
    control_batches: int = 0
    first_offset: int | None = None
    end_offset: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    late_batches: int = 0
    lateness: int = 0
    horizons: int = 0
    last_horizon: int | None = None
    compression: Counter[str] = field(default_factory=Counter)


@dataclass
class Sent:
    """The batches of a producer in a topic with one codec, without control batches."""

    sums: Sums = field(default_factory=Sums)
    epoch: int = -1
    first_timestamp: int | None = None
    last_timestamp: int | None = None


@dataclass
class Histogram:
    """Numbers of batches, and their bytes and records, by class."""

    batches: Counter[int] = field(default_factory=Counter)
    bytes: Counter[int] = field(default_factory=Counter)
    records: Counter[int] = field(default_factory=Counter)


@dataclass
class Headers:
    """Everything that the pass adds up. Classes of sizes and counts are powers of two, the smallest value of a class.

    Attributes:
        partitions: By topic and partition.
        writers: By topic, producer and codec.
        timeline: Bytes by time and the index of the topic in `topics`; the last index means all others.
        topics: Topics with a series of their own.
        batch_sizes: Batches by size.
        batch_records: Batches by number of records.
        record_sizes: Batches by their mean bytes per record.
        lateness: Batches by how much older they are than an earlier one; classes of `DURATIONS`.
        spans: Batches by the time from their first to their newest record; classes of `DURATIONS`.
        corruptions: The first corrupt ranges.
        corruption_count: Number of corrupt ranges, with incomplete last batches.
        batches_skipped: Number of corrupt ranges, without incomplete last batches.
        bytes_lost: Bytes of all corrupt ranges, and of incomplete batches.
    """

    topics: list[str | None]
    partitions: dict[Key, Partition] = field(default_factory=dict)
    writers: dict[Writer, Sent] = field(default_factory=dict)
    timeline: Timeline = field(default_factory=Timeline)
    batch_sizes: Histogram = field(default_factory=Histogram)
    batch_records: Histogram = field(default_factory=Histogram)
    record_sizes: Histogram = field(default_factory=Histogram)
    lateness: Histogram = field(default_factory=Histogram)
    spans: Histogram = field(default_factory=Histogram)
    corruptions: list[dict[str, Any]] = field(default_factory=list)
    corruption_count: int = 0
    batches_skipped: int = 0
    bytes_lost: int = 0

    @property
    def survey(self) -> Survey:
        """The same figures as `kbat.advise` needs them."""
        found = Survey({writer: sent.sums for writer, sent in self.writers.items()})
        found.batches_skipped, found.bytes_lost = self.batches_skipped, self.bytes_lost
        for (topic, _), partition in self.partitions.items():
            found.topic_bytes[topic] += partition.sums.bytes
        return found


def read(
    segments: Sequence[kbat.results.SegmentFile],
    topics: list[str | None],
    callback: Callback | None = None,
    **options: Any,  # noqa: ANN401 - those of kbat.scan
) -> Headers:
    """Read all headers of segments, which are sorted by topic, partition and offset."""
    found = Headers(topics)
    total = sum(segment.size for segment in segments)
    scan = kbat.scan(list(segments), view="batches", columns=_COLUMNS, on_corrupt="report", **options)
    newest: dict[Key, int] = {}
    done = 0
    for batch in scan.to_batches():
        rows = _without_errors(batch, found)
        if rows.num_rows:
            done += _add(found, _computed(rows, newest))
            found.timeline.settle()
        if callback:
            callback(done, total)
    if scan.stats is not None:
        found.batches_skipped, found.bytes_lost = scan.stats.batches_skipped, scan.stats.bytes_lost
    return found


def _without_errors(batch: pa.RecordBatch, found: Headers) -> pa.RecordBatch:
    errors = batch.column("error")
    if errors.null_count == batch.num_rows:
        return batch
    known: list[Any] = errors.filter(compute.is_valid(errors)).to_pylist()
    for error in known:
        found.corruption_count += 1
        if len(found.corruptions) < _MAX_CORRUPTIONS:
            found.corruptions.append(error)
    return batch.filter(compute.is_null(errors))


def _computed(rows: pa.RecordBatch, newest: dict[Key, int]) -> pa.Table:
    """Return what is added up, one row per batch."""
    size, records = _whole(rows, "size"), _whole(rows, "record_count")
    counted = compute.if_else(compute.equal(records, 0), None, records)
    last, first = _time(rows, "max_timestamp"), _time(rows, "base_timestamp")
    first = compute.coalesce(first, last)
    late = compute.subtract(_running_max(rows, last, newest), last)
    columns: dict[str, Any] = {
        **{name: rows.column(name) for name in ("topic", "partition", "compression", "producer_id", "is_control")},
        "epoch": rows.column("producer_epoch").cast(pa.int64()),
        "size": size,
        "records": compute.fill_null(records, 0),
        "uncounted": compute.is_null(records).cast(pa.int64()),
        "control": rows.column("is_control").cast(pa.int64()),
        "base_offset": rows.column("base_offset"),
        "end_offset": compute.add(rows.column("last_offset"), 1),
        "first": first,
        "last": last,
        "late": late,
        "is_late": compute.greater(late, 0).cast(pa.int64()),
        "horizon": _time(rows, "delete_horizon"),
        "size_class": _power(size),
        "records_class": _power(records),
        "record_class": _power(compute.divide(_whole(rows, "stored_size"), counted)),
        "late_class": _duration(late),
        "span_class": _duration(compute.max_element_wise(compute.subtract(last, first), 0, skip_nulls=False)),
    }
    return pa.table(columns)


def _whole(rows: pa.RecordBatch, name: str) -> Any:  # noqa: ANN401 - an array of PyArrow
    return rows.column(name).cast(pa.int64())


def _time(rows: pa.RecordBatch, name: str) -> Any:  # noqa: ANN401 - an array of PyArrow
    """Return times as milliseconds; null if they are before the epoch or beyond every calendar."""
    times = _whole(rows, name)
    is_date = compute.and_(compute.greater_equal(times, 0), compute.less(times, END_OF_TIME))
    return compute.if_else(is_date, times, None)


def _running_max(rows: pa.RecordBatch, times: Any, newest: dict[Key, int]) -> Any:  # noqa: ANN401 - arrays
    """Return for each batch the largest timestamp of its partition up to it."""
    parts = []
    for key, start, length in _runs(rows):
        part = compute.cumulative_max(times.slice(start, length), skip_nulls=True)
        if key in newest:
            part = compute.max_element_wise(part, newest[key], skip_nulls=False)
        largest = compute.max(part).as_py()
        if largest is not None:
            newest[key] = largest
        parts.append(part)
    return pa.concat_arrays(parts)


def _runs(rows: pa.RecordBatch) -> Iterator[tuple[Key, int, int]]:
    """Split rows by partition; return the key, the first row and the number of rows of each run."""
    count = rows.num_rows
    changes = [0]
    if count > 1:
        is_new = None
        for name in _PARTITION:
            column = rows.column(name)
            differs = compute.not_equal(column.slice(1), column.slice(0, count - 1))
            # files outside of a partition directory have no topic: two nulls are not a change
            differs = compute.fill_null(differs, fill_value=False)
            is_new = differs if is_new is None else compute.or_(is_new, differs)
        changes += [index + 1 for index in compute.indices_nonzero(is_new).to_pylist()]
    for start, end in zip(changes, [*changes[1:], count], strict=True):
        key = (rows.column("topic")[start].as_py(), rows.column("partition")[start].as_py())
        yield key, start, end - start


def _power(numbers: Any) -> Any:  # noqa: ANN401 - an array of PyArrow
    """Return the largest power of two in each number; 1 for 0."""
    bits = compute.floor(compute.log2(compute.max_element_wise(numbers, 1, skip_nulls=False).cast(pa.float64())))
    return compute.shift_left(pa.scalar(1, pa.int64()), bits.cast(pa.int64()))


def _duration(numbers: Any) -> Any:  # noqa: ANN401 - an array of PyArrow
    """Return the number of `DURATIONS` that each number reaches."""
    reached = [compute.greater_equal(numbers, limit).cast(pa.int64()) for limit in DURATIONS]
    found = reached[0]
    for one in reached[1:]:
        found = compute.add(found, one)
    return found


_SUMS: list[Any] = [("size", "count"), ("size", "sum"), ("records", "sum"), ("uncounted", "sum")]


def _sums(row: dict[str, Any]) -> Sums:
    return Sums(row["size_count"], row["size_sum"], row["records_sum"], row["uncounted_sum"])


def _add(found: Headers, table: pa.Table) -> int:
    """Add rows to all figures, and return their bytes."""
    done = _add_partitions(found, table)
    _add_writers(found, table)
    _add_times(found, table)
    histograms = {
        "size_class": found.batch_sizes,
        "records_class": found.batch_records,
        "record_class": found.record_sizes,
        "late_class": found.lateness,
        "span_class": found.spans,
    }
    for name, histogram in histograms.items():
        for row in table.group_by([name]).aggregate(_SUMS).to_pylist():
            if row[name] is not None:
                histogram.batches[row[name]] += row["size_count"]
                histogram.bytes[row[name]] += row["size_sum"]
                histogram.records[row[name]] += row["records_sum"]
    return done


def _add_partitions(found: Headers, table: pa.Table) -> int:
    wanted: list[Any] = [
        *_SUMS, ("control", "sum"), ("base_offset", "min"), ("end_offset", "max"), ("first", "min"), ("last", "max"),
        ("is_late", "sum"), ("late", "max"), ("horizon", "count"), ("horizon", "max"),
    ]  # fmt: skip
    done = 0
    for row in table.group_by(_PARTITION).aggregate(wanted).to_pylist():
        one = found.partitions.setdefault((row["topic"], row["partition"]), Partition())
        one.sums.add(_sums(row))
        one.control_batches += row["control_sum"]
        one.first_offset = least(one.first_offset, row["base_offset_min"])
        one.end_offset = most(one.end_offset, row["end_offset_max"])
        one.first_timestamp = least(one.first_timestamp, row["first_min"])
        one.last_timestamp = most(one.last_timestamp, row["last_max"])
        one.late_batches += row["is_late_sum"] or 0
        one.lateness = max(one.lateness, row["late_max"] or 0)
        one.horizons += row["horizon_count"]
        one.last_horizon = most(one.last_horizon, row["horizon_max"])
        done += row["size_sum"]
    # control batches are never compressed
    data = table.filter(compute.equal(table.column("control"), 0))
    for row in data.group_by([*_PARTITION, "compression"]).aggregate([("size", "sum")]).to_pylist():
        found.partitions[row["topic"], row["partition"]].compression[row["compression"]] += row["size_sum"]
    return done


def _add_writers(found: Headers, table: pa.Table) -> None:
    wanted: list[Any] = [*_SUMS, ("epoch", "max"), ("first", "min"), ("last", "max")]
    for row in table.group_by(_WRITER).aggregate(wanted).to_pylist():
        writer = Writer(row["topic"], row["producer_id"], row["compression"])
        if not row["is_control"]:
            one = found.writers.setdefault(counted_as(writer, found.writers), Sent())
            one.sums.add(_sums(row))
            one.epoch = max(one.epoch, row["epoch_max"])
            one.first_timestamp = least(one.first_timestamp, row["first_min"])
            one.last_timestamp = most(one.last_timestamp, row["last_max"])


def _add_times(found: Headers, table: pa.Table) -> None:
    width = found.timeline.width
    # floats are exact here, and whole numbers are divided toward zero
    buckets = compute.floor(compute.divide(compute.add(table.column("last"), MONDAY).cast(pa.float64()), float(width)))
    names = compute.index_in(table.column("topic"), value_set=pa.array(found.topics, pa.string()))
    columns: dict[str, Any] = {"bucket": buckets.cast(pa.int64()), "name": names, "size": table.column("size")}
    for row in pa.table(columns).group_by(["bucket", "name"]).aggregate([("size", "sum")]).to_pylist():
        name = len(found.topics) if row["name"] is None else row["name"]
        found.timeline.add(row["bucket"], name, row["size_sum"])


def least(one: int | None, other: int | None) -> int | None:
    """Return the smaller of two numbers that may be unknown."""
    return other if one is None else one if other is None else min(one, other)


def most(one: int | None, other: int | None) -> int | None:
    """Return the larger of two numbers that may be unknown."""
    return other if one is None else one if other is None else max(one, other)
