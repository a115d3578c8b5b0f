"""`kbat.restore` for a new broker: topic ids, checkpoints, leader epochs and the committed offsets of groups."""

from __future__ import annotations

import fcntl
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import json_of, process
from data import DATA
from growing_log import GrowingLog
from test_restore import LOG_DIR, TOPIC_ID, batches_of, content, offsets_of, restored, single

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OTHER_ID = "wc2ADdsaTo6F7Hg3b3X56w"
CHECKPOINTS = ("log-start-offset-checkpoint", "recovery-point-offset-checkpoint")
TIME = 1_700_000_000_000


def checkpoint(path: Path) -> list[tuple[str, int, int]]:
    version, count, *lines = path.read_text().splitlines()
    assert (version, int(count)) == ("0", len(lines))
    return [(topic, int(partition), int(offset)) for topic, partition, offset in map(str.split, lines)]


def new_broker(directory: Path, epochs: Mapping[str, int]) -> Path:
    """The log directory of a broker with partitions of topic t, and another topic."""
    for name, epoch in epochs.items():
        partition = directory / name
        partition.mkdir(parents=True)
        (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
        (partition / "leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 0\n")
    for name in CHECKPOINTS:
        (directory / name).write_text("0\n2\nother 3 55\nt 0 0\n")
    return directory


def source_of(directory: Path, *, partitions: int = 2, epoch: int = 0) -> Path:
    for number in range(partitions):
        GrowingLog(directory / f"t-{number}", start_offset=4).append(5, 5, partition_leader_epoch=epoch)
    return directory


def test_ids_and_checkpoints_are_those_of_the_new_broker(tmp_path: Path) -> None:
    broker = new_broker(tmp_path / "broker", {"t-0": 0, "t-1": 0})
    before = content(broker)
    report = restored(source_of(tmp_path / "logs"), tmp_path / "out", log_directory=broker)
    assert [one.topic_id for one in report.partitions] == [TOPIC_ID, TOPIC_ID]
    assert report.warnings == []
    out = tmp_path / "out"
    assert checkpoint(out / CHECKPOINTS[0]) == [("other", 3, 55), ("t", 0, 4), ("t", 1, 4)]
    assert checkpoint(out / CHECKPOINTS[1]) == [("other", 3, 55), ("t", 0, 14), ("t", 1, 14)]
    for name in ("t-0", "t-1"):
        assert (out / name / "partition.metadata").read_text() == f"version: 0\ntopic_id: {TOPIC_ID}"
    assert content(broker) == before


def test_an_argument_overrides_the_ids_of_the_log_directory(tmp_path: Path) -> None:
    broker = new_broker(tmp_path / "broker", {"t-0": 0})
    options = {"log_directory": broker, "topic_ids": {"t": OTHER_ID}}
    report = restored(source_of(tmp_path / "logs"), tmp_path / "out", **options)
    assert [one.topic_id for one in report.partitions] == [OTHER_ID, OTHER_ID]
    assert report.warnings == []


def test_topics_without_an_id_are_a_warning(tmp_path: Path) -> None:
    partition = restored(LOG_DIR, tmp_path / "out", topics="txn-simple")
    assert partition.partitions[0].topic_id is None
    assert partition.partitions[0].source_topic_id is not None
    assert not (tmp_path / "out" / "txn-simple-0" / "partition.metadata").exists()
    (warning,) = partition.warnings
    assert warning.endswith("would not accept them: txn-simple")


def test_partitions_that_the_new_broker_does_not_have_are_a_warning(tmp_path: Path) -> None:
    broker = new_broker(tmp_path / "broker", {"t-0": 0})
    (warning,) = restored(source_of(tmp_path / "logs"), tmp_path / "out", log_directory=broker).warnings
    assert warning.endswith("set them aside as strays: t-1")


def test_leader_epochs_above_those_of_the_new_broker_are_a_warning(tmp_path: Path) -> None:
    source = source_of(tmp_path / "logs", partitions=3, epoch=3)
    broker = new_broker(tmp_path / "broker", {"t-0": 2, "t-1": 3, "t-2": 4})
    (warning,) = restored(source, tmp_path / "out", log_directory=broker).warnings
    assert warning.endswith("pass leader_epoch=0 to replace them: t-0")
    report = restored(source, tmp_path / "replaced", log_directory=broker, leader_epoch=0)
    assert report.warnings == []
    assert {one.leader_epoch for one in report.partitions} == {0}


def test_the_names_in_a_warning_are_limited(tmp_path: Path) -> None:
    report = restored(source_of(tmp_path / "logs", partitions=13, epoch=1), tmp_path / "out", topic_ids={"t": TOPIC_ID})
    (warning,) = report.warnings
    assert warning.endswith(": t-0, t-1, t-2, t-3, t-4, t-5, t-6, t-7, t-8, t-9 and 3 more")


def test_leader_epoch_changes_nothing_else(tmp_path: Path) -> None:
    single(LOG_DIR, tmp_path / "out", topics="leader-epochs", leader_epoch=0)
    name = "leader-epochs-0"
    found, source = (batches_of(directory / name) for directory in (tmp_path / "out", LOG_DIR))
    assert {batch.partition_leader_epoch for batch in found} == {0}
    assert len({batch.partition_leader_epoch for batch in source}) > 1
    for new, old in zip(found, source, strict=True):
        # base_offset and batch_length, and everything from magic and the checksum on
        assert (bytes(new)[:12], bytes(new)[16:]) == (bytes(old)[:12], bytes(old)[16:])
    assert kbat.PartitionLog(tmp_path / "out" / name).leader_epochs == [(0, 0)]


def text(value: str) -> bytes:
    return len(value).to_bytes(2) + value.encode()


def commits(log: GrowingLog, *offsets: tuple[str, str, int, int | None]) -> None:
    """Append a batch of commits (group, topic, partition, offset) to a partition of `__consumer_offsets`."""
    builder = kbat.BatchBuilder(base_offset=log.end_offset)
    for group, topic, partition, offset in offsets:
        key = b"\0\1" + text(group) + text(topic) + partition.to_bytes(4)
        value = None if offset is None else b"\0\3" + offset.to_bytes(8) + b"\0\0\0\7" + text("") + TIME.to_bytes(8)
        builder.append(key, value, timestamp=TIME)
    log.append_bytes(builder.finish())
    log.end_offset += len(offsets)


@pytest.fixture
def with_offsets(tmp_path: Path) -> Path:
    """A log directory with a topic from offset 4 to 13, and the committed offsets of groups."""
    source = source_of(tmp_path / "logs")
    log = GrowingLog(source / "__consumer_offsets-3")
    commits(log, ("early", "t", 0, 1), ("late", "t", 0, 99), ("gone", "t", 1, 5), ("a/b", "t", 1, 5))
    commits(log, ("a/b", "t", 1, 6), ("a/b", "t", 0, 7), ("gone", "t", 1, None), ("a/b", "unknown", 0, 7))
    return source


def test_committed_offsets_are_written_within_the_restored_log(with_offsets: Path, tmp_path: Path) -> None:
    report = restored(with_offsets, tmp_path / "out", committed_offsets=tmp_path / "csv", topic_ids={"t": TOPIC_ID})
    assert report.committed_offsets == [
        ("a/b", "t", 0, 7, 7), ("a/b", "t", 1, 6, 6), ("early", "t", 0, 1, 4), ("late", "t", 0, 99, 14),
    ]  # fmt: skip
    assert content(tmp_path / "csv") == {
        "a%2Fb.csv": b"t,0,7\nt,1,6\n", "early.csv": b"t,0,4\n", "late.csv": b"t,0,14\n"
    }  # fmt: skip
    assert report.warnings == ["omitted: 1 committed offset of partitions that are not restored"]
    assert [(topic, reason) for topic, _, _, reason in report.skipped] == [
        ("__consumer_offsets", "internal topics are only restored if they are selected")
    ]


def test_a_commit_that_cannot_be_decoded_replaces_an_older_one(with_offsets: Path, tmp_path: Path) -> None:
    log = GrowingLog(with_offsets / "__consumer_offsets-4")
    commits(log, ("newer", "t", 0, 8), ("newer", "t", 1, 9))
    builder = kbat.BatchBuilder(base_offset=log.end_offset)
    builder.append(b"\0\1" + text("newer") + text("t") + bytes(4), b"\0\x63" + bytes(20), timestamp=TIME)
    log.append_bytes(builder.finish())
    report = restored(with_offsets, tmp_path / "out", committed_offsets=tmp_path / "csv", topic_ids={"t": TOPIC_ID})
    assert (tmp_path / "csv" / "newer.csv").read_text() == "t,1,9\n"
    assert any(warning.startswith("omitted: 1 record of __consumer_offsets") for warning in report.warnings)


def test_committed_offsets_end_with_a_log_that_ends_earlier(with_offsets: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"committed_offsets": tmp_path / "csv", "until_offset": {"t-0": 6}}
    report = restored(with_offsets, tmp_path / "out", **options)
    assert report.committed_offsets == [
        ("a/b", "t", 0, 7, 6), ("a/b", "t", 1, 6, 6), ("early", "t", 0, 1, 4), ("late", "t", 0, 99, 6),
    ]  # fmt: skip


def test_committed_offsets_are_read_from_another_location(with_offsets: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"committed_offsets": tmp_path / "csv", "topics": "t", "partitions": 0}
    kbat.restore(with_offsets, tmp_path / "expected", **options)
    shutil.move(tmp_path / "csv", tmp_path / "expected-csv")
    shutil.move(with_offsets / "__consumer_offsets-3", tmp_path / "backup" / "__consumer_offsets-3")
    restored(with_offsets, tmp_path / "out", offsets_source=tmp_path / "backup", **options)
    assert content(tmp_path / "csv") == content(tmp_path / "expected-csv") != {}
    assert offsets_of(tmp_path / "out") == list(range(4, 14))


def test_committed_offsets_are_those_that_brokers_wrote(tmp_path: Path) -> None:
    source = tmp_path / "logs"
    shutil.copytree(DATA / "corpus" / "consumer-offsets", source / "__consumer_offsets-0")
    table: list[dict[str, Any]] = kbat.consumer_offsets(source, isolation="read_committed").to_pylist()
    expected = {(one["group"], one["topic"], one["partition"]): one["offset"] for one in table}
    assert expected
    for topic, partition in {key[1:] for key in expected}:
        GrowingLog(source / f"{topic}-{partition}").append(1000)
    report = kbat.restore(source, tmp_path / "out", committed_offsets=tmp_path / "csv")
    assert {tuple(row[:3]): row[3] for row in report.committed_offsets} == expected
    lines = {path.stem: path.read_text().splitlines() for path in (tmp_path / "csv").iterdir()}
    assert sum(map(len, lines.values())) == len(expected)


def test_internal_topics_are_restored_if_they_are_named(with_offsets: Path, tmp_path: Path) -> None:
    report = restored(with_offsets, tmp_path / "out", topics=["t", "__consumer_offsets"])
    assert [one.topic for one in report.partitions] == ["__consumer_offsets", "t", "t"]
    name = "__consumer_offsets-3/00000000000000000000.log"
    assert (tmp_path / "out" / name).read_bytes() == (with_offsets / name).read_bytes()


def test_the_metadata_of_a_cluster_is_never_restored(tmp_path: Path) -> None:
    source = source_of(tmp_path / "logs")
    shutil.copytree(DATA / "corpus" / "cluster-metadata", source / "__cluster_metadata-0")
    choices: list[dict[str, Any]] = [{}, {"topics": ["t", "__cluster_metadata"]}]
    for options in choices:
        report = kbat.restore(source, tmp_path / "out", dry_run=True, **options)
        assert [one.topic for one in report.partitions] == ["t", "t"]
        assert [(topic, reason) for topic, _, _, reason in report.skipped] == [
            ("__cluster_metadata", "the metadata of a cluster is of no use to another cluster")
        ]


def test_a_running_broker_is_a_warning(tmp_path: Path) -> None:
    broker = new_broker(tmp_path / "broker", {"t-0": 0, "t-1": 0})
    source = source_of(tmp_path / "logs")
    arguments = ("restore", source, tmp_path / "out", "--dry-run", "--json", "--log-directory", broker)
    assert json_of(*arguments)["warnings"] == []
    with (broker / ".lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        # a lock of this process would not stop it
        with process(*arguments) as other:
            (warning,) = json.loads(other.communicate()[0])["warnings"]
    assert warning.startswith("a broker is running on the log directory")
