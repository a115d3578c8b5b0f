"""What is read at a location: each segment once, one replica, the selected partitions, and no silent nothing."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections import Counter
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from data import DATA
from kbat._core.locations import store_scheme
from reliability_logs import NOW, batch, offsets, write_log

if TYPE_CHECKING:
    from pathlib import Path

LOG_DIR = DATA / "log-dir"


@pytest.mark.parametrize(
    ("path", "scheme"),
    [
        ("s3://bucket/logs", "s3"),
        ("S3A://bucket", "s3"),
        ("abfss://logs@account.dfs.core.windows.net/a", "abfss"),
        ("https://host/a", "https"),
        ("file:///logs", None),
        ("hdfs://host/logs", None),
        ("/logs", None),
        ("s3:/bucket", None),
        ("s3", None),
    ],
)
def test_store_scheme_of_a_path(path: str, scheme: str | None) -> None:
    assert store_scheme(path) == scheme


# D9: a dangling symlink


@pytest.fixture
def with_dangling_link(tmp_path: Path) -> Path:
    """A log directory with one partition that is a symlink to nowhere."""
    write_log(tmp_path / "logs" / "orders-0")
    (tmp_path / "logs" / "x-0").symlink_to(tmp_path / "nowhere")
    return tmp_path / "logs"


@pytest.mark.parametrize("on_corrupt", ["fail", "skip", "report"])
def test_a_dangling_symlink_is_named_by_the_error(on_corrupt: Any, with_dangling_link: Path) -> None:  # noqa: ANN401 -- one of three literals
    for call in (
        lambda: kbat.scan(with_dangling_link, on_corrupt=on_corrupt).to_pyarrow(),
        lambda: kbat.find_segments(with_dangling_link),
        lambda: kbat.split(with_dangling_link, 1000),
    ):
        with pytest.raises(FileNotFoundError, match="x-0"):
            call()


def test_a_dangling_symlink_is_not_touched_if_its_topic_is_not_read(with_dangling_link: Path) -> None:
    assert kbat.scan(with_dangling_link, topics=["orders"]).count() == 100
    assert kbat.scan(with_dangling_link, topics=["o*"], partitions=[0]).count() == 100
    assert len(kbat.find_segments(with_dangling_link, topics="orders")) == 1
    assert [log.topic for log in kbat.LogDirectory(with_dangling_link, topics="orders").partitions] == ["orders"]
    assert kbat.verify(with_dangling_link, topics="orders").segment_count == 1


def test_a_dangling_symlink_is_listed_as_a_stray_directory(with_dangling_link: Path) -> None:
    directory = kbat.LogDirectory(with_dangling_link)
    assert [log.topic for log in directory.partitions] == ["orders"]
    [stray] = directory.stray
    assert (stray.topic, stray.partition, stray.state) == ("x", 0, "unreadable")
    assert stray.path == str(with_dangling_link / "x-0")
    assert "No such file" in (stray.error or "")


# The same segment twice


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A directory with a partition of two segments, and symlinks to the partition and to one of the segments."""
    write_log(tmp_path / "logs" / "orders-0", segment_bytes=1000)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "orders-0").symlink_to(tmp_path / "logs" / "orders-0")
    (tmp_path / "links" / "one.log").symlink_to(tmp_path / "logs" / "orders-0" / f"{0:020}.log")
    return tmp_path


