"""The segments in tiered storage and the directory of a broker as one log: `remote=`."""

from __future__ import annotations

import os
import pickle
import shutil
import struct
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import kbat
from command_line import json_of, lines_of, run
from data import DATA
from kbat.cli.app import app
from outcomes import COLUMNS, lookups, outcome, rows, without
from remote_logs import BASES, END, LOGS, REMOTE, TAIL, offsets_of, warned
from test_tiered import remote_directory, remote_truth, topic_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from s3_server import S3Server

# Options of scans whose rows and errors are compared.
ASKED: tuple[dict[str, Any], ...] = (
    {"columns": COLUMNS, "include_control": True},
    {"columns": ["offset", "value"], "isolation": "read_committed"},
    {"columns": ["offset", "key"], "start_offset": 4400, "end_offset": 6700},
    {"view": "batches"},
    {"view": "segments", "columns": ["base_offset", "end_offset", "size", "index_size", "txn_index_size"]},
)


@pytest.fixture
def truth(tmp_path: Path) -> str:
    """The remote segments and the local tail under a broker's names, in one directory."""
    log_dir = tmp_path / "truth"
    log_dir.mkdir()
    partition = remote_truth(log_dir)
    for path in TAIL.iterdir():
        shutil.copyfile(path, partition / path.name)
    shutil.copyfile(LOGS / "log-start-offset-checkpoint", log_dir / "log-start-offset-checkpoint")
    return os.fspath(partition)


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Fail on warnings, except where a test expects them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture(params=["files", "objects"])
def remote(request: pytest.FixtureRequest, s3_server: S3Server) -> dict[str, Any]:
    """The keyword arguments for the remote segments, in the file system and in a bucket."""
    if request.param == "files":
        return {"remote": REMOTE}
    files = [path for path in REMOTE.rglob("*") if path.is_file()]
    return {"remote": s3_server.upload(REMOTE, "remote", files), "storage_options": s3_server.options}


def partition_copy(source: Path, target: Path, bases: tuple[int, ...]) -> Path:
    """Copy some segments of the remote partition as a broker's."""
    target.mkdir(parents=True)
    for path in source.iterdir():
        if int(path.name[:20]) in bases and path.suffix in {".log", ".index", ".timeindex", ".txnindex"}:
            shutil.copyfile(path, target / f"{path.name[:20]}{path.suffix}")
    (target / "leader-epoch-checkpoint").write_text("0\n1\n0 200\n")
    return target


def cut_copy(base: int, target: Path, *, keep_first: bool) -> tuple[Path, int]:
    """Copy one half of a segment as a broker's; the offset at which it was cut."""
    [source] = remote_directory().glob(f"{base:020}-*.log")
    batches = [bytes(batch) for batch in kbat.read_batches(source)]
    half = len(batches) // 2
    [first] = struct.unpack_from(">q", batches[half])
    target.mkdir(parents=True)
    name = f"{base if keep_first else first:020}.log"
    (target / name).write_bytes(b"".join(batches[:half] if keep_first else batches[half:]))
    return target, first


# --- One log from two locations


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("local", ["partition", "log directory", "pattern"])
def test_rows_are_those_of_one_directory(truth: str, local: str, asked: dict[str, Any], remote: dict[str, Any]) -> None:
    source, options = {
        "partition": (TAIL, {}),
        "log directory": (LOGS, {"topics": "orders"}),
        "pattern": (LOGS / "orders-*", {}),
    }[local]
    expected = without(rows(truth, **asked), truth)
    found = without(rows(os.fspath(source), **asked, **options, **remote), os.fspath(TAIL))
    assert expected[0].num_rows > 0
    assert found == expected


def test_the_rows_are_from_both_locations() -> None:
    offsets = offsets_of(TAIL, remote=REMOTE)
    assert (offsets[0], offsets[-1]) == (200, END - 1)
    assert len(offsets) == len(offsets_of(remote_directory())) + len(offsets_of(TAIL))
    assert offsets == sorted(set(offsets))


