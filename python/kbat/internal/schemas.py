"""`_schemas`: the schemas of Confluent's schema registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from kbat.internal.records import Undecoded, fields, latest, table

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", int, str)

_TOPIC = "_schemas"


def schemas(source: Any, **options: Any) -> pa.Table:  # noqa: ANN401 - those of scan
    """Return the schemas of a schema registry, from the records of ``_schemas``.

    The ids are those in values of Confluent's wire format: the column ``schema_id`` of :func:`kbat.scan` with
    ``view="internal"`` and ``decoder="json"``. The latest record of a version counts. The table is sorted by subject
    and version. Its columns: ``subject``, ``version``, ``id``, ``schema_type`` (``AVRO``, ``PROTOBUF`` or ``JSON``),
    ``schema`` and ``is_deleted``.

    Args:
        source: A log directory with the topic, its partition, or any other source of :func:`kbat.scan`. For a topic
            with another name, pass the path of its partition directory and ``topics``.
        options: Other arguments of :func:`kbat.scan`.

    Raises:
        ValueError: The source does not contain the topic.
        CorruptError: A record batch is damaged.
        OSError: A file can't be read.

    Example:
        >>> kbat.schemas("/var/lib/kafka/data").to_pandas()
    """
    import pyarrow as pa  # noqa: PLC0415 - optional, and slow to import

    found = latest(source, _TOPIC, options, ["SCHEMA", "DELETE_SUBJECT"], what="schemas")
    deleted: dict[str, int] = {}
    records = []
    malformed = Undecoded()
    for (kind, _), value in found.items():
        one = fields(value)
        subject, version = one.get("subject"), one.get("version")
        if not isinstance(subject, str) or not isinstance(version, int):
            malformed.add("the value is not JSON of a schema registry")
        elif kind == "DELETE_SUBJECT":
            deleted[subject] = version
        else:
            records.append(one)
    malformed.warn("schemas")
    records = [
        {
            "subject": one["subject"],
            "version": one["version"],
            "id": _of(one.get("id"), int),
            "schema_type": _of(one.get("schemaType", "AVRO"), str),
            "schema": _of(one.get("schema"), str),
            "is_deleted": one.get("deleted") is True or one["version"] <= deleted.get(one["subject"], 0),
        }
        for one in records
    ]
    records.sort(key=lambda one: (one["subject"], one["version"]))
    columns = {
        "subject": pa.string(),
        "version": pa.int32(),
        "id": pa.int32(),
        "schema_type": pa.string(),
        "schema": pa.string(),
        "is_deleted": pa.bool_(),
    }
    return table(records, columns)


def _of(value: object, kind: type[T]) -> T | None:
    """Return a value of a type; None for one of another type."""
    return value if isinstance(value, kind) else None
