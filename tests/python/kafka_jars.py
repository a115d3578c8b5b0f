"""The jars that the tests with Kafka's own code need, fetched once into ``target/kafka-judge``.

Ivy fetches them (see ``java/ivy.py``, of the project). janino, which comes with pyspark, compiles the programs in
``java/`` when they are started. So a Java 17 runtime is all that has to be installed.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]
sys.path.append(os.fspath(ROOT / "java"))

from ivy import Module, Request, UnavailableError, fetch, find_java, pyspark_jar  # noqa: E402 - found there

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JarSet", "JudgeUnavailableError", "find_java", "kafka_jars", "pyspark_jar", "spark_connector"]

JudgeUnavailableError = UnavailableError
"""Java, pyspark's jars or Kafka's jars are missing."""

KAFKA_VERSION = "4.3.1"
"""The version whose bytes and rules kbat follows; since 4.2 its record classes are in ``common.record.internal``."""

OLD_KAFKA_VERSION = "3.9.1"
"""The last line of versions that converts batches down to older formats."""

CACHE = ROOT / "target" / "kafka-judge"


@dataclass(frozen=True, kw_only=True)
class JarSet:
    """Modules to download with their dependencies, or without them if they have a classifier.

    Attributes:
        name: The directory below ``CACHE``.
        modules: Names of the modules.
        version: Their version.
        size: About how much is fetched, for the message.
        organisation: Whose modules they are.
        without: Modules, as ``organisation#name`` of Ivy's patterns, that are needed by nothing here.
        instead: Modules of the same organisation to use in this version, regardless of the requested one.
        classifier: Which jars of the modules to take, such as ``test``. Default: the main ones.
    """

    name: str
    modules: tuple[str, ...]
    version: str
    size: str
    organisation: str = "org.apache.kafka"
    without: tuple[str, ...] = ()
    instead: tuple[tuple[str, str], ...] = ()
    classifier: str = ""

    def request(self) -> Request:
        """Return the modules as Ivy needs them."""
        return Request(
            modules=tuple(self._module(name, self.version, self.classifier) for name in self.modules),
            transitive=not self.classifier,
            without=self.without,
            instead=tuple(self._module(name, version) for name, version in self.instead),
        )

    def _module(self, name: str, version: str, classifier: str = "") -> Module:
        return Module(organisation=self.organisation, name=name, version=version, classifier=classifier)


CLIENTS = JarSet(name=KAFKA_VERSION, modules=("kafka-clients",), version=KAFKA_VERSION, size="20 MB")
OLD_CLIENTS = JarSet(name=OLD_KAFKA_VERSION, modules=("kafka-clients",), version=OLD_KAFKA_VERSION, size="20 MB")
SERVER = JarSet(
    name=f"{KAFKA_VERSION}-server",
    modules=("kafka_2.13", "kafka-tools"),
    version=KAFKA_VERSION,
    size="45 MB",
    without=("org.apache.kafka#connect-.*", "org.eclipse.jetty.*#.*", "org.glassfish.*#.*"),
)
LOCAL_TIERED_STORAGE = JarSet(
    name=f"{KAFKA_VERSION}-tiered",
    modules=("kafka-storage", "kafka-clients", "kafka-server-common"),
    version=KAFKA_VERSION,
    size="4 MB",
    classifier="test",
)
"""Kafka's ``LocalTieredStorage``, which is among its tests, and the classes of other tests that it uses."""


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
        try:
            fetch(java, wanted.request(), home, cache=CACHE / "ivy")
        except UnavailableError as error:
            reason, _, output = str(error).partition("\n")
            message = f"{reason} Or set KBAT_OFFLINE=1 to go without this test.\n{output}"
            raise UnavailableError(message) from None
    return sorted(home.glob("*.jar"))
