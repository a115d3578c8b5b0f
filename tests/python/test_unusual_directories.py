"""Unusual names of directories, and what a broker or a command left behind: nothing is omitted silently."""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING

import pytest

import kbat
from command_line import CORPUS, LOG, copy_of, json_of, run
from test_tiered import AIVEN, KAFKA

if TYPE_CHECKING:
    from pathlib import Path

#: Eight segments with 1,100 records.
CASE = "segments-default-interval"
SECOND = "00000000000000000147.log"


def errors_of(report: kbat.Report) -> list[str]:
    return [finding.kind for finding in report.findings if finding.severity == "error"]


def test_a_topic_may_begin_with_a_dot(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    copy_of("codec-lz4", logs / ".orders-0")
    copy_of("codec-none", logs / "other-0")
    (logs / ".trash").mkdir()
    assert kbat.LogDirectory(logs).end_offsets() == {(".orders", 0): 220, ("other", 0): 220}
    assert kbat.scan(logs).count() == 440
    assert json_of("lookup", logs, "--offset", "3")["results"][0]["topic"] == ".orders"
    kbat.restore(logs, tmp_path / "restored")
    assert kbat.scan(tmp_path / "restored").count() == 440
    assert kbat.scan(tmp_path / "restored" / ".orders-0").count() == 220


def test_a_topic_of_tiered_storage_may_begin_with_a_dot(tmp_path: Path) -> None:
    for source, name in ((AIVEN / "plain" / "pre" / "fix", "codec-lz4"), (KAFKA / "remote", "orders")):
        [directory] = [path for path in source.iterdir() if path.name.startswith(name)]
        target = tmp_path / name / f".{directory.name}"
        shutil.copytree(directory, target)
        count = kbat.scan(directory.parent, topics=[name]).count()
        assert kbat.scan(tmp_path / name, topics=[f".{name}"]).count() == count > 0


def test_what_a_desktop_has_deleted_is_not_read(tmp_path: Path) -> None:
    copy_of("codec-lz4", tmp_path / "backup" / "ok-0")
    copy_of(CASE, tmp_path / "backup" / ".Trash-1000" / "files" / "orders-0")
    report = kbat.restore(tmp_path / "backup", tmp_path / "restored")
    assert [one.topic for one in report.partitions] == ["ok"]


def test_a_log_that_starts_after_its_end_is_not_restored_as_empty(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    copy_of(CASE, logs / "orders-0")
    starts = logs / "log-start-offset-checkpoint"
    starts.write_text("0\n1\norders 0 5000\n")
    for dry_run in (True, False):
        with pytest.raises(
            kbat.CorruptError, match="starts at offset 5000 by this file, but ends at offset 1100"
        ) as raised:
            kbat.restore(logs, tmp_path / "restored", dry_run=dry_run)
        assert str(starts) in str(raised.value)
    starts.write_text("0\n1\norders 0 1100\n")
    report = kbat.restore(logs, tmp_path / "restored")
    assert [(one.start_offset, one.end_offset) for one in report.partitions] == [(1100, 1100)]


@pytest.mark.parametrize("length", [0, 5000])
def test_a_corrupt_swap_file_is_an_error_whose_advice_keeps_the_segments(
    length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = copy_of(CASE, tmp_path / "orders-0")
    swap = place / f"{SECOND}.swap"
    swap.write_bytes((place / SECOND).read_bytes()[:length])
    report = kbat.verify(place)
    assert errors_of(report) == ["corrupt_swap"]
    assert report.record_count == 1100
    monkeypatch.chdir(tmp_path)
    [command] = json_of("verify", place, exit_code=2)["next"]
    assert run(*shlex.split(command)[1:]).exit_code == 0
    assert kbat.scan(tmp_path / "salvaged" / "orders-0").count() == 1100
    refused = run("recover", place, "--dry-run")
    assert "remove it, or use salvage, which keeps them" in refused.stderr
    assert refused.stderr.endswith(f"'kbat verify {place}' has the details\n")


def test_the_command_restore_searches_as_the_function_does(tmp_path: Path) -> None:
    copy_of(CASE, tmp_path / "backups" / "a" / "orders-0")
    copy_of("codec-lz4", tmp_path / "backups" / "b" / "payments-0")
    found = json_of("restore", tmp_path / "backups", tmp_path / "restored")
    assert [one["topic"] for one in found["partitions"]] == ["orders", "payments"]
    assert kbat.scan(tmp_path / "restored").count() == 1320


def test_two_segments_with_the_same_base_offset_do_not_hide_other_partitions(tmp_path: Path) -> None:
    copy_of("codec-lz4", tmp_path / "ok-0")
    place = copy_of(CASE, tmp_path / "orders-0")
    shutil.copy(place / SECOND, place / "147.log")
    report = json_of("verify", tmp_path, exit_code=2)
    assert [one["kind"] for one in report["findings"] if one["severity"] == "error"] == ["duplicate_segment"]
    assert (report["record_count"], report["next"]) == (220, [])
    assert errors_of(kbat.verify(place)) == ["duplicate_segment"]
    found = json_of("ls", tmp_path, exit_code=1)
    [other] = found["partitions"]
    assert (other["topic"], other["end_offset"], other["error"]) == ("ok", 220, None)
    [stray] = found["stray"]
    assert "147.log has the same base offset" in stray["error"]


def test_two_directories_of_one_partition_are_refused(tmp_path: Path) -> None:
    copy_of("codec-lz4", tmp_path / "orders-0")
    copy_of("codec-none", tmp_path / "orders-00")
    copy_of("codec-zstd", tmp_path / "payments-0")
    message = "orders-00 is of the same partition: move away the directory that does not belong to the log"
    for read in (kbat.scan, kbat.find_segments):
        with pytest.raises(kbat.CorruptError, match=message):
            read(tmp_path)
    assert kbat.scan(tmp_path, topics=["payments"]).count() == 220
    report = kbat.verify(tmp_path)
    assert [finding.kind for finding in report.findings if finding.severity == "error"] == ["directory_name"]
    assert report.record_count == 660
    done = run("ls", tmp_path)
    assert done.exit_code == 1
    assert message in done.stderr
    assert "payments" in done.stdout


def test_ls_fails_for_a_partition_of_indexes_alone(tmp_path: Path) -> None:
    copy_of("codec-lz4", tmp_path / "ok-0")
    for log in copy_of(CASE, tmp_path / "orders-0").glob("*.log"):
        log.unlink()
    found = json_of("ls", tmp_path, exit_code=1)
    assert [one["topic"] for one in found["partitions"]] == ["ok"]
    [stray] = found["stray"]
    assert "is an index whose .log file is missing" in stray["error"]


def test_ls_names_the_only_segment_if_it_is_a_swap_file(tmp_path: Path) -> None:
    place = tmp_path / "orders-0"
    place.mkdir()
    shutil.copy(CORPUS / "codec-none" / LOG, place / f"{LOG}.swap")
    done = run("ls", place)
    assert done.exit_code == 1
    assert f"{LOG}.swap" in done.stderr


def test_verify_calls_a_partition_of_compressed_segments_an_error(tmp_path: Path) -> None:
    copy_of("codec-lz4", tmp_path / "ok-0")
    place = copy_of("codec-none", tmp_path / "orders-0")
    (place / LOG).rename(place / f"{LOG}.gz")
    assert errors_of(kbat.verify(tmp_path)) == ["compressed_segment"]


def test_advice_does_not_name_the_incomplete_result_of_a_killed_command(tmp_path: Path) -> None:
    partial = tmp_path / "backup" / "out.kbat-partial-1-2-delete"
    copy_of(CASE, partial / "orders-0")
    for command in (("ls",), ("cat",), ("restore", tmp_path / "restored")):
        done = run(command[0], tmp_path / "backup", *command[1:])
        assert done.exit_code != 0
        assert f"{partial.name} is the incomplete result of a killed command: delete it" in done.stderr


@pytest.mark.parametrize("name", ["orders-0 (1)", "-0", "orders-2147483648", "backup"])
def test_segments_in_a_directory_of_another_name_cause_a_warning(name: str, tmp_path: Path) -> None:
    copy_of("codec-lz4", tmp_path / "ok-0")
    copy_of(CASE, tmp_path / name)
    warning = "contains segments and is not read, because its name is not that of a partition"
    with pytest.warns(UserWarning, match=warning):
        assert kbat.scan(tmp_path).count() == 220
    done = run("stat", tmp_path)
    assert done.exit_code == 0
    assert warning in done.stderr
    assert warning not in run("stat", tmp_path, "--topic", "ok").stderr


@pytest.mark.parametrize(
    ("command", "case", "name"),
    [("groups", "consumer-offsets", "__consumer_offsets-0"), ("topics", "cluster-metadata", "__cluster_metadata-0")],
)
def test_state_of_an_internal_topic_reports_an_incomplete_last_batch(
    tmp_path: Path, command: str, case: str, name: str
) -> None:
    place = copy_of(case, tmp_path / name)
    assert run(command, tmp_path).stderr == ""
    with (place / LOG).open("r+b") as log:
        log.truncate((place / LOG).stat().st_size - 5)
    assert "kbat: not counted: " in run(command, tmp_path).stderr


def test_state_of_an_internal_topic_can_be_in_a_file_of_another_name(tmp_path: Path) -> None:
    snapshot = CORPUS / "cluster-metadata" / "00000000000000000000-0000000000.checkpoint"
    offsets = shutil.copy(CORPUS / "consumer-offsets" / LOG, tmp_path / "dump.bin")
    for command, path in (("topics", snapshot), ("groups", offsets)):
        assert run(command, path).exit_code == 0, command


def test_copy_does_not_write_into_the_directory_that_it_reads(tmp_path: Path) -> None:
    copy_of(CASE, tmp_path / "logs" / "orders-0")
    done = run("copy", tmp_path / "logs", tmp_path / "logs" / "out")
    assert done.exit_code == 2
    assert "is inside" in done.stderr
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["orders-0"]
    assert run("copy", tmp_path / "logs" / "orders-0", tmp_path / "logs" / "again-0").exit_code == 0


def test_advice_in_the_directory_of_a_partition_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = copy_of(CASE, tmp_path / "logs" / "orders-0")
    with (place / SECOND).open("r+b") as log:
        log.seek(9000)
        log.write(b"XX")
    monkeypatch.chdir(place)
    commands = json_of("verify", ".", exit_code=2)["next"]
    assert commands
    for command in commands:
        assert run(*shlex.split(command)[1:]).exit_code == 0, command
    assert kbat.scan(tmp_path / "salvaged" / "orders-0").count() > 1000
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "recovered", "salvaged"}


def test_logs_with_other_names_beside_segments_cause_a_warning(tmp_path: Path) -> None:
    log = CORPUS / CASE / LOG
    for name in (LOG, "orders (1).log", "copy.log"):
        shutil.copy(log, tmp_path / name)
    with pytest.warns(UserWarning, match=r"copy\.log and 1 more are not read, because their names are not those"):
        one = kbat.scan(tmp_path).count()
    assert "is not read, because its name" not in run("cat", tmp_path, "--limit", "1").stdout
    assert "and 1 more are not read" in run("cat", tmp_path, "--limit", "1").stderr
    assert kbat.scan(f"{tmp_path}/*.log").count() == 3 * one
    assert kbat.scan(f"{tmp_path}/*(1).log").count() == one
    (tmp_path / "copy.log").unlink()
    with pytest.warns(UserWarning, match=r"orders \(1\)\.log is not read, because its name is not that of a segment"):
        kbat.scan(tmp_path)


def test_a_segment_without_20_digits_is_an_error_and_its_advice_renames_it(tmp_path: Path) -> None:
    place = copy_of(CASE, tmp_path / "logs" / "orders-0")
    (place / SECOND).rename(place / "0147.log")
    found = json_of("verify", place, exit_code=2)
    (finding,) = (one for one in found["findings"] if one["kind"] == "file_name")
    assert finding["severity"] == "error"
    assert "its records are missing: rename it" in finding["message"]
    assert found["next"] == [f"mv {place}/0147.log {place / SECOND}"]
    (place / "0147.log").rename(place / SECOND)
    assert errors_of(kbat.verify(place)) == []


@pytest.mark.parametrize("arguments", [["ls"], ["verify"], ["recover", "--in-place"], ["rebuild-indexes"], ["cat"]])
def test_an_empty_path_is_not_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(copy_of(CASE, tmp_path / "orders-0"))
    command, *options = arguments
    done = run(command, "", *options)
    assert done.exit_code == 2
    assert "the path is empty" in done.stderr


def test_an_empty_path_in_python_is_an_error() -> None:
    for read in (kbat.scan, kbat.LogDirectory, kbat.verify):
        with pytest.raises(ValueError, match="the path is empty"):
            read("")


def test_files_without_permission_are_only_unreadable(tmp_path: Path) -> None:
    place = copy_of(CASE, tmp_path / "logs" / "orders-0")
    # root may read everything, so links to themselves take the place of files without permission
    for name in ("leader-epoch-checkpoint", "partition.metadata", max(path.name for path in place.glob("*.log"))):
        (place / name).unlink(missing_ok=True)
        (place / name).symlink_to(name)
    report = kbat.verify(tmp_path / "logs")
    assert sorted(one.kind for one in report.findings if one.severity == "error") == ["unreadable"] * 3
    assert not [one for one in report.findings if one.kind in {"snapshot_beyond_end", "leader_epochs_mismatch"}]


def test_a_segment_of_more_than_2_gib_is_salvaged_not_recovered(tmp_path: Path) -> None:
    place = copy_of(CASE, tmp_path / "orders-0")
    with max(place.glob("*.log")).open("r+b") as log:
        log.truncate(1 << 31)
    found = json_of("verify", place, exit_code=2)
    assert {one["kind"] for one in found["findings"] if one["severity"] == "error"} == {"segment_len"}
    (command,) = found["next"]
    assert command.startswith("kbat salvage ")
