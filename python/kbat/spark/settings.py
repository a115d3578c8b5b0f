"""The jar with the data source that runs in Spark's JVM, and the settings of a session. Needs no Spark."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_JAR = Path(__file__).parent / "jars" / "kbat-spark.jar"
_JAVA_OPTIONS = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"

# A session that is built with these settings, `SparkSession.builder.config(map=dict(kbat.spark.SETTINGS))`, has the jar
# and its SQL functions if this installation has it. The other settings make the Python data source, and functions like
# `decode` in Python, 1.2 to 1.6 times as fast (docs/tuning.md): they connect Python and the JVM by a Unix socket, in
# Spark 4.1 and later, and disable Arrow's check of each access in the JVM.
SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
        **({"spark.jars": str(_JAR), "spark.sql.extensions": "kbat.Extensions"} if _JAR.is_file() else {}),
    }
)


def jar() -> str:
    """Return the path of the jar with the data source that runs in Spark's JVM, for `spark.jars` or `--jars`.

    Raises:
        FileNotFoundError: This installation of kbat does not include the jar.
    """
    if not _JAR.is_file():
        message = (
            f"kbat: this installation has no jar at {_JAR}; install a wheel of kbat for this platform, or build one "
            "with: make wheel"
        )
        raise FileNotFoundError(message)
    return str(_JAR)
