"""Fetches jars from the central Maven repository with Ivy, which comes with pyspark.

So a Java 17 runtime and pyspark are all that building and testing with Java's libraries needs.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

FETCH_SECONDS = 900


class UnavailableError(Exception):
    """Java, pyspark's jars or a jar of the repository are missing."""


@dataclass(frozen=True, kw_only=True)
class Module:
    """A module of the repository in one version.

    Attributes:
        organisation: Its group in Maven's words.
        name: Its name.
        version: Its version.
        classifier: Which jar of the module to take, such as ``test``. Default: the main one.
    """

    organisation: str
    name: str
    version: str
    classifier: str = ""

    def __str__(self) -> str:
        """Return the name as Maven writes it."""
        classifier = f":jar:{self.classifier}" if self.classifier else ""
        return f"{self.organisation}:{self.name}{classifier}:{self.version}"

    def ivy_artifact(self) -> str:
        """Write Ivy's description of the jar, unless it is the main one."""
        if not self.classifier:
            return ""
        return f'<artifact name="{self.name}" type="jar" ext="jar" m:classifier="{self.classifier}"/>'


@dataclass(frozen=True, kw_only=True)
class Request:
    """Modules to download.

    Attributes:
        modules: The modules.
        transitive: Whether to download what they need, too.
        without: Modules, as ``organisation#name`` of Ivy's patterns, that are needed by nothing here.
        instead: Modules to use in this version, regardless of the requested one.
    """

    modules: tuple[Module, ...]
    transitive: bool = True
    without: tuple[str, ...] = ()
    instead: tuple[Module, ...] = ()

    def ivy_module(self) -> str:
        """Write Ivy's description of a module that needs the wanted ones."""
        conf = "default" if self.transitive else "master"
        modules = "".join(
            f'<dependency org="{module.organisation}" name="{module.name}" rev="{module.version}"'
            f' conf="default->{conf}">{module.ivy_artifact()}</dependency>'
            for module in self.modules
        )
        excludes = "".join(
            f'<exclude org="{organisation}" module="{module}" matcher="regexp"/>'
            for organisation, module in (pattern.split("#") for pattern in self.without)
        )
        overrides = "".join(
            f'<override org="{module.organisation}" module="{module.name}" rev="{module.version}"/>'
            for module in self.instead
        )
        return (
            '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
            '<info organisation="kbat" module="kbat"/>'
            '<configurations><conf name="default"/></configurations>'
            f"<dependencies>{modules}{excludes}{overrides}</dependencies></ivy-module>"
        )


def find_java() -> str:
    """Find the java that Spark would take.

    Raises:
        UnavailableError: There is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(Path(home) / "bin" / "java" if home else "java")
    if java is None:
        message = "no java: install a Java 17 runtime (apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
        raise UnavailableError(message)
    return java


def pyspark_jar(name: str) -> Path:
    """Find the jar of a library that comes with pyspark.

    Raises:
        UnavailableError: pyspark or the jar is not there.
    """
    package = importlib.util.find_spec("pyspark")
    for place in (package.submodule_search_locations or []) if package else []:
        for jar in sorted(Path(place, "jars").glob(f"{name}-[0-9]*.jar")):
            return jar
    message = f"no {name} among pyspark's jars: pip install -c constraints.txt 'pyspark>=4'"
    raise UnavailableError(message)


def fetch(java: str, request: Request, home: Path, *, cache: Path) -> None:
    """Download jars into a new directory, which exists only if it is complete.

    Args:
        java: The java to run Ivy with.
        request: The modules.
        home: The directory.
        cache: Ivy's own directory.

    Raises:
        UnavailableError: They can't be fetched.
    """
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        jars, modules = Path(scratch, "jars"), Path(scratch, "ivy.xml")
        modules.write_text(request.ivy_module())
        command = [java, "-cp", str(pyspark_jar("ivy")), "org.apache.ivy.Main", "-warn", "-confs", "default"]
        command += ["-cache", str(cache), "-ivy", str(modules)]
        command += ["-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"]
        try:
            done = subprocess.run(  # noqa: S603 - the arguments are this module's own
                command, check=False, capture_output=True, text=True, timeout=FETCH_SECONDS
            )
            failure = None if done.returncode == 0 else done.stdout[-2000:] + done.stderr[-2000:]
        except subprocess.TimeoutExpired:
            failure = f"no answer within {FETCH_SECONDS} seconds"
        if failure is not None:
            message = (
                f"{', '.join(map(str, request.modules))} can't be fetched. Let this machine reach the central Maven"
                f" repository, or put these jars and those that they need into {home}.\n{failure}"
            )
            raise UnavailableError(message)
        try:
            jars.replace(home)
        except OSError:
            if not home.exists():  # else another process was faster
                raise
