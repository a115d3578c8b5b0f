"""kbat.verify names what is lost without a trace in the logs that remain."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import kbat
from data import DATA

if TYPE_CHECKING:
    from pathlib import Path

LOG = f"{0:020}.log"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """The log directory of the examples, with checkpoints of its partitions only."""
    path = tmp_path / "logs"
    shutil.copytree(DATA / "log-dir", path)
    for checkpoint in path.glob("*-offset-checkpoint"):
        version, _, *lines = checkpoint.read_text().splitlines()
        kept = [line for line in lines if (path / "-".join(line.split()[:2])).is_dir()]
        checkpoint.write_text("\n".join([version, str(len(kept)), *kept, ""]))
    return path


def findings(path: Path, kind: str) -> list[tuple[str, str, int | None]]:
    return [(one.severity, one.message, one.offset) for one in kbat.verify(path).findings if one.kind == kind]


def test_a_partition_without_its_directory_is_named(logs: Path) -> None:
    assert findings(logs, "partition_missing") == []
    shutil.rmtree(logs / "txn-simple-0")
    shutil.move(logs / "codec-lz4-0", logs / f"codec-lz4-0.{0:032x}-delete")
    [(severity, message, _)] = findings(logs, "partition_missing")
    assert (severity, message.partition(";")[0]) == ("info", "these partitions have no directory: txn-simple-0")


def test_a_partition_that_lost_all_segments_ends_before_its_checkpoints(logs: Path) -> None:
    before = findings(logs, "checkpoint_beyond_end")
    for path in (logs / "idempotent-0").iterdir():
        path.unlink()
    added = [one for one in findings(logs, "checkpoint_beyond_end") if one not in before]
    assert {(severity, offset) for severity, _, offset in added} == {("warning", 127)}
    assert all(message.startswith("the log of idempotent-0 ends at offset 0") for _, message, _ in added)


def test_zeros_to_which_an_index_points_are_an_error(logs: Path) -> None:
    log = logs / "codec-gzip-0" / LOG
    size = log.stat().st_size
    with log.open("ab") as file:
        file.truncate(size + 10_000)
    assert [one[0] for one in findings(log.parent, "zero_tail")] == ["info"]
    log.write_bytes(bytes(size))
    [(severity, message, _)] = findings(log.parent, "zero_tail")
    assert severity == "error"
    assert message.endswith("but the index points to batches there: they are lost")


@pytest.mark.parametrize(("is_last", "severity"), [(True, "info"), (False, "warning")])
def test_an_empty_last_segment_needs_no_index(tmp_path: Path, *, is_last: bool, severity: str) -> None:
    place = tmp_path / "a-0"
    with kbat.LogWriter(place) as log:
        log.append(None, b"1", timestamp=0)
    empty = place / (f"{1:020}.log" if is_last else f"{0:020}.log")
    empty.write_bytes(b"")
    empty.with_suffix(".index").unlink(missing_ok=True)
    if not is_last:
        (place / f"{1:020}.log").write_bytes(b"")
    found = [one for one in findings(place, "index_missing") if one[0] == "warning"]
    assert len(found) == (severity == "warning")
    assert severity in {one[0] for one in findings(place, "index_missing")}
