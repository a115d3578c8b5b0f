"""Ctrl-C in a separate Python process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

# A shell's background jobs ignore Ctrl-C, and so would their child processes.
_HEARD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def interrupt(script: str, *arguments: str) -> tuple[int, str, str]:
    """Run a script, press Ctrl-C soon after its first line, which is `go`; fail unless it ends within 5 seconds.

    Returns its exit code, what it printed after that line, and its errors.
    """
    with subprocess.Popen(  # noqa: S603 -- this interpreter
        [sys.executable, "-c", _HEARD + script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        time.sleep(0.3)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            printed, errors = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert time.monotonic() - start < 5
        return process.returncode, printed, errors
