"""Internal topics as typed tables, and the commands `groups` and `topics`, on partitions that Kafka wrote."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import CORPUS, LOG, LOG_DIR, json_of, on_terminal, run
from data import answer, build, read_text
from test_internal_view import shown

if TYPE_CHECKING:
    from pathlib import Path

OFFSET_KEY = b"\0\1\0\4team\0\6orders\0\0\0\0"
LEGACY_KEY = b"\0\0" + OFFSET_KEY[2:]
METADATA_CASES = ["00000000000000000167-0000000002", "00000000000000000564-0000000002"]


def commit(offset: int) -> bytes:
    """An OffsetCommitValue of version 3."""
    return b"\0\3" + offset.to_bytes(8) + b"\0\0\0\7" + b"\0\2hi" + (1_700_000_000_000).to_bytes(8)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory with internal topics and two of the topics that they describe."""
    path = tmp_path_factory.mktemp("logs")
    for case, name in (
        ("consumer-offsets", "__consumer_offsets-0"),
        ("cluster-metadata", "__cluster_metadata-0"),
        ("transaction-state", "__transaction_state-0"),
        ("codec-lz4", "codec-lz4-0"),
        ("codec-none", "codec-none-0"),
    ):
        shutil.copytree(CORPUS / case, path / name)
    return path


def latest_commits(case: str) -> dict[str, Any]:
    """The committed values by key, from the text of `kafka-dump-log` and the batches that Kafka's classes read."""
    lines = {line.batch["baseOffset"]: line.batch for line in answer(CORPUS / case / LOG).batches if line.batch}
    found: dict[str, tuple[int, Any]] = {}
    pending: dict[int, dict[str, tuple[int, Any]]] = {}
    for _, offset, text in shown(case):
        batch = lines[max(base for base in lines if base <= offset)]
        own = pending.setdefault(batch["producerId"], {}) if batch["isTransactional"] else found
        if batch["isControl"]:
            ended = pending.pop(batch["producerId"], {}) if "COMMIT" in text else {}
            found |= {name: one for name, one in ended.items() if one[0] > found.get(name, (-1, None))[0]}
        elif text.startswith("key: "):
            key, _, value = text.removeprefix("key: ").partition(" payload: ")
            fields = json.loads(key)
            if fields["type"] in {"0", "1"}:
                data = None if value == "<DELETE>" else json.loads(value)["data"]
                own[json.dumps(fields["data"])] = (offset, data)
    return {name: data for name, (_, data) in found.items() if data is not None}


def test_offsets_are_the_latest_that_kafka_shows() -> None:
    expected = latest_commits("consumer-offsets")
    table = kbat.consumer_offsets(CORPUS / "consumer-offsets")
    assert [f"{field.name}: {field.type}" for field in table.schema] == [
        "group: string",
        "topic: string",
        "partition: int32",
        "offset: int64",
        "leader_epoch: int32",
        "metadata: string",
        "commit_timestamp: timestamp[ms, tz=UTC]",
        "expire_timestamp: timestamp[ms, tz=UTC]",
        "topic_id: string",
    ]
    found = {
        json.dumps({name: row[name] for name in ("group", "topic", "partition")}): row for row in table.to_pylist()
    }
    assert found.keys() == expected.keys()
    for key, row in found.items():
        value = expected[key]
        assert (row["offset"], row["metadata"], row["topic_id"]) == (
            value["offset"],
            value["metadata"],
            value.get("topicId"),
        )
        assert row["leader_epoch"] == (None if value["leaderEpoch"] == -1 else value["leaderEpoch"])
        assert round(row["commit_timestamp"].timestamp() * 1000) == value["commitTimestamp"]
    assert len(found) > 10


def test_last_commit_counts_and_tombstones_remove() -> None:
    def offsets(*records: tuple[bytes, bytes | None]) -> list[int | None]:
        data = build([(0, key, value) for key, value in records])
        return kbat.consumer_offsets(data)["offset"].to_pylist()

    assert offsets((OFFSET_KEY, commit(1)), (OFFSET_KEY, commit(2))) == [2]
    assert offsets((OFFSET_KEY, commit(1)), (OFFSET_KEY, None)) == []
    assert offsets((OFFSET_KEY, commit(1)), (OFFSET_KEY, None), (OFFSET_KEY, commit(3))) == [3]
    legacy = b"\0\0" + (5).to_bytes(8) + b"\0\0" + (0).to_bytes(8)
    assert offsets((LEGACY_KEY, legacy)) == [5]
    assert offsets((LEGACY_KEY, legacy), (OFFSET_KEY, commit(6))) == [6]


