"""Records of an internal topic in the order in which a coordinator applies them when it loads a partition.

A record outside a transaction is applied at once. Those of a transaction wait for its marker: a commit marker applies
them, except those whose key was set or deleted by a later record in the meantime, and an abort marker drops them. The
records of transactions that are open at the end of the log are not applied.

Source: `GroupMetadataManager.doLoadGroupsAndOffsets` and `OffsetMetadataManager.replay` of Kafka.
"""

from __future__ import annotations

from itertools import compress
from operator import not_
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Record types of old brokers, and those whose keys they share.
SAME = {"LegacyOffsetCommit": "OffsetCommit"}

#: The columns of a record that is applied, and those that show its transaction.
CONTENT = ("record_type", "key", "value", "is_tombstone", "reason")
ORDER = ("is_control", "is_transactional", "producer_id", "partition", "offset")

Content = tuple[str | None, str | None, str | None, bool, str | None]
Columns = dict[str, list[Any]]


class Committed:
    """Applies transactions at their commit markers."""

    def __init__(self) -> None:
        """Begin with no transaction."""
        self._logs: dict[int | None, _Log] = {}

    def applied(self, columns: Columns) -> Iterable[Content]:
        """Return the records that the next rows of a scan apply. Take them all before the next call."""
        controls = columns["is_control"]
        if True in columns["is_transactional"] or any(log.pending for log in self._logs.values()):
            return self._in_order(columns)
        rows = zip(*(columns[name] for name in CONTENT), strict=True)
        return compress(rows, map(not_, controls)) if True in controls else rows

    def _in_order(self, columns: Columns) -> Iterator[Content]:
        contents = zip(*(columns[name] for name in CONTENT), strict=True)
        order = zip(*(columns[name] for name in ORDER), strict=True)
        for content, (is_control, is_transactional, producer_id, partition, offset) in zip(
            contents, order, strict=True
        ):
            if offset is None:  # a row about corruption
                continue
            log = self._log(partition, offset)
            if is_control:
                yield from log.end(producer_id, content[0])
            elif is_transactional:
                log.pending.setdefault(producer_id, []).append((offset, content))
            else:
                log.note(content, offset)
                yield content

    def _log(self, partition: int | None, offset: int) -> _Log:
        """Return the state of a partition. If the number is unknown, a smaller offset begins another partition."""
        log = self._logs.get(partition)
        if log is None or (partition is None and offset <= log.offset):
            log = self._logs[partition] = _Log()
        log.offset = offset
        return log


class _Log:
    """The open transactions of a partition."""

    def __init__(self) -> None:
        self.offset = -1
        # the records of open transactions, by producer
        self.pending: dict[int, list[tuple[int, Content]]] = {}
        # the offsets of the records that were applied while a transaction was open, by type and key
        self._applied: dict[tuple[str | None, str | None], int] = {}

    def note(self, content: Content, offset: int) -> None:
        """Note that a record is applied, if a transaction is open."""
        if self.pending:
            self._applied[_place(content)] = offset

    def end(self, producer_id: int, marker: str | None) -> Iterator[Content]:
        """End the transaction of a producer, and yield the records that a commit marker applies."""
        if marker not in {"COMMIT", "ABORT"}:
            return
        for offset, content in self.pending.pop(producer_id, ()):
            if marker == "COMMIT" and self._applied.get(_place(content), -1) < offset:
                self.note(content, offset)
                yield content
        if not self.pending:
            self._applied.clear()


def _place(content: Content) -> tuple[str | None, str | None]:
    kind, key, *_ = content
    return (None if kind is None else SAME.get(kind, kind)), key
