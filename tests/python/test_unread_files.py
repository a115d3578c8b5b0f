"""Directories and inputs that read as less than they contain, or whose repair would delete intact records."""

from __future__ import annotations

import functools
import gzip
import os
import shutil
import struct
from typing import TYPE_CHECKING

import pytest

import kbat
from data import DATA

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEGMENTS = DATA / "log-dir" / "segments-default-interval-0"
TRANSACTIONS = DATA / "corpus" / "txn-lz4"
ENTRY = ">Hqqqq"


def copy(source: Path, target: Path) -> Path:
    return shutil.copytree(source, target)


def logs(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in logs(directory)}


def damage_first_batch(directory: Path) -> None:
    path = logs(directory)[0]
    data = bytearray(path.read_bytes())
    data[100] ^= 0xFF
    path.write_bytes(data)


def write_text(directory: Path) -> None:
    logs(directory)[3].write_text("hello\n" * 1000)


@pytest.mark.parametrize(
    ("damage", "message"),
    [(damage_first_batch, "nothing to keep"), (write_text, "not a Kafka log segment: the file is a text file")],
)
def test_recover_in_place_does_not_delete_intact_batches(
    tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    place = copy(SEGMENTS, tmp_path / "orders-0")
    damage(place)
    before = contents(place)
    with pytest.raises((kbat.CorruptError, ValueError), match=message):
        kbat.recover(place, in_place=True)
    assert contents(place) == before
    kept = kbat.salvage(place, tmp_path / "salvaged")
    assert sum(segment.batch_count for segment in kept.segments) > 0


def hide_as_swap(path: Path) -> None:
    path.rename(f"{path}.swap")


def hide_as_gzip(path: Path) -> None:
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


@pytest.mark.parametrize("hide", [hide_as_swap, hide_as_gzip])
def test_lookups_refuse_a_directory_with_an_unread_segment(tmp_path: Path, hide: Callable[[Path], None]) -> None:
    place = copy(SEGMENTS, tmp_path / "orders-0")
    hidden = logs(place)[2]
    offset = int(hidden.stem)
    hide(hidden)
    log = kbat.PartitionLog(place)
    assert len(log.segments) == len(logs(SEGMENTS)) - 1
    answers: list[Callable[[], object]] = [
        lambda: log.find_offset(offset),
        lambda: log.find_timestamp(0),
        lambda: log.find_timestamp(kbat.MAX_TIMESTAMP),
        lambda: log.end_offset,
        lambda: log.last_stable_offset,
        lambda: kbat.LogDirectory(tmp_path).end_offsets(),
        lambda: kbat.rebuild_indexes(place),
    ]
    for answer in answers:
        with pytest.raises(kbat.CorruptError, match="would miss its records"):
            answer()


def test_writer_refuses_a_compressed_segment(tmp_path: Path) -> None:
    place = copy(SEGMENTS, tmp_path / "orders-0")
    hide_as_gzip(logs(place)[-1])
    with pytest.raises(kbat.CorruptError, match="this segment is compressed"):
        kbat.LogWriter(place)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_repairs_refuse_what_is_no_file(tmp_path: Path, make: Callable[[Path], None]) -> None:
    place = copy(SEGMENTS, tmp_path / "orders-0")
    make(place / "00000000000000009999.log")
    repairs: list[Callable[[], object]] = [
        lambda: kbat.recover(place, tmp_path / "out"),
        lambda: kbat.recover(place, in_place=True),
        lambda: kbat.salvage(place, tmp_path / "out"),
        lambda: kbat.rebuild_indexes(place),
        lambda: kbat.LogWriter(place),
    ]
    for repair in repairs:
        with pytest.raises(kbat.CorruptError, match="has the name of a segment: move it away"):
            repair()
    assert not (tmp_path / "out").exists()


def test_restore_refuses_a_partition_on_a_missing_disk(tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    copy(SEGMENTS, backup / "orders-0")
    (backup / "payments-0").symlink_to(tmp_path / "missing")
    for is_dry in (True, False):
        with pytest.raises(FileNotFoundError, match="payments-0"):
            kbat.restore(backup, tmp_path / "out", dry_run=is_dry)
    assert not (tmp_path / "out").exists()
    report = kbat.restore(backup, tmp_path / "out", topics=["orders"])
    assert [one.topic for one in report.partitions] == ["orders"]


def test_writer_refuses_a_log_that_ends_before_its_start(tmp_path: Path) -> None:
    with kbat.LogWriter(tmp_path / "orders-0") as writer:
        writer.append(None, b"value", timestamp=0)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 500\n")
    with pytest.raises(kbat.CorruptError, match="ends at offset 1, but log-start-offset-checkpoint"):
        kbat.LogWriter(tmp_path / "orders-0")
    shutil.rmtree(tmp_path / "orders-0")
    with pytest.raises(kbat.CorruptError, match="starts at 500: a broker would delete"):
        kbat.LogWriter(tmp_path / "orders-0")
    with kbat.LogWriter(tmp_path / "orders-0", start_offset=500) as writer:
        assert writer.append(None, b"value", timestamp=0) == 500


@pytest.mark.parametrize(("field", "value"), [(1, 5), (2, 10**6)])
@pytest.mark.parametrize("tool", ["rewrite", "compact"])
def test_markers_count_and_not_a_wrong_transaction_index(tmp_path: Path, tool: str, field: int, value: int) -> None:
    """Fields 1 and 2 of an entry are the producer id and the first offset."""
    place = copy(TRANSACTIONS, tmp_path / "txn-0")
    indexes = sorted(place.glob("*.txnindex"))
    assert indexes
    for index in indexes:
        data = bytearray(index.read_bytes())
        for position in range(0, len(data), struct.calcsize(ENTRY)):
            entry = list(struct.unpack_from(ENTRY, data, position))
            entry[field] = value
            struct.pack_into(ENTRY, data, position, *entry)
        index.write_bytes(data)
    rewrite = kbat.rewrite if tool == "rewrite" else functools.partial(kbat.compact, include_active=True)
    rewrite(place, tmp_path / "out-0")
    rewrite(TRANSACTIONS, tmp_path / "expected-0")
    found, expected = (
        {path.name: path.read_bytes() for path in (tmp_path / name).glob("*.txnindex")}
        for name in ("out-0", "expected-0")
    )
    assert expected
    assert found == expected


def test_hole_after_corruption_is_not_read(tmp_path: Path) -> None:
    place = tmp_path / "orders-0"
    with kbat.LogWriter(place) as writer:
        writer.append(None, b"value", timestamp=0)
    (path,) = logs(place)
    with path.open("ab") as file:
        file.write(b"garbage" * 10)
        file.truncate(1 << 40)
    assert kbat.scan(place, on_corrupt="skip").count() == 1
    assert not kbat.verify(place).ok
    kept = kbat.salvage(place, tmp_path / "out")
    assert [segment.batch_count for segment in kept.segments] == [1]


@pytest.mark.parametrize("repair", [kbat.recover, kbat.salvage])
def test_huge_file_beside_the_log_is_not_copied(
    tmp_path: Path, repair: Callable[[Path, Path], kbat.results.RepairReport]
) -> None:
    place = copy(SEGMENTS, tmp_path / "orders-0")
    with (place / "backup.tar").open("wb") as file:
        file.truncate(1 << 40)
    (place / "notes.txt").write_text("kept")
    report = repair(place, tmp_path / "out")
    assert ("backup.tar", "deleted") in report.files
    assert (tmp_path / "out" / "notes.txt").read_text() == "kept"
    assert not (tmp_path / "out" / "backup.tar").exists()


def test_parquet_needs_the_name_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="name a file, or set partition_by"):
        kbat.write_parquet(kbat.scan(SEGMENTS), tmp_path)
