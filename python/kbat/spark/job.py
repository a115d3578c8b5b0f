"""The directory that the tasks of a write work in until their driver moves what they made in place."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# How often what is left of a job is removed before it is left to lie.
_CLEAR_COUNT = 100


def remove_job(directory: Path) -> None:
    """Remove a job's directory, into which a task may make a file meanwhile."""
    for _ in range(_CLEAR_COUNT):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            break
        time.sleep(0.02)
