"""`__transaction_state`: the transactional ids and their transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbat.internal.records import check_options, fields, latest, table

if TYPE_CHECKING:
    import pyarrow as pa

    from kbat.internal.records import Options, Progress

#: Kafka's names of the states, by number.
STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
_TOPIC = "__transaction_state"


def transactional_ids(source: Any, **options: Any) -> pa.Table:  # noqa: ANN401 - those of scan
    """Return the transactional ids and their latest transactions, from the records of ``__transaction_state``.

    The table is sorted by id. Its columns: ``transactional_id``, ``state`` with Kafka's names, ``producer_id``,
    ``producer_epoch``, ``timeout_ms``, ``partitions``, those of an open transaction as structs of ``topic`` and
    ``partition``, ``start_timestamp`` of the latest transaction, null if there was none, and ``update_timestamp``.

    Args:
        source: A log directory with partitions of the topic, some of these partitions, or any other source of
            :func:`kbat.scan`. Sources outside a ``<topic>-<partition>`` directory are read as this topic.
        options: Other arguments of :func:`kbat.scan`, such as ``partitions``, ``limits`` or ``storage_options``. Not
            ``columns``, ``view``, ``decoder``, ``topics``, ``topic`` and ``include_control``.

    Raises:
        TypeError: An argument that is not accepted.
        ValueError: The source does not contain the topic.
        CorruptError: A record batch is damaged.
        OSError: A file can't be read.

    Warns:
        UserWarning: Records that a newer version of Kafka wrote, and corruption that ``on_corrupt`` skips or reports. A
            row whose ``state`` is null has a record of a newer version.

    Example:
        >>> kbat.transactional_ids("/var/lib/kafka/data").to_pandas()
    """
    import pyarrow as pa  # noqa: PLC0415 - optional, and slow to import

    time = pa.timestamp("ms", tz="UTC")
    columns = {
        "transactional_id": pa.string(),
        "state": pa.string(),
        "producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "timeout_ms": pa.int32(),
        "partitions": pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())])),
        "start_timestamp": time,
        "update_timestamp": time,
    }
    check_options("transactional_ids", options)
    return table(identified(source, options), columns)


def identified(source: Any, options: Options, progress: Progress | None = None) -> list[dict[str, Any]]:  # noqa: ANN401 - that of scan
    """Return the rows of :func:`transactional_ids`, with times in milliseconds since the epoch."""
    found = latest(source, _TOPIC, options, ["TransactionLog"], what="transactional ids", progress=progress)
    records = [
        {"transactional_id": fields(key)["transactionalId"], **_state(fields(value))}
        for (_, key), value in found.items()
    ]
    records.sort(key=lambda one: str(one["transactional_id"]))
    return records


def _state(value: dict[str, Any]) -> dict[str, Any]:
    if not value:
        names = ("state", "producer_id", "producer_epoch", "timeout_ms", "start_timestamp", "update_timestamp")
        return {**dict.fromkeys(names), "partitions": []}
    number = value["transactionStatus"]
    start = value["transactionStartTimestampMs"]
    return {
        "state": STATES[number] if 0 <= number < len(STATES) else f"unknown ({number})",
        "producer_id": value["producerId"],
        "producer_epoch": value["producerEpoch"],
        "timeout_ms": value["transactionTimeoutMs"],
        "partitions": [
            {"topic": one["topic"], "partition": partition}
            for one in value["transactionPartitions"] or ()
            for partition in one["partitionIds"]
        ],
        "start_timestamp": None if start < 0 else start,
        "update_timestamp": value["transactionLastUpdateTimestampMs"],
    }
