"""`kbat ls`, and the incomplete batch at the end of a log, which the listing commands report."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import kbat
from command_line import LOG, LOG_DIR, copy_of, json_of, run
from kbat.cli import output

if TYPE_CHECKING:
    from pathlib import Path

# Message format 0 has no timestamps.
NO_TIMES = "k0822-java0822-snappy"


def test_ls_of_a_log_directory_is_that_of_the_api() -> None:
    directory = kbat.LogDirectory(LOG_DIR)
    found = json_of("ls", LOG_DIR)
    assert (found["kind"], found["is_clean_shutdown"], found["stray"]) == ("log_directory", True, [])
    assert len(found["partitions"]) == len(directory.partitions) == 15
    table = run("ls", LOG_DIR).stdout
    for row, log in zip(found["partitions"], directory.partitions, strict=True):
        largest = max(segment.largest_timestamp for segment in log.segments)
        assert row == {
            "topic": log.topic,
            "partition": log.partition,
            "path": log.directory,
            "segments": len(log.segments),
            "bytes": sum(segment.size for segment in log.segments),
            "start_offset": log.start_offset,
            "end_offset": log.end_offset,
            "last_stable_offset": log.last_stable_offset,
            "incomplete_bytes": 0,
            "largest_timestamp": None if log.topic == NO_TIMES else largest,
            "error": None,
        }
        (line,) = [line for line in table.splitlines() if line.split()[:1] == [log.topic]]
        assert output.size_text(row["bytes"]) in line
        assert output.time_text(row["largest_timestamp"]) in line
    (open_transaction,) = [row for row in found["partitions"] if row["topic"] == "txn-lz4"]
    assert (open_transaction["last_stable_offset"], open_transaction["end_offset"]) == (263, 374)


def test_ls_of_a_partition_and_of_a_segment_shows_segments(tmp_path: Path) -> None:
    place = copy_of("crash-torn", tmp_path / "topic-7")
    (place / f"{LOG}.deleted").touch()
    log = kbat.PartitionLog(place)
    found = json_of("ls", place)
    assert (found["kind"], found["topic"], found["partition"]) == ("partition", "topic", 7)
    assert (found["start_offset"], found["end_offset"], found["last_stable_offset"]) == (0, 160, 160)
    assert [row["base_offset"] for row in found["segments"]] == [0, 69, 124]
    assert [row["bytes"] for row in found["segments"]] == [segment.size for segment in log.segments]
    assert [row["incomplete_bytes"] for row in found["segments"]] == [0, 0, 1775]
    assert found["leftovers"] == log.leftovers
    assert len(found["leftovers"]) == 1
    text = run("ls", place).stdout
    assert "leftover of a broker: " in text
    assert "2023-11-14 22:20:04.149Z" in text
    (single,) = json_of("ls", place / LOG)["segments"]
    assert (single["base_offset"], single["end_offset"]) == (0, 69)
    assert single["files"] == sorted(log.segments[0].files)


def test_ls_names_what_it_can_not_read_after_the_rest(tmp_path: Path) -> None:
    copy_of("codec-lz4", tmp_path / "good-0")
    (tmp_path / "bad-0").mkdir()
    (tmp_path / "bad-0" / LOG).mkdir()
    found = json_of("ls", tmp_path, exit_code=1)
    assert [row["topic"] for row in found["partitions"] if row["error"] is None] == ["good"]
    done = run("ls", tmp_path)
    assert "good" in done.stdout
    assert str(tmp_path / "bad-0") in done.stderr
    assert done.stderr.count("\n") == 1


def test_ls_of_a_partition_shows_the_segments_beside_one_it_can_not_read(tmp_path: Path) -> None:
    place = copy_of("crash-torn", tmp_path / "topic-0")
    (place / f"{69:020}.log").write_text("this is a text file, not a log\n" * 10)
    found = json_of("ls", place, exit_code=1)
    assert [row["end_offset"] for row in found["segments"]] == [69, None, 160]
    assert [row["largest_timestamp"] is None for row in found["segments"]] == [False, True, False]
    assert [row["error"] is None for row in found["segments"]] == [True, False, True]
    assert (found["end_offset"], found["error"]) == (160, None)
    done = run("ls", place)
    assert done.exit_code == 1
    (line,) = [line for line in done.stdout.splitlines() if line.split()[:1] == ["69"]]
    assert line.split()[1:] == ["?", "310", "B", "?", "index", "log", "snapshot", "timeindex"]
    assert "start offset 0, end offset 160, last stable 160" in done.stdout
    message = found["segments"][1]["error"]
    incomplete, failed = done.stderr.splitlines()
    assert incomplete == "kbat: not counted: 1.7 KiB after the last complete batch; 'kbat verify' lists it"
    assert failed == f"kbat: {message}; 'kbat verify {place}' has the details"
    (place / f"{124:020}.log").write_text("nor is this\n" * 10)
    found = json_of("ls", place, exit_code=1)
    assert (found["start_offset"], found["end_offset"]) == (0, None)
    assert found["error"] == found["segments"][2]["error"]
    assert "start offset 0, end offset ?, last stable ?" in run("ls", place).stdout
    (place / LOG.replace(".log", ".timeindex")).unlink()
    (place / LOG.replace(".log", ".timeindex")).mkdir()
    (segment,) = json_of("ls", place / LOG, exit_code=1)["segments"]
    assert (segment["end_offset"], segment["largest_timestamp"]) == (69, None)


@pytest.mark.parametrize("command", ["ls", "producers", "transactions"])
def test_an_incomplete_last_batch_is_reported(tmp_path: Path, command: str) -> None:
    place = copy_of("segments-index-0", tmp_path / "topic-0")
    last = place / f"{243:020}.log"
    *_, batch = kbat.Segment(last).batches()
    assert run(command, tmp_path).stderr == ""
    os.truncate(last, last.stat().st_size - 20)
    left = batch.size - 20
    for path in (tmp_path, place, last):
        done = run(command, path)
        assert done.exit_code == 0
        assert done.stderr == f"kbat: not counted: {left} B after the last complete batch; 'kbat verify' lists it\n"
    with last.open("r+b") as file:
        file.truncate(last.stat().st_size - left)
        file.truncate(last.stat().st_size + 4096)  # as in a preallocated file
    assert run(command, tmp_path).stderr == ""


def test_ls_has_the_bytes_of_an_incomplete_batch(tmp_path: Path) -> None:
    place = copy_of("segments-index-0", tmp_path / "topic-0")
    last = place / f"{243:020}.log"
    size, end = last.stat().st_size, kbat.Segment(last).end_offset
    batch = kbat.encode(pa.table({"value": [b"a" * 100]}), timestamp=1)
    with last.open("ab") as file:
        file.write(end.to_bytes(8, "big") + batch[8:99])
    assert kbat.Segment(last).incomplete_bytes == 99
    assert [row["incomplete_bytes"] for row in json_of("ls", place)["segments"]] == [0, 0, 0, 0, 99]
    (row,) = json_of("ls", tmp_path)["partitions"]
    assert (row["incomplete_bytes"], row["end_offset"]) == (99, end)
    os.truncate(last, size)
    assert kbat.Segment(last).incomplete_bytes == 0