def test_a_segment_that_is_named_twice_is_read_once(linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(linked / "logs")
    logs, links = linked / "logs", linked / "links"
    partition = logs / "orders-0"
    segments = sorted(map(str, partition.glob("*.log")))
    assert len(segments) > 1
    sources: list[Any] = [
        [logs, logs],
        [logs, partition],
        [partition, *segments],
        [*segments, *segments],
        [segments[0], partition],
        [partition, links],
        [links / "orders-0", partition],
        [partition, links / "one.log"],
        [partition, "orders-0", "./orders-0/", "../links/../logs/orders-0"],
        f"{linked}/*/orders-0",
        [f"{linked}/lo*", f"{linked}/*/*-0", f"{linked}/*/*-0/*.log"],
    ]
    for source in sources:
        assert sorted(offsets(source)) == list(range(100)), source
        assert len(kbat.find_segments(source)) == len(segments), source
        assert {part[0] for part in kbat.split(source, 1 << 20)} <= {str(p.path) for p in kbat.find_segments(source)}
        assert kbat.scan(source, view="segments").count() == len(segments)
        assert kbat.scan_polars(source).collect().height == 100


def test_a_buffer_that_is_passed_twice_is_read_twice() -> None:
    assert offsets([batch(0), batch(0)]) == [0, 1, 2, 0, 1, 2]


# Replicas


def replica(directory: Path, first: int, end: int) -> Path:
    """Write a log directory with one partition that has some offsets."""
    with kbat.LogWriter(directory / "orders-0", batch_size=100, segment_bytes=400, start_offset=first) as writer:
        for offset in range(first, end):
            writer.append(None, b"%s %d" % (directory.name.encode(), offset), timestamp=NOW)
    return directory


def test_replicas_are_an_error_that_names_both(tmp_path: Path) -> None:
    one, two = replica(tmp_path / "one", 0, 40), replica(tmp_path / "two", 0, 60)
    for source in ([one, two], [two, one / "orders-0"], f"{tmp_path}/*", [one / "orders-0", two / "orders-0"]):
        for call in (kbat.scan, kbat.find_segments, kbat.scan_polars, kbat.dataset):
            with pytest.raises(ValueError, match=r"orders-0.*one/orders-0.*two/orders-0.*longest"):
                call(source)
        assert {row.split()[0] for row in values(source, "longest")} == {b"two"}
    with pytest.raises(ValueError, match="replicas"):
        kbat.scan(one, replicas="all")  # type: ignore[arg-type]


def values(source: Any, replicas: Any) -> list[bytes]:  # noqa: ANN401 -- those of kbat.scan
    found: list[Any] = kbat.scan(source, replicas=replicas).to_pyarrow()["value"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("one", "two", "taken"),
    [
        ((0, 40), (0, 60), "two"),
        ((0, 60), (0, 40), "one"),
        ((0, 60), (30, 60), "one"),
        ((20, 50), (40, 80), "two"),
        ((0, 50), (40, 80), "one"),
        ((0, 40), (0, 40), "one"),
    ],
)
def test_the_longest_replica_is_the_one_with_more_offsets(
    one: tuple[int, int], two: tuple[int, int], taken: str, tmp_path: Path
) -> None:
    sources = [replica(tmp_path / "one", *one), replica(tmp_path / "two", *two)]
    for source in (sources, sources[::-1]):
        found = values(source, "longest")
        assert found == [b"%s %d" % (taken.encode(), offset) for offset in range(*(one if taken == "one" else two))]


def test_the_longest_replica_is_chosen_for_each_partition(tmp_path: Path) -> None:
    one, two = replica(tmp_path / "one", 0, 40), replica(tmp_path / "two", 0, 60)
    for directory, records in ((one, 60), (two, 40)):
        write_log(directory / "other-1", records)
    table = kbat.scan([one, two], replicas="longest", columns=["topic"]).to_pyarrow()
    assert Counter(table["topic"].to_pylist()) == {"other": 60, "orders": 60}


# Topics and partitions


@pytest.fixture(scope="module")
def every_case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The partitions of both corpora in one log directory, under topic names with dots, digits and dashes."""
    root = tmp_path_factory.mktemp("corpora")
    for corpus in ("corpus", "corpus-legacy"):
        for number, case in enumerate(sorted((DATA / corpus).iterdir())):
            logs = list(case.glob("*.log")) if case.is_dir() else []
            if case.name in {"log-dir", "verdicts", "writes"} or not logs or any(len(p.stem) != 20 for p in logs):
                continue
            target = root / f"{corpus}.{case.name}-{number % 4}"
            target.mkdir()
            for path in logs:
                (target / path.name).symlink_to(path)
    return root


_PATTERNS: list[tuple[list[str] | None, list[int] | None]] = [
    (["corpus.compacted*"], None),
    (["*none*", "*.txn-*"], None),
    (["corpus.codec-gzip", "corpus.empty"], None),
    (["*[lz]4"], [0, 2]),
    (["corpus?codec-*"], [1, 3]),
    (None, [2]),
    (["*"], [0, 1, 2, 3]),
    (["corpus.codec-????", "corpus.codec-none"], None),
]


@pytest.mark.parametrize(("topics", "partitions"), _PATTERNS)
def test_topics_and_partitions_select_what_brute_force_does(
    topics: list[str] | None, partitions: list[int] | None, every_case: Path
) -> None:
    for root in (every_case, LOG_DIR):
        every = [(log.topic or "", log.partition or 0) for log in kbat.LogDirectory(root).partitions]
        expected = [
            (topic, partition)
            for topic, partition in every
            if (topics is None or any(fnmatchcase(topic, pattern) for pattern in topics))
            and (partitions is None or partition in partitions)
        ]
        options: dict[str, Any] = {"topics": topics, "partitions": partitions}
        unmatched = [p for p in topics or [] if not any(fnmatchcase(topic, p) for topic, _ in every)]
        if unmatched or not expected:
            with pytest.raises(ValueError, match=r"no topic|none of the"):
                kbat.scan(root, **options)
            continue
        expected.sort()
        scan = kbat.scan(root, columns=["topic", "partition", "offset"], on_corrupt="skip", **options)
        rows = list(zip(*scan.to_pyarrow().to_pydict().values(), strict=True))
        whole = kbat.scan(root, columns=["topic", "partition", "offset"], on_corrupt="skip").to_pyarrow()
        assert rows == [row for row in zip(*whole.to_pydict().values(), strict=True) if row[:2] in expected]
        assert {(s.topic, s.partition) for s in kbat.find_segments(root, **options)} == set(expected)
        assert (
            sorted((log.topic or "", log.partition or 0) for log in kbat.LogDirectory(root, **options).partitions)
            == expected
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": ["orders", "nothing"]}, '"nothing".*orders'),
        ({"topics": "*x"}, r"\*x"),
        ({"partitions": [5]}, "partitions found: 0"),
        ({"topics": []}, "empty"),
        ({"partitions": []}, "empty"),
        ({"partitions": [-1]}, "negative"),
        ({"topic": "orders"}, "topics"),
        ({"partition": 0}, "partitions"),
    ],
)
def test_a_filter_without_effect_is_an_error(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_log(tmp_path / "orders-0", 5)
    with pytest.raises(ValueError, match=message):
        kbat.scan(tmp_path, **options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("topics", 5),
        ("topics", [b"orders"]),
        ("topics", {"orders": [0]}),
        ("partitions", "0"),
        ("partitions", ["0"]),
    ],
)
def test_a_filter_of_another_type_is_named(name: str, value: Any, tmp_path: Path) -> None:  # noqa: ANN401 -- any object
    write_log(tmp_path / "orders-0", 5)
    with pytest.raises(TypeError, match=f"{name} must be"):
        kbat.scan(tmp_path, **{name: value})


# Locations


def archive(segment: bytes) -> bytes:
    """A tar archive with a segment."""
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as tar:
        entry = tarfile.TarInfo(f"orders-0/{0:020}.log")
        entry.size = len(segment)
        tar.addfile(entry, io.BytesIO(segment))
    return found.getvalue()


@pytest.fixture
def locations(tmp_path: Path) -> Path:
    """Locations that hold something, but no segment that is recognized."""
    segment = (write_log(tmp_path / "good" / "orders-0") / f"{0:020}.log").read_bytes()
    files = {
        f"packed-0/{0:020}.log.gz": gzip.compress(segment),
        "text/notes.txt": b"see the other disk\n",
        f"tiered/{0:020}-yE0sVPm3RBCZQ3wWQlVUaw.log": segment,
        f"deep/disk/data/orders-0/{0:020}.log": segment,
        f"indexes-0/{0:020}.index": bytes(8),
        "file.log": gzip.compress(segment),
        "copy.tar": archive(segment),
        "words.log": b"2024-01-01 started\n2024-01-01 stopped\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("packed-0", r"\.log\.gz.*gzip-compressed.*decompress"),
        (f"packed-0/{0:020}.log.gz", "gzip-compressed.*decompress"),
        ("text", r"notes\.txt.*text file"),
        ("tiered", "tiered storage"),
        ("deep", "deep/disk/data"),
        ("indexes-0", r"index whose \.log file is missing"),
        ("file.log", "gzip-compressed"),
        ("copy.tar", "tar archive"),
        ("words.log", "text file"),
    ],
)
def test_a_location_without_segments_is_named_for_what_it_is(name: str, message: str, locations: Path) -> None:
    source = locations / name
    calls: list[Any] = [kbat.scan, kbat.find_segments, kbat.scan_polars, lambda path: kbat.split(path, 1000)]
    calls += [kbat.verify]
    if source.is_dir():
        calls += [kbat.PartitionLog, lambda path: kbat.recover(path, locations / "out")]
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call(source)
    # beside a good location too: its rows alone would be a silent loss
    with pytest.raises(ValueError, match=message):
        kbat.scan([locations / "good", source])
    with pytest.raises(ValueError, match=message.split(".*", maxsplit=1)[0]):
        kbat.salvage(source, locations / "out")
    assert not (locations / "out").exists()


def test_a_tiered_segment_that_is_named_is_read(locations: Path) -> None:
    [path] = (locations / "tiered").iterdir()
    assert offsets(path) == list(range(100))


@pytest.mark.parametrize("call", [kbat.scan, kbat.find_segments, kbat.scan_polars, lambda path: kbat.split(path, 1000)])
def test_an_empty_directory_is_a_warning(call: Any, tmp_path: Path) -> None:  # noqa: ANN401 -- a function of a path
    with pytest.warns(UserWarning, match="empty"):
        call(tmp_path)


def test_salvage_and_recover_of_an_empty_directory_are_errors(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    for call in (kbat.salvage, kbat.recover):
        with pytest.raises(ValueError, match="no segment"):
            call(tmp_path / "orders-0", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_partitions_and_log_directories_are_not_confused(tmp_path: Path) -> None:
    partition = write_log(tmp_path / "orders-0")
    with pytest.raises(ValueError, match="partition directory"):
        kbat.LogDirectory(partition)
    with pytest.raises(ValueError, match="log directory"):
        kbat.PartitionLog(tmp_path)
    with pytest.raises(ValueError, match="log directory"):
        kbat.PartitionLog(LOG_DIR)
    for missing in (kbat.LogDirectory, kbat.PartitionLog):
        with pytest.raises(FileNotFoundError, match="nothing"):
            missing(tmp_path / "nothing")
