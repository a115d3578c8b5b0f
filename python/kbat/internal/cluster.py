"""`__cluster_metadata`: the topics of a cluster, from the newest snapshot and the log after it."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kbat._core import find_segments
from kbat._core.log import PartitionLog
from kbat.internal.records import Undecoded, check_options, fields, find, rows, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from kbat._core.arrow import Scan
    from kbat.internal.records import Options

_TOPIC = "__cluster_metadata"
_TOPIC_RESOURCE = 2
_NO_LEADER_CHANGE = -2
_SNAPSHOT = ".checkpoint"
# The first and the last record of a snapshot.
_HEADER = "SNAPSHOT_HEADER"
_FOOTER = "SNAPSHOT_FOOTER"
_NO_FOOTER = "its last record is not a snapshot footer"
# Arguments of `scan` with which a state would have no beginning, or with which a snapshot is not the state of one time.
_NO_BOUNDS = ("start_offset", "start_timestamp", "end_timestamp")
# Arguments that a log has and a snapshot of it does not.
_OF_LOGS = ("end_offset", "remote", "remote_log_metadata")
_STORES = ("storage_options", "store", "encryption_keys", "remote", "remote_log_metadata")
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

    Reads the newest snapshot and the log after it, as a controller does when it starts. If this snapshot is incomplete,
    reads an older one and the log after it, or the whole log. The table is sorted by topic. Its columns: ``topic``,
    ``topic_id``, ``partitions``, a list of structs of ``partition``, ``leader``, which is -1 for none,
    ``leader_epoch``, ``replicas``, ``isr``, ``adding_replicas``, ``removing_replicas``, ``eligible_leader_replicas``
    and ``last_known_elr``; and ``configs``, a map of the topic's own settings.

    Args:
        source: A log directory that contains ``__cluster_metadata-0``, this partition, or a ``.checkpoint`` file.
        options: Other arguments of :func:`kbat.scan`, such as ``limits``, or ``end_offset`` for the state up to an
            offset. Not ``columns``, ``view``, ``decoder``, ``topics``, ``topic``, ``include_control``,
            ``start_offset``, ``start_timestamp`` and ``end_timestamp``.

    Raises:
        TypeError: An argument that is not accepted.
        ValueError: There is no such partition, or its log begins after its newest snapshot. A snapshot is incomplete,
            and the log does not have its records.
        CorruptError: A record batch is damaged.
        OSError: A file can't be read.

    Warns:
        UserWarning: Records that a newer version of Kafka wrote, an incomplete snapshot that the log replaces, and
            corruption that ``on_corrupt`` skips or reports.

    Example:
        >>> kbat.topics("/var/lib/kafka/data").to_pandas()
    """
    import pyarrow as pa  # noqa: PLC0415 - optional, and slow to import

    check_options("topics", options, _NO_BOUNDS)
    numbers = pa.list_(pa.int32())
    partition: list[tuple[str, Any]] = [(name, pa.int32()) for name in ("partition", "leader", "leader_epoch")]
    partition += [(name, numbers) for name in _LISTS.values()]
    columns = {
        "topic": pa.string(),
        "topic_id": pa.string(),
        "partitions": pa.list_(pa.struct(partition)),
        "configs": pa.map_(pa.string(), pa.string()),
    }
    records = [{**one, "configs": list(one["configs"].items())} for one in described(source, options)]
    return table(records, columns)


def described(source: str | os.PathLike[str], options: Options) -> list[Fields]:
    """Return the rows of :func:`topics`, with `configs` as a dictionary. The options are other arguments of `scan`."""
    path = os.fspath(source)
    stores = {name: options[name] for name in _STORES if name in options}
    log = _log(path, stores)
    reading = _of_file(path, options, stores) if log is None else _of_log(log, options)
    reading.undecoded.warn("topics", stacklevel=4)
    return reading.cluster.rows()


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


