"""The goals for the Spark source in the JVM, and how the measured figures compare with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_measure import Passes, Usage, median
from spark_readers import ALL_COLUMNS, COUNT, JVM, KAFKA, KAFKA_TUNED, NATIVE, OFFSET, PARQUET, SUM_LENGTH
from spark_streams import BATCHES, UNCOMPRESSED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Found = dict[str, dict[str, dict[str, Passes]]]
"""Figures by part, query and topic."""

SMALL = ("100B-none", "100B-lz4")
LARGE = ("1KB-none", "1KB-lz4")


@dataclass(frozen=True)
class Goal:
    """How many times as many rows per second a query by kbat in the JVM must return as by another reader."""

    part: str
    query: str
    other: str
    least: float
    topics: tuple[str, ...] = (*SMALL, *LARGE)

    def is_met(self, ratio: float) -> bool:
        """Whether a ratio is enough; for "ahead of", it must be more than 1."""
        return ratio > 1 if self.least == 1 else ratio >= self.least


GOALS = (
    Goal("queries", ALL_COLUMNS, PARQUET, 2),
    Goal("queries", SUM_LENGTH, PARQUET, 2),
    Goal("queries", OFFSET, PARQUET, 1),
    Goal("queries", COUNT, PARQUET, 10),
    Goal("default", ALL_COLUMNS, KAFKA, 8, SMALL),
    Goal("default", ALL_COLUMNS, KAFKA_TUNED, 5, SMALL),
    Goal("default", ALL_COLUMNS, KAFKA, 6, LARGE),
    Goal("default", ALL_COLUMNS, KAFKA_TUNED, 4, LARGE),
    Goal("default", ALL_COLUMNS, NATIVE, 0.8, ("100B-none",)),
    *(Goal("streams", query, KAFKA, 3, UNCOMPRESSED) for query in BATCHES),
)


def goals_table(found: Found) -> str:
    """A table of all goals whose figures were measured."""
    lines = [
        f"\nGoals of {JVM}: its rows per second, in multiples of another reader's. The ratio is that of the",
        "medians; the least and the largest ratio of a pass are in brackets. CPU is the other reader's CPU time",
        "without the broker's, in multiples of kbat's.\n",
        "| query | other reader | topic | goal | measured | CPU | met |",
        "|---|---|---|---|---|---|---|",
    ]
    missing = set()
    for goal in GOALS:
        topics = found.get(goal.part, {}).get(goal.query, {})
        rows = list(_rows(goal, topics))
        lines += rows
        if len(rows) < len(goal.topics):
            missing.add(goal.part)
    if missing:
        lines.append(f"\nNot all goals were measured, or not for all topics, in: {', '.join(sorted(missing))}.")
    return "\n".join(lines)


def _rows(goal: Goal, topics: Mapping[str, Passes]) -> Iterator[str]:
    for topic in goal.topics:
        passes = topics.get(topic, {})
        if JVM not in passes or goal.other not in passes:
            continue
        ours, theirs = passes[JVM], passes[goal.other]
        ratio = median(theirs).seconds / median(ours).seconds
        each = [their.seconds / our.seconds for our, their in zip(ours, theirs, strict=True)]
        cpu = _ratio(median(theirs), median(ours))
        goal_text = "> 1" if goal.least == 1 else f"≥ {goal.least:g}"
        yield (
            f"| {goal.query} | {goal.other} | {topic} | {goal_text} | {ratio:.2f} ({min(each):.2f}-{max(each):.2f}) | "
            f"{cpu} | {'yes' if goal.is_met(ratio) else 'NO'} |"
        )


def _ratio(theirs: Usage, ours: Usage) -> str:
    return f"{theirs.spark / ours.spark:.2f}" if ours.spark else ""
