"""A bounded sample of the records of a log: windows of adjacent batches, spread over all of its bytes.

Topics are sampled on their own, because they compress differently: the largest ones each, the others together. Each
gets a part of the sample by its size, and at least a minimum. Where a window begins is computed from the size of the
segments; the batch there is found with the offset index. Without an index, reading begins inside a batch, and the scan
searches for the next one.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute

import kbat.results
from kbat.advise.clock import Deadline, points, spread

#: Topics with a sample of their own.
TOPICS = 10
#: A limit of `kbat.encode` that no batch of the sample reaches.
ONE_BATCH = 1 << 30

_COLUMNS = (
    "key", "value", "headers", "timestamp", "offset", "position", "batch_size", "compression", "producer_id",
)  # fmt: skip
# Bytes of adjacent batches in a window, before compression, and the least that a topic gets of the sample.
_WINDOW_LEN = 1 << 18
_MIN_LEN = 1 << 18
# A small sample has smaller windows, so that there are some of them.
_SHORTEST_WINDOW = 1 << 16
_WINDOWS = 8
# Bounds on what one window costs: its records after decompression, and its batches.
_LIMITS = kbat.Limits(decompressed_len=1 << 26)
_MAX_BATCHES = 2048
# Windows of a topic, which may be very short, as in 10,000 partitions with one batch each.
_MAX_WINDOWS = 512
# A stratum with up to this many times the bytes of its sample is listed window by window.
_FEW = 4
_ERRORS = (kbat.KbatError, OSError, ValueError)


@dataclass(frozen=True)
class Sampled:
    """A batch of the sample."""

    producer_id: int
    compression: str
    stored_len: int
    rows: pa.RecordBatch
    data: bytes
    first_timestamp: int | None

    @property
    def record_count(self) -> int:
        """Number of records."""
        return self.rows.num_rows

    @property
    def record_sizes(self) -> list[int]:
        """Bytes of key and value of each record, 0 for null."""
        # the stubs do not know that a scan has columns of bytes
        compute: Any = pyarrow.compute
        lens = (compute.binary_length(self.rows.column(name)) for name in ("key", "value"))
        keys, values = (compute.fill_null(one, 0) for one in lens)
        return list(compute.add(keys, values).to_pylist())


class Window(NamedTuple):
    """Adjacent batches of a partition."""

    partition: tuple[str | None, int | None]
    batches: list[Sampled]

    @property
    def data(self) -> bytes:
        """The batches without compression, in message format 2."""
        return b"".join(batch.data for batch in self.batches)

    @property
    def stored_len(self) -> int:
        """Bytes of the batches as stored."""
        return sum(batch.stored_len for batch in self.batches)


@dataclass
class Stratum:
    """Segments that are sampled together: a large topic, or all others."""

    topics: list[str | None]
    segments: list[kbat.results.SegmentFile]
    windows: list[Window] = field(default_factory=list)
    batches_skipped: int = 0

    @property
    def name(self) -> str | None:
        """The topic; None for a file outside of a partition directory, and for several topics."""
        return self.topics[0] if len(self.topics) == 1 else None

    @property
    def size(self) -> int:
        """Bytes of the segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def raw_len(self) -> int:
        """Bytes of the sampled batches without compression."""
        return sum(len(batch.data) for window in self.windows for batch in window.batches)

    @property
    def stored_len(self) -> int:
        """Bytes of the sampled batches as stored."""
        return sum(window.stored_len for window in self.windows)


def strata(segments: Sequence[kbat.results.SegmentFile], topics: int = TOPICS) -> list[Stratum]:
    """Return the largest topics, each on its own, and all others together."""
    by_topic: dict[str | None, list[kbat.results.SegmentFile]] = {}
    for segment in segments:
        if segment.size:
            by_topic.setdefault(segment.topic, []).append(segment)
    alone = [Stratum([topic], some) for topic, some in by_topic.items()]
    alone.sort(key=lambda one: (-one.size, str(one.name)))
    rest = alone[topics:]
    if len(rest) > 1:
        joined = [segment for one in rest for segment in one.segments]
        return [*alone[:topics], Stratum([one.name for one in rest], joined)]
    return alone


