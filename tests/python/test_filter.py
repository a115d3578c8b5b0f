"""Filtering a partition does not change the retained records."""

from __future__ import annotations

import random
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

import kbat
from data import DATA
from partitions import NOW, Log, batches_of, committed, contents, random_log, rows

if TYPE_CHECKING:
    from pathlib import Path

CORPUS = ["codec-gzip", "codec-lz4", "codec-none", "codec-snappy", "codec-zstd", "compacted-txn", "idempotent",
          "log-append-time-lz4", "mixed-codecs", "segments-index-0", "txn-none"]  # fmt: skip
LEGACY = ["k0102-times-snappy", "k0822-java0822-lz4", "k0110-txn", "upgrade-chain-352", "k282-format-midway"]


def batch_heads(directory: Path) -> dict[int, tuple[object, ...]]:
    """Return the header fields of batches, by last offset. Empty batches have no codec."""
    return {
        batch.last_offset: (
            batch.magic, batch.compression, batch.timestamp_type, batch.producer_id, batch.producer_epoch,
            batch.last_sequence, batch.partition_leader_epoch, batch.is_transactional, batch.is_control,
        )
        for batch in batches_of(directory)
        if batch.record_count != 0
    }  # fmt: skip


def last_sequences(directory: Path) -> dict[int, int]:
    return {batch.producer_id: batch.last_sequence for batch in batches_of(directory) if not batch.is_control}


@pytest.mark.parametrize("seed", range(8))
def test_filter_random_log_keeps_what_the_predicate_keeps(tmp_path: Path, seed: int) -> None:
    log = random_log(tmp_path / "t-0", seed, magics=(0, 1, 2))
    rng = random.Random(seed)  # noqa: S311 - reproducible and no secret
    drop = {row.offset for row in rows(log.directory) if rng.random() < 0.5}
    report = kbat.filter(log.directory, tmp_path / "out", lambda record: record.offset not in drop)
    assert rows(tmp_path / "out") == [row for row in rows(log.directory) if row.offset not in drop]
    assert committed(tmp_path / "out") == [row for row in committed(log.directory) if row.offset not in drop]
    assert report.dropped_records == len(drop) == report.read.records - report.written.records
    assert last_sequences(tmp_path / "out") == last_sequences(log.directory)
    assert batches_end(tmp_path / "out") == log.end_offset == report.end_offset
    # a set of an old format ends with its last record, all other batches where they did
    before, after = batch_heads(log.directory), batch_heads(tmp_path / "out")
    assert {end: head for end, head in after.items() if end in before}.items() <= before.items()
    markers = [bytes(batch) for batch in batches_of(log.directory) if batch.is_control]
    assert [bytes(batch) for batch in batches_of(tmp_path / "out") if batch.is_control] == markers


def batches_end(directory: Path) -> int:
    *_, last = batches_of(directory)
    return last.next_offset


@pytest.mark.parametrize("case", [f"corpus/{name}" for name in CORPUS] + [f"corpus-legacy/{name}" for name in LEGACY])
def test_filter_corpus_keeps_every_second_record(tmp_path: Path, case: str) -> None:
    source = DATA / case
    report = kbat.filter(source, tmp_path / "out", lambda record: record.offset % 2 == 0)
    assert rows(tmp_path / "out") == [row for row in rows(source) if row.offset % 2 == 0]
    assert batches_end(tmp_path / "out") == batches_end(source)
    assert report.rebuilt_batches + report.dropped_batches > 0
    bases = [segment.base_offset for segment in kbat.find_segments(source)]
    assert [segment.base_offset for segment in kbat.find_segments(tmp_path / "out")] == bases
    for name in ("leader-epoch-checkpoint", "partition.metadata", *(f"{base:020}.snapshot" for base in bases)):
        assert contents(tmp_path / "out").get(name) == contents(source).get(name)


def contents_of_logs(directory: Path) -> list[bytes]:
    return [segment.read_bytes() for segment in sorted(directory.glob("*.log"))]


def test_filter_that_keeps_all_copies_the_bytes(tmp_path: Path) -> None:
    log = random_log(tmp_path / "t-0", 3, magics=(0, 1, 2))
    report = kbat.filter(log.directory, tmp_path / "out", lambda _: True)
    assert contents_of_logs(tmp_path / "out") == contents_of_logs(log.directory)
    assert report.to_dict()["read"] == report.to_dict()["written"]


