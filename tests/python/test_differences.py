"""Differences to Kafka from docs/differences.md that other modules do not test, in the Python API."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING

import pytest

import kbat
from data import build
from partitions import DAY, NOW, Log, batches_of, rows

if TYPE_CHECKING:
    from pathlib import Path


def producers(directory: Path, offset: int) -> dict[int, int]:
    """Return the timestamps in the snapshot at an offset, by producer id."""
    snapshot = kbat.ProducerSnapshot(directory / f"{offset:020}.snapshot")
    return {entry.producer_id: entry.timestamp for entry in snapshot.entries}


def test_recover_producers_idle_for_a_day_stay_in_the_snapshots(tmp_path: Path) -> None:
    """Even one that is only in a snapshot, which a broker drops when it loads the snapshot."""
    today = time.time_ns() // 1_000_000
    idle = today - DAY - 1
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), pid=5, timestamp=idle)
    log.roll()
    log.batch((b"b", b"2"), pid=6, timestamp=today)
    log.write()
    kbat.recover(log.directory, tmp_path / "whole")
    assert producers(tmp_path / "whole", 1) == {5: idle}
    assert producers(tmp_path / "whole", 2) == {5: idle, 6: today}
    for name in (f"{0:020}.log", f"{2:020}.snapshot"):
        (tmp_path / "whole" / name).unlink()
    kbat.recover(tmp_path / "whole", tmp_path / "later")
    assert producers(tmp_path / "later", 2) == {5: idle, 6: today}


@pytest.mark.parametrize("has_index", [False, True])
def test_compact_what_was_aborted_is_what_the_markers_say(tmp_path: Path, has_index: bool) -> None:  # noqa: FBT001
    """Without a transaction index, and with one that takes the two transactions for each other."""
    log = Log(tmp_path / "t-0")
    committed = log.batch((b"a", b"1"), pid=1, transactional=True)
    aborted = log.batch((b"b", b"2"), pid=2, transactional=True)
    commit, abort = log.marker(1, "COMMIT"), log.marker(2, "ABORT")
    log.roll()
    log.write()
    if has_index:
        entry = struct.pack(">hqqqq", 0, 1, committed, commit, aborted)
        (log.directory / f"{0:020}.txnindex").write_bytes(entry)
    report = kbat.compact(log.directory, tmp_path / "out", now_ms=NOW)
    assert [row.offset for row in rows(tmp_path / "out")] == [committed]
    assert report.dropped["aborted"] == 1
    index = kbat.TransactionIndex(tmp_path / "out" / f"{0:020}.txnindex")
    assert [(entry.producer_id, entry.first_offset, entry.last_offset) for entry in index.entries] == [
        (2, aborted, abort)
    ]


@pytest.mark.parametrize("magic", [0, 1])
def test_compact_old_batch_emptied_at_the_end_leaves_a_v2_header(tmp_path: Path, magic: int) -> None:
    """A message without a key ends the log; the offset after it is still the end."""
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"), magic=magic)
    log.batch((None, b"2"), magic=magic)
    log.write()
    kbat.compact(log.directory, tmp_path / "out", include_active=True)
    assert [row.offset for row in rows(tmp_path / "out")] == [0]
    *_, last = batches_of(tmp_path / "out")
    assert (last.base_offset, last.last_offset, last.magic, last.record_count, last.size) == (1, 1, 2, 0, 61)
    assert kbat.PartitionLog(tmp_path / "out").end_offset == log.end_offset == 2


def test_validate_gives_the_first_100000_errors_of_records() -> None:
    """The message has the count of all."""
    keys = [b"good", *[None] * 100_002]
    answer = kbat.validate(build([(NOW, key, b"") for key in keys]), compacted=True, now_ms=NOW)
    assert answer.error == "INVALID_RECORD"
    assert [index for index, _ in answer.record_errors] == list(range(1, 100_001))
    assert answer.message is not None
    assert "due to 100002 record errors in total" in answer.message
