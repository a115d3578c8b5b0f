"""`kbat transactions`: transactional ids, open transactions and aborted ranges."""

from typing import Any

import kbat
from kbat.cli import output
from kbat.cli.location import Location
from kbat.cli.losses import Lost, note_uncounted
from kbat.cli.options import Json, Partitions, PathArgument, Topics, Wide, selection
from kbat.cli.partitions import (
    Errors,
    Log,
    fail_for,
    json_errors,
    logs_of,
    name_of,
    number_text,
    path_of,
    read_each,
    warnings_as_notes,
)
from kbat.cli.place import quiet
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, write_table

_STATE_TOPIC = "__transaction_state"
_MAX_OFFSET = (1 << 63) - 1
_IDS = (
    Column("transactional id", left=True),
    Column("state", left=True),
    Column("producer id"),
    Column("epoch", rank=1),
    Column("partitions", rank=2),
    Column("started (UTC)", rank=3),
    Column("updated (UTC)", rank=5),
    Column("timeout", rank=4),
)
_OPEN = (
    Column("topic", left=True),
    Column("partition"),
    Column("producer id"),
    Column("epoch", rank=2),
    Column("first offset"),
    Column("last timestamp (UTC)", rank=1),
    Column("transactional id", left=True, rank=3),
)
_ABORTED = (
    Column("topic", left=True),
    Column("partition"),
    Column("producer id"),
    Column("first offset"),
    Column("marker offset"),
    Column("last stable offset", rank=1),
)


@opens_logs
def transactions(
    path: PathArgument,
    *,
    topic: Topics = None,
    partition: Partitions = None,
    json: Json = False,
    wide: Wide = False,
) -> None:
    """Show transactional ids, open transactions, and the ranges of aborted ones.

    Transactional ids and their states come from all partitions of `__transaction_state` in PATH; --topic and
    --partition select open and aborted transactions. Open transactions hold back `read_committed` consumers: they read
    up to the smallest "first offset" of a partition. The "marker offset" of an aborted transaction is that of its abort
    marker. Of a `.log` file, aborted transactions are those in the `.txnindex` file beside it.

    Examples: `kbat transactions /var/lib/kafka/data`, `kbat transactions /var/lib/kafka/data/orders-0`

    JSON: `path`; `transactional_ids`, null if no partition of `__transaction_state` can be read: `transactional_id`,
    `state`, `producer_id`, `producer_epoch`, `timeout_ms`, `partitions` (`topic`, `partition`), `start_timestamp`,
    `update_timestamp`; `open`: `topic`, `partition`, `producer_id`, `producer_epoch`, `first_offset`, `timestamp`,
    `transactional_id`, null if unknown; `aborted`: `topic`, `partition`, `producer_id`, `first_offset`,
    `marker_offset`, `last_stable_offset`; `errors`, the partitions that can't be read: `path`, `error`.

    Exit codes: 0; 1 for an empty directory and for partitions that can't be read; 2 for wrong arguments and for a PATH
    that is not a log.
    """
    chosen = selection(topic, partition)
    logs = logs_of(path, chosen)
    ids, unread = _transactional_ids(path, _states(path, logs) if chosen else logs)
    names = {one["producer_id"]: one["transactional_id"] for one in ids or ()}
    found, errors, incomplete = read_each(logs, _read, "reading")
    errors = list({**dict(unread), **dict(errors)}.items())
    opened = [
        {**name_of(log), **one, "transactional_id": names.get(one["producer_id"])}
        for log, (running, _) in found
        for one in running
    ]
    aborted = [{**name_of(log), **one} for log, (_, ended) in found for one in ended]
    if json:
        parts = {"transactional_ids": ids, "open": opened, "aborted": aborted}
        output.write_json({"path": str(path), **parts, "errors": json_errors(errors)})
    else:
        _show(path, ids, opened, aborted, wide=wide)
    note_uncounted(Lost(bytes=incomplete))
    fail_for(path, errors)


