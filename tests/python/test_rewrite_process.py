"""Tests in separate processes: a kill leaves no target, and memory does not grow with the log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import kbat
from partitions import Log, contents, random_log

CALLS = """
import sys, time, kbat
def slowly(done, total):
    print(done, flush=True)
    time.sleep(0.2)
source, out, call = sys.argv[1:]
if call == "compact":
    kbat.compact(source, out, include_active=True, max_map_bytes=2000, progress=slowly)
elif call == "filter":
    kbat.filter(source, out, lambda record: time.sleep(0.001) or True, progress=slowly)
else:
    kbat.rewrite(source, out, compression="gzip", progress=slowly)
"""

MEMORY = """
import sys, kbat
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
source, out, max_map_bytes = sys.argv[1:]
kbat.compact(source, out + "-small", include_active=True)
before = peak()
report = kbat.compact(source + "-large", out, include_active=True, max_map_bytes=int(max_map_bytes))
print(peak() - before, report.key_parts)
"""


def python(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - the arguments are this module's own
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_kill_leaves_no_target_and_the_next_call_works(tmp_path: Path) -> None:
    log = random_log(tmp_path / "t-0", 5, batches=200)
    log.batch((b"large", bytes(9_000_000)))
    log.write()
    for call in ("compact", "filter", "rewrite"):
        out = tmp_path / call
        process = python(CALLS, str(log.directory), str(out), call)
        assert process.stdout is not None
        with process:
            assert process.stdout.readline()
            assert not out.exists()
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        assert not out.exists()
    left = [path.name for path in tmp_path.iterdir() if path.name != "t-0"]
    assert all(".kbat-partial-" in name for name in left)
    for name in ("compact", "filter", "rewrite"):
        kbat.compact(log.directory, tmp_path / name, include_active=True)
        assert contents(tmp_path / name)
    # what the killed runs left is gone
    assert {path.name for path in tmp_path.iterdir()} == {"t-0", "compact", "filter", "rewrite"}


def many_keys(directory: Path, count: int) -> None:
    log = Log(directory)
    for first in range(0, count, 1000):
        log.batch(*[(b"%0150d" % at, b"v") for at in range(first, min(first + 1000, count))])
    log.write()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="where the peak of a process is read")
def test_memory_is_bounded_by_max_map_bytes(tmp_path: Path) -> None:
    many_keys(tmp_path / "t-0", 2000)
    many_keys(tmp_path / "t-0-large", 250_000)
    grown = {}
    for max_map_bytes in (2 << 20, 128 << 20):
        process = python(MEMORY, str(tmp_path / "t-0"), str(tmp_path / str(max_map_bytes)), str(max_map_bytes))
        output, _ = process.communicate()
        kib, parts = output.split()
        grown[int(parts) > 1] = int(kib)
    # all keys together take 50 MiB and more
    assert grown[False] > 40_000
    assert grown[True] < 20_000
    assert contents(tmp_path / str(2 << 20)) == contents(tmp_path / str(128 << 20))
