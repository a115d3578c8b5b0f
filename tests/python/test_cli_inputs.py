"""Every command on every kind of input: an exit code of its own, one line for an error, and the input's kind in it."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import CORPUS, LOG, LOG_DIR, process, run
from kbat.cli.app import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable

# Arguments after PATH, by command. OUT is a directory that does not exist.
OUT = object()
ARGUMENTS: dict[str, tuple[object, ...]] = {
    "lookup": ("--offset", 0),
    "advise": ("--seconds", 1),
    "report": ("--seconds", 1, "-o", OUT),
    "recover": ("--dry-run",),
    "salvage": (OUT,),
    "rebuild-indexes": (OUT,),
    "compact": (OUT,),
    "rewrite": (OUT,),
}
READERS = ("ls", "verify", "cat", "batches", "stat", "audit", "lookup", "advise", "report")
TEXT = b"2026-11-22 10:00:00 INFO this is the log of a program\n" * 20


def _directory(content: bytes) -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        (root / "orders-0").mkdir()
        (root / "orders-0" / LOG).write_bytes(content)
        return root / "orders-0"

    return make


def _file(name: str, content: bytes) -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        (root / name).write_bytes(content)
        return root / name

    return make


def _whole() -> bytes:
    return (LOG_DIR / "codec-lz4-0" / LOG).read_bytes()


def _flipped() -> bytes:
    data = bytearray(_whole())
    data[9000] ^= 0x10
    return bytes(data)


def _empty(root: Path) -> Path:
    (root / "orders-0").mkdir()
    return root / "orders-0"


def _missing(root: Path) -> Path:
    return root / "orders-0"


INPUTS: dict[str, Callable[[Path], Path]] = {
    "empty": _empty,
    "missing": _missing,
    "text": _directory(TEXT),
    "gzip": _directory(gzip.compress(b"x" * 1000)),
    "gzip-file": _file(f"{LOG}.gz", gzip.compress(b"x" * 1000)),
    "text-file": _file("notes.txt", TEXT),
    "empty-file": _file("dump.bin", b""),
    "zeros": _directory(bytes(1 << 20)),
    "zeros-file": _file("dump.bin", bytes(1 << 20)),
    "noise": _directory(bytes(range(1, 255)) * 100),
    "truncated": _directory(_whole()[:-500]),
    "flipped": _directory(_flipped()),
}


def _run(command: str, place: Path, out: Path) -> Any:  # noqa: ANN401 - a result of typer
    return run(command, place, *(out if one is OUT else one for one in ARGUMENTS.get(command, ())))


@pytest.mark.parametrize("name", INPUTS)
def test_no_input_breaks_a_command(name: str, tmp_path: Path) -> None:
    place = INPUTS[name](tmp_path)
    for command in COMMANDS:
        done = _run(command, place, tmp_path / f"out-{command}")
        assert done.exit_code in {0, 1, 2}, command
        for word in ("Traceback", "internal error"):
            assert word not in done.output, (command, done.output)
        assert done.stderr.count("\n") <= 2, (command, done.stderr)
        shutil.rmtree(tmp_path / f"out-{command}", ignore_errors=True)


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("text", "the file is a text file"),
        ("text-file", "the file is a text file"),
        ("gzip", "the file is gzip-compressed"),
        ("gzip-file", "the file is gzip-compressed"),
        ("empty-file", "is an empty file: there is no batch to read"),
        ("zeros-file", "begins with zeros, as a preallocated segment without a batch does"),
        ("empty", "is empty: there is no segment to read"),
        ("missing", "does not exist"),
    ],
)
def test_the_kind_of_a_file_is_named_by_every_command(command: str, name: str, kind: str, tmp_path: Path) -> None:
    done = _run(command, INPUTS[name](tmp_path), tmp_path / "out")
    assert kind in " ".join(done.output.split())


def test_debug_shows_attributes_and_the_traceback_after_the_line() -> None:
    place = CORPUS / "crash-flip"
    short = run("cat", place).stderr
    for arguments in (("cat", place, "--debug"), ("--debug", "cat", place)):
        line, *rest = run(*arguments).stderr.splitlines()
        assert f"{line}\n" == short
        assert {"kind: crc", "position: 13922", "base_offset: 99", "field: crc"} <= set(rest)
        assert any(one.startswith(f"kbat {kbat.__version__}, Python {sys.version.split()[0]}") for one in rest)
        assert "Traceback (most recent call last):" in rest
    assert run("cat", place).stderr == short


def test_debug_does_not_show_secrets() -> None:
    done = run(
        "cat", "s3://bucket/x", "--storage-option", "access_key_id=SECRETKEY", "--storage-option", "bad=1", "--debug"
    )
    assert done.exit_code != 0
    assert "Traceback" in done.stderr
    assert "SECRETKEY" not in done.stderr


def test_an_unexpected_error_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        message = "it broke\nin two lines"
        raise RuntimeError(message)

    monkeypatch.setattr(kbat, "scan", fail)
    done = run("cat", LOG_DIR)
    assert (done.exit_code, done.stdout) == (1, "")
    message = "internal error: RuntimeError: it broke in two lines; --debug shows the details for a bug report"
    assert done.stderr == f"kbat: {message}\n"


def test_wrong_arguments_are_one_line_that_names_the_help() -> None:
    for arguments, reason in (
        (("cat",), "missing argument 'PATH'; 'kbat cat --help'"),
        (("cat", LOG_DIR, "--limti", 3), "no such option: --limti"),
        (("nothing",), "no such command 'nothing'"),
        (("cta", LOG_DIR), "no such command 'cta'; did you mean 'cat'"),
    ):
        done = run(*arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith(f"kbat: {reason}")
        assert done.stderr.count("\n") == 1
        assert "--help' lists the arguments and options\n" in done.stderr


def test_an_error_can_not_write_escape_codes() -> None:
    done = run("cat", "/no/such\x1b[31m\x07file")
    assert done.exit_code == 2
    assert "\x1b" not in done.stderr
    assert "\x07" not in done.stderr


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 partitions of a batch each."""
    root: Path = tmp_path_factory.mktemp("many")
    builder = kbat.BatchBuilder()
    builder.append(b"key", b"value" * 20, timestamp=1_700_000_000_000)
    data = builder.finish()
    for number in range(10_000):
        place = root / f"topic{number % 100}-{number // 100}"
        place.mkdir()
        (place / LOG).write_bytes(data)
    return root


