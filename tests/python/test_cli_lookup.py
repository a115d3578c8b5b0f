"""`kbat lookup`: the record, the batch and the index entries are those of a search through the complete log."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import CORPUS, LOG, LOG_DIR, copy_of, json_of, lines_of, on_terminal, run
from partitions import Log

if TYPE_CHECKING:
    from pathlib import Path

PLACE = LOG_DIR / "segments-default-interval-0"


def found(*arguments: object) -> dict[str, Any]:
    (result,) = json_of("lookup", *arguments)["results"]
    assert result["found"]
    return dict(result)


def every_record(path: Path) -> list[tuple[kbat.Segment, kbat.Batch, int, kbat.Record]]:
    return [
        (segment, batch, number, record)
        for segment in kbat.PartitionLog(path).segments
        for batch in segment.batches()
        for number, record in enumerate(batch)
    ]


@pytest.mark.parametrize("name", ["segments-default-interval-0", "compacted-0", "txn-lz4-0", "k0822-java0822-snappy-0"])
def test_an_offset_is_where_a_search_through_the_log_finds_it(name: str) -> None:
    records = every_record(LOG_DIR / name)
    last = records[-1][3].offset
    for offset in range(0, last + 1, max(1, last // 25)):
        segment, batch, number, record = next(one for one in records if one[3].offset >= offset)
        result = found(LOG_DIR / name, "--offset", offset)
        assert (result["segment"]["path"], result["batch"]["position"]) == (segment.path, batch.position)
        assert (result["record"]["offset"], result["record"]["number"]) == (record.offset, number)
        assert result["record"]["timestamp"] == (None if record.timestamp == -1 else record.timestamp)
        assert result["is_exact"] == (record.offset == offset)
        place = kbat.PartitionLog(LOG_DIR / name).find_offset(offset)
        assert place is not None
        if place.segment != segment.path:
            # the last batch of the segment before it has lost its last records
            assert name == "compacted-0"
            continue
        index = kbat.OffsetIndex(segment.files["index"])
        expected = max((entry for entry in index.entries if entry[0] <= offset), default=(segment.base_offset, 0))
        entry = result["offset_index"]
        assert (entry["offset"], entry["position"], entry["entries"]) == (*expected, len(index))
        walked = [one for one in segment.batches() if expected[1] <= one.position <= batch.position]
        assert result["scan"] == {
            "position": expected[1],
            "batches": len(walked),
            "bytes": sum(one.size for one in walked),
        }


def test_a_time_is_where_a_broker_finds_it() -> None:
    records = every_record(PLACE)
    log = kbat.PartitionLog(PLACE)
    for _, _, _, one in records[::60]:
        timestamp = one.timestamp + 1
        place = log.find_timestamp(timestamp)
        if place is None:
            continue
        segment, batch, number, record = next(row for row in records if row[3].offset == place.offset)
        result = found(PLACE, "--time", timestamp)
        assert (result["segment"]["path"], result["batch"]["position"]) == (segment.path, batch.position)
        assert (result["record"]["offset"], result["record"]["number"]) == (record.offset, number)
        assert record.timestamp >= timestamp
        entries = kbat.TimeIndex(segment.files["timeindex"]).entries
        expected = max((entry for entry in entries if entry[0] <= timestamp), default=(-1, segment.base_offset))
        entry = result["time_index"]
        assert (entry["timestamp"], entry["offset"]) == expected
        assert result["scan"]["position"] == result["offset_index"]["position"]
        assert result["offset_index"]["offset"] <= max(expected[1], segment.base_offset)


@pytest.mark.parametrize("state", ["missing", "broken"])
def test_without_a_valid_index_the_search_starts_at_the_first_batch(state: str, tmp_path: Path) -> None:
    place = copy_of("segments-default-interval", tmp_path / "t-0")
    index = place / LOG.replace(".log", ".index")
    if state == "missing":
        index.unlink()
    else:
        index.write_bytes(b"\x00\x00\x00\x7f\x7f\xff\xff\xff" * 3)
    result = found(place, "--offset", 140)
    assert (result["index"], result["offset_index"], result["scan"]["position"]) == (state, None, 0)
    assert result["record"]["offset"] == 140
    assert f"{state} index" in run("lookup", place, "--offset", 140).stdout


def test_steps_are_shown_and_the_next_command_prints_the_record() -> None:
    shown = run("lookup", PLACE, "--offset", 500).stdout
    assert shown.startswith(f"{PLACE}: segment 00000000000000000421\n")
    steps = [line.split("  ")[0] for line in shown.splitlines()]
    assert [step for step in steps if step in {"segment", "offset index", "scan", "batch", "record"}] == [
        "segment",
        "offset index",
        "scan",
        "batch",
        "record",
    ]
    (command,) = [line.removeprefix("next: kbat ") for line in shown.splitlines() if line.startswith("next: ")]
    assert '"offset": 500,' in run(*command.split()).stdout
    gap = run("lookup", LOG_DIR / "compacted-0", "--offset", 77).stdout
    assert "the offset is missing: this is the next record\n" in gap
    assert "is missing" not in run("lookup", PLACE, "--time", "2023-11-14T22:20:00Z").stdout
    assert all(len(line) <= 80 for line in on_terminal(80, "lookup", PLACE, "--offset", 500).splitlines()[1:-1])


def test_a_log_directory_has_an_answer_per_partition(tmp_path: Path) -> None:
    for name, count in (("a-0", 3), ("a-1", 1)):
        log = Log(tmp_path / name)
        log.batch(*[(b"k", b"v")] * count)
        log.write()
    results = json_of("lookup", tmp_path, "--offset", 2)["results"]
    assert [(one["topic"], one["partition"], one["found"]) for one in results] == [("a", 0, True), ("a", 1, False)]
    assert results[1]["reason"] == "it has offsets 0 to 0"
    assert len(json_of("lookup", tmp_path, "--offset", 0, "--partition", 1)["results"]) == 1
    table = run("lookup", tmp_path, "--offset", 2).stdout.splitlines()
    assert [line.split()[:3] for line in table if line.startswith("a ")] == [["a", "0", "2"], ["a", "1", "-"]]
    assert all(len(line) <= 80 for line in on_terminal(80, "lookup", tmp_path, "--offset", 2).splitlines()[1:5])
    (tmp_path / "a-1" / LOG).write_bytes(b"\xff" * 300)
    done = run("lookup", tmp_path, "--offset", 2)
    assert done.exit_code == 1
    assert len([line for line in done.stdout.splitlines() if line.startswith("a ")]) == 2
    assert done.stderr.count("\n") == 1
    assert str(tmp_path / "a-1") in done.stderr


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = run("lookup", PLACE, "--offset", 99_999)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"kbat: offset 99999 was not found: {PLACE}: it has offsets 0 to 1099\n"
    done = run("lookup", PLACE, "--time", "2030-01-01T00:00:00Z")
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"no record at or after 2030-01-01 00:00:00.000Z: {PLACE}: its largest timestamp is 2023-" in done.stderr
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / LOG).touch()
    assert "it has no records" in run("lookup", tmp_path / "t-0", "--offset", 0).stderr
    for options in ((), ("--offset", 1, "--time", 1)):
        wrong = run("lookup", PLACE, *options)
        assert (wrong.exit_code, wrong.stderr) == (2, "kbat: choose one of --offset NUMBER and --time TIME\n")


def test_corruption_on_the_way_is_named(tmp_path: Path) -> None:
    place = tmp_path / "t-0"
    shutil.copytree(CORPUS / "crash-flip", place)
    done = run("lookup", place, "--offset", 100)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "checksum mismatch" in done.stderr
    assert f"'kbat verify {place}' lists all corruption" in done.stderr


def test_time_that_an_empty_segment_hides_from_a_broker_is_found_by_cat() -> None:
    place = CORPUS / "compacted"
    done = run("lookup", place, "--time", 0)
    assert (done.exit_code, done.stdout) == (1, "")
    assert kbat.PartitionLog(place).find_timestamp(0) is None
    assert "no record at or after 1970-01-01 00:00:00.000Z" in done.stderr
    command = done.stderr.split("'")[1].replace("PATH", str(place)).split()
    assert [line["offset"] for line in lines_of(*command[2:])] == [347]
