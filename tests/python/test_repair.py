"""verify, recover, salvage, rebuild_indexes: what Python adds to what tests/rust holds to the corpora."""

import json
import shutil
from pathlib import Path

import pytest

import data
import kbat

CORPUS = data.DATA / "corpus"
LOG = "00000000000000000000.log"
ENDINGS = (".log", "index", ".snapshot", "-checkpoint", ".metadata")


def copy_of(case: str, tmp_path: Path) -> Path:
    """Copy the files of a partition, not those that describe it."""
    place = tmp_path / "topic-0"
    place.mkdir()
    for path in (CORPUS / case).iterdir():
        if path.is_file() and path.name.endswith(ENDINGS):
            shutil.copy(path, place)
    return place


def content(directory: Path) -> dict[str, bytes]:
    """Read every file of a directory."""
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_recover_crashed_partition_is_what_the_broker_made_of_it(tmp_path: Path) -> None:
    """The log is cut at the flipped bit, everything beside it is as the broker left it."""
    place = copy_of("crash-flip", tmp_path)
    before = content(place)
    case = json.loads((CORPUS / "crash-flip" / "case.json").read_text())
    interval = int(case["topicConfig"]["index.interval.bytes"])
    dry = kbat.recover(place, dry_run=True)
    assert content(place) == before
    report = kbat.recover(place, tmp_path / "out", index_interval_bytes=interval)
    assert (dry.dry_run, report.dry_run, dry.out, report.out) == (True, False, None, str(tmp_path / "out"))
    assert dry.dropped == report.dropped
    assert content(place) == before
    found, expected = content(tmp_path / "out"), content(CORPUS / "crash-flip" / "recovered")
    for name in (
        LOG,
        LOG.replace(".log", ".index"),
        LOG.replace(".log", ".timeindex"),
        "00000000000000000099.snapshot",
    ):
        assert found[name] == expected[name]
    (dropped,) = report.dropped
    assert (dropped.position, dropped.length, dropped.reason) == (13905, 7482, "crc")
    assert (dropped.first_offset, dropped.last_offset) == (99, 149)
    assert (report.start_offset, report.end_offset, report.is_complete) == (0, 99, False)
    (segment,) = report.segments
    assert (segment.bytes_before, segment.bytes_after) == (21387, 13905)
    assert ("00000000000000000099.snapshot", "written") in report.files
    assert "offsets 99 to 149 are lost" in str(report)


def test_recover_in_place_needs_to_be_asked_for(tmp_path: Path) -> None:
    """Without ``out`` nothing happens but an exception that says what to give."""
    place = copy_of("crash-torn", tmp_path)
    before = content(place)
    with pytest.raises(ValueError, match="in_place=True"):
        kbat.recover(place)
    with pytest.raises(ValueError, match="out"):
        kbat.recover(place, tmp_path / "out", in_place=True)
    assert content(place) == before
    report = kbat.recover(place, in_place=True, index_interval_bytes=1024)
    assert report.out is None
    expected = content(CORPUS / "crash-torn" / "recovered")
    for name, found in content(place).items():
        if name not in {"leader-epoch-checkpoint", "partition.metadata"}:
            assert found == expected[name], name


@pytest.mark.parametrize("case", ["crash-flip", "crash-index", "crash-torn", "crash-txn"])
def test_recover_in_place_ends_what_a_killed_run_began(case: str, tmp_path: Path) -> None:
    """Wherever a run was killed between two of its files, the next one leaves the same."""
    place = copy_of(case, tmp_path)
    before = content(place)
    changes = kbat.recover(place, in_place=True, index_interval_bytes=1024).files
    whole = content(place)
    assert len(changes) > 1
    assert whole != before
    for done in range(len(changes) + 1):
        for name in {*whole, *before}:
            now = whole if name in [change for change, _ in changes[:done]] else before
            (place / name).unlink(missing_ok=True)
            if name in now:
                (place / name).write_bytes(now[name])
        kbat.recover(place, in_place=True, index_interval_bytes=1024)
        assert content(place) == whole, changes[:done]