def test_lookups_are_those_of_one_directory(truth: str, remote: dict[str, Any]) -> None:
    expected = without(lookups(truth, {}), truth)
    assert without(lookups(os.fspath(TAIL), remote), os.fspath(TAIL)) == expected
    log = kbat.PartitionLog(TAIL, **remote)
    assert (log.start_offset, log.end_offset) == (200, END)
    assert [segment.base_offset for segment in log.segments] == [*BASES, 6678]
    assert log.find_offset(300) is not None


def test_every_partition_of_a_log_directory_is_there(remote: dict[str, Any]) -> None:
    logs = kbat.LogDirectory(LOGS, **remote)
    assert [(log.topic, log.start_offset) for log in logs.partitions] == [("__remote_log_metadata", 0), ("orders", 200)]
    assert logs.meta is not None


def test_nothing_is_wrong_with_the_log(truth: str, remote: dict[str, Any]) -> None:
    expected = {(one.kind, Path(one.path).name) for one in kbat.verify(truth).findings}
    report = kbat.verify(TAIL, **remote)
    assert {(one.kind, Path(one.path).name) for one in report.findings} == expected
    assert report.segment_count == len(BASES) + 1
    assert [one.message for one in kbat.verify(LOGS, **remote).findings if one.severity == "error"] == []


def test_a_remote_segment_is_named_by_its_path_in_the_local_directory() -> None:
    path = TAIL / f"{BASES[2]:020}.log"
    assert not path.exists()
    segment = kbat.Segment(path, remote=REMOTE)
    assert segment.end_offset == BASES[3]
    assert kbat.scan(path, remote=REMOTE, include_control=True).count() > 1000


@pytest.mark.parametrize("name", ["salvage", "rewrite"])
def test_a_copy_has_all_segments(name: str, truth: str, tmp_path: Path) -> None:
    getattr(kbat, name)(TAIL, tmp_path / "orders-0", remote=REMOTE)
    getattr(kbat, name)(truth, tmp_path / "expected-0")
    logs = [path.name for path in (tmp_path / "expected-0").glob("*.log")]
    assert len(logs) >= len(BASES)
    for log in logs:
        assert (tmp_path / "orders-0" / log).read_bytes() == (tmp_path / "expected-0" / log).read_bytes()


def test_a_restored_log_directory_has_all_segments(tmp_path: Path) -> None:
    report = kbat.restore(LOGS, tmp_path / "out", topics="orders", remote=REMOTE)
    assert [(one.start_offset, one.end_offset) for one in report.partitions] == [(200, END)]
    assert offsets_of(tmp_path / "out" / "orders-0") == offsets_of(TAIL, remote=REMOTE)


def test_a_joined_log_is_not_changed_in_place(tmp_path: Path) -> None:
    copy = shutil.copytree(TAIL, tmp_path / "orders-0")
    with pytest.raises(ValueError, match="can only be changed in the file system"):
        kbat.recover(copy, in_place=True, remote=REMOTE)


def test_a_url_of_the_local_directory_is_accepted(s3_server: S3Server) -> None:
    stored = s3_server.upload(LOGS, "remote-tail", [path for path in LOGS.rglob("*") if path.is_file()])
    options: dict[str, Any] = {"storage_options": s3_server.options, "remote": REMOTE}
    assert kbat.PartitionLog(f"{stored}/orders-0", **options).end_offset == END
    assert kbat.scan(stored, topics="orders", **options).count() == kbat.scan(TAIL, remote=REMOTE).count()


# --- Overlaps and gaps


