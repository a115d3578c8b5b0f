"""Scans of a directory in which a segment has offsets of the next one, and segments that lost their end."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import kbat
from command_line import run
from data import DATA

if TYPE_CHECKING:
    from pathlib import Path

SEGMENTS = DATA / "log-dir" / "segments-default-interval-0"
NOTE = "records may be repeated: a segment contains offsets of the next one"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return shutil.copytree(SEGMENTS, tmp_path / "orders-0")


def repeat_segment(log: Path) -> int:
    """Append the second segment to the first. Return its number of records."""
    first, second, *_ = sorted(log.glob("*.log"))
    count = kbat.scan(second).count()
    first.write_bytes(first.read_bytes() + second.read_bytes())
    return count


@pytest.mark.parametrize("threads", [1, 2])
def test_repeated_records_are_reported(log: Path, threads: int) -> None:
    expected = kbat.scan(log).count() + repeat_segment(log)
    scan = kbat.scan(log)
    assert sum(batch.num_rows for batch in scan.to_batches(threads=threads)) == expected
    assert scan.stats is not None
    assert scan.stats.segments_overlapping == 1
    assert "segments_overlapping=1" in repr(scan.stats)


def test_parts_of_a_segment_report_it(log: Path) -> None:
    repeat_segment(log)
    parts = kbat.split(log, max_bytes=5_000)
    assert len(parts) > len(list(log.glob("*.log")))
    scan = kbat.scan(parts)
    list(scan.to_batches())
    assert scan.stats is not None
    assert scan.stats.segments_overlapping > 0


def test_range_that_ends_before_has_no_repeated_records(log: Path) -> None:
    first = int(sorted(log.glob("*.log"))[1].stem)
    repeat_segment(log)
    scan = kbat.scan(log, end_offset=first)
    assert sum(batch.num_rows for batch in scan.to_batches()) == first
    assert scan.stats is not None
    assert scan.stats.segments_overlapping == 0


@pytest.mark.parametrize("command", [("cat",), ("export",)])
def test_commands_note_repeated_records(log: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    out = [tmp_path / "out.parquet"] if command == ("export",) else []
    assert NOTE not in run(*command, log, *out).stderr
    repeat_segment(log)
    for path in out:
        path.unlink()
    done = run(*command, log, *out)
    assert (done.exit_code, NOTE in done.stderr) == (0, True)


@pytest.mark.parametrize("left", [3, 0])
def test_verify_names_a_segment_that_lost_its_end(log: Path, left: int) -> None:
    """The offset index is all that shows it, so rebuilding that is not advised."""
    _, second, *_ = sorted(log.glob("*.log"))
    with second.open("r+b") as file:
        file.truncate([batch.position for batch in kbat.read_batches(second)][left])
    report = kbat.verify(log)
    errors = {finding.kind: finding for finding in report.findings if finding.severity == "error"}
    assert list(errors) == ["segment_end_missing"]
    assert errors["segment_end_missing"].path == str(second)
    assert "copy the segment again from a replica or a backup" in errors["segment_end_missing"].message


def test_last_segment_may_be_shorter_than_its_index(log: Path) -> None:
    """A crash may lose batches that were not flushed, and keep their index entries."""
    last = max(log.glob("*.log"))
    with last.open("r+b") as file:
        file.truncate([batch.position for batch in kbat.read_batches(last)][3])
    kinds = {finding.kind for finding in kbat.verify(log).findings if finding.severity == "error"}
    assert "index_position" in kinds
    assert "segment_end_missing" not in kinds
