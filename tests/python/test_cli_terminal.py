"""What a terminal shows: tables of 80 columns from every command, colors, and progress with rate and remaining time."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress

import pytest

from command_line import CORPUS, LOG_DIR, bytes_on_terminal, environment, on_terminal, run
from kbat.cli.app import COMMANDS

PARTITION = LOG_DIR / "codec-lz4-0"
OUT = "out"
# Arguments, by command; the others read a log directory.
ARGUMENTS: dict[str, tuple[object, ...]] = {
    "lookup": (LOG_DIR, "--offset", 5),
    "cat": (PARTITION, "-n", 1),
    "dump": (PARTITION / "00000000000000000000.log", "--format", "table"),
    "recover": (PARTITION, "--dry-run"),
    "salvage": (PARTITION, OUT),
    "rebuild-indexes": (PARTITION, OUT),
    "compact": (PARTITION, OUT),
    "rewrite": (PARTITION, OUT),
    "stat": (LOG_DIR, "--records", "--by", "topic,codec,producer,day"),
    "advise": (LOG_DIR / "txn-simple-0",),
    "report": (LOG_DIR / "txn-simple-0",),
    "audit": (LOG_DIR, "--by", "partition,producer,magic,day"),
}
RULE = re.compile(r"─+")


def tables(shown: str) -> list[list[str]]:
    """The lines of each table: its names of columns, the rule below them, and its rows."""
    parts = [part.splitlines() for part in shown.split("\n\n")]
    return [part for part in parts if any(RULE.fullmatch(line) for line in part)]


@pytest.mark.parametrize("command", COMMANDS)
def test_tables_of_every_command_fit_80_columns(
    command: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    shown = tables(on_terminal(80, command, *ARGUMENTS.get(command, (LOG_DIR,))))
    assert [line for table in shown for line in table if len(line) > 80] == []
    if command in {"ls", "batches", "lookup", "stat", "audit", "compact", "rewrite"}:
        assert shown


@pytest.mark.parametrize("command", ["ls", "verify"])
def test_colors_are_for_terminals_that_show_them(command: str) -> None:
    place = CORPUS / "crash-flip"
    colored = bytes_on_terminal(80, command, place).decode()
    assert "\x1b[1" in colored
    without = bytes_on_terminal(80, command, place, NO_COLOR="1").decode()
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", without)
    assert b"\x1b" not in bytes_on_terminal(80, command, place, TERM="dumb")
    assert "\x1b" not in run(command, place).stdout
    if command == "verify":
        assert "\x1b[1;31merror: crc\x1b[0m" in colored
        assert "error: crc" in without


SLOW = """
import time
from kbat.cli.progress import progress
with progress({arguments}) as callback:
    for step in range(12):
        callback(step << {shift}, 12 << {shift})
        time.sleep(0.1)
"""


@pytest.mark.parametrize(
    ("arguments", "shift", "figures", "rate"),
    [
        ('"reading"', 20, r"reading .*\d\.0/12\.0 MiB", r"\d MiB/s"),
        ('"listing", unit="partitions"', 0, r"listing .*\d+/12.* partitions", r"\d+/s"),
    ],
    ids=["bytes", "things"],
)
def test_work_of_more_than_a_second_shows_its_rate_and_the_remaining_time(
    arguments: str, shift: int, figures: str, rate: str
) -> None:
    near, far = pty.openpty()
    script = SLOW.format(arguments=arguments, shift=shift)
    env = {**environment(), "TERM": "xterm", "COLUMNS": "100"}
    shown = b""
    with subprocess.Popen([sys.executable, "-c", script], stderr=far, env=env) as running:  # noqa: S603 - its own script
        os.close(far)
        with os.fdopen(near, "rb", buffering=0) as terminal, suppress(OSError):
            while part := terminal.read(65536):
                shown += part
    assert running.returncode == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search(figures, text)
    assert re.search(f"{rate} +0:00:0", text)
    # the line is removed at the end
    assert shown.endswith(b"\x1b[2K")


def test_rows_on_a_terminal_are_not_mixed_with_progress() -> None:
    """`on_terminal` ignores the standard error, so this one has both outputs in one."""
    near, far = pty.openpty()
    command = [sys.executable, "-m", "kbat", "batches", str(PARTITION)]
    with subprocess.Popen(command, stdout=far, stderr=far, env={**environment(), "TERM": "xterm"}) as running:  # noqa: S603 - its own module
        os.close(far)
        shown = b""
        with os.fdopen(near, "rb", buffering=0) as terminal, suppress(OSError):
            while part := terminal.read(65536):
                shown += part
    assert running.returncode == 0
    assert b"reading headers" not in shown
    assert b"\x1b[K" not in shown
