"""Partitions to write with kbat, together with the records that a consumer must get from them.

A ``Script`` is what a leader appends in order: batches with their offsets and leader epochs in place. What is expected
is kept while it is made, and never read back from its bytes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal

import kbat

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Headers = tuple[tuple[str, bytes | None], ...]

CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
START = 1_700_000_000_000
WORDS = [b"offset", b"position", b"batch", b"\x00\xff", "ключ".encode(), b""]


@dataclass(frozen=True)
class ExpectedRecord:
    """A record that a consumer gets."""

    offset: int
    timestamp: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    leader_epoch: int


@dataclass
class Producer:
    """The state of a producer in the log."""

    producer_id: int
    epoch: int = 0
    sequence: int = 0
    open_from: int | None = None
    open_offsets: list[int] = field(default_factory=list)


class Script:
    """Batches in the order of a log, and the records in them.

    Attributes:
        batches: Their bytes.
        records: All records but markers.
        start_offset: The offset of the first batch.
        end_offset: The offset after the last batch.
    """

    def __init__(self, seed: int, *, start_offset: int = 0) -> None:
        """Begin an empty log."""
        self.batches: list[bytes] = []
        self.records: list[ExpectedRecord] = []
        self.start_offset = self.end_offset = start_offset
        self.leader_epoch = 0
        self._aborted: set[int] = set()
        self._producers: dict[int, Producer] = {}
        self._random = random.Random(seed)  # noqa: S311 - the same bytes every time

    def batch(
        self,
        count: int,
        *,
        compression: Codec = "none",
        producer_id: int | None = None,
        transactional: bool = False,
        log_append_time: int | None = None,
    ) -> None:
        """Append a batch of records that the seed decides."""
        producer = None if producer_id is None else self._producers.setdefault(producer_id, Producer(producer_id))
        builder = kbat.BatchBuilder(
            compression=compression,
            base_offset=self.end_offset,
            timestamp_type="CreateTime" if log_append_time is None else "LogAppendTime",
            log_append_time=log_append_time,
            producer_id=producer.producer_id if producer else -1,
            producer_epoch=producer.epoch if producer else -1,
            base_sequence=producer.sequence if producer else -1,
            transactional=transactional,
            partition_leader_epoch=self.leader_epoch,
        )
        for _ in range(count):
            self._append(builder, log_append_time)
        if producer:
            producer.sequence += count
            if transactional:
                offsets = range(self.end_offset - count, self.end_offset)
                producer.open_offsets += offsets
                producer.open_from = offsets[0] if producer.open_from is None else producer.open_from
        self.batches.append(builder.finish())

    def _append(self, builder: kbat.BatchBuilder, log_append_time: int | None) -> None:
        choose = self._random
        timestamp = START + 10 * self.end_offset + choose.randint(-50, 50)
        key = choose.choice([None, b"", b"key-%d" % choose.randrange(20)])
        value = choose.choice([None, b" ".join(choose.choices(WORDS, k=choose.randrange(40))), choose.randbytes(30)])
        headers = [(f"h{at}", choose.choice([None, b"", b"v"])) for at in range(choose.choice([0, 0, 2]))]
        builder.append(key, value, timestamp=timestamp, headers=headers)
        kind = "CreateTime" if log_append_time is None else "LogAppendTime"
        stamp = timestamp if log_append_time is None else log_append_time
        self.records.append(ExpectedRecord(self.end_offset, stamp, kind, key, value, headers, self.leader_epoch))
        self.end_offset += 1

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """Append the marker that ends a producer's open transaction."""
        producer = self._producers[producer_id]
        self.batches.append(
            kbat.end_transaction_marker(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                commit=commit,
                timestamp=START + 10 * self.end_offset,
                base_offset=self.end_offset,
                coordinator_epoch=1,
                partition_leader_epoch=self.leader_epoch,
            )
        )
        self.end_offset += 1
        if not commit:
            self._aborted.update(producer.open_offsets)
        producer.open_from, producer.open_offsets = None, []

    @property
    def last_stable_offset(self) -> int:
        """Where the earliest open transaction begins, or the end."""
        return min([one.open_from for one in self._producers.values() if one.open_from is not None] + [self.end_offset])

    @property
    def committed(self) -> list[ExpectedRecord]:
        """The records that a read_committed consumer gets."""
        end = self.last_stable_offset
        return [record for record in self.records if record.offset < end and record.offset not in self._aborted]


def of_codec(compression: Codec) -> Script:
    """Batches of one codec, some with the time of the append."""
    script = Script(seed=CODECS.index(compression))
    for number in range(30):
        script.batch(1 + number % 13, compression=compression, log_append_time=START if number % 10 == 9 else None)
    return script


def of_transactions(compression: Codec) -> Script:
    """Three producers whose transactions overlap, one without any, and a transaction that stays open."""
    script = Script(seed=10)
    choose = random.Random(11)  # noqa: S311 - the same bytes every time
    is_open: dict[int, bool] = {}
    for _ in range(120):
        producer_id = choose.choice([7, 8, 9])
        if is_open.get(producer_id) and choose.random() < 0.3:
            script.end_transaction(producer_id, commit=choose.random() < 0.5)
            is_open[producer_id] = False
        else:
            script.batch(choose.randint(1, 6), compression=compression, producer_id=producer_id, transactional=True)
            is_open[producer_id] = True
        if choose.random() < 0.2:
            script.batch(2, compression=compression, producer_id=choose.choice([None, 20]))
    for producer_id in (7, 8):
        if is_open[producer_id]:
            script.end_transaction(producer_id, commit=True)
    if not is_open[9]:
        script.batch(3, compression=compression, producer_id=9, transactional=True)
    script.batch(4, compression=compression)
    return script


def of_leader_epochs() -> Script:
    """Several leaders one after the other, codecs mixed."""
    script = Script(seed=20, start_offset=1000)
    for epoch in (0, 1, 5, 6):
        script.leader_epoch = epoch
        for number in range(6):
            script.batch(3, compression=CODECS[number % len(CODECS)], producer_id=3)
    return script


def scripts() -> dict[str, Script]:
    """All partitions, by name."""
    return {
        **{f"codec-{compression}": of_codec(compression) for compression in CODECS},
        "transactions-none": of_transactions("none"),
        "transactions-zstd": of_transactions("zstd"),
        "leader-epochs": of_leader_epochs(),
        "one-record": one_record(),
    }


def one_record() -> Script:
    """The smallest log."""
    script = Script(seed=30)
    script.batch(1)
    return script
