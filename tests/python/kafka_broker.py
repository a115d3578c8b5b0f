"""A real Kafka broker for the tests: it serves segments that something else wrote, and writes segments itself.

``Broker`` runs one node (broker and KRaft controller) in the Java process of ``kafka_server.py``, on the loopback
interface, with its log directory in a directory of the test's. A start takes some seconds, so that tests share one
broker and give it many partitions at once.
"""

from __future__ import annotations

import base64
import re
import shutil
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from kafka_server import KafkaServer

Config = str | int | bool

SEGMENT_FILE = re.compile(r"[0-9]{20}\.log")
KEPT_FILE = re.compile(r"[0-9]{20}\.(log|index|timeindex|txnindex|snapshot)|leader-epoch-checkpoint")
"""The files of a partition's directory, without partition.metadata, which belongs to the broker's own topic."""


class ConsumedRecord(NamedTuple):
    """A record as returned by Kafka's consumer."""

    offset: int
    timestamp: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    leader_epoch: int | None


@dataclass(frozen=True, kw_only=True)
class Served:
    """The result of serving a partition that was copied into a broker's log directory.

    Attributes:
        topic: The name that it was served under.
        directory: Where the broker has it now. It changes while the broker runs.
        records: What a read_uncommitted consumer got.
        committed: What a read_committed consumer got.
        beginning_offset: The log start offset; like the two others -1 where the broker does not say.
        end_offset: The end for read_uncommitted: the high watermark, which is the log end offset here.
        last_stable_offset: The end for read_committed.
        cut_bytes: How many bytes of the segments the broker truncated when it loaded them.
        errors: What stopped the consumers before the end.
    """

    topic: str
    directory: Path
    records: list[ConsumedRecord]
    committed: list[ConsumedRecord]
    beginning_offset: int
    end_offset: int
    last_stable_offset: int
    cut_bytes: int
    errors: list[str]


