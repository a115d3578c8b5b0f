"""Checks that Spark's workers run a Python that has kbat. If they do not, the error explains how to set it.

Without this check the first sign is a `ModuleNotFoundError` at the end of a long traceback, from a worker whose Python
is not the driver's: Spark starts `python3` of the `PATH` unless `PYSPARK_PYTHON` names another one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING, Any

import kbat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCRIPT = "import sys, kbat; print(*sys.version_info[:2], kbat.__version__)"
_TIMEOUT = 60


def check_interpreter(spark: SparkSession) -> None:
    """Raise `RuntimeError` if the Python of Spark's workers can't import kbat, and warn if it has another version.

    The Python is tried on this machine. One that only exists on other machines is not checked, and neither is that of a
    Spark Connect server.
    """
    context: Any = getattr(spark, "_sc", None)
    python = shutil.which(str(getattr(context, "pythonExec", "")))
    if python is None or os.path.abspath(python) == os.path.abspath(sys.executable):  # noqa: PTH100 -- keeps symlinks
        return
    fix = (
        f"start the session with the driver's Python, {sys.executable}: set PYSPARK_PYTHON={sys.executable} in the "
        'environment, or os.environ["PYSPARK_PYTHON"] = sys.executable before the session is built'
    )
    done = subprocess.run(  # noqa: S603 -- the program that Spark runs
        [python, "-c", _SCRIPT], capture_output=True, text=True, check=False, timeout=_TIMEOUT, cwd=os.sep
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        reason = lines[-1] if lines else f"exit code {done.returncode}"
        message = f"kbat: Spark's workers run {python}, which can't import kbat ({reason}); {fix}"
        raise RuntimeError(message)
    ours = f"{sys.version_info[0]} {sys.version_info[1]} {kbat.__version__}"
    theirs = done.stdout.strip()
    if theirs != ours:
        message = f"kbat: Spark's workers run {python}, {_named(theirs)}, and the driver {_named(ours)}; {fix}"
        warnings.warn(message, stacklevel=3)


def _named(versions: str) -> str:
    major, minor, version = versions.split(" ", 2)
    return f"Python {major}.{minor} with kbat {version}"
