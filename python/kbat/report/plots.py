"""Parts of plots, as the JSON that Plotly draws, and names and figures in plots.

Colors of text and grids depend on the theme, so the page sets them. Names from logs are escaped: Plotly interprets a
few tags of HTML in text.
"""

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from kbat.advise.headers import NO_PRODUCER, OTHER_PRODUCERS
from kbat.cli.output import size_text, text
from kbat.compression import CODECS
from kbat.report.data import PartitionRow
from kbat.report.headers import DURATIONS, Histogram

Figure = dict[str, Any]

#: Readable on white and on black, and distinct for people who do not see all colors.
COLORS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#d6a900", "#9d755d")
OTHER = "#8a8f98"
CODEC_COLORS: dict[str, str] = dict(
    zip(map(str, CODECS), (COLORS[one] for one in (3, 7, 6, 2, 0, 1, 4, 5)), strict=False)
)

_DURATION_NAMES = {
    1: "1 ms", 10: "10 ms", 100: "100 ms", 1000: "1 s", 10_000: "10 s", 60_000: "1 min", 600_000: "10 min",
    3_600_000: "1 h", 86_400_000: "1 day",
}  # fmt: skip
_NAME_LEN = 28
_TICKS = 5
# Powers of ten between the outermost tick of a logarithmic axis and the edge of the plot.
_EDGE = 0.03


def name_of(topic: str | None) -> str:
    """Return the name of a topic."""
    return html.escape("(file without a topic)" if topic is None else text(topic))


def partition_text(row: PartitionRow) -> str:
    """Return the name of a partition."""
    return name_of(row.topic) if row.partition is None else f"{name_of(row.topic)}-{row.partition}"


def producer_text(producer_id: int) -> str:
    """Return the id of a producer; batches without one may have many producers."""
    return {NO_PRODUCER: "none", OTHER_PRODUCERS: "other producers"}.get(producer_id, str(producer_id))


def short(name: str) -> str:
    """Take characters from the middle of a name that is too long for an axis."""
    plain = html.unescape(name)
    if len(plain) <= _NAME_LEN:
        return name
    half = _NAME_LEN // 2
    return html.escape(f"{plain[:half]}…{plain[-half:]}")


def figure(data: list[Figure], layout: Figure, height: int = 340) -> Figure:
    """Return a plot with a legend above it, if it has several series."""
    common = {
        "height": height,
        "margin": {"t": 12, "l": 8, "r": 8, "b": 8},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        "showlegend": len(data) > 1,
    }
    axes = {name: {"automargin": True, **layout[name]} for name in ("xaxis", "yaxis") if name in layout}
    return {"data": data, "layout": {**common, **layout, **axes}}


def bar(name: str, x: Sequence[Any], y: Sequence[Any], color: str, shown: Iterable[str]) -> Figure:
    """Return a series of bars, with the text of each bar."""
    marker = {"color": color}
    return {"type": "bar", "name": name, "x": list(x), "y": list(y), "marker": marker, "customdata": list(shown)}


def stacked_rows(names: Sequence[str], series: Mapping[str, tuple[str, Sequence[int]]]) -> Figure:
    """Return a row of stacked shares for each name. The series have a color and a number of bytes per row."""
    totals = [sum(row) for row in zip(*(values for _, values in series.values()), strict=True)]
    data = []
    for name, (color, values) in series.items():
        shares = [value / (total or 1) for value, total in zip(values, totals, strict=True)]
        # numbers, because two long names may look the same on the axis
        one = bar(name, shares, range(len(names)), color, map(size_text, values))
        one |= {"orientation": "h", "text": list(names), "textposition": "none"}
        data.append({**one, "hovertemplate": "%{text}<br>%{fullData.name}: %{customdata}, %{x:.1%}<extra></extra>"})
    axis = {
        "autorange": "reversed",
        "tickvals": list(range(len(names))),
        "ticktext": [f"{short(name)}, {size_text(total)}" for name, total in zip(names, totals, strict=True)],
    }
    shares_axis = {"tickformat": ".0%", "range": [0, 1], "title": {"text": "share of the bytes"}}
    layout = {"barmode": "stack", "yaxis": axis, "xaxis": shares_axis}
    return figure(data, layout, height=110 + 24 * len(names))