def test_overlapping_segments_are_read_once(tmp_path: Path) -> None:
    local = partition_copy(remote_directory(), tmp_path / "orders-0", BASES[3:])
    for path in TAIL.iterdir():
        shutil.copyfile(path, local / path.name)
    assert offsets_of(local, remote=REMOTE) == offsets_of(TAIL, remote=REMOTE)
    scan = kbat.scan(local, remote=REMOTE, start_offset=5000, end_offset=5001, columns=["segment"])
    [source] = scan.to_pyarrow()["segment"].to_pylist()
    assert source == os.fspath(local / f"{BASES[4]:020}.log")


def test_segments_that_end_elsewhere_are_read_in_part(tmp_path: Path) -> None:
    local, first = cut_copy(4517, tmp_path / "orders-0", keep_first=False)
    for path in remote_directory().glob(f"{BASES[5]:020}-*.log"):
        shutil.copyfile(path, local / f"{BASES[5]:020}.log")
    log = kbat.PartitionLog(local, remote=REMOTE)
    assert [segment.base_offset for segment in log.segments] == [*BASES[:5], first, BASES[5]]
    assert offsets_of(local, remote=REMOTE) == offsets_of(remote_directory())
    kinds = {one.kind for one in kbat.verify(local, remote=REMOTE).findings}
    assert not kinds & {"segments_overlap", "segment_gap", "omitted_segment"}


def test_a_gap_is_named(tmp_path: Path) -> None:
    remote = shutil.copytree(REMOTE, tmp_path / "remote")
    for path in remote.rglob(f"{BASES[5]:020}-*"):
        path.unlink()
    text = warned(lambda: offsets_of(TAIL, remote=remote))
    assert "offsets 6535 to 6677 are neither in" in text
    assert os.fspath(TAIL) in text
    found = {one.kind: one for one in kbat.verify(TAIL, remote=remote).findings}
    assert found["segment_gap"].offset == 6678


def test_a_gap_in_the_remote_segments_is_named(tmp_path: Path) -> None:
    remote = shutil.copytree(topic_directory("zstd", "txn-lz4"), tmp_path / topic_directory("zstd", "txn-lz4").name)
    local = tmp_path / "txn-lz4-0"
    shutil.copytree(DATA / "corpus" / "txn-lz4", local)
    starts = sorted(int(path.name[:20]) for path in remote.rglob("*.log"))
    for start in starts[:-2]:
        for path in local.glob(f"{start:020}.*"):
            path.unlink()
    for path in remote.rglob(f"{starts[2]:020}-*.rsm-manifest"):
        path.unlink()
    text = warned(lambda: offsets_of(local, remote=remote))
    assert f"no segment contains offsets {starts[2]} to {starts[3] - 1}" in text
    assert "incomplete" in text


def test_an_unfinished_copy_of_a_local_segment_is_no_warning(tmp_path: Path) -> None:
    remote = shutil.copytree(topic_directory("zstd", "txn-lz4"), tmp_path / topic_directory("zstd", "txn-lz4").name)
    last = max(remote.rglob("*.rsm-manifest"))
    base = int(last.name[:20])
    last.unlink()
    local = tmp_path / "txn-lz4-0"
    local.mkdir()
    for path in (DATA / "corpus" / "txn-lz4").glob(f"{base:020}.*"):
        shutil.copyfile(path, local / path.name)
    assert offsets_of(local, remote=remote) == list(range(366))


