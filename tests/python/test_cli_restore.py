"""`kbat restore`: the plan, the result, exit codes, and what fits a terminal."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import LOG_DIR, json_of, on_terminal, run
from growing_log import GrowingLog, time_of
from test_restore import TOPIC_ID, content, logs_of
from test_restore_target import commits, new_broker
from test_tiered import AIVEN, KEYS, copied

if TYPE_CHECKING:
    from pathlib import Path

    from s3_server import S3Server


def test_help_has_examples_json_fields_and_exit_codes() -> None:
    text = " ".join(run("restore", "--help").stdout.split())
    for part in ("kbat restore", "Examples", "JSON", "Exit codes: 0"):
        assert part in text


def test_a_plan_writes_nothing_and_is_the_table_of_the_restore(tmp_path: Path) -> None:
    arguments = ("restore", LOG_DIR, tmp_path / "out", "--topic", "txn-*")
    plan = run(*arguments, "--dry-run")
    assert plan.exit_code == 0
    assert list(tmp_path.iterdir()) == []
    done = run(*arguments)
    assert done.exit_code == 0
    assert "2 partitions, 56.4 KiB; dry run: nothing was written\n" in plan.stdout
    assert done.stdout.endswith("2 partitions, 56.4 KiB\n")
    rows = [line for line in done.stdout.splitlines() if not line.startswith("  open: ")]
    assert rows[:-1] == plan.stdout.splitlines()[:-1]
    assert "  open: the transaction of producer 1007 from offset 263 on" in done.stdout
    assert "kbat: warning: the ids of these topics in the new cluster are unknown" in done.stderr
    assert logs_of(tmp_path / "out").keys() == {name for name in logs_of(LOG_DIR) if name.startswith("txn-")}


def test_json_is_the_report(tmp_path: Path) -> None:
    found = json_of("restore", LOG_DIR, tmp_path / "out", "--topic", "codec-*", "--topic-id", f"codec-lz4={TOPIC_ID}")
    report = kbat.restore(LOG_DIR, tmp_path / "again", topics="codec-*", topic_ids={"codec-lz4": TOPIC_ID}).to_dict()
    assert found == {**report, "out": str(tmp_path / "out")}
    assert len(found["partitions"]) == 5


@pytest.mark.parametrize(("columns", "hidden"), [(80, True), (200, False)])
def test_lines_fit_the_terminal(columns: int, *, hidden: bool, tmp_path: Path) -> None:
    text = on_terminal(columns, "restore", LOG_DIR, tmp_path / "out", "--dry-run")
    lines = text.splitlines()
    # the first line has the paths
    assert max(map(len, lines[1:])) <= columns
    assert ("hidden in this narrow terminal" in text) == hidden
    assert "segments-d…nterval-0" in text or not hidden
    wide = on_terminal(columns, "restore", LOG_DIR, tmp_path / "out", "--dry-run", "--wide")
    assert "from (UTC)" in wide


def test_ends_of_logs(tmp_path: Path) -> None:
    for number in range(2):
        GrowingLog(tmp_path / "logs" / f"t-{number}").append(5, 5)
    text = run("restore", tmp_path / "logs", tmp_path / "out", "--until-offset", "t-0=7").stdout
    assert "  ends before offset 7\n" in text
    found = json_of(
        "restore", tmp_path / "logs", tmp_path / "new", "--until-offset", "t-0=7", "--until-offset", "t-1=3"
    )
    assert [one["end_offset"] for one in found["partitions"]] == [7, 3]
    found = json_of("restore", tmp_path / "logs", tmp_path / "all", "--until-offset", "8")
    assert [one["end_offset"] for one in found["partitions"]] == [8, 8]
    time = "2023-11-14T22:13:24Z"
    text = run("restore", tmp_path / "logs", tmp_path / "time", "--until-time", time).stdout
    assert text.count("  ends before offset 4, a record of 2023-11-14 22:13:24.000Z\n") == 2
    assert time_of(4) == 1_700_000_004_000


def test_an_option_per_argument(tmp_path: Path) -> None:
    source = tmp_path / "logs"
    shutil.copytree(LOG_DIR / "leader-epochs-0", source / "t-0")
    backup = GrowingLog(tmp_path / "backup" / "__consumer_offsets-0")
    commits(backup, ("billing", "t", 0, 99))
    broker = new_broker(tmp_path / "broker", {"t-0": 0})
    out, csv = tmp_path / "out", tmp_path / "csv"
    arguments = ("restore", source, out, "--log-directory", broker, "--offsets-source", tmp_path / "backup")
    done = run(*arguments, "--committed-offsets", csv, "--leader-epoch", "0", "--index-interval-bytes", "300")
    assert (done.exit_code, done.stderr) == (0, "")
    assert f"1 committed offset of 1 group: {csv}\n" in done.stdout
    assert (csv / "billing.csv").read_text() == "t,0,70\n"
    options: dict[str, Any] = {"leader_epoch": 0, "log_directory": broker, "index_interval_bytes": 300}
    kbat.restore(source, tmp_path / "expected", **options)
    assert content(out) == content(tmp_path / "expected")
    done = run("restore", source, tmp_path / "kept", "--log-directory", broker, "--dry-run")
    assert "pass --leader-epoch 0 to replace them: t-0" in done.stderr


def test_transactions_can_be_aborted(tmp_path: Path) -> None:
    arguments = ("restore", LOG_DIR, tmp_path / "out", "--topic", "txn-lz4", "--open-transactions", "abort")
    text = run(*arguments).stdout
    assert "  aborted: the transaction of producer 1007 from offset 263 on\n" in text
    log = kbat.PartitionLog(tmp_path / "out" / "txn-lz4-0")
    assert log.end_offset == log.last_stable_offset


def test_omitted_objects_are_shown_once(tmp_path: Path) -> None:
    objects = copied("zstd", "txn-lz4", tmp_path / "source")
    next(objects.glob("00000000000000000126-*.rsm-manifest")).unlink()
    done = run("restore", tmp_path / "source", tmp_path / "out", "--dry-run")
    assert done.exit_code == 0
    assert "  gap: offsets 126 to 230 are in no segment\n" in done.stdout
    assert (done.stdout + done.stderr).count("it is incomplete") == 1


def test_a_bucket_and_a_key(tmp_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [path for path in (AIVEN / "aes").rglob("*") if "codec-lz4" in str(path) and path.is_file()]
    url = s3_server.upload(AIVEN / "aes", "cli-restore", files)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.options["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.options["secret_access_key"])
    store = [f"--storage-option={name}={s3_server.options[name]}" for name in ("endpoint", "region")]
    out = tmp_path / "out"
    done = run("restore", url, out, *store)
    assert (done.exit_code, out.exists()) == (2, False)
    assert "add --encryption-key key1=PATH.pem" in done.stderr
    done = run("restore", url, out, *store, f"--encryption-key=key1={AIVEN / 'other-private-key.pem'}")
    assert (done.exit_code, out.exists()) == (2, False)
    done = run("restore", url, out, *store, f"--encryption-key=key1={KEYS['key1']}")
    assert done.exit_code == 0, done.stderr
    name = "codec-lz4-0/00000000000000000000.log"
    assert (out / name).read_bytes() == (LOG_DIR / name).read_bytes()


def test_a_corrupt_log_has_exit_code_1(tmp_path: Path) -> None:
    segment = shutil.copytree(LOG_DIR / "codec-lz4-0", tmp_path / "t-0") / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[200] ^= 1
    segment.write_bytes(data)
    done = run("restore", tmp_path / "t-0", tmp_path / "out")
    assert (done.exit_code, (tmp_path / "out").exists()) == (1, False)
    assert f"({segment}: byte 17" in done.stderr


def test_wrong_arguments_have_exit_code_2(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for arguments, message in (
        (("--until-offset", "-3"), "too small"),
        (("--until-offset", "3", "--until-offset", "5"), "each of them must name another partition"),
        (("--until-offset", "t=3"), '--until-offset: "t" is not a partition'),
        (("--until-offset", "t-9=3"), "--until-offset names t-9, which is not restored"),
        (("--until-time", "yesterday"), "is not a time"),
        (("--topic-id", "orders"), "TOPIC=ID"),
        (("--topic-id", "orders=abc"), "abc"),
        (("--topic", "missing"), "no topic matches"),
        (("--committed-offsets", tmp_path / "csv"), "set --offsets-source to a log directory"),
        (("--leader-epoch", "-1"), "too small"),
        (("--open-transactions", "commit"), "commit"),
    ):
        done = run("restore", LOG_DIR, out, *arguments)
        assert (done.exit_code, out.exists()) == (2, False), arguments
        assert message in " ".join(done.stderr.split()), arguments
        assert done.stderr.count("\n") == 1
    (tmp_path / "empty").mkdir()
    for source in (tmp_path / "missing", LOG_DIR / "codec-lz4-0" / "00000000000000000000.log"):
        assert run("restore", source, out).exit_code == 2
    done = run("restore", tmp_path / "empty", out)
    assert (done.exit_code, out.exists()) == (1, False)
    assert done.stderr == f"kbat: warning: {tmp_path / 'empty'} is empty: there is no partition to restore\n"
    assert run("restore", LOG_DIR, LOG_DIR / "out").exit_code == 2
    assert not os.path.lexists(LOG_DIR / "out")
