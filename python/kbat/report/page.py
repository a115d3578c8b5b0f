"""The page of a report: one HTML file with its data, its style, its script and Plotly, which loads nothing.

Everything that comes from a log is escaped: text by `html.escape`, data as JSON without the characters that end a
script. The policy in the page's head allows only the two scripts of the page, by their hashes, and no request.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import kbat
from kbat.cli.output import count_text, size_text, text, time_text
from kbat.report.data import Report
from kbat.report.figures import all_figures
from kbat.report.plots import Figure
from kbat.report.sections import SECTIONS, Section
from kbat.report.tables import all_tables

#: A file that begins with this is a report, which another one may replace.
MARK = "<!doctype html>\n<!-- kbat report -->\n"

_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
    "form-action 'none'"
)


def page(report: Report) -> str:
    """Return the page of a report.

    Raises:
        ModuleNotFoundError: Plotly is not installed.
    """
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]  # noqa: PLC0415 - an optional package

    figures, tables = all_figures(report), all_tables(report)
    plotly, script = get_plotlyjs(), _asset("page.js")
    names = ", ".join(map(text, report.paths))
    return Template(_asset("page.html")).substitute(
        policy=escape(_POLICY.format(scripts=f"{_hash(plotly)} {_hash(script)}")),
        version=escape(kbat.__version__),
        title=escape(f"kbat report: {names}"),
        css=_asset("page.css"),
        heading=escape(names),
        about=escape(_about(report)),
        links="".join(f'<a href="#{one.name}">{escape(one.title)}</a>' for one in SECTIONS),
        sections="\n".join([_tiles(report), *(_section(one, report, figures) for one in SECTIONS)]),
        seconds=f"{report.seconds:.1f}",
        figures=_json({f"{name}-plot": figure for name, figure in figures.items()}),
        tables=_json(tables),
        plotly=plotly,
        script=script,
    )


def _asset(name: str) -> str:
    return files("kbat.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _json(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return JSON that no browser mistakes for a tag."""
    found = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return found.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _about(report: Report) -> str:
    checked = (
        "every batch was verified" if report.check.is_complete else "only headers and a sample of records were read"
    )
    clean = ""
    if report.is_clean_shutdown is not None:
        clean = f"; clean shutdown: {'yes' if report.is_clean_shutdown else 'no (the broker runs, or was killed)'}"
    return f"Written {time_text(report.created)[:16]} UTC; {checked}{clean}"


def _tiles(report: Report) -> str:
    total, advice = report.total, report.advice
    sums = total.sums
    errors = sum(one.severity == "error" for one in report.check.findings)
    warnings = sum(one.severity == "warning" for one in report.check.findings)
    least = "≥ " if report.check.omitted else ""
    verdict = f"{least}{count_text(errors, 'error')}, {least}{count_text(warnings, 'warning')}"
    saved = advice.bytes - advice.bytes_after
    segments = count_text(total.segments, "segment")
    tiles = [
        (size_text(report.size), "size of all segments", ""),
        (count_text(len(report.topics), "topic"), f"{count_text(total.partitions, 'partition')}, {segments}", ""),
        (f"{'≥ ' if sums.uncounted_batches else ''}{sums.records:,}", f"records in {sums.batches:,} batches", ""),
        (time_text(total.first_timestamp)[:10], f"to {time_text(total.last_timestamp)[:10]}, by timestamps", ""),
        (size_text(max(0, saved)), f"saved by the advice, {max(0.0, saved / (advice.bytes or 1)):.0%}", "good"),
        (verdict, "found", "error" if errors else "warning" if warnings else "good"),
    ]
    inner = "".join(
        f'<div class="tile"><b class="{style}">{escape(figure)}</b><span>{escape(label)}</span></div>'
        for figure, label, style in tiles
    )
    return f'<section class="tiles" aria-label="Summary">{inner}</section>'


def _section(section: Section, report: Report, figures: dict[str, Figure]) -> str:
    plots = [
        f"<figure><figcaption>{escape(title)}<small>{escape(note)}</small></figcaption>"
        f'<div class="plot" id="{name}-plot" role="img" aria-label="{escape(title)}"></div></figure>'
        for name, title, note in section.figures
        if name in figures
    ]
    parts = [f"<h2>{escape(section.title)}</h2>", *map(_paragraph, section.notes(report))]
    if items := section.items(report):
        parts.append(_list(items))
    if plots:
        parts.append(f'<div class="plots">{"".join(plots)}</div>')
    parts += [f'<div id="{name}"></div>' for name in section.tables]
    return f'<section id="{section.name}">{"".join(parts)}</section>'


def _paragraph(line: str) -> str:
    return f"<p>{escape(line)}</p>"


def _list(lines: Iterable[str]) -> str:
    shown = (f"<code>{escape(line)}</code>" if line.startswith("kbat ") else escape(line) for line in lines)
    return f"<ul>{''.join(f'<li>{line}</li>' for line in shown)}</ul>"
