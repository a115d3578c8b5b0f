"""`_schemas`: the schemas of Confluent's schema registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from kbat.internal.records import Undecoded, check_options, fields, find, rows, table

if TYPE_CHECKING:
    import pyarrow as pa

    from kbat.internal.records import Row

_MALFORMED = "the value is not JSON of a schema registry"


def schemas(source: Any, *, topic: str = "_schemas", **options: Any) -> pa.Table:  # noqa: ANN401 - those of scan
    """Return the schemas of a schema registry, from the records of ``_schemas``.

    The ids are those in values of Confluent's wire format: the column ``schema_id`` of :func:`kbat.scan` with
    ``view="internal"`` and ``decoder="json"``. The records are applied in the order of the log, as a registry applies
    them: the latest record of a version counts, a tombstone removes the version, and the deletion of a subject marks
    the versions that exist at that time. The table is sorted by subject and version. Its columns: ``subject``,
    ``version``, ``id``, ``schema_type`` (``AVRO``, ``PROTOBUF`` or ``JSON``), ``schema`` and ``is_deleted``.

    Args:
        source: A log directory with the topic, its partition, or any other source of :func:`kbat.scan`. Sources outside
            a ``<topic>-<partition>`` directory are read as this topic.
        topic: Name of the topic, which is the registry's setting ``kafkastore.topic``.
        options: Other arguments of :func:`kbat.scan`, such as ``limits`` or ``storage_options``. Not ``columns``,
            ``view``, ``decoder``, ``topics`` and ``include_control``.

    Raises:
        TypeError: An argument that is not accepted.
        ValueError: The source does not contain the topic.
        CorruptError: A record batch is damaged.
        OSError: A file can't be read.

    Warns:
        UserWarning: Records that a registry does not write, and corruption that ``on_corrupt`` skips or reports.

    Example:
        >>> kbat.schemas("/var/lib/kafka/data").to_pandas()
    """
    import pyarrow as pa  # noqa: PLC0415 - optional, and slow to import

    check_options("schemas", options)
    undecoded = Undecoded()
    registry = _Registry()
    # only the topic _schemas is decoded by its name
    for row in rows(find(source, topic, {**options, "decoder": "json"}), undecoded):
        if not registry.apply(row):
            undecoded.add(_MALFORMED)
    undecoded.warn("schemas", stacklevel=3)
    columns = {
        "subject": pa.string(),
        "version": pa.int32(),
        "id": pa.int32(),
        "schema_type": pa.string(),
        "schema": pa.string(),
        "is_deleted": pa.bool_(),
    }
    return table(registry.rows(), columns)


class _Registry:
    """The schemas as some records leave them."""

    def __init__(self) -> None:
        self._subjects: dict[str, dict[int, dict[str, Any]]] = {}

    def apply(self, row: Row) -> bool:
        """Apply a record; those that are not about schemas change nothing. Return False if it is malformed."""
        key = fields(row.key)
        match key.get("keytype"):
            case "SCHEMA":
                return self._register(key, row)
            case "DELETE_SUBJECT" if not row.is_tombstone:
                return self._delete(fields(row.value))
        return True

    def _register(self, key: dict[str, Any], row: Row) -> bool:
        subject, version = key.get("subject"), key.get("version")
        if not isinstance(subject, str) or not _is_int32(version):
            return False
        versions = self._subjects.setdefault(subject, {})
        if row.is_tombstone:
            versions.pop(version, None)
            return True
        value = fields(row.value)
        if value.get("subject") != subject or not _is_int32(value.get("version")) or not _is_int32(value.get("id")):
            return False
        versions[version] = {
            "subject": subject,
            "version": version,
            "id": value["id"],
            "schema_type": _text(value.get("schemaType")) or "AVRO",
            "schema": _text(value.get("schema")),
            "is_deleted": value.get("deleted") is True,
        }
        return True

    def _delete(self, value: dict[str, Any]) -> bool:
        """Mark the versions of a subject as deleted, up to a version."""
        subject, last = value.get("subject"), value.get("version")
        if not isinstance(subject, str) or not _is_int32(last):
            return False
        for version, one in self._subjects.get(subject, {}).items():
            if version <= last:
                one["is_deleted"] = True
        return True

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the table."""
        return [one for _, versions in sorted(self._subjects.items()) for _, one in sorted(versions.items())]


def _is_int32(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 31) <= value < 1 << 31


def _text(value: object) -> str | None:
    """Return a text; None for another value."""
    return value if isinstance(value, str) else None
