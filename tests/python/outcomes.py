"""What reads of the same log return, in a form that is equal for every location of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

import kbat

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
COLUMNS = [
    "key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers", "base_offset", "position",
    "partition_leader_epoch", "producer_id", "producer_epoch", "sequence", "is_transactional", "compression", "magic",
    "batch_size", "segment",
]  # fmt: skip


def outcome(run: Callable[[], T], place: str) -> object:
    """Return the result or the error, with `<place>` for the place."""
    try:
        return without(run(), place)
    except kbat.KbatError as error:
        fields = {name: getattr(error, name) for name in ("path", "position", "base_offset")}
        return type(error), without(str(error), place), without(fields, place)
    except (OSError, ValueError) as error:
        return type(error), without(str(error), place)


def without(value: Any, place: str) -> Any:  # noqa: ANN401 - anything
    """Replace a place wherever it is in a value."""
    if isinstance(value, str):
        return value.replace(place, "<place>")
    if isinstance(value, dict):
        return {without(key, place): without(item, place) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without(item, place) for item in value]
    if isinstance(value, pa.Table):
        for name in {"segment", "path"} & set(value.column_names):
            plain = pc.replace_substring(value[name].cast(pa.string()), place, "<place>")
            value = value.set_column(value.column_names.index(name), name, plain)
        if "error" in value.column_names:
            return value.drop_columns("error"), without(value["error"].to_pylist(), place)
    return value


def rows(source: str, **options: Any) -> tuple[Any, Any]:  # noqa: ANN401 - those of kbat.scan
    """Read the rows up to the first error, and the error."""
    scan = kbat.scan(source, **options)
    batches: list[pa.RecordBatch] = []
    error = None
    try:
        batches.extend(scan.to_batches())
    except kbat.KbatError as raised:
        error = [type(raised).__name__, str(raised), raised.position, raised.base_offset]
    table = pa.Table.from_batches(batches, scan.schema)
    stats = scan.stats
    return table, [error, stats.to_dict() if stats and not error else None]


def lookups(source: str, options: dict[str, Any]) -> list[Any]:
    """Everything that a partition answers."""
    log = kbat.PartitionLog(source, **options)
    segments = log.segments
    some = list(
        {s.base_offset: s for s in (*segments[:1], *segments[len(segments) // 2 :][:1], *segments[-1:])}.values()
    )
    bases = [segment.base_offset for segment in some]
    end = log.end_offset
    offsets = {-1, end - 1, end, *(base + 37 for base in bases)}
    found = []
    for offset in sorted(offsets):
        at = log.find_offset(offset)
        found.append(at and (at.segment, at.position, at.base_offset, at.last_offset, at.size, at.index))
    tops = [segment.largest_timestamp for segment in some]
    times = {kbat.EARLIEST, kbat.LATEST, kbat.MAX_TIMESTAMP, *(top - 5 for top in tops)}
    by_time = []
    for timestamp in sorted(times):
        at_time = log.find_timestamp(timestamp)
        by_time.append(at_time and (at_time.timestamp, at_time.offset, at_time.leader_epoch, at_time.index))
    aborted = [(a.producer_id, a.first_offset, a.last_offset) for a in log.aborted_transactions(0, end)]
    state = [log.start_offset, end, log.last_stable_offset, log.leader_epochs, log.topic_id, log.topic, log.partition]
    files = [log.snapshots, log.leftovers, [segment.files for segment in log.segments]]
    return [found, by_time, aborted, state, files]
