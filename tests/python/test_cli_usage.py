"""The texts of the command `kbat`: help, plain messages about wrong values, commands and options by name."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kbat
from command_line import LOG, LOG_DIR, copy_of, environment, json_of, lines_of, process, run
from kbat.cli import output
from kbat.cli.options import time
from partitions import Log

COMMANDS = ("ls", "verify", "recover", "salvage", "rebuild-indexes", "audit", "cat", "compact", "rewrite")
PLACE = LOG_DIR / "codec-lz4-0"


def plain(text: str) -> str:
    """A message without its frame and its line breaks."""
    return " ".join(text.replace("│", "").split())


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)], ids=" ".join)
def test_h_is_help(command: tuple[str, ...]) -> None:
    done = run(*command, "-h")
    assert done.exit_code == 0
    assert done.stdout == run(*command, "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("audit", "--by", "topic,color"), "'color' is not one of topic, codec, partition, producer, magic"),
        (("cat", "--limit", "x"), "'x' is not a whole number"),
        (("cat", "--limit", "-3"), "-3 is too small; the smallest value is 0"),
        (("cat", "--start-offset", "9" * 20), f"the largest value is {(1 << 63) - 1}"),
        (("cat", "--partition", "one"), "'one' is not a whole number"),
        (("cat", "--on-corrupt", "ignore"), "'ignore' is not one of fail, skip, report"),
        (("cat", "--isolation", "none"), "'none' is not one of read_uncommitted, read_committed"),
        (("audit", "--replicas", "all"), "'all' is not one of error, longest"),
        (("compact", "out", "--max-map-bytes", "1 parsec"), "'1 parsec' is not a size"),
        (("rewrite", "out", "--magic", "3"), "3 is too large; the largest value is 2"),
        (("rewrite", "out", "--compression", "brotli"), "'brotli' is not one of none, gzip, snappy, lz4, zstd"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_values_are_named_in_plain_words(arguments: tuple[str, ...], reason: str) -> None:
    command, *options = arguments
    done = run(command, PLACE, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert reason in plain(done.stderr)
    assert "Value error" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--key", "a", "--key", "b"),
            "--key is set twice: 'a' and 'b'; it accepts one value, which may be a pattern",
        ),
        (("--start-offset", 10, "--start-offset", 20), "--start-offset is set twice: '10' and '20'; it accepts one"),
        (("-n", 1, "--limit=2"), "--limit is set twice: '1' and '2'; it accepts one value; 'kbat cat --help'"),
    ],
)
def test_different_values_of_an_option_that_accepts_one_are_refused(arguments: tuple[str, ...], message: str) -> None:
    done = run("cat", PLACE, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"kbat: {message}")


def test_repeated_values_are_accepted_if_they_are_equal_or_the_option_accepts_several() -> None:
    topics = ("--topic", "codec-lz4", "--topic", "codec-zstd")
    found = lines_of(LOG_DIR, *topics, "--end-offset", 1, "--end-offset", 1)
    assert [record["topic"] for record in found] == ["codec-lz4", "codec-zstd"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("repair", PLACE), "no such command 'repair'; 'kbat recover' repairs a partition as a broker does"),
        (("check", PLACE), "no such command 'check'; did you mean 'verify'? 'kbat --help' lists"),
        (("diff", PLACE, PLACE), "no such command 'diff'; 'diff <(kbat cat A) <(kbat cat B)' compares"),
        (("cta", PLACE), "no such command 'cta'; did you mean 'cat'? 'kbat --help' lists"),
        (("rewrite", PLACE, "out", "--codec", "zstd"), "no such option: --codec; did you mean --compression? 'kbat"),
        (("ls", PLACE, "--qqq"), "no such option: --qqq; 'kbat ls --help' lists"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_unknown_names_are_answered_with_those_that_were_meant(arguments: tuple[object, ...], hint: str) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"kbat: {hint}")


@pytest.mark.parametrize(
    ("groups", "keys"),
    [
        (("topic,partition",), ["partition"]),
        (("codec",), []),
        (("partition,producer",), ["partition", "producer_id"]),
        (("partition", "magic, producer"), ["partition", "magic", "producer_id"]),
    ],
    ids=str,
)
def test_audit_takes_lists_of_groups_and_the_default_ones(groups: tuple[str, ...], keys: list[str]) -> None:
    found = json_of("audit", LOG_DIR, *(word for group in groups for word in ("--by", group)))
    assert list(found["groups"][0])[: 2 + len(keys)] == ["topic", "compression", *keys]


TIMES = [
    ("0", 0),
    ("1700000160000", 1_700_000_160_000),
    ("2023-11-14T22:16:00Z", 1_700_000_160_000),
    ("2023-11-14T23:16:00+01:00", 1_700_000_160_000),
]


@pytest.mark.parametrize(("value", "milliseconds"), TIMES)
def test_times_are_those_of_scan(value: str, milliseconds: int) -> None:
    expected = kbat.scan(PLACE, columns=["offset"], start_timestamp=milliseconds).to_pyarrow()["offset"].to_pylist()
    assert [row["offset"] for row in lines_of(PLACE, "--start-time", value)] == expected
    number: Any = int(value) if value.isdecimal() else value
    again = kbat.scan(PLACE, columns=["offset"], start_timestamp=number).to_pyarrow()["offset"].to_pylist()
    assert again == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("1700000160", "looks like seconds since the epoch; write milliseconds, 1700000160000"),
        ("20240501", "looks like a date; write 2024-05-01T00:00:00Z"),
        ("2024", "looks like a date; write 2024-01-01T00:00:00Z"),
        ("202405", "looks like a date; write 2024-05-01T00:00:00Z"),
        ("2024050112", "looks like a date; write 2024-05-01T12:00:00Z"),
        ("202405011230", "looks like a date; write 2024-05-01T12:30:00Z"),
        ("20240501123059", "looks like a date; write 2024-05-01T12:30:59Z"),
        ("20240532", "looks like a date that does not exist; write ISO 8601, such as 2024-05-01T00:00:00Z"),
        ("2024-05-01", "has no time zone; for UTC write 2024-05-01T00:00:00Z"),
        ("2024-05-01 12:30", "has no time zone; for UTC write 2024-05-01T12:30:00Z"),
        ("yesterday", "is not a time; write ISO 8601 with a time zone"),
        ("9" * 20, "is too large for a time"),
    ],
)
@pytest.mark.parametrize("command", [("cat", "--start-time"), ("compact", "out", "--now")], ids=" ".join)
def test_times_without_a_zone_and_seconds_are_refused(command: tuple[str, ...], value: str, reason: str) -> None:
    name, *options = command
    done = run(name, PLACE, *options, value)
    assert (done.exit_code, done.stdout) == (2, "")
    assert reason in plain(done.stderr)
    if not value.isdecimal() or value == "1700000160":
        start: Any = int(value) if value.isdecimal() else value
        with pytest.raises(ValueError, match=r"seconds|time zone|not a time"):
            kbat.scan(PLACE, start_timestamp=start)


@pytest.mark.parametrize("value", ["201", "3024", "202413", "190001010000000"])
def test_numbers_that_are_not_dates_are_milliseconds(value: str) -> None:
    assert time(value) == int(value)


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", PLACE, "-", "--format", "csv"),
        ("report", PLACE, "-o", "-"),
        ("copy", PLACE, "-"),
        ("import", "-", "-"),
    ],
    ids=lambda arguments: str(arguments[0]),
)
def test_nothing_is_written_to_a_file_that_is_named_like_the_standard_output(
    arguments: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "`kbat cat -f csv` prints records; name a file or directory, or write ./-" in plain(done.stderr)
    assert list(tmp_path.iterdir()) == []
    if arguments[0] == "export":
        assert run("export", PLACE, "./-", "--format", "csv").exit_code == 0
        assert [path.name for path in tmp_path.iterdir()] == ["-"]


@pytest.mark.parametrize("arguments", [("ls", "--help"), ("--help",), ("--version",), (), ("ls", PLACE)], ids=str)
def test_a_full_disk_and_a_closed_pipe_end_the_command_without_a_traceback(arguments: tuple[object, ...]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full, process(*arguments, stdout=full) as command:
        _, error = command.communicate()
    assert (command.returncode, error) == (1, "kbat: [Errno 28] No space left on device\n")
    near, far = os.pipe()
    os.close(near)
    with os.fdopen(far, "w") as closed, process(*arguments, stdout=closed) as command:
        _, error = command.communicate()
    # typer itself ends with 1
    assert (command.returncode, error) == (1 if arguments[-1:] == ("--help",) else 141, "")


def test_ls_has_a_dash_where_no_record_has_a_time(tmp_path: Path) -> None:
    place = LOG_DIR / "k0822-java0822-snappy-0"
    assert json_of("ls", place)["segments"][0]["largest_timestamp"] is None
    (line,) = [line for line in run("ls", place).stdout.splitlines() if "KiB" in line and line.startswith(" ")]
    assert line.split()[-2:] == ["-", "log"] or "  -  " in line
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / LOG).touch()
    (row,) = json_of("ls", tmp_path)["partitions"]
    assert (row["end_offset"], row["largest_timestamp"], row["error"]) == (0, None, None)
    (line,) = [line for line in run("ls", tmp_path).stdout.splitlines() if line.startswith("t ")]
    assert line.split()[-1] == "-"


def test_ls_marks_an_end_offset_that_corruption_hides(tmp_path: Path) -> None:
    place = copy_of("codec-lz4", tmp_path / "t-0")
    (place / LOG.replace(".log", ".index")).unlink()
    data = bytearray((place / LOG).read_bytes())
    position = list(kbat.read_batches(bytes(data)))[5].position
    data[position + 8 : position + 12] = b"\x7f\xff\xff\xff"
    (place / LOG).write_bytes(data)
    for path in (tmp_path, place):
        done = run("ls", path)
        assert done.exit_code == 1
        assert "?" in done.stdout
        assert done.stderr.count("\n") == 1
        assert done.stderr.count(str(place / LOG)) == 1
        assert "batch_length" in done.stderr
    (row,) = json_of("ls", tmp_path, exit_code=1)["partitions"]
    assert (row["start_offset"], row["end_offset"], row["largest_timestamp"]) == (0, None, None)


def test_one_thing_is_not_written_in_the_plural(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"k", b"v"))
    log.write()
    size = output.size_text((log.directory / LOG).stat().st_size)
    assert f"1 segment, 1 batch, 1 record, {size}: 0 errors, 2 warnings\n" in run("verify", log.directory).stdout
    assert f"\n1 segment, {size}; start offset 0" in run("ls", log.directory).stdout
    assert f"\n1 partition, {size}; " in run("ls", tmp_path).stdout
    assert ": 1 segment, start offset 0, end offset 1" in run("recover", log.directory, "--dry-run").stdout


def test_dry_run_lists_what_would_happen(tmp_path: Path) -> None:
    place = copy_of("crash-flip", tmp_path / "topic-0")
    dry = run("recover", place, "--dry-run").stdout
    assert "would write 00000000000000000000.index" in dry
    assert "would truncate 00000000000000000000.log" in dry
    assert "would drop: " in dry
    assert dry.splitlines()[-1].startswith("would drop ")
    assert not [line for line in dry.splitlines() if line.lstrip().startswith(("written", "truncated", "dropped"))]
    done = run("recover", place, tmp_path / "out").stdout
    assert not [line for line in done.splitlines() if line.lstrip().startswith("would")]
    assert "  written 00000000000000000000.index" in done
    whole = copy_of("codec-lz4", tmp_path / "whole-0")
    assert run("recover", whole, "--dry-run").stdout.splitlines()[-1] == "nothing would be lost"
    assert run("recover", whole, tmp_path / "copy").stdout.splitlines()[-1] == "nothing lost"


def test_messages_name_commands_and_options(tmp_path: Path) -> None:
    place = copy_of("codec-lz4", tmp_path / "topic-0")
    (place / LOG.replace(".log", ".index")).unlink(missing_ok=True)
    shown = run("verify", place).stdout
    assert "kbat rebuild-indexes" in shown
    assert "rebuild_indexes" not in shown
    assert all("rebuild_indexes" not in one["message"] for one in json_of("verify", place, exit_code=1)["findings"])


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("rebuild_indexes makes it", "kbat rebuild-indexes makes it"),
        ("/data/rebuild_indexes-0/x.log: gone", "/data/rebuild_indexes-0/x.log: gone"),
        ('or set replicas="longest" to read', "or add --replicas longest to read"),
        ('with on_corrupt="skip" it', "with --on-corrupt skip it"),
        (
            "storage_options-0/x: rebuild_indexes-0 'magic=2' stay",
            "storage_options-0/x: rebuild_indexes-0 'magic=2' stay",
        ),
        ("(s3://b/magic=2/a-0): magic=2 is written", "(s3://b/magic=2/a-0): --magic 2 is written"),
        ("cuts the log; salvage keeps it", "cuts the log; kbat salvage keeps it"),
    ],
)
def test_python_names_become_those_of_the_shell(message: str, shown: str) -> None:
    assert output.in_shell(message) == shown


@pytest.mark.parametrize(
    "name", ["magic=2/a  b-0", "my  replicas=x-0", "it's magic=2", "line\nmagic=1 storage_options"]
)
def test_paths_in_messages_are_never_changed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = copy_of("codec-lz4", tmp_path / name)
    log = place / LOG
    data = bytearray(log.read_bytes())
    data[2000] ^= 1
    log.write_bytes(data)
    monkeypatch.chdir(tmp_path)
    done = run("cat", name)
    shown = output.escaped(name)
    quoted = output.escaped(shlex.quote(name))
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1
    assert f"({shown}/{LOG}: byte " in done.stderr
    assert f"'kbat verify {quoted}' lists all corruption, 'kbat salvage {quoted} OUT' keeps" in done.stderr
    # a path that does not exist, before there is a command
    assert f"path {name + '-1'!r} does not exist" in run("cat", f"{name}-1").stderr


@pytest.mark.parametrize("codec", [(), ("--compression", "zstd")], ids=str)
@pytest.mark.parametrize("magic", [0, 1])
def test_rewrite_of_zstd_to_an_old_format_names_codecs_that_it_has(
    codec: tuple[str, ...], magic: int, tmp_path: Path
) -> None:
    done = run("rewrite", LOG_DIR / "codec-zstd-0", tmp_path / "out", "--magic", magic, *codec)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"message format {magic} does not support" in done.stderr
    assert "--compression gzip, snappy or lz4" in done.stderr
    assert "verify" not in done.stderr
    assert not (tmp_path / "out").exists()
    options = ("--magic", magic, "--compression", "lz4", "--drop-producer-state")
    assert run("rewrite", LOG_DIR / "codec-zstd-0", tmp_path / "out", *options).exit_code == 0


def test_notes_come_after_what_was_printed_before(tmp_path: Path) -> None:
    place = copy_of("crash-flip", tmp_path / "topic-0")
    command = [sys.executable, "-m", "kbat", "cat", str(place)]
    done = subprocess.run(  # noqa: S603 - its own module
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=environment()
    )
    *records, note = done.stdout.splitlines()
    assert [json.loads(line)["offset"] for line in records] == list(range(99))
    assert note.startswith("kbat: checksum mismatch")


def test_errors_name_an_unreadable_path_once(tmp_path: Path) -> None:
    copy_of("codec-lz4", tmp_path / "good-0")
    (tmp_path / "bad-0" / LOG).mkdir(parents=True)
    done = run("ls", tmp_path)
    assert done.exit_code == 1
    assert done.stderr.count(str(tmp_path / "bad-0")) == 1


def test_process_exits_as_the_runner_does(tmp_path: Path) -> None:
    running = process("ls", tmp_path)
    stdout, stderr = running.communicate()
    assert (running.returncode, stdout) == (1, "")
    assert stderr.startswith(f"kbat: warning: {tmp_path} is empty: ")
