"""What the headers of batches show: who writes how many batches of which size with which codec.

A header has 61 bytes, so all headers of a log are read in a fraction of the time of its records. If even that takes too
long, segments that are spread over the log are read until the time is over, and the figures are those of this part.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import compute

import kbat.results
from kbat.advise.clock import Deadline, spread
from kbat.sums import Sums

#: The producer id of batches without idempotence, and of the producers that did not fit the memory.
NO_PRODUCER = -1
OTHER_PRODUCERS = -2

_COLUMNS = ("topic", "producer_id", "compression", "is_control", "size", "record_count")
_KEYS = list(_COLUMNS[:4])
#: Producers with figures of their own; later ones are counted together.
MAX_PRODUCERS = 100_000
# Segments in one scan.
_AT_ONCE = 64


class Writer(NamedTuple):
    """The batches of a producer in a topic with one codec."""

    topic: str | None
    producer_id: int
    compression: str


def counted_as(writer: Writer, writers: Mapping[Writer, object]) -> Writer:
    """Return the writer itself, or the other producers of its topic and codec if there are too many writers."""
    is_counted = writer in writers or len(writers) < MAX_PRODUCERS
    return writer if is_counted else writer._replace(producer_id=OTHER_PRODUCERS)


@dataclass
class Survey:
    """Batches by writer, and what part of the log was read.

    Attributes:
        writers: The batches of each writer, without markers of transactions.
        control: Markers of transactions.
        topic_bytes: Bytes of all batches by topic, with markers.
        segments_read: Number of segments that were read.
        segment_count: Number of all segments.
        bytes_read: Bytes of the batches that were read.
        batches_skipped: Number of corrupt ranges.
        bytes_lost: Bytes of corrupt ranges, and of incomplete batches.
    """

    writers: dict[Writer, Sums] = field(default_factory=dict)
    control: Sums = field(default_factory=Sums)
    topic_bytes: Counter[str | None] = field(default_factory=Counter)
    segments_read: int = 0
    segment_count: int = 0
    bytes_read: int = 0
    batches_skipped: int = 0
    bytes_lost: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether all headers were read."""
        return self.segments_read == self.segment_count

    @property
    def total(self) -> Sums:
        """All batches with records."""
        total = Sums()
        for sums in self.writers.values():
            total.add(sums)
        return total

    def add(self, writer: Writer, sums: Sums) -> None:
        """Add batches of a writer."""
        self.writers.setdefault(counted_as(writer, self.writers), Sums()).add(sums)


def survey(
    segments: Sequence[kbat.results.SegmentFile],
    deadline: Deadline,
    callback: Callable[[int, int], object] | None = None,
    **options: Any,  # noqa: ANN401 - those of kbat.scan
) -> Survey:
    """Read the headers of segments, in an order that is spread over the log, until a deadline."""
    found = Survey(segment_count=len(segments))
    ordered = [segments[index] for index in spread(len(segments))]
    total = sum(segment.size for segment in segments)
    for start in range(0, len(ordered), _AT_ONCE):
        some = ordered[start : start + _AT_ONCE]
        scan = kbat.scan(some, view="batches", columns=_COLUMNS, on_corrupt="skip", **options)
        is_whole = True
        for batch in scan.to_batches():
            if found.bytes_read and deadline.is_over:
                is_whole = False
                break
            for is_control, writer, sums in _sums(batch):
                found.bytes_read += sums.bytes
                found.topic_bytes[writer.topic] += sums.bytes
                if is_control:
                    found.control.add(sums)
                else:
                    found.add(writer, sums)
            if callback:
                callback(found.bytes_read, total)
        found.segments_read += len(some) if is_whole else 0
        if scan.stats is not None:
            found.batches_skipped += scan.stats.batches_skipped
            found.bytes_lost += scan.stats.bytes_lost
        if deadline.is_over:
            break
    return found


def _sums(batch: pa.RecordBatch) -> Iterator[tuple[bool, Writer, Sums]]:
    uncounted = compute.is_null(batch.column("record_count"))
    columns = {
        "size": batch.column("size").cast(pa.int64()),
        "record_count": batch.column("record_count").cast(pa.int64()),
        "uncounted": uncounted.cast(pa.int64()),
    }
    table = pa.table({**{key: batch.column(key) for key in _KEYS}, **columns})
    grouped = table.group_by(_KEYS).aggregate([*((name, "sum") for name in columns), ("size", "count")])
    for row in grouped.to_pylist():
        writer = Writer(row["topic"], row["producer_id"], row["compression"])
        counts = Sums(row["size_count"], row["size_sum"], row["record_count_sum"] or 0, row["uncounted_sum"])
        yield bool(row["is_control"]), writer, counts
