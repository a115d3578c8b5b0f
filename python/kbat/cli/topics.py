"""`kbat topics`: ids, partitions and configurations of a cluster's topics."""

from fnmatch import fnmatchcase
from typing import Any

from kbat.cli import output
from kbat.cli.options import Json, PathArgument, Topics, Wide
from kbat.cli.partitions import check_topic, decoding, note_incomplete
from kbat.cli.place import locate
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, write_table

_TOPIC = "__cluster_metadata"
_COLUMNS = (
    Column("topic", left=True),
    Column("topic id", left=True, rank=1),
    Column("partitions"),
    Column("replicas"),
    Column("out of sync", rank=2),
    Column("configs", left=True, rank=3),
)


@opens_logs
def topics(
    path: PathArgument,
    *,
    topic: Topics = None,
    json: Json = False,
    wide: Wide = False,
) -> None:
    """Show ids, partitions and configurations of a cluster's topics, from `__cluster_metadata`.

    PATH is a log directory of a controller or broker that contains `__cluster_metadata-0`, this partition, or a
    `.checkpoint` file, which is a snapshot. The state is that of the newest complete snapshot and the log after it.
    "out of sync" counts the replicas that are not in sync with their leader. Configurations are those that were set for
    the topic, not defaults.

    Examples: `kbat topics /var/lib/kafka/data`, `kbat topics /var/lib/kafka/data --topic 'orders*' --json`

    JSON: `path`, `topics`: `topic`, `topic_id`, `partitions`: `partition`, `leader`, -1 for none, `leader_epoch`,
    `replicas`, `isr`, `adding_replicas`, `removing_replicas`, `eligible_leader_replicas`, `last_known_elr`; `configs`,
    an object.

    Exit codes: 0; 1 for corruption, and for an empty directory; 2 for wrong arguments, for a PATH without
    `__cluster_metadata-0`, and for an incomplete snapshot without a log that replaces it.
    """
    from kbat.internal.cluster import described  # noqa: PLC0415 - slow, and only needed here

    segments = locate([path]).segments
    check_topic(path, segments, _TOPIC)
    with decoding(path, _TOPIC):
        found = described(str(path), path.options)
    note_incomplete(path, segments, _TOPIC)
    rows = [one for one in found if not topic or any(fnmatchcase(one["topic"], pattern) for pattern in topic)]
    if topic and not rows:
        message = f"no topic matches {', '.join(map(repr, topic))}; omit --topic to see all topics"
        raise ValueError(message)
    if json:
        output.write_json({"path": str(path), "topics": rows})
        return
    write_table(str(path), _COLUMNS, map(_cells, rows), wide=wide)
    partitions = sum(len(one["partitions"]) for one in rows)
    output.write_line(f"{output.count_text(len(rows), 'topic')}, {output.count_text(partitions, 'partition')}")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    partitions = row["partitions"]
    counts = sorted({len(one["replicas"]) for one in partitions})
    missing = sum(len(set(one["replicas"]) - set(one["isr"])) for one in partitions)
    configs = " ".join(f"{name}={value}" for name, value in row["configs"].items())
    return (
        output.text(row["topic"]),
        output.text(row["topic_id"]),
        str(len(partitions)),
        "-".join(map(str, counts[:1] + counts[1:][-1:])),
        str(missing),
        output.text(configs or None),
    )
