"""How the command `kbat` writes to terminals, files, pipes and closed outputs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import kbat
from command_line import CORPUS, LOG, LOG_DIR, copy_of, environment, json_of, lines_of, on_terminal, run
from kbat.cli import output
from kbat.cli.table import Column, write_table
from partitions import Log

NOTE = "hidden in this narrow terminal: "


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 100])
@pytest.mark.parametrize("command", ["ls", "audit"])
def test_tables_fit_a_narrow_terminal(command: str, columns: int) -> None:
    title, _, *shown = on_terminal(columns, command, LOG_DIR).splitlines()
    assert title == str(LOG_DIR)
    rows = shown[: shown.index("")]
    assert all(len(line) <= columns for line in rows)
    assert len(rows) >= len(kbat.LogDirectory(LOG_DIR).partitions) + 2
    (note,) = [line for line in shown if line.startswith(NOTE)] or [""]
    assert note.endswith("; --wide shows all columns") == (columns < 100 or command == "ls")
    names = run(command, LOG_DIR).stdout.splitlines()[2]
    assert all(name in names for name in note.removeprefix(NOTE).split("; ")[0].split(", "))


@pytest.mark.parametrize("arguments", [("ls", LOG_DIR), ("audit", LOG_DIR), ("ls", LOG_DIR / "compacted-0")])
def test_wide_tables_have_all_columns_as_those_in_a_pipe(arguments: tuple[object, ...]) -> None:
    """The terminal wraps the lines, but they are complete."""
    shown = on_terminal(60, *arguments, "--wide").splitlines()
    expected = run(*arguments).stdout.splitlines()
    assert [line for line in shown if set(line) != {"─"}] == [line for line in expected if set(line) != {"─"}]
    (rule,) = [line for line in shown if set(line) == {"─"}]
    assert len(rule) <= 60


def test_the_important_columns_of_a_narrow_table_stay() -> None:
    shown = on_terminal(80, "ls", LOG_DIR)
    (head,) = [line for line in shown.splitlines() if line.startswith("topic")]
    assert head.split()[:2] == ["topic", "partition"]
    assert f"{NOTE}segments, start offset, last stable offset; --wide" in shown
    assert "2023-11-14 22:17:05.588Z" in shown
    assert "k0822-java0822-snappy " in shown
    narrow = on_terminal(30, "ls", LOG_DIR)
    assert "k0822-java0822-snappy" not in narrow
    (shortened,) = [line for line in narrow.splitlines() if "…" in line and line.startswith("k0822")]
    assert shortened.split()[0].endswith("ppy")


def test_a_table_has_columns_of_the_width_of_their_cells(capsys: pytest.CaptureFixture[str]) -> None:
    columns = (Column("name", left=True), Column("count"))
    write_table("a\x1btitle", columns, [("漢字", "1"), ("x", "1,000,000")])
    assert capsys.readouterr().out == (
        "a\\x1btitle\n\nname      count\n───────────────\n漢字          1\nx     1,000,000\n\n"
    )


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 batches"), (1, "1 batch"), (2, "2 batches"), (1_000, "1,000 batches")],
)
def test_counts_have_the_right_plural(count: int, text: str) -> None:
    assert output.count_text(count, "batch", "batches") == text


COUNTED = """
import atexit, sys
from kbat.cli import main

def count():
    figures = dict(line.split(": ") for line in open("/proc/self/io"))
    sys.stderr.write(figures["syscw"])

atexit.register(count)
main()
"""


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts system calls as Linux does")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("form", ["--json", "--text"])
def test_cat_writes_many_records_at_once(form: str, unbuffered: str, tmp_path: Path) -> None:
    """Images of containers set PYTHONUNBUFFERED, which makes each line a system call of Python's own output."""
    log = Log(tmp_path / "t-0")
    for batch in range(40):
        log.batch(*[(b"key", b"%d" % (batch * 1000 + index)) for index in range(1000)])
    log.write()
    done = subprocess.run(  # noqa: S603 - its own script
        [sys.executable, "-c", COUNTED, "cat", str(log.directory), form],
        capture_output=True,
        text=True,
        check=True,
        env={**environment(), "PYTHONUNBUFFERED": unbuffered},
    )
    assert done.stdout.count("\n") == 40_000
    assert done.stdout == run("cat", log.directory, form).stdout
    # threads of PyArrow wake each other by a few more
    assert 0 < int(done.stderr) < 200


def test_cat_shows_whole_lines_on_a_terminal(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"key", b"value"))
    log.write()
    shown = on_terminal(200, "cat", log.directory).splitlines()
    assert [json.loads(line)["value"] for line in shown] == ["value"]


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


@pytest.mark.parametrize("on_corrupt", ["fail", "skip"])
def test_cat_notes_an_incomplete_last_batch_that_it_skips(on_corrupt: str, tmp_path: Path) -> None:
    place = copy_of("codec-lz4", tmp_path / "t-0")
    (place / LOG).write_bytes((place / LOG).read_bytes()[:40])
    done = run("cat", place, "--on-corrupt", on_corrupt)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "kbat: skipped 40 bytes after the last complete batch, which is normal while a broker writes" in done.stderr


def test_the_end_of_a_segment_in_the_middle_of_a_log_is_a_loss(tmp_path: Path) -> None:
    place = copy_of("segments-default-interval", tmp_path / "orders-0")
    log = place / f"{310:020}.log"
    (first, *_) = kbat.Segment(log).batches()
    os.truncate(log, first.size + 100)
    lost = 421 - first.last_offset - 1
    done = run("cat", place, "--on-corrupt", "skip")
    assert done.exit_code == 0
    assert f"kbat: skipped 1 corrupt range: 100 bytes and {lost} offsets lost; 'kbat verify' lists them" in done.stderr
    assert "kbat: not counted: 100 B in 1 corrupt range; 'kbat verify' lists it" in run("stat", place).stderr
    for report in (json_of("stat", place), json_of("export", place, tmp_path / "a.csv", "--on-corrupt", "skip")):
        found = [report[name] for name in ("batches_skipped", "bytes_lost", "offsets_lost")]
        assert found == [1, 100, lost]


def test_offsets_after_the_last_intact_batch_are_not_counted(tmp_path: Path) -> None:
    place = copy_of("codec-lz4", tmp_path / "t-0")
    data = bytearray((place / LOG).read_bytes())
    data[-1] ^= 1
    (place / LOG).write_bytes(data)
    *_, last = kbat.Segment(place / LOG).batches(check_crc=False)
    done = run("cat", place, "--on-corrupt", "skip")
    assert done.stderr == f"kbat: skipped 1 corrupt range: {last.size:,} bytes lost; 'kbat verify' lists them\n"
