"""The plots of a report. Each function returns the JSON of a figure, or None if there is nothing to show."""

from collections import Counter
from typing import Any

from kbat.advise.advice import Projection
from kbat.advise.headers import OTHER_PRODUCERS
from kbat.advise.words import rate_text
from kbat.cli.output import size_text
from kbat.compression import CODECS
from kbat.report.data import PartitionRow, Report
from kbat.report.headers import Histogram
from kbat.report.plots import (
    CODEC_COLORS,
    COLORS,
    OTHER,
    Figure,
    bar,
    durations,
    figure,
    log_number_axis,
    log_size_axis,
    name_of,
    partition_text,
    powers,
    producer_text,
    size_axis,
    stacked_rows,
    tick_text,
)
from kbat.report.timeline import date_text

# What plots show of topics, partitions and producers; tables have more.
_ROWS = 12
_RECTANGLES = 400
_POINTS = 500
_OTHERS = "all others"
_MIB = 1 << 20


def all_figures(report: Report) -> dict[str, Figure]:
    """Return the figures by their names, which are ids of elements on the page."""
    functions = (
        sizes_over_time, sizes, codecs, batch_sizes, batch_records, record_sizes, producers, lateness, spans,
        compaction, settings,
    )  # fmt: skip
    found = {function.__name__: function(report) for function in functions}
    return {name: one for name, one in found.items() if one is not None}


def sizes_over_time(report: Report) -> Figure | None:
    """Plot bytes by the time of their records and by topic."""
    span = report.headers.timeline.span()
    if span is None:
        return None
    names = [*map(name_of, report.headers.topics), _OTHERS]
    colors = [*COLORS[: len(names) - 1], OTHER]
    starts = [date_text(start) for start in span.starts]
    data = []
    for index, series in span.series.items():
        one = bar(names[index], starts, series, colors[index], map(size_text, series))
        data.append({**one, "hovertemplate": "%{x}<br>%{fullData.name}: %{customdata}<extra></extra>"})
    largest = max(map(sum, zip(*span.series.values(), strict=True)))
    layout = {
        "barmode": "stack",
        "bargap": 0.05,
        "xaxis": {"type": "date", "title": {"text": f"time of the records (UTC), by {span.unit}"}},
        "yaxis": size_axis("size", largest),
    }
    return figure(data, layout)


def sizes(report: Report) -> Figure | None:
    """Plot the largest topics as rectangles, with their partitions inside them if these are not too many."""
    shown = [one for one in report.topics[:_RECTANGLES] if one.size]
    if not shown:
        return None
    by_topic: dict[str | None, list[PartitionRow]] = {}
    if sum(one.size > 0 for one in report.partitions) <= _RECTANGLES:
        for one in report.partitions:
            if one.size:
                by_topic.setdefault(one.topic, []).append(one)
    # id, label, parent, color and bytes of each rectangle
    nodes = [("all", "all topics", "", OTHER, report.size)]
    for number, topic in enumerate(shown):
        color = COLORS[number % len(COLORS)]
        nodes.append((f"{number}", name_of(topic.topic), "all", color, topic.size))
        rows = by_topic.get(topic.topic, [])
        if len(rows) > 1:
            inner = zip(map(partition_text, rows), rows, strict=True)
            nodes += [(f"{number}.{one.partition}", label, f"{number}", color, one.size) for label, one in inner]
    rest = report.size - sum(one.size for one in shown)
    if rest:
        count = len(report.topics) - len(shown)
        nodes.append(("rest", f"{count:,} smaller topics", "all", OTHER, rest))
    ids, labels, parents, colors, values = (list(column) for column in zip(*nodes, strict=True))
    data = {
        "type": "treemap",
        "ids": ids,
        "labels": labels,
        "parents": parents,
        "values": values,
        "branchvalues": "total",
        "customdata": [size_text(value) for *_, value in nodes],
        "texttemplate": "%{label}<br>%{customdata}",
        "hovertemplate": "%{label}<br>%{customdata}, %{percentRoot:.1%}<extra></extra>",
        "marker": {"line": {"width": 1}, "colors": colors},
        "root": {"color": "rgba(0,0,0,0)"},
    }
    margin = {"t": 4, "l": 4, "r": 4, "b": 4}
    return figure([data], {"margin": margin}, height=420)


def codecs(report: Report) -> Figure | None:
    """Plot the bytes of the largest topics by codec."""
    names = [name_of(one.topic) for one in report.topics[:_ROWS]]
    rows = [one.compression for one in report.topics[:_ROWS]]
    if len(report.topics) > _ROWS:
        others: Counter[str] = Counter()
        for topic in report.topics[_ROWS:]:
            others.update(topic.compression)
        names.append(_OTHERS)
        rows.append(others)
    used = {codec for one in rows for codec in one}
    if not used:
        return None
    ordered = [*CODECS, *sorted(used - set(CODECS))]
    return stacked_rows(
        names,
        {codec: (CODEC_COLORS.get(codec, OTHER), [one[codec] for one in rows]) for codec in ordered if codec in used},
    )


def batch_sizes(report: Report) -> Figure | None:
    """Plot the sizes of batches."""
    found = report.headers.batch_sizes
    return powers(found, {"batches": found.batches, "bytes": found.bytes}, "size of a batch as stored", tick_text)


def batch_records(report: Report) -> Figure | None:
    """Plot the numbers of records per batch."""
    found = report.headers.batch_records
    named = {"batches": found.batches, "records": found.records}
    return powers(found, named, "records in a batch", lambda count: f"{count:,}")


