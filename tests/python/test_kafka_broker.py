"""The broker of the tests serves partitions of Kafka's brokers with the stored answers.

So that it can judge partitions that kbat wrote.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from data import DATA, decoded, json_lines, read_text
from kafka_broker import Broker, ConsumedRecord, ProducerRecord, Served

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kafka_server import KafkaServer

CORPUS = DATA / "corpus"
WHOLE = [
    "codec-gzip", "codec-lz4", "codec-none", "codec-snappy", "codec-zstd", "compacted", "compacted-txn", "empty",
    "idempotent", "leader-epochs", "log-append-time-lz4", "mixed-codecs", "retention-all", "segments-dense-index",
    "txn-lz4", "txn-none", "txn-simple",
]  # fmt: skip
TRANSACTIONAL = [name for name in WHOLE if "txn" in name]


@pytest.fixture(scope="module", params=[False, True], ids=["recovered", "kept"])
def served(broker: Broker, request: pytest.FixtureRequest) -> dict[str, Served]:
    """The corpus's partitions as the broker serves them, all with one start."""
    partitions = broker.serve([CORPUS / name for name in WHOLE], keep_indexes=request.param)
    return dict(zip(WHOLE, partitions, strict=True))


def stored_records(directory: Path) -> list[dict[str, Any]]:
    """All records but the control records that Kafka's classes read in the segments of a directory."""
    lines = [
        line
        for path in sorted(directory.glob("*.log"))
        for line in json_lines(path.with_suffix(".expected.jsonl"))
        if line["type"] == "record" and "controlType" not in line
    ]
    return [{**decoded(line), "timestamp_type": line["timestampType"]} for line in lines]


def fields(record: ConsumedRecord, names: Mapping[str, object]) -> dict[str, object]:
    return {name: getattr(record, name) for name in names}


@pytest.mark.parametrize("name", WHOLE)
def test_serve_gives_the_records_of_the_corpus(served: dict[str, Served], name: str) -> None:
    partition, expected = served[name], stored_records(CORPUS / name)
    assert partition.errors == []
    assert partition.cut_bytes == 0
    assert len(partition.records) == len(expected)
    for record, line in zip(partition.records, expected, strict=True):
        del line["sequence"]  # a consumer does not see it
        assert fields(record, line) == line


@pytest.mark.parametrize("name", TRANSACTIONAL)
def test_serve_read_committed_gives_the_offsets_of_the_corpus(served: dict[str, Served], name: str) -> None:
    expected = json.loads(read_text(CORPUS / name / "read-committed.json"))
    partition = served[name]
    assert [record.offset for record in partition.committed] == expected["offsets"]
    assert partition.last_stable_offset == expected["endOffset"]
    assert partition.beginning_offset == expected["beginningOffset"]


def test_serve_gives_leader_epochs(served: dict[str, Served]) -> None:
    lines = json_lines(CORPUS / "leader-epochs" / "00000000000000000000.expected.jsonl")
    epochs = {line["partitionLeaderEpoch"] for line in lines if line["type"] == "batch"}
    assert {record.leader_epoch for record in served["leader-epochs"].records} == epochs
    assert len(epochs) > 1


def test_serve_damaged_segments_says_how_many_bytes_were_cut(broker: Broker) -> None:
    names = ["crash-torn", "crash-flip"]
    for name, partition in zip(names, broker.serve([CORPUS / name for name in names]), strict=True):
        expected = stored_records(CORPUS / name / "recovered")
        assert [record.offset for record in partition.records] == [line["offset"] for line in expected]
        lengths = [
            sum(path.stat().st_size for path in directory.glob("*.log"))
            for directory in (CORPUS / name, CORPUS / name / "recovered")
        ]
        assert partition.cut_bytes == lengths[0] - lengths[1] > 0


def test_produce_writes_batches_transactions_and_segments(broker: Broker, kafka_server: KafkaServer) -> None:
    broker.create_topic("produced", internal_segment_bytes=200, message_timestamp_type="CreateTime")
    first = [ProducerRecord(b"k", b"v", (("h", None), ("h", b"2")), 1000), ProducerRecord(timestamp=2000)]
    assert broker.produce("produced", first, compression="zstd") == [0, 1]
    assert broker.produce("produced", [ProducerRecord(b"a")], transactional_id="one", end=None) == [2]
    assert broker.produce("produced", [ProducerRecord(b"b")], transactional_id="two", end="abort") == [3]
    assert broker.produce("produced", [ProducerRecord(b"c")], transactional_id="one", end="commit") == [5]
    assert broker.produce("produced", [ProducerRecord(b"d")], transactional_id="two", end=None) == [7]
    everything = broker.consume("produced")
    assert [record.offset for record in everything] == [0, 1, 2, 3, 5, 7]
    assert everything[0][:6] == (0, 1000, "CreateTime", b"k", b"v", [("h", None), ("h", b"2")])
    assert [record.offset for record in broker.consume("produced", "read_committed")] == [0, 1, 2, 5]
    broker.stop()
    segments = sorted(broker.partition_dir("produced").glob("*.log"))
    assert len(segments) > 1
    printed, _ = kafka_server.dump_log(segments, "--print-data-log")
    assert (
        "| offset: 0 CreateTime: 1000 keySize: 1 valueSize: 1 sequence: 0 headerKeys: [h,h] key: k payload: v"
        in printed
    )
    assert "endTxnMarker: ABORT" in printed
    assert kafka_server.faults(broker.partition_dir("produced")) == []


def test_produce_to_partitions_writes_each_one_s_directory(broker: Broker) -> None:
    broker.create_topic("partitioned", partitions=2)
    records = [ProducerRecord(b"%d" % number, timestamp=number, partition=number % 2) for number in range(5)]
    assert broker.produce("partitioned", records, compression="lz4") == [0, 0, 1, 1, 2]
    for partition, keys in ((0, [b"0", b"2", b"4"]), (1, [b"1", b"3"])):
        assert [record.key for record in broker.consume("partitioned", partition=partition)] == keys
        assert (broker.partition_dir("partitioned", partition) / f"{0:020}.log").stat().st_size > 0