@pytest.mark.long
@pytest.mark.parametrize("command", READERS)
def test_ten_thousand_partitions_take_seconds(command: str, many: Path, tmp_path: Path) -> None:
    """The timeout is more than twenty times what the slowest command takes."""
    page = tmp_path / "page.html"
    arguments = (page if one is OUT else one for one in ARGUMENTS.get(command, ()))
    running = process(command, many, *arguments, *(["--json"] if command != "cat" else []))
    output, errors = running.communicate(timeout=600)
    assert running.returncode == (1 if command == "verify" else 0), errors
    assert "topic99" in (page.read_text() if command == "report" else output)
    assert errors == ""


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_only_has_the_name_of_a_segment_is_an_error(make: Callable[[Path], None], tmp_path: Path) -> None:
    good, bad = tmp_path / "data" / "good-0", tmp_path / "data" / "orders-0"
    for place in (good, bad):
        shutil.copytree(LOG_DIR / "segments-default-interval-0", place)
    log = bad / f"{310:020}.log"
    log.unlink()
    make(log)
    message = f"a directory or a special file has the name of a segment: move it away ({log})"
    for command in ("cat", "batches", "stat", "ls", "compact", "rewrite"):
        done = run(command, bad, *_out(command, tmp_path))
        assert (done.exit_code, done.stdout) == (1, ""), command
        assert message in done.stderr, command
    # one partition does not hide the others
    done = run("verify", tmp_path / "data")
    assert done.exit_code == 2
    assert f"error: unreadable: {log}: a directory or a special file has the name of a segment" in done.stdout
    done = run("ls", tmp_path / "data")
    assert done.exit_code == 1
    assert [line.split()[0] for line in done.stdout.splitlines()[4:6]] == ["good", "orders"]
    assert message in done.stderr


def _out(command: str, root: Path) -> tuple[object, ...]:
    return (root / "out",) if OUT in ARGUMENTS.get(command, ()) else ()
