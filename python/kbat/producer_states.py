"""The idempotent and transactional producers of a partition, with the state that a broker would have for them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kbat._core.log import Segment
from kbat.errors import CorruptError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbat._core import Batch
    from kbat._core.files import ProducerEntry
    from kbat._core.log import PartitionLog

_NONE = -1


@dataclass(frozen=True)
class Producer:
    """The state of a producer in one partition. As in Kafka, -1 means none.

    Attributes:
        producer_id: Producer id.
        producer_epoch: Its newest epoch.
        last_sequence: Sequence of its last record in this epoch.
        last_offset: Offset of its last record in this epoch.
        timestamp: Timestamp of its last batch or marker, milliseconds since the epoch.
        coordinator_epoch: Epoch of the coordinator that wrote its last marker.
        transaction_start: First offset of its open transaction, None if it has none.
    """

    producer_id: int
    producer_epoch: int = _NONE
    last_sequence: int = _NONE
    last_offset: int = _NONE
    timestamp: int = _NONE
    coordinator_epoch: int = _NONE
    transaction_start: int | None = None

    def in_epoch(self, epoch: int) -> Producer:
        """Return the state in an epoch: a new one has no batch yet."""
        if epoch == self.producer_epoch:
            return self
        return replace(self, producer_epoch=epoch, last_sequence=_NONE, last_offset=_NONE)


@dataclass
class Producers:
    """The producers of a partition.

    Attributes:
        by_id: State by producer id.
        offset: The offset up to which the log is part of the state.
    """

    by_id: dict[int, Producer] = field(default_factory=dict)
    offset: int = 0

    def add(self, batch: Batch) -> None:
        """Add a batch of the log, as a broker does when it replicates or recovers the log."""
        self.offset = batch.next_offset
        if batch.producer_id < 0:
            return
        old = self.by_id.get(batch.producer_id, Producer(batch.producer_id))
        if batch.is_control:
            # compaction may leave a batch without its marker
            marker = next((record.control for record in batch), None)
            if marker is not None and marker.coordinator_epoch is not None:
                self.by_id[batch.producer_id] = replace(
                    old.in_epoch(batch.producer_epoch),
                    timestamp=batch.max_timestamp,
                    coordinator_epoch=marker.coordinator_epoch,
                    transaction_start=None,
                )
            return
        start = old.transaction_start
        if start is None and batch.is_transactional:
            start = batch.base_offset
        self.by_id[batch.producer_id] = replace(
            old.in_epoch(batch.producer_epoch),
            last_sequence=batch.last_sequence,
            last_offset=batch.last_offset,
            timestamp=batch.max_timestamp,
            transaction_start=start,
        )


def producers(log: PartitionLog | Segment) -> list[Producer]:
    """Return the producers of a partition at the end of its log, in the order of their ids.

    Starts with the newest readable producer snapshot, and reads the log after it. A broker forgets a producer after
    ``producer.id.expiration.ms`` without a batch, one day by default; this function returns it.

    Args:
        log: The partition; or a segment, of which all batches are read, as if the log began with it.

    Raises:
        CorruptError: The log can't be read after the snapshot.
        OSError: A file can't be read.

    Example:
        >>> kbat.producers(kbat.PartitionLog("/var/lib/kafka/data/orders-0"))
    """
    state = Producers() if isinstance(log, Segment) else _snapshot(log)
    for batch in log.batches() if isinstance(log, Segment) else _batches(log, state.offset):
        state.add(batch)
    return sorted(state.by_id.values(), key=lambda one: one.producer_id)


def _snapshot(log: PartitionLog) -> Producers:
    """Return the state of the newest snapshot that can be read. As in a broker, damaged ones are skipped."""
    end = log.end_offset
    for offset, _ in sorted(log.snapshots, reverse=True):
        if offset > end:
            continue  # left over from a log that was truncated
        try:
            entries = log.producer_snapshot(offset).entries
        except (CorruptError, FileNotFoundError):
            continue
        return Producers({one.producer_id: _of_entry(one) for one in entries}, offset)
    return Producers()


def _of_entry(entry: ProducerEntry) -> Producer:
    return Producer(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_offset=entry.last_offset,
        timestamp=entry.timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        transaction_start=entry.current_txn_first_offset,
    )


def _batches(log: PartitionLog, offset: int) -> Iterator[Batch]:
    """Yield the batches that end at or after an offset."""
    segments = log.segments
    for place, segment in enumerate(segments):
        if place + 1 < len(segments) and segments[place + 1].base_offset <= offset:
            continue
        position = 0
        if segment.base_offset < offset:
            found = segment.find_offset(offset)
            if found is None:
                continue
            position = found.position
        for batch in segment.batches(position):
            if batch.last_offset >= offset:
                yield batch
