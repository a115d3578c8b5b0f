"""`kbat verify` and the commands that write: the files are those of the API, and a failure leaves none."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import kbat
from command_line import CORPUS, LOG, LOG_DIR, content, copy_of, environment, json_of, process, run
from kbat.cli import output
from kbat.cli.location import Location
from kbat.cli.verify import next_commands
from partitions import Log, contents


@pytest.mark.parametrize("case", ["crash-flip", "crash-index", "crash-torn", "codec-lz4"])
def test_verify_is_the_report_of_the_api(case: str, tmp_path: Path) -> None:
    place = copy_of(case, tmp_path / "topic-0")
    report = kbat.verify(place)
    found = json_of("verify", place, exit_code=report.exit_code)
    commands = found.pop("next")
    expected = {**report.to_dict(), "exit_code": report.exit_code, "warnings": []}
    for finding in expected["findings"]:
        finding["message"] = output.in_shell(finding["message"])
    assert found == json.loads(json.dumps(expected))
    assert bool(commands) == (report.exit_code != 0)
    shown = run("verify", place, "--all")
    assert shown.exit_code == report.exit_code
    for finding in report.findings:
        assert f"{finding.severity}: {finding.kind}: {finding.path}" in shown.stdout
        assert output.in_shell(finding.message) in shown.stdout
    assert all(f"  {command}" in shown.stdout for command in commands)


def test_verify_shows_three_findings_of_a_kind_and_errors_first(tmp_path: Path) -> None:
    place = copy_of("crash-index", tmp_path / "topic-0")
    lines = run("verify", place).stdout.splitlines()
    assert sum(line.startswith("error: index_position") for line in lines) == 3
    (more,) = [line for line in lines if "more findings" in line]
    report = kbat.verify(place)
    shown = sum(line.startswith(("error: ", "warning: ", "info: ")) for line in lines)
    assert int(more.split()[0]) == len(report.findings) + report.omitted_count - shown
    assert "--all" in more
    severities = [line.split(":")[0] for line in lines if line.startswith(("error: ", "info: "))]
    assert severities == sorted(severities)


def test_verify_exits_with_1_for_warnings(tmp_path: Path) -> None:
    copy_of("codec-lz4", tmp_path / "topic-0")
    assert kbat.verify(tmp_path).exit_code == 1
    assert run("verify", tmp_path).exit_code == 1


def test_verify_of_an_unreadable_path_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_of("codec-lz4", tmp_path / "topic-0")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr(kbat, "verify", refuse)
    done = run("verify", tmp_path)
    assert done.exit_code == 2
    assert "Permission denied" in done.stderr
    assert "run kbat as a user with access" in done.stderr


def test_verify_names_commands_that_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run unchanged in an empty directory: their output verifies, and the damaged files do not change."""
    monkeypatch.chdir(tmp_path)
    place = copy_of("crash-flip", tmp_path / "it's damaged" / "topic-0")
    before = content(place)
    commands = json_of("verify", place, exit_code=2)["next"]
    assert [shlex.split(command)[1] for command in commands] == ["recover", "recover", "salvage"]
    for command in commands:
        assert run(*shlex.split(command)[1:]).exit_code == 0, command
    assert content(place) == before
    for made in ("recovered/topic-0", "salvaged/topic-0"):
        assert run("verify", tmp_path / made).exit_code == 0
    indexes = copy_of("crash-index", tmp_path / "index-0")
    (command,) = json_of("verify", indexes, exit_code=2)["next"]
    assert run(*shlex.split(command)[1:]).exit_code == 0
    assert run("verify", indexes).exit_code == 0
    (command,) = json_of("verify", copy_of("crash-index", tmp_path / "file-0") / LOG, exit_code=2)["next"]
    assert command.endswith(f"file-0/{LOG}")
    assert run(*shlex.split(command)[1:]).exit_code == 0


def test_verify_names_rebuild_indexes_only_where_the_log_is_whole(tmp_path: Path) -> None:
    place = copy_of("crash-flip", tmp_path / "topic-0")
    (place / LOG.replace(".log", ".index")).write_bytes(b"\xff" * 64)
    findings = json_of("verify", place, exit_code=2)
    assert {Path(finding["path"]).suffix for finding in findings["findings"]} >= {".log", ".index"}
    assert not [command for command in findings["next"] if "rebuild-indexes" in command]


