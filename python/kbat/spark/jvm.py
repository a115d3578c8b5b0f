"""Sessions that have kbat's jar, and so read in Spark's JVM.

`format("kbat")` is that source if the session has the jar, and otherwise the Python data source: Spark searches for a
class `kbat.DefaultSource` before it searches for a Python data source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from kbat.spark import connect
from kbat.spark.settings import SETTINGS, jar

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULTS = "spark.datasource.kbat."

# Between the values of a setting that kbat and the user both set.
_SEPARATORS = {
    "spark.jars": ",",
    "spark.sql.extensions": ",",
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
}


def session(builder: SparkSession.Builder | None = None) -> SparkSession:
    """Return a session whose `format("kbat")` runs in the JVM, with the settings of `SETTINGS`.

    A session that is already running gets the jar with `ADD JAR`, for the Python thread that calls this function, and
    keeps its other settings. A session of Spark Connect gets it with `addArtifacts`, unless the server has it.

    Args:
        builder: A builder of the session, with settings of its own; by default `SparkSession.builder`.

    Raises:
        FileNotFoundError: This installation of kbat does not include the jar.
    """
    path = jar()
    new = SparkSession.builder if builder is None else builder
    given: dict[str, str] = dict(new._options)  # noqa: SLF001 -- nothing else has them
    # a server that is running has settings of its own, and pyspark warns about each that it refuses
    for name, ours in () if connect.is_started(given) else SETTINGS.items():
        theirs = str(given.get(name, ""))
        separator = _SEPARATORS.get(name)
        if not theirs:
            new.config(name, ours)
        elif separator is not None and ours not in theirs:
            new.config(name, f"{theirs}{separator}{ours}")
    spark = new.getOrCreate()
    if has_jar(spark):
        return spark
    if connect.is_connect(spark):
        spark.addArtifacts(path)
    else:
        spark.sql(f"ADD JAR '{path}'")
    return spark


def has_jar(spark: SparkSession) -> bool:
    """Return whether `format("kbat")` runs in the JVM of a session, or in that of the server with Spark Connect."""
    if connect.is_connect(spark):
        return connect.server_has(spark)
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # noqa: PLC0415 -- pyspark-client has none

    jvm: Any = spark._jvm  # noqa: SLF001 -- nothing else leads to Java
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(connect.CLASS)
    except Py4JJavaError:
        return False
    return True


def session_defaults(spark: SparkSession) -> dict[str, str]:
    """Return the options that the session's settings `spark.datasource.kbat.<option>` set for all reads."""
    # `conf.getAll` is new in Spark 4, and SET hides the values of secrets
    keys = [row.key for row in spark.sql("SET").collect() if row.key.startswith(_DEFAULTS)]
    return {key.removeprefix(_DEFAULTS): value for key in keys if (value := spark.conf.get(key)) is not None}


def runs_in_jvm(spark: SparkSession, engine: object = None) -> bool:
    """Return whether functions run in the JVM: the session has the jar, and the engine is not Python.

    `engine` is that of the call; None means that of the session, which is the JVM's by default.
    """
    return has_jar(spark) and str(engine or spark.conf.get(f"{_DEFAULTS}engine", "auto")).strip().lower() != "python"


def register_in_jvm(spark: SparkSession, *, is_internal: bool = False) -> None:
    """Register the jar's SQL functions in a session, or those that `decode` and `encode` use."""
    if connect.is_connect(spark):
        connect.server_has(spark, "internal" if is_internal else "users")
        return
    session: Any = spark
    functions = session._jvm.kbat.spark.Functions  # noqa: SLF001 -- nothing else leads to Java
    registry = session._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001 -- as above
    if is_internal:
        functions.registerInternal(registry)
    else:
        functions.register(registry)


def encode_in_jvm(rows: DataFrame, fields: str, settings: str) -> DataFrame:
    """Encode the rows in a binary column, to rows in a binary column; the class `LogEncoder` describes both."""
    session: Any = rows.sparkSession
    encoder = session._jvm.kbat.spark.LogEncoder  # noqa: SLF001 -- nothing else leads to Java
    return DataFrame(encoder.encode(rows._jdf, fields, settings), session)  # noqa: SLF001 -- as above


def check_engine(options: Mapping[str, str]) -> None:
    """Raise `ValueError` if the options of a read or write that runs in Python have `engine=jvm`."""
    for name, text in options.items():
        if name.lower() == "engine" and text.strip().lower() == "jvm":
            message = (
                f"kbat: option engine={text!r}: this session has no jar of kbat, so the Python data source runs; start "
                "the session with the settings kbat.spark.SETTINGS, or add the file that kbat.spark.jar() returns to "
                "spark.jars"
            )
            raise ValueError(message)
