"""Segments of tiered storage are found beside anything that a bucket contains, or an error names what to do."""

from __future__ import annotations

import base64
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from growing_log import GrowingLog
from reliability_logs import run
from remote_logs import TAIL, offsets_of, warned
from test_tiered import copied, remote_directory, topic_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from s3_server import S3Server

ENTRIES = 2001
"""One more than the number of entries after which the search ended."""
AIVEN_TOPIC = "codec-lz4"
LAYOUTS = ("aiven", "kafka")
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


def source_of(layout: str, topic: str = AIVEN_TOPIC) -> Path:
    """Return the directory of a topic or partition in tiered storage."""
    return topic_directory("plain", topic) if layout == "aiven" else remote_directory()


def placed(layout: str, root: Path, topic: str = AIVEN_TOPIC) -> Path:
    """Copy segments of tiered storage to a directory; return the copy."""
    source = source_of(layout, topic)
    return shutil.copytree(source, root / source.name)


# --- many entries


def test_segments_are_found_beside_many_foreign_objects(tmp_path: Path) -> None:
    copied("plain", AIVEN_TOPIC, tmp_path / "pre")
    for number in range(ENTRIES):
        (tmp_path / f"foreign-{number:04}.txt").touch()
    assert offsets_of(tmp_path) == list(range(220))
    assert len(kbat.LogDirectory(tmp_path).partitions) == 1
    [partition] = kbat.restore(str(tmp_path), tmp_path / "out", dry_run=True).partitions
    assert (partition.topic, partition.end_offset) == (AIVEN_TOPIC, 220)
    assert kbat.verify(tmp_path).segment_count == 1


@pytest.mark.parametrize(
    ("count", "message"),
    [(1100, "name the directory that contains its topics"), (ENTRIES, "the search ended after .*: name a directory")],
)
def test_segments_behind_too_many_directories_are_an_error(count: int, message: str, tmp_path: Path) -> None:
    copied("plain", AIVEN_TOPIC, tmp_path / "z" / "z")
    for number in range(count):
        (tmp_path / f"foreign{number:04}").mkdir()
    with pytest.raises(ValueError, match=message):
        kbat.scan(tmp_path).count()
    assert offsets_of(tmp_path / "z") == list(range(220))


def topic_id(number: int) -> str:
    """The id of one of the many topics."""
    return base64.urlsafe_b64encode((1 << 100 | number).to_bytes(16, "big"))[:22].decode()


