"""`__consumer_offsets`: committed offsets, and the groups of all protocols."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from kbat.internal.records import check_options, fields, latest, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from kbat.internal.records import Options, Progress

_TOPIC = "__consumer_offsets"
_OFFSETS = ("OffsetCommit", "LegacyOffsetCommit")
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
# Record type of a group, type of the group in Kafka's tools, and record type of its members.
_GROUPS = {
    "GroupMetadata": ("classic", None),
    "ConsumerGroupMetadata": ("consumer", "ConsumerGroupMemberMetadata"),
    "ShareGroupMetadata": ("share", "ShareGroupMemberMetadata"),
    "StreamsGroupMetadata": ("streams", "StreamsGroupMemberMetadata"),
}
_MEMBERS = tuple(members for _, members in _GROUPS.values() if members is not None)


def consumer_offsets(source: Any, *, isolation: Any = "read_committed", **options: Any) -> pa.Table:  # noqa: ANN401 - those of scan
    """Return the committed offsets of every group, from the records of ``__consumer_offsets``.

    The latest commit of a group for a partition counts. Tombstones, which a broker writes when an offset expires or
    its topic is deleted, remove it. Commits of a transaction count from its commit marker on, unless a later record
    has replaced them, as when a group coordinator loads the partition. The table is sorted by group, topic and
    partition. Its columns: ``group``, ``topic``, ``partition``, ``offset``, ``leader_epoch``, ``metadata``,
    ``commit_timestamp``, ``expire_timestamp``, which only old clients set, and ``topic_id``.

    Args:
        source: A log directory with partitions of the topic, some of these partitions, or any other source of
            :func:`kbat.scan`. Sources outside a ``<topic>-<partition>`` directory are read as this topic.
        isolation: ``"read_uncommitted"`` also includes offsets of transactions that are open or were aborted. Unlike
            for :func:`kbat.scan`, an open transaction hides no records after it.
        options: Other arguments of :func:`kbat.scan`, such as ``partitions``, ``limits`` or ``storage_options``. Not
            ``columns``, ``view``, ``decoder``, ``topics``, ``topic`` and ``include_control``.

    Raises:
        TypeError: An argument that is not accepted.
        ValueError: The source does not contain the topic.
        CorruptError: A record batch is damaged.
        OSError: A file can't be read.

    Warns:
        UserWarning: Records that a newer version of Kafka wrote, and corruption that ``on_corrupt`` skips or reports. A
            row whose ``offset`` is null has a record of a newer version.

    Example:
        >>> kbat.consumer_offsets("/var/lib/kafka/data").to_pandas()
    """
    import pyarrow as pa  # noqa: PLC0415 - optional, and slow to import

    time = pa.timestamp("ms", tz="UTC")
    columns = {
        "group": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "leader_epoch": pa.int32(),
        "metadata": pa.string(),
        "commit_timestamp": time,
        "expire_timestamp": time,
        "topic_id": pa.string(),
    }
    check_options("consumer_offsets", options)
    options["isolation"] = isolation
    return table(Groups(source, options, _OFFSETS, "offsets").offsets(), columns)


def consumer_groups(source: Any, *, isolation: Any = "read_committed", **options: Any) -> pa.Table:  # noqa: ANN401 - those of scan
    """Return the groups of ``__consumer_offsets``: classic, consumer, share and streams groups.

    Groups that only committed offsets, without members, are classic groups without a protocol, as in Kafka's tools.
    The table is sorted by group. Its columns: ``group``, ``type``, ``protocol_type``, ``protocol``, ``epoch``, which
    is the generation of a classic group, ``leader`` and ``members``, their number.

    Args:
        source: As for :func:`kbat.consumer_offsets`.
        isolation: As for :func:`kbat.consumer_offsets`.
        options: Other arguments of :func:`kbat.scan`, such as ``partitions``, ``limits`` or ``storage_options``. Not
            ``columns``, ``view``, ``decoder``, ``topics``, ``topic`` and ``include_control``.

    Raises:
        TypeError: An argument that is not accepted.
        ValueError: The source does not contain the topic.
        CorruptError: A record batch is damaged.
        OSError: A file can't be read.

    Warns:
        UserWarning: As for :func:`kbat.consumer_offsets`.
    """
    import pyarrow as pa  # noqa: PLC0415 - optional, and slow to import

    columns = {
        "group": pa.string(),
        "type": pa.string(),
        "protocol_type": pa.string(),
        "protocol": pa.string(),
        "epoch": pa.int32(),
        "leader": pa.string(),
        "members": pa.int32(),
    }
    check_options("consumer_groups", options)
    options["isolation"] = isolation
    return table(Groups(source, options).groups(), columns)


class Groups:
    """The latest records of all groups."""

    def __init__(
        self,
        source: Any,  # noqa: ANN401 - that of scan
        options: Options,
        wanted: Iterable[str] = (*_OFFSETS, *_GROUPS, *_MEMBERS),
        what: str = "groups",
        progress: Progress | None = None,
    ) -> None:
        """Read the records of some types. The options are other arguments of `scan`."""
        self._latest = latest(source, _TOPIC, options, wanted, what=what, progress=progress)

    def offsets(self) -> list[dict[str, Any]]:
        """Return the rows of :func:`consumer_offsets`, with times in milliseconds since the epoch."""
        found = []
        for (kind, key), value in self._latest.items():
            if kind not in _OFFSETS:
                continue
            commit = fields(value)
            topic_id = commit.get("topicId", _NO_ID)
            found.append(
                {
                    **fields(key),
                    "offset": commit.get("offset"),
                    "leader_epoch": _known(commit.get("leaderEpoch")),
                    "metadata": commit.get("metadata"),
                    "commit_timestamp": _known(commit.get("commitTimestamp")),
                    "expire_timestamp": _known(commit.get("expireTimestamp")),
                    "topic_id": None if topic_id == _NO_ID else topic_id,
                }
            )
        return sorted(found, key=lambda one: (one["group"], one["topic"], one["partition"]))

    def groups(self) -> list[dict[str, Any]]:
        """Return the rows of :func:`consumer_groups`."""
        members = Counter((kind, fields(key)["groupId"]) for kind, key in self._latest if kind in _MEMBERS)
        found: dict[str, dict[str, Any]] = {}
        for (kind, key), value in self._latest.items():
            own = fields(key)
            name: str = own["group"] if "group" in own else own["groupId"]
            if kind in _GROUPS:
                found[name] = _group(name, kind, fields(value), members)
            elif kind in _OFFSETS and name not in found:
                found[name] = _simple_group(name)
        return [found[name] for name in sorted(found)]


def _group(name: str, kind: str, value: dict[str, Any], members: Counter[tuple[str, str]]) -> dict[str, Any]:
    group_type, member_type = _GROUPS[kind]
    if member_type is None:
        count = len(value.get("members", ()))
        protocol_type = value.get("protocolType")
    else:
        count = members[member_type, name]
        protocol_type = group_type
    return {
        "group": name,
        "type": group_type,
        "protocol_type": protocol_type,
        "protocol": value.get("protocol"),
        "epoch": value.get("generation", value.get("epoch")),
        "leader": value.get("leader"),
        "members": count,
    }


def _simple_group(name: str) -> dict[str, Any]:
    """Return a group that has only offsets."""
    row: dict[str, Any] = dict.fromkeys(("protocol", "epoch", "leader"))
    return {"group": name, "type": "classic", "protocol_type": "", **row, "members": 0}


def _known(number: int | None) -> int | None:
    """Return a number, None for Kafka's -1."""
    return None if number == -1 else number
