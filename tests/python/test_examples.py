"""The programs in examples/ run and print the expected output."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from data import DATA

if TYPE_CHECKING:
    from pathlib import Path

ROOT = DATA.parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

# Programs that write take an output; each has to print these texts.
PRINTED = {
    "duckdb_audit": ["segments-default-interval", "182515"],
    "polars_topics": ["segments-default-interval", "1100"],
    "repair_partition": ["error: crc at byte 13905, offset 99", "lose 51 offsets", "loses 6 offsets", "valid: True"],
    "spark_backfill": ["codec-lz4| 220|", "codec-zstd| 220|"],
    "write_partition": ["orders-0: 1000 records, ok: True", "1700000000500 ms: 500"],
}
WRITES = {"repair_partition", "spark_backfill", "write_partition"}


def test_every_example_is_known_here() -> None:
    assert [path.stem for path in EXAMPLES] == sorted(PRINTED)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_prints_its_answer(example: Path, tmp_path: Path) -> None:
    output = [tmp_path / "output"] if example.stem in WRITES else []
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, example, *output],
        cwd=ROOT,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = " ".join(done.stdout.split())
    assert [text for text in PRINTED[example.stem] if " ".join(text.split()) not in printed] == [], done.stdout


@pytest.mark.parametrize("example", sorted(WRITES))
def test_example_without_its_output_prints_its_usage(example: str) -> None:
    program = ROOT / "examples" / f"{example}.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    [usage] = [line for line in program.read_text(encoding="utf-8").splitlines() if line.startswith("python ")]
    assert (done.returncode, done.stderr) == (2, f"usage: {usage}\n")
