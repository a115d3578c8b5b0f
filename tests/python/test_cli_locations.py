"""The input of the command `kbat`: topics, partitions, paths, replicas, the standard input; paths without segments."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import kbat
from command_line import LOG, LOG_DIR, copy_of, environment, json_of, lines_of, run
from kbat._core.locations import discover
from kbat.cli.app import app
from partitions import Log

if TYPE_CHECKING:
    from collections.abc import Iterator

READERS = ("ls", "verify", "audit", "cat")
WRITERS = ("recover", "salvage", "rebuild-indexes", "compact", "rewrite")
TEXT = "2026-11-22 10:00:00 INFO this is the log of a program\n" * 20


def places(found: list[dict[str, Any]]) -> set[tuple[str, int]]:
    return {(row["topic"], row["partition"]) for row in found}


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two topics of two partitions."""
    root: Path = tmp_path_factory.mktemp("logs")
    for name in ("orders-0", "orders-1", "orders.eu-0", "clicks-0", "clicks-1"):
        log = Log(root / name)
        log.batch(*[(b"k", name.encode())] * 3)
        log.write()
    return root


CHOICES = [
    (("--topic", "orders"), {("orders", 0), ("orders", 1)}),
    (("--topic", "orders*"), {("orders", 0), ("orders", 1), ("orders.eu", 0)}),
    (("--topic", "clicks", "--topic", "orders.eu"), {("clicks", 0), ("clicks", 1), ("orders.eu", 0)}),
    (("--partition", "1"), {("orders", 1), ("clicks", 1)}),
    (("--topic", "cl?cks", "--partition", "0", "--partition", "7"), {("clicks", 0)}),
]


@pytest.mark.parametrize(("options", "chosen"), CHOICES, ids=lambda value: " ".join(map(str, value)))
def test_topic_and_partition_choose_what_every_command_reads(
    options: tuple[str, ...], chosen: set[tuple[str, int]], orders: Path
) -> None:
    assert places(json_of("ls", orders, *options)["partitions"]) == chosen
    rows = lines_of(orders, *options)
    assert places(rows) == chosen
    assert all(row["value"] == f"{row['topic']}-{row['partition']}" for row in rows)
    assert places(json_of("audit", orders, "--by", "partition", *options)["groups"]) == chosen
    report = json_of("verify", orders, *options, exit_code=1)
    assert (report["segment_count"], report["record_count"]) == (len(chosen), 3 * len(chosen))


@pytest.mark.parametrize("command", READERS)
def test_topic_or_partition_that_does_not_exist_is_an_error_with_those_that_do(command: str, orders: Path) -> None:
    done = run(command, orders, "--topic", "order")
    assert (done.exit_code, done.stdout) == (2, "")
    assert 'no topic matches "order"; topics found: clicks, orders, orders.eu' in done.stderr
    done = run(command, orders, "--topic", "clicks", "--partition", 5)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "partitions found: 0, 1" in done.stderr
    done = run(command, orders / "clicks-0", "--topic", "orders")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "topics found: clicks" in done.stderr


def test_cat_and_audit_read_several_paths(orders: Path) -> None:
    paths = (orders / "orders-1", orders / "clicks-0", orders / "orders-1" / LOG)
    assert [(row["topic"], row["partition"]) for row in lines_of(*paths)] == [("orders", 1)] * 3 + [("clicks", 0)] * 3
    found = json_of("audit", *paths)
    assert (found["path"], found["paths"]) == (None, [str(path) for path in paths])
    assert found["total"]["records"] == 6
    assert json_of("audit", orders)["path"] == str(orders)


