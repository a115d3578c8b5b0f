"""Compiles the data source in ``benches/java``, which returns native memory that was filled once, into a jar."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import kbat.spark

ROOT = Path(__file__).parents[2]
sys.path.append(os.fspath(ROOT / "java"))

from build import compile_to, write  # noqa: E402 -- found there


def prebuilt_jar(target: Path) -> str:
    """Compile for the classes of this installation's jar, and return the path of the new one.

    Raises:
        BuildError: The sources do not compile.
        FileNotFoundError: This installation of kbat does not include its jar.
    """
    with tempfile.TemporaryDirectory() as classes:
        compile_to(Path(classes), ROOT / "benches" / "java", Path(kbat.spark.jar()))
        found = Path(classes).rglob("*.class")
        write(target, {path.relative_to(classes).as_posix(): path.read_bytes() for path in found})
    return os.fspath(target)
