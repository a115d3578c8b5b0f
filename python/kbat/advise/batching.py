"""What `linger.ms` and `batch.size` would gain: the sample in the batches that a producer would have made with them.

A producer collects records for a partition until the batch has `batch.size` bytes, or until `linger.ms` has passed
since the first record. Adjacent batches of a producer in a window are joined by this rule and compressed. Batches that
were sent are never split. Those without a producer id count as one producer's, so their gain is an upper bound. Kafka
estimates the size of a batch after compression, kbat uses the size before it, which is a lower bound of the gain.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

import kbat
from kbat.advise.clock import Deadline
from kbat.advise.codecs import Setting, in_use
from kbat.advise.sample import ONE_BATCH, Sampled, Stratum, Window


class Batching(NamedTuple):
    """Two configs of a producer."""

    linger_ms: int
    batch_size: int

    @property
    def configs(self) -> dict[str, str]:
        """The configs by their names."""
        return {"linger.ms": str(self.linger_ms), "batch.size": str(self.batch_size)}


#: From the least to the most delay and memory. The first batch size is Kafka's default.
BATCHINGS = tuple(Batching(linger, size << 10) for linger in (5, 20, 100) for size in (16, 64, 128))
# Bytes before compression that are joined even after the deadline, which takes a fraction of a second.
_MIN_LEN = 1 << 20
# Bytes before compression on which codecs are compared in the largest batches.
_COMPARED_LEN = 1 << 19
#: The batches as they are.
AS_SENT = Batching(0, 0)


@dataclass
class Joined:
    """Batches of the sample: how many there are, and their size."""

    batches: int = 0
    bytes: int = 0

    def add(self, other: "Joined") -> None:
        """Add other batches."""
        self.batches += other.batches
        self.bytes += other.bytes


class Sender(NamedTuple):
    """A producer in a topic of a stratum."""

    stratum: int
    topic: str | None
    producer_id: int


def _nothing_joined() -> dict[Batching, Joined]:
    return {one: Joined() for one in (AS_SENT, *BATCHINGS)}


@dataclass
class Sent:
    """Batches of the sample, and what they would be with larger batches.

    Attributes:
        stored_len: Bytes as stored.
        raw_len: Bytes without compression.
        joined: The batches with the setting that is smallest for their stratum.
        kept: The batches with the codecs that they have, at the default level; zeros if this was not measured.
    """

    stored_len: int = 0
    raw_len: int = 0
    joined: dict[Batching, Joined] = field(default_factory=_nothing_joined)
    kept: dict[Batching, Joined] = field(default_factory=_nothing_joined)

    def add(self, other: "Sent") -> None:
        """Add other batches."""
        self.stored_len += other.stored_len
        self.raw_len += other.raw_len
        for batching in self.joined:
            self.joined[batching].add(other.joined[batching])
            self.kept[batching].add(other.kept[batching])


def simulate(
    strata: Sequence[Stratum],
    settings: Sequence[Setting],
    deadline: Deadline,
    callback: Callable[[int, int], object] | None = None,
    *,
    kept: Collection[int] = (),
) -> dict[Sender, Sent]:
    """Join batches of the sample with each of `BATCHINGS`, and compress them with the setting of their stratum.

    Windows that are left at the deadline are omitted, for every batching, except the first ones.

    Args:
        strata: The sample.
        settings: The setting of each stratum.
        deadline: When to stop.
        callback: Called with the number of windows that are done, and of all windows.
        kept: Indexes of the strata whose batches are also joined with the codecs that they have.
    """
    found: dict[Sender, Sent] = defaultdict(Sent)
    # the first window of each stratum, then the second ones
    ordered = sorted(
        ((place, index, window) for index, one in enumerate(strata) for place, window in enumerate(one.windows)),
        key=lambda one: one[:2],
    )
    seen_len = 0
    for done, (_, index, window) in enumerate(ordered):
        if deadline.is_over and done >= len(strata) and seen_len >= _MIN_LEN:
            break
        seen_len += len(window.data)
        for producer_id, batches in _by_producer(window).items():
            sent = found[Sender(index, window.partition[0], producer_id)]
            sent.stored_len += sum(batch.stored_len for batch in batches)
            sent.raw_len += sum(len(batch.data) for batch in batches)
            for batching in sent.joined:
                for group in _groups(batches, batching):
                    size = _size(group, settings[index])
                    sent.joined[batching].add(Joined(1, size))
                    if index in kept:
                        own = in_use(group[0].compression)
                        own_size = size if own == settings[index] else _size(group, own)
                        sent.kept[batching].add(Joined(1, own_size))
        if callback:
            callback(done + 1, len(ordered))
    return dict(found)


def joined_sizes(stratum: Stratum, settings: Sequence[Setting]) -> dict[Setting, int]:
    """Return the bytes of the first windows of a stratum with each setting, in the largest batches of `BATCHINGS`."""
    groups: list[list[Sampled]] = []
    seen_len = 0
    for window in stratum.windows:
        if seen_len >= _COMPARED_LEN:
            break
        seen_len += len(window.data)
        for batches in _by_producer(window).values():
            groups += _groups(batches, BATCHINGS[-1])
    return {setting: sum(_size(group, setting) for group in groups) for setting in settings}


def _by_producer(window: Window) -> dict[int, list[Sampled]]:
    found: dict[int, list[Sampled]] = defaultdict(list)
    for batch in window.batches:
        found[batch.producer_id].append(batch)
    return found


def _groups(batches: Sequence[Sampled], batching: Batching) -> Iterator[list[Sampled]]:
    group: list[Sampled] = []
    size = 0
    for batch in batches:
        is_late = bool(group) and not _is_within(group[0], batch, batching.linger_ms)
        if group and (batching == AS_SENT or is_late or size + len(batch.data) > batching.batch_size):
            yield group
            group, size = [], 0
        group.append(batch)
        size += len(batch.data)
    if group:
        yield group


def _is_within(first: Sampled, batch: Sampled, linger_ms: int) -> bool:
    if first.first_timestamp is None or batch.first_timestamp is None:
        return False
    return batch.first_timestamp - first.first_timestamp <= linger_ms


def _size(group: list[Sampled], setting: Setting) -> int:
    # offsets count from 0: the batches of other producers between these would not be there
    rows = [batch.rows.drop_columns(["offset"]) for batch in group]
    table = pa.Table.from_batches(rows)
    return len(kbat.encode(table, compression=setting.codec, level=setting.level, batch_bytes=ONE_BATCH))
