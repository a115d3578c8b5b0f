"""Decoded records of an internal topic, in the order of the log."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from kbat._core.arrow import scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from kbat._core.arrow import Scan

    Progress = Callable[[int, int], object]

# Record types of old brokers, and those whose keys they share.
_SAME = {"LegacyOffsetCommit": "OffsetCommit"}
_COLUMNS = ["record_type", "key", "value", "is_tombstone", "reason"]


class Row(NamedTuple):
    """A record: its type, and key and value as JSON text. A value of None deletes the key, unless `reason` is set."""

    type: str | None
    key: str | None
    value: str | None
    is_tombstone: bool
    reason: str | None


def find(source: Any, topic: str, **options: Any) -> Scan:  # noqa: ANN401 - those of scan
    """Return a scan of an internal topic. Sources whose topic is unknown, such as copies, are read as that topic.

    Raises:
        ValueError: The topic is not in the source.
    """
    try:
        return scan(source, view="internal", columns=_COLUMNS, topics=[topic], **options)
    except ValueError as error:
        try:
            return scan(source, view="internal", columns=_COLUMNS, topic=topic, **options)
        except ValueError:
            raise error from None


def rows(found: Scan, progress: Progress | None = None) -> Iterator[Row]:
    """Yield the records of a scan made by :func:`find`."""
    batches = found.to_batches(progress=progress)
    # as lists, because PyArrow takes longer to import than to read a small topic
    while (columns := batches._next_columns()) is not None:  # noqa: SLF001 - of the same package
        yield from map(Row, *(columns[name] for name in _COLUMNS))


class UndecodedWarning(UserWarning):
    """Records could not be decoded: some, or all of them, as in a partition of another topic."""

    def __init__(self, message: str, *, is_all: bool) -> None:
        """Keep whether no record was decoded."""
        super().__init__(message)
        self.is_all = is_all


class Undecoded:
    """Counts the records that could not be decoded, by their reasons."""

    def __init__(self) -> None:
        """Begin with none."""
        self._reasons: Counter[str] = Counter()
        self._is_any_decoded = False

    def see(self, row: Row, *, is_wanted: bool = True) -> None:
        """Count a record if it could not be decoded and is wanted."""
        # keys of newer versions are decoded although their values are not
        self._is_any_decoded |= row.type is not None and (row.key is not None or row.reason is None)
        if is_wanted and row.reason is not None:
            self.add(row.reason)

    def add(self, reason: str) -> None:
        """Count a record that could not be decoded."""
        self._reasons[reason] += 1

    def warn(self, what: str) -> None:
        """Warn about them. `what` names the rows that they may belong to."""
        if not self._reasons:
            return
        count = self._reasons.total()
        records = "1 record" if count == 1 else f"{count} records"
        reason, _ = self._reasons.most_common(1)[0]
        others = "" if len(self._reasons) == 1 else ", and others"
        message = f"{what} may be missing or old: {records} can't be decoded ({reason}{others})"
        warnings.warn(UndecodedWarning(message, is_all=not self._is_any_decoded), stacklevel=4)


def latest(
    found: Scan, wanted: Iterable[str], what: str, progress: Progress | None = None
) -> dict[tuple[str, str], str | None]:
    """Return the latest value of each key, as JSON text, by record type and key. Tombstones delete their keys.

    A value that could not be decoded becomes None, with a warning.

    Args:
        found: A scan made by :func:`find`.
        wanted: The record types to return.
        what: Name of the rows, for the warning.
        progress: Called with the number of bytes read and their total.
    """
    types = frozenset(wanted)
    undecoded = Undecoded()
    values: dict[tuple[str, str], str | None] = {}
    for row in rows(found, progress):
        is_wanted = row.type is None or row.type in types
        undecoded.see(row, is_wanted=is_wanted)
        if not is_wanted or row.type is None or row.key is None:
            continue
        place = (_SAME.get(row.type, row.type), row.key)
        if row.is_tombstone:
            values.pop(place, None)
        else:
            values[place] = row.value
    undecoded.warn(what)
    return values


def fields(text: str | None) -> dict[str, Any]:
    """Return the members of a JSON object; none for None and for other JSON."""
    found = None if text is None else json.loads(text)
    return found if isinstance(found, dict) else {}


def table(records: list[dict[str, Any]], columns: dict[str, Any]) -> pa.Table:
    """Return rows as a table with columns of these types."""
    import pyarrow as pa  # noqa: PLC0415 - optional, and slow to import

    return pa.Table.from_pylist(records, schema=pa.schema(list(columns.items())))