@pytest.mark.parametrize("command", ["cat", "audit"])
def test_replicas_are_refused_or_the_longest_is_read(command: str, orders: Path, tmp_path: Path) -> None:
    shutil.copytree(orders / "clicks-0", tmp_path / "clicks-0")
    longer = (tmp_path / "clicks-0" / LOG).read_bytes() + kbat.encode(
        kbat.scan(orders / "clicks-0", columns=["key", "value", "timestamp"]), base_offset=3
    )
    (tmp_path / "clicks-0" / LOG).write_bytes(longer)
    done = run(command, orders, tmp_path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert str(orders / "clicks-0") in done.stderr
    assert str(tmp_path / "clicks-0") in done.stderr
    assert "--replicas longest" in done.stderr
    options = (orders, tmp_path, "--replicas", "longest", "--topic", "clicks", "--partition", 0)
    if command == "cat":
        assert [row["offset"] for row in lines_of(*options)] == list(range(6))
    else:
        assert json_of("audit", *options)["total"]["records"] == 6


def with_input(data: bytes, *arguments: object) -> Any:  # noqa: ANN401 - a result of the runner
    return CliRunner().invoke(app, ["cat", *map(str, arguments)], input=data, catch_exceptions=False)


@pytest.mark.parametrize("arguments", [("cat", "-"), ("import", "-", "out")])
def test_closed_standard_input_is_named(arguments: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kbat", *arguments]
    done = subprocess.run(  # noqa: S603 - its own module
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *command], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr.startswith("kbat: the standard input is closed: name a file instead of -")


def test_cat_reads_the_standard_input(orders: Path) -> None:
    data = (orders / "clicks-0" / LOG).read_bytes()
    rows = [json.loads(line) for line in with_input(data, "-").stdout.splitlines()]
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [(None, None, n) for n in range(3)]
    both = [json.loads(line) for line in with_input(data, orders / "orders-0", "-").stdout.splitlines()]
    assert [row["topic"] for row in both] == ["orders"] * 3 + [None] * 3
    piped = subprocess.run(
        [sys.executable, "-m", "kbat", "cat", "-", "-n", "1"],
        input=data,
        capture_output=True,
        check=True,
        env=environment(),
    )
    assert [json.loads(line) for line in piped.stdout.splitlines()] == rows[:1]


@pytest.mark.parametrize(
    ("data", "arguments", "exit_code", "reason"),
    [
        (b"", ("-",), 1, "warning: the standard input is empty"),
        (gzip.compress(b"x" * 100), ("-",), 2, "the file is gzip-compressed; decompress it first (the standard input)"),
        (TEXT.encode(), ("-",), 2, "the file is a text file (the standard input)"),
        (b"", ("-", "-"), 2, "can be read only once"),
        (b"", ("-", "--topic", "orders"), 2, "has no topic"),
        (b"\x00" * 16 + b"\x09" * 60, ("-",), 1, "save the standard input to a file: 'kbat verify FILE'"),
    ],
)
def test_standard_input_that_is_not_a_log_is_named(
    data: bytes, arguments: tuple[str, ...], exit_code: int, reason: str
) -> None:
    done = with_input(data, *arguments)
    assert (done.exit_code, done.stdout) == (exit_code, "")
    assert reason in done.stderr


@pytest.mark.parametrize("command", READERS + WRITERS)
@pytest.mark.parametrize("name", ["empty", "orders-0"])
def test_empty_directory_is_a_warning_with_exit_code_1(command: str, name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    place.mkdir()
    out = [] if command in READERS else [tmp_path / "out"]
    done = run(command, place, *out)
    assert (done.exit_code, done.stdout) == (1, "")
    _, (warning,), _ = discover(place)
    assert done.stderr == f"kbat: warning: {warning}\n"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert "empty directory" in " ".join(run(command, "--help").stdout.split())


def _gzip_copy(root: Path) -> Path:
    place = root / "orders-0"
    place.mkdir()
    (place / f"{LOG}.gz").write_bytes(gzip.compress((LOG_DIR / "codec-lz4-0" / LOG).read_bytes()))
    return place


def _below(root: Path) -> Path:
    copy_of("codec-lz4", root / "backup" / "data" / "t-0")
    return root / "backup"


def _text_file(root: Path) -> Path:
    (root / "notes.txt").write_text(TEXT)
    return root / "notes.txt"


def _gzip_file(root: Path) -> Path:
    (root / f"{LOG}.gz").write_bytes(gzip.compress(b"x" * 100))
    return root / f"{LOG}.gz"


UNRECOGNISED = [
    (_gzip_copy, "gzip-compressed; decompress it first"),
    (_below, "the segments are in a subdirectory"),
    (_text_file, "the file is a text file"),
    (_gzip_file, "gzip-compressed; decompress it first"),
]


@pytest.mark.parametrize("command", READERS + WRITERS)
@pytest.mark.parametrize(("make", "reason"), UNRECOGNISED, ids=lambda value: getattr(value, "__name__", ""))
def test_path_without_a_segment_is_an_error_that_names_what_is_there(
    command: str,
    make: Any,  # noqa: ANN401 - a function of the list
    reason: str,
    tmp_path: Path,
) -> None:
    place = make(tmp_path)
    done = run(command, place, *([] if command in READERS else [tmp_path / "out"]))
    assert (done.exit_code, done.stdout) == (2, "")
    if place.is_dir() or command not in {"recover", "compact", "rewrite"}:
        with pytest.raises(ValueError, match=r".") as raised:
            kbat.find_segments(place)
        assert done.stderr == f"kbat: {raised.value}\n"
        assert reason in done.stderr
    else:
        assert "is a file; name the partition directory" in " ".join(done.stderr.replace("│", "").split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", WRITERS)
def test_partition_of_text_files_is_refused(command: str, tmp_path: Path) -> None:
    place = tmp_path / "text-0"
    place.mkdir()
    (place / LOG).write_text(TEXT)
    for path in (place, place / LOG) if command in {"salvage", "rebuild-indexes"} else (place,):
        done = run(command, path, tmp_path / "out")
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr == f"kbat: not a Kafka log segment: the file is a text file ({place / LOG})\n"
    assert not (tmp_path / "out").exists()


def test_partition_of_text_files_gets_no_command_that_would_not_help(tmp_path: Path) -> None:
    place = tmp_path / "text-0"
    place.mkdir()
    (place / LOG).write_text(TEXT)
    found = json_of("verify", place, exit_code=2)
    assert found["next"] == []
    shown = run("verify", place).stdout
    assert "the file is a text file" in shown
    assert "salvage" not in shown
    assert [one["message"] in shown for one in found["findings"]] == [True] * len(found["findings"])
    assert "the file is a text file" in run("cat", place).stderr
    assert "salvage" not in run("cat", place).stderr
    copy_of("codec-lz4", tmp_path / "good-0")
    shutil.copy(place / LOG, tmp_path / "good-0" / f"{10_000:020}.log")
    assert [command for command in json_of("verify", tmp_path / "good-0", exit_code=2)["next"] if "salvage" in command]


def test_audit_of_a_log_without_a_readable_batch_fails(tmp_path: Path) -> None:
    place = tmp_path / "noise-0"
    place.mkdir()
    (place / LOG).write_text(TEXT)
    done = run("audit", place)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"kbat: not a Kafka log segment: the file is a text file ({place / LOG})\n"
    (place / LOG).write_bytes(bytes(range(1, 255)) * 40)
    found = run("audit", place, "--json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["batches_skipped"] > 0
    assert "no batch can be read" in found.stderr
    # a log that a broker has just created may end inside its first batch
    (place / LOG).write_bytes((LOG_DIR / "codec-lz4-0" / LOG).read_bytes()[:100])
    assert run("audit", place).exit_code == 0


@pytest.mark.parametrize("command", ["recover", "salvage"])
def test_nothing_to_keep_is_a_wrong_argument(command: str, tmp_path: Path) -> None:
    place = tmp_path / "noise-0"
    place.mkdir()
    (place / LOG).write_bytes(bytes(range(1, 255)) * 40)
    done = run(command, place, tmp_path / "out")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "nothing to keep" in done.stderr
    assert "kbat salvage" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_verify_suggests_no_salvage_if_no_batch_is_whole(tmp_path: Path) -> None:
    place = tmp_path / "noise-0"
    place.mkdir()
    (place / LOG).write_bytes(bytes(range(1, 255)) * 40)
    found = json_of("verify", place, exit_code=2)
    assert found["batch_count"] == 0
    assert not [command for command in found["next"] if "salvage" in command or "recover" in command]
    assert "salvage" not in run("verify", place).stdout


def test_partitions_with_something_else_are_a_warning_beside_the_others(tmp_path: Path) -> None:
    copy_of("codec-lz4", tmp_path / "good-0")
    _gzip_copy(tmp_path)
    for command in READERS:
        done = run(command, tmp_path)
        assert done.exit_code == {"verify": 2, "ls": 1}.get(command, 0)
        assert done.stderr.startswith("kbat: warning: ")
        assert f"{LOG}.gz: the file is gzip-compressed" in done.stderr
        assert "good" in done.stdout or command == "verify"
    assert len(json_of("verify", tmp_path, exit_code=2)["warnings"]) == 1


def test_ls_and_verify_show_what_is_wrong_in_a_directory_without_segments(tmp_path: Path) -> None:
    (tmp_path / "orders-0.0123456789abcdef0123456789abcdef-delete").mkdir()
    assert [row["state"] for row in json_of("ls", tmp_path)["stray"]] == ["delete"]
    (tmp_path / "t-0" / LOG).mkdir(parents=True)
    found = json_of("verify", tmp_path / "t-0", exit_code=2)
    assert "directory_name" in {one["kind"] for one in found["findings"]}


@contextmanager
def without_access(*places: Path) -> Iterator[None]:
    """Run as a user who can't open some files and directories."""
    for place in places:
        place.chmod(0)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)
        yield
    finally:
        os.seteuid(user)
        for place in places:
            place.chmod(0o755)


def test_ls_and_verify_continue_after_a_partition_that_can_not_be_read() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        for topic in ("good-0", "hidden-0", "locked-0"):
            copy_of("codec-lz4", root / topic)
        (root / "lost-0").symlink_to(root / "not-mounted")
        for command in READERS:  # imports what the other user may not
            run(command, root / "good-0")
        with without_access(root / "hidden-0", root / "locked-0" / LOG):
            rows = {row["topic"]: row for row in json_of("ls", root, exit_code=1)["partitions"]}
            shown = run("ls", root)
            report = json_of("verify", root, exit_code=2)
            others = [run(command, root) for command in ("cat", "audit")]
        assert (rows["good"]["end_offset"], rows["good"]["error"]) == (220, None)
        assert "Permission denied" in rows["locked"]["error"]
        assert shown.stdout.index("good") < shown.stdout.index(f"(unreadable): {root / 'hidden-0'}")
        unreadable = {one["path"] for one in report["findings"] if one["kind"] == "unreadable"}
        assert unreadable == {str(root / "hidden-0"), str(root / "locked-0" / LOG), str(root / "lost-0")}
        assert report["record_count"] == 220
        for done in others:  # rows may not be missing without an error
            assert (done.exit_code, done.stdout) == (1, "")
            assert any(str(root / name) in done.stderr for name in ("hidden-0", "lost-0"))


@pytest.mark.parametrize("command", READERS + WRITERS)
def test_a_pipe_is_refused_with_what_to_do(command: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = run(command, pipe, *([] if command in READERS else [tmp_path / "out"]))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is a pipe or a device: copy it to a file" in " ".join(done.stderr.replace("│", "").split())


@pytest.mark.parametrize("command", ["ls", "verify", "audit"])
def test_commands_that_do_not_read_the_standard_input_say_so(command: str) -> None:
    done = run(command, "-")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "only `kbat cat` reads the standard input" in " ".join(done.stderr.replace("│", "").split())


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts bytes as Linux does")
@pytest.mark.parametrize("command", ["ls", "verify"])
def test_the_holes_of_a_sparse_segment_are_not_read(command: str, tmp_path: Path) -> None:
    place = copy_of("codec-lz4", tmp_path / "t-0")
    expected = json_of("ls", place)["segments"][0]["end_offset"]
    os.truncate(place / LOG, 2 << 30)
    script = """
import sys
import tempfile
from contextlib import contextmanager
from kbat._core.locations import discover
from kbat.cli.app import app
try:
    app()
finally:
    sys.stderr.write(dict(line.split(": ") for line in open("/proc/self/io"))["rchar"])
"""
    arguments = [sys.executable, "-c", script, command, str(place), "--json"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment())  # noqa: S603 - its own script
    assert int(done.stderr) < 100 << 20
    if command == "ls":
        assert json.loads(done.stdout)["segments"][0]["end_offset"] == expected
