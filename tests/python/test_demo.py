"""The demo, as `make demo` runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from kbat.spark.demo import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_demo_on_the_sample_directory_shows_rows_answers_and_parquet(log_dir: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kbat.spark.demo", os.fspath(log_dir), "--output", os.fspath(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- its own module
    assert done.returncode == 0, done.stderr
    assert "segments-default-interval" in done.stdout
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert f" {codec} " in done.stdout
    assert "identical to the log when read back" in done.stdout
    assert list((tmp_path / "records.parquet").glob("*.parquet"))
    assert all(line.startswith("[") for line in done.stderr.splitlines())


def test_demo_on_a_path_where_nothing_is_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "gone")]) == 1
    assert str(tmp_path / "gone") in capsys.readouterr().err


def test_demo_on_a_directory_without_segments_says_what_it_looks_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 1
    assert "<topic>-<partition> directories" in capsys.readouterr().err
