"""`kbat producers`: the idempotent and transactional producers of partitions."""

from dataclasses import asdict
from typing import Any

import kbat
from kbat.cli import output
from kbat.cli.losses import Lost, note_uncounted
from kbat.cli.options import Json, Partitions, PathArgument, Topics, Wide, selection
from kbat.cli.partitions import fail_for, json_errors, logs_of, name_of, number_text, read_each
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, write_table

_COLUMNS = (
    Column("topic", left=True),
    Column("partition"),
    Column("producer id"),
    Column("epoch"),
    Column("last sequence", rank=3),
    Column("last offset", rank=2),
    Column("last timestamp (UTC)", rank=4),
    Column("coordinator epoch", rank=5),
    Column("transaction start", rank=1),
)


@opens_logs
def producers(
    path: PathArgument,
    *,
    topic: Topics = None,
    partition: Partitions = None,
    json: Json = False,
    wide: Wide = False,
) -> None:
    """Show the idempotent and transactional producers of partitions, as a broker would know them.

    The state comes from the newest producer snapshot and the log after it. "transaction start" is the first offset of
    an open transaction. A broker forgets a producer after a day without a batch (`producer.id.expiration.ms`); this
    command shows it. Of a `.log` file, only the batches in the file count.

    Example: `kbat producers /var/lib/kafka/data/orders-0`

    JSON: `path`, `producers`: `topic`, `partition`, `producer_id`, `producer_epoch`, `last_sequence`, `last_offset`,
    `timestamp`, `coordinator_epoch`, -1 for none as in Kafka, and `transaction_start`, null for none; `errors`, the
    partitions that can't be read: `path`, `error`.

    Exit codes: 0; 1 for an empty directory and for partitions that can't be read; 2 for wrong arguments and for a PATH
    that is not a log.
    """
    found, errors, incomplete = read_each(logs_of(path, selection(topic, partition)), kbat.producers, "reading")
    rows = [{**name_of(log), **asdict(one)} for log, states in found for one in states]
    if json:
        output.write_json({"path": str(path), "producers": rows, "errors": json_errors(errors)})
    else:
        write_table(str(path), _COLUMNS, map(_cells, rows), wide=wide)
        partitions = {(row["topic"], row["partition"]) for row in rows}
        count = output.count_text(len(rows), "producer")
        output.write_line(f"{count} in {len(partitions):,} of {output.count_text(len(found), 'partition')}")
    note_uncounted(Lost(bytes=incomplete))
    fail_for(path, errors)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    names = ("producer_id", "producer_epoch", "last_sequence", "last_offset")
    return (
        output.text(row["topic"]),
        number_text(row["partition"]),
        *(number_text(row[name]) for name in names),
        output.time_text(row["timestamp"]),
        number_text(row["coordinator_epoch"]),
        number_text(row["transaction_start"]),
    )