def record_sizes(report: Report) -> Figure | None:
    """Plot the sizes of records of the sample."""
    found = Histogram(batches=report.advice.record_sizes)
    return powers(found, {"records": found.batches}, "bytes of key and value, before compression", tick_text)


def lateness(report: Report) -> Figure | None:
    """Plot how much older batches are than an earlier batch of the partition."""
    return durations(report.headers.lateness, "older than an earlier batch of the partition", "in order")


def spans(report: Report) -> Figure | None:
    """Plot the times from the first to the newest record of a batch."""
    return durations(report.headers.spans, "from the first to the newest record of a batch", "0 ms")


def producers(report: Report) -> Figure | None:
    """Plot producers by the size of their batches and by their bytes."""
    writers = sorted(report.headers.writers.items(), key=lambda one: -one[1].sums.bytes)[:_POINTS]
    if not writers:
        return None
    shown = [sent.sums for _, sent in writers]
    data = []
    for codec in (*CODECS, "unknown"):
        some = [(writer, sent.sums) for writer, sent in writers if writer.compression == codec]
        if not some:
            continue
        means = [sums.bytes / sums.batches for _, sums in some]
        figures = [
            [size_text(mean), size_text(sums.bytes), f"{sums.batches:,}"]
            for mean, (_, sums) in zip(means, some, strict=True)
        ]
        names = [f"{name_of(writer.topic)}<br>{_producer(writer.producer_id)}" for writer, _ in some]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": codec,
                "x": means,
                "y": [sums.bytes for _, sums in some],
                "text": names,
                "customdata": figures,
                "hovertemplate": "%{text}<br>%{customdata[2]} batches of %{customdata[0]}: %{customdata[1]}"
                "<extra>%{fullData.name}</extra>",
                "marker": {"color": CODEC_COLORS.get(codec, OTHER), "size": 9, "opacity": 0.75},
            }
        )
    layout = {
        "xaxis": log_size_axis("mean size of a batch", [sums.bytes / sums.batches for sums in shown]),
        "yaxis": log_size_axis("all batches of the producer", [sums.bytes for sums in shown]),
        "hovermode": "closest",
    }
    return figure(data, layout, height=380)


def _producer(producer_id: int) -> str:
    shown = producer_text(producer_id)
    return shown if producer_id == OTHER_PRODUCERS else f"producer {shown}"


def compaction(report: Report) -> Figure | None:
    """Plot the clean, dirty and active bytes of the compacted partitions."""
    rows = [(one, one.compaction) for one in report.partitions if one.compaction is not None][:_ROWS]
    if not rows:
        return None
    rest = [one.size - state.clean_bytes - state.dirty_bytes for one, state in rows]
    return stacked_rows(
        [partition_text(one) for one, _ in rows],
        {
            "compacted": ("#54a24b", [state.clean_bytes for _, state in rows]),
            "not compacted yet": ("#f58518", [state.dirty_bytes for _, state in rows]),
            "last segment": (OTHER, rest),
        },
    )


def settings(report: Report) -> Figure | None:
    """Plot the projected size and the speed of each codec and level."""
    by_codec: dict[str, list[Projection]] = {}
    for one in report.advice.projections:
        if one.compress_rate is not None:
            by_codec.setdefault(one.setting.codec, []).append(one)
    if not by_codec:
        return None
    data = [_settings_of(codec, some) for codec, some in by_codec.items()]
    if report.advice.best is not None:
        data.append(_ring(report.advice.best))
    largest = max(report.advice.bytes, *(one.bytes for some in by_codec.values() for one in some))
    today = {"xref": "paper", "x0": 0, "x1": 1, "y0": report.advice.bytes, "y1": report.advice.bytes}
    label = {
        "xref": "paper",
        "x": 0,
        "xanchor": "left",
        "y": report.advice.bytes,
        "yanchor": "bottom",
        "showarrow": False,
    }
    layout: dict[str, Any] = {
        "xaxis": log_number_axis("compression by one core, MiB/s"),
        "yaxis": size_axis("size of the log", largest),
        "hovermode": "closest",
        "shapes": [{"type": "line", **today, "line": {"dash": "dot", "width": 1.5, "color": OTHER}}],
        "annotations": [{**label, "text": f"today: {size_text(report.advice.bytes)}"}],
    }
    return figure(data, layout, height=380)


def _settings_of(codec: str, some: list[Projection]) -> Figure:
    ordered = sorted(some, key=lambda one: one.compress_rate or 0)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": codec,
        "x": [(one.compress_rate or 0) / _MIB for one in ordered],
        "y": [one.bytes for one in ordered],
        "text": [str(one.setting) for one in ordered],
        "customdata": [
            [size_text(one.bytes), rate_text(one.compress_rate), rate_text(one.decompress_rate), f"{one.saved:.1%}"]
            for one in ordered
        ],
        "hovertemplate": "%{text}: %{customdata[0]}, %{customdata[3]} saved<br>compression %{customdata[1]} MiB/s<br>"
        "decompression %{customdata[2]} MiB/s<extra></extra>",
        "line": {"color": CODEC_COLORS.get(codec, OTHER), "width": 1, "dash": "dot"},
        "marker": {"size": 9},
    }


def _ring(best: Projection) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "recommended",
        "x": [(best.compress_rate or 0) / _MIB],
        "y": [best.bytes],
        "hoverinfo": "skip",
        "marker": {"symbol": "circle-open", "size": 20, "color": "#f58518", "line": {"width": 3}},
    }
