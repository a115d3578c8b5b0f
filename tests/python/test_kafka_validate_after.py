"""`kbat.validate(log=…)`: epochs, sequences, duplicates and open transactions, judged by Kafka's `UnifiedLog`."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import kafka_logs
import kbat
from kafka_logs import Append
from kafka_server import ProduceRefusedError

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_server import KafkaServer

NOW = 1_700_000_000_000
LAST = 2**31 - 1


def batch(producer: int, epoch: int, sequence: int, *, count: int = 2, transactional: bool = False) -> bytes:
    """Build a request of a producer."""
    builder = kbat.BatchBuilder(
        producer_id=producer, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
    )
    for number in range(count):
        builder.append(b"k", b"%d" % number, timestamp=NOW)
    return builder.finish()


def history(seed: int) -> list[bytes]:
    """Appends of three producers, one of them in a transaction."""
    rng = random.Random(seed)  # noqa: S311 -- no secret
    requests = [batch(1, 0, 0), batch(2, 3, 0, count=3), batch(1, 0, 2), batch(3, 1, 0, transactional=True)]
    if rng.random() < 0.5:
        requests.append(batch(2, 4, 0))
    return requests


def probes() -> list[bytes]:
    """Requests that may or may not follow a history."""
    found = [kbat_plain()]
    for producer in (1, 2, 3, 9):
        for epoch in (0, 1, 3, 4, 5):
            for sequence in (0, 2, 3, 4, 5, 7, LAST):
                found.extend(batch(producer, epoch, sequence, transactional=kind) for kind in (False, True))
    return found


def kbat_plain() -> bytes:
    """Build a request without a producer."""
    builder = kbat.BatchBuilder()
    builder.append(None, b"v", timestamp=NOW)
    return builder.finish()


@pytest.mark.parametrize("seed", [1, 4])
def test_requests_after_a_history_are_answered_as_by_kafka(
    kafka_server: KafkaServer, tmp_path: Path, seed: int
) -> None:
    """Each probe is sent to the same log: Kafka's is copied again if it accepted the probe."""
    base = tmp_path / "base"
    base.mkdir()
    kafka_logs.append(kafka_server, base, [Append(data) for data in history(seed)])
    log = kbat.PartitionLog(base / "log-0")
    end = log.end_offset
    rng = random.Random(seed)  # noqa: S311 -- no secret
    kinds = set()
    for number, data in enumerate(rng.sample(probes(), 60)):
        out = tmp_path / f"probe-{number}"
        out.mkdir()
        (out / "log-0").mkdir()
        for path in (base / "log-0").iterdir():
            (out / "log-0" / path.name).write_bytes(path.read_bytes())
        _, (answer,) = kafka_logs.append(kafka_server, out, [Append(data)])
        ours = kbat.validate(data, log=log, now_ms=NOW, base_offset=end)
        if isinstance(answer, ProduceRefusedError):
            assert (ours.ok, ours.error) == (False, answer.name), (data, answer)
        else:
            after = kbat.PartitionLog(out / "log-0").end_offset
            assert ours.ok, (answer, ours)
            assert (ours.duplicate_offset is not None) == (after == end), (answer, ours)
        kinds.add(ours.error or ours.duplicate_offset is not None)
    assert {"INVALID_PRODUCER_EPOCH", "OUT_OF_ORDER_SEQUENCE_NUMBER", False} <= kinds


def test_sequence_after_the_last_is_zero(tmp_path: Path) -> None:
    """The sequence wraps; a repeated batch is reported with its offset."""
    directory = tmp_path / "log-0"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(batch(1, 0, LAST - 1))
    log = kbat.PartitionLog(directory)
    assert kbat.validate(batch(1, 0, 0), log=log, now_ms=NOW).ok
    assert kbat.validate(batch(1, 0, 1), log=log, now_ms=NOW).error == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert kbat.validate(batch(1, 0, LAST - 1), log=log, now_ms=NOW).duplicate_offset == 0
    assert kbat.validate(batch(1, 0, 1), now_ms=NOW).ok
