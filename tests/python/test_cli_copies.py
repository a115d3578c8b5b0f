"""`kbat copy` and `kbat convert`: one partition or all of a log directory, complete or not at all."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import CORPUS, LOG, LOG_DIR, content, copy_of, json_of, run
from growing_log import GrowingLog, time_of
from partitions import Log

if TYPE_CHECKING:
    from pathlib import Path


def batches_of(place: Path) -> list[bytes]:
    return [bytes(batch) for segment in kbat.PartitionLog(place).segments for batch in segment.batches()]


def records_of(place: Path) -> list[kbat.Record]:
    return [record for segment in kbat.PartitionLog(place).segments for batch in segment.batches() for record in batch]


@pytest.mark.parametrize("command", ["copy", "convert"])
def test_help_has_an_example_json_fields_and_exit_codes(command: str) -> None:
    text = " ".join(run(command, "--help").stdout.split())
    for part in (f"kbat {command}", "Example", "JSON", "Exit codes: 0"):
        assert part in text


def test_a_copy_of_a_log_directory_has_the_bytes_of_every_batch(tmp_path: Path) -> None:
    out = tmp_path / "backup"
    report = json_of("copy", LOG_DIR, out)
    assert report["path"] == str(LOG_DIR)
    assert [one["out"] for one in report["partitions"]] == sorted(str(one) for one in out.iterdir())
    for one, log in zip(report["partitions"], kbat.LogDirectory(LOG_DIR).partitions, strict=True):
        place = out / log.directory.rpartition("/")[2]
        assert (one["path"], one["out"]) == (log.directory, str(place))
        assert batches_of(place) == batches_of(one["path"])
        assert (one["segments"], one["batches"]) == (len(log.segments), len(batches_of(place)))
        assert (one["end_offset"], one["rebuilt_batches"], one["is_verified"]) == (log.end_offset, 0, True)
        assert kbat.PartitionLog(place).leader_epochs == log.leader_epochs
    text = run("copy", LOG_DIR, tmp_path / "again", "--topic", "codec-*").stdout
    assert len(list((tmp_path / "again").iterdir())) == 5
    assert "5 partitions, 78 batches, " in text
    assert "each batch was compared with its source" in text


@pytest.mark.parametrize(
    ("case", "start", "end"),
    [
        ("codec-lz4", 17, 100),
        ("codec-none", None, 3),
        ("log-append-time-lz4", 33, 34),
        ("idempotent", 5, None),
        ("txn-lz4", 40, 200),
        ("compacted", 350, 470),
        ("large-values", 1, 2),
    ],
)
def test_a_copy_of_a_range_has_its_records(case: str, start: int | None, end: int | None, tmp_path: Path) -> None:
    bounds = [
        part for name, one in (("start", start), ("end", end)) if one is not None for part in (f"--{name}-offset", one)
    ]
    (report,) = json_of("copy", CORPUS / case, tmp_path / "out", *bounds)["partitions"]
    inside = range(start or 0, 1 << 62 if end is None else end)
    assert records_of(tmp_path / "out") == [one for one in records_of(CORPUS / case) if one.offset in inside]
    unchanged = [batch for batch in batches_of(tmp_path / "out") if batch in batches_of(CORPUS / case)]
    assert report["batches"] - len(unchanged) == report["rebuilt_batches"] <= 2
    assert run("verify", tmp_path / "out").exit_code == 0
    before, after = (kbat.PartitionLog(one) for one in (CORPUS / case, tmp_path / "out"))
    assert (after.topic_id, report["tail_bytes"]) == (before.topic_id, None)


def test_messages_of_old_formats_are_copied_in_ranges(tmp_path: Path) -> None:
    for name in ("k0822-java0822-snappy-0", "k0102-java0102-lz4-0"):
        (report,) = json_of("copy", LOG_DIR / name, tmp_path / name, "--start-offset", 20, "--end-offset", 40)[
            "partitions"
        ]
        assert (report["start_offset"], report["end_offset"]) == (20, 40)
        assert records_of(tmp_path / name) == [one for one in records_of(LOG_DIR / name) if 20 <= one.offset < 40]


def test_a_range_of_times_is_looked_up_in_each_partition(tmp_path: Path) -> None:
    for number, count in enumerate((10, 3, 8)):
        log = GrowingLog(tmp_path / "data" / f"t-{number}")
        log.append(*[1] * count)
    times = [f"--{name}-time={time_of(offset)}" for name, offset in (("start", 4.5), ("end", 7))]
    done = run("copy", tmp_path / "data", tmp_path / "out", *times)
    assert done.exit_code == 0
    assert done.stderr == "kbat: 1 partition without a record in the range: not copied\n"
    found = {place.name: [record.offset for record in records_of(place)] for place in (tmp_path / "out").iterdir()}
    assert found == {"t-0": [5, 6], "t-2": [5, 6]}
    alone = run("copy", tmp_path / "data" / "t-1", tmp_path / "t-1", *times)
    assert (alone.exit_code, alone.stdout) == (2, "")
    assert "is in the range: the log has the offsets 0 to 2" in alone.stderr
    late = run("copy", tmp_path / "data", tmp_path / "late", "--start-offset", 100)
    assert (late.exit_code, (tmp_path / "late").exists(), (tmp_path / "t-1").exists()) == (2, False, False)


def test_a_copy_that_differs_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = kbat.rewrite

    def lossy(path: str, out: Path, **options: Any) -> Any:  # noqa: ANN401 - as kbat.rewrite
        report = real(path, out, **options)
        log = out / LOG
        data = bytearray(log.read_bytes())
        data[20] ^= 1
        log.write_bytes(data)
        return report

    monkeypatch.setattr(kbat, "rewrite", lossy)
    done = run("copy", LOG_DIR / "codec-lz4-0", tmp_path / "out")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "differs at offset 0 and was removed" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_grows_while_it_is_copied_is_not_different(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = GrowingLog(tmp_path / "t-0")
    log.append(3, 3)
    real = kbat.rewrite

    def growing(path: str, out: Path, **options: Any) -> Any:  # noqa: ANN401 - as kbat.rewrite
        report = real(path, out, **options)
        log.append(2)
        return report

    monkeypatch.setattr(kbat, "rewrite", growing)
    (report,) = json_of("copy", log.directory, tmp_path / "out")["partitions"]
    assert (report["batches"], report["end_offset"]) == (2, 6)


@pytest.mark.parametrize("command", [("copy",), ("convert", "--compression", "zstd")], ids=lambda one: one[0])
def test_nothing_is_overwritten(command: tuple[str, ...], tmp_path: Path) -> None:
    name, *options = command
    place = copy_of("codec-none", tmp_path / "data" / "t-0")
    copy_of("codec-lz4", tmp_path / "data" / "u-0")
    (tmp_path / "empty").mkdir()
    assert run(name, place, tmp_path / "empty", *options).exit_code == 0
    for out in (place, tmp_path / "data", tmp_path / "empty", place / LOG):
        before = {one: content(one) for one in (place, tmp_path / "empty")}
        done = run(name, place, out, *options)
        assert (done.exit_code, done.stdout) == (2, ""), out
        assert "name one that does not exist yet" in done.stderr
        assert before == {one: content(one) for one in before}
    # all targets are checked before anything is written
    (tmp_path / "several" / "u-0").mkdir(parents=True)
    (tmp_path / "several" / "u-0" / "file").touch()
    assert run(name, tmp_path / "data", tmp_path / "several", *options).exit_code == 2
    assert [one.name for one in (tmp_path / "several").iterdir()] == ["u-0"]


@pytest.mark.parametrize("command", [("copy",), ("convert", "--compression", "zstd")], ids=lambda one: one[0])
def test_corruption_leaves_no_copy_and_shows_the_complete_ones(command: tuple[str, ...], tmp_path: Path) -> None:
    name, *options = command
    copy_of("codec-none", tmp_path / "data" / "a-0")
    copy_of("crash-flip", tmp_path / "data" / "b-0")
    done = run(name, tmp_path / "data", tmp_path / "out", *options)
    assert done.exit_code == 1
    complete, error = done.stderr.splitlines()
    assert complete == f"kbat: 1 of 2 partitions were written completely to {tmp_path / 'out'}"
    assert "checksum mismatch" in error
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["a-0"]


def test_convert_changes_codec_and_format_and_keeps_records(tmp_path: Path) -> None:
    report = json_of("convert", LOG_DIR, tmp_path / "zstd", "--compression", "zstd", "--magic", 2)
    assert len(report["partitions"]) == 15
    for count in ("segments", "batches", "records", "bytes"):
        assert report["read"][count] == sum(one["read"][count] for one in report["partitions"])
    assert report["written"]["bytes"] < report["read"]["bytes"]
    for one in report["partitions"]:
        assert [(record.offset, record.key, record.value) for record in records_of(one["out"])] == [
            (record.offset, record.key, record.value) for record in records_of(one["path"])
        ]
    codecs = {
        batch.compression
        for segment in kbat.PartitionLog(tmp_path / "zstd" / "codec-none-0").segments
        for batch in segment.batches()
    }
    assert codecs == {"zstd"}
    topics = ("--topic", "codec-none", "--topic", "idempotent")
    table = run("convert", LOG_DIR, tmp_path / "one", "--magic", 1, *topics).stdout
    assert [line.split()[0] for line in table.splitlines()[4:7]] == ["codec-none-0", "idempotent-0", "total"]
    assert "lost, because the message format lacks it: headers, partition_leader_epoch, producer" in table


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "nothing to convert: set --compression or --magic"),
        (("--magic", 1, "--compression", "zstd"), "message format 1 does not support zstd"),
        (("--compression", "zstd"), "add --magic 2, or choose --compression gzip, snappy or lz4"),
        (("--compression", "lz4", "--topic", "none"), "none"),
    ],
)
def test_what_can_not_be_converted_is_refused(arguments: tuple[object, ...], reason: str, tmp_path: Path) -> None:
    copy_of("codec-none", tmp_path / "data" / "codec-none-0")
    shutil.copytree(LOG_DIR / "k0822-java0822-snappy-0", tmp_path / "data" / "k0822-0")
    done = run("convert", tmp_path / "data", tmp_path / "out", *arguments)
    assert (done.exit_code, done.stdout, reason in done.stderr) == (2, "", True), done.stderr


@pytest.mark.parametrize("command", [("copy",), ("convert", "--compression", "lz4")], ids=lambda one: one[0])
def test_paths_that_are_not_logs_are_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    name, *options = command
    (tmp_path / "empty").mkdir()
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "a.txt").write_text("text")
    for path, exit_code in ((tmp_path / "no", 2), (tmp_path / "empty", 1), (texts, 2), (texts / "a.txt", 2)):
        done = run(name, path, tmp_path / "out", *options)
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (exit_code, "", 1), done.stderr
    assert not (tmp_path / "out").exists()


def test_both_ends_of_a_range_are_set_once(tmp_path: Path) -> None:
    done = run("copy", LOG_DIR, tmp_path / "out", "--start-offset", 1, "--start-time", time_of(1))
    assert (done.exit_code, "set only one of them for each end" in done.stderr) == (2, True)


def test_the_new_directory_has_the_usual_permissions(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"k", b"v"), (b"k", b"w"))
    log.write()
    assert run("copy", log.directory, tmp_path / "out", "--start-offset", 1).exit_code == 0
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o777 & ~umask
