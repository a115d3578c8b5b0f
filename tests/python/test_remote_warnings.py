"""Warnings about remote segments: each is about a partition that is read, is true, and is shown once."""

from __future__ import annotations

import shutil
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import json_of, run
from remote_logs import BASES, LOGS, REMOTE, TAIL, warned
from test_tiered import remote_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OTHER = "orders-1-gZr7LNvRQaeTZzSyD2PJ2A"
GAP = f"no segment contains offsets {BASES[1]} to {BASES[2] - 1}"
OTHER_GAP = f"no segment contains offsets {BASES[2]} to {BASES[3] - 1}"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """Two remote partitions, each without one of its segments."""
    root = tmp_path / "remote"
    for name, base in ((remote_directory().name, BASES[1]), (OTHER, BASES[2])):
        for path in shutil.copytree(remote_directory(), root / name).glob(f"{base:020}-*"):
            path.unlink()
    return root


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """The directories of a broker for both partitions."""
    for name in ("orders-0", "orders-1"):
        shutil.copytree(TAIL, tmp_path / "local" / name)
    return tmp_path / "local"


# --- Partitions that are not shown


@pytest.mark.parametrize("command", ["ls", "verify"])
@pytest.mark.parametrize("joined", [False, True], ids=["alone", "with the broker"])
def test_warnings_are_those_of_the_selected_partition(command: str, joined: bool, local: Path, remote: Path) -> None:  # noqa: FBT001 - a parameter
    source = (local, "--remote", remote) if joined else (remote,)
    shown = run(command, *source, "--partition", 0).output
    assert GAP in shown
    assert OTHER_GAP not in shown
    shown = run(command, *source).output
    assert GAP in shown
    assert OTHER_GAP in shown


def test_a_log_directory_warns_of_selected_partitions(local: Path, remote: Path) -> None:
    for partition, text, other in ((0, GAP, OTHER_GAP), (1, OTHER_GAP, GAP)):
        shown = warned(lambda: kbat.LogDirectory(local, remote=remote, partitions=partition))  # noqa: B023 - called at once
        assert text in shown
        assert other not in shown
    shown = warned(lambda: kbat.LogDirectory(local, remote=remote))
    assert GAP in shown
    assert OTHER_GAP in shown


def test_a_partition_that_is_only_remote_is_named_if_it_is_selected(local: Path, remote: Path) -> None:
    shutil.rmtree(local / "orders-1")
    assert "orders-1" in warned(lambda: kbat.LogDirectory(local, remote=remote))
    assert "orders-1" not in warned(lambda: kbat.LogDirectory(local, remote=remote, partitions=0))


# --- Findings


@pytest.mark.parametrize("joined", [False, True], ids=["alone", "with the broker"])
def test_verify_shows_an_omission_once(joined: bool, local: Path, remote: Path) -> None:  # noqa: FBT001 - a parameter
    source = (local, "--remote", remote) if joined else (remote,)
    done = run("verify", *source)
    assert done.exit_code == 1
    assert done.stdout.count(GAP) == 1
    assert done.stderr == ""
    found = json_of("verify", *source, exit_code=1)
    assert found["warnings"] == []
    assert [GAP in one["message"] for one in found["findings"] if one["kind"] == "omitted_segment"] == [True, False]


def test_a_partition_that_is_only_remote_is_one_finding(local: Path) -> None:
    shutil.rmtree(local / "orders-1")
    shutil.copyfile(LOGS / "meta.properties", local / "meta.properties")
    remote = local.parent / "whole"
    shutil.copytree(REMOTE, remote)
    shutil.copytree(remote_directory(), remote / OTHER)
    done = run("verify", local, "--remote", remote)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.count("orders-1") == 1


# --- Damaged copies


def change(remote: Path, base: int, content: Callable[[bytes], bytes]) -> Path:
    """Change the bytes of a remote segment."""
    [path] = remote.rglob(f"{base:020}-*.log")
    path.write_bytes(content(path.read_bytes()))
    return path


@pytest.mark.parametrize("options", [{}, {"remote_log_metadata": LOGS}], ids=["objects", "metadata"])
@pytest.mark.parametrize("base", [BASES[2], BASES[-1]])
def test_an_empty_object_is_named(base: int, options: dict[str, Any], tmp_path: Path) -> None:
    remote = shutil.copytree(REMOTE, tmp_path / "remote")
    path = change(remote, base, lambda _: b"")
    text = f"{path} is not read: it is empty: the copy may be unfinished, or bytes may be lost"
    shown = warned(lambda: kbat.scan(remote, **options).count()).splitlines()
    assert f"kbat: {text}" in shown
    assert len(shown) == (1 if base == BASES[-1] else 2)
    assert text in [one.message for one in kbat.verify(remote, **options).findings]


@pytest.mark.parametrize("content", [lambda found: bytes(len(found)), lambda found: found[:50]], ids=["zeros", "start"])
def test_an_object_without_a_batch_is_named(content: Callable[[bytes], bytes], tmp_path: Path) -> None:
    remote = shutil.copytree(REMOTE, tmp_path / "remote")
    path = change(remote, BASES[-1], content)
    shown = warned(lambda: kbat.scan(remote).count())
    size = path.stat().st_size
    assert f"is not read: there is no complete batch from offset {BASES[-1]} on in its {size} bytes: the copy" in shown


@pytest.mark.parametrize("base", [BASES[2], BASES[-1]])
@pytest.mark.parametrize("joined", [False, True], ids=["alone", "with the broker"])
@pytest.mark.parametrize(
    ("kind", "content"),
    [("partial_batch", lambda found: found[:-100]), ("zero_tail", lambda found: found + bytes(5000))],
    ids=["start of a batch", "zeros"],
)
def test_verify_reports_the_end_of_a_remote_segment(
    kind: str,
    content: Callable[[bytes], bytes],
    joined: bool,  # noqa: FBT001 - a parameter
    base: int,
    tmp_path: Path,
) -> None:
    remote = shutil.copytree(REMOTE, tmp_path / "remote")
    path = change(remote, base, content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = kbat.verify(TAIL, remote=remote) if joined else kbat.verify(remote)
    [found] = [one for one in report.findings if one.kind == kind]
    assert found.severity == "error"
    assert report.exit_code > 0
    assert found.position is not None
    assert found.message.startswith(f"{path.stat().st_size - found.position} bytes are not a batch: ")
    assert found.message.endswith(
        "brokers copy only complete segments, so the copy is corrupt, and records may be missing"
    )


@pytest.mark.parametrize("has_watermark", [False, True], ids=["plain", "watermark"])
def test_a_copy_may_end_in_zeros_unless_a_watermark_shows_that_it_is_complete(
    has_watermark: bool,  # noqa: FBT001 - a parameter
    tmp_path: Path,
) -> None:
    copy = tmp_path / "orders-0"
    copy.mkdir()
    content = (TAIL / f"{6678:020}.log").read_bytes()
    (copy / f"{6678:020}.log").write_bytes(content + bytes(5000))
    if has_watermark:
        (copy / "offset.wm").write_text(f"{6678:020}")
    [found] = [one for one in kbat.verify(copy).findings if one.kind == "zero_tail"]
    assert (found.position, found.severity) == (len(content), "error" if has_watermark else "info")
