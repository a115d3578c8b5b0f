"""The sections of the page of a report: titles, sentences, plots and tables."""

from collections.abc import Callable
from dataclasses import dataclass

from kbat.advise.headers import MAX_PRODUCERS
from kbat.advise.words import costs, order_lines, recommendation
from kbat.cli.output import count_text, size_text
from kbat.report.data import Report

# The id of the plot, its title and a note.
_Plot = tuple[str, str, str]


def _nothing(_report: Report) -> list[str]:
    return []


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        name: Its id.
        title: Its title.
        figures: Its plots.
        tables: The ids of its tables.
        notes: Its first paragraphs.
        items: A list of sentences after them.
    """

    name: str
    title: str
    figures: tuple[_Plot, ...] = ()
    tables: tuple[str, ...] = ()
    notes: Callable[[Report], list[str]] = _nothing
    items: Callable[[Report], list[str]] = _nothing


def _advice_notes(report: Report) -> list[str]:
    advice = report.advice
    if not advice.projections:
        return ["There are no records to measure."]
    sample = f"{size_text(advice.raw_len)} of records from {count_text(advice.sampled_windows, 'location')} of the log"
    return [f"Measured on {sample}, on one core of one machine. 'kbat advise --help' states the rules."]


def _advice(report: Report) -> list[str]:
    orders = ["; ".join(line.strip() for line in order_lines(order)) for order in report.advice.orders]
    return [*recommendation(report.advice), *costs(report.advice), *(f"The {line}." for line in orders)]


def _time_notes(report: Report) -> list[str]:
    timeline = report.headers.timeline
    span = timeline.span()
    notes = ["The time of a batch is its largest timestamp."]
    if timeline.untimed:
        notes.append(f"{size_text(timeline.untimed)} have no timestamp that a calendar has.")
    if span is not None and span.omitted:
        notes.append(f"{size_text(span.omitted)} with timestamps far from the others are not shown.")
    return [" ".join(notes)]


def _producer_notes(report: Report) -> list[str]:
    named = len(report.advice.producers)
    small = sum(one.is_small for one in report.advice.producers)
    plain = sum(one.is_uncompressed for one in report.advice.producers)
    counts = f"{named:,} send small or uncompressed batches: {small:,} small, {plain:,} uncompressed." if named else ""
    return [
        "Batches without a producer id are those of all producers without idempotence in a topic. In a log with more "
        f"than {MAX_PRODUCERS:,} producers, the batches of the others of a topic are added up. Producers whose "
        f"batches have less than 4 KiB before compression on average are called small. {counts}".strip()
    ]


def _compaction_notes(report: Report) -> list[str]:
    if not any(one.compaction for one in report.partitions):
        return ["No partition is recorded as compacted, and no batch has a delete horizon."]
    dirty = "The dirty ratio is the part of the segments before the last one that the broker has not compacted yet."
    return [f"{dirty} A broker compacts from min.cleanable.dirty.ratio on, 50% by default."]


def _finding_notes(report: Report) -> list[str]:
    check = report.check
    if check.is_complete:
        read = "kbat verify has read every batch, index and snapshot."
    else:
        read = "Only headers were read. 'kbat report --verify always' verifies checksums, records and indexes too."
    lost = report.headers.bytes_lost
    skipped = f" {size_text(lost)} could not be read, and are missing from the other figures." if lost else ""
    return [f"{read}{skipped}{'' if check.findings else ' Nothing is wrong.'}"]


def _next(report: Report) -> list[str]:
    commands = [f"{command}  # {purpose}" for command, purpose in report.check.commands.items()]
    return [*commands, *(f"Not a live partition: {path} ({state})" for path, state in report.stray)]


SECTIONS = (
    Section(
        "advice",
        "Advice",
        (("settings", "Codecs and levels", "Lower is smaller, right is faster. Hover a point for its figures."),),
        ("settings-table",),
        _advice_notes,
        _advice,
    ),
    Section("time", "Size over time", (("sizes_over_time", "Bytes by topic", ""),), (), _time_notes),
    Section(
        "topics",
        "Topics",
        (
            ("sizes", "What fills the log", "Topics and their partitions. Click a topic to enlarge it."),
            ("codecs", "Codecs", "Bytes of the largest topics by codec."),
        ),
        ("topics-table",),
    ),
    Section(
        "batches",
        "Batches and records",
        (
            ("batch_sizes", "Batch sizes", "As stored, from headers."),
            ("batch_records", "Records per batch", "From headers."),
            ("record_sizes", "Record sizes", "Of the sample."),
        ),
    ),
    Section(
        "producers",
        "Producers",
        (
            (
                "producers",
                "Batch size and volume",
                "The largest producers, one point per codec. Small batches are on the left.",
            ),
        ),
        ("producers-table",),
        _producer_notes,
    ),
    Section(
        "timestamps",
        "Timestamp lag",
        (
            ("lateness", "Late batches", "A batch is late if an earlier batch of its partition has newer records."),
            ("spans", "Time inside a batch", "How long producers collected records."),
        ),
        ("lateness-table",),
    ),
    Section(
        "compaction",
        "Compaction",
        (("compaction", "Compacted partitions", "The largest ones."),),
        ("compaction-table",),
        _compaction_notes,
    ),
    Section("findings", "Findings", (), ("findings-table",), _finding_notes, _next),
    Section("partitions", "Partitions", (), ("partitions-table",)),
)
