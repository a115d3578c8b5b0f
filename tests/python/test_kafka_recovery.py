"""Damaged partitions recovered by kbat and by Kafka's own log: the same files, byte by byte."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kafka_logs
import kbat
from data import DATA, read_text

if TYPE_CHECKING:
    from kafka_server import KafkaServer

SOURCES = [
    "compacted-txn", "idempotent", "leader-epochs", "log-start", "mixed-codecs", "out-of-order", "segments-dense-index",
    "txn-lz4", "txn-none", "txn-simple",
]  # fmt: skip
SEEDS = range(6)
MAGIC = 16
"""Where a batch has its magic. No checksum covers it, and Kafka reads a batch with any above 2 as one with 2."""


def pick(choose: random.Random, directory: Path, *suffixes: str) -> Path | None:
    found = sorted(path for path in directory.iterdir() if path.suffix in suffixes and path.stat().st_size)
    return choose.choice(found) if found else None


def flip_a_bit(choose: random.Random, directory: Path) -> None:
    if log := pick(choose, directory, ".log"):
        data = bytearray(log.read_bytes())
        magics = {batch.position + MAGIC for batch in kbat.read_batches(log, check_crc=False)}
        data[choose.choice([at for at in range(len(data)) if at not in magics])] ^= 1 << choose.randrange(8)
        log.write_bytes(data)


def cut_a_log(choose: random.Random, directory: Path) -> None:
    if log := pick(choose, directory, ".log"):
        log.write_bytes(log.read_bytes()[: choose.randrange(log.stat().st_size)])


def add_zeros(choose: random.Random, directory: Path) -> None:
    last = max(directory.glob("*.log"))
    last.write_bytes(last.read_bytes() + bytes(choose.choice([5, 17, 18, 500])))


def add_a_torn_batch(choose: random.Random, directory: Path) -> None:
    first, last = min(directory.glob("*.log")), max(directory.glob("*.log"))
    last.write_bytes(last.read_bytes() + first.read_bytes()[: choose.randrange(12, 70)])


def spoil_an_index(choose: random.Random, directory: Path) -> None:
    if index := pick(choose, directory, ".index", ".timeindex"):
        index.write_bytes(choose.randbytes(index.stat().st_size))


def cut_an_index(choose: random.Random, directory: Path) -> None:
    if index := pick(choose, directory, ".index", ".timeindex", ".txnindex"):
        index.write_bytes(index.read_bytes()[:-1])


def spoil_a_snapshot(choose: random.Random, directory: Path) -> None:
    if snapshot := pick(choose, directory, ".snapshot"):
        snapshot.write_bytes(choose.choice([b"", choose.randbytes(20), snapshot.read_bytes()[:-3]]))


def remove_files(choose: random.Random, directory: Path) -> None:
    for path in sorted(directory.iterdir()):
        if path.suffix in {".index", ".timeindex", ".txnindex", ".snapshot"} and choose.random() < 0.5:
            path.unlink()


def remove_a_segment(choose: random.Random, directory: Path) -> None:
    logs = sorted(directory.glob("*.log"))
    if len(logs) > 2:
        choose.choice(logs[1:-1]).unlink()


Damage = Callable[[random.Random, Path], None]

OF_LOGS: list[Damage] = [flip_a_bit, cut_a_log, add_zeros, add_a_torn_batch, remove_a_segment]
OF_OTHER_FILES: list[Damage] = [spoil_an_index, cut_an_index, spoil_a_snapshot, remove_files]
"""Not both at a time: Kafka recovers a segment without an index by itself first, and then keeps those after it."""


def copied(source: Path, target: Path) -> Path:
    target.mkdir()
    for path in sorted(source.iterdir()):
        if kafka_logs.KAFKAS_FILE.fullmatch(path.name):
            shutil.copy2(path, target)
    return target


def files(directory: Path) -> dict[str, bytes]:
    """Names and contents. Kafka empties a transaction index that has no entries any more; kbat leaves it out."""
    found = {path.name: path.read_bytes() for path in sorted(directory.iterdir())}
    return {name: data for name, data in found.items() if data or not name.endswith(".txnindex")}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SOURCES)
def test_recover_leaves_the_files_that_kafka_leaves(
    kafka_server: KafkaServer, tmp_path: Path, name: str, seed: int
) -> None:
    choose = random.Random(f"{name} {seed}")  # noqa: S311 - the same corruption every time
    source = copied(DATA / "corpus" / name, tmp_path / "damaged-0")
    done = choose.sample(choose.choice([OF_LOGS, OF_OTHER_FILES]), k=choose.choice([1, 1, 2]))
    for damage in done:
        damage(choose, source)
    configs = json.loads(read_text(DATA / "corpus" / name / "case.json"))["topicConfig"]
    kafka = kafka_logs.load(kafka_server, source, tmp_path, configs=configs)
    interval = int(configs.get("index.interval.bytes", 4096))
    report = kbat.recover(source, tmp_path / "recovered-0", index_interval_bytes=interval)
    ours, theirs = files(tmp_path / "recovered-0"), files(kafka.directory)
    assert ours.keys() == theirs.keys(), done
    assert [file for file in ours if ours[file] != theirs[file]] == [], done
    assert report.end_offset == kafka.log_end_offset