def test_commits_of_a_newer_kafka_are_a_warning_and_null() -> None:
    data = build([(0, OFFSET_KEY, commit(1)), (0, OFFSET_KEY, b"\0\x09new")])
    with pytest.warns(UserWarning, match="offsets may be missing or old: 1 record can't be decoded .unknown version 9"):
        table = kbat.consumer_offsets(data)
    assert table["offset"].to_pylist() == [None]


def test_groups_command_has_the_lag_of_the_logs_beside(directory: Path) -> None:
    shown = json_of("groups", directory)["groups"]
    table = kbat.consumer_offsets(directory).to_pylist()
    assert sum(len(group["offsets"]) for group in shown) == len(table)
    ends = {"codec-lz4": 220, "codec-none": 220}
    for group in shown:
        for one in group["offsets"]:
            end = ends.get(one["topic"])
            assert (one["end_offset"], one["lag"]) == (end, None if end is None else end - one["offset"])
    assert json_of("groups", directory / "__consumer_offsets-0")["groups"] == shown
    only = json_of("groups", directory, "--group", "classic-*", "--topic", "codec-lz4")["groups"]
    assert [(one["group"], len(one["offsets"])) for one in only] == [("classic-1", 1), ("classic-2", 1)]
    missing = run("groups", directory, "--group", "nobody")
    assert (missing.exit_code, missing.stderr) == (
        2, "kbat: no group matches 'nobody'; omit --group to see all groups\n"
    )  # fmt: skip


def test_groups_command_continues_after_corruption_if_told(tmp_path: Path) -> None:
    for partition in (0, 1):
        data = bytearray(build([(0, OFFSET_KEY[:-1] + bytes([partition]), commit(partition))]))
        data[30] ^= partition  # damages partition 1
        place = tmp_path / f"__consumer_offsets-{partition}" / f"{0:020}.log"
        place.parent.mkdir()
        place.write_bytes(data)
    failed = run("groups", tmp_path)
    assert failed.exit_code == 1
    assert "--on-corrupt skip continues after it" in failed.stderr
    shown = run("groups", tmp_path, "--on-corrupt", "skip", "--json")
    assert [one["offset"] for group in json.loads(shown.stdout)["groups"] for one in group["offsets"]] == [0]
    assert "groups may be missing or old: skipped 1 corrupt range" in shown.stderr


def test_group_types_and_members_are_known(directory: Path) -> None:
    groups = {one["group"]: one for one in kbat.consumer_groups(directory).to_pylist()}
    assert {name: one["type"] for name, one in groups.items()} == {
        "classic-1": "classic",
        "classic-2": "classic",
        "manual": "classic",
        "modern-0": "consumer",
        "modern-1": "consumer",
        "share-1": "share",
        "static": "classic",
        "txn-group": "classic",
    }
    assert (groups["static"]["members"], groups["static"]["protocol_type"]) == (1, "consumer")


@pytest.mark.parametrize("name", METADATA_CASES)
def test_topics_of_a_snapshot_are_those_of_the_log_up_to_it(name: str) -> None:
    case = CORPUS / "cluster-metadata"
    snapshot = kbat.topics(case / f"{name}.checkpoint").to_pylist()
    log = kbat.topics(case / LOG, end_offset=int(name[:20])).to_pylist()
    assert snapshot == log
    assert len(snapshot) > 3