def test_verify_shows_ten_of_a_kind_of_information(tmp_path: Path) -> None:
    for number in range(12):
        with kbat.LogWriter(tmp_path / f"orders-{number}") as writer:
            writer.append(None, b"value", timestamp=0)
    done = run("verify", tmp_path)
    shown = [line for line in done.stdout.splitlines() if line.startswith("info: partition_metadata_missing")]
    assert len(shown) == 10
    assert "2 more findings of the same kinds; --all shows more\n" in done.stdout
    assert run("verify", tmp_path, "--all").stdout.count("info: partition_metadata_missing") == 12


def test_verify_names_no_command_that_would_not_help(tmp_path: Path) -> None:
    orphan = copy_of("codec-lz4", tmp_path / "orphan-0")
    (orphan / "00000000000000099999.index").touch()
    stray = copy_of("codec-lz4", tmp_path / "stray-0")
    (stray / "00000000000000099999.snapshot").write_bytes(next(stray.glob("*.snapshot")).read_bytes())
    (tmp_path / "directory-0" / LOG).mkdir(parents=True)
    kinds = {orphan: "orphan_index", stray: "snapshot_beyond_end", tmp_path / "directory-0": "directory_name"}
    for place, kind in kinds.items():
        found = json_of("verify", place, exit_code=kbat.verify(place).exit_code)
        assert kind in {finding["kind"] for finding in found["findings"]}
        assert found["next"] == []


def test_verify_of_an_unreadable_index_suggests_ls(tmp_path: Path) -> None:
    place = copy_of("codec-lz4", tmp_path / "-topic-0")
    index = place / LOG.replace(".log", ".index")
    index.unlink()
    index.symlink_to(index.name)
    (command,) = json_of("verify", place, exit_code=2)["next"]
    assert run(*shlex.split(command)[1:]).exit_code == 0
    assert run("verify", place).exit_code == 0
    denied = {"kind": "unreadable", "severity": "error", "message": "Permission denied (os error 13)"}
    report = SimpleNamespace(findings=[SimpleNamespace(path=str(index), **denied)])
    assert list(next_commands(Location(str(place)), cast("kbat.Report", report))) == [f"ls -ld {index}"]
    index.unlink()
    index.mkdir()
    assert json_of("verify", place, exit_code=2)["next"] == [f"ls -ld {index}"]


def test_verify_of_a_file_outside_a_partition_suggests_salvage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.bin").write_bytes((CORPUS / "crash-flip" / LOG).read_bytes())
    (command,) = json_of("verify", "dump.bin", exit_code=2)["next"]
    assert command == "kbat salvage dump.bin salvaged/dump"
    assert run(*shlex.split(command)[1:]).exit_code == 0
    assert run("verify", "salvaged/dump").exit_code == 0
    assert "'kbat salvage dump.bin OUT' keeps all complete batches" in run("cat", "dump.bin").stderr


def test_commands_to_type_take_a_name_with_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    copy_of("crash-flip", tmp_path / "-topic-0")
    commands = json_of("verify", "./-topic-0", exit_code=2)["next"]
    assert len(commands) == 3
    for command in commands:
        assert run(*shlex.split(command)[1:]).exit_code == 0, command
    assert (
        "'kbat verify ./-topic-0' lists all corruption, 'kbat salvage ./-topic-0 OUT'"
        in run("cat", "./-topic-0").stderr
    )


def test_recover_salvage_and_rebuild_are_those_of_the_api(tmp_path: Path) -> None:
    place = copy_of("crash-flip", tmp_path / "topic-0")
    before = content(place)
    dry = json_of("recover", place, "--dry-run")
    assert dry == json.loads(json.dumps(kbat.recover(place, dry_run=True).to_dict()))
    assert content(place) == before
    found = json_of("recover", place, tmp_path / "new" / "out", "--index-interval-bytes", "1k")
    kbat.recover(place, tmp_path / "expected", index_interval_bytes=1024)
    assert content(tmp_path / "new" / "out") == content(tmp_path / "expected")
    assert (found["out"], found["end_offset"], found["is_complete"]) == (str(tmp_path / "new" / "out"), 99, False)
    salvaged = run("salvage", place, tmp_path / "salvaged")
    assert "offsets 99 to 104 are lost" in salvaged.stdout
    kbat.salvage(place, tmp_path / "salvaged-by-api")
    assert content(tmp_path / "salvaged") == content(tmp_path / "salvaged-by-api")
    rebuilt = json_of("rebuild-indexes", place, tmp_path / "indexes")
    kbat.rebuild_indexes(place, tmp_path / "indexes-by-api")
    assert content(tmp_path / "indexes") == content(tmp_path / "indexes-by-api")
    assert ["00000000000000000000.index", "written"] in rebuilt["files"]
    assert content(place) == before
    assert run("recover", place, "--in-place").exit_code == 0
    assert kbat.PartitionLog(place).end_offset == 99


