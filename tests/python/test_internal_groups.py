"""`kbat.consumer_offsets`, `consumer_groups` and `kbat groups`: transactions, corruption, lags and selections."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import CORPUS, LOG, json_of, run
from data import build, patched

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_700_000_000_000
Commits = dict[str, int | None]


def key(group: str, topic: str = "orders") -> bytes:
    """An OffsetCommitKey of version 1, of partition 0."""
    texts = (len(text).to_bytes(2) + text.encode() for text in (group, topic))
    return b"\0\1" + b"".join(texts) + (0).to_bytes(4)


def commit(offset: int) -> bytes:
    """An OffsetCommitValue of version 3."""
    return b"\0\3" + offset.to_bytes(8, signed=True) + b"\0\0\0\7" + b"\0\0" + NOW.to_bytes(8)


class Log:
    """A partition of `__consumer_offsets`, with the offsets that a coordinator loads from it."""

    def __init__(self) -> None:
        self.data = b""
        self.end_offset = 0
        self.pending: dict[int, list[tuple[int, str, int | None]]] = {}
        # offset of the record, and the committed offset
        self.loaded: dict[str, tuple[int, int | None]] = {}

    @property
    def commits(self) -> Commits:
        """The committed offsets."""
        return {group: offset for group, (_, offset) in self.loaded.items() if offset is not None}

    def add(self, commits: Commits, producer_id: int | None = None) -> None:
        """Append a batch, in a transaction if it has a producer. An offset of None is a tombstone."""
        settings: dict[str, Any] = {}
        if producer_id is not None:
            settings = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
        records = [(NOW, key(group), None if offset is None else commit(offset)) for group, offset in commits.items()]
        self.data += build(records, base_offset=self.end_offset, **settings)
        for at, (group, offset) in enumerate(commits.items(), self.end_offset):
            if producer_id is None:
                self.loaded[group] = (at, offset)
            else:
                self.pending.setdefault(producer_id, []).append((at, group, offset))
        self.end_offset += len(commits)

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        """Append a marker."""
        self.data += kbat.end_transaction_marker(
            producer_id=producer_id, producer_epoch=0, commit=is_commit, base_offset=self.end_offset, timestamp=NOW
        )
        self.end_offset += 1
        for at, group, offset in self.pending.pop(producer_id, ()):
            if is_commit and at > self.loaded.get(group, (-1, None))[0]:
                self.loaded[group] = (at, offset)

    def write(self, directory: Path) -> None:
        """Write the partition."""
        directory.mkdir(parents=True)
        (directory / LOG).write_bytes(self.data)


def offsets(source: Any, **options: Any) -> Commits:  # noqa: ANN401 - those of scan
    return {row["group"]: row["offset"] for row in kbat.consumer_offsets(source, **options).to_pylist()}


def test_open_transaction_hides_no_later_record(tmp_path: Path) -> None:
    log = Log()
    log.add({"a": 1, "b": 1, "both": 1})
    log.add({"open": 5, "both": 5}, producer_id=7)
    log.add({"a": 100, "b": None, "new": 3})
    log.write(tmp_path / "__consumer_offsets-0")
    assert offsets(tmp_path) == offsets(log.data) == {"a": 100, "both": 1, "new": 3} == log.commits
    assert kbat.consumer_groups(tmp_path)["group"].to_pylist() == ["a", "both", "new"]
    shown = json_of("groups", tmp_path)["groups"]
    assert {one["group"]: one["offsets"][0]["offset"] for one in shown} == log.commits
    uncommitted = {"a": 100, "both": 5, "new": 3, "open": 5}
    assert offsets(tmp_path, isolation="read_uncommitted") == uncommitted
    with pytest.raises(ValueError, match="isolation"):
        offsets(tmp_path, isolation="committed")


def test_commit_marker_does_not_replace_later_records() -> None:
    log = Log()
    log.add({"later": 1, "tombstone": 1, "earlier": 1, "other": 1})
    log.add({"later": 10, "tombstone": 10, "earlier": 10, "other": 10}, producer_id=7)
    log.add({"later": 20, "tombstone": None})
    log.add({"other": 30}, producer_id=8)
    log.end(8, is_commit=True)
    log.end(7, is_commit=True)
    assert offsets(log.data) == {"later": 20, "earlier": 10, "other": 30} == log.commits
    log.add({"earlier": 40}, producer_id=7)
    log.end(7, is_commit=False)
    assert offsets(log.data)["earlier"] == 10


def test_transactions_of_two_partitions_are_separate(tmp_path: Path) -> None:
    first, second = Log(), Log()
    first.add({"a": 1}, producer_id=7)
    second.end(7, is_commit=True)
    second.add({"b": 1}, producer_id=7)
    second.end(7, is_commit=True)
    first.write(tmp_path / "__consumer_offsets-0")
    second.write(tmp_path / "__consumer_offsets-1")
    assert offsets(tmp_path) == {"b": 1}
    # buffers have no numbers of partitions
    assert offsets([first.data, second.data]) == {"b": 1}


@pytest.mark.parametrize("seed", range(30))
def test_offsets_are_those_that_a_coordinator_loads(seed: int) -> None:
    chosen = random.Random(seed)  # noqa: S311 - test data
    log = Log()
    for _ in range(60):
        producer_id = chosen.randrange(4)
        if chosen.random() < 0.3:
            log.end(producer_id, is_commit=chosen.random() < 0.6)
            continue
        groups = chosen.sample("abcdefgh", chosen.randint(1, 4))
        commits = {group: None if chosen.random() < 0.2 else chosen.randrange(1000) for group in groups}
        log.add(commits, producer_id if chosen.random() < 0.5 else None)
    assert offsets(log.data) == offsets(log.data, max_rows=1) == log.commits


def test_skipped_and_reported_corruption_is_a_warning() -> None:
    log = Log()
    log.add({"a": 1})
    position = len(log.data)
    log.add({"a": 2})
    size = len(log.data) - position
    log.add({"b": 3})
    damaged = bytes(patched(log.data, position + 80, "B", log.data[position + 80] ^ 1))
    with pytest.raises(kbat.CorruptError):
        offsets(damaged)
    lost = f"may be missing or old: skipped 1 corrupt range, {size} bytes and 1 offset"
    with pytest.warns(UserWarning, match=f"^offsets {lost}$"):
        assert offsets(damaged, on_corrupt="skip") == {"a": 1, "b": 3}
    with pytest.warns(UserWarning, match=rf"^offsets {lost} \(checksum mismatch: .*\)$"):
        assert offsets(damaged, on_corrupt="report") == {"a": 1, "b": 3}
    with pytest.warns(UserWarning, match=f"^groups {lost}$"):
        kbat.consumer_groups(damaged, on_corrupt="skip")
    # an incomplete batch at the end is normal while a broker writes
    assert offsets(log.data[:-5], on_corrupt="skip") == {"a": 2}


def test_arguments_that_kbat_sets_are_refused_by_name() -> None:
    for name, value in (
        ("columns", ["key"]),
        ("view", "records"),
        ("topics", "x"),
        ("topic", "x"),
        ("decoder", "json"),
    ):
        for function in (kbat.consumer_offsets, kbat.consumer_groups, kbat.transactional_ids):
            with pytest.raises(TypeError, match=rf"kbat.{function.__name__}\(\) does not accept the argument '{name}'"):
                function(b"", **{name: value})
    with pytest.raises(TypeError, match="unexpected keyword argument 'wanted'"):
        kbat.consumer_groups(b"", wanted=["GroupMetadata"])


def lag_directory(path: Path, commits: Commits) -> Path:
    """A log directory with a topic of 10 records, and a commit for it by each group."""
    log = Log()
    log.add(commits)
    log.write(path / "__consumer_offsets-0")
    (path / "orders-0").mkdir()
    (path / "orders-0" / LOG).write_bytes(build([(NOW, b"key", b"value")] * 10))
    return path


def test_no_offset_has_no_lag(tmp_path: Path) -> None:
    path = lag_directory(tmp_path, {"none": -1, "some": 4})
    offsets = {one["group"]: one["offsets"][0] for one in json_of("groups", path)["groups"]}
    assert [offsets["none"][name] for name in ("offset", "end_offset", "lag")] == [-1, 10, None]
    assert [offsets["some"][name] for name in ("offset", "end_offset", "lag")] == [4, 10, 6]
    assert run("groups", path).stdout.endswith("2 groups, 2 offsets; total lag 6\n")
    assert run("groups", path, "--group", "none").stdout.endswith("1 group, 1 offset\n")


def test_groups_without_offsets_are_counted() -> None:
    assert run("groups", CORPUS / "consumer-offsets").stdout.endswith("\n8 groups, 1 without offsets, 14 offsets\n")


def test_negative_lag_does_not_reduce_the_total(tmp_path: Path) -> None:
    path = lag_directory(tmp_path, {"ahead": 1000, "some": 4})
    offsets = {one["group"]: one["offsets"][0] for one in json_of("groups", path)["groups"]}
    assert (offsets["ahead"]["lag"], offsets["some"]["lag"]) == (-990, 6)
    assert run("groups", path).stdout.endswith("2 groups, 2 offsets; total lag 6\n")


def test_topic_without_offsets_is_an_error(tmp_path: Path) -> None:
    path = lag_directory(tmp_path, {"some": 4})
    for options in (("--topic", "nothing"), ("--topic", "nothing", "--group", "some")):
        done = run("groups", path, *options)
        assert (done.exit_code, done.stdout, done.stderr) == (
            2, "", "kbat: no topic matches 'nothing'; omit --topic to see all topics\n"
        )  # fmt: skip
    assert run("groups", path, "--topic", "nothing", "--topic", "ord*").exit_code == 0