def test_records_after_the_end_of_an_old_copy_are_read(tmp_path: Path) -> None:
    local, first = cut_copy(2361, tmp_path / "orders-0", keep_first=True)
    assert f"ends before offset {first}: offsets {first} to 6677 are read from" in warned(
        lambda: offsets_of(local, remote=REMOTE)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert offsets_of(local, remote=REMOTE) == offsets_of(remote_directory())
        log = kbat.PartitionLog(local, remote=REMOTE)
    assert [segment.base_offset for segment in log.segments] == [*BASES[:3], first, *BASES[3:]]


def test_records_of_a_deposed_leader_are_omitted(tmp_path: Path) -> None:
    """The remote segments from 4517 on are of the leader of epoch 1, which the local directory does not know."""
    remote = shutil.copytree(remote_directory(), tmp_path / "remote" / remote_directory().name)
    for path in remote.glob("*.leader_epoch_checkpoint"):
        if int(path.name[:20]) >= BASES[4]:
            path.write_text("0\n2\n0 200\n1 4517\n")
    local = partition_copy(remote_directory(), tmp_path / "orders-0", BASES[3:])
    text = warned(lambda: offsets_of(local, remote=remote.parent))
    assert f"offsets from 4517 on in {local} are not read" in text
    assert "deposed leader, epoch 0" in text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = kbat.PartitionLog(local, remote=remote.parent)
        assert offsets_of(local, remote=remote.parent) == offsets_of(remote_directory())
    assert log.leader_epochs == [(0, 200), (1, 4517)]


def test_remote_records_of_a_deposed_leader_are_omitted(tmp_path: Path) -> None:
    """The local directory knows that epoch 1 began at 4517; a remote segment of epoch 0 reaches beyond it."""
    remote = shutil.copytree(remote_directory(), tmp_path / "remote" / remote_directory().name)
    for path in remote.glob("*.leader_epoch_checkpoint"):
        path.write_text("0\n1\n0 200\n")
    local = tmp_path / "orders-0"
    shutil.copytree(TAIL, local)
    (local / "leader-epoch-checkpoint").write_text("0\n2\n0 200\n1 4517\n")
    text = warned(lambda: offsets_of(local, remote=remote.parent))
    for base in BASES[4:]:
        assert any(f"{base:020}-" in line and "deposed leader, epoch 0" in line for line in text.splitlines()), base
    assert "4517 to 6677 are neither in" in text


def test_plain_copies_of_a_log_directory_are_a_remote_location(truth: str) -> None:
    backup = Path(truth).parent
    for path in backup.glob("orders-0/*6678.*"):
        path.unlink()
    assert offsets_of(TAIL, remote=backup) == offsets_of(TAIL, remote=REMOTE)
    assert kbat.PartitionLog(TAIL, remote=backup / "orders-0").start_offset == 200


# --- Arguments


def test_partitions_that_are_only_remote_are_named(tmp_path: Path) -> None:
    remote = shutil.copytree(REMOTE, tmp_path / "remote")
    shutil.copytree(remote_directory(), remote / "orders-1-gZr7LNvRQaeTZzSyD2PJ2A")
    assert "are not read: orders-1" in warned(lambda: kbat.LogDirectory(LOGS, remote=remote))
    assert "are not read: orders-1" in warned(lambda: kbat.scan(LOGS, topics="orders", remote=remote).count())
    kbat.scan(LOGS, topics="orders", partitions=0, remote=remote).count()
    assert any(one.kind == "remote_partition" for one in kbat.verify(LOGS, remote=remote).findings)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"remote": DATA / "corpus"}, ValueError, "remote has no effect: no partition here has segments in"),
        ({"remote": DATA / "nowhere"}, FileNotFoundError, "nowhere"),
        ({"remote": TAIL / "00000000000000006678.log"}, ValueError, "remote is a file"),
        ({"remote": 7}, TypeError, "remote must be a path or a URL"),
        ({"remote_log_metadata": LOGS}, ValueError, "remote_log_metadata has no effect"),
        ({"remote": REMOTE, "remote_log_metadata": TAIL}, ValueError, "no partition of __remote_log_metadata is here"),
        ({"remote": REMOTE, "storage_options": {"region": "x"}}, ValueError, "storage_options"),
    ],
    ids=str,
)
def test_arguments_without_effect_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=r"remote|nowhere|storage_options") as raised:
        kbat.PartitionLog(TAIL, **options)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "read",
    [
        kbat.Segment,
        kbat.scan,
        kbat.find_segments,
        kbat.read_batches,
        kbat.verify,
        partial(kbat.split, max_bytes=1 << 20),
        partial(kbat.recover, dry_run=True),
        lambda path, **options: kbat.scan([path], **options),
    ],
    ids=["Segment", "scan", "find_segments", "read_batches", "verify", "split", "recover", "list"],
)
def test_remote_of_a_file_in_the_local_directory_is_refused(read: Callable[..., object]) -> None:
    path = TAIL / f"{6678:020}.log"
    with pytest.raises(ValueError, match="remote has no effect on a file: name the directory") as raised:
        read(path, remote=REMOTE)
    assert os.fspath(path) in str(raised.value)


