"""What the command `kbat` writes on terminals, into files, and where nobody reads."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import kbat
from command_line import CORPUS, LOG_DIR, copy_of, environment, lines_of, on_terminal, run
from kbat.cli import output

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("columns", [40, 80, 100, 200])
@pytest.mark.parametrize("command", ["ls", "audit"])
def test_tables_on_a_terminal_lose_nothing(command: str, columns: int) -> None:
    """The terminal wraps lines that are too long for it."""
    shown = on_terminal(columns, command, LOG_DIR).splitlines()
    expected = run(command, LOG_DIR).stdout.splitlines()
    assert [line for line in shown if set(line) != {"─"}] == [line for line in expected if set(line) != {"─"}]
    assert all(log.topic in "\n".join(shown) for log in kbat.LogDirectory(LOG_DIR).partitions if log.topic)
    (rule,) = [line for line in shown if set(line) == {"─"}]
    assert len(rule) <= columns


def test_a_table_has_columns_of_the_width_of_their_cells(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_table("a\x1btitle", ("name", "count"), [("漢字", "1"), ("x", "1,000,000")], left=("name",))
    assert capsys.readouterr().out == (
        "a\\x1btitle\n\nname      count\n───────────────\n漢字          1\nx     1,000,000\n\n"
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize(
    ("command", "case", "exit_code"),
    [("ls", "codec-lz4", 0), ("cat", "codec-lz4", 0), ("cat", "crash-flip", 1), ("verify", "crash-flip", 2)],
)
def test_closed_outputs_leave_the_exit_code(command: str, case: str, exit_code: int, closed: str) -> None:
    line = f"{shlex.join([sys.executable, '-m', 'kbat', command, str(CORPUS / case)])} {closed}"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False, env=environment())  # noqa: S602
    assert done.returncode == exit_code
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (closed == "2>&-")


def test_output_is_utf_8_in_every_locale() -> None:
    place = LOG_DIR / "codec-lz4-0"
    env = {**environment(), "PYTHONIOENCODING": "latin-1"}
    command = [sys.executable, "-m", "kbat", "cat", str(place)]
    done = subprocess.run(command, capture_output=True, check=True, env=env)  # noqa: S603 - its own module
    assert not done.stdout.isascii()
    assert [json.loads(line) for line in done.stdout.decode().splitlines()] == lines_of(place)


def test_names_that_are_no_utf_8_are_escaped(tmp_path: Path) -> None:
    place = copy_of("codec-lz4", tmp_path / os.fsdecode(b"\xff") / "t-0")
    command = [sys.executable, "-m", "kbat", "ls", str(place), "--json"]
    done = subprocess.run(command, capture_output=True, check=True, env=environment())  # noqa: S603 - its own module
    assert json.loads(done.stdout)["path"] == str(place)