def test_recover_in_place_can_be_tried(tmp_path: Path) -> None:
    place = copy_of("crash-flip", tmp_path / "topic-0")
    before = content(place)
    tried = run("recover", place, "--in-place", "--dry-run")
    assert (tried.exit_code, tried.stderr) == (0, "")
    assert content(place) == before
    dropped = json_of("recover", place, "--in-place", "--dry-run")["dropped"]
    assert json_of("recover", place, "--in-place")["dropped"] == dropped


def test_dry_run_reports_the_difference_of_in_place(tmp_path: Path) -> None:
    """If offsets are too far apart for one segment, it is split in a copy, and truncated in place."""
    log = Log(tmp_path / "t-0")
    log.batch((b"a", b"1"))
    log.end_offset = 1 << 40
    log.batch((b"b", b"2"))
    log.write()
    size = len(log.segment[0])
    for options in ("--dry-run",), ("--in-place", "--dry-run"):
        done = run("recover", log.directory, *options)
        assert done.exit_code == 0
        assert done.stderr == (
            f"kbat: {log.directory / LOG} is split at byte {size} in a copy only: --in-place truncates the log "
            "there and deletes everything after it\n"
        )
    (segment,) = json_of("recover", log.directory, "--in-place")["segments"]
    assert segment["bytes_after"] == size


@pytest.mark.parametrize("arguments", [(), ("out", "--in-place"), ("out", "--dry-run")], ids=" ".join)
def test_recover_wants_one_way_to_do_it(arguments: tuple[str, ...], tmp_path: Path) -> None:
    place = copy_of("crash-flip", tmp_path / "topic-0")
    before = content(place)
    done = run("recover", place, *arguments)
    assert done.exit_code == 2
    assert done.stderr == "kbat: choose one of: OUT for a recovered copy, --in-place, or --dry-run\n"
    assert content(place) == before
    assert not Path("out").exists()


@pytest.mark.parametrize("command", ["recover", "salvage", "rebuild-indexes", "compact", "rewrite"])
def test_commands_for_partitions_name_one_of_a_log_directory(command: str, tmp_path: Path) -> None:
    first, *_ = kbat.LogDirectory(LOG_DIR).partitions
    done = run(command, LOG_DIR, tmp_path / "out")
    assert (done.exit_code, done.stdout) == (2, "")
    reason, _, loop = done.stderr.removesuffix("\n").partition("; for each damaged one: ")
    assert reason == f"kbat: {LOG_DIR} is a log directory; name one of its partitions, such as {first.directory}"
    assert bool(loop) == (command in {"recover", "salvage"})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["recover", "salvage"])
def test_the_loop_over_damaged_partitions_can_be_pasted(command: str, tmp_path: Path) -> None:
    logs = tmp_path / "my logs"
    for name, case in (("bad-0", "crash-flip"), ("good-0", "codec-lz4")):
        copy_of(case, logs / name)
    out = tmp_path / "out dir"
    loop = run(command, logs, *(["--dry-run"] if command == "recover" else [out])).stderr.partition("damaged one: ")[2]
    function = f'kbat() {{ {shlex.quote(sys.executable)} -m kbat "$@"; }}; '
    done = subprocess.run(["sh", "-c", function + loop], capture_output=True, text=True, check=True, env=environment())  # noqa: S603, S607
    assert (done.stdout.count("1 segment"), "bad-0" in done.stdout) == (1, True), done.stderr
    assert [path.name for path in out.glob("*")] == (["bad-0"] if command == "salvage" else [])


