"""Everything that a report shows, as plain figures: bytes, counts, milliseconds since the epoch."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import kbat.results
from kbat.advise import Advice, advise
from kbat.report import compaction, headers
from kbat.report.compaction import Compaction
from kbat.report.headers import Headers, Key, Partition, least, most
from kbat.sums import Sums

#: Topics with a color of their own.
TOPICS = 8
# For the advice, which is a part of the report.
_SAMPLE_LEN = 2 << 20

Show = Callable[[str, str], AbstractContextManager[Callable[[int, int], object] | None]]


@dataclass(frozen=True)
class Finding:
    """Something wrong with a file.

    Attributes:
        severity: "error", "warning" or "info".
        kind: A stable name.
        path: The file.
        position: Its byte, None for the whole file.
        offset: Kafka's offset, None if unknown.
        message: What is wrong.
    """

    severity: str
    kind: str
    path: str
    position: int | None
    offset: int | None
    message: str


@dataclass
class Check:
    """What was checked, and what is wrong.

    Attributes:
        is_complete: Whether `kbat.verify` has read everything; otherwise only headers were read.
        findings: What was found.
        omitted: Number of findings that are not listed.
        commands: Commands that help, each with its purpose.
    """

    is_complete: bool = False
    findings: list[Finding] = field(default_factory=list)
    omitted: int = 0
    commands: dict[str, str] = field(default_factory=dict)


@dataclass
class PartitionRow:
    """A partition: its batches, segments and compaction."""

    topic: str | None
    partition: int | None
    size: int
    segments: int
    batches: Partition
    compaction: Compaction | None


@dataclass
class TopicRow:
    """A topic: sums over its partitions."""

    topic: str | None
    size: int = 0
    partitions: int = 0
    segments: int = 0
    sums: Sums = field(default_factory=Sums)
    compression: Counter[str] = field(default_factory=Counter)
    first_timestamp: int | None = None
    last_timestamp: int | None = None


@dataclass
class Report:
    """The figures of a log.

    Attributes:
        paths: What was read.
        size: Bytes of all segments.
        created: When, milliseconds since the epoch.
        headers: Sums over the headers of all batches.
        topics: The topics, the largest first.
        partitions: The partitions, the largest first.
        check: What is wrong.
        stray: Directories that are not live partitions: path and state.
        is_clean_shutdown: Whether a broker has shut down cleanly; None if the path is not a log directory.
        advice: The recommendation.
        seconds: How long the measurement took.
    """

    paths: list[str]
    size: int
    created: int
    headers: Headers
    topics: list[TopicRow]
    partitions: list[PartitionRow]
    check: Check
    stray: list[tuple[str, str]]
    is_clean_shutdown: bool | None
    advice: Advice
    seconds: float = 0.0

    @property
    def total(self) -> TopicRow:
        """The sums over all topics."""
        total = TopicRow(None)
        for topic in self.topics:
            _add(total, topic)
        return total


def _silent(_what: str, _unit: str) -> AbstractContextManager[None]:
    return nullcontext()


def collect(  # noqa: PLR0913 - options
    paths: Sequence[str],
    segments: Sequence[kbat.results.SegmentFile],
    check: Check,
    *,
    seconds: float = 5.0,
    leave_page_cache: bool = False,
    show: Show = _silent,
    **options: Any,  # noqa: ANN401 - how kbat.scan opens a store
) -> Report:
    """Read the headers of all batches, and a sample of the records.

    Args:
        paths: What was searched for segments.
        segments: The segments, sorted by topic, partition and offset.
        check: What is wrong, if it is known. Corrupt headers are added otherwise.
        seconds: About how long the measurement for the advice may take.
        leave_page_cache: Whether to read around the page cache.
        show: Shows the progress of a stage.
        options: How `kbat.scan` opens the segments.
    """
    start = time.monotonic()
    sizes: Counter[str | None] = Counter()
    for segment in segments:
        sizes[segment.topic] += segment.size
    with show("reading headers", "") as callback:
        largest = [topic for topic, _ in sizes.most_common(TOPICS)]
        found = headers.read(segments, largest, callback, leave_page_cache=leave_page_cache, **options)
    cleaned, errors = compaction.offsets(paths, options)
    partitions = _partitions(found, segments, cleaned)
    if not check.is_complete:
        _add_corruptions(check, found, errors)
    advice = advise(
        segments,
        found=found.survey,
        sample_len=_SAMPLE_LEN,
        seconds=seconds,
        leave_page_cache=leave_page_cache,
        show=show,
        **options,
    )
    stray, is_clean = _directory(paths, options)
    return Report(
        paths=list(paths),
        size=sum(sizes.values()),
        created=time.time_ns() // 1_000_000,
        headers=found,
        topics=_topics(partitions),
        partitions=partitions,
        check=check,
        stray=stray,
        is_clean_shutdown=is_clean,
        advice=advice,
        seconds=time.monotonic() - start,
    )


def _partitions(
    found: Headers, segments: Sequence[kbat.results.SegmentFile], cleaned: Mapping[tuple[str, int], int]
) -> list[PartitionRow]:
    by_key: dict[Key, list[kbat.results.SegmentFile]] = {}
    for key, some in groupby(segments, key=lambda one: (one.topic, one.partition)):
        by_key.setdefault(key, []).extend(some)
    rows = [_partition(found, key, some, cleaned) for key, some in by_key.items()]
    return sorted(rows, key=lambda row: (-row.size, str(row.topic), row.partition or 0))


def _partition(
    found: Headers, key: Key, segments: list[kbat.results.SegmentFile], cleaned: Mapping[tuple[str, int], int]
) -> PartitionRow:
    topic, number = key
    batches = found.partitions.get(key, Partition())
    first_dirty = None if topic is None or number is None else cleaned.get((topic, number))
    is_compacted = first_dirty is not None or batches.horizons
    return PartitionRow(
        topic=topic,
        partition=number,
        size=sum(one.size for one in segments),
        segments=len(segments),
        batches=batches,
        compaction=compaction.state(batches, segments, first_dirty) if is_compacted else None,
    )


def _topics(partitions: Sequence[PartitionRow]) -> list[TopicRow]:
    by_name: dict[str | None, TopicRow] = {}
    for one in partitions:
        batches = one.batches
        row = TopicRow(
            one.topic,
            size=one.size,
            partitions=1,
            segments=one.segments,
            sums=batches.sums,
            compression=batches.compression,
            first_timestamp=batches.first_timestamp,
            last_timestamp=batches.last_timestamp,
        )
        _add(by_name.setdefault(one.topic, TopicRow(one.topic)), row)
    return sorted(by_name.values(), key=lambda row: (-row.size, str(row.topic)))


def _add(total: TopicRow, one: TopicRow) -> None:
    total.size += one.size
    total.partitions += one.partitions
    total.segments += one.segments
    total.sums.add(one.sums)
    total.compression.update(one.compression)
    total.first_timestamp = least(total.first_timestamp, one.first_timestamp)
    total.last_timestamp = most(total.last_timestamp, one.last_timestamp)


def _add_corruptions(check: Check, found: Headers, errors: Sequence[str]) -> None:
    check.findings += [Finding("warning", "corrupt", "", None, None, error) for error in errors]
    for one in found.corruptions:
        # a broker that writes, or was killed, leaves an incomplete batch
        severity = "warning" if one["kind"] == "truncated" else "error"
        check.findings.append(
            Finding(severity, one["kind"], one["path"] or "", one["position"], one["first_offset"], one["message"])
        )
    check.omitted += found.corruption_count - len(found.corruptions)


def _directory(paths: Sequence[str], options: Mapping[str, Any]) -> tuple[list[tuple[str, str]], bool | None]:
    """Return the directories that are not live partitions, and whether all log directories were closed cleanly."""
    stray: list[tuple[str, str]] = []
    clean: list[bool] = []
    for path in paths:
        with suppress(ValueError, OSError):
            directory = kbat.LogDirectory(path, **options)
            stray += [
                (one.path, one.state if one.error is None else f"{one.state}: {one.error}") for one in directory.stray
            ]
            clean.append(directory.is_clean_shutdown)
    return list(dict.fromkeys(stray)), all(clean) if clean else None
