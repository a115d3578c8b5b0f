"""Compares kbat with the Python clients' record classes: equal bytes if nothing is compressed, else equal records.

Edge cases 69 and 91. aiokafka writes -1 and kafka-python 0 as the partition leader epoch; nothing else may differ.
"""

from __future__ import annotations

import importlib
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import kbat

if TYPE_CHECKING:
    from kbat import Record

# kafka-python reads its schemas by functions that Python 3.11 deprecates
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")

CODEC_IDS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
WORDS = ["", "a", "order", "naïve größe", "東京", "🎉" * 20, "x" * 127, "y" * 128, "z" * 9000]
NO_LIMIT = 1 << 30

Headers = list[tuple[str, bytes | None]]
Row = tuple[int, bytes | None, bytes | None, Headers]


@dataclass(frozen=True)
class Peer:
    """The record classes of a package, which has them under the same names as the other."""

    package: str
    leader_epoch: int

    def load(self, module: str, name: str) -> Any:  # noqa: ANN401 -- the packages are not typed here
        """Import one of its classes."""
        return getattr(importlib.import_module(f"{self.package}.record.{module}"), name)

    def build(self, magic: int, codec: str, rows: list[Row]) -> bytes:
        """Write a batch."""
        if magic == 2:
            builder = self.load("default_records", "DefaultRecordBatchBuilder")(
                magic, CODEC_IDS[codec], 0, -1, -1, -1, NO_LIMIT
            )
        else:
            builder = self.load("legacy_records", "LegacyRecordBatchBuilder")(magic, CODEC_IDS[codec], NO_LIMIT)
        for offset, (timestamp, key, value, headers) in enumerate(rows):
            parts = [headers] if magic == 2 else []
            builder.append(offset, timestamp if magic else None, key, value, *parts)
        return bytes(builder.build())

    def read(self, data: bytes) -> list[Row]:
        """Read all records, their checksums checked."""
        records = self.load("memory_records", "MemoryRecords")(data)
        rows: list[Row] = []
        while (batch := records.next_batch()) is not None:
            assert batch.validate_crc()
            for record in batch:
                timestamp = -1 if record.timestamp is None else record.timestamp
                rows.append((timestamp, record.key, record.value, list(record.headers)))
        return rows


PEERS = [Peer("aiokafka", -1), Peer("kafka", 0)]


def make_rows(seed: int, magic: int) -> list[Row]:
    """Rows of every kind that all three can write."""
    rng = random.Random(seed)  # noqa: S311 -- no secret
    rows: list[Row] = []
    timestamp = rng.choice([0, 1, 1_700_000_000_000])
    for _ in range(rng.choice([1, 2, 9, 70])):
        timestamp = max(0, timestamp + rng.choice([0, 1, 3, 64, 5000, -7, 86_400_000]))
        key = rng.choice([None, *(word.encode() for word in WORDS)])
        value = rng.choice([None, *(word.encode() for word in WORDS), rng.randbytes(300)])
        headers: Headers = [(rng.choice(WORDS[:5]), rng.choice([None, b"", b"v"])) for _ in range(rng.randrange(4))]
        rows.append((timestamp if magic else -1, key, value, headers if magic == 2 else []))
    return rows


def kbat_build(magic: int, codec: str, rows: list[Row], leader_epoch: int = -1) -> bytes:
    epoch = leader_epoch if magic == 2 else -1
    builder = kbat.BatchBuilder(magic, codec, partition_leader_epoch=epoch)  # type: ignore[arg-type]
    for timestamp, key, value, headers in rows:
        builder.append(key, value, timestamp=timestamp, headers=headers)
    return builder.finish()


def row(record: Record) -> Row:
    return record.timestamp, record.key, record.value, record.headers


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.package)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_uncompressed_bytes_are_those_of_the_clients(peer: Peer, magic: int) -> None:
    for seed in range(40):
        rows = make_rows(seed, magic)
        assert kbat_build(magic, "none", rows, peer.leader_epoch) == peer.build(magic, "none", rows), seed


COMPRESSED = [
    pytest.param(peer, magic, codec, id=f"{peer.package}-{magic}-{codec}")
    for peer in PEERS
    for magic in (0, 1, 2)
    for codec in CODEC_IDS
    if codec != "none" and (magic == 2 or codec != "zstd")
    if (peer.package, magic, codec) != ("aiokafka", 0, "lz4")  # it refuses the old header checksum
]


@pytest.mark.parametrize(("peer", "magic", "codec"), COMPRESSED)
def test_compressed_records_are_read_by_each_other(peer: Peer, magic: int, codec: str) -> None:
    for seed in range(20):
        rows = make_rows(seed, magic)
        theirs = peer.build(magic, codec, rows)
        assert [row(record) for batch in kbat.read_batches(theirs) for record in batch] == rows, seed
        assert peer.read(kbat_build(magic, codec, rows)) == rows, seed
