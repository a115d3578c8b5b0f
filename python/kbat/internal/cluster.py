"""`__cluster_metadata`: the topics of a cluster, from the newest snapshot and the log after it."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kbat._core.log import PartitionLog
from kbat.internal.records import Undecoded, fields, find, rows, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_TOPIC = "__cluster_metadata"
_TOPIC_RESOURCE = 2
_NO_LEADER_CHANGE = -2
# Name in the records, name in the table.
_LISTS = {
    "replicas": "replicas",
    "isr": "isr",
    "addingReplicas": "adding_replicas",
    "removingReplicas": "removing_replicas",
    "eligibleLeaderReplicas": "eligible_leader_replicas",
    "lastKnownElr": "last_known_elr",
}

Fields = dict[str, Any]


def topics(source: str | os.PathLike[str], **options: Any) -> pa.Table:  # noqa: ANN401 - those of scan
    """Return the topics of a cluster with their ids, partitions and configurations, from ``__cluster_metadata``.

    Reads the newest snapshot and the log after it, as a controller does when it starts. The table is sorted by topic.
    Its columns: ``topic``, ``topic_id``, ``partitions``, a list of structs of ``partition``, ``leader``, which is -1
    for none, ``leader_epoch``, ``replicas``, ``isr``, ``adding_replicas``, ``removing_replicas``,
    ``eligible_leader_replicas`` and ``last_known_elr``; and ``configs``, a map of the topic's own settings.

    Args:
        source: A log directory that contains ``__cluster_metadata-0``, this partition, or a ``.checkpoint`` file.
        options: Other arguments of :func:`kbat.scan`, such as ``limits``.

    Raises:
        ValueError: There is no such partition, or its log begins after its newest snapshot.
        CorruptError: A record batch is damaged.
        OSError: A file can't be read.

    Warns:
        UserWarning: Records that a newer version of Kafka wrote.

    Example:
        >>> kbat.topics("/var/lib/kafka/data").to_pandas()
    """
    import pyarrow as pa  # noqa: PLC0415 - optional, and slow to import

    numbers = pa.list_(pa.int32())
    partition: list[tuple[str, Any]] = [(name, pa.int32()) for name in ("partition", "leader", "leader_epoch")]
    partition += [(name, numbers) for name in _LISTS.values()]
    columns = {
        "topic": pa.string(),
        "topic_id": pa.string(),
        "partitions": pa.list_(pa.struct(partition)),
        "configs": pa.map_(pa.string(), pa.string()),
    }
    records = [{**one, "configs": list(one["configs"].items())} for one in described(source, **options)]
    return table(records, columns)


def described(source: str | os.PathLike[str], **options: Any) -> list[Fields]:  # noqa: ANN401 - those of scan
    """Return the rows of :func:`topics`, with `configs` as a dictionary."""
    cluster = _Cluster()
    for kind, value in _committed(_records(os.fspath(source), options)):
        cluster.apply(kind, value)
    return cluster.rows()


class _Cluster:
    """The topics as some records leave them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._partitions: dict[str, dict[int, Fields]] = {}
        self._configs: dict[str, dict[str, str]] = {}

    def apply(self, kind: str, value: Fields) -> None:
        """Apply a record; those that are not about topics change nothing."""
        match kind:
            case "TopicRecord":
                self._names[value["topicId"]] = value["name"]
                self._partitions[value["topicId"]] = {}
            case "RemoveTopicRecord":
                self._partitions.pop(value["topicId"], None)
                self._configs.pop(self._names.pop(value["topicId"], ""), None)
            case "PartitionRecord":
                lists = {name: value.get(name) or [] for name in _LISTS}
                one = {"leader": value["leader"], "leaderEpoch": value["leaderEpoch"], **lists}
                self._partitions.setdefault(value["topicId"], {})[value["partitionId"]] = one
            case "PartitionChangeRecord":
                self._change(self._partitions.get(value["topicId"], {}).get(value["partitionId"]), value)
            case "ClearElrRecord":
                self._clear_elr(value["topicName"])
            case "ConfigRecord" if value["resourceType"] == _TOPIC_RESOURCE:
                self._configure(value)

    def _clear_elr(self, topic: str) -> None:
        """Clear the eligible leaders of a topic; of all topics if the name is empty."""
        for topic_id, name in self._names.items():
            if topic in {"", name}:
                for one in self._partitions[topic_id].values():
                    one.update(eligibleLeaderReplicas=[], lastKnownElr=[])

    def _configure(self, value: Fields) -> None:
        own = self._configs.setdefault(value["resourceName"], {})
        if value["value"] is None:
            own.pop(value["name"], None)
        else:
            own[value["name"]] = value["value"]

    def _change(self, one: Fields | None, value: Fields) -> None:
        """Change a partition; fields that are absent or null do not change."""
        if one is None:
            return
        one.update({name: value[name] for name in _LISTS if value.get(name) is not None})
        leader = value.get("leader", _NO_LEADER_CHANGE)
        if leader != _NO_LEADER_CHANGE:
            one.update(leader=leader, leaderEpoch=one["leaderEpoch"] + 1)

    def rows(self) -> list[Fields]:
        """Return the rows of the table."""
        found = []
        for topic_id, name in sorted(self._names.items(), key=lambda one: one[1]):
            partitions = [
                {
                    "partition": number,
                    "leader": one["leader"],
                    "leader_epoch": one["leaderEpoch"],
                    **{shown: one[stored] for stored, shown in _LISTS.items()},
                }
                for number, one in sorted(self._partitions[topic_id].items())
            ]
            configs = dict(sorted(self._configs.get(name, {}).items()))
            found.append({"topic": name, "topic_id": topic_id, "partitions": partitions, "configs": configs})
        return found