def fill(
    found: Sequence[Stratum],
    max_bytes: int,
    deadline: Deadline,
    callback: Callable[[int, int], object] | None = None,
    *,
    leave_page_cache: bool = False,
    **options: Any,  # noqa: ANN401 - those of kbat.scan
) -> None:
    """Read windows of each stratum, together about a number of bytes before compression."""
    reader = _Reader(options, leave_page_cache=leave_page_cache)
    total = sum(one.size for one in found)
    floor = min(_MIN_LEN, max_bytes // max(1, len(found)))
    read = 0
    for index, one in enumerate(found):
        budget = max(floor, max_bytes * one.size // max(1, total))
        part = deadline.part(1 / (len(found) - index))
        for window in reader.windows(one, budget, part):
            one.windows.append(window)
            read += len(window.data)
            if callback:
                callback(min(read, max_bytes), max_bytes)


class _Start(NamedTuple):
    """Where a window begins."""

    segment: kbat.results.SegmentFile
    position: int
    is_inside: bool = False


class _Reader:
    """Reads windows of segments, each batch once."""

    def __init__(self, options: dict[str, Any], *, leave_page_cache: bool) -> None:
        self._options = options
        self._leave_page_cache = leave_page_cache
        self._seen: set[tuple[str, int]] = set()

    def windows(self, stratum: Stratum, budget: int, deadline: Deadline) -> Iterator[Window]:
        """Read windows until they have a number of bytes before compression; some even after the deadline."""
        window_len = min(_WINDOW_LEN, max(_SHORTEST_WINDOW, budget // _WINDOWS))
        is_empty = True
        for count, start in enumerate(self._starts(stratum, budget, window_len)):
            is_late = deadline.is_over and (count >= _WINDOWS or not is_empty)
            if budget <= 0 or is_late or count >= _MAX_WINDOWS:
                return
            batches = self._window(stratum, start, min(budget, window_len))
            if batches:
                is_empty = False
                window = Window((start.segment.topic, start.segment.partition), batches)
                budget -= len(window.data)
                yield window

    def _starts(self, stratum: Stratum, budget: int, window_len: int) -> Iterator[_Start]:
        """Return where windows begin: all of them if the stratum is not much larger than the sample, else some."""
        if stratum.size <= _FEW * budget:
            parts = [
                _Start(segment, position)
                for segment in stratum.segments
                for position in self._parts(segment, window_len)
            ]
            yield from (parts[index] for index in spread(len(parts)))
            return
        ends = list(accumulate(segment.size for segment in stratum.segments))
        for count, point in enumerate(points(ends[-1])):
            index = bisect_right(ends, point)
            segment = stratum.segments[index]
            if count >= _WINDOWS and not stratum.windows:
                # preallocated segments end in zeros, and may have nothing else in most places
                yield _Start(segment, 0)
            else:
                yield self._start(segment, point - (ends[index] - segment.size) - window_len // 2)

    def _parts(self, segment: kbat.results.SegmentFile, window_len: int) -> list[int]:
        if segment.size <= window_len:
            return [0]
        return [start for _, start, _ in kbat.split(segment, window_len, **self._options)]

    def _start(self, segment: kbat.results.SegmentFile, position: int) -> _Start:
        """Return the start of a batch near a position, or the position itself if no index leads to one."""
        if position <= 0:
            return _Start(segment, 0)
        try:
            log = kbat.Segment(segment)
            if "index" in log.files:
                offsets = log.end_offset - log.base_offset
                place = log.find_offset(log.base_offset + offsets * position // segment.size)
                if place is not None and place.index == "used":
                    return _Start(segment, place.position)
        except _ERRORS:
            # not named like a segment, or corrupt
            pass
        return _Start(segment, position, is_inside=True)

    def _window(self, stratum: Stratum, start: _Start, budget: int) -> list[Sampled]:
        path = start.segment.path
        scan = kbat.scan(
            (path, start.position, start.position + _WINDOW_LEN),
            columns=_COLUMNS,
            on_corrupt="skip",
            limits=_LIMITS,
            leave_page_cache=self._leave_page_cache,
            **self._options,
        )
        batches: list[Sampled] = []
        for rows in scan.to_batches():
            for position, batch in _batches(rows):
                if (path, position) not in self._seen and budget > 0 and len(batches) < _MAX_BATCHES:
                    self._seen.add((path, position))
                    batches.append(batch)
                    budget -= len(batch.data)
            if budget <= 0 or len(batches) >= _MAX_BATCHES:
                break
        skipped = scan.stats.batches_skipped if scan.stats is not None else 0
        # the end of the batch in which the window begins is not corrupt
        stratum.batches_skipped += max(0, skipped - start.is_inside)
        return batches


def _batches(rows: pa.RecordBatch) -> Iterator[tuple[int, Sampled]]:
    """Split the rows of a scan by Kafka batch, and encode each batch without compression."""
    start = 0
    for position, run in groupby(rows.column("position").to_pylist()):
        end = start + sum(1 for _ in run)
        part = rows.slice(start, end - start)
        start = end
        first = {name: part.column(name)[0].as_py() for name in ("producer_id", "compression", "batch_size")}
        records = part.select(["key", "value", "headers", "timestamp", "offset"])
        yield (
            cast("int", position),
            Sampled(
                producer_id=first["producer_id"],
                compression=first["compression"],
                stored_len=first["batch_size"],
                rows=records,
                data=_encoded(records),
                first_timestamp=records.column("timestamp").cast(pa.int64())[0].as_py(),
            ),
        )


def _encoded(records: pa.RecordBatch) -> bytes:
    """Encode the records of a batch. Offsets that fall, as in old message sets, and negative times are omitted."""
    for missing in ([], ["offset"]):
        try:
            return kbat.encode(records.drop_columns(missing), batch_bytes=ONE_BATCH)
        except ValueError:
            continue
    return kbat.encode(records.select(["key", "value", "headers"]), batch_bytes=ONE_BATCH)
