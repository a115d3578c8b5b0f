"""A real broker serves partitions that kbat compacted, filtered and rewrote, and kbat reads the same records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import kafka_logs
import kbat
from data import DATA
from partitions import DAY, NOW, committed, random_log, rows

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_broker import Broker, ConsumedRecord, Served
    from kafka_server import KafkaServer

NAMES = [
    "compacted", "compacted-mixed", "compacted-later", "compacted-active", "filtered", "filtered-mixed",
    "filtered-to-nothing", "recompressed", "rebatched", "without-producers", "upgraded", "upgraded-corpus",
]  # fmt: skip
EXPECTED = re.compile(
    r"Non-consecutive offsets in|\s+\d+ is followed by \d+|Found timestamp mismatch in|.*, log timestamp: -1$"
)
"""Gaps, and time index entries for empty batches, whose timestamp kafka-dump-log expects in their records."""


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories that kbat made of others."""
    parent = tmp_path_factory.mktemp("rewritten")
    log = random_log(parent / "v2-0", 21, batches=100).directory
    mixed = random_log(parent / "mixed-0", 22, magics=(0, 1, 2), batches=100).directory
    outs = {name: parent / name for name in NAMES}
    kbat.compact(log, outs["compacted"], now_ms=NOW, index_interval_bytes=300)
    kbat.compact(mixed, outs["compacted-mixed"], now_ms=NOW, segment_bytes=3000)
    kbat.compact(outs["compacted"], outs["compacted-later"], now_ms=NOW + 2 * DAY)
    kbat.compact(mixed, outs["compacted-active"], now_ms=NOW, include_active=True)
    kbat.filter(log, outs["filtered"], lambda record: record.offset % 3 > 0, index_interval_bytes=300)
    kbat.filter(mixed, outs["filtered-mixed"], lambda record: record.offset % 3 > 0)
    kbat.filter(mixed, outs["filtered-to-nothing"], lambda _: False)
    kbat.rewrite(log, outs["recompressed"], compression="zstd", level=3)
    kbat.rewrite(mixed, outs["rebatched"], batch_bytes=4000, magic=2, index_interval_bytes=300)
    kbat.rewrite(log, outs["without-producers"], keep_producer_state=False, batch_bytes=700, compression="lz4")
    kbat.rewrite(mixed, outs["upgraded"], magic=2)
    kbat.rewrite(DATA / "corpus-legacy/upgrade-chain-352", outs["upgraded-corpus"], magic=2, compression="gzip")
    return outs


@pytest.fixture(scope="module", params=[True, False], ids=["kept", "recovered"])
def served(broker: Broker, rewritten: dict[str, Path], request: pytest.FixtureRequest) -> dict[str, Served]:
    """The partitions as the broker serves them, all with one start."""
    partitions = broker.serve([rewritten[name] for name in NAMES], keep_indexes=request.param)
    return dict(zip(NAMES, partitions, strict=True))


def same(found: list[ConsumedRecord], directory: Path, *, is_committed: bool) -> bool:
    expected = committed(directory) if is_committed else rows(directory)
    return [(one.offset, one.timestamp, one.key, one.value, tuple(one.headers)) for one in found] == expected


@pytest.mark.parametrize("name", NAMES)
def test_broker_serves_what_was_rewritten(served: dict[str, Served], rewritten: dict[str, Path], name: str) -> None:
    partition = served[name]
    assert (partition.errors, partition.cut_bytes) == ([], 0)
    assert same(partition.records, rewritten[name], is_committed=False)
    assert same(partition.committed, rewritten[name], is_committed=True)
    assert partition.end_offset == partition.last_stable_offset == kbat.PartitionLog(rewritten[name]).end_offset


@pytest.mark.parametrize("name", NAMES)
def test_dump_log_finds_only_gaps_and_empty_batches(
    kafka_server: KafkaServer, rewritten: dict[str, Path], name: str
) -> None:
    assert [fault for fault in kafka_server.faults(rewritten[name]) if not EXPECTED.match(fault)] == []


@pytest.mark.parametrize("name", NAMES)
def test_verify_finds_no_error_in_what_was_rewritten(rewritten: dict[str, Path], name: str) -> None:
    assert [str(finding) for finding in kbat.verify(rewritten[name]).findings if finding.severity == "error"] == []


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"without-producers", "upgraded-corpus"}])
def test_kafka_knows_the_producers_of_what_was_rewritten(
    kafka_server: KafkaServer, rewritten: dict[str, Path], tmp_path: Path, name: str
) -> None:
    """From the snapshot at the end, and from the batches that stayed."""
    producers = []
    for clean_shutdown in (True, False):
        (place := tmp_path / str(clean_shutdown)).mkdir()
        loaded = kafka_logs.load(kafka_server, rewritten[name], place, clean_shutdown=clean_shutdown)
        # not the timestamp, which may have gone with its record
        names = ("firstSequence", "lastSequence", "lastOffset", "offsetDelta")
        batches = {one["producerId"]: one["batches"] for one in loaded.producers}
        producers.append({pid: [[batch[name] for name in names] for batch in some] for pid, some in batches.items()})
    trusted, replayed = producers
    assert trusted.keys() >= replayed.keys()
    assert {pid: trusted[pid] for pid in replayed} == replayed
    assert len(replayed) > 3
