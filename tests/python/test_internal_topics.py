"""`kbat.topics` and `kbat topics`, if snapshots of `__cluster_metadata` are incomplete."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import kbat
from command_line import CORPUS, LOG, json_of, run

if TYPE_CHECKING:
    from pathlib import Path

CASE = CORPUS / "cluster-metadata"
OLDER = "00000000000000000167-0000000002.checkpoint"
NEWEST = "00000000000000000564-0000000002.checkpoint"
INCOMPLETE = "is incomplete: its last record is not a snapshot footer"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A partition with a log and two snapshots."""
    path = tmp_path / "__cluster_metadata-0"
    path.mkdir()
    for name in (LOG, OLDER, NEWEST):
        shutil.copy(CASE / name, path)
    return path


def lengths(snapshot: bytes) -> list[int]:
    """Lengths of a snapshot that was truncated between and within its batches."""
    ends = [0]
    while ends[-1] < len(snapshot):
        ends.append(ends[-1] + 12 + int.from_bytes(snapshot[ends[-1] + 8 :][:4]))
    return sorted({*ends[:-1], *(end - 7 for end in ends[1:]), 40})


def test_incomplete_snapshot_is_replaced_by_the_log(directory: Path) -> None:
    whole = kbat.topics(CASE / LOG).to_pylist()
    snapshot = (directory / NEWEST).read_bytes()
    assert len(lengths(snapshot)) > 5
    for length in lengths(snapshot):
        (directory / NEWEST).write_bytes(snapshot[:length])
        with pytest.warns(UserWarning, match=f"{NEWEST} {INCOMPLETE}; the topics are those of .*{OLDER} and the log"):
            assert kbat.topics(directory).to_pylist() == whole
    (directory / OLDER).write_bytes((directory / OLDER).read_bytes()[:-1])
    with pytest.warns(UserWarning, match="the topics are those of the whole log") as caught:
        assert kbat.topics(directory.parent).to_pylist() == whole
    assert [str(one.message).partition(" ")[0].rpartition("/")[2] for one in caught] == [NEWEST, OLDER]


def test_incomplete_snapshot_that_the_log_does_not_replace_is_an_error(directory: Path) -> None:
    with (directory / NEWEST).open("r+b") as file:
        file.truncate(500)
    data = (directory / LOG).read_bytes()
    refused = f"{NEWEST} {INCOMPLETE}, and the log does not have all records up to offset 564; copy the directory again"
    # the log ends before the snapshot, or does not exist
    for rest in (data[: len(data) // 2], b""):
        (directory / LOG).write_bytes(rest)
        with pytest.raises(ValueError, match=refused):
            kbat.topics(directory)
    (directory / LOG).unlink()
    with pytest.raises(ValueError, match=refused):
        kbat.topics(directory)
    # the log begins after the older snapshot
    shutil.copy(CASE / LOG, directory / "00000000000000000200.log")
    with pytest.raises(ValueError, match=refused):
        kbat.topics(directory)
    done = run("topics", directory)
    assert (done.exit_code, done.stdout) == (2, "")
    assert refused in done.stderr


def test_incomplete_snapshot_as_the_source_is_an_error(tmp_path: Path) -> None:
    snapshot = (CASE / NEWEST).read_bytes()
    for name in (NEWEST, "snapshot.copy"):
        path = tmp_path / name
        path.write_bytes(snapshot[:-1])
        with pytest.raises(ValueError, match=f"{path} {INCOMPLETE}; copy the file again"):
            kbat.topics(path)
        path.write_bytes(snapshot)
    assert kbat.topics(tmp_path / NEWEST).num_rows > 3
    (tmp_path / NEWEST).write_bytes(b"")
    with pytest.raises(ValueError, match=INCOMPLETE):
        kbat.topics(tmp_path / NEWEST)


def test_command_shows_the_incomplete_snapshot(directory: Path) -> None:
    expected = json_of("topics", directory)["topics"]
    (directory / NEWEST).write_bytes(b"")
    done = run("topics", directory)
    assert done.exit_code == 0
    assert done.stderr.startswith(f"kbat: warning: {directory / NEWEST} {INCOMPLETE}; the topics are those of ")
    assert json_of("topics", directory)["topics"] == expected


def test_end_offset_selects_the_snapshot(directory: Path) -> None:
    for end in (100, 167, 300, 564, 565):
        expected = kbat.topics(CASE / LOG, end_offset=end).to_pylist()
        assert kbat.topics(directory, end_offset=end).to_pylist() == expected
    with pytest.raises(ValueError, match=r"end_offset selects records of a log, and .* is a snapshot"):
        kbat.topics(directory / NEWEST, end_offset=10)


def test_bounds_without_a_beginning_are_refused() -> None:
    for name, value in (("start_offset", 5), ("start_timestamp", 5), ("end_timestamp", 5), ("columns", ["key"])):
        with pytest.raises(TypeError, match=rf"kbat.topics\(\) does not accept the argument '{name}' of kbat.scan"):
            kbat.topics(CASE / LOG, **{name: value})