def _states(path: Location, logs: list[Log]) -> list[Log]:
    """Return the partitions with transactional ids, if options have selected partitions of a log directory."""
    if path.is_file:
        return logs
    try:
        with quiet():
            return list(kbat.LogDirectory(str(path), topics=[_STATE_TOPIC], **path.options).partitions)
    except kbat.KbatError:
        raise
    except ValueError:  # one partition, or a log directory without this topic
        return logs


def _transactional_ids(path: Location, logs: list[Log]) -> tuple[list[dict[str, Any]] | None, Errors]:
    """Return the transactional ids, None without a partition that has them, and errors of such partitions."""
    states = [log for log in logs if isinstance(log, kbat.PartitionLog) and log.topic == _STATE_TOPIC]
    if not states:
        return None, []
    from kbat.internal.transactions import identified  # noqa: PLC0415 - few directories need it

    with warnings_as_notes():
        try:
            return identified([path_of(log) for log in states], path.options), []
        except (kbat.KbatError, OSError):
            # an id is in one partition only: those in other partitions are known
            found, errors, _ = read_each(states, lambda log: identified(path_of(log), path.options), "reading")
    ids = [one for _, some in found for one in some]
    return (sorted(ids, key=lambda one: str(one["transactional_id"])) if found else None), errors


def _read(log: Log) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the open and the aborted transactions of a partition."""
    opened = [
        {
            "producer_id": one.producer_id,
            "producer_epoch": one.producer_epoch,
            "first_offset": one.transaction_start,
            "timestamp": one.timestamp,
        }
        for one in kbat.producers(log)
        if one.transaction_start is not None
    ]
    opened.sort(key=lambda one: one["first_offset"] or 0)
    if isinstance(log, kbat.Segment):
        index = log.transaction_index()
        entries = [] if index is None else index.entries
    else:
        entries = log.aborted_transactions(0, _MAX_OFFSET)
    aborted = [
        {
            "producer_id": one.producer_id,
            "first_offset": one.first_offset,
            "marker_offset": one.last_offset,
            "last_stable_offset": one.last_stable_offset,
        }
        for one in entries
    ]
    return opened, aborted


def _show(
    path: Location,
    ids: list[dict[str, Any]] | None,
    opened: list[dict[str, Any]],
    aborted: list[dict[str, Any]],
    *,
    wide: bool,
) -> None:
    if ids:
        write_table(f"{path}: transactional ids", _IDS, map(_id_cells, ids), wide=wide)
    if opened:
        write_table(f"{path}: open transactions", _OPEN, map(_open_cells, opened), wide=wide)
    if aborted:
        write_table(f"{path}: aborted transactions", _ABORTED, map(_aborted_cells, aborted), wide=wide)
    counts = [f"{len(opened):,} open", f"{len(aborted):,} aborted"]
    if ids is not None:
        counts.append(output.count_text(len(ids), "transactional id"))
    output.write_line(f"{output.text(path)}: {', '.join(counts)}")


def _id_cells(one: dict[str, Any]) -> tuple[str, ...]:
    timeout = one["timeout_ms"]
    return (
        output.text(one["transactional_id"]),
        output.text(one["state"]),
        number_text(one["producer_id"]),
        number_text(one["producer_epoch"]),
        str(len(one["partitions"])),
        output.time_text(one["start_timestamp"]),
        output.time_text(one["update_timestamp"]),
        "-" if timeout is None else f"{timeout / 1000:g} s",
    )


def _open_cells(one: dict[str, Any]) -> tuple[str, ...]:
    numbers = (number_text(one[name]) for name in ("partition", "producer_id", "producer_epoch", "first_offset"))
    time = output.time_text(one["timestamp"])
    return (output.text(one["topic"]), *numbers, time, output.text(one["transactional_id"]))


def _aborted_cells(one: dict[str, Any]) -> tuple[str, ...]:
    names = ("partition", "producer_id", "first_offset", "marker_offset", "last_stable_offset")
    return (output.text(one["topic"]), *(number_text(one[name]) for name in names))
