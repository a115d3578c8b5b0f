"""Partitions with other codecs, batch sizes and formats: the records are the same."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from data import DATA
from growing_log import GrowingLog
from partitions import CODECS, NOW, Codec, Log, Row, batches_of, committed, contents, random_log, rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def without_headers(some: list[Row]) -> list[Row]:
    return [row._replace(headers=()) for row in some]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("seed", range(3))
def test_rewrite_compression_changes_nothing_else(tmp_path: Path, codec: Codec, seed: int) -> None:
    log = random_log(tmp_path / "t-0", seed, magics=(0, 1, 2) if codec != "zstd" else (2,))
    report = kbat.rewrite(log.directory, tmp_path / "out", compression=codec)
    assert rows(tmp_path / "out", control=True) == rows(log.directory, control=True)
    assert report.losses == []
    packed = {batch.compression for batch in batches_of(tmp_path / "out") if not batch.is_control}
    assert packed == {codec}
    before, after = (
        [batch for batch in batches_of(at) if batch.magic == 2] for at in (log.directory, tmp_path / "out")
    )
    for name in ("base_offset", "last_offset", "producer_id", "base_sequence", "max_timestamp", "is_transactional"):
        assert [getattr(batch, name) for batch in after] == [getattr(batch, name) for batch in before]


def test_rewrite_level_packs_better(tmp_path: Path) -> None:
    low = kbat.rewrite(DATA / "corpus/codec-zstd", tmp_path / "1", compression="zstd", level=1)
    high = kbat.rewrite(DATA / "corpus/codec-zstd", tmp_path / "2", compression="zstd", level=19)
    assert high.written.bytes < low.written.bytes
    with pytest.raises(ValueError, match="level"):
        kbat.rewrite(DATA / "corpus/codec-zstd", tmp_path / "3", level=3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("batch_bytes", [1, 100, 1000, 1 << 20])
def test_rewrite_batch_bytes_joins_and_splits_what_has_no_producer(tmp_path: Path, seed: int, batch_bytes: int) -> None:
    log = random_log(tmp_path / "t-0", seed, magics=(1, 2))
    kbat.rewrite(log.directory, tmp_path / "out", batch_bytes=batch_bytes, magic=2)
    assert rows(tmp_path / "out", control=True) == rows(log.directory, control=True)
    assert committed(tmp_path / "out") == committed(log.directory)
    before = [bytes(batch) for batch in batches_of(log.directory) if batch.producer_id >= 0]
    assert [bytes(batch) for batch in batches_of(tmp_path / "out") if batch.producer_id >= 0] == before
    plain = [batch for batch in batches_of(tmp_path / "out") if batch.producer_id < 0]
    if batch_bytes == 1:
        assert all(batch.record_count == 1 for batch in plain)
    for one in batches_of(tmp_path / "out"):
        assert one.base_offset is not None


def test_rewrite_joined_batches_cover_the_range_and_split_ones_begin_where_they_do(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    for at in range(10):
        log.batch((b"k", b"v" * 50), (b"k", b"v" * 50), timestamp=NOW + at)
    log.batch((b"k", b"v"), log_append_time=NOW)
    log.batch((b"k", b"v"), log_append_time=NOW)
    log.batch((b"k", b"v"), log_append_time=NOW + 1)
    log.write()
    report = kbat.rewrite(log.directory, tmp_path / "big", batch_bytes=1 << 20, compression="lz4")
    spans = [(batch.base_offset, batch.last_offset, batch.compression) for batch in batches_of(tmp_path / "big")]
    assert spans == [(0, 19, "lz4"), (20, 21, "lz4"), (22, 22, "lz4")]
    assert (report.read.batches, report.written.batches, report.written.records) == (13, 3, 23)
    kbat.rewrite(tmp_path / "big", tmp_path / "small", batch_bytes=130)
    sizes = [batch.record_count for batch in batches_of(tmp_path / "small")]
    assert sizes == [1] * 20 + [2, 1] or sizes == [2] * 10 + [2, 1]
    assert rows(tmp_path / "small") == rows(log.directory)


def test_rewrite_keeps_the_offset_range_and_horizon_of_compacted_batches(tmp_path: Path) -> None:
    source = DATA / "corpus/compacted-codec"
    kbat.rewrite(source, tmp_path / "out", compression="gzip", batch_bytes=1 << 20)
    assert rows(tmp_path / "out") == rows(source)
    *_, last = batches_of(tmp_path / "out")
    *_, before = batches_of(source)
    assert last.last_offset == before.last_offset
    horizons = {batch.delete_horizon_ms for batch in batches_of(source)}
    assert {batch.delete_horizon_ms for batch in batches_of(tmp_path / "out")} == horizons


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("batch_bytes", [None, 2000])
def test_rewrite_without_producers_keeps_what_is_committed(tmp_path: Path, seed: int, batch_bytes: int | None) -> None:
    log = random_log(tmp_path / "t-0", seed)
    (log.directory / f"{0:020}.snapshot").write_bytes(b"state")
    report = kbat.rewrite(log.directory, tmp_path / "out", keep_producer_state=False, batch_bytes=batch_bytes)
    assert rows(tmp_path / "out", control=True) == committed(log.directory)
    for batch in batches_of(tmp_path / "out"):
        assert (batch.producer_id, batch.base_sequence, batch.is_transactional) == (-1, -1, False)
    assert report.dropped["aborted"] == len(rows(log.directory)) - len(committed(log.directory))
    assert report.dropped["control"] == len(rows(log.directory, control=True)) - len(rows(log.directory))
    assert not [name for name in contents(tmp_path / "out") if name.endswith((".snapshot", ".txnindex"))]


def test_rewrite_without_producers_leaves_the_end_of_the_log(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), pid=1, transactional=True)
    log.marker(1, "COMMIT")
    log.write()
    kbat.rewrite(log.directory, tmp_path / "out", keep_producer_state=False)
    left = [(batch.base_offset, batch.last_offset, batch.record_count) for batch in batches_of(tmp_path / "out")]
    assert left == [(0, 0, 1), (1, 1, 0)]


@pytest.mark.parametrize("magic", [0, 1])
def test_rewrite_to_an_old_format_leaves_the_end_of_the_log(tmp_path: Path, magic: int) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), pid=1, transactional=True)
    log.marker(1, "COMMIT")
    log.write()
    kbat.rewrite(log.directory, tmp_path / "out", magic=magic)
    assert sorted(path.name for path in (tmp_path / "out").glob("*.log")) == [f"{base:020}.log" for base in (0, 2)]
    assert kbat.PartitionLog(tmp_path / "out").end_offset == 2
    assert kbat.verify(tmp_path / "out").ok


def test_rewrite_open_transaction_can_only_be_kept(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), pid=1, transactional=True)
    log.write()
    kbat.rewrite(log.directory, tmp_path / "out", compression="gzip")
    for options in ({"keep_producer_state": False}, {"magic": 1}):
        with pytest.raises(ValueError, match="offset 0 is still open"):
            kbat.rewrite(log.directory, tmp_path / "refused", **options)
    assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("batch_bytes", [None, 500])
def test_rewrite_to_an_old_format_names_what_is_lost(tmp_path: Path, magic: int, batch_bytes: int | None) -> None:
    log = random_log(tmp_path / "t-0", 4)
    report = kbat.rewrite(log.directory, tmp_path / "out", magic=magic, compression="lz4", batch_bytes=batch_bytes)
    expected = without_headers(committed(log.directory))
    if magic == 0:
        expected = [row._replace(timestamp=-1) for row in expected]
    assert rows(tmp_path / "out") == expected
    assert {batch.magic for batch in batches_of(tmp_path / "out")} == {magic}
    assert {"headers", "producer", "partition_leader_epoch", "transactional"} <= set(report.losses)
    assert ("timestamps" in report.losses) == (magic == 0)


def test_rewrite_old_formats_to_v2_loses_nothing(tmp_path: Path) -> None:
    for case in ("k0102-times-snappy", "k0822-java0822-lz4", "upgrade-chain-352", "k282-format-midway"):
        source = DATA / "corpus-legacy" / case
        report = kbat.rewrite(source, tmp_path / case, magic=2)
        assert rows(tmp_path / case) == rows(source)
        assert report.losses == []
        assert {batch.magic for batch in batches_of(tmp_path / case)} == {2}


def test_rewrite_without_options_copies(tmp_path: Path) -> None:
    source = DATA / "corpus/txn-none"
    report = kbat.rewrite(source, tmp_path / "out")
    for name, data in contents(tmp_path / "out").items():
        if not name.endswith(("index", "snapshot")):
            assert data == contents(source)[name]
    assert report.to_dict()["read"] == report.to_dict()["written"]
    assert report.dropped == {"aborted": 0, "control": 0}


def test_rewrite_zstd_below_v2_or_a_bad_option_leaves_nothing(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), codec="zstd")
    log.write()
    with pytest.raises(kbat.UnsupportedError):
        kbat.rewrite(log.directory, tmp_path / "out", magic=1)
    for options in ({"compression": "brotli"}, {"magic": 3}, {"magic": -1}, {"magic": 1, "compression": "zstd"}):
        with pytest.raises(ValueError, match=r"brotli|magic"):
            kbat.rewrite(log.directory, tmp_path / "out", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["t-0"]


TOOLS: dict[str, Callable[[Path, Path], object]] = {
    "rewrite": kbat.rewrite,
    "compact": kbat.compact,
    "filter": lambda path, out: kbat.filter(path, out, lambda _: True),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_what_a_length_that_leads_beyond_the_file_hides_is_an_error(tmp_path: Path, tool: str) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(5, 5, 5)
    data = bytearray(log.segment.read_bytes())
    start = next(batch.position for batch in kbat.read_batches(bytes(data)) if batch.base_offset == 5)
    data[start + 8 + 1] = 1
    log.segment.write_bytes(data)
    with pytest.raises(kbat.TruncatedError, match=f"the log continues.*byte {start}, base offset 5"):
        TOOLS[tool](log.directory, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("tool", TOOLS)
def test_a_cut_segment_with_another_behind_it_is_an_error(tmp_path: Path, tool: str) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(5)
    log.append_bytes(log.batch(3)[:-1])
    log.end_offset += 3
    TOOLS[tool](log.directory, tmp_path / "end of the log")
    log.roll()
    log.append(2)
    with pytest.raises(kbat.TruncatedError, match=r"the log continues.*0\.log"):
        TOOLS[tool](log.directory, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_beside_the_log_that_is_a_pipe_is_an_error(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(5)
    os.mkfifo(log.directory / "leader-epoch-checkpoint")
    with pytest.raises(ValueError, match=r"this is a pipe or a device.*leader-epoch-checkpoint"):
        kbat.rewrite(log.directory, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a-0"]


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata"])
def test_a_malformed_file_beside_the_log_is_not_copied(tmp_path: Path, name: str) -> None:
    """A broker does not start with one."""
    log = GrowingLog(tmp_path / "a-0")
    log.append(5)
    (log.directory / name).write_text("rubbish\n")
    with pytest.raises(kbat.CorruptError, match=name):
        kbat.rewrite(log.directory, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a-0"]


@pytest.mark.parametrize("tool", ["rewrite", "filter", "compact"])
def test_aborted_transactions_are_in_the_index_of_the_segment_with_their_marker(tool: str, tmp_path: Path) -> None:
    source = DATA / "corpus" / "txn-lz4"
    out = tmp_path / "out-0"
    options: dict[str, Any] = {"max_index_bytes": 24, "index_interval_bytes": 400}
    if tool == "filter":
        kbat.filter(source, out, lambda _record: True, **options)
    elif tool == "compact":
        kbat.compact(source, out, **options)
    else:
        kbat.rewrite(source, out, compression="none", **options)
    indexes = [path for path in out.iterdir() if path.suffix == ".txnindex"]
    for index in indexes:
        log = kbat.Segment(index.with_suffix(".log"))
        markers = [batch.base_offset for batch in log.batches() if batch.is_control]
        assert {entry.last_offset for entry in kbat.TransactionIndex(index).entries} <= set(markers), index.name
    if tool != "compact":
        assert len(indexes) > len([path for path in source.iterdir() if path.suffix == ".txnindex"])
    assert [one for one in kbat.verify(out).findings if one.severity == "error"] == []


def test_segment_of_compressed_sets_is_named_after_its_first_record(tmp_path: Path) -> None:
    with kbat.LogWriter(tmp_path / "t-0") as log:
        for base in range(0, 120, 10):
            builder = kbat.BatchBuilder(1, "gzip", base_offset=base)
            for offset in range(base, base + 10):
                builder.append(None, os.urandom(600), timestamp=NOW + offset)
            log.append_batch(builder.finish(), keep_offsets=True)
    kbat.rewrite(tmp_path / "t-0", tmp_path / "out-0", compression="snappy", max_index_bytes=24)
    segments = kbat.PartitionLog(tmp_path / "out-0").segments
    assert len(segments) > 1
    for segment in segments:
        assert segment.base_offset == next(iter(next(iter(segment.batches())))).offset
    assert [one for one in kbat.verify(tmp_path / "out-0").findings if one.severity != "info"] == []