def test_filter_that_keeps_nothing_leaves_producers_and_the_end(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), (b"b", b"2"))
    log.batch((b"a", b"3"), pid=4)
    log.batch((b"a", b"4"), pid=4)
    log.batch((b"a", b"5"), pid=6, transactional=True)
    log.batch((b"a", b"6"), (b"c", b"7"), codec="lz4")
    log.write()
    report = kbat.filter(log.directory, tmp_path / "out", lambda _: False)
    left = [(batch.base_offset, batch.last_offset, batch.record_count) for batch in batches_of(tmp_path / "out")]
    # the last sequence of 4, the open transaction of 6, the log's end
    assert left == [(3, 3, 0), (4, 4, 0), (5, 6, 0)]
    assert (report.dropped_records, report.dropped_batches, report.emptied_batches) == (7, 2, 3)
    again = kbat.filter(tmp_path / "out", tmp_path / "again", lambda _: False)
    assert contents_of_logs(tmp_path / "again") == contents_of_logs(tmp_path / "out")
    assert (again.read.records, again.emptied_batches) == (0, 0)


def test_filter_drop_keys_needs_no_predicate_and_goes_before_it(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"alice", b"1"), (b"bob", b"2"), (None, b"3"), codec="gzip")
    log.batch((b"alice", b"4"))
    log.batch((b"bob", b"5"))
    log.write()
    kbat.filter(log.directory, tmp_path / "1", drop_keys={b"alice"})
    assert [row.offset for row in rows(tmp_path / "1")] == [1, 2, 4]
    asked: list[bytes | None] = []

    def keep(record: kbat.Record) -> bool:
        asked.append(record.key)
        return record.key is not None

    kbat.filter(log.directory, tmp_path / "2", keep, drop_keys=[bytearray(b"alice")])
    assert [row.offset for row in rows(tmp_path / "2")] == [1, 4]
    assert asked == [b"bob", None, b"bob"]
    with pytest.raises(ValueError, match="predicate"):
        kbat.filter(log.directory, tmp_path / "3")
    with pytest.raises(TypeError, match="bytes"):
        kbat.filter(log.directory, tmp_path / "3", drop_keys=["alice"])  # type: ignore[list-item]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_filter_predicate_sees_the_whole_record(tmp_path: Path, magic: int) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"value"), (None, None), codec="gzip", magic=magic, pid=-1 if magic < 2 else 3)
    log.marker(3, "COMMIT")
    log.write()
    seen: list[kbat.Record] = []
    kbat.filter(log.directory, tmp_path / "out", seen.append)
    first, second = seen
    assert (first.offset, first.key, first.value, second.key, second.value) == (0, b"a", b"value", None, None)
    assert first.headers == ([("at", b"0")] if magic == 2 else [])
    assert first.timestamp == (NOW if magic else -1)
    assert (first.sequence, second.sequence) == ((0, 1) if magic == 2 else (-1, -1))
    assert first.control is None


def test_filter_predicate_that_raises_leaves_nothing(tmp_path: Path) -> None:
    log = random_log(tmp_path / "t-0", 1)

    def fail(record: kbat.Record) -> bool:
        if record.offset > 50:
            raise LookupError(record.offset)
        return True

    with pytest.raises(LookupError):
        kbat.filter(log.directory, tmp_path / "out", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["t-0"]


def test_filter_ctrl_c_ends_it(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    data = random.Random(1).randbytes(2_000_000)  # noqa: S311 -- nothing compresses it
    for at in range(20):
        log.batch((b"%d" % at, data))
    log.write()
    main = threading.get_ident()
    thread = threading.Timer(0.05, lambda: signal.pthread_kill(main, signal.SIGINT))
    # a job in the background of a shell begins with Ctrl-C ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            kbat.filter(
                log.directory, tmp_path / "out", drop_keys={b"x"}, progress=lambda _done, _total: time.sleep(0.1)
            )
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert [path.name for path in tmp_path.iterdir()] == ["t-0"]


def test_filter_progress_counts_every_byte(tmp_path: Path) -> None:
    log = random_log(tmp_path / "t-0", 1)
    told: list[tuple[int, int]] = []
    report = kbat.filter(log.directory, tmp_path / "out", lambda _: True, progress=lambda *now: told.append(now))
    assert told[-1] == (2 * report.read.bytes, 2 * report.read.bytes)
