"""The jars that the tests with Kafka's own code need, fetched once into ``target/kafka-judge``.

Ivy, which comes with pyspark, fetches them from its default repository. janino, which comes with pyspark too, compiles
the programs in ``java/`` when they are started. So a Java 17 runtime is all that has to be installed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

KAFKA_VERSION = "4.3.1"
"""The version whose bytes and rules kbat follows; since 4.2 its record classes are in ``common.record.internal``."""

OLD_KAFKA_VERSION = "3.9.1"
"""The last line of versions that converts batches down to older formats."""

CACHE = Path(__file__).parents[2] / "target" / "kafka-judge"
FETCH_SECONDS = 900


class JudgeUnavailableError(Exception):
    """Java, pyspark's jars or Kafka's jars are missing."""


@dataclass(frozen=True, kw_only=True)
class JarSet:
    """Modules to download with their dependencies.

    Attributes:
        name: The directory below ``CACHE``.
        modules: Names of the modules.
        version: Their version.
        size: About how much is fetched, for the message.
        organisation: Whose modules they are.
        without: Modules, as ``organisation#name`` of Ivy's patterns, that are needed by nothing here.
        instead: Modules of the same organisation to use in this version, regardless of the requested one.
    """

    name: str
    modules: tuple[str, ...]
    version: str
    size: str
    organisation: str = "org.apache.kafka"
    without: tuple[str, ...] = ()
    instead: tuple[tuple[str, str], ...] = ()


CLIENTS = JarSet(name=KAFKA_VERSION, modules=("kafka-clients",), version=KAFKA_VERSION, size="20 MB")
OLD_CLIENTS = JarSet(name=OLD_KAFKA_VERSION, modules=("kafka-clients",), version=OLD_KAFKA_VERSION, size="20 MB")
SERVER = JarSet(
    name=f"{KAFKA_VERSION}-server",
    modules=("kafka_2.13", "kafka-tools"),
    version=KAFKA_VERSION,
    size="45 MB",
    without=("org.apache.kafka#connect-.*", "org.eclipse.jetty.*#.*", "org.glassfish.*#.*"),
)


def spark_connector(spark_version: str) -> JarSet:
    """Return the modules of Spark's own Kafka source, for a version of Spark.

    The connector's releases after 4.0 in the central repository name a token provider that is not there: that of 4.0.0,
    which has not changed, takes its place.
    """
    version = "4.0.0" if spark_version.startswith("4.0.") else "4.2.0"
    return JarSet(
        name=f"spark-connector-{version}",
        modules=("spark-sql-kafka-0-10_2.13",),
        version=version,
        size="20 MB",
        organisation="org.apache.spark",
        without=("org.apache.hadoop#.*", "org.scala-lang#.*", "org.slf4j#.*", "com.google.code.findbugs#.*"),
        instead=(("spark-token-provider-kafka-0-10_2.13", "4.0.0"),),
    )


def find_java() -> str:
    """Find the java that Spark would take.

    Raises:
        JudgeUnavailableError: There is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(Path(home) / "bin" / "java" if home else "java")
    if java is None:
        message = "no java: install a Java 17 runtime (apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
        raise JudgeUnavailableError(message)
    return java


def pyspark_jar(name: str) -> Path:
    """Find the jar of a library that comes with pyspark.

    Raises:
        JudgeUnavailableError: pyspark or the jar is not there.
    """
    package = importlib.util.find_spec("pyspark")
    for place in (package.submodule_search_locations or []) if package else []:
        for jar in sorted(Path(place, "jars").glob(f"{name}-[0-9]*.jar")):
            return jar
    message = f"no {name} among pyspark's jars: pip install -c constraints.txt 'pyspark>=4'"
    raise JudgeUnavailableError(message)


def kafka_jars(java: str, wanted: JarSet, say: Callable[[str], None]) -> list[Path]:
    """Return the jars of a set, downloaded on the first call.

    Args:
        java: The java to run Ivy with.
        wanted: The set.
        say: Called with a message before each download.

    Raises:
        JudgeUnavailableError: They can't be fetched.
    """
    home = CACHE / wanted.name
    if not home.exists():
        say(f"fetching jars into {home} (once, about {wanted.size})")
        fetch(java, wanted, home)
    return sorted(home.glob("*.jar"))


def fetch(java: str, wanted: JarSet, home: Path) -> None:
    """Download a set of jars; the directory exists only if it is complete."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        jars, modules = Path(scratch, "jars"), Path(scratch, "ivy.xml")
        modules.write_text(ivy_module(wanted))
        command = [java, "-cp", str(pyspark_jar("ivy")), "org.apache.ivy.Main", "-warn", "-confs", "default"]
        command += ["-cache", str(CACHE / "ivy"), "-ivy", str(modules)]
        command += ["-retrieve", f"{jars}/[artifact]-[revision].[ext]"]
        try:
            done = subprocess.run(  # noqa: S603 - the arguments are this module's own
                command, check=False, capture_output=True, text=True, timeout=FETCH_SECONDS
            )
            failure = None if done.returncode == 0 else done.stdout[-2000:] + done.stderr[-2000:]
        except subprocess.TimeoutExpired:
            failure = f"no answer within {FETCH_SECONDS} seconds"
        if failure is not None:
            what = ", ".join(f"{wanted.organisation}:{module}:{wanted.version}" for module in wanted.modules)
            message = (
                f"{what} can't be fetched. Let this machine reach the central Maven repository, or put these jars"
                f" and those that they need into {home}, or set KBAT_OFFLINE=1 to go without this test.\n{failure}"
            )
            raise JudgeUnavailableError(message)
        try:
            jars.replace(home)
        except OSError:
            if not home.exists():  # else another process was faster
                raise


def ivy_module(wanted: JarSet) -> str:
    """Write Ivy's description of a module that needs the wanted ones."""
    modules = "".join(
        f'<dependency org="{wanted.organisation}" name="{module}" rev="{wanted.version}" conf="default->default"/>'
        for module in wanted.modules
    )
    excludes = "".join(
        f'<exclude org="{organisation}" module="{module}" matcher="regexp"/>'
        for organisation, module in (pattern.split("#") for pattern in wanted.without)
    )
    overrides = "".join(
        f'<override org="{wanted.organisation}" module="{module}" rev="{version}"/>'
        for module, version in wanted.instead
    )
    return (
        '<ivy-module version="2.0"><info organisation="kbat" module="tests"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{modules}{excludes}{overrides}</dependencies></ivy-module>"
    )