def _committed(records: Iterator[tuple[str, Fields]]) -> Iterator[tuple[str, Fields]]:
    """Omit the records of metadata transactions that were aborted or have not ended."""
    pending: list[tuple[str, Fields]] | None = None
    for kind, value in records:
        if kind == "BeginTransactionRecord":
            pending = []
        elif kind == "AbortTransactionRecord":
            pending = None
        elif kind == "EndTransactionRecord":
            yield from pending or ()
            pending = None
        elif pending is not None:
            pending.append((kind, value))
        else:
            yield kind, value


def _records(path: str, options: dict[str, Any]) -> Iterator[tuple[str, Fields]]:
    """Yield type and fields of the records: those of the newest snapshot, then those of the log after it."""
    undecoded = Undecoded()
    for source, start in _sources(path, options):
        for row in rows(find(source, _TOPIC, {"start_offset": start, **options}), undecoded):
            if row.reason is None and row.type is not None:
                yield row.type, fields(row.value)
    undecoded.warn("topics")


def _sources(path: str, options: dict[str, Any]) -> Iterator[tuple[str, int | None]]:
    """Yield the snapshot and the log, each with its first offset to read."""
    stores: dict[str, Any] = {
        name: options[name]
        for name in ("storage_options", "store", "encryption_keys", "remote", "remote_log_metadata")
        if name in options
    }
    log = _log(path, stores)
    if log is None:
        yield path, None
        return
    end = None
    if log.metadata_snapshots:
        end, _, snapshot = log.metadata_snapshots[-1]
        yield snapshot, None
    if log.segments and log.segments[0].base_offset > (end or 0):
        message = (
            f"the log of {log.directory} begins at offset {log.segments[0].base_offset}, after the newest snapshot: "
            "copy the *.checkpoint files of the directory too"
        )
        raise ValueError(message)
    if log.segments or end is None:
        yield log.directory, end


def _log(path: str, stores: dict[str, Any]) -> PartitionLog | None:
    """Return the partition in a log directory, or the partition that the path is; None for a file."""
    for directory in (f"{path.rstrip('/')}/{_TOPIC}-0", path):
        # a name in a bucket may be missing, and a file has no entries
        with suppress(FileNotFoundError, NotADirectoryError, ValueError):
            log = PartitionLog(directory, **stores)
            if log.segments or log.metadata_snapshots:
                return log
    return None
