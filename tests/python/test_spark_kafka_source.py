"""Spark's own Kafka source and kbat return the same rows for the topics of a broker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# The script has more cases; these take well under a minute.
CASES = ("all topics", "offsets in transactions", "times by partition", "many tasks", "no start at that time")
SCRIPT = Path(__file__).with_name("compare_spark_kafka.py")


def test_kafka_source_gives_the_rows_that_kbat_gives(say: Callable[[str], None]) -> None:
    say("comparing with Spark's Kafka source, in a process with its connector (half a minute)")
    command = [sys.executable, str(SCRIPT), *CASES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- our own script
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    assert done.stdout.endswith("all equal\n")
    assert done.stdout.count("| equal |") == 7
