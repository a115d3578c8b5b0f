"""Topics and partitions of a write."""

from __future__ import annotations

import re
from typing import NamedTuple

_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Return the name in Kafka, which is also that of its directory."""
        return f"{self.topic}-{self.partition}"


def parse_topic(text: str) -> str:
    """Parse a topic's name, which becomes part of a directory's name. Source: `Topic.validate` of Kafka."""
    if _LEGAL_TOPIC.fullmatch(text) is None or text in {".", ".."}:
        message = "must be 1 to 249 ASCII letters and digits, '.', '_' and '-', and neither '.' nor '..'"
        raise ValueError(message)
    return text
