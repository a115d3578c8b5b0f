"""The check of the Python that Spark's workers run."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

import kbat
from growing_log import GrowingLog
from kbat.spark.interpreter import check_interpreter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def session(python: object) -> Any:  # noqa: ANN401 -- replaces a session
    return SimpleNamespace(_sc=SimpleNamespace(pythonExec=str(python)))


def program(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def test_interpreter_without_kbat_is_an_error_that_names_the_fix(tmp_path: Path) -> None:
    python = program(tmp_path / "python3", "echo \"ModuleNotFoundError: No module named 'kbat'\" >&2", "exit 1")
    with pytest.raises(RuntimeError) as raised:
        check_interpreter(session(python))
    first = f"kbat: Spark's workers run {python}, which can't import kbat (ModuleNotFoundError: No module named 'kbat')"
    assert str(raised.value).startswith(first)
    assert f"set PYSPARK_PYTHON={sys.executable} in the environment" in str(raised.value)


def test_interpreter_with_another_version_is_a_warning(tmp_path: Path) -> None:
    python = program(tmp_path / "python3", "echo 3 9 0.0.1")
    ours = f"Python {sys.version_info[0]}.{sys.version_info[1]} with kbat {kbat.__version__}"
    with pytest.warns(UserWarning, match=rf"run {python}, Python 3\.9 with kbat 0\.0\.1, and the driver {ours}; start"):
        check_interpreter(session(python))


def test_interpreter_of_the_driver_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", None)
    check_interpreter(session(sys.executable))
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))  # noqa: PTH120 -- keeps the symlink
    check_interpreter(session(os.path.basename(sys.executable)))  # noqa: PTH119 -- its name
    check_interpreter(session(tmp_path / "only-on-the-workers"))
    connect: Any = SimpleNamespace()
    check_interpreter(connect)


def test_interpreter_that_is_the_same_by_another_path_is_fine(tmp_path: Path) -> None:
    python = program(tmp_path / "python3", f'exec "{sys.executable}" "$@"')
    check_interpreter(session(python))


def test_interpreter_of_the_tests_passes(spark: SparkSession) -> None:
    check_interpreter(spark)
    assert spark.sparkContext.pythonExec == sys.executable


SESSION = """
import sys
import kbat.spark
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = kbat.spark.session(builder)
print(spark.read.format("kbat").load(sys.argv[1]).count())
try:
    spark.read.format("kbat").option("engine", "python").load(sys.argv[1]).count()
except Exception as error:
    print(str(error).splitlines()[0])
"""


@pytest.mark.skipif(pyspark.__version__ < "4", reason="Spark 3.5 has no Python data sources")
def test_interpreter_without_kbat_matters_only_to_the_python_engine(tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(3)
    bare = program(tmp_path / "python", "exit 1")
    # a Python data source prefers PYSPARK_DRIVER_PYTHON, which a script that is run by its Python does not set
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_DRIVER_PYTHON"}
    done = subprocess.run(  # noqa: S603 -- the arguments are this module's own
        [sys.executable, "-c", SESSION, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
        env=environment | {"PYSPARK_PYTHON": str(bare)},
    )
    count, error = done.stdout.splitlines()
    assert count == "3"
    assert "kbat: option engine=python: the Python of Spark's workers has no package kbat" in error
