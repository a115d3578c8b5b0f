"""Compaction of a partition: which records stay, when, and in which form (format.md 7, tests 76 to 84 and 108)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import kbat
from data import DATA
from partitions import DAY, NOW, Log, Row, batches_of, committed, contents, random_log, rows

if TYPE_CHECKING:
    from pathlib import Path

COMPACTED = ["compacted", "compacted-append-time", "compacted-codec", "compacted-codec2"]


def first_dropped_of(directory: Path, upper: int) -> set[int]:
    """Offsets of data that a first compaction drops, by the rules of the documentation."""
    aborted, open_data = set[int](), dict[int, list[int]]()
    for batch in batches_of(directory):
        offsets = [record.offset for record in batch]
        if batch.is_control:
            data = open_data.pop(batch.producer_id, [])
            if any(record.control and record.control.type == "ABORT" for record in batch):
                aborted.update(data)
        elif batch.is_transactional:
            open_data.setdefault(batch.producer_id, []).extend(offsets)
    old = [row for row in rows(directory) if row.offset < upper]
    latest = {row.key: row.offset for row in old if row.offset not in aborted}
    stays = {row.offset for row in old if row.key is not None and row.offset == latest.get(row.key)}
    return {row.offset for row in old} - stays


def logs_of(directory: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(directory).items() if name.endswith(".log")}


# Generated logs


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("magics", [(2,), (0, 1, 2)])
def test_compact_random_log_keeps_the_last_record_of_each_key(
    tmp_path: Path, seed: int, magics: tuple[int, ...]
) -> None:
    log = random_log(tmp_path / "t-0", seed, magics=magics)
    report = kbat.compact(log.directory, tmp_path / "out", now_ms=NOW)
    dropped = first_dropped_of(log.directory, log.base_offset)
    expected = [row for row in rows(log.directory) if row.offset not in dropped]
    assert rows(tmp_path / "out") == expected
    assert committed(tmp_path / "out") == [row for row in committed(log.directory) if row.offset not in dropped]
    assert report.first_uncleanable_offset == log.base_offset
    assert report.end_offset == log.end_offset
    assert report.read.records - report.written.records == sum(report.dropped.values()) == len(dropped)
    last = logs_of(log.directory).popitem()
    assert logs_of(tmp_path / "out").popitem() == last, "the active segment is copied"


@pytest.mark.parametrize("seed", range(12))
def test_compact_random_log_later_runs_drop_tombstones_and_markers(tmp_path: Path, seed: int) -> None:
    log = random_log(tmp_path / "t-0", seed)
    first, second, third = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    kbat.compact(log.directory, first, now_ms=NOW)
    kbat.compact(first, second, now_ms=NOW + DAY - 1)
    assert rows(second) == rows(first)
    report = kbat.compact(second, third, now_ms=NOW + 2 * DAY)
    active = log.base_offset
    assert rows(third) == [row for row in rows(first) if row.offset >= active or row.value is not None]
    assert committed(third) == [row for row in committed(first) if row.offset >= active or row.value is not None]
    assert report.dropped["tombstones"] == len(rows(second)) - len(rows(third))
    # markers stay where data of their transaction does
    transactional = {batch.producer_id for batch in batches_of(third) if batch.is_transactional}
    for pid in transactional:
        kinds = [batch.is_control for batch in batches_of(third) if batch.producer_id == pid and batch.record_count]
        assert not kinds or kinds[-1], "data without the marker that ends it"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("max_map_bytes", [300, 700, 1500])
def test_compact_keys_beyond_memory_gives_the_same(tmp_path: Path, seed: int, max_map_bytes: int) -> None:
    log = random_log(tmp_path / "t-0", seed, magics=(0, 1, 2), keys=40, batches=120)
    dirty = log.end_offset // 4 if seed % 2 else None
    whole = kbat.compact(log.directory, tmp_path / "a", now_ms=NOW, first_dirty_offset=dirty)
    parts = kbat.compact(
        log.directory, tmp_path / "b", now_ms=NOW, first_dirty_offset=dirty, max_map_bytes=max_map_bytes
    )
    assert (whole.key_parts, parts.key_parts > 1) == (1, True)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    expected, found = whole.to_dict(), parts.to_dict()
    assert expected.pop("key_parts") < found.pop("key_parts")
    assert expected == found


def test_compact_more_keys_than_256_parts_can_hold_is_refused(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    for part in range(20):
        log.batch(*[(b"%d-%d" % (part, at), b"v") for at in range(200)])
    log.roll()
    log.write()
    with pytest.raises(ValueError, match="max_map_bytes"):
        kbat.compact(log.directory, tmp_path / "out", max_map_bytes=100)
    assert [path.name for path in tmp_path.iterdir()] == ["t-0"]


# One rule after the other


def test_compact_tombstone_gets_a_horizon_and_goes_after_it(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), (b"b", b"2"))
    log.batch((b"a", None), (b"c", b"3"))
    log.roll()
    log.write()
    report = kbat.compact(log.directory, tmp_path / "1", now_ms=NOW, delete_retention_ms=1000)
    assert [row.offset for row in rows(tmp_path / "1")] == [1, 2, 3]
    assert [batch.delete_horizon_ms for batch in batches_of(tmp_path / "1")] == [None, NOW + 1000]
    assert (report.tombstones_retained, report.delete_horizons_set) == (1, 1)
    kbat.compact(tmp_path / "1", tmp_path / "2", now_ms=NOW + 999, delete_retention_ms=5)
    assert contents(tmp_path / "2") == contents(tmp_path / "1")
    report = kbat.compact(tmp_path / "2", tmp_path / "3", now_ms=NOW + 1000)
    assert [row.offset for row in rows(tmp_path / "3")] == [1, 3]
    assert report.dropped["tombstones"] == 1


def test_compact_marker_goes_a_retention_after_its_data(tmp_path: Path) -> None:
    """Data is removed first; the next run sets a horizon for the empty transaction; after it, the marker is removed."""
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), pid=1, transactional=True)
    marker = log.marker(1, "COMMIT")
    log.batch((b"a", b"2"), pid=1, transactional=True)
    log.marker(1, "COMMIT")
    log.batch((b"b", b"3"))
    log.roll()
    log.write()

    def horizons(directory: Path) -> dict[int, int | None]:
        return {batch.base_offset: batch.delete_horizon_ms for batch in batches_of(directory) if batch.is_control}

    kbat.compact(log.directory, tmp_path / "1", now_ms=NOW, delete_retention_ms=10)
    assert horizons(tmp_path / "1") == {marker: None, 3: None}
    kbat.compact(tmp_path / "1", tmp_path / "2", now_ms=NOW + 5, delete_retention_ms=10)
    assert horizons(tmp_path / "2") == {marker: NOW + 15, 3: None}
    kbat.compact(tmp_path / "2", tmp_path / "3", now_ms=NOW + 14)
    assert horizons(tmp_path / "3") == {marker: NOW + 15, 3: None}
    report = kbat.compact(tmp_path / "3", tmp_path / "4", now_ms=NOW + 15)
    assert horizons(tmp_path / "4") == {3: None}
    assert report.dropped["markers"] == 1


def test_compact_aborted_data_goes_and_its_transaction_stays_indexed_once(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"))
    log.batch((b"a", b"2"), pid=1, transactional=True)
    log.batch((b"b", b"3"), pid=2)
    log.batch((b"c", b"4"), pid=1, transactional=True)
    log.marker(1, "ABORT")
    log.roll()
    log.write()
    report = kbat.compact(log.directory, tmp_path / "1", now_ms=NOW)
    assert [row.offset for row in rows(tmp_path / "1")] == [0, 2]
    assert report.dropped["aborted"] == 2
    assert len(contents(tmp_path / "1")[f"{0:020}.txnindex"]) == 34
    # the batch with the producer's last sequence leaves its header
    assert [(batch.base_offset, batch.record_count) for batch in batches_of(tmp_path / "1")] == [
        (0, 1),
        (2, 1),
        (3, 0),
        (4, 1),
    ]
    kbat.compact(tmp_path / "1", tmp_path / "2", now_ms=NOW)
    assert rows(tmp_path / "2") == rows(tmp_path / "1")


def test_compact_transaction_over_segments_and_into_the_active_one(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), pid=1, transactional=True)
    log.roll()
    log.batch((b"b", b"2"), pid=1, transactional=True)
    log.batch((b"c", b"3"))
    log.roll()
    log.marker(1, "ABORT")
    log.batch((b"d", b"4"))
    log.write()
    report = kbat.compact(log.directory, tmp_path / "out", now_ms=NOW)
    assert report.first_uncleanable_offset == 3
    assert [row.offset for row in rows(tmp_path / "out")] == [2, 4]
    assert len(contents(tmp_path / "out")[f"{3:020}.txnindex"]) == 34


def test_compact_open_transaction_ends_the_compacted_part(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"))
    log.batch((b"a", b"2"))
    log.roll()
    log.batch((b"a", b"3"))
    log.batch((b"b", b"3"), pid=1, transactional=True)
    log.roll()
    log.batch((b"a", b"4"))
    log.write()
    report = kbat.compact(log.directory, tmp_path / "out", now_ms=NOW, include_active=True)
    assert (report.last_stable_offset, report.first_uncleanable_offset, report.untouched_segments) == (3, 2, 2)
    assert [row.offset for row in rows(tmp_path / "out")] == [1, 2, 3, 4]


def test_compact_null_keys_go(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((None, b"1"), (b"", b"2"), (None, None))
    log.roll()
    log.write()
    report = kbat.compact(log.directory, tmp_path / "out")
    assert [row.key for row in rows(tmp_path / "out")] == [b""]
    assert report.dropped["null_keys"] == 2


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_compact_last_batch_of_the_part_leaves_its_header(tmp_path: Path, magic: int) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), magic=magic)
    log.batch((None, b"1"), (None, b"2"), magic=magic, codec="gzip")
    log.roll()
    log.write()
    report = kbat.compact(log.directory, tmp_path / "out")
    *_, last = batches_of(tmp_path / "out")
    assert (last.base_offset, last.last_offset, last.record_count, last.size) == (1, 2, 0, 61)
    assert report.emptied_batches == 1


def test_compact_expired_producer_loses_its_empty_batch(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), pid=5, timestamp=NOW - DAY)
    log.batch((b"a", b"2"))
    log.roll()
    log.write()
    kbat.compact(log.directory, tmp_path / "1", now_ms=NOW)
    kbat.compact(log.directory, tmp_path / "2", now_ms=NOW, producer_expiration_ms=DAY)
    assert [batch.base_offset for batch in batches_of(tmp_path / "1")] == [0, 1]
    assert [batch.base_offset for batch in batches_of(tmp_path / "2")] == [1]


def test_compact_marker_of_a_newer_epoch_stays_for_fencing(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), pid=5, transactional=True)
    log.marker(5, "ABORT", epoch=1)
    log.batch((b"a", b"2"))
    log.roll()
    log.write()
    kbat.compact(log.directory, tmp_path / "1", now_ms=NOW)
    kbat.compact(tmp_path / "1", tmp_path / "2", now_ms=NOW)
    kbat.compact(tmp_path / "2", tmp_path / "3", now_ms=NOW + 2 * DAY)
    left = [(batch.base_offset, batch.record_count, batch.producer_epoch) for batch in batches_of(tmp_path / "3")]
    assert left == [(1, 0, 1), (2, 1, -1)]


def test_compact_first_dirty_offset_only_lets_newer_records_supersede(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), (b"a", b"2"), (b"b", b"3"))
    log.roll()
    log.batch((b"b", b"4"))
    log.roll()
    log.write()
    kbat.compact(log.directory, tmp_path / "out", first_dirty_offset=3)
    assert [row.offset for row in rows(tmp_path / "out")] == [0, 1, 3]
    kbat.compact(log.directory, tmp_path / "spilled", first_dirty_offset=3, max_map_bytes=1)
    assert rows(tmp_path / "spilled") == rows(tmp_path / "out")
    report = kbat.compact(log.directory, tmp_path / "none", first_dirty_offset=4)
    assert (report.read.records, report.untouched_segments) == (0, 3)


def test_compact_old_tombstones_go_by_the_modification_time(tmp_path: Path) -> None:
    """v0 and v1: before the clean part's last modification less the retention they go, else they become v2."""
    log = Log(tmp_path / "t-0")
    log.batch((b"a", None), magic=1)
    log.roll()
    log.batch((b"b", None), magic=1)
    log.roll()
    log.batch((b"c", b"1"), magic=1)
    log.roll()
    log.write()
    for base, days in ((0, 0), (1, 2), (2, 3)):
        path = log.directory / f"{base:020}.log"
        os.utime(path, (NOW // 1000 + days * 86_400, NOW // 1000 + days * 86_400))
    kbat.compact(log.directory, tmp_path / "out", first_dirty_offset=2, now_ms=NOW, delete_retention_ms=DAY)
    left = [(batch.base_offset, batch.magic, batch.delete_horizon_ms) for batch in batches_of(tmp_path / "out")]
    assert left == [(1, 2, NOW + DAY), (2, 2, None)]


def test_compact_min_compaction_lag_spares_young_segments(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), (b"a", b"2"), timestamp=NOW - 100)
    log.roll()
    log.batch((b"a", b"3"), (b"a", b"4"), timestamp=NOW - 10)
    log.roll()
    log.write()
    report = kbat.compact(log.directory, tmp_path / "out", now_ms=NOW, min_compaction_lag_ms=50)
    assert report.first_uncleanable_offset == 2
    assert [row.offset for row in rows(tmp_path / "out")] == [1, 2, 3]


# Files


def three_segments(directory: Path) -> Log:
    log = Log(directory)
    for segment in range(3):
        for at in range(40):
            log.batch((b"%d-%d" % (segment, at), b"x" * 100), timestamp=NOW + at)
        log.roll()
    log.write()
    return log


def test_compact_neighbours_become_one_segment_up_to_a_size(tmp_path: Path) -> None:
    log = three_segments(tmp_path / "t-0")
    size = (log.directory / f"{0:020}.log").stat().st_size
    for limit, bases in (
        (size * 3, [0, 120]),
        (size * 2, [0, 80, 120]),
        (size, [0, 40, 80, 120]),
        (1, [0, 40, 80, 120]),
    ):
        out = tmp_path / f"out-{limit}"
        kbat.compact(log.directory, out, segment_bytes=limit)
        assert [segment.base_offset for segment in kbat.find_segments(out)] == bases
        assert rows(out) == rows(log.directory)


def test_compact_writes_indexes_and_copies_what_belongs_to_the_partition(tmp_path: Path) -> None:
    log = three_segments(tmp_path / "t-0")
    (log.directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (log.directory / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    for offset in (0, 40, 120):
        (log.directory / f"{offset:020}.snapshot").write_bytes(b"%d" % offset)
    os.utime(log.directory / f"{80:020}.log", (1_600_000_000, 1_600_000_000))
    kbat.compact(log.directory, tmp_path / "out", index_interval_bytes=500)
    names = {f"{base:020}.{kind}" for base in (0, 120) for kind in ("log", "index", "timeindex", "snapshot")}
    assert set(contents(tmp_path / "out")) == names | {"leader-epoch-checkpoint", "partition.metadata"}
    assert contents(tmp_path / "out")[f"{120:020}.snapshot"] == b"120"
    index = contents(tmp_path / "out")[f"{0:020}.index"]
    assert len(index) > 8 * 20
    positions = {batch.last_offset: batch.position for batch in batches_of(tmp_path / "out")}
    for at in range(0, len(index), 8):
        offset, position = int.from_bytes(index[at : at + 4]), int.from_bytes(index[at + 4 : at + 8])
        assert positions[offset] == position
    # the time of the last segment that went into it
    assert (tmp_path / "out" / f"{0:020}.log").stat().st_mtime == 1_600_000_000


def test_compact_fault_or_exception_leaves_nothing(tmp_path: Path) -> None:
    log = three_segments(tmp_path / "t-0")
    path = log.directory / f"{40:020}.log"
    good = path.read_bytes()
    path.write_bytes(good[:3000] + bytes([good[3000] ^ 1]) + good[3001:])
    with pytest.raises(kbat.CrcError) as caught:
        kbat.compact(log.directory, tmp_path / "out")
    assert caught.value.path == str(path)
    path.write_bytes(good)

    def refuse(done: int, total: int) -> None:
        assert 0 <= done <= total
        raise KeyError(done)

    with pytest.raises(KeyError):
        kbat.compact(log.directory, tmp_path / "out", progress=refuse)
    assert [path.name for path in tmp_path.iterdir()] == ["t-0"]


def test_compact_target_that_is_not_empty_or_source_without_segments_is_refused(tmp_path: Path) -> None:
    log = three_segments(tmp_path / "t-0")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    with pytest.raises(ValueError, match="not empty"):
        kbat.compact(log.directory, tmp_path / "full")
    with pytest.raises(ValueError, match="a log directory, not a partition"):
        kbat.compact(tmp_path, tmp_path / "out")
    with pytest.raises(FileNotFoundError):
        kbat.compact(tmp_path / "missing", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    kbat.compact(log.directory, tmp_path / "empty")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "full", "t-0"]


def test_compact_cut_tail_of_the_last_segment_is_left_out(tmp_path: Path) -> None:
    log = three_segments(tmp_path / "t-0")
    log.batch((b"k", b"v"))
    log.write()
    path = log.directory / f"{120:020}.log"
    path.write_bytes(path.read_bytes() + path.read_bytes()[:50])
    report = kbat.compact(log.directory, tmp_path / "out")
    assert report.tail_bytes == 50
    assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()[:-50]


# The output of Kafka's cleaner


@pytest.mark.parametrize("case", [f"corpus/{name}" for name in COMPACTED])
def test_compact_what_kafka_compacted_drops_only_what_expired(tmp_path: Path, case: str) -> None:
    source = DATA / case
    report = kbat.compact(source, tmp_path / "1", now_ms=0)
    assert rows(tmp_path / "1") == rows(source)
    assert sum(report.dropped.values()) == 0
    later = kbat.compact(source, tmp_path / "2", now_ms=2**62)
    active = later.first_uncleanable_offset
    horizons = {row.offset for batch in batches_of(source) if batch.delete_horizon_ms for row in batch}
    expected = [
        row for row in rows(source) if row.offset >= active or row.value is not None or row.offset not in horizons
    ]
    assert rows(tmp_path / "2") == expected
    assert later.dropped["tombstones"] == sum(later.dropped.values()) > 0


def test_row_of_a_partition_is_what_the_corpus_says() -> None:
    """The helper that all of this rests on, against Kafka's own answers."""
    first = rows(DATA / "corpus/compacted")[0]
    assert isinstance(first, Row)
    assert first.key is not None
