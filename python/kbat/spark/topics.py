"""The topics and partitions of a read: `subscribe`, `subscribePattern` and `assign` of Spark's Kafka source.

Differences from that source: a topic or partition that is named and not found is an error; a pattern must be a regular
expression in both Java and Python; a few constructs that only differ in notation are translated.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kbat.spark.values import parse_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
# Kafka's own topics, which a pattern never matches; to read them, name them.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})

_PARTITION_FORM = 'must be JSON like {"orders": [0, 1], "payments": [0]}'

# Constructs with another notation in Java. \Q...\E quotes; the rest are classes of ASCII characters, as in topic names.
_JAVA_CLASSES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "XDigit": "0-9a-fA-F",
    "L": "a-zA-Z",
    "Alphabetic": "a-zA-Z",
    "Lu": "A-Z",
    "Ll": "a-z",
    "N": "0-9",
    "Nd": "0-9",
}


class TopicPartition(NamedTuple):
    """A partition of a topic; both None for files outside a `<topic>-<partition>` directory."""

    topic: str | None
    partition: int | None

    def __str__(self) -> str:
        """Return the name in Kafka, which is also that of its directory."""
        return f"{self.topic}-{self.partition}"


NO_PARTITION = TopicPartition(None, None)


def some_of(names: Sequence[object], most: int = 10) -> str:
    """Return names for a message: the first `most`, and the number of the others."""
    shown = ", ".join(str(name) for name in names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


@dataclass(frozen=True)
class Subscription:
    """The partitions that `subscribe`, `subscribePattern` or `assign` selects; all if none of them is set."""

    topics: tuple[str, ...] | None = None
    pattern: re.Pattern[str] | None = None
    partitions: tuple[TopicPartition, ...] | None = None

    def __bool__(self) -> bool:
        """Whether one of the options is set."""
        return self.topics is not None or self.pattern is not None or self.partitions is not None

    def check(self, found: Iterable[TopicPartition]) -> None:
        """Raise `ValueError` for a topic or partition that is named and not among those found."""
        there = frozenset(found)
        missing = self._missing(there)
        if missing:
            names = some_of(sorted({partition.topic for partition in there if partition.topic})) or "none"
            message = (
                f"kbat: {some_of(missing)} {'is' if len(missing) == 1 else 'are'} not under the path; topics found: "
                f"{names}; a partition is a directory <topic>-<partition>, which may be on another broker or disk"
            )
            raise ValueError(message)

    def takes(self, partition: TopicPartition) -> bool:
        """Whether a partition is selected."""
        if self.partitions is not None:
            return partition in self._names
        if self.topics is not None:
            return partition.topic in self._names
        if self.pattern is not None:
            topic = partition.topic
            return topic is not None and topic not in INTERNAL_TOPICS and bool(self.pattern.search(topic))
        return True

    @functools.cached_property
    def _names(self) -> frozenset[object]:
        return frozenset(self.partitions or self.topics or ())

    def _missing(self, there: frozenset[TopicPartition]) -> list[str]:
        if self.partitions is not None:
            return [str(partition) for partition in self.partitions if partition not in there]
        topics = {partition.topic for partition in there}
        return [topic for topic in self.topics or () if topic not in topics]


def parse_topic(text: str) -> str:
    """Parse a topic's name, which becomes part of a directory's name. Source: `Topic.validate` of Kafka."""
    if _LEGAL_TOPIC.fullmatch(text) is None or text in {".", ".."}:
        message = "must be 1 to 249 ASCII letters and digits, '.', '_' and '-', and neither '.' nor '..'"
        raise ValueError(message)
    return text


def parse_topics(text: str) -> tuple[str, ...]:
    """Parse `subscribe`: topics separated by commas."""
    return tuple(dict.fromkeys(parse_names(text)))


def parse_pattern(text: str) -> re.Pattern[str]:
    """Parse `subscribePattern`: a Java expression that matches anywhere in the topic's name, as in Spark's source."""
    if not text.strip():
        message = "is empty; must be a regular expression, like orders-.*"
        raise ValueError(message)
    try:
        return re.compile(_from_java(text.strip()), re.ASCII)
    except re.error as error:
        message = f"is not a regular expression in both Java and Python: {error}"
        raise ValueError(message) from None


def _from_java(pattern: str) -> str:
    if "&&" in pattern:
        message = "&& within brackets is not supported: list the characters instead"
        raise ValueError(message)
    quoted = re.sub(r"\\Q(.*?)(?:\\E|$)", lambda found: re.escape(found[1]), pattern)
    named = re.sub(r"\(\?<(?=[a-zA-Z])", "(?P<", quoted)
    named = re.sub(r"\\k<(\w+)>", r"(?P=\1)", named)
    return _translate_classes(named).replace(r"\z", r"\Z")


def _translate_classes(pattern: str) -> str:
    """Replace `p{Alpha}` classes by sets, or by a part of the set within brackets."""
    parts: list[str] = []
    in_set = False
    for part in re.findall(r"\\[pP]\{\w+\}|\\.|.", pattern, re.DOTALL):
        found = re.fullmatch(r"\\([pP])\{(?:Is)?(\w+)\}", part)
        if found and found[2] in _JAVA_CLASSES and not (in_set and found[1] == "P"):
            characters = _JAVA_CLASSES[found[2]]
            negated = "^" if found[1] == "P" else ""
            parts.append(characters if in_set else f"[{negated}{characters}]")
            continue
        if in_set and part == "[":
            message = "[ within brackets is not supported: write \\[, or list the characters"
            raise ValueError(message)
        in_set = part == "[" or (in_set and part != "]")
        parts.append(part)
    return "".join(parts)


def parse_assign(text: str) -> tuple[TopicPartition, ...]:
    """Parse `assign`: `{"topic": [0, 1]}`."""
    try:
        topics = json.loads(text)
    except ValueError:
        raise ValueError(_PARTITION_FORM) from None
    if not isinstance(topics, dict) or not topics:
        raise ValueError(_PARTITION_FORM)
    for numbers in topics.values():
        if not isinstance(numbers, list) or not numbers or not all(_is_partition(number) for number in numbers):
            raise ValueError(_PARTITION_FORM)
    return tuple(
        dict.fromkeys(TopicPartition(topic, number) for topic, numbers in topics.items() for number in numbers)
    )


def _is_partition(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 31