def test_topics_of_snapshot_and_log_are_those_of_the_whole_log(tmp_path: Path) -> None:
    case = CORPUS / "cluster-metadata"
    whole = kbat.topics(case / LOG).to_pylist()
    for name in METADATA_CASES:
        copy = tmp_path / name / "__cluster_metadata-0"
        copy.mkdir(parents=True)
        shutil.copy(case / LOG, copy)
        shutil.copy(case / f"{name}.checkpoint", copy)
        assert kbat.topics(copy.parent).to_pylist() == kbat.topics(copy).to_pylist() == whole
    offsets = next(row for row in whole if row["topic"] == "__consumer_offsets")
    assert dict(offsets["configs"])["cleanup.policy"] == "compact"
    identity = read_text(CORPUS / "consumer-offsets" / "partition.metadata")
    assert f"topic_id: {offsets['topic_id']}" in identity


def test_log_without_its_snapshot_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    shutil.copy(CORPUS / "cluster-metadata" / LOG, directory / "00000000000000000200.log")
    with pytest.raises(ValueError, match="begins at offset 200, after the newest snapshot"):
        kbat.topics(tmp_path)
    with pytest.raises(ValueError, match="log begins at offset 200, and the state before it is in other files"):
        kbat.topics(directory / "00000000000000000200.log")


def test_topics_command(directory: Path) -> None:
    shown = json_of("topics", directory)["topics"]
    table = kbat.topics(directory).to_pylist()
    assert [(one["topic"], one["topic_id"], one["configs"]) for one in shown] == [
        (row["topic"], row["topic_id"], dict(row["configs"])) for row in table
    ]
    assert [one["topic"] for one in json_of("topics", directory, "--topic", "codec-l*")["topics"]] == ["codec-lz4"]
    nothing = run("topics", directory / "codec-lz4-0")
    assert nothing.exit_code == 2
    assert nothing.stderr.startswith('kbat: no topic matches "__cluster_metadata"')


def test_transactional_ids_are_the_latest_that_kafka_shows(directory: Path) -> None:
    expected: dict[str, Any] = {}
    for _, _, text in shown("transaction-state"):
        key, _, value = text.removeprefix("key: ").partition(" payload: ")
        name = json.loads(key)["data"]["transactionalId"]
        if value == "<DELETE>":
            expected.pop(name, None)
        else:
            expected[name] = json.loads(value)["data"]
    found = {row["transactional_id"]: row for row in kbat.transactional_ids(directory).to_pylist()}
    assert found.keys() == expected.keys()
    for name, row in found.items():
        value = expected[name]
        numbers = (value["producerId"], value["producerEpoch"], value["transactionTimeoutMs"])
        assert (row["producer_id"], row["producer_epoch"], row["timeout_ms"]) == numbers
    assert {row["state"] for row in found.values()} == {"Ongoing", "CompleteCommit", "CompleteAbort"}
    ids = json_of("transactions", directory)["transactional_ids"]
    assert [one["transactional_id"] for one in ids] == sorted(found)


@pytest.mark.parametrize("command", ["groups", "topics", "transactions"])
def test_command_fits_a_narrow_terminal(command: str, directory: Path) -> None:
    lines = on_terminal(80, command, directory).splitlines()
    assert max(len(line) for line in lines if not line.startswith(("hidden in this narrow terminal", "/"))) <= 80
    assert len(lines) > 8


@pytest.mark.parametrize(("command", "topic"), [("groups", "__consumer_offsets"), ("topics", "__cluster_metadata")])
def test_other_topics_are_refused_by_their_name_or_their_records(command: str, topic: str, tmp_path: Path) -> None:
    for place, what in (
        (LOG_DIR / "codec-none-0", "belongs to the topic codec-none"),
        (LOG_DIR / "codec-none-0" / LOG, "belongs to the topic codec-none"),
        (LOG_DIR, "has the topics codec-gzip, codec-lz4, "),
    ):
        done = run(command, place)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith(f'kbat: no topic matches "{topic}": {place} {what}')
    # names without a topic: the records decide
    for case, count in (("codec-none", 220), ("transaction-state", 1160)):
        for place in (CORPUS / case, CORPUS / case / LOG):
            done = run(command, place)
            assert (done.exit_code, done.stdout) == (2, "")
            assert done.stderr.startswith(f"kbat: {place} does not contain records of {topic}: {count} ")
            assert done.stderr.count("\n") == 1
    # a log without any record may be of any topic
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / LOG).touch()
    assert run(command, tmp_path / "copy").exit_code == 0