class ProducerRecord(NamedTuple):
    """A record to produce; without a timestamp it gets the producer's clock."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None
    partition: int = 0


class Broker:
    """One broker. It starts when it is first needed.

    Attributes:
        bootstrap: Its address, for ``bootstrap.servers``.
        logs: Its log directory.
    """

    def __init__(self, server: KafkaServer, directory: Path, **configs: Config) -> None:
        """Prepare a broker that has its files in an empty directory, with settings beyond those of ``properties``."""
        ports = free_ports(2)
        self.bootstrap = f"127.0.0.1:{ports[0]}"
        self.logs = directory / "logs"
        self._server = server
        self._running = False
        self._served_count = 0
        self._properties = directory / "server.properties"
        directory.mkdir(parents=True, exist_ok=True)
        lines = {**properties(ports[0], ports[1], self.logs), **plain(configs)}
        self._properties.write_text("".join(f"{name}={setting}\n" for name, setting in lines.items()))

    def start(self) -> None:
        """Start the broker, unless it is running.

        Raises:
            RefusedError: It does not start.
        """
        if self._running:
            return
        if not self.logs.exists():
            self._call("format")
        self._call("start", bootstrap=self.bootstrap)
        self._running = True

    def stop(self) -> None:
        """Shut down cleanly: the files in the log directory are complete then. A later use starts it again."""
        if self._running:
            self._running = False
            self._call("stop")

    def create_topic(self, name: str, partitions: int = 1, **configs: Config) -> None:
        """Create a topic with settings, their dots written as underscores (``segment_bytes=…``)."""
        self._create_topics([name], partitions, configs)

    def partition_dir(self, topic: str, partition: int = 0) -> Path:
        """Return the directory of a partition."""
        return self.logs / f"{topic}-{partition}"

    def produce(
        self,
        topic: str,
        records: Iterable[ProducerRecord],
        *,
        compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none",
        transactional_id: str | None = None,
        end: Literal["commit", "abort"] | None = "commit",
        **configs: Config,
    ) -> list[int]:
        """Send records with Kafka's producer: all of them in one batch for each partition, up to 1 MB.

        Args:
            topic: Where to.
            records: What.
            compression: The producer's codec. A transactional producer keeps that of its first call.
            transactional_id: Sends them in the open transaction of this producer, or in a new one.
            end: How the transaction ends; None leaves it open for the next call with this id, or for good.
            configs: Further settings of the producer, their dots written as underscores.

        Returns:
            The offsets of the records.
        """
        self.start()
        rows = [record._asdict() for record in records]
        answer = self._call(
            "produce", topic=topic, records=rows, compression=compression, transactional_id=transactional_id, end=end,
            configs=plain(configs),
        )  # fmt: skip
        offsets: list[int] = answer["offsets"]
        return offsets

    def consume(
        self, topic: str, isolation: str = "read_uncommitted", partition: int = 0, *, group: str | None = None
    ) -> list[ConsumedRecord]:
        """Return all records of a partition; for a group, those after its committed offset, and commit their end.

        Raises:
            AssertionError: The consumer fails.
        """
        self.start()
        (answer,) = self._consume([(topic, partition)], isolation, group)
        assert "error" not in answer, answer["error"]
        return consumed(answer)

    def run_tool(self, tool: str, *arguments: str) -> str:
        """Run one of Kafka's command-line tools with this broker, and return what it prints.

        Args:
            tool: Name of its class.
            arguments: Its arguments without ``--bootstrap-server``.

        Raises:
            RefusedError: It fails.
        """
        self.start()
        given = ["--bootstrap-server", self.bootstrap, *arguments]
        printed: str = self._server.call("run_tool", tool=tool, arguments=given)["stdout"]
        return printed

    def serve(self, partitions: Sequence[Path], *, keep_indexes: bool = False, **configs: Config) -> list[Served]:
        """Put segments into the log directory of the broker, start it and consume them.

        As ``run-broker-on.sh`` of Kafka's reference does: each partition becomes a new topic, whose directory gets the
        given files while the broker is down. So the broker restarts; its address and its other topics stay.

        Args:
            partitions: Directories with the files of one partition each. They are only read.
            keep_indexes: Takes the index files, snapshots and leader epochs too, and lets the broker believe that it
                was shut down cleanly. Otherwise it recovers the segments from the ``.log`` files alone.
            configs: Settings of the topics, their dots written as underscores.

        Raises:
            RefusedError: The broker does not start with these files. A new one is needed then.
        """
        self.start()
        topics = [f"served-{self._served_count + place}" for place in range(len(partitions))]
        self._served_count += len(topics)
        self._create_topics(topics, 1, {"retention.ms": -1, "retention.bytes": -1, **configs})
        self.stop()
        placed = []
        for topic, source in zip(topics, partitions, strict=True):
            placed.append(place(source, self.partition_dir(topic), keep_indexes=keep_indexes))
        if not keep_indexes:
            (self.logs / ".kafka_cleanshutdown").unlink()
        self.start()
        left = [log_len(self.partition_dir(topic)) for topic in topics]
        everything, committed = (
            self._consume([(topic, 0) for topic in topics], isolation)
            for isolation in ("read_uncommitted", "read_committed")
        )
        return [
            Served(
                topic=topic,
                directory=self.partition_dir(topic),
                records=consumed(uncommitted),
                committed=consumed(stable),
                beginning_offset=uncommitted["beginning_offset"],
                end_offset=uncommitted["end_offset"],
                last_stable_offset=stable["end_offset"],
                cut_bytes=before - after,
                errors=[answer["error"] for answer in (uncommitted, stable) if "error" in answer],
            )
            for topic, uncommitted, stable, before, after in zip(
                topics, everything, committed, placed, left, strict=True
            )
        ]

    def _call(self, operation: str, **request: object) -> dict[str, Any]:
        return self._server.call(operation, properties=str(self._properties), **request)

    def _create_topics(self, names: Sequence[str], partitions: int, configs: Mapping[str, Config]) -> None:
        self.start()
        topics = [{"name": name, "partitions": partitions, "configs": plain(configs)} for name in names]
        self._call("create_topics", topics=topics)

    def _consume(
        self, partitions: Sequence[tuple[str, int]], isolation: str, group: str | None = None
    ) -> list[dict[str, Any]]:
        answer = self._call("consume", partitions=partitions, isolation=isolation, group=group)
        found: list[dict[str, Any]] = answer["partitions"]
        return found


def free_ports(count: int) -> list[int]:
    """Find unused ports of the loopback interface."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def properties(port: int, controller_port: int, logs: Path) -> dict[str, str]:
    """Return the settings of a single node that listens on two ports."""
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}"
    topics = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    settings: dict[str, Config] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(logs),
        **{f"{topic}.num.partitions": 1 for topic in topics},
        **{f"{topic}.replication.factor": 1 for topic in topics},
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "auto.create.topics.enable": False,
        "log.cleaner.dedupe.buffer.size": 8 << 20,
        # Records of any time are taken.
        "log.message.timestamp.after.max.ms": 2**63 - 1,
    }
    return plain(settings)


def plain(configs: Mapping[str, Config]) -> dict[str, str]:
    """Return settings in Kafka's form."""
    return {
        name.replace("_", "."): str(setting).lower() if isinstance(setting, bool) else str(setting)
        for name, setting in configs.items()
    }


def place(source: Path, target: Path, *, keep_indexes: bool) -> int:
    """Replace the files of an empty partition by those of another; return the length of its segments."""
    for old in target.iterdir():
        if KEPT_FILE.fullmatch(old.name):
            old.unlink()
    for file in sorted(source.iterdir()):
        if (KEPT_FILE if keep_indexes else SEGMENT_FILE).fullmatch(file.name):
            shutil.copy2(file, target)
    return log_len(target)


def log_len(directory: Path) -> int:
    """Return the bytes of all segments in a directory."""
    return sum(file.stat().st_size for file in directory.iterdir() if SEGMENT_FILE.fullmatch(file.name))


def consumed(answer: Mapping[str, Any]) -> list[ConsumedRecord]:
    """Return the records of an answer."""
    return [
        ConsumedRecord(
            **{
                **row,
                "key": decoded(row["key"]),
                "value": decoded(row["value"]),
                "headers": [(key, decoded(value)) for key, value in row["headers"]],
            }
        )
        for row in answer["records"]
    ]


def decoded(text: str | None) -> bytes | None:
    """Decode base64 or null."""
    return None if text is None else base64.b64decode(text)
