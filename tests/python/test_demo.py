"""The demo, as `make demo` runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from data import DATA

if TYPE_CHECKING:
    from pathlib import Path

DEMO = DATA.parents[1] / "examples" / "demo" / "spark_demo.py"


def run(log_dir: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, os.fspath(DEMO), os.fspath(log_dir), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- ours


def test_demo_on_the_sample_directory_shows_rows_answers_and_parquet(log_dir: Path, tmp_path: Path) -> None:
    done = run(log_dir, "--output", os.fspath(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "segments-default-interval" in done.stdout
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert f" {codec} " in done.stdout
    assert "identical to the log when read back" in done.stdout
    assert list((tmp_path / "records.parquet").glob("*.parquet"))
    assert all(line.startswith("[") for line in done.stderr.splitlines())


def test_demo_on_a_path_where_nothing_is_says_so(tmp_path: Path) -> None:
    done = run(tmp_path / "gone")
    assert done.returncode == 1
    assert done.stderr == f"kbat demo: {tmp_path / 'gone'} does not exist\n"


def test_demo_on_a_directory_without_segments_says_what_it_looks_for(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 1
    assert "<topic>-<partition> directories" in done.stderr
