"""The directory in which the tasks of a write create files, until the driver moves them to the target."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# The number of attempts to remove a job's files.
_CLEAR_COUNT = 100


def remove_job(directory: Path) -> None:
    """Remove a job's directory, in which a running task may still create files."""
    for _ in range(_CLEAR_COUNT):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            break
        time.sleep(0.02)