def test_salvage_names_the_file_that_a_broker_does_not_know(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert f"{out / 'holes.jsonl'} lists what was dropped: move it" in run("salvage", CORPUS / "crash-flip", out).stdout
    assert (out / "holes.jsonl").exists()
    assert "holes.jsonl" not in run("salvage", CORPUS / "codec-lz4", tmp_path / "whole").stdout


def test_verify_suggests_no_index_for_a_snapshot_that_rebuilding_keeps(tmp_path: Path) -> None:
    place = copy_of("idempotent", tmp_path / "t-0")
    snapshots = sorted(place.glob("*.snapshot"))
    other = Log(tmp_path / "other-0")
    other.batch((b"a", b"1"), pid=77)
    other.write()
    kbat.rebuild_indexes(other.directory)
    snapshots[-1].write_bytes((other.directory / f"{1:020}.snapshot").read_bytes())
    assert kbat.rebuild_indexes(place).files
    assert [one.kind for one in kbat.verify(place).findings if one.severity == "warning"] == ["snapshot_mismatch"]
    assert json_of("verify", place, exit_code=1)["next"] == []


def test_rebuild_indexes_is_suggested_as_a_change_of_the_directory(tmp_path: Path) -> None:
    shown = run("verify", copy_of("crash-index", tmp_path / "t-0")).stdout
    assert "# replaces the indexes there; with OUT, writes new ones to OUT" in shown


def test_compact_reports_an_only_segment_that_is_active(tmp_path: Path) -> None:
    note = "kbat: the only segment is active and was copied as it is; --include-active compacts it\n"
    for options, shown in (((), note), (("--include-active",), "")):
        out = tmp_path / f"out{len(options)}"
        assert run("compact", CORPUS / "codec-lz4", out, *options).stderr == shown


def test_rewrite_and_compact_are_those_of_the_api(tmp_path: Path) -> None:
    place = copy_of("codec-lz4", tmp_path / "topic-0")
    options = ("--compression", "zstd", "--level", "3", "--batch-bytes", "64KiB")
    found = json_of("rewrite", place, tmp_path / "deep" / "er" / "rewritten", *options)
    report = kbat.rewrite(place, tmp_path / "by-api", compression="zstd", level=3, batch_bytes=65536)
    names = {"path": str(place), "out": str(tmp_path / "deep" / "er" / "rewritten")}
    assert found == {**names, **report.to_dict()}
    assert content(tmp_path / "deep" / "er" / "rewritten") == content(tmp_path / "by-api")
    shown = run("rewrite", place, tmp_path / "old", "--magic", "0", "--compression", "none", "--drop-producer-state")
    assert shown.exit_code == 0
    lost = kbat.rewrite(place, tmp_path / "old-api", magic=0, compression="none", keep_producer_state=False).losses
    assert ", ".join(lost) in shown.stdout
    now = ("--now", "2024-01-01T00:00:00Z", "--delete-retention-ms", "5")
    found = json_of("compact", place, tmp_path / "compacted", "--include-active", *now)
    compacted = kbat.compact(
        place, tmp_path / "compacted-api", include_active=True, now_ms=1_704_067_200_000, delete_retention_ms=5
    )
    assert found == {"path": str(place), "out": str(tmp_path / "compacted"), **compacted.to_dict()}
    assert content(tmp_path / "compacted") == content(tmp_path / "compacted-api")
    text = run("compact", place, tmp_path / "again", "--include-active").stdout
    assert "superseded 16" in text
    assert "35.9 KiB" in text


def test_rewrite_removes_producers_with_drop_producer_state(tmp_path: Path) -> None:
    place = LOG_DIR / "idempotent-0"
    for options, producers in ((), {1000, 1001, 1002}), (("--drop-producer-state",), {-1}):
        out = tmp_path / "-".join(("out", *options))
        assert run("rewrite", place, out, *options).exit_code == 0
        ids = kbat.scan(out, view="batches", columns=["producer_id"]).to_pyarrow().column(0).to_pylist()
        assert set(ids) == producers


def test_rewrite_that_fails_leaves_no_directory(tmp_path: Path) -> None:
    done = run("rewrite", CORPUS / "crash-flip", tmp_path / "deep" / "er" / "out", "--compression", "gzip")
    assert done.exit_code == 1
    assert f"{CORPUS / 'crash-flip' / LOG}: byte 13922" in done.stderr
    assert "kbat salvage" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    done = run("compact", CORPUS / "codec-lz4", tmp_path / "full")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "is not empty" in done.stderr


@pytest.mark.parametrize(
    ("number", "exit_code", "message"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_command_that_a_signal_ends_leaves_nothing(
    tmp_path: Path, number: signal.Signals, exit_code: int, message: str
) -> None:
    log = Log(tmp_path / "t-0")
    for _ in range(30):
        log.batch((None, os.urandom(1 << 20) * 2), codec="none")
    log.write()
    out = tmp_path / "deep" / "out"
    running = process("rewrite", log.directory, out, "--compression", "zstd", "--level", "22")
    with running:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("deep/*.kbat-partial-*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        running.send_signal(number)
        stdout, stderr = running.communicate(timeout=60)
    assert (running.returncode, stdout, stderr) == (exit_code, "", f"kbat: {message}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["t-0"]
    assert contents(log.directory)
