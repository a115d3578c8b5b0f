"""kbat's compaction against Kafka's own: filterTo batch by batch, and Cleaner run after run on the same partitions."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Literal

import pytest

import kafka_logs
import kbat
from data import DATA
from partitions import DAY, NOW, batches_of, contents, random_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kafka_server import KafkaServer, Retention

CASES = [
    "compacted",
    "compacted-append-time",
    "compacted-codec",
    "compacted-codec2",
    "compacted-empty-batches",
    "compacted-expired",
    "compacted-txn",
    "compacted-txn-expired",
    "consumer-offsets",
    "txn-lz4",
    "txn-none",
]
RETENTIONS: list[tuple[Retention, Literal["delete", "delete_empty", "retain_empty"]]] = [
    ("DELETE_EMPTY", "delete_empty"),
    ("RETAIN_EMPTY", "retain_empty"),
    ("DELETE", "delete"),
]
KAFKAS_EXPIRATION_MS = 2**31 - 1  # as java/Logs.java has it
LEGACY = ["k0102-compacted", "k282-compacted-mixed", "k282-compacted-mixed-earlier", "upgrade-chain-352"]


def batch_facts(batch: kbat.Batch) -> dict[str, Any]:
    """Return all properties that do not depend on the compressor."""
    names = """base_offset last_offset record_count partition_leader_epoch magic compression timestamp_type crc_ok
        base_timestamp max_timestamp producer_id producer_epoch base_sequence is_transactional is_control
        delete_horizon_ms"""
    facts = {name: getattr(batch, name) for name in names.split()}
    facts["records"] = [
        (record.offset, record.timestamp, record.key, record.value, tuple(record.raw_headers)) for record in batch
    ]
    facts["bytes"] = bytes(batch) if batch.compression == "none" else None
    return facts


def buffer_facts(data: bytes) -> list[dict[str, Any]]:
    return [batch_facts(batch) for batch in kbat.read_batches(data)]


def partition_facts(directory: Path) -> dict[str, Any]:
    """Return the content of a partition."""
    logs = {
        segment.base_offset: [batch_facts(batch) for batch in kbat.read_batches(segment.path)]
        for segment in kbat.find_segments(directory)
    }
    aborted = {path.name: path.read_bytes() for path in directory.glob("*.txnindex") if path.stat().st_size}
    return {"logs": logs, "aborted": aborted}


# filterTo


@pytest.mark.parametrize("seed", range(8))
def test_retain_records_is_filter_to(kafka_server: KafkaServer, tmp_path: Path, seed: int) -> None:
    log = random_log(tmp_path / "t-0", seed, magics=(0, 1, 2), batches=80)
    rng = random.Random(seed)  # noqa: S311 - reproducible and no secret
    for batch in batches_of(log.directory):
        data = bytes(batch)
        offsets = {record.offset for record in batch if rng.random() < rng.choice((0.0, 0.5, 1.0))}
        kafkas, ours = rng.choice(RETENTIONS if batch.magic == 2 else RETENTIONS[:1])
        is_marker = batch.is_control and rng.random() < 0.5
        markers = [batch.base_offset] if is_marker else []
        expected = kafka_server.filter_to(
            data, keep_offsets=sorted(offsets), batch_retention=kafkas, now_ms=NOW, delete_retention_ms=7,
            markers_of_empty_transactions=markers,
        ).data  # fmt: skip
        found = kbat.retain_records(
            data, of_offsets(offsets), retention=ours, upgrade=True, delete_horizon_ms=NOW + 7,
            is_marker_of_empty_transaction=is_marker,
        )  # fmt: skip
        assert buffer_facts(found) == buffer_facts(expected)
        # what was rebuilt once is filtered again: horizons and offset ranges are there already
        if found:
            expected = kafka_server.filter_to(found, now_ms=NOW + 5, delete_retention_ms=70).data
            found = kbat.retain_records(found, lambda record: record.key is not None, delete_horizon_ms=NOW + 75)
            assert buffer_facts(found) == buffer_facts(expected)


def of_offsets(offsets: set[int]) -> Callable[[kbat.Record], bool]:
    return lambda record: record.offset in offsets


# Cleaner


def compare_runs(server: KafkaServer, source: Path, tmp_path: Path, times: list[int], *, has_indexes: bool) -> None:
    """Compact a partition repeatedly with Kafka and with kbat, each time from Kafka's result."""
    configs = {"delete.retention.ms": DAY, "index.interval.bytes": 600}
    for number, now_ms in enumerate(times):
        scratch = tmp_path / f"kafka-{number}"
        scratch.mkdir()
        is_trusted = has_indexes or number > 0
        kafka = kafka_logs.clean(server, source, scratch, now_ms=now_ms, clean_shutdown=is_trusted, configs=configs)
        ours = tmp_path / f"kbat-{number}"
        report = kbat.compact(
            source, ours, now_ms=now_ms, index_interval_bytes=600, producer_expiration_ms=KAFKAS_EXPIRATION_MS
        )
        assert partition_facts(ours) == partition_facts(kafka.directory)
        assert report.first_uncleanable_offset == kafka.next_dirty_offset
        assert (report.written.records, report.read.bytes) == (kafka.records_written, kafka.bytes_read)
        source = kafka.directory


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("magics", [(2,), (0, 1, 2)])
def test_compact_random_log_is_what_kafka_makes_of_it(
    kafka_server: KafkaServer, tmp_path: Path, seed: int, magics: tuple[int, ...]
) -> None:
    log = random_log(tmp_path / "t-0", seed, magics=magics, batches=90)
    times = [NOW, NOW + DAY - 1, NOW + DAY, NOW + 3 * DAY, NOW + 9 * DAY]
    compare_runs(kafka_server, log.directory, tmp_path, times, has_indexes=False)


@pytest.mark.parametrize("seed", range(4))
def test_compact_uncompressed_log_gives_kafkas_files_to_the_byte(
    kafka_server: KafkaServer, tmp_path: Path, seed: int
) -> None:
    log = random_log(tmp_path / "t-0", seed, codecs=("none",), batches=90)
    configs = {"index.interval.bytes": 300}
    kafka = kafka_logs.clean(kafka_server, log.directory, tmp_path, now_ms=NOW, clean_shutdown=False, configs=configs)
    kbat.compact(log.directory, tmp_path / "out", now_ms=NOW, index_interval_bytes=300)
    found, expected = contents(tmp_path / "out"), contents(kafka.directory)
    for name in ("00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.timeindex"):
        assert len(expected[name]) > 0
        assert found[name] == expected[name]
    snapshots = {name: data for name, data in expected.items() if name.endswith(".snapshot")}
    end = f"{log.end_offset:020}.snapshot"
    assert found[end] == snapshots[end]


@pytest.mark.parametrize("case", [f"corpus/{name}" for name in CASES] + [f"corpus-legacy/{name}" for name in LEGACY])
def test_compact_corpus_is_what_kafka_makes_of_it(kafka_server: KafkaServer, tmp_path: Path, case: str) -> None:
    later = NOW + 20 * 365 * DAY
    compare_runs(kafka_server, DATA / case, tmp_path, [NOW, later, later + DAY], has_indexes=True)
