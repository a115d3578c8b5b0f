"""`kbat transactions`: transactional ids of damaged partitions, and of partitions that options do not select."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import CORPUS, LOG, json_of, run
from data import build, patched

if TYPE_CHECKING:
    from pathlib import Path

ID = "waiting"


def state(transactional_id: str, producer_id: int) -> bytes:
    """A batch with a TransactionLogValue of version 0, in the state Empty."""
    key = b"\0\0" + len(transactional_id).to_bytes(2) + transactional_id.encode()
    value = b"\0\0" + producer_id.to_bytes(8) + b"\0\1" + (60_000).to_bytes(4) + b"\0" + b"\0\0\0\0" + bytes(16)
    return build([(0, key, value)])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A log directory with an open transaction, and two partitions of `__transaction_state`."""
    shutil.copytree(CORPUS / "transaction-state", tmp_path / "__transaction_state-0")
    shutil.copytree(CORPUS / "txn-live", tmp_path / "txn-live-0")
    producer_id = json_of("transactions", tmp_path / "txn-live-0")["open"][0]["producer_id"]
    (tmp_path / "__transaction_state-1").mkdir()
    (tmp_path / "__transaction_state-1" / LOG).write_bytes(state(ID, producer_id))
    return tmp_path


def damage(directory: Path) -> str:
    """Damage the first partition of the states, and return its directory."""
    path = directory / "__transaction_state-0"
    data = (path / LOG).read_bytes()
    (path / LOG).write_bytes(patched(data, 80, "B", data[80] ^ 1))
    return str(path)


def ids(shown: dict[str, Any]) -> list[str]:
    return [one["transactional_id"] for one in shown["transactional_ids"]]


def test_damaged_states_do_not_hide_transactions(directory: Path) -> None:
    whole = json_of("transactions", directory)
    assert ID in ids(whole)
    assert len(ids(whole)) > 3
    assert ID in {one["transactional_id"] for one in whole["open"]}
    damaged = damage(directory)
    done = run("transactions", directory, "--json")
    shown = json.loads(done.stdout)
    assert done.exit_code == 1
    assert [one["path"] for one in shown["errors"]] == [damaged]
    assert "checksum mismatch" in done.stderr
    assert done.stderr.count("\n") == 1
    # ids of other partitions are known
    assert ids(shown) == [ID]
    names = [ID if one["transactional_id"] == ID else None for one in whole["open"]]
    opened = [{**one, "transactional_id": name} for one, name in zip(whole["open"], names, strict=True)]
    assert (shown["open"], shown["aborted"]) == (opened, whole["aborted"])
    assert f"{len(whole['open'])} open, {len(whole['aborted'])} aborted" in run("transactions", directory).stdout
    shutil.rmtree(directory / "__transaction_state-1")
    shown = json_of("transactions", directory, exit_code=1)
    assert shown["transactional_ids"] is None
    assert [one["first_offset"] for one in shown["open"]] == [one["first_offset"] for one in whole["open"]]


@pytest.mark.parametrize("options", [("--topic", "txn-live"), ("--topic", "txn-*", "--partition", "0")])
def test_selected_partitions_keep_the_transactional_ids(options: tuple[str, ...], directory: Path) -> None:
    whole = json_of("transactions", directory)
    shown = json_of("transactions", directory, *options)
    assert shown["transactional_ids"] == whole["transactional_ids"]
    assert shown["open"] == [one for one in whole["open"] if one["topic"] == "txn-live"]
    assert ID in {one["transactional_id"] for one in shown["open"]}
    for path in (directory / "__transaction_state-1", f"{directory}/__transaction_state-1/"):
        assert ids(json_of("transactions", path, "--partition", "1")) == [ID]
    damage(directory)
    assert ids(json_of("transactions", directory, *options, exit_code=1)) == [ID]
    for partition in (0, 1):
        shutil.rmtree(directory / f"__transaction_state-{partition}")
    assert json_of("transactions", directory, *options)["transactional_ids"] is None


def test_corruption_that_is_skipped_is_a_warning(directory: Path) -> None:
    damage(directory)
    with pytest.warns(UserWarning, match="^transactional ids may be missing or old: skipped 1 corrupt range"):
        assert kbat.transactional_ids(directory, on_corrupt="skip").num_rows > 3
