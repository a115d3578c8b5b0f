"""Partitions opened, recovered, written and cleaned by Kafka's own log classes, without a broker.

The functions take the ``kafka_server`` fixture. Those that change a partition work on a copy: a directory ``log-0`` in
the directory that they are given, which has to exist and to hold none yet. File times are copied with the files.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kafka_server import NOW, ProduceRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from kafka_server import KafkaServer

Line = dict[str, Any]

KAFKAS_FILE = re.compile(
    r"[0-9]{20}\.(log|index|timeindex|txnindex|snapshot)(\.(cleaned|deleted|swap))?|leader-epoch-checkpoint|partition\.metadata"
)
"""The files of a partition; the corpus keeps answers beside them."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A partition as ``UnifiedLog`` has it.

    Attributes:
        directory: Where its files are. They are as after a clean shutdown.
        log_start_offset: Where it begins.
        log_end_offset: Where it ends.
        last_stable_offset: Where its first open transaction begins, or its end.
        segments: Base offset and length in bytes.
        leader_epochs: Epoch and start offset.
        producers: Kafka's producer state, each in the form of the corpus's ``indexes.jsonl`` for a snapshot.
        timestamps: For each requested timestamp: timestamp, offset and leader epoch of the record found.
        aborted_transactions: For each requested range: producer id and first offset of the transactions.
    """

    directory: Path
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    segments: list[tuple[int, int]]
    leader_epochs: list[tuple[int, int]]
    producers: list[Line]
    timestamps: list[tuple[int, int, int | None] | None]
    aborted_transactions: list[list[tuple[int, int]]]


@dataclass(frozen=True, kw_only=True)
class Cleaned(Loaded):
    """A partition after a run of Kafka's cleaner.

    Attributes:
        next_dirty_offset: Where the next run begins.
        records_read: Records that the cleaner read when it wrote the new segments.
        records_written: Records that it kept.
        invalid_records_read: Records without a key.
        bytes_read: Bytes of the batches that it read when it wrote the new segments.
        bytes_written: Bytes that it wrote.
    """

    next_dirty_offset: int
    records_read: int
    records_written: int
    invalid_records_read: int
    bytes_read: int
    bytes_written: int


class Append(NamedTuple):
    """Batches to append: as the leader, which assigns offsets and the leader epoch, or as a follower, as they are.

    Markers have the origin COORDINATOR. A follower omits batches with an epoch above ``leader_epoch``.
    """

    data: bytes
    leader_epoch: int = 0
    as_follower: bool = False
    origin: Literal["CLIENT", "COORDINATOR", "REPLICATION", "RAFT_LEADER"] = "CLIENT"
    transaction_version: int = 0


class Appended(NamedTuple):
    """Kafka's result of an append."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int


def load(  # noqa: PLR0913 - a log has many settings
    server: KafkaServer,
    source: Path,
    out: Path,
    *,
    clean_shutdown: bool = False,
    log_start_offset: int = 0,
    now_ms: int = NOW,
    timestamps: Sequence[int] = (),
    aborted_ranges: Sequence[tuple[int, int]] = (),
    configs: Mapping[str, object] | None = None,
) -> Loaded:
    """Load a copy of a partition as a broker does when it starts, and close it.

    Args:
        server: Kafka's classes.
        source: The partition.
        out: Gets the copy.
        clean_shutdown: Otherwise every segment is recovered.
        log_start_offset: As the broker's checkpoint has it.
        now_ms: Kafka's clock. Nothing expires by it.
        timestamps: To look up with ``UnifiedLog.fetchOffsetByTimestamp`` (-1, -2 and -3 are the latest and earliest
            offset and the largest timestamp).
        aborted_ranges: Fetch offsets and upper bounds, for which the transaction indexes are asked as for a fetch.
        configs: The topic's settings.

    Raises:
        RefusedError: Kafka can't load it.
    """
    directory = copied(source, out)
    answer = server.call(
        "load", **settings(directory, configs, now_ms, log_start_offset), clean_shutdown=clean_shutdown,
        timestamps=timestamps, aborted_ranges=aborted_ranges,
    )  # fmt: skip
    return Loaded(**loaded(directory, answer))


