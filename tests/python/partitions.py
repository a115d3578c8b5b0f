"""Partition directories for tests: writes segments of chosen batches, and reads their content."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import kbat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
CODECS: tuple[Codec, ...] = get_args(Codec)
NOW = 1_700_000_000_000
DAY = 86_400_000

KeyValue = tuple[bytes | None, bytes | None]


class Row(NamedTuple):
    """A record as read from a partition."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass
class Log:
    """A partition that is being written, batch after batch."""

    directory: Path
    end_offset: int = 0
    sequences: dict[int, int] = field(default_factory=dict)
    base_offset: int = 0
    segment: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the directory."""
        self.directory.mkdir(parents=True)

    def batch(  # noqa: PLR0913 - what a batch has
        self,
        *records: KeyValue,
        codec: Codec = "none",
        magic: int = 2,
        pid: int = -1,
        epoch: int = 0,
        transactional: bool = False,
        log_append_time: int | None = None,
        timestamp: int = NOW,
    ) -> int:
        """Append a batch; the offset of its first record."""
        base = self.end_offset
        sequence = self.sequences.get(pid, 0) if pid >= 0 else -1
        builder = kbat.BatchBuilder(
            magic, codec, base_offset=base, log_append_time=log_append_time, transactional=transactional,
            producer_id=pid, producer_epoch=epoch if pid >= 0 else -1, base_sequence=sequence,
            partition_leader_epoch=0 if magic == 2 else -1,
            timestamp_type="CreateTime" if log_append_time is None else "LogAppendTime",
        )  # fmt: skip
        for at, (key, value) in enumerate(records):
            headers = [("at", b"%d" % at)] if magic == 2 else []
            builder.append(key, value, timestamp=timestamp + at, headers=headers)
        self.append(builder.finish(), len(records))
        self.sequences[pid] = sequence + len(records)
        return base

    def marker(self, pid: int, kind: Literal["COMMIT", "ABORT"], *, epoch: int = 0, timestamp: int = NOW) -> int:
        """Append a transaction marker; its offset."""
        data = kbat.end_transaction_marker(
            producer_id=pid, producer_epoch=epoch, commit=kind == "COMMIT", base_offset=self.end_offset,
            timestamp=timestamp, partition_leader_epoch=0,
        )  # fmt: skip
        self.append(data, 1)
        return self.end_offset - 1

    def append(self, data: bytes, offset_count: int) -> None:
        """Append bytes that use a number of offsets."""
        self.segment.append(data)
        self.end_offset += offset_count

    def roll(self) -> None:
        """End the segment."""
        self.write()
        self.base_offset, self.segment = self.end_offset, []

    def write(self) -> None:
        """Write the segment as it is."""
        path = self.directory / f"{self.base_offset:020}.log"
        path.write_bytes(b"".join(self.segment))
        os.utime(path, (NOW // 1000, NOW // 1000))


def random_log(  # noqa: PLR0913 - a log has many sides
    directory: Path,
    seed: int,
    *,
    magics: tuple[int, ...] = (2,),
    codecs: tuple[Codec, ...] = CODECS,
    keys: int = 9,
    batches: int = 60,
) -> Log:
    """Write a log of several segments with everything that affects compaction, in an order determined by the seed."""
    rng = random.Random(seed)  # noqa: S311 - reproducible and no secret
    log, open_transactions = Log(directory), set[int]()

    def records() -> list[KeyValue]:
        count = rng.choice((1, 1, 2, 5))
        key = [b"key-%d" % rng.randrange(keys) for _ in range(count)]
        value = [None if rng.random() < 0.2 else b"%d" % rng.randrange(10**6) * rng.choice((1, 30)) for _ in key]
        return [(None if rng.random() < 0.05 else each, some) for each, some in zip(key, value, strict=True)]

    for at in range(batches):
        magic = rng.choice(magics)
        codec = rng.choice([codec for codec in codecs if magic == 2 or codec != "zstd"])
        time = NOW + at * 1000 if magic > 0 and rng.random() < 0.2 else None
        kind = rng.choice(("plain", "idempotent", "begin", "more", "end")) if magic == 2 else "plain"
        if kind == "plain":
            for record in records() if magic < 2 and codec == "none" else [None]:
                some = [record] if record else records()
                log.batch(*some, codec=codec, magic=magic, log_append_time=time, timestamp=NOW + at * 1000)
        elif kind == "idempotent":
            pid = rng.randrange(3)
            log.batch(*records(), codec=codec, pid=pid, log_append_time=time, timestamp=NOW + at * 1000)
        elif kind == "end" and open_transactions:
            pid = rng.choice(sorted(open_transactions))
            open_transactions.remove(pid)
            log.marker(pid, rng.choice(("COMMIT", "ABORT")), timestamp=NOW + at * 1000)
        else:
            pid = rng.randrange(10, 13)
            open_transactions.add(pid)
            log.batch(*records(), codec=codec, pid=pid, transactional=True, timestamp=NOW + at * 1000)
        if rng.random() < 0.15:
            log.roll()
    for pid in sorted(open_transactions):
        log.marker(pid, rng.choice(("COMMIT", "ABORT")), timestamp=NOW + batches * 1000)
    log.roll()
    log.batch((b"last", b"1"), magic=max(magics))
    log.write()
    return log


def batches_of(directory: Path) -> Iterator[kbat.Batch]:
    """Return the batches of a partition, in order."""
    for segment in kbat.find_segments(directory):
        yield from kbat.read_batches(segment.path)


def rows(directory: Path, *, control: bool = False) -> list[Row]:
    """Return the records of a partition, in order; control records only if requested."""
    return [
        Row(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
        for batch in batches_of(directory)
        if control or not batch.is_control
        for record in batch
    ]


def committed(directory: Path) -> list[Row]:
    """Return the records that a read_committed consumer gets from a log without open transactions."""
    aborted: set[int] = set()
    decided: dict[int, list[Row]] = {}
    kept: list[Row] = []
    for batch in batches_of(directory):
        some = [Row(each.offset, each.timestamp, each.key, each.value, tuple(each.headers)) for each in batch]
        if not batch.is_control:
            (decided.setdefault(batch.producer_id, []) if batch.is_transactional else kept).extend(some)
        elif (control := next(iter(batch), None)) and control.control:
            if control.control.type == "COMMIT":
                kept += decided.pop(batch.producer_id, [])
            else:
                aborted.add(batch.producer_id)
                decided.pop(batch.producer_id, None)
    assert not any(decided.values()), "a transaction is open"
    return sorted(kept)


def contents(directory: Path) -> dict[str, bytes]:
    """Return every file of a directory."""
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}
