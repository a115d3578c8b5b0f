"""Kafka's own log loader as the judge of recover: damaged partitions, file by file, byte by byte."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest

import data
import kbat
from java_process import RefusedError
from kafka_logs import KAFKAS_FILE, load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kafka_server import KafkaServer

INTERVAL = 300
ROUNDS = 7
EPOCHS = "leader-epoch-checkpoint"
KAFKA_DOES_NOT_START = ("Split operation is only permitted", "must increase sequentially")
CASES = [
    "codec-zstd", "compacted-empty-batches", "compacted-txn", "crash-torn", "crash-txn", "idempotent", "leader-epochs",
    "log-start", "out-of-order", "preallocated-live", "segments-dense-index", "txn-none", "txn-simple",
]  # fmt: skip


def flip(rng: random.Random, log: bytes, _positions: list[int]) -> bytes:
    """One bit anywhere."""
    changed = bytearray(log)
    if log:
        changed[rng.randrange(len(log))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def flip_header(rng: random.Random, log: bytes, positions: list[int]) -> bytes:
    """A byte of a header."""
    changed = bytearray(log)
    if positions:
        changed[rng.choice(positions) + rng.randrange(61)] = rng.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF])
    return bytes(changed)


def cut(rng: random.Random, log: bytes, _positions: list[int]) -> bytes:
    """The end is missing."""
    return log[: rng.randrange(len(log) + 1)]


def zero(rng: random.Random, log: bytes, _positions: list[int]) -> bytes:
    """A hole of zeros."""
    start = rng.randrange(len(log) + 1)
    end = min(len(log), start + rng.choice([1, 16, 17, 18, 512, 4096]))
    return log[:start] + bytes(end - start) + log[end:]


def append(rng: random.Random, log: bytes, positions: list[int]) -> bytes:
    """Garbage, zeros, or batches once more at the end."""
    again = log[rng.choice(positions) :] if positions else b""
    return log + rng.choice([rng.randbytes(rng.randrange(200)), bytes(rng.choice([1, 17, 18, 5000])), again])


def repeat(rng: random.Random, log: bytes, positions: list[int]) -> bytes:
    """Batches in the middle once more."""
    if not positions:
        return log
    at = rng.choice(positions)
    return log[:at] + log[rng.choice(positions) : at] + log[at:]


def remove(rng: random.Random, log: bytes, positions: list[int]) -> bytes:
    """Batches are missing."""
    if not positions:
        return log
    start, end = sorted([rng.choice(positions), rng.choice(positions)])
    return log[:start] + log[end:]


DAMAGES = (flip, flip_header, cut, zero, append, repeat, remove)


def place_of(case: Path, directory: Path) -> Path:
    """Copy the files of a partition that are Kafka's."""
    place = directory / "source"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for path in case.iterdir():
        if KAFKAS_FILE.fullmatch(path.name):
            shutil.copy2(path, place)
    return place


def content(directory: Path) -> dict[str, bytes]:
    """Read every file that a recovery may change."""
    files = [path for path in directory.iterdir() if KAFKAS_FILE.match(path.name)]
    return {path.name: path.read_bytes() for path in files if path.name != "partition.metadata"}


def is_recovered_alike(server: KafkaServer, place: Path, directory: Path, what: str) -> bool:
    """Recover a copy by Kafka and one by kbat; False where Kafka does not start with the partition."""
    for name in ("log-0", "out"):
        shutil.rmtree(directory / name, ignore_errors=True)
    report = kbat.recover(place, directory / "out", index_interval_bytes=INTERVAL)
    try:
        expected = load(server, place, directory, configs={"index.interval.bytes": INTERVAL})
    except RefusedError as error:
        if not any(reason in str(error) for reason in KAFKA_DOES_NOT_START):
            raise
        return False
    found, wanted = content(directory / "out"), content(expected.directory)
    if wanted.get(EPOCHS) in {b"", b"0\n0\n"}:
        found.setdefault(EPOCHS, wanted[EPOCHS])  # Kafka makes one that says nothing
    assert [name for name in sorted(found | wanted) if found.get(name) != wanted.get(name)] == [], f"{what}: {report}"
    assert (report.start_offset, report.end_offset) == (expected.segments[0][0], expected.log_end_offset), what
    return True


