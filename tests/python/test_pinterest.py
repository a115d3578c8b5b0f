"""The layout of Pinterest's uploader: binary digits in the keys, and a watermark beside the segments."""

from __future__ import annotations

import os
import shutil
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import run
from data import DATA
from remote_logs import offsets_of, warned

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from s3_server import S3Server


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Fail on warnings, except where a test expects them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def uploaded(target: Path, watermark: int | None = None) -> Path:
    """Copy partitions as Pinterest's uploader stores them, under different binary digits."""
    for bits, case in enumerate(("txn-lz4", "codec-lz4", "segments-default-interval")):
        partition = target / f"{bits:02b}" / "cluster-1" / f"{case}-0"
        partition.mkdir(parents=True)
        bases = []
        for path in (DATA / "corpus" / case).iterdir():
            if path.suffix in {".log", ".index", ".timeindex"}:
                shutil.copyfile(path, partition / path.name)
                bases.append(int(path.stem))
        (partition / "offset.wm").write_text(f"{max(bases) if watermark is None else watermark:020}\n")
        (partition / "_metadata").write_text("{}")
    return target


@pytest.mark.parametrize("stored", [False, True], ids=["files", "objects"])
def test_partitions_under_binary_digits_are_found(stored: bool, tmp_path: Path, s3_server: S3Server) -> None:  # noqa: FBT001 - a parameter
    location = os.fspath(uploaded(tmp_path / "backup"))
    options: dict[str, Any] = {}
    if stored:
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        location, options = (
            s3_server.upload(tmp_path / "backup", "pinterest", files),
            {"storage_options": s3_server.options},
        )
    logs = kbat.LogDirectory(location, **options).partitions
    assert [log.topic for log in logs] == ["codec-lz4", "segments-default-interval", "txn-lz4"]
    for log in logs:
        expected = kbat.scan(DATA / "corpus" / str(log.topic), columns=["offset", "value"]).to_pyarrow()
        found = kbat.scan(location, topics=log.topic, columns=["offset", "value"], **options).to_pyarrow()
        assert found.num_rows > 0
        assert found == expected
    # the uploader does not copy transaction indexes
    errors = [one for one in kbat.verify(location, **options).findings if one.severity == "error"]
    assert {(one.kind, "txn-lz4-0" in str(one.path)) for one in errors} == {("aborted_transaction_missing", True)}
    # the directories themselves
    partition = f"{location}/00/cluster-1/txn-lz4-0"
    assert kbat.PartitionLog(partition, **options).end_offset == 374
    assert kbat.PartitionLog(f"{location}/txn-lz4-0", **options).end_offset == 374


def test_segments_above_the_watermark_are_omitted(tmp_path: Path) -> None:
    location = uploaded(tmp_path, watermark=114)
    text = warned(lambda: kbat.scan(location, topics="txn-lz4").count())
    lines = [line for line in text.splitlines() if "above the offset.wm of 114" in line]
    names = sorted(path.name for path in (DATA / "corpus" / "txn-lz4").glob("*.log") if int(path.stem) > 114)
    assert len(lines) == len(names) > 0
    assert all(name in text for name in names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = kbat.PartitionLog(location / "txn-lz4-0")
    assert max(segment.base_offset for segment in log.segments) == 114
    findings = kbat.verify(location, topics="txn-lz4").findings
    assert len([one for one in findings if one.kind == "omitted_segment"]) == len(names)


@pytest.mark.parametrize(
    "command",
    [
        ("ls", "{}"),
        ("ls", "{}/txn-lz4-0"),
        ("cat", "{}", "--topic", "txn-lz4"),
        ("batches", "{}"),
        ("stat", "{}"),
        ("producers", "{}"),
        ("transactions", "{}/txn-lz4-0"),
        ("verify", "{}"),
        ("verify", "{}/txn-lz4-0"),
        ("salvage", "{}/txn-lz4-0", "{}-salvaged"),
        ("rewrite", "{}/txn-lz4-0", "{}-rewritten"),
    ],
    ids=" ".join,
)
def test_commands_show_each_warning_once(command: tuple[str, ...], tmp_path: Path) -> None:
    location = uploaded(tmp_path / "backup", watermark=114)
    done = run(*(one.format(location) for one in command))
    lines = done.stderr.splitlines()
    shown = [line for line in lines if "above the offset.wm of 114" in line]
    assert shown
    assert all(line.startswith("kbat: warning: ") for line in shown), lines
    assert len(set(lines)) == len(lines), lines
    assert "UserWarning" not in done.stderr


def test_without_any_watermark_the_layout_is_that_of_a_plain_copy(tmp_path: Path) -> None:
    location = uploaded(tmp_path)
    for path in location.rglob("offset.wm"):
        path.unlink()
    cluster = location / "00" / "cluster-1"
    assert offsets_of(cluster) == offsets_of(cluster / "txn-lz4-0") == list(range(374))
    with pytest.raises(ValueError, match=r"the segments are in a subdirectory: name .*cluster-1"):
        kbat.scan(location)


def test_a_partition_without_a_watermark_is_read_with_a_warning(tmp_path: Path) -> None:
    location = uploaded(tmp_path)
    (location / "00" / "cluster-1" / "txn-lz4-0" / "offset.wm").unlink()
    read: list[int] = []
    text = warned(lambda: read.extend(offsets_of(location, topics="txn-lz4")))
    assert "there is no offset.wm, so the last segment may be incomplete" in text
    assert read == list(range(374))


def test_a_malformed_watermark_is_named(tmp_path: Path) -> None:
    location = uploaded(tmp_path)
    (location / "00" / "cluster-1" / "txn-lz4-0" / "offset.wm").write_text("x")
    with pytest.raises(kbat.CorruptError, match=r"offset\.wm"):
        kbat.scan(location, topics="txn-lz4")


def test_a_partition_of_two_clusters_is_named(tmp_path: Path) -> None:
    location = uploaded(tmp_path)
    shutil.copytree(location / "00" / "cluster-1", location / "11" / "cluster-2")
    with pytest.raises(ValueError, match="in two directories, such as those of two clusters"):
        kbat.scan(location)


def test_the_tail_continues_uploaded_segments(tmp_path: Path) -> None:
    remote = uploaded(tmp_path / "remote", watermark=114)
    local = tmp_path / "txn-lz4-0"
    local.mkdir()
    for path in (DATA / "corpus" / "txn-lz4").iterdir():
        if path.suffix in {".log", ".index", ".timeindex", ".txnindex"} and int(path.stem) > 114:
            shutil.copyfile(path, local / path.name)
    assert offsets_of(local, remote=remote) == list(range(374))