def clean(  # noqa: PLR0913 - a cleaner has many settings
    server: KafkaServer,
    source: Path,
    out: Path,
    *,
    now_ms: int = NOW,
    first_dirty_offset: int | None = None,
    first_uncleanable_offset: int | None = None,
    clean_shutdown: bool = True,
    log_start_offset: int = 0,
    map_bytes: int = 1 << 20,
    configs: Mapping[str, object] | None = None,
) -> Cleaned:
    """Compact a copy of a partition with one run of Kafka's ``Cleaner``.

    The active segment is never cleaned, as in a broker.

    Args:
        server: Kafka's classes.
        source: The partition.
        out: Gets the copy.
        now_ms: The cleaner's clock, which sets and ends delete horizons.
        first_dirty_offset: ``next_dirty_offset`` of the run before; None begins at the log's start.
        first_uncleanable_offset: Where the run ends at the latest; None takes what ``LogCleanerManager`` finds: the
            active segment, the last stable offset, or ``min.compaction.lag.ms``.
        clean_shutdown: Trust the indexes; otherwise the log is recovered first.
        log_start_offset: As the broker's checkpoint has it.
        map_bytes: Memory of the cleaner's key map, 24 bytes a key; a small one ends the run early.
        configs: The topic's settings, such as ``{"delete.retention.ms": 1000}``. ``cleanup.policy`` is ``compact``.

    Raises:
        RefusedError: Kafka can't clean it.
    """
    directory = copied(source, out)
    common = settings(directory, {"cleanup.policy": "compact", **(configs or {})}, now_ms, log_start_offset)
    answer = server.call(
        "clean", **common, clean_shutdown=clean_shutdown, first_dirty_offset=first_dirty_offset,
        first_uncleanable_offset=first_uncleanable_offset, map_bytes=map_bytes,
    )  # fmt: skip
    names = Cleaned.__annotations__
    return Cleaned(**loaded(directory, answer), **{name: answer[name] for name in names})


def append(
    server: KafkaServer,
    out: Path,
    appends: Iterable[Append],
    *,
    now_ms: int = NOW,
    configs: Mapping[str, object] | None = None,
) -> tuple[Loaded, list[Appended | ProduceRefusedError]]:
    """Append batches to a log with ``UnifiedLog``, which checks, rolls and indexes as in a broker, and close it.

    Args:
        server: Kafka's classes.
        out: Gets the log. One that an earlier call left there is continued.
        appends: What, in order.
        now_ms: The broker's clock.
        configs: The topic's settings, such as ``{"internal.segment.bytes": 1000}``.

    Returns:
        The log at its end, and what became of each append.
    """
    directory = out / "log-0"
    directory.mkdir(exist_ok=True)
    rows = [one._asdict() for one in appends]
    common = settings(directory, configs, now_ms, 0)
    answer = server.call("append", **common, clean_shutdown=True, appends=rows)
    done = [ProduceRefusedError(row["error"]) if "error" in row else Appended(**row) for row in answer["appended"]]
    return Loaded(**loaded(directory, answer)), done


def read_index(server: KafkaServer, path: Path) -> list[Line]:
    """Read an index or a producer snapshot: the lines that the corpus's ``indexes.jsonl`` would have for it.

    Raises:
        RefusedError: Kafka can't read it.
    """
    rows: list[Line] = server.call("read_index", path=str(path))["rows"]
    return rows


def lookup_offsets(server: KafkaServer, log: Path, targets: Sequence[int]) -> list[Line]:
    """Look offsets up in a segment: the lines that the corpus's ``lookup-offset.jsonl`` would have for it.

    Args:
        server: Kafka's classes.
        log: The segment; its ``.index`` is in the same directory.
        targets: The offsets.
    """
    rows: list[Line] = server.call("lookup_offsets", stem=str(log.with_suffix("")), targets=targets)["rows"]
    return rows


def lookup_times(server: KafkaServer, log: Path, targets: Sequence[int]) -> list[Line]:
    """Look timestamps up in a segment: the lines that the corpus's ``lookup-time.jsonl`` would have for it.

    Args:
        server: Kafka's classes.
        log: The segment; its ``.index`` and ``.timeindex`` are in the same directory.
        targets: The timestamps.
    """
    rows: list[Line] = server.call("lookup_times", stem=str(log.with_suffix("")), targets=targets)["rows"]
    return rows


def copied(source: Path, out: Path) -> Path:
    """Copy a partition's files into a new directory with a name that Kafka accepts."""
    directory = out / "log-0"
    directory.mkdir()
    for file in sorted(source.iterdir()):
        if KAFKAS_FILE.fullmatch(file.name):
            shutil.copy2(file, directory)
    return directory


def settings(
    directory: Path, configs: Mapping[str, object] | None, now_ms: int, log_start_offset: int
) -> dict[str, object]:
    """Return the arguments that every operation on a log needs."""
    plain = {name: str(value) for name, value in (configs or {}).items()}
    return {"directory": str(directory), "configs": plain, "now_ms": now_ms, "log_start_offset": log_start_offset}


def loaded(directory: Path, answer: Line) -> dict[str, Any]:
    """Return the fields of ``Loaded``."""
    return {
        "directory": directory,
        "log_start_offset": answer["log_start_offset"],
        "log_end_offset": answer["log_end_offset"],
        "last_stable_offset": answer["last_stable_offset"],
        "segments": [tuple(row) for row in answer["segments"]],
        "leader_epochs": [tuple(row) for row in answer["leader_epochs"]],
        "producers": answer["producers"],
        "timestamps": [tuple(row) if row else None for row in answer.get("timestamps", [])],
        "aborted_transactions": [[tuple(row) for row in rows] for rows in answer.get("aborted_transactions", [])],
    }
