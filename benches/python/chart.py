"""Draws the speed chart of the README from benches/results/decode.json.

python benches/python/chart.py [DIRECTORY]

Writes speed.svg and, for dark backgrounds, speed-dark.svg into docs/images or DIRECTORY. The same figures always give
the same bytes. Needs the extra `docs`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benches" / "results" / "decode.json"
FILES = ("100 B, none", "100 B, lz4", "100 B, zstd")
TITLES = ("no compression", "lz4", "zstd")
CAPTION = "Million records decoded per second of CPU time, 100-byte values. Longer is better."
LIBRARIES = {
    "kbat": "kbat, Rust",
    "krabka 0.8": "krabka, Rust",
    "kafka-clients 4.4": "kafka-clients, Java",
    "franz-go 1.22": "franz-go, Go",
    "kbat from Python": "kbat, Python loop",
    "aiokafka 0.14": "aiokafka, Python",
}


class Theme(NamedTuple):
    """The colours of a chart: text, kbat's bars, other bars."""

    text: str
    kbat: str
    other: str


THEMES = {
    "speed.svg": Theme("#1f2328", "#0b6bcb", "#b3bac4"),
    "speed-dark.svg": Theme("#e6edf3", "#58a6ff", "#57606a"),
}


def figures() -> dict[str, dict[str, float]]:
    """Read the rates of the result file, by file and library."""
    result: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    return {row["file"]: row["rates"] for row in result["files"]}


def draw(path: Path, theme: Theme) -> None:
    """Draw the chart in a theme's colours on a transparent background."""
    rates = figures()
    with mpl.rc_context(
        {
            "svg.hashsalt": "kbat",
            "svg.fonttype": "path",
            "font.family": "DejaVu Sans",
            "font.size": 10,
            "text.color": theme.text,
            "ytick.color": theme.text,
        }
    ):
        figure = Figure(figsize=(9, 2.7), layout="constrained")
        for axes, file, title in zip(figure.subplots(1, len(FILES), sharey=True), FILES, TITLES, strict=True):
            _draw_bars(axes, [rates[file][name] for name in LIBRARIES], theme)
            axes.set_title(title, loc="left", fontweight="bold", fontsize=11)
        figure.supxlabel(
            "Million records decoded per second of CPU time, 100-byte values. Longer is better.", fontsize=9
        )
        figure.savefig(path, transparent=True, metadata={"Date": None, "Creator": None})


def _draw_bars(axes: Axes, values: list[float], theme: Theme) -> None:
    colours = [theme.kbat if name.startswith("kbat") else theme.other for name in LIBRARIES]
    bars = axes.barh(list(LIBRARIES.values()), values, color=colours, height=0.72)
    axes.bar_label(bars, fmt="%.1f", padding=4)
    axes.invert_yaxis()
    axes.set_xlim(0, max(values) * 1.22)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def main(directory: Path) -> None:
    """Draw the chart for light and for dark backgrounds."""
    for name, theme in THEMES.items():
        draw(directory / name, theme)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
