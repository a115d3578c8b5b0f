"""Time, CPU time and tables of the benchmarks of Spark."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

WARM_UP_PASSES = 1
TRIES = 20


class Usage(NamedTuple):
    """The cost of a run: wall-clock seconds, CPU seconds of Spark with Python, and of the broker."""

    seconds: float
    spark: float
    broker: float


Passes = dict[str, list[Usage]]
"""What each reader used in each pass."""


def cpu_seconds(root: int) -> float:
    """CPU time of a process and its descendants, including those that have ended.

    A process that ends during the scan could be counted twice, or not at all: the family must be that of the scan
    before, and still exist.
    """
    before: set[int] = set()
    for _ in range(TRIES):
        used = _family(root)
        if used.keys() == before and all(Path(f"/proc/{pid}").exists() for pid in used):
            break
        before = set(used)
    return sum(used.values()) / os.sysconf("SC_CLK_TCK")


def _family(root: int) -> dict[int, int]:
    """The ticks of a process and of its descendants."""
    parents, used = {}, {}
    for pid in [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[pid] = int(fields[1])
        used[pid] = sum(map(int, fields[11:15]))
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return {pid: used[pid] for pid in family if pid in used}


def timed(runs: Mapping[str, Callable[[], object]], passes: int, broker: int) -> Passes:
    """Run everything in turn, after a warm-up."""
    found: Passes = {name: [] for name in runs}
    for turn in range(WARM_UP_PASSES + passes):
        for name, run in runs.items():
            before = _now(broker)
            run()
            after = _now(broker)
            if turn >= WARM_UP_PASSES:
                found[name].append(Usage(*(end - start for start, end in zip(before, after, strict=True))))
    return found


def _now(broker: int) -> Usage:
    return Usage(time.perf_counter(), cpu_seconds(os.getpid()), cpu_seconds(broker))


def median(usages: list[Usage]) -> Usage:
    """The median of each figure."""
    return Usage(*(statistics.median(figures) for figures in zip(*usages, strict=True)))


def table(title: str, rows: Mapping[str, int], found: Mapping[str, Passes]) -> str:
    """A table with one column per topic: M rows/s, and CPU µs per row of Spark and Python + of the broker."""
    lines = [
        f"\n{title}: M rows/s; CPU µs per row (+ the broker's)\n",
        "|  | " + " | ".join(f"{topic}, {rows[topic]:,} rows" for topic in found) + " |",
        "|---|" + "---|" * len(found),
    ]
    for name in next(iter(found.values())):
        cells = (_cell(rows[topic], median(passes[name])) for topic, passes in found.items())
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(rows: int, usage: Usage) -> str:
    broker = f" + {usage.broker / rows * 1e6:.2f}" if usage.broker / rows > 5e-8 else ""  # noqa: PLR2004 -- rounds to 0
    return f"{rows / usage.seconds / 1e6:.2f}; {usage.spark / rows * 1e6:.2f}{broker}"


def loads() -> str:
    """The load averages of 1, 5 and 15 minutes."""
    return ", ".join(f"{load:.2f}" for load in os.getloadavg())
