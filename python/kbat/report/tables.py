"""The tables of a report: columns with a kind, and rows of plain values, which the page formats, sorts and searches."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from kbat.advise.headers import OTHER_PRODUCERS
from kbat.cli.output import text
from kbat.report.data import Report
from kbat.report.headers import Sent, least, most
from kbat.report.plots import producer_text
from kbat.sums import Sums

Table = dict[str, Any]

_MAX_ROWS = 5000
# The largest whole number that JavaScript represents exactly.
_EXACT = (1 << 53) - 1
_UNNAMED = "(file without a topic)"


def all_tables(report: Report) -> dict[str, Table]:
    """Return the tables by the ids of their elements on the page."""
    return {
        "topics-table": topics(report),
        "partitions-table": partitions(report),
        "producers-table": producers(report),
        "settings-table": settings(report),
        "compaction-table": compaction(report),
        "lateness-table": lateness(report),
        "findings-table": findings(report),
    }


def topics(report: Report) -> Table:
    """Return the topics, the largest first."""
    rows = (
        (
            _name(one.topic), one.size, one.size / report.size if report.size else None, one.partitions, one.segments,
            one.sums.batches, *_means(one.sums), _codecs(one.compression), one.first_timestamp, one.last_timestamp,
        )
        for one in report.topics
    )  # fmt: skip
    columns = (
        "topic text", "size size", "share share", "partitions count", "segments count", "batches count",
        "mean batch size", "records per batch number", "codecs word", "from time", "to time",
    )  # fmt: skip
    return _table(columns, rows, len(report.topics))


def partitions(report: Report) -> Table:
    """Return the partitions, the largest first."""
    rows = (
        (
            _name(one.topic), one.partition, one.size, one.segments, one.batches.first_offset, one.batches.end_offset,
            one.batches.sums.batches, *_means(one.batches.sums), _codecs(one.batches.compression),
            one.batches.last_timestamp,
        )
        for one in report.partitions
    )  # fmt: skip
    columns = (
        "topic text", "partition count", "size size", "segments count", "first offset count", "end offset count",
        "batches count", "mean batch size", "records per batch number", "codecs word", "newest record time",
    )  # fmt: skip
    return _table(columns, rows, len(report.partitions))


def producers(report: Report) -> Table:
    """Return the producers, the largest first."""
    by_producer: dict[tuple[str | None, int], dict[str, Sent]] = {}
    for writer, sent in report.headers.writers.items():
        by_producer.setdefault((writer.topic, writer.producer_id), {})[writer.compression] = sent
    advised = {(one.topic, one.producer_id): one for one in report.advice.producers}
    rows = []
    for (topic, producer_id), by_codec in by_producer.items():
        total = Sent(Sums())
        for sent in by_codec.values():
            total.sums.add(sent.sums)
            total.epoch = max(total.epoch, sent.epoch)
            total.first_timestamp = least(total.first_timestamp, sent.first_timestamp)
            total.last_timestamp = most(total.last_timestamp, sent.last_timestamp)
        # epochs of several producers have no order
        epoch = None if producer_id == OTHER_PRODUCERS or total.epoch < 0 else str(total.epoch)
        advice = advised.get((topic, producer_id))
        remarks = [] if advice is None else [
            *(["small"] if advice.is_small else []), *(["not compressed"] if advice.is_uncompressed else []),
        ]  # fmt: skip
        rows.append(
            (
                _name(topic), producer_text(producer_id),
                epoch, total.sums.bytes, total.sums.batches,
                *_means(total.sums), _codecs({codec: sent.sums.bytes for codec, sent in by_codec.items()}),
                ", ".join(remarks) or None, None if advice is None else advice.bytes_after, total.last_timestamp,
            )
        )  # fmt: skip
    rows.sort(key=lambda row: (-row[3], row[0], row[1]))
    columns = (
        "topic text", "producer id word", "epoch word", "size size", "batches count", "mean batch size",
        "records per batch number", "codecs word", "remark word", "size with the advice size", "newest record time",
    )  # fmt: skip
    return _table(columns, rows, len(rows))


def settings(report: Report) -> Table:
    """Return the measured settings, the smallest first."""
    rows = (
        (
            f"{one.setting}{' (recommended)' if one == report.advice.best else ''}", one.bytes, one.saved, one.ratio,
            _mib(one.compress_rate), _mib(one.decompress_rate), one.sample_bytes,
        )
        for one in sorted(report.advice.projections, key=lambda one: one.bytes)
    )  # fmt: skip
    columns = (
        "codec and level word", "size of the log size", "saved share", "ratio ratio", "compression MiB/s number",
        "decompression MiB/s number", "measured on size",
    )  # fmt: skip
    return _table(columns, rows, len(report.advice.projections))


def compaction(report: Report) -> Table:
    """Return the compacted partitions, the largest first."""
    found = [(one, one.compaction) for one in report.partitions if one.compaction is not None]
    rows = (
        (
            _name(one.topic), one.partition, one.size, state.dirty_ratio, state.dirty_bytes, state.first_dirty_offset,
            state.kept, state.horizons, state.last_horizon,
        )
        for one, state in found
    )  # fmt: skip
    columns = (
        "topic text", "partition count", "size size", "dirty ratio share", "dirty bytes size",
        "first dirty offset count", "offsets with a record share", "batches with a delete horizon count",
        "latest horizon time",
    )  # fmt: skip
    return _table(columns, rows, len(found))


def lateness(report: Report) -> Table:
    """Return when each partition got its newest record, the one with the oldest first."""
    newest = report.total.last_timestamp
    found = [one for one in report.partitions if one.batches.last_timestamp is not None and newest is not None]
    rows = [
        (
            _name(one.topic), one.partition, one.batches.last_timestamp,
            (newest or 0) - (one.batches.last_timestamp or 0), one.batches.late_batches,
            one.batches.late_batches / one.batches.sums.batches, one.batches.lateness,
        )
        for one in found
    ]  # fmt: skip
    rows.sort(key=lambda row: (-row[3], row[0]))
    columns = (
        "topic text", "partition count", "newest record time", "before the newest of all duration",
        "late batches count", "share share", "largest lateness duration",
    )  # fmt: skip
    return _table(columns, rows, len(rows))


def findings(report: Report) -> Table:
    """Return what is wrong, errors first."""
    order = ("error", "warning", "info")
    found = sorted(report.check.findings, key=lambda one: order.index(one.severity))
    rows = ((one.severity, one.kind, text(one.path), one.position, one.offset, text(one.message)) for one in found)
    columns = ("severity word", "kind word", "file text", "byte count", "offset count", "finding text")
    return _table(columns, rows, len(found) + report.check.omitted)


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]], count: int) -> Table:
    """Return a table; the last word of a column is its kind."""
    shown = [list(map(_exact, row)) for row in islice(rows, _MAX_ROWS)]
    named = [dict(zip(("name", "kind"), column.rsplit(" ", 1), strict=True)) for column in columns]
    return {"columns": named, "rows": shown, "omitted": count - len(shown)}


def _exact(value: Any) -> Any:  # noqa: ANN401 - a value of a table
    return str(value) if isinstance(value, int) and abs(value) > _EXACT else value


def _name(topic: str | None) -> str:
    return _UNNAMED if topic is None else text(topic)


def _means(sums: Sums) -> tuple[float | None, float | None]:
    return sums.mean_batch_bytes, sums.records_per_batch


def _codecs(compression: dict[str, int]) -> str:
    """Return the codecs and their shares of the bytes, the most first."""
    total = sum(compression.values())
    ordered = sorted(compression.items(), key=lambda one: -one[1])
    if len(ordered) == 1:
        return ordered[0][0]
    return ", ".join(f"{codec} {size / total:.0%}" for codec, size in ordered if total)


def _mib(rate: float | None) -> float | None:
    return None if rate is None else rate / (1 << 20)
