"""`kbat groups`, `topics`, `transactions` and `producers` are what Kafka's own tools report for the same broker."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from command_line import json_of
from kafka_broker import Broker, ProducerRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_server import KafkaServer

pytestmark = pytest.mark.long

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
NONE = {"-": None, "None": None, "": None}


@pytest.fixture(scope="module")
def filled(kafka_server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with topics, groups and transactions of all kinds, still running."""
    broker = Broker(kafka_server, tmp_path_factory.mktemp("tools"))
    broker.create_topic("orders", partitions=3, segment_bytes=1 << 20, cleanup_policy="delete")
    broker.create_topic("clicks", retention_ms=-1)
    broker.create_topic("deleted")
    for partition in range(3):
        broker.produce("orders", [ProducerRecord(value=b"x", partition=partition)] * (10 + partition))
    broker.produce("clicks", [ProducerRecord(value=b"y")] * 7)
    broker.produce("deleted", [ProducerRecord(value=b"z")])
    for group, topic, where in (
        ("billing", "orders", ("--to-offset", "4")),
        ("billing", "clicks", ("--to-latest",)),
        ("audit", "orders", ("--to-earliest",)),
        ("audit", "deleted", ("--to-latest",)),
        ("gone", "clicks", ("--to-latest",)),
    ):
        broker.run_tool(GROUPS, "--reset-offsets", "--group", group, "--topic", topic, *where, "--execute")
    broker.run_tool(
        GROUPS, "--reset-offsets", "--group", "billing", "--topic", "clicks", "--shift-by", "-3", "--execute"
    )
    broker.run_tool(GROUPS, "--delete-offsets", "--group", "audit", "--topic", "orders:2")
    broker.run_tool(GROUPS, "--delete", "--group", "gone")
    broker.run_tool(TOPICS, "--delete", "--topic", "deleted")
    broker.run_tool(TOPICS, "--alter", "--topic", "clicks", "--partitions", "2")
    changes = ("--add-config", "max.message.bytes=9999", "--delete-config", "segment.bytes")
    broker.run_tool(CONFIGS, "--alter", "--entity-type", "topics", "--entity-name", "orders", *changes)
    for name, end in (("paid", "commit"), ("paid", "abort"), ("refused", "abort"), ("waiting", None)):
        for _ in range(2):
            broker.produce("orders", [ProducerRecord(value=b"t")] * 3, transactional_id=name, end=end)  # type: ignore[arg-type]  # of a tuple
    yield broker
    broker.stop()


def table(text: str) -> list[dict[str, str]]:
    """The rows of a tool's table, by the names in its head."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("Consumer group")]
    heads = [line for line in lines if re.match(r"[A-Z][A-Za-z-]+\s+[A-Z]", line)]
    names = heads[0].split()
    return [dict(zip(names, line.split(), strict=False)) for line in lines if line not in heads]


def number(text: str) -> int | None:
    return None if text in NONE else int(text)


def test_groups_are_those_of_the_tool(filled: Broker) -> None:
    described = table(filled.run_tool(GROUPS, "--describe", "--all-groups", "--offsets"))
    names = ("PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    expected = [(row["GROUP"], row["TOPIC"], *(number(row[name]) for name in names)) for row in described]
    found = json_of("groups", filled.logs)["groups"]
    assert sorted(expected) == [
        (group["group"], *(one[name] for name in ("topic", "partition", "offset", "end_offset", "lag")))
        for group in found
        for one in group["offsets"]
    ]
    assert len(expected) == 6
    listed = filled.run_tool(GROUPS, "--list").split()
    assert sorted(listed) == [group["group"] for group in found] == ["audit", "billing"]


def test_topics_are_those_of_the_tool(filled: Broker) -> None:
    found = {row["topic"]: row for row in json_of("topics", filled.logs)["topics"]}
    text = filled.run_tool(TOPICS, "--describe")
    seen: dict[str, list[dict[str, Any]]] = {}
    for line in text.splitlines():
        fields = dict(part.split(":", 1) for part in line.strip().split("\t") if ":" in part)
        values = {name.strip(): text.strip() for name, text in fields.items()}
        if "TopicId" in values:
            assert found[values["Topic"]]["topic_id"] == values["TopicId"]
            assert len(found[values["Topic"]]["partitions"]) == int(values["PartitionCount"])
            seen[values["Topic"]] = []
        elif "Partition" in values:
            seen[values["Topic"]].append(values)
    assert seen.keys() == found.keys() >= {"orders", "clicks"}
    for topic, partitions in seen.items():
        expected = [
            (int(one["Partition"]), int(one["Leader"]), numbers(one["Replicas"]), numbers(one["Isr"]))
            for one in partitions
        ]
        names = ("partition", "leader", "replicas", "isr")
        assert [tuple(one[name] for name in names) for one in found[topic]["partitions"]] == expected
    for topic, row in found.items():
        text = filled.run_tool(CONFIGS, "--describe", "--entity-type", "topics", "--entity-name", topic)
        assert dict(re.findall(r"^  ([^=\s]+)=(\S*) sensitive=", text, re.MULTILINE)) == row["configs"], topic


def numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",") if one]


def test_transactions_are_those_of_the_tool(filled: Broker) -> None:
    found = json_of("transactions", filled.logs)
    ids = {one["transactional_id"]: one for one in found["transactional_ids"]}
    listed = {row["TransactionalId"]: row for row in table(filled.run_tool(TRANSACTIONS, "list"))}
    assert ids.keys() == listed.keys() == {"paid", "refused", "waiting"}
    for name, row in listed.items():
        assert (ids[name]["producer_id"], ids[name]["state"]) == (int(row["ProducerId"]), row["TransactionState"])
        (more,) = table(filled.run_tool(TRANSACTIONS, "describe", "--transactional-id", name))
        assert (ids[name]["producer_epoch"], ids[name]["timeout_ms"]) == (
            int(more["ProducerEpoch"]),
            int(more["TransactionTimeoutMs"]),
        )
        partitions = ",".join(f"{one['topic']}-{one['partition']}" for one in ids[name]["partitions"])
        assert partitions == more.get("TopicPartitions", "")
    assert [(one["transactional_id"], one["topic"], one["partition"]) for one in found["open"]] == [
        ("waiting", "orders", 0)
    ]
    assert {ids[name]["producer_id"] for name in ("paid", "refused")} == {
        one["producer_id"] for one in found["aborted"]
    }


def test_producers_are_those_of_the_tool(filled: Broker) -> None:
    names = {
        "ProducerId": "producer_id",
        "ProducerEpoch": "producer_epoch",
        "LatestCoordinatorEpoch": "coordinator_epoch",
        "LastSequence": "last_sequence",
        "LastTimestamp": "timestamp",
        "CurrentTransactionStartOffset": "transaction_start",
    }
    for partition in range(3):
        text = filled.run_tool(TRANSACTIONS, "describe-producers", "--topic", "orders", "--partition", str(partition))
        expected = [{mine: number(row[theirs]) for theirs, mine in names.items()} for row in table(text)]
        found = json_of("producers", filled.partition_dir("orders", partition))["producers"]
        shown = [{name: one[name] for name in names.values()} for one in found]
        assert shown == sorted(expected, key=lambda one: one["producer_id"] or 0)
        assert shown
