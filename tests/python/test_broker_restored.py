"""A real broker starts with restored partitions and serves them, and groups continue at their committed offsets."""

from __future__ import annotations

import random
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest

import kbat
from kafka_broker import Broker, ConsumedRecord, ProducerRecord
from test_restore import batches_of, logs_of
from test_tiered import AIVEN, KAFKA, KEYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kafka_server import KafkaServer

pytestmark = pytest.mark.long

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
Isolation = Literal["read_uncommitted", "read_committed"]
ISOLATIONS: tuple[Isolation, ...] = ("read_uncommitted", "read_committed")
PARTITIONS = (("orders", 0), ("orders", 1), ("clicks", 0))
SETTINGS = {"internal.segment.bytes": 20_000, "index.interval.bytes": 300}


@dataclass(frozen=True)
class Source:
    """The log directory of a broker that was shut down, and what its consumers received."""

    logs: Path
    records: dict[tuple[str, int, Isolation], list[ConsumedRecord]]


LAST_TIMES = [0]


def rows(partition: int) -> list[ProducerRecord]:
    """A batch of records from now on, each a millisecond newer than the one before, also of earlier batches."""
    first = max(int(time.time() * 1000), LAST_TIMES[-1] + 1)
    LAST_TIMES.append(first + 39)
    values = [random.Random(n).randbytes(300) for n in range(40)]  # noqa: S311 - they only must not compress
    return [ProducerRecord(b"key", one, (), first + n, partition) for n, one in enumerate(values)]


