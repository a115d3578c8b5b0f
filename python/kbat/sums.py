"""Sums and distributions of sizes over batches and records, which can be added to others of their kind."""

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any, Self

# A class of sizes has the same leading bits: up to 128 bytes each size is a class, larger ones are 1 to 2 % wide.
CLASS_BITS = 7


@dataclass
class Sizes:
    """A distribution of sizes: the number of sizes in each class, by the smallest size of the class."""

    counts: Counter[int] = field(default_factory=Counter)
    smallest: int | None = None
    largest: int | None = None

    def add(self, other: "Sizes") -> None:
        """Add another distribution."""
        self.counts.update(other.counts)
        self.smallest = smallest_of(self.smallest, other.smallest)
        self.largest = largest_of(self.largest, other.largest)

    def percentile(self, percent: float) -> int | None:
        """Return a size that this share of all sizes does not exceed: the largest one of its class."""
        remaining = self.counts.total() * percent / 100
        for lower in sorted(self.counts):
            remaining -= self.counts[lower]
            if remaining <= 0:
                upper = lower + (1 << max(0, lower.bit_length() - CLASS_BITS)) - 1
                return upper if self.largest is None else min(upper, self.largest)
        return self.largest

    def histogram(self) -> dict[int, int]:
        """Return the number of sizes below twice a power of two, by the power; 0 for sizes of 0."""
        counts: Counter[int] = Counter()
        for lower, count in self.counts.items():
            counts[1 << lower.bit_length() - 1 if lower else 0] += count
        return dict(sorted(counts.items()))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "min": self.smallest,
            **{f"p{percent}": self.percentile(percent) for percent in (50, 90, 99)},
            "max": self.largest,
            "histogram": [list(pair) for pair in self.histogram().items()],
        }


class _Added:
    """Base of dataclasses whose fields are added one by one."""

    def add(self, other: Self) -> None:
        """Add the other sums."""
        for one in fields(self):  # type: ignore[arg-type]
            mine, theirs = getattr(self, one.name), getattr(other, one.name)
            if isinstance(mine, Sizes):
                mine.add(theirs)
            else:
                setattr(self, one.name, one.metadata.get("merge", _sum)(mine, theirs))


def smallest_of(one: int | None, other: int | None) -> int | None:
    """Return the smaller of two numbers that may be unknown."""
    return min((number for number in (one, other) if number is not None), default=None)


def largest_of(one: int | None, other: int | None) -> int | None:
    """Return the larger of two numbers that may be unknown."""
    return max((number for number in (one, other) if number is not None), default=None)


def _sum(one: int, other: int) -> int:
    return one + other


@dataclass
class Sums(_Added):
    """Sums over batches. The header of a compressed set of magic 0 or 1 has no number of records."""

    batches: int = 0
    bytes: int = 0
    records: int = 0
    uncounted_batches: int = 0

    @property
    def mean_batch_bytes(self) -> float | None:
        """Mean size of a batch as stored."""
        return self.bytes / self.batches if self.batches else None

    @property
    def records_per_batch(self) -> float | None:
        """Mean number of records of the batches whose header has it."""
        counted = self.batches - self.uncounted_batches
        return self.records / counted if counted else None


@dataclass
class BatchSums(Sums):
    """Sums over the batches of a group, with more of their header."""

    uncounted_bytes: int = 0
    batch_header_bytes: int = 0
    control_batches: int = 0
    transactional_batches: int = 0
    gaps: int = 0
    missing_offsets: int = 0
    first_timestamp: int | None = field(default=None, metadata={"merge": smallest_of})
    last_timestamp: int | None = field(default=None, metadata={"merge": largest_of})
    sizes: Sizes = field(default_factory=Sizes)


@dataclass
class RecordSums(_Added):
    """Sums over the records of a group, control records excluded. Sizes are those of key, value and headers."""

    records: int = 0
    key_bytes: int = 0
    value_bytes: int = 0
    header_bytes: int = 0
    headers: int = 0
    null_keys: int = 0
    tombstones: int = 0
    sizes: Sizes = field(default_factory=Sizes)

    @property
    def bytes(self) -> int:
        """Bytes of keys, values and headers."""
        return self.key_bytes + self.value_bytes + self.header_bytes