@pytest.fixture(scope="module")
def many_topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket with topics that have one segment each, with the offsets 0 to 3."""
    root = tmp_path_factory.mktemp("topics")
    original = shutil.copytree(topic_directory("plain", "txn-lz4") / "0", root / ".original")
    stem = min(path.stem for path in original.glob("*.log"))
    manifest = json.loads((original / f"{stem}.rsm-manifest").read_text())
    partition = manifest["remoteLogSegmentMetadata"]["remoteLogSegmentId"]["topicIdPartition"]
    for number in range(ENTRIES):
        topic = f"topic{number:04}"
        partition["topicId"] = topic_id(number)
        partition["topicPartition"]["topic"] = topic
        directory = root / f"{topic}-{topic_id(number)}" / "0"
        directory.mkdir(parents=True)
        for suffix in (".log", ".indexes"):
            os.link(original / f"{stem}{suffix}", directory / f"{stem}{suffix}")
        (directory / f"{stem}.rsm-manifest").write_text(json.dumps(manifest))
    return root


def test_the_segments_of_many_topics_are_found(many_topics: Path) -> None:
    table = kbat.scan(many_topics, columns=["topic", "offset"], include_control=True).to_pyarrow()
    assert table.num_rows == 4 * ENTRIES
    topics: list[Any] = table["topic"].to_pylist()
    assert set(topics) == {f"topic{number:04}" for number in range(ENTRIES)}


@pytest.mark.parametrize("number", [0, ENTRIES - 1])
def test_one_of_many_topics_can_be_selected(number: int, many_topics: Path, tmp_path: Path) -> None:
    topic = f"topic{number:04}"
    table = kbat.scan(many_topics, topics=[topic], columns=["topic", "offset"], include_control=True).to_pyarrow()
    assert table.to_pydict() == {"topic": [topic] * 4, "offset": [0, 1, 2, 3]}
    plan = kbat.restore(str(many_topics), tmp_path / "out", topics=[topic], dry_run=True)
    assert [(one.topic, one.partition, one.end_offset) for one in plan.partitions] == [(topic, 0, 4)]


# --- symbolic links

LOOPS = """
import sys, kbat
root, out = sys.argv[1:]
rows = kbat.scan(root, columns=["offset"], include_control=True).to_pyarrow().num_rows
[partition] = kbat.LogDirectory(root).partitions
[restored] = kbat.restore(root, out, dry_run=True).partitions
print(rows, len(partition.segments), len(restored.segments))
"""


@every_layout
def test_links_to_directories_around_them_are_not_followed_forever(layout: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    partition = placed(layout, root / "pre")
    expected = len(offsets_of(root)), *[len(list(partition.rglob("*.log")))] * 2
    for place in (root, root / "pre"):
        for number in range(2):
            (place / f"loop{number}").symlink_to(root)
    # in a process with a time limit, because the number of paths is unlimited
    code, output, errors = run(LOOPS, root, tmp_path / "out")
    assert (code, errors) == (0, "")
    assert tuple(map(int, output.split())) == expected


def test_a_directory_with_two_names_is_read_once(tmp_path: Path) -> None:
    copied("plain", AIVEN_TOPIC, tmp_path / "pre")
    (tmp_path / "alias").symlink_to(tmp_path / "pre")
    assert offsets_of(tmp_path) == list(range(220))


# --- names like those of a broker


@every_layout
@pytest.mark.parametrize("prefix", ["cluster-1", "cluster-1/backup-2", "pre/cluster-1"])
def test_a_prefix_may_have_the_name_of_a_partition(layout: str, prefix: str, tmp_path: Path) -> None:
    expected = offsets_of(source_of(layout))
    placed(layout, tmp_path / prefix)
    assert offsets_of(tmp_path) == expected
    [partition] = kbat.restore(str(tmp_path), tmp_path / "out", dry_run=True).partitions
    assert partition.topic == (AIVEN_TOPIC if layout == "aiven" else "orders")


@every_layout
@pytest.mark.parametrize("prefix", ["", "pre"])
@pytest.mark.parametrize("name", ["README-1", "part-00000", "aspark/part-00000", "spark/part-00000", "a-0/b-0/c-0"])
def test_foreign_files_may_have_the_names_of_partitions(layout: str, prefix: str, name: str, tmp_path: Path) -> None:
    expected = offsets_of(source_of(layout))
    placed(layout, tmp_path / prefix)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(b"PAR1")
    assert offsets_of(tmp_path) == expected


@pytest.mark.parametrize("prefix", ["cluster-1", "pre/fix"])
def test_segments_are_found_in_a_bucket(prefix: str, tmp_path: Path, s3_server: S3Server) -> None:
    copied("plain", AIVEN_TOPIC, tmp_path / "bucket" / prefix)
    (tmp_path / "bucket" / "spark").mkdir()
    for name in ("README-1", "spark/part-00000"):
        (tmp_path / "bucket" / name).write_bytes(b"PAR1")
    files = [path for path in (tmp_path / "bucket").rglob("*") if path.is_file()]
    url: Any = s3_server.upload(tmp_path / "bucket", f"tiered-search/{prefix}", files)
    assert offsets_of(url, storage_options=s3_server.options) == list(range(220))


# --- beside a broker


@every_layout
@pytest.mark.parametrize("prefix", ["", "pre", "pre/fix"])
@pytest.mark.parametrize("broker", ["", "logs", "zlogs", "zlogs/disk"])
def test_a_broker_beside_tiered_storage_is_an_error(layout: str, prefix: str, broker: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    placed(layout, root / prefix)
    shutil.copytree(TAIL, root / broker / "u-0")
    reads: tuple[Callable[[], object], ...] = (
        lambda: kbat.scan(root).count(),
        lambda: kbat.LogDirectory(root).partitions,
        lambda: kbat.restore(str(root), tmp_path / "out", dry_run=True),
    )
    for read in reads:
        with pytest.raises(ValueError, match=r"of a broker and .*of tiered storage.*: name one of them"):
            read()


def test_a_segment_of_a_broker_beside_a_prefix_is_an_error(tmp_path: Path) -> None:
    placed("aiven", tmp_path / "pre")
    GrowingLog(tmp_path).append(1)
    with pytest.raises(ValueError, match=r"0\.log is of a broker and pre of tiered storage: name one of them"):
        kbat.scan(tmp_path).count()


# --- depth and hidden directories


def test_segments_below_three_directories_are_found(tmp_path: Path) -> None:
    copied("plain", AIVEN_TOPIC, tmp_path / "a" / "b" / "c")
    (tmp_path / "README").write_text("a foreign file")
    assert offsets_of(tmp_path) == list(range(220))


@pytest.mark.parametrize("foreign", [False, True], ids=["alone", "foreign file"])
def test_segments_that_are_too_deep_are_an_error(foreign: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter
    deep = copied("plain", AIVEN_TOPIC, tmp_path / "a" / "b" / "c" / "d")
    if foreign:
        (tmp_path / "README").write_text("a foreign file")
    with pytest.raises(ValueError, match="is more than 5 levels deep: name a directory nearer") as raised:
        kbat.scan(tmp_path).count()
    assert str(deep) in str(raised.value)
    assert offsets_of(tmp_path / "a") == list(range(220))


def test_a_hidden_prefix_is_named_by_a_warning(tmp_path: Path) -> None:
    copied("plain", AIVEN_TOPIC, tmp_path / ".kafka")
    text = warned(lambda: kbat.scan(tmp_path).count())
    assert f"{tmp_path / '.kafka'} was not searched, because its name begins with a dot" in text
    assert offsets_of(tmp_path / ".kafka") == list(range(220))


# --- the same segment below two prefixes


def truncate(partition: Path) -> None:
    """Remove the last bytes of one log, as an interrupted copy does."""
    path = sorted(partition.glob("*.log"))[2]
    path.write_bytes(path.read_bytes()[:-7])


def without_suffix(suffix: str, count: int = 1) -> Callable[[Path], None]:
    """Return a function that deletes objects of a kind, beginning with the third segment."""

    def remove(partition: Path) -> None:
        for path in sorted(partition.glob(f"*{suffix}"))[2 : 2 + count]:
            path.unlink()

    return remove


def half(partition: Path) -> None:
    """Delete all objects of every second segment."""
    for stem in sorted({path.stem for path in partition.glob("*.log")})[::2]:
        for path in partition.glob(f"{stem}.*"):
            path.unlink()


LOSSES: tuple[tuple[str, str, Callable[[Path], None]], ...] = (
    ("aiven", "truncated log", truncate),
    ("aiven", "no log", without_suffix(".log")),
    ("aiven", "no manifest", without_suffix(".rsm-manifest")),
    ("aiven", "no manifests", without_suffix(".rsm-manifest", 9)),
    ("aiven", "no indexes", without_suffix(".indexes")),
    ("aiven", "half of the segments", half),
    ("kafka", "truncated log", truncate),
    ("kafka", "no log", without_suffix(".log")),
    ("kafka", "no offset index", without_suffix(".index")),
    ("kafka", "half of the segments", half),
)


@pytest.mark.parametrize(("good", "bad"), [("a", "b"), ("b", "a")])
@pytest.mark.parametrize(("layout", "loss"), [pytest.param(one, loss, id=f"{one}-{of}") for one, of, loss in LOSSES])
def test_the_complete_copy_of_a_segment_is_read(
    layout: str, loss: Callable[[Path], None], good: str, bad: str, tmp_path: Path
) -> None:
    placed(layout, tmp_path / good, "txn-lz4")
    loss(min(path.parent for path in placed(layout, tmp_path / bad, "txn-lz4").rglob("*.log")))
    options: Any = {"columns": ["offset", "timestamp", "value"], "include_control": True}
    # without warnings, which would be errors
    expected = kbat.scan(source_of(layout, "txn-lz4"), **options).to_pyarrow()
    assert expected.num_rows > 300
    assert kbat.scan(tmp_path, **options).to_pyarrow() == expected
    assert [one for one in kbat.verify(tmp_path).findings if one.severity != "info"] == []


def test_two_incomplete_copies_are_one_complete_log(tmp_path: Path) -> None:
    without_suffix(".rsm-manifest")(copied("plain", "txn-lz4", tmp_path / "a"))
    other = copied("plain", "txn-lz4", tmp_path / "b")
    # the manifest is written last, so the other objects of its directory are complete
    without_suffix(".indexes")(other)
    for path in sorted(other.glob("*.log"))[3:5]:
        path.unlink()
    assert offsets_of(tmp_path) == list(range(366))
