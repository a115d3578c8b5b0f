"""The producers and transactions of partitions: the judge is the newest producer snapshot that Kafka wrote."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import CORPUS, LOG, LOG_DIR, copy_of, json_of, on_terminal, run
from data import patched, read_text

if TYPE_CHECKING:
    from pathlib import Path

CASES = [
    "compacted-empty-batches", "compacted-txn", "compacted-txn-expired", "consumer-offsets", "crash-txn/recovered",
    "idempotent", "txn-lz4", "txn-none", "txn-simple",
]  # fmt: skip
OPEN = ["crash-txn/recovered", "txn-live", "txn-lz4", "txn-none"]


def of_snapshot(path: str) -> list[dict[str, Any]]:
    """The entries of a producer snapshot in the form of `kbat.producers`."""
    return [
        {
            "producer_id": one.producer_id,
            "producer_epoch": one.producer_epoch,
            "last_sequence": one.last_sequence,
            "last_offset": one.last_offset,
            "timestamp": one.timestamp,
            "coordinator_epoch": one.coordinator_epoch,
            "transaction_start": one.current_txn_first_offset,
        }
        for one in sorted(kbat.ProducerSnapshot(path).entries, key=lambda one: one.producer_id)
    ]


def found(directory: Path) -> list[dict[str, Any]]:
    return [asdict(one) for one in kbat.producers(kbat.PartitionLog(directory))]


@pytest.mark.parametrize("case", CASES)
def test_state_at_the_end_is_that_of_kafka(case: str, tmp_path: Path) -> None:
    log = kbat.PartitionLog(CORPUS / case)
    (newest, path) = max(log.snapshots)
    assert newest == log.end_offset
    expected = of_snapshot(path)
    assert expected
    assert found(CORPUS / case) == expected
    # from the beginning, and from each older snapshot
    for kept in (None, *log.snapshots[:-1]):
        copy = tmp_path / str(kept and kept[0])
        copy_of(case, copy)
        for offset, name in kbat.PartitionLog(copy).snapshots:
            if kept is None or offset != kept[0]:
                (copy / name).unlink()
        assert found(copy) == expected


def test_damaged_snapshot_is_passed_over(tmp_path: Path) -> None:
    copy = copy_of("txn-none", tmp_path / "txn-none-0")
    expected = found(copy)
    for _, path in kbat.PartitionLog(copy).snapshots:
        data = (copy / path).read_bytes()
        (copy / path).write_bytes(patched(data, len(data) - 1, "B", data[-1] ^ 1))
    assert found(copy) == expected


@pytest.mark.parametrize("case", OPEN)
def test_open_transactions_hold_the_last_stable_offset(case: str) -> None:
    log = kbat.PartitionLog(CORPUS / case)
    starts = [one.transaction_start for one in kbat.producers(log) if one.transaction_start is not None]
    assert min(starts) == log.last_stable_offset < log.end_offset
    shown = json_of("transactions", CORPUS / case)
    assert [one["first_offset"] for one in shown["open"]] == sorted(starts)


@pytest.mark.parametrize("case", ["txn-live", "txn-lz4", "txn-none", "txn-simple"])
def test_transactions_are_those_of_a_consumer(case: str) -> None:
    """What a read_committed consumer did not get is control, in an aborted range of its producer, or open."""
    shown = json_of("transactions", CORPUS / case)
    assert shown["transactional_ids"] is None
    assert shown["aborted"]
    table = kbat.scan(CORPUS / case, columns=["offset", "producer_id"]).to_pyarrow().to_pylist()

    def is_committed(row: dict[str, int]) -> bool:
        ranges = (one for one in shown["aborted"] if one["producer_id"] == row["producer_id"])
        is_aborted = any(one["first_offset"] <= row["offset"] <= one["marker_offset"] for one in ranges)
        return not is_aborted and all(row["offset"] < one["first_offset"] for one in shown["open"])

    consumed = json.loads(read_text(CORPUS / case / "read-committed.json"))["offsets"]
    assert [row["offset"] for row in table if is_committed(row)] == consumed


def test_producers_of_a_log_directory() -> None:
    shown = json_of("producers", LOG_DIR)
    assert shown["errors"] == []
    assert {one["topic"] for one in shown["producers"]} == {"idempotent", "txn-lz4", "txn-simple"}
    text = run("producers", LOG_DIR).stdout
    assert "8 producers in 3 of 15 partitions" in text
    only = json_of("producers", LOG_DIR, "--topic", "txn-s*")["producers"]
    assert [one["topic"] for one in only] == ["txn-simple"]


def test_segment_alone_is_read_as_if_the_log_began_there() -> None:
    segment = kbat.Segment(CORPUS / "txn-simple" / LOG)
    assert [one.producer_id for one in kbat.producers(segment)] == [1011]
    shown = json_of("producers", CORPUS / "txn-simple" / LOG)["producers"]
    assert [one["producer_id"] for one in shown] == [1011]


@pytest.mark.parametrize("command", ["producers", "transactions"])
def test_command_fits_a_narrow_terminal(command: str) -> None:
    lines = on_terminal(80, command, LOG_DIR).splitlines()
    assert max(len(line) for line in lines if not line.startswith("hidden in this narrow terminal")) <= 80
    assert len(lines) > 8


@pytest.mark.parametrize("command", ["producers", "transactions"])
def test_one_damaged_partition_does_not_hide_the_others(command: str, tmp_path: Path) -> None:
    shutil.copytree(LOG_DIR / "txn-simple-0", tmp_path / "txn-simple-0")
    copy_of("txn-none", tmp_path / "broken-0")
    for path in (tmp_path / "broken-0").glob("*.snapshot"):
        path.unlink()
    data = (tmp_path / "broken-0" / LOG).read_bytes()
    (tmp_path / "broken-0" / LOG).write_bytes(patched(data, 16, "B", 9))
    done = run(command, tmp_path, "--json")
    assert done.exit_code == 1
    shown = json.loads(done.stdout)
    assert [one["path"] for one in shown["errors"]] == [str(tmp_path / "broken-0")]
    assert any(one["topic"] == "txn-simple" for one in shown["producers" if command == "producers" else "aborted"])
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["producers", "transactions", "groups", "topics"])
def test_path_that_is_not_a_log_is_refused(command: str, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no log\n" * 99)
    for path, exit_code, reason in (
        (text, 2, "text file"),
        (tmp_path / "missing", 2, "does not exist"),
        ("/dev/zero", 2, "pipe or a device"),
    ):
        done = run(command, path)
        assert (done.exit_code, done.stdout) == (exit_code, "")
        assert reason in done.stderr
        assert done.stderr.count("\n") == 1
    (tmp_path / "empty").mkdir()
    assert run(command, tmp_path / "empty").exit_code == 1