class _Reading:
    """The state in one snapshot, or in the log, or in both."""

    def __init__(self) -> None:
        self.cluster = _Cluster()
        self.undecoded = Undecoded()

    def read(self, path: str, options: Options) -> set[str]:
        """Apply the records of a source, and return the types of its control records."""
        controls: set[str] = set()
        found = find(path, _TOPIC, {**options, "include_control": True})
        for kind, value in _committed(self._records(found, controls)):
            self.cluster.apply(kind, value)
        return controls

    def _records(self, found: Scan, controls: set[str]) -> Iterator[tuple[str, Fields]]:
        for row in rows(found, self.undecoded):
            if row.reason is not None or row.type is None:
                continue
            if row.is_control:
                controls.add(row.type)
            else:
                yield row.type, fields(row.value)


def _of_file(path: str, options: Options, stores: Options) -> _Reading:
    """Return the state in a snapshot, or in the first segment of a log."""
    is_snapshot = path.endswith(_SNAPSHOT)
    if is_snapshot and "end_offset" in options:
        message = f"end_offset selects records of a log, and {path} is a snapshot: omit end_offset"
        raise ValueError(message)
    if not is_snapshot and (begin := find_segments(path, **stores)[0].base_offset):
        message = f"{path} begins at offset {begin}, and the state before it is in other files: name its directory"
        raise ValueError(message)
    reading = _Reading()
    controls = reading.read(path, options)
    # a snapshot may have another name
    if (is_snapshot or _HEADER in controls) and _FOOTER not in controls:
        message = f"{path} is incomplete: {_NO_FOOTER}; copy the file again"
        raise ValueError(message)
    return reading


def _of_log(log: PartitionLog, options: Options) -> _Reading:
    """Return the state in the newest complete snapshot of a log and the records after it."""
    limit = options.get("end_offset")
    of_snapshot = {name: value for name, value in options.items() if name not in _OF_LOGS}
    snapshots = [(end, path) for end, _, path in reversed(log.metadata_snapshots) if limit is None or end <= limit]
    incomplete: list[tuple[int, str]] = []
    for start, snapshot in (*snapshots, (0, None)):
        if incomplete and not _covers(log, start, incomplete[0][0]):
            break
        reading = _Reading()
        if snapshot is not None and _FOOTER not in reading.read(snapshot, of_snapshot):
            incomplete.append((start, snapshot))
            continue
        _check_start(log, start)
        if log.segments:
            reading.read(log.directory, {**options, "start_offset": start})
        for _, path in incomplete:
            state = "the whole log" if snapshot is None else f"{snapshot} and the log after it"
            message = f"{path} is incomplete: {_NO_FOOTER}; the topics are those of {state}"
            warnings.warn(message, stacklevel=4)
        return reading
    end, path = incomplete[0]
    message = f"{path} is incomplete: {_NO_FOOTER}, and the log does not have all records up to offset {end}; "
    message += "copy the directory again"
    raise ValueError(message)


def _covers(log: PartitionLog, start: int, end: int) -> bool:
    """Return whether a log has the records between two offsets."""
    return bool(log.segments) and log.segments[0].base_offset <= start and log.end_offset >= end


def _check_start(log: PartitionLog, start: int) -> None:
    if log.segments and log.segments[0].base_offset > start:
        message = (
            f"the log of {log.directory} begins at offset {log.segments[0].base_offset}, after the newest snapshot: "
            "copy the *.checkpoint files of the directory too"
        )
        raise ValueError(message)


def _log(path: str, stores: dict[str, Any]) -> PartitionLog | None:
    """Return the partition in a log directory, or the partition that the path is; None for a file."""
    for directory in (f"{path.rstrip('/')}/{_TOPIC}-0", path):
        # a name in a bucket may be missing, and a file has no entries
        with suppress(FileNotFoundError, NotADirectoryError, ValueError):
            log = PartitionLog(directory, **stores)
            if log.segments or log.metadata_snapshots:
                return log
    return None
