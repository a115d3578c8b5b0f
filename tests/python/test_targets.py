"""Where results are written: every way to name an empty directory, and never over what is read."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import process
from data import DATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from s3_server import S3Server

SOURCE = DATA / "log-dir" / "txn-lz4-0"

WRITERS: dict[str, Callable[[str | Path], object]] = {
    "salvage": lambda out: kbat.salvage(SOURCE, out),
    "recover": lambda out: kbat.recover(SOURCE, out),
    "rewrite": lambda out: kbat.rewrite(SOURCE, out),
    "filter": lambda out: kbat.filter(SOURCE, out, lambda _: True),
    "restore": lambda out: kbat.restore(SOURCE, out),
    "rebuild_indexes": lambda out: kbat.rebuild_indexes(SOURCE, out),
}


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture(params=WRITERS)
def writer(request: pytest.FixtureRequest) -> Callable[[str | Path], object]:
    return WRITERS[str(request.param)]


@pytest.fixture
def expected(writer: Callable[[str | Path], object], tmp_path: Path) -> dict[str, bytes]:
    writer(tmp_path / "expected-0")
    return files(tmp_path / "expected-0")


@pytest.mark.parametrize("exists", [False, True])
def test_a_slash_at_the_end_changes_nothing(
    writer: Callable[[str | Path], object], expected: dict[str, bytes], tmp_path: Path, *, exists: bool
) -> None:
    if exists:
        (tmp_path / "out-0").mkdir()
    writer(f"{tmp_path}/out-0/")
    assert files(tmp_path / "out-0") == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["expected-0", "out-0"]


def test_the_working_directory_is_a_target(
    writer: Callable[[str | Path], object],
    expected: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "out-0").mkdir()
    monkeypatch.chdir(tmp_path / "out-0")
    writer(".")
    assert files(tmp_path / "out-0") == expected


def test_a_link_to_an_empty_directory_is_a_target(
    writer: Callable[[str | Path], object], expected: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out-0").symlink_to("real")
    writer(tmp_path / "out-0")
    assert (tmp_path / "out-0").is_symlink()
    assert files(tmp_path / "real") == expected


def test_a_topic_may_have_the_longest_name(
    writer: Callable[[str | Path], object], expected: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / ("t" * 249 + "-0")
    writer(out)
    assert files(out) == expected


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Path]:
    """An empty file system of 20 MB."""
    path = tmp_path / "mounted"
    path.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", path], check=True, capture_output=True)  # noqa: S603, S607
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this user may not mount a file system: {error}")
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)  # noqa: S603, S607


def test_a_mounted_file_system_is_a_target(
    writer: Callable[[str | Path], object], expected: dict[str, bytes], mount: Path
) -> None:
    writer(mount)
    assert files(mount) == expected
    with pytest.raises(ValueError, match="the output directory is not empty"):
        writer(mount)


def test_a_mounted_file_system_is_a_target_after_a_run_that_was_killed(
    writer: Callable[[str | Path], object], expected: dict[str, bytes], mount: Path
) -> None:
    left = mount / "kbat-0.kbat-partial-1-0-delete"
    left.mkdir()
    (left / "rest").write_bytes(b"rest")
    writer(mount)
    assert files(mount) == expected


def test_a_new_file_system_is_a_target(
    writer: Callable[[str | Path], object], expected: dict[str, bytes], mount: Path
) -> None:
    (mount / "lost+found").mkdir()
    writer(mount)
    assert files(mount) == expected


COMMANDS: dict[str, Callable[[Path, Path], tuple[object, ...]]] = {
    "copy": lambda _, out: ("copy", SOURCE, out),
    "import": lambda lines, out: ("import", lines, out),
}


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"key":"k","value":"v","timestamp":1700000000000}\n')
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_write_to_a_mounted_file_system_a_link_and_a_long_name(
    command: str, lines: Path, mount: Path, tmp_path: Path
) -> None:
    (mount / "lost+found").mkdir()
    killed = mount / "kbat-0.kbat-partial-1-0-delete"
    killed.mkdir()
    (killed / "rest").write_bytes(b"rest")
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to("real")
    long = tmp_path / ("t" * 249 + "-0")
    found = []
    for out in (mount, link, long):
        running = process(*COMMANDS[command](lines, out))
        _, errors = running.communicate(timeout=60)
        assert running.returncode == 0, errors
        found.append(kbat.scan(out).count())
    assert link.is_symlink()
    assert found == [found[0]] * 3
    assert found[0] > 0
    assert [path.name for path in mount.iterdir() if path.is_dir()] == ["lost+found"]
    running = process(*COMMANDS[command](lines, mount))
    _, errors = running.communicate(timeout=60)
    assert f"the output directory is not empty: name one that does not exist yet ({mount})" in errors


def test_what_is_inside_a_mounted_target_has_a_name_that_brokers_accept(lines: Path, mount: Path) -> None:
    """Kafka deletes directories that match this pattern when it starts; others with `-delete` stop it."""
    running = process("import", "-", mount, stdin=subprocess.PIPE)
    assert running.stdin is not None
    try:
        running.stdin.write(lines.read_text() * 100_000)
        running.stdin.flush()
        deadline = time.monotonic() + 30
        while not (names := [path.name for path in mount.iterdir()]) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [re.fullmatch(r"(\S+)-(\S+)\.(\S+)-delete", name) is not None for name in names] == [True]
    finally:
        running.kill()
        running.communicate()


def test_parquet_never_replaces_a_file_that_is_read(tmp_path: Path) -> None:
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes((SOURCE / "00000000000000000004.log").read_bytes())
    (tmp_path / "link").symlink_to(log)
    before = log.read_bytes()
    for target in (log, tmp_path / "link", f"{tmp_path}/../{tmp_path.name}/{log.name}"):
        with pytest.raises(ValueError, match="this file is one of those to read: name another one"):
            kbat.write_parquet(kbat.scan(log), target)
    assert log.read_bytes() == before
    (file,) = kbat.write_parquet(kbat.scan(log), tmp_path / "rows.parquet")
    kbat.write_parquet(kbat.scan(log), tmp_path / "rows.parquet")
    assert file.row_count == kbat.scan(log).count()


def test_parquet_never_replaces_an_object_that_is_read(s3_server: S3Server) -> None:
    stored = s3_server.upload(SOURCE, "targets/parquet/orders-0")
    options: dict[str, Any] = {"storage_options": s3_server.options}
    log = f"{stored}/00000000000000000004.log"
    for target in (log, log.replace("s3://", "s3a://")):
        with pytest.raises(ValueError, match="this file is one of those to read"):
            kbat.write_parquet(kbat.scan(stored, **options), target, **options)
    assert (
        s3_server.get("targets/parquet/orders-0/00000000000000000004.log")
        == (SOURCE / "00000000000000000004.log").read_bytes()
    )


@pytest.mark.parametrize("call", [kbat.salvage, kbat.restore, kbat.rewrite])
def test_a_source_in_a_store_is_never_a_target(call: Callable[..., Any], s3_server: S3Server) -> None:
    stored = s3_server.upload(SOURCE, f"targets/{call.__name__}/orders-0")
    options: dict[str, Any] = {"storage_options": s3_server.options}
    for target in (f"{stored}/copy-0", f"{stored}/", f"{stored}/copy-0".replace("s3://", "s3a://")):
        with pytest.raises(ValueError, match=r"the output directory is inside s3.*name a prefix outside it"):
            call(stored, target, **options)
    call(stored, f"{stored}-copy-0", **options)


def test_what_import_writes_is_no_live_partition_before_it_is_complete(tmp_path: Path) -> None:
    running = process("import", "-", tmp_path / "orders-0", stdin=subprocess.PIPE)
    assert running.stdin is not None
    try:
        line = f'{{"key":"k","value":"{"v" * 100}","timestamp":1700000000000}}\n'
        running.stdin.write(line * 60_000)
        running.stdin.flush()
        deadline = time.monotonic() + 30
        while not any(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert any(tmp_path.iterdir())
        assert kbat.LogDirectory(tmp_path).partitions == []
    finally:
        running.kill()
        running.communicate()
    assert kbat.LogDirectory(tmp_path).partitions == []
    again = process("import", "-", tmp_path / "orders-0", stdin=subprocess.PIPE)
    again.communicate(line, timeout=60)
    assert again.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["orders-0"], "what the killed run left is removed"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("command", ["cat", "ls", "verify", "stat"])
def test_a_full_disk_is_one_line_and_an_exit_code(command: str) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        running = process(command, SOURCE, stdout=full)
        _, errors = running.communicate(timeout=60)
    assert running.returncode in {1, 2}
    assert errors.splitlines() == ["kbat: [Errno 28] No space left on device"]


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.arrow", "out.parquet"])
def test_file_that_cannot_be_written_is_named(name: str, tmp_path: Path) -> None:
    lowered = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (500, 500))
    running = process("export", SOURCE, tmp_path / name, stdout=subprocess.PIPE, preexec_fn=lowered)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 1
    assert "[Errno 27]" in errors
    assert f"/{name}'" in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("copy",), ("convert", "--compression", "none"), ("filter", "--key", "x")])
def test_bytes_after_the_last_batch_are_named(arguments: tuple[str, ...], tmp_path: Path) -> None:
    command, *options = arguments
    running = process(command, DATA / "corpus" / "crash-torn", tmp_path / "out-0", *options)
    output, _ = running.communicate(timeout=60)
    assert "bytes after the last complete batch of a segment, not copied: 1,775" in output
