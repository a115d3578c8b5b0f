"""Micro-batches of logs to which a broker writes, or which it deletes, while they are planned."""

from __future__ import annotations

import json
import shutil
import threading
import time
import warnings
from typing import TYPE_CHECKING, Literal

import pytest

from growing_log import GrowingLog
from kbat._core import plan
from kbat.spark.options import parse_options

if TYPE_CHECKING:
    from pathlib import Path


def stream(path: Path, **given: str) -> plan.Stream:
    columns = ["topic", "partition", "offset", *(["error"] if given.get("onCorrupt") == "report" else [])]
    return plan.Stream(parse_options({"path": str(path), "startingOffsets": "earliest"} | given), columns)


def offsets(source: plan.Stream, start: str, end: str) -> list[int | str]:
    """Return the offsets of a micro-batch, and the kind of each corruption."""
    parts = [part for task in source.plan(start, end) for part in plan.TaskReader(task)]
    rows = [row for part in parts for row in part.to_pylist()]
    return [row["error"]["kind"] if row.get("error") else row["offset"] for row in rows]


@pytest.mark.parametrize("on_corrupt", ["fail", "skip", "report"])
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("written", [40, 100, 150])
def test_a_batch_that_is_being_written_to_a_preallocated_file_is_read_later(
    tmp_path: Path, on_corrupt: Literal["fail", "skip", "report"], isolation: str, written: int
) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(10)
    content = log.segment.read_bytes()
    batch = log.batch(10)
    assert len(batch) > 150
    log.segment.write_bytes(content + batch[:written] + bytes(10_000))
    source = stream(tmp_path, onCorrupt=on_corrupt, isolationLevel=isolation)
    start = source.initial_offset()
    end = source.latest_offset(start)
    assert json.loads(end) == {"a": {"0": 10}}
    assert offsets(source, start, end) == list(range(10))
    log.segment.write_bytes(content + batch + bytes(10_000))
    later = source.latest_offset(end)
    assert offsets(source, end, later) == list(range(10, 20))


def test_a_corrupt_last_batch_is_counted_when_the_log_continues(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(10)
    content = log.segment.read_bytes()
    batch = bytearray(log.batch(10))
    batch[-3] ^= 1
    log.end_offset += 10
    log.segment.write_bytes(content + batch + bytes(10_000))
    source = stream(tmp_path, onCorrupt="report")
    start = source.initial_offset()
    end = source.latest_offset(start)
    assert json.loads(end) == {"a": {"0": 10}}
    log.segment.write_bytes(content + batch + log.batch(5) + bytes(10_000))
    later = source.latest_offset(end)
    assert [*offsets(source, start, end), *offsets(source, end, later)] == [*range(10), "crc", *range(20, 25)]


def test_a_partition_that_is_gone_is_named_once(tmp_path: Path) -> None:
    for name in ("a-0", "b-0"):
        GrowingLog(tmp_path / name).append(3)
    source = stream(tmp_path, failOnDataLoss="false")
    start = source.latest_offset(source.initial_offset())

    def warned() -> int:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            source.latest_offset(start)
        return len(found)

    shutil.move(tmp_path / "b-0", tmp_path / "kept")
    assert [warned() for _ in range(3)] == [1, 0, 0]
    shutil.move(tmp_path / "kept", tmp_path / "b-0")
    with pytest.warns(UserWarning, match="b-0 can be read again; the query continues at the offset"):
        source.latest_offset(start)
    assert warned() == 0
    shutil.rmtree(tmp_path / "b-0")
    assert warned() == 1
    failing = stream(tmp_path)
    for _ in range(2):
        with pytest.raises(ValueError, match="b-0 no longer exists"):
            failing.latest_offset(start)


@pytest.mark.filterwarnings("ignore:kbat. gone-:UserWarning")
@pytest.mark.parametrize("round_number", range(3))
def test_a_topic_may_be_deleted_while_its_ends_are_determined(tmp_path: Path, round_number: int) -> None:
    for number in range(60):
        GrowingLog(tmp_path / f"keep-{number}").append(round_number + 1)
    for number in range(20):
        GrowingLog(tmp_path / f"gone-{number}").append(3)
    source = stream(tmp_path, failOnDataLoss="false")
    start = source.latest_offset(source.initial_offset())
    names = sorted(tmp_path.glob("gone-*"))

    def delete() -> None:
        # as a broker: one directory after the other
        for number, directory in enumerate(names):
            directory.rename(tmp_path / f"{directory.name}.{number:032x}-delete")
            time.sleep(0.002)

    thread = threading.Thread(target=delete)
    thread.start()
    while thread.is_alive():
        source.latest_offset(start)
    thread.join()
    assert json.loads(source.latest_offset(start)) == json.loads(start)
    assert len(list(tmp_path.iterdir())) == 80
