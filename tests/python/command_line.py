"""Runs the command `kbat`, in this process or in a new one."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner, Result

from data import DATA
from kbat.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

CORPUS = DATA / "corpus"
LOG_DIR = DATA / "log-dir"
LOG = "00000000000000000000.log"
ENDINGS = (".log", "index", ".snapshot", "-checkpoint", ".metadata")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def json_of(*arguments: object, exit_code: int = 0) -> Any:  # noqa: ANN401 - JSON
    done = run(*arguments, "--json")
    assert done.exit_code == exit_code, done.stderr
    return json.loads(done.stdout)


def lines_of(*arguments: object) -> list[dict[str, Any]]:
    done = run("cat", *arguments)
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def environment() -> dict[str, str]:
    """The environment of a process with kbat, whose output is buffered as a shell's is."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": ""}


def process(*arguments: object, **files: Any) -> subprocess.Popen[str]:  # noqa: ANN401 - stdin, stdout
    return subprocess.Popen(  # noqa: S603 - its own module
        [sys.executable, "-m", "kbat", *map(str, arguments)],
        **({"stdout": subprocess.PIPE} | files),
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def on_terminal(columns: int, *arguments: object) -> str:
    """Return the output of a command on a terminal with a number of columns, without colour codes."""
    shown = bytes_on_terminal(columns, *arguments).decode()
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r\n", "\n")


def bytes_on_terminal(columns: int, *arguments: object, **variables: str) -> bytes:
    """Return what a command writes to a terminal with a number of columns."""
    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [sys.executable, "-m", "kbat", *map(str, arguments)]
    written = b""
    env = {**environment(), "TERM": "xterm", **variables}
    with subprocess.Popen(command, stdout=far, stderr=subprocess.DEVNULL, env=env):  # noqa: S603 - as above
        os.close(far)
        with os.fdopen(near, "rb", buffering=0) as terminal, suppress(OSError):
            while part := terminal.read(65536):
                written += part
    return written


def copy_of(case: str, directory: Path) -> Path:
    directory.mkdir(parents=True)
    for path in (CORPUS / case).iterdir():
        if path.is_file() and path.name.endswith(ENDINGS):
            shutil.copy(path, directory)
    return directory


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}
