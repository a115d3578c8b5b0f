"""Directories that a write has not completed, and logs that change under a writer: nothing is silent."""

from __future__ import annotations

import shutil
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import run
from data import DATA

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from s3_server import S3Server

UNFINISHED = {
    "a Spark commit": ".kbat-0123456789abcdef/commit.json",
    "a command": "kbat-0.kbat-partial-1-0-delete/left-0/00000000000000000000.log",
    "an upload": ".kbat-upload",
}


def copied(place: Path) -> Path:
    return shutil.copytree(DATA / "corpus" / "codec-lz4", place / "orders-0").parent


def warnings_of(source: str | Path, **options: Any) -> list[str]:  # noqa: ANN401 - those of kbat.scan
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        kbat.scan(source, **options).count()
    return [str(one.message) for one in shown]


def errors_of(place: Path) -> set[str]:
    return {one.kind for one in kbat.verify(place).findings if one.severity == "error"}


@pytest.mark.parametrize("name", UNFINISHED.values(), ids=UNFINISHED)
@pytest.mark.parametrize("part", [".", "orders-0"], ids=["log directory", "partition"])
def test_readers_warn_of_a_write_that_is_not_complete(name: str, part: str, tmp_path: Path) -> None:
    logs = copied(tmp_path)
    assert warnings_of(logs) == []
    assert "unfinished_write" not in errors_of(logs)
    mark = logs / part / name
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_bytes(b"")
    (message,) = warnings_of(logs)
    assert "files may be missing" in message
    assert name.split("/", maxsplit=1)[0] in message
    assert "unfinished_write" in errors_of(logs)
    assert "kbat: warning: files may be missing" in run("cat", logs, "--limit", "1").stderr


def test_a_spark_write_that_did_not_commit_hides_nothing(tmp_path: Path) -> None:
    logs = copied(tmp_path)
    (logs / ".kbat-0123456789abcdef" / "0-0" / "orders-0").mkdir(parents=True)
    assert warnings_of(logs) == []
    assert errors_of(logs) == {"directory_name"}


def test_readers_warn_of_an_upload_that_failed(s3_server: S3Server) -> None:
    source = DATA / "corpus" / "codec-lz4" / "00000000000000000000.log"
    s3_server.put("unfinished/orders-0/00000000000000000000.log", source.read_bytes())
    s3_server.put("unfinished/.kbat-upload", b"")
    (message,) = warnings_of(s3_server.url("unfinished"), storage_options=s3_server.options)
    assert "unfinished/.kbat-upload shows: an upload to this prefix is running or failed" in message


def move(directory: Path) -> None:
    directory.rename(directory.with_name("moved"))


def replace(directory: Path) -> None:
    move(directory)
    shutil.copytree(directory.with_name("moved"), directory)


@pytest.mark.parametrize("change", [shutil.rmtree, move, replace])
@pytest.mark.parametrize("ends", [False, True], ids=["flush", "roll"])
def test_flush_does_not_confirm_what_is_not_at_the_path(
    change: Callable[[Path], object], tmp_path: Path, *, ends: bool
) -> None:
    place = tmp_path / "orders-0"
    writer = kbat.LogWriter(place, segment_bytes=200, batch_size=80)
    writer.append(None, b"a", timestamp=1)
    writer.flush()
    change(place)

    def write() -> None:
        for _ in range(10 if ends else 1):
            writer.append(None, bytes(90 if ends else 1), timestamp=1)
        if not ends:
            writer.flush()

    with pytest.raises(FileNotFoundError, match="moved, replaced or deleted while the writer had it open"):
        write()
    assert sorted(path.name for path in place.glob("*.log")) in ([], [f"{0:020}.log"])


def test_the_message_for_empty_partitions_names_them(tmp_path: Path) -> None:
    logs = copied(tmp_path)
    (logs / "empty-0").mkdir()
    (logs / "empty-1").mkdir()
    (message,) = warnings_of(logs, topics=["empty"])
    assert message.endswith(f"no selected partition in {logs} has a segment to read: empty-0, empty-1")
    (logs / "empty-1" / "notes.txt").write_text("notes")
    assert [one for one in warnings_of(logs, topics=["empty"]) if "notes.txt" in one]


def test_an_empty_range_is_named(tmp_path: Path) -> None:
    logs = copied(tmp_path)
    line = "kbat: no record is in this range of offsets and times\n"
    for bounds in (["-o", "999999"], ["--start-time", "2100-01-01T00:00:00Z"], ["--end-offset", "0"]):
        done = run("cat", logs, *bounds)
        assert (done.stdout, done.stderr) == ("", line)
    assert run("cat", logs, "-o", "0", "--limit", "1").stderr == ""
    assert run("cat", logs, "-o", "0", "--grep", "no such text").stderr == ""


def test_gaps_are_normal_if_a_batch_has_fewer_records_than_offsets(tmp_path: Path) -> None:
    log, place = tmp_path / "log-0", tmp_path / "compacted-0"
    with kbat.LogWriter(log) as writer:
        for value in (b"a", b"b", b"c"):
            writer.append(None, value, timestamp=1)
    kbat.filter(log, place, lambda record: record.value != b"b")
    builder = kbat.BatchBuilder(base_offset=5)
    builder.append(None, b"d", timestamp=1)
    later = builder.finish()
    for directory, severity in ((log, "warning"), (place, "info")):
        (directory / f"{5:020}.log").write_bytes(later)
        found = {one.kind: one.severity for one in kbat.verify(directory).findings}
        assert found["segment_gap"] == severity


def test_a_misnamed_directory_does_not_stop_the_restore_of_a_topic(tmp_path: Path) -> None:
    logs = copied(tmp_path / "logs")
    shutil.copytree(logs / "orders-0", logs / "old orders")
    with pytest.raises(ValueError, match="old orders"):
        kbat.restore(logs, tmp_path / "all")
    kbat.restore(logs, tmp_path / "one", topics=["orders"])
    assert kbat.scan(tmp_path / "one").count() == kbat.scan(logs / "orders-0").count() > 0


def test_a_time_without_a_zone_is_shown_with_one() -> None:
    with pytest.raises(ValueError, match=r"'2026-11-22' has no time zone; for UTC write 2026-11-22T00:00:00Z$"):
        kbat.scan(b"", start_timestamp="2026-11-22")


def test_a_path_in_bytes_is_refused(tmp_path: Path) -> None:
    logs = copied(tmp_path)
    for read in (kbat.scan, kbat.read_batches):
        with pytest.raises(ValueError, match=r"these bytes are a path.*: pass os\.fsdecode\(path\)"):
            read(bytes(logs))
    assert kbat.scan(b"no such file").count() == 0
