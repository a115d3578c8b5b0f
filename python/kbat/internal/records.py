"""Decoded records of an internal topic, in the order of the log."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from kbat._core.arrow import scan
from kbat.internal.committed import CONTENT, ORDER, SAME, Committed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from kbat._core.arrow import Scan, ScanStats
    from kbat.internal.committed import Columns, Content

    Progress = Callable[[int, int], object]
    Options = dict[str, Any]

_COLUMNS = (*CONTENT, "is_control")
# Arguments of `scan` that the functions of this package set.
_SET = ("columns", "view", "decoder", "topics", "topic", "include_control")


class Row(NamedTuple):
    """A record: its type, and key and value as JSON text. A value of None deletes the key, unless `reason` is set."""

    type: str | None
    key: str | None
    value: str | None
    is_tombstone: bool
    reason: str | None
    is_control: bool


def check_options(function: str, options: Options, more: Iterable[str] = ()) -> None:
    """Refuse the arguments of `scan` that a function of kbat sets itself.

    Raises:
        TypeError: There is such an argument.
    """
    for name in (*_SET, *more):
        if name in options:
            message = f"kbat.{function}() does not accept the argument {name!r} of kbat.scan: omit it"
            raise TypeError(message)


def find(source: Any, topic: str, options: Options, columns: Iterable[str] = _COLUMNS) -> Scan:  # noqa: ANN401 - that of scan
    """Return a scan of an internal topic. Sources whose topic is unknown, such as copies, are read as that topic.

    Raises:
        ValueError: The topic is not in the source.
    """
    common = {"view": "internal", "columns": list(columns), **options}
    try:
        return scan(source, topics=[topic], **common)
    except ValueError as error:
        try:
            found = scan(source, topic=topic, **common)
        except ValueError:
            raise error from None
        # with a decoder, a scan reads other topics, too
        if "decoder" in options and any(name != topic for name, _ in found.topic_partitions):
            raise
        return found


def rows(found: Scan, undecoded: Undecoded) -> Iterator[Row]:
    """Yield the records of a scan made by :func:`find`, and count those that could not be decoded."""
    for columns in _batches(found, undecoded):
        for row in map(Row, *(columns[name] for name in _COLUMNS)):
            if not row.is_control:
                undecoded.see(row.type, row.key, row.reason)
            yield row


def _batches(found: Scan, undecoded: Undecoded, progress: Progress | None = None) -> Iterator[Columns]:
    batches = found.to_batches(progress=progress)
    # as lists, because PyArrow takes longer to import than to read a small topic
    while (columns := batches._next_columns()) is not None:  # noqa: SLF001 - of the same package
        undecoded.see_errors(columns.get("error", ()))
        yield columns
    undecoded.lose(found.stats)


class UndecodedWarning(UserWarning):
    """Records could not be read or decoded: some, or all of them, as in a partition of another topic."""

    def __init__(self, message: str, *, is_all: bool) -> None:
        """Keep whether no record was decoded."""
        super().__init__(message)
        self.is_all = is_all


class Undecoded:
    """Counts the records that could not be decoded, by their reasons, and what scans have skipped."""

    def __init__(self) -> None:
        """Begin with none."""
        self._reasons: Counter[str] = Counter()
        self._is_any_decoded = False
        self._lost_ranges = self._lost_bytes = self._lost_offsets = 0
        self._first_error = ""

    def see(self, kind: str | None, key: str | None, reason: str | None, *, is_wanted: bool = True) -> None:
        """Count a record if it could not be decoded and is wanted."""
        # keys of newer versions are decoded although their values are not
        self._is_any_decoded |= kind is not None and (key is not None or reason is None)
        if is_wanted and reason is not None:
            self.add(reason)

    def see_any(self) -> None:
        """Note that a record was decoded."""
        self._is_any_decoded = True

    def see_errors(self, errors: Iterable[dict[str, Any] | None]) -> None:
        """Keep the first error of a scan with ``on_corrupt="report"``."""
        for error in errors:
            if error is not None and not self._first_error:
                self._first_error = error["message"]

    def lose(self, stats: ScanStats | None) -> None:
        """Count what a scan has skipped. An incomplete batch at the end is normal while a broker writes."""
        if stats is not None and (stats.batches_skipped or stats.offsets_lost):
            self._lost_ranges += stats.batches_skipped
            self._lost_bytes += stats.bytes_lost
            self._lost_offsets += stats.offsets_lost

    def add(self, reason: str) -> None:
        """Count a record that could not be decoded."""
        self._reasons[reason] += 1

    def warn(self, what: str, stacklevel: int = 5) -> None:
        """Warn about them.

        Args:
            what: Name of the rows that they may belong to.
            stacklevel: Number of calls from here to the line that the warning names, that of the user.
        """
        found = []
        if self._reasons:
            reason, _ = self._reasons.most_common(1)[0]
            others = "" if len(self._reasons) == 1 else ", and others"
            found.append(f"{_count(self._reasons.total(), 'record')} can't be decoded ({reason}{others})")
        if self._lost_bytes or self._lost_offsets:
            found.append(self._losses())
        if found:
            message = f"{what} may be missing or old: {'; '.join(found)}"
            is_all = bool(self._reasons) and not self._is_any_decoded
            warnings.warn(UndecodedWarning(message, is_all=is_all), stacklevel=stacklevel)

    def _losses(self) -> str:
        ranges = f"{_count(self._lost_ranges, 'corrupt range')}, " if self._lost_ranges else ""
        offsets = f" and {_count(self._lost_offsets, 'offset')}" if self._lost_offsets else ""
        first = f" ({self._first_error})" if self._first_error else ""
        return f"skipped {ranges}{_count(self._lost_bytes, 'byte')}{offsets}{first}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def latest(  # noqa: PLR0913 - those of the functions
    source: Any,  # noqa: ANN401 - that of scan
    topic: str,
    options: Options,
    wanted: Iterable[str],
    *,
    what: str,
    progress: Progress | None = None,
) -> dict[tuple[str, str], str | None]:
    """Return the latest value of each key, as JSON text, by record type and key. Tombstones delete their keys.

    A value that could not be decoded becomes None, with a warning. With ``isolation="read_committed"``, records of
    transactions are applied as by :class:`Committed`.

    Args:
        source: As for :func:`find`.
        topic: As for :func:`find`.
        options: As for :func:`find`.
        wanted: The record types to return.
        what: Name of the rows, for the warning.
        progress: Called with the number of bytes read and their total.
    """
    types = frozenset(wanted)
    undecoded = Undecoded()
    values: dict[tuple[str, str], str | None] = {}
    is_any_decoded = False
    for some in _applied(source, topic, options, undecoded, progress):
        for kind, key, value, is_tombstone, reason in some:
            if reason is not None:
                undecoded.see(kind, key, reason, is_wanted=kind is None or kind in types)
            if kind is None or key is None:
                continue
            is_any_decoded = True
            if kind not in types:
                continue
            place = (SAME.get(kind, kind), key)
            if is_tombstone:
                values.pop(place, None)
            else:
                values[place] = value
    if is_any_decoded:
        undecoded.see_any()
    undecoded.warn(what)
    return values


def _applied(
    source: Any,  # noqa: ANN401 - that of scan
    topic: str,
    options: Options,
    undecoded: Undecoded,
    progress: Progress | None,
) -> Iterator[Iterable[Content]]:
    """Yield the records in the order in which they are applied, by Arrow batch."""
    if options.get("isolation") != "read_committed":
        for columns in _batches(find(source, topic, options, CONTENT), undecoded, progress):
            yield zip(*(columns[name] for name in CONTENT), strict=True)
        return
    # the last stable offset would hide what was written after the first open transaction
    options = {**options, "isolation": "read_uncommitted", "include_control": True}
    committed = Committed()
    for columns in _batches(find(source, topic, options, (*CONTENT, *ORDER)), undecoded, progress):
        yield committed.applied(columns)


def fields(text: str | None) -> dict[str, Any]:
    """Return the members of a JSON object; none for None and for other JSON."""
    found = None if text is None else json.loads(text)
    return found if isinstance(found, dict) else {}


def table(records: list[dict[str, Any]], columns: dict[str, Any]) -> pa.Table:
    """Return rows as a table with columns of these types."""
    import pyarrow as pa  # noqa: PLC0415 - optional, and slow to import

    return pa.Table.from_pylist(records, schema=pa.schema(list(columns.items())))