@pytest.fixture(scope="module")
def source(kafka_server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Partitions with several segments, leader epochs, codecs, transactions of all kinds and committed offsets."""
    broker = Broker(kafka_server, tmp_path_factory.mktemp("source"))
    broker.create_topic("orders", partitions=2, **SETTINGS)
    broker.create_topic("clicks", **SETTINGS)
    for codec in ("none", "lz4", "zstd", "gzip"):
        for topic, partition in PARTITIONS:
            broker.produce(topic, rows(partition), compression=codec)
        for end in ("commit", "abort"):
            broker.produce("orders", rows(1), transactional_id=end, end=end)
        # each start has another leader epoch
        broker.stop()
    broker.produce("clicks", rows(0), transactional_id="open", end=None)
    reset = ("--reset-offsets", "--topic", "orders", "--execute", "--group")
    broker.run_tool(GROUPS, *reset, "billing", "--to-offset", "100")
    broker.run_tool(GROUPS, *reset, "audit", "--to-latest")
    received = {
        (topic, partition, isolation): broker.consume(topic, isolation, partition)
        for topic, partition in PARTITIONS
        for isolation in ISOLATIONS
    }
    broker.stop()
    return Source(broker.logs, received)


Restored = tuple[Broker, kbat.RestoreReport]


@pytest.fixture
def restored_broker(kafka_server: KafkaServer, tmp_path: Path) -> Callable[..., Restored]:
    """Return a function that restores a location into the log directory of a new broker that has its topics."""

    def restore(location: Path, topics: dict[str, int], *, clean: bool = True, **options: Any) -> Restored:  # noqa: ANN401 - those of kbat.restore
        broker = Broker(kafka_server, tmp_path / "broker")
        for topic, partitions in topics.items():
            broker.create_topic(topic, partitions=partitions, **{"retention.ms": -1, **SETTINGS})
        broker.stop()
        out = tmp_path / "out"
        report = kbat.restore(location, out, topics=list(topics), log_directory=broker.logs, **options)
        for path in out.iterdir():
            shutil.rmtree(broker.logs / path.name, ignore_errors=True)
            path.replace(broker.logs / path.name)
        if not clean:
            (broker.logs / ".kafka_cleanshutdown").unlink()
        return broker, report

    return restore


def reset(broker: Broker, group: str, csv: Path) -> None:
    """Reset the offsets of a group to those that a restore has written."""
    arguments = ("--reset-offsets", "--group", group, "--from-file", str(csv / f"{group}.csv"), "--execute")
    broker.run_tool(GROUPS, *arguments)


def same(found: list[ConsumedRecord], expected: list[ConsumedRecord]) -> bool:
    """Whether two lists of records are equal, without their leader epochs."""
    plain = [[record._replace(leader_epoch=None) for record in records] for records in (found, expected)]
    return plain[0] == plain[1]


def check_files(kafka_server: KafkaServer, directory: Path) -> None:
    """Neither Kafka nor kbat finds an error in a partition."""
    assert kafka_server.faults(directory) == []
    assert [one for one in kbat.verify(directory).findings if one.severity == "error"] == []


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "recovered"])
def test_a_broker_serves_a_restored_log_directory(
    source: Source, restored_broker: Callable[..., Restored], kafka_server: KafkaServer, *, clean: bool
) -> None:
    broker, report = restored_broker(source.logs, {"orders": 2, "clicks": 1}, clean=clean)
    restored = {one.path.rpartition("/")[2]: one for one in report.partitions}
    for (topic, partition, isolation), records in source.records.items():
        assert records
        assert broker.consume(topic, isolation, partition) == records
    broker.stop()
    for topic, partition in PARTITIONS:
        name = f"{topic}-{partition}"
        assert len(restored[name].segments) > 1
        before, after = logs_of(source.logs / name), logs_of(broker.logs / name)
        # the broker may have appended the end of the open transaction
        assert all(after[file].startswith(data) for file, data in before.items() if data)
        check_files(kafka_server, broker.logs / name)


def test_groups_continue_at_their_committed_offsets(
    source: Source, restored_broker: Callable[..., Restored], tmp_path: Path
) -> None:
    csv = tmp_path / "csv"
    broker, report = restored_broker(
        source.logs, {"orders": 2}, leader_epoch=0, committed_offsets=csv, open_transactions="abort"
    )
    assert report.warnings == []
    for group in ("billing", "audit"):
        reset(broker, group, csv)
    for partition in (0, 1):
        records = source.records["orders", partition, "read_uncommitted"]
        received = broker.consume("orders", partition=partition, group="billing")
        assert same(received, [record for record in records if record.offset >= 100])
        assert {record.leader_epoch for record in received} == {0}
        assert broker.consume("orders", partition=partition, group="billing") == []
        assert broker.consume("orders", partition=partition, group="audit") == []
    end = report.partitions[0].end_offset
    assert broker.produce("orders", [ProducerRecord(b"key", b"new")]) == [end]
    for group in ("billing", "audit"):
        (new,) = broker.consume("orders", group=group)
        assert (new.offset, new.value) == (end, b"new")
    broker.stop()


@pytest.mark.parametrize("keeps", [False, True])
def test_new_producers_do_not_meet_the_sequences_of_old_ones(
    restored_broker: Callable[..., Restored], tmp_path: Path, *, keeps: bool
) -> None:
    """The reason for `keep_producers`: a new cluster begins with the ids of producers from 0."""
    source = tmp_path / "source" / "orders-0"
    with kbat.LogWriter(source) as log:
        for producer_id in range(50):
            builder = kbat.BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=0)
            builder.append(None, b"old", timestamp=int(time.time() * 1000))
            log.append_batch(builder.finish())
    broker, report = restored_broker(source.parent, {"orders": 1}, leader_epoch=0, keep_producers=keeps)
    assert report.partitions[0].end_offset == 50
    offsets = [broker.produce("orders", [ProducerRecord(None, b"new")], client_id=f"new-{n}")[0] for n in range(3)]
    # with the state of the old producers, the broker takes the records for their first ones, and drops them
    assert (offsets == [50, 51, 52]) is not keeps
    broker.stop()


def test_consumers_wait_for_a_leader_if_leader_epochs_are_kept(
    source: Source, restored_broker: Callable[..., Restored], tmp_path: Path
) -> None:
    """The reason for `leader_epoch`, and for the warning without it."""
    csv = tmp_path / "csv"
    broker, report = restored_broker(source.logs, {"orders": 2}, committed_offsets=csv)
    assert report.warnings[-1].endswith("pass leader_epoch=0 to replace them: orders-0, orders-1")
    reset(broker, "billing", csv)
    # the consumer commits the epoch of the last batch with the offset
    assert broker.consume("orders", group="billing")
    with pytest.raises(AssertionError, match="before the position for partition orders-0 could be determined"):
        broker.consume("orders", group="billing")
    broker.stop()


def test_a_partition_without_a_topic_becomes_a_stray(source: Source, restored_broker: Callable[..., Restored]) -> None:
    broker, report = restored_broker(source.logs, {"orders": 1}, leader_epoch=0)
    (warning,) = report.warnings
    assert warning.endswith("set them aside as strays: orders-1")
    assert same(broker.consume("orders"), source.records["orders", 0, "read_uncommitted"])
    broker.stop()
    (stray,) = broker.logs.glob("orders-1*")
    assert stray.name.endswith("-stray")


@pytest.mark.parametrize("ends", ["keep", "abort"])
def test_a_broker_serves_a_restore_to_a_point_in_time(
    source: Source, restored_broker: Callable[..., Restored], kafka_server: KafkaServer, tmp_path: Path, ends: str
) -> None:
    # inside the last transaction that was committed
    until = source.records["orders", 1, "read_committed"][-20].timestamp
    csv = tmp_path / "csv"
    broker, report = restored_broker(
        source.logs, {"orders": 2, "clicks": 1}, until_timestamp=until, leader_epoch=0, open_transactions=ends,
        committed_offsets=csv,
    )  # fmt: skip
    restored = {(one.topic, one.partition): one for one in report.partitions}
    for (topic, partition, isolation), records in source.records.items():
        one = restored[topic, partition]
        ends_at = [one.end_offset if one.cut_offset is None else one.cut_offset]
        if isolation == "read_committed":
            ends_at += [unfinished.first_offset for unfinished in one.open_transactions]
        expected = [record for record in records if record.offset < min(ends_at)]
        assert expected
        assert max(record.timestamp for record in expected) < until
        assert same(broker.consume(topic, isolation, partition), expected)
    (unfinished,) = restored["orders", 1].open_transactions
    assert unfinished.aborted == (ends == "abort")
    cut = restored["orders", 1].cut_offset
    assert cut is not None
    assert unfinished.first_offset < cut
    assert restored["clicks", 0].cut_offset is not None
    clamped = {tuple(row[:3]): row[3:] for row in report.committed_offsets}
    committed, offset = clamped["audit", "orders", 1]
    assert committed > offset == restored["orders", 1].end_offset
    assert clamped["billing", "orders", 1] == (100, 100)
    reset(broker, "audit", csv)
    for partition in (0, 1):
        assert broker.consume("orders", partition=partition, group="audit") == []
    broker.stop()
    for topic, partition in PARTITIONS:
        name = f"{topic}-{partition}"
        check_files(kafka_server, broker.logs / name)
        before, after = (
            [bytes(batch)[16:] for batch in batches_of(directory / name)] for directory in (source.logs, broker.logs)
        )
        # all batches but the one with the end, and what was appended to it
        count = sum(one in before for one in after)
        assert count >= len(after) - 2
        assert after[:count] == before[:count]


def test_a_broker_serves_tiered_storage_that_was_restored(
    restored_broker: Callable[..., Restored], kafka_server: KafkaServer
) -> None:
    broker, report = restored_broker(KAFKA / "remote", {"orders": 1})
    (partition,) = report.partitions
    records = broker.consume("orders")
    expected = kbat.scan(KAFKA / "remote", columns=["offset", "timestamp", "value"]).to_pyarrow()
    assert [record.offset for record in records] == expected["offset"].to_pylist()
    assert [record.value for record in records] == expected["value"].to_pylist()
    assert partition.start_offset == 200
    # the transaction at the end has no coordinator in this cluster: an administrator ends it
    (unfinished,) = partition.open_transactions
    committed = broker.consume("orders", "read_committed")
    assert committed[-1].offset < unfinished.first_offset
    at = ("--topic", "orders", "--partition", "0")
    hanging = broker.run_tool(TRANSACTIONS, "find-hanging", *at, "--max-transaction-timeout", "1")
    assert str(unfinished.first_offset) in hanging.split()
    broker.run_tool(TRANSACTIONS, "abort", *at, "--start-offset", str(unfinished.first_offset))
    assert broker.consume("orders", "read_committed") == committed
    broker.stop()
    check_files(kafka_server, broker.logs / "orders-0")


def test_a_broker_serves_encrypted_segments_that_were_restored(
    restored_broker: Callable[..., Restored], kafka_server: KafkaServer
) -> None:
    topics = {"txn-lz4": 1, "compacted": 1, "segments-default-interval": 1}
    broker, report = restored_broker(AIVEN / "zstd-aes", topics, encryption_keys=KEYS, open_transactions="abort")
    for one in report.partitions:
        directory = broker.logs / f"{one.topic}-0"
        for isolation in ISOLATIONS:
            offsets = kbat.scan(directory, isolation=isolation, columns=["offset"]).to_pyarrow()["offset"].to_pylist()
            assert [record.offset for record in broker.consume(one.topic, isolation)] == offsets
            assert offsets
    broker.stop()
    for topic in ("txn-lz4", "segments-default-interval"):
        check_files(kafka_server, broker.logs / f"{topic}-0")