def powers(
    found: Histogram, named: Mapping[str, Mapping[int, int]], title: str, shown: Callable[[int], str]
) -> Figure | None:
    """Return a histogram whose classes are powers of two."""
    if not found.batches:
        return None
    first, last = min(found.batches), max(found.batches)
    classes = [1 << power for power in range(first.bit_length() - 1, last.bit_length())]
    ranges = [f"{shown(one)} to {shown(2 * one)}" for one in classes]
    return _shares([shown(one) for one in classes], ranges, classes, named, title)


def durations(found: Histogram, title: str, zero: str) -> Figure | None:
    """Return a histogram of times; `zero` names the class of the smallest ones."""
    if not found.batches:
        return None
    names = [_DURATION_NAMES[limit] for limit in DURATIONS]
    labels = [zero, *(f"≥ {name}" for name in names)]
    ranges = [zero, *(f"{low} to {high}" for low, high in pairwise(names)), f"{names[-1]} or more"]
    classes = list(range(max(found.batches) + 1))
    return _shares(labels, ranges, classes, {"batches": found.batches, "records": found.records}, title)


def _shares(
    labels: Sequence[str],
    ranges: Sequence[str],
    classes: Sequence[int],
    named: Mapping[str, Mapping[int, int]],
    title: str,
) -> Figure:
    """Return bars with the share of each class, for several things that are counted."""
    data = []
    for color, (name, counts) in zip(COLORS, named.items(), strict=False):
        total = sum(counts.values()) or 1
        values = [counts.get(one, 0) for one in classes]
        shown = [size_text(value) if name == "bytes" else f"{value:,} {name}" for value in values]
        shares = [value / total for value in values]
        one = bar(f"share of {name}", labels[: len(classes)], shares, color, shown)
        one |= {"text": list(ranges[: len(classes)]), "textposition": "none"}
        data.append({**one, "hovertemplate": "%{text}<br>%{y:.1%}: %{customdata}<extra></extra>"})
    layout = {
        "barmode": "group",
        "xaxis": {"type": "category", "title": {"text": title}},
        "yaxis": {"tickformat": ".0%", "rangemode": "tozero"},
    }
    return figure(data, layout, height=300)


def size_axis(title: str, largest: float) -> Figure:
    """Return an axis of bytes from 0, with labels such as 20 MiB."""
    unit = 1
    while largest / unit >= 1024:  # noqa: PLR2004 - of the units below
        unit *= 1024
    exact = largest / unit / _TICKS
    scale = 1.0
    while scale > exact:
        scale /= 10
    while scale * 10 <= exact:
        scale *= 10
    step = next(one * scale for one in (1, 2, 5, 10) if one * scale >= exact) * unit or 1
    ticks = [round(step * index) for index in range(_TICKS + 2)]
    return {"title": {"text": title}, "rangemode": "tozero", "tickvals": ticks, "ticktext": list(map(tick_text, ticks))}


def log_size_axis(title: str, values: Sequence[float]) -> Figure:
    """Return a logarithmic axis of bytes, with labels at powers of two."""
    powers_of_two = [max(0, int(value).bit_length() - 1) for value in values]
    first, last = min(powers_of_two), max(powers_of_two) + 1
    step = 1 + (last - first) // _TICKS
    ticks = [1 << power for power in range(first, last + step, step)]
    # a little more than the ticks, so that no point is on the edge
    span = [math.log10(ticks[0]) - _EDGE, math.log10(ticks[-1]) + _EDGE]
    texts = list(map(tick_text, ticks))
    return {"title": {"text": title}, "type": "log", "tickvals": ticks, "ticktext": texts, "range": span}


def log_number_axis(title: str) -> Figure:
    """Return a logarithmic axis with labels at 1, 2 and 5 times the powers of ten. Plotly's own repeat only 2 and 5."""
    ticks = [digit * 10**power for power in range(-1, 6) for digit in (1, 2, 5)]
    texts = [f"{tick:,g}" if tick < 1 else f"{tick:,.0f}" for tick in ticks]
    return {"title": {"text": title}, "type": "log", "tickvals": ticks, "ticktext": texts}


def tick_text(size: int) -> str:
    """Return a size without needless zeros."""
    return size_text(size).replace(".0 ", " ")
