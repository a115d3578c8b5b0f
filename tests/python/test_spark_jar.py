"""The jar: its path, the settings that name it, and how its library is loaded."""

from __future__ import annotations

import platform
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

import kbat
import kbat.spark
from java_process import SOURCES
from kafka_jars import find_java, pyspark_jar
from kbat.spark import settings
from kbat.spark.__main__ import main
from kbat.spark.source import KbatDataSource

if TYPE_CHECKING:
    from pathlib import Path


def load_library(directory: Path, *properties: str, prefix: tuple[str, ...] = ()) -> list[str]:
    """Load the library once for each system property, and return what happened."""
    command = [*prefix, find_java(), f"-Djava.io.tmpdir={directory}", "-XX:TieredStopAtLevel=1"]
    command += ["-cp", str(pyspark_jar("janino").parent / "*"), "org.codehaus.janino.JavaSourceClassLoader"]
    command += ["-sourcepath", str(SOURCES), "LoadLibrary", kbat.spark.jar(), *properties]
    done = subprocess.run(  # noqa: S603 -- the arguments are this module's own
        command, check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout.splitlines()


def without_execution(directory: Path) -> tuple[str, ...]:
    """Return a command that runs another one with a directory that forbids execution. Skips the test without it."""
    mount = 'mount -t tmpfs -o noexec tmpfs "$0" && exec "$@"'
    prefix = ("unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(directory))
    try:
        done = subprocess.run([*prefix, "true"], check=False, capture_output=True)  # noqa: S603 -- from above
    except FileNotFoundError:
        pytest.skip("no unshare")
    if done.returncode:
        pytest.skip(f"unshare: {done.stderr!r}")
    return prefix


def test_jar_library_is_loaded_and_its_file_removed_and_errors_name_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (noexec := tmp_path / "noexec").mkdir()
    loaded, again, other, gone, broken, *refused = load_library(
        tmp_path,
        "none=1",
        "none=2",
        "os.arch=riscv64",
        f"kbat.tempdir={tmp_path}/gone",
        f"kbat.library={tmp_path}/file",
        f"kbat.tempdir={noexec}",
        prefix=without_execution(noexec),
    )
    assert (loaded, again) == ("ok", "ok")
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    system = "macos" if sys.platform == "darwin" else sys.platform
    assert other == (
        f"kbat: the jar has no library for {system}-riscv64, only for {system}-{machine}: "
        "install kbat's wheel for this platform"
    )
    assert gone.startswith(f"kbat: the library can't be unpacked to {tmp_path}/gone: ")
    assert "name another directory with -Dkbat.tempdir=/path in spark.driver.extraJavaOptions" in gone
    assert broken.startswith(f"kbat: the library can't be loaded: {tmp_path}/file: ")
    assert refused[0].startswith("kbat: the library can't be loaded: ")
    assert f"; {noexec} forbids execution (mount option noexec): name another directory with -Dkbat" in refused[0]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("kbat-")] == []


def test_jar_is_that_of_this_version_and_the_settings_name_it() -> None:
    with zipfile.ZipFile(kbat.spark.jar()) as jar:
        assert f"version={kbat.__version__}" in jar.read("kbat/spark/jar.properties").decode().splitlines()
        assert {entry.date_time for entry in jar.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert jar.namelist()[1:] == sorted(jar.namelist()[1:])
    assert kbat.spark.SETTINGS["spark.jars"] == kbat.spark.jar()
    assert "arrow.enable_unsafe_memory_access" in kbat.spark.SETTINGS["spark.driver.extraJavaOptions"]


def test_jar_command_prints_the_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jar"]) == 0
    assert capsys.readouterr().out == f"{kbat.spark.jar()}\n"
    assert main(["jars"]) == 2
    assert capsys.readouterr().err.startswith("usage: python -m kbat.spark jar")


def test_command_jar_needs_no_spark() -> None:
    script = "import sys; sys.modules['pyspark'] = None; from kbat.spark.__main__ import main; sys.exit(main(['jar']))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603 -- ours
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{kbat.spark.jar()}\n", "")


def test_jar_that_is_missing_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(settings, "_JAR", tmp_path / "kbat-spark.jar")
    with pytest.raises(FileNotFoundError, match=r"kbat: this installation has no jar at .*; install a wheel of kbat"):
        kbat.spark.jar()


@pytest.mark.parametrize("name", ["engine", "ENGINE"])
def test_jar_is_what_engine_jvm_needs(name: str, tmp_path: Path) -> None:
    source = KbatDataSource({"path": str(tmp_path), name: "jvm"})
    message = r"option engine='jvm': this session has no jar of kbat.*kbat\.spark\.SETTINGS.*kbat\.spark\.jar\(\)"
    with pytest.raises(ValueError, match=message):
        source.schema()
    for engine in ("auto", "Python"):
        assert KbatDataSource({"path": str(tmp_path), name: engine}).schema().names[0] == "key"