def test_files_of_both_locations_are_read_together() -> None:
    found = kbat.find_segments(TAIL, remote=REMOTE)
    assert len(found) == len(BASES) + 1
    expected = kbat.scan(TAIL, remote=REMOTE).count()
    assert kbat.scan(found, remote=REMOTE).count() == expected
    assert kbat.scan([one.path for one in found], remote=REMOTE).count() == expected
    assert kbat.scan(found[-1], remote=REMOTE).count() == kbat.scan(TAIL).count()
    assert sum(kbat.scan(part, remote=REMOTE).count() for part in kbat.split(found, 1 << 18, remote=REMOTE)) == expected


def test_remote_of_a_parquet_file_is_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"remote": REMOTE}
    with pytest.raises(TypeError, match="remote has no effect on a target"):
        kbat.write_parquet(kbat.scan(TAIL), tmp_path / "out.parquet", **options)


def test_errors_of_remote_bytes_have_the_same_position(truth: str, tmp_path: Path) -> None:
    remote = shutil.copytree(REMOTE, tmp_path / "remote")
    for path in (next(remote.rglob(f"{BASES[2]:020}-*.log")), Path(truth) / f"{BASES[2]:020}.log"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    for on_corrupt in ("fail", "report", "skip"):
        asked: dict[str, Any] = {"columns": COLUMNS, "on_corrupt": on_corrupt}
        expected = outcome(partial(rows, truth, **asked), truth)
        found = outcome(partial(rows, os.fspath(TAIL), remote=remote, **asked), os.fspath(TAIL))
        assert found == expected, on_corrupt


# --- The commands


def test_commands_read_one_log() -> None:
    options = ("--remote", REMOTE)
    listed = json_of("ls", TAIL, *options)
    assert [one["base_offset"] for one in listed["segments"]] == [*BASES, 6678]
    assert len(lines_of(TAIL, *options)) == kbat.scan(TAIL, remote=REMOTE).count()
    assert run("verify", LOGS, *options).exit_code == 0


def test_commands_name_their_option() -> None:
    result = run("ls", TAIL, "--remote", DATA / "corpus")
    assert result.exit_code == 2
    assert "--remote has no effect" in result.stderr
    for command in ("ls", "cat", "verify", "batches", "stat"):
        result = run(command, TAIL / f"{6678:020}.log", "--remote", REMOTE)
        assert (result.exit_code, result.stdout) == (2, ""), command
        assert "--remote has no effect on a file: name the directory of its partition" in result.stderr
    result = run("ls", TAIL, "--remote-log-metadata", LOGS)
    assert "--remote-log-metadata has no effect" in result.stderr


def test_a_log_with_remote_segments_is_not_pickled() -> None:
    with pytest.raises(TypeError, match=r"is read from tiered storage and can't be pickled: open it again"):
        pickle.dumps(kbat.PartitionLog(TAIL, remote=REMOTE))


def test_remote_is_refused_for_bytes() -> None:
    data = next(TAIL.glob("*.log")).read_bytes()
    with pytest.raises(ValueError, match="remote has no effect on buffers"):
        kbat.scan(data, remote=REMOTE)
    done = CliRunner().invoke(app, ["cat", "-", "--remote", os.fspath(REMOTE)], input=data)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--remote has no effect on the standard input" in done.stderr


def test_an_empty_remote_is_refused() -> None:
    done = run("cat", TAIL, "--remote", "")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "it is empty; name a directory or its URL" in done.stderr
