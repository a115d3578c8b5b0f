"""All stages of the measurement: headers, a sample, the codecs, larger batches, and the recommendation."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import kbat.results
from kbat.advise.advice import (
    EQUAL,
    MIN_SPEED,
    SMALL_BATCH,
    Producer,
    Projection,
    Topic,
    best,
    gain,
    is_internal,
    recommend,
)
from kbat.advise.batching import Sender, Sent, joined_sizes, simulate
from kbat.advise.clock import Deadline
from kbat.advise.codecs import DEFAULTS, NONE, SETTINGS, Bench, Chunk, Measured, Setting
from kbat.advise.headers import OTHER_PRODUCERS, Survey, survey
from kbat.advise.sample import Stratum, fill, strata
from kbat.advise.sizes import batch_bytes
from kbat.advise.usual import Order, orders
from kbat.sums import Sums

#: Bytes of the sample before compression, and about how long a measurement takes.
SAMPLE_LEN = 4 << 20
SECONDS = 10.0

Callback = Callable[[int, int], object]
#: Shows the progress of a stage: a function of its name and of the unit of its figures, as `kbat.cli.progress`.
Show = Callable[[str, str], AbstractContextManager[Callback | None]]

# Windows are joined to chunks of this size, because times of small ones are noise.
_CHUNK_LEN = 1 << 18
# Parts of the time, each of the time that is left.
_FOR_HEADERS = 0.25
_FOR_SIZES = 0.1
_FOR_SAMPLE = 0.3
_FOR_CODECS = 0.8


@dataclass
class Advice:
    """The figures of a log and the recommendation.

    Attributes:
        bytes: Size of the batches, without the zeros at the end of preallocated segments.
        survey: What the headers show.
        topics: The largest topics, and the others together.
        projections: The log with each setting.
        orders: The usual order of codecs, put to the test.
        producers: Producers with small or uncompressed batches, the largest first.
        stored_len: Bytes of the sample as stored.
        raw_len: Bytes of the sample before compression.
        sampled_batches: Batches of the sample.
        sampled_records: Records of the sample.
        sampled_windows: Windows of the sample.
        record_sizes: Records of the sample by the bytes of key and value: by the largest power of two in them.
        sample_skipped: Batches that the sample lacks: corrupt ones, and those that are too large to measure.
        min_speed: Bytes per second that a core has to compress.
        seconds: How long the measurement took.
    """

    bytes: int
    survey: Survey
    topics: list[Topic]
    projections: list[Projection] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    producers: list[Producer] = field(default_factory=list)
    stored_len: int = 0
    raw_len: int = 0
    sampled_batches: int = 0
    sampled_records: int = 0
    sampled_windows: int = 0
    sample_skipped: int = 0
    record_sizes: Counter[int] = field(default_factory=Counter)
    min_speed: float = MIN_SPEED
    seconds: float = 0.0

    @property
    def bytes_after(self) -> int:
        """Projected size of the log with the recommendation."""
        return sum(topic.bytes_after for topic in self.topics)

    @property
    def best(self) -> Projection | None:
        """The setting that the rule chooses for the log as a whole."""
        return best(self.projections, self.min_speed)


def _silent(_what: str, _unit: str) -> AbstractContextManager[Callback | None]:
    return nullcontext()


def advise(  # noqa: PLR0913 - options
    segments: Sequence[kbat.results.SegmentFile],
    *,
    found: Survey | None = None,
    sample_len: int = SAMPLE_LEN,
    seconds: float = SECONDS,
    settings: Sequence[Setting] = SETTINGS,
    min_speed: float = MIN_SPEED,
    leave_page_cache: bool = False,
    show: Show = _silent,
    **options: Any,  # noqa: ANN401 - how kbat.scan opens a store
) -> Advice:
    """Measure codecs, levels and batch sizes on segments, and recommend some.

    Args:
        segments: The segments.
        found: What the headers show, if they were read before.
        sample_len: Bytes of the sample, before compression.
        seconds: About how long it may take.
        settings: Codecs and levels to measure.
        min_speed: Bytes per second that a core has to compress with a recommended setting.
        leave_page_cache: Whether to read around the page cache.
        show: Shows the progress of a stage.
        options: How `kbat.scan` opens the segments.
    """
    start = time.monotonic()
    deadline = Deadline(seconds)
    if found is None:
        with show("reading headers", "") as callback:
            part = deadline.part(_FOR_HEADERS)
            found = survey(segments, part, callback, leave_page_cache=leave_page_cache, **options)
    parts = strata(segments)
    with show("reading a sample", "") as callback:
        fill(parts, sample_len, deadline.part(_FOR_SAMPLE), callback, leave_page_cache=leave_page_cache, **options)
    sizes = batch_bytes(parts, found, deadline.part(_FOR_SIZES), **options)
    advice = Advice(
        bytes=sum(sizes),
        survey=found,
        topics=[_topic(one, size, found) for one, size in zip(parts, sizes, strict=True)],
        sample_skipped=sum(one.batches_skipped for one in parts),
        min_speed=min_speed,
    )
    chunks = _chunks(parts)
    if chunks:
        bench = Bench(chunks)
        with show("measuring codecs", "settings") as callback:
            measured = bench.run(settings, deadline.part(_FOR_CODECS), callback)
        _project(advice, parts, bench, measured)
    if advice.projections:
        _recommend(advice, parts, deadline, show)
    advice.seconds = time.monotonic() - start
    return advice


def _topic(stratum: Stratum, size: int, found: Survey) -> Topic:
    return Topic(stratum.name, len(stratum.topics), size, _compression(stratum, size, found), bytes_after=size)


def _compression(stratum: Stratum, size: int, found: Survey) -> dict[str, int]:
    """Return the bytes of a stratum by codec, the most first."""
    topics = set(stratum.topics)
    sums: dict[str, int] = {}
    for writer, one in found.writers.items():
        if writer.topic in topics:
            sums[writer.compression] = sums.get(writer.compression, 0) + one.bytes
    read = sum(sums.values())
    scale = 1.0 if found.is_complete else size / read if read else 0.0
    return {codec: round(part * scale) for codec, part in sorted(sums.items(), key=lambda one: -one[1])}


def _chunks(parts: Sequence[Stratum]) -> list[Chunk]:
    """Join the windows of each stratum to chunks: the first one of each stratum, then the second ones."""
    by_stratum: list[list[Chunk]] = []
    for index, one in enumerate(parts):
        joined: list[list[bytes]] = [[]]
        for window in one.windows:
            if sum(map(len, joined[-1])) >= _CHUNK_LEN:
                joined.append([])
            joined[-1].append(window.data)
        by_stratum.append([Chunk(index, b"".join(data)) for data in joined if data])
    most = max(map(len, by_stratum), default=0)
    return [chunks[place] for place in range(most) for chunks in by_stratum if place < len(chunks)]


def _project(advice: Advice, parts: Sequence[Stratum], bench: Bench, measured: Sequence[Measured]) -> None:
    for index, (topic, one) in enumerate(zip(advice.topics, parts, strict=True)):
        # a log that grows may have its first batch after the headers were read
        if one.raw_len and topic.bytes:
            topic.projections = [_projection(bench, index, topic.bytes, one, each) for each in measured]
    sampled = [one for topic, one in zip(advice.topics, parts, strict=True) if topic.is_sampled]
    if not sampled:
        return
    advice.stored_len = sum(one.stored_len for one in sampled)
    advice.raw_len = sum(one.raw_len for one in sampled)
    windows = [window for one in sampled for window in one.windows]
    advice.sampled_windows = len(windows)
    advice.sampled_batches = sum(len(window.batches) for window in windows)
    advice.sampled_records = sum(batch.record_count for window in windows for batch in window.batches)
    for window in windows:
        for batch in window.batches:
            advice.record_sizes.update(1 << max(0, size.bit_length() - 1) for size in batch.record_sizes)
    today = sum(topic.bytes for topic in advice.topics if topic.is_sampled)
    for place, each in enumerate(measured):
        projected = [topic.projections[place] for topic in advice.topics if topic.is_sampled]
        raw = sum(one.ratio * one.bytes for one in projected)
        size = sum(one.bytes for one in projected)
        # topics without a sample, such as those with only damaged batches, are projected as the others
        scale = advice.bytes / today
        advice.projections.append(
            Projection(
                each.setting,
                round(size * scale),
                advice.bytes,
                raw / size,
                each.compress_rate,
                each.decompress_rate,
                each.raw_len,
            )
        )
    by_setting = {one.setting: one for one in measured}
    advice.orders = orders(by_setting, {one.setting: one.ratio for one in advice.projections})


def _projection(bench: Bench, index: int, today: int, stratum: Stratum, measured: Measured) -> Projection:
    size = bench.size(measured.setting, index)
    return Projection(
        measured.setting,
        round(today * size / stratum.stored_len),
        today,
        stratum.raw_len / size,
        measured.compress_rate,
        measured.decompress_rate,
        measured.raw_len,
    )


def _recommend(advice: Advice, parts: Sequence[Stratum], deadline: Deadline, show: Show) -> None:
    chosen = [_chosen(*each, advice.min_speed) for each in zip(advice.topics, parts, strict=True)]
    settings = [NONE if one is None else one.setting for one in chosen]
    # a codec that is recommended with the batches as they are is so with larger ones
    kept = {index for index, one in enumerate(chosen) if one is None or one.saved < EQUAL}
    with show("joining batches", "windows") as callback:
        found = simulate(parts, settings, deadline, callback, kept=kept)
    for index, topic in enumerate(advice.topics):
        total = Sent()
        for sender, sent in found.items():
            if sender.stratum == index:
                total.add(sent)
        recommend(topic, total, chosen[index])
    advice.producers = _producers(advice, parts, found)


def _chosen(topic: Topic, stratum: Stratum, min_speed: float) -> Projection | None:
    """Return the best setting for the batches as they are; if it saves little, the best one for larger batches."""
    chosen = best(topic.projections, min_speed)
    if chosen is None or chosen.saved >= EQUAL or topic.is_internal:
        return chosen
    candidates = [one for one in topic.projections if one == chosen or one.setting in DEFAULTS]
    sizes = joined_sizes(stratum, [one.setting for one in candidates])
    found = best([replace(one, bytes=sizes[one.setting]) for one in candidates], min_speed) or chosen
    return next(one for one in candidates if one.setting == found.setting)


def _producers(advice: Advice, parts: Sequence[Stratum], found: Mapping[Sender, Sent]) -> list[Producer]:
    """Name the producers that send small or uncompressed batches."""
    strata_of = {topic: index for index, one in enumerate(parts) for topic in one.topics}
    lens_of = [(one.raw_len, one.stored_len) for one in parts]
    writers: dict[tuple[str | None, int], dict[str, Sums]] = {}
    for writer, sums in advice.survey.writers.items():
        if writer.producer_id != OTHER_PRODUCERS and not is_internal(writer.topic):
            writers.setdefault((writer.topic, writer.producer_id), {})[writer.compression] = sums
    named = []
    for (name, producer_id), by_codec in writers.items():
        index = strata_of[name]
        sent = found.get(Sender(index, name, producer_id))
        # a producer without a sample compresses like the others of its stratum
        lens = lens_of[index] if sent is None else (sent.raw_len, sent.stored_len)
        producer = _producer(name, producer_id, by_codec, lens)
        if producer.is_small or producer.is_uncompressed:
            gain(producer, advice.topics[index], sent)
            named.append(producer)
    return sorted(named, key=lambda one: (-one.bytes, str(one.topic), one.producer_id))


def _producer(topic: str | None, producer_id: int, by_codec: Mapping[str, Sums], lens: tuple[int, int]) -> Producer:
    """Return a producer; `lens` are the bytes of its sample before and after compression."""
    total = Sums()
    for sums in by_codec.values():
        total.add(sums)
    compression = {codec: sums.bytes for codec, sums in sorted(by_codec.items(), key=lambda one: -one[1].bytes)}
    mean = total.bytes / total.batches
    raw_len, stored_len = lens
    uncompressed = mean * raw_len / stored_len if stored_len else mean
    return Producer(
        topic=topic,
        producer_id=producer_id,
        batches=total.batches,
        records=total.records,
        bytes=total.bytes,
        mean_batch_bytes=mean,
        mean_uncompressed_bytes=uncompressed,
        records_per_batch=total.records_per_batch,
        compression=compression,
        is_small=uncompressed < SMALL_BATCH,
        is_uncompressed=2 * compression.get("none", 0) >= total.bytes,
    )