def test_salvage_keeps_what_recover_cuts(tmp_path: Path) -> None:
    """All batches but the flipped one, as a partition of its own with a list of the hole."""
    case = CORPUS / "crash-flip"
    report = kbat.salvage(case / LOG, tmp_path / "out")
    (hole,) = report.dropped
    assert (hole.position, hole.reason, hole.first_offset) == (13905, "crc", 99)
    (listed,) = [json.loads(line) for line in (tmp_path / "out" / "holes.jsonl").read_text().splitlines()]
    assert (listed["position"], listed["last_offset"]) == (hole.position, hole.last_offset)
    offsets = [record.offset for batch in kbat.read_batches(tmp_path / "out" / LOG) for record in batch]
    lost = range(99, hole.last_offset + 1) if hole.last_offset is not None else []
    assert offsets == [offset for offset in range(150) if offset not in lost]
    assert kbat.verify(tmp_path / "out").ok
    with pytest.raises(ValueError, match="is not empty"):
        kbat.salvage(case / LOG, tmp_path / "out")


def test_rebuild_indexes_lookups_stay_the_same(tmp_path: Path) -> None:
    """Indexes deleted and made anew find the same places."""
    place = copy_of("segments-default-interval", tmp_path)
    before = content(place)
    for path in place.glob("*index"):
        path.unlink()
    report = kbat.rebuild_indexes(place)
    assert report.is_complete
    assert content(place) == before
    single = kbat.rebuild_indexes(place / LOG, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(name for name, _ in single.files)


def test_verify_report_as_data_and_text(tmp_path: Path) -> None:
    """Findings with severity, kind, place; a dictionary that is JSON; a text."""
    place = copy_of("codec-lz4", tmp_path)
    assert kbat.verify(place).exit_code == 0
    log = bytearray((place / LOG).read_bytes())
    (third,) = [batch for index, batch in enumerate(kbat.read_batches(bytes(log))) if index == 2]
    log[third.position + 80] ^= 1
    (place / LOG).write_bytes(log)
    report = kbat.verify(place)
    assert (report.ok, report.exit_code, report.segment_count, report.byte_count) == (False, 2, 1, len(log))
    (error,) = [finding for finding in report.findings if finding.severity == "error"]
    assert (error.kind, error.position, error.offset) == ("crc", third.position, third.base_offset)
    assert error.path == str(place / LOG)
    assert "salvage" in error.message
    assert error.to_dict() in json.loads(json.dumps(report.to_dict()))["findings"]
    assert str(report).endswith("1 errors, 0 warnings")
    assert str(error) in str(report)


def test_verify_log_directory_of_the_corpus() -> None:
    """Partitions of many cases at once."""
    report = kbat.verify(data.DATA / "log-dir")
    assert report.ok
    assert report.segment_count > 10


def test_repair_progress_is_told_and_can_end_the_work(tmp_path: Path) -> None:
    """The callback sees bytes done and bytes in all; what it raises comes out, and nothing is left behind."""
    place = copy_of("large-values", tmp_path)
    seen: list[tuple[int, int]] = []
    kbat.verify(place, progress=lambda done, total: seen.append((done, total)))
    total = (place / LOG).stat().st_size
    assert (seen[0], seen[-1]) == ((0, total), (total, total))

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    for work in (kbat.recover, kbat.salvage, kbat.rebuild_indexes):
        with pytest.raises(KeyboardInterrupt):
            work(place, tmp_path / "out", progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["topic-0"]


def test_repair_bad_paths_raise(tmp_path: Path) -> None:
    """A missing path is an OSError, a directory without segments a ValueError."""
    for work in (kbat.recover, kbat.salvage, kbat.rebuild_indexes):
        with pytest.raises(ValueError, match="holds no segment"):
            work(tmp_path, tmp_path / "out")
    with pytest.raises(FileNotFoundError):
        kbat.verify(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        kbat.salvage(tmp_path / "missing", tmp_path / "out")
    with pytest.raises(ValueError, match=r"name the \.log file"):
        kbat.verify(CORPUS / "codec-lz4" / "00000000000000000000.index")
