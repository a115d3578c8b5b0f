"""Compares kbat's ``PartitionLog`` with Kafka's ``UnifiedLog`` on complete partitions, without a broker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import kafka_logs
import kbat
from data import DATA, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from kafka_server import KafkaServer

DAMAGED = {"crash-flip", "crash-torn"}
PARTITIONS = [
    path
    for path in sorted({path.parent for path in DATA.glob("corpus*/**/" + "[0-9]" * 20 + ".log")})
    if path.name not in DAMAGED and "wire" not in path.name  # requests of clients are not logs
]
Answer = tuple[int, int, int | None]

QUESTIONS = 40
SPECIAL = [kbat.LATEST, kbat.EARLIEST, kbat.MAX_TIMESTAMP]


def some(numbers: Iterable[int]) -> list[int]:
    """Return about `QUESTIONS` of the numbers, evenly spread, each with its neighbours."""
    ordered = sorted(set(numbers))
    spread = ordered[:: max(1, len(ordered) // QUESTIONS)]
    return [number + step for number in spread for step in (-1, 0, 1) if number + step >= 0]


def is_clean(source: Path) -> bool:
    """Whether a broker shut down cleanly and left all indexes; otherwise one would recover the log."""
    case = source / "case.json"
    is_live = case.exists() and not json.loads(case.read_text()).get("lookups", True)
    return not is_live and all(
        log.with_suffix(suffix).exists() for log in source.glob("*.log") for suffix in (".index", ".timeindex")
    )


def comparable(timestamp: int, answer: Answer | None, end_offset: int) -> object:
    """An answer without the known differences."""
    if answer and answer[:2] == (-1, end_offset):
        return answer[:2]  # the epoch of the end is that of the leader, and there is none
    if timestamp == kbat.MAX_TIMESTAMP and answer and answer[0] == -1:
        return None  # Kafka takes the -1 of batches without timestamps for the largest one
    return answer


@pytest.mark.parametrize("source", PARTITIONS, ids=name_of)
def test_partition_answers_as_kafkas_log(kafka_server: KafkaServer, tmp_path: Path, source: Path) -> None:
    log = kbat.PartitionLog(source)
    batches = [batch for segment in log.segments for batch in segment.batches(check_crc=False)]
    timestamps = [*some(record.timestamp for batch in batches for record in batch), 2**62, *SPECIAL]
    ends = some(batch.next_offset for batch in batches)
    ranges = [(start, end) for start in ends[::9] for end in ends[::7] if start < end]
    kafka = kafka_logs.load(
        kafka_server, source, tmp_path, clean_shutdown=is_clean(source), timestamps=timestamps, aborted_ranges=ranges
    )
    assert (log.start_offset, log.end_offset) == (kafka.log_start_offset, kafka.log_end_offset)
    assert log.last_stable_offset == kafka.last_stable_offset
    # A broker that starts forgets an epoch that has no record; the file still has it.
    assert [(epoch, start) for epoch, start in log.leader_epochs if start < log.end_offset] == kafka.leader_epochs
    for timestamp, expected in zip(timestamps, kafka.timestamps, strict=True):
        place = log.find_timestamp(timestamp)
        found = None if place is None else (place.timestamp, place.offset, place.leader_epoch)
        assert comparable(timestamp, found, log.end_offset) == comparable(timestamp, expected, log.end_offset)
    for (start, end), transactions in zip(ranges, kafka.aborted_transactions, strict=True):
        found_transactions = {(one.producer_id, one.first_offset) for one in log.aborted_transactions(start, end)}
        # Where the cleaner left no index, kbat finds the markers of aborted transactions that have no data any more.
        assert found_transactions >= set(transactions), (start, end)
        assert found_transactions == set(transactions) or "compacted" in source.name, (start, end)
