"""The idempotent and transactional producers of a partition, with the state that a broker would have for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbat._core.log import PartitionLog, Segment


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
    producer_epoch: int
    last_sequence: int
    last_offset: int
    timestamp: int
    coordinator_epoch: int
    transaction_start: int | None


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
    found = [
        Producer(
            producer_id=one.producer_id,
            producer_epoch=one.producer_epoch,
            last_sequence=one.last_sequence,
            last_offset=one.last_offset,
            timestamp=one.timestamp,
            coordinator_epoch=one.coordinator_epoch,
            transaction_start=one.current_txn_first_offset,
        )
        for one in log._producers()  # noqa: SLF001 - of the same package
    ]
    return sorted(found, key=lambda one: one.producer_id)