@pytest.mark.parametrize("case", CASES)
def test_recover_damaged_partition_is_what_kafka_makes_of_it(
    case: str, kafka_server: KafkaServer, tmp_path: Path
) -> None:
    """Every kind of corruption, in segments and at positions from a seed: all files are equal, byte by byte."""
    rng = random.Random(case)  # noqa: S311
    started = 0
    for number in range(ROUNDS):
        place = place_of(data.DATA / "corpus" / case, tmp_path)
        log = rng.choice(sorted(place.glob("*.log")))
        before = log.read_bytes()
        damage = DAMAGES[number % len(DAMAGES)]
        log.write_bytes(damage(rng, before, [batch.position for batch in kbat.read_batches(before)]))
        what = f"{case} {number} {damage.__name__} {log.name}"
        started += is_recovered_alike(kafka_server, place, tmp_path, what)
    assert started >= ROUNDS - 2


def drop_segment(rng: random.Random, logs: list[Path]) -> None:
    """A segment is missing, but its indexes exist."""
    rng.choice(logs).unlink()


def drop_beside(rng: random.Random, logs: list[Path]) -> None:
    """Indexes and snapshots are missing.

    Without the leader epochs too, Kafka makes them from segments without an index first: an epoch may then begin late.
    """
    for path in logs[0].parent.iterdir():
        if path.suffix in {".index", ".timeindex", ".txnindex", ".snapshot"} and rng.random() < 0.5:
            path.unlink()


def garble_beside(rng: random.Random, logs: list[Path]) -> None:
    """Indexes and snapshots are garbage."""
    for path in logs[0].parent.iterdir():
        if path.suffix in {".index", ".timeindex", ".snapshot"} and rng.random() < 0.5:
            path.write_bytes(rng.randbytes(rng.randrange(200)))


def interrupt_cleaning(rng: random.Random, logs: list[Path]) -> None:
    """A compaction or deletion did not end."""
    for path in logs[0].parent.iterdir():
        if path.suffix in {".log", ".index", ".timeindex", ".txnindex"} and rng.random() < 0.4:
            ending = rng.choice([".cleaned", ".swap", ".swap", ".deleted"])
            shutil.copy2(path, path.with_name(path.name + ending))


@pytest.mark.parametrize("damage", [drop_segment, drop_beside, garble_beside, interrupt_cleaning])
def test_recover_files_missing_or_left_over_is_what_kafka_makes_of_it(
    damage: Callable[[random.Random, list[Path]], None], kafka_server: KafkaServer, tmp_path: Path
) -> None:
    """The state of producers comes from the latest snapshot before the first segment, if there is one."""
    rng = random.Random(damage.__name__)  # noqa: S311
    for case in ("compacted", "idempotent", "log-start", "txn-lz4", "txn-none"):
        for number in range(3):
            place = place_of(data.DATA / "corpus" / case, tmp_path)
            damage(rng, sorted(place.glob("*.log")))
            assert is_recovered_alike(kafka_server, place, tmp_path, f"{case} {number} {damage.__name__}")


def test_recover_old_formats_is_what_kafka_makes_of_it(kafka_server: KafkaServer, tmp_path: Path) -> None:
    """Message formats v0 and v1, mixed and compacted, undamaged and with a flipped bit.

    Where v0 follows v2 in the last segment, Kafka leaves a snapshot at the end of v2 too; its next start deletes it.
    """
    rng = random.Random(10)  # noqa: S311
    cases = {path.parent for path in (data.DATA / "corpus-legacy").rglob("00000000000000000000.index")}
    cases = {case for case in cases if case.name != "k282-format-midway"}
    assert len(cases) > 10
    for case in sorted(cases):
        for damaged in (False, True):
            place = place_of(case, tmp_path)
            if damaged:
                log = rng.choice(sorted(place.glob("*.log")))
                log.write_bytes(flip(rng, log.read_bytes(), []))
            assert is_recovered_alike(kafka_server, place, tmp_path, f"{case} {damaged}") or damaged
