"""A short soak of a streaming query: `make soak` runs the long one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds executors in /proc")
def test_soak_of_a_stream_loses_nothing_and_repeats_nothing() -> None:
    command = [sys.executable, str(Path(__file__).with_name("soak.py")), "--seconds", "75"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=1200)  # noqa: S603 -- from above
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    *_, last, memory, result = done.stdout.splitlines()
    assert result == "nothing lost, nothing twice"
    assert memory.startswith("largest executor: ")
    assert "kills: 0 executors" not in last
    assert " 0 drivers" not in last
    assert " 0 segments deleted" not in last
