"""Kafka's log segments as a Spark data source.

```python
df = spark.read.format("kbat").load("/var/lib/kafka/data")
```

Spark finds the source by itself if kbat is installed for the Python of its workers, which `PYSPARK_PYTHON` sets. If a
session does not find it, call [register][kbat.spark.register].
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSourceReader

from kbat.spark.interpreter import check_interpreter
from kbat.spark.source import FilteringDataSource, KbatDataSource
from kbat.spark.stores import with_s3a_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from kbat.spark.decoding import decode
    from kbat.spark.encoding import encode
    from kbat.spark.fast import read
    from kbat.spark.parquet import to_parquet
    from kbat.spark.tally import metrics

__all__ = ["SETTINGS", "KbatDataSource", "decode", "encode", "metrics", "read", "register", "to_parquet"]

# Spark imports this package at the start of every session; modules with pyarrow and numpy are imported on first use.
_MODULES = {"decode": "decoding", "encode": "encoding", "metrics": "tally", "read": "fast", "to_parquet": "parquet"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 -- any of the functions
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)


_JAVA_OPTIONS = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"

# A session that is built with these settings, `SparkSession.builder.config(map=dict(kbat.spark.SETTINGS))`, reads 1.2
# to 1.6 times as many rows per second as one with Spark's defaults (docs/tuning.md). The settings connect Python and
# the JVM by a Unix socket, in Spark 4.1 and later, and disable Arrow's check of each access in the JVM.
SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
    }
)
_PUSH_FILTERS = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession, *, push_filters: bool = False) -> None:
    """Register `format("kbat")` and the SQL functions `kbat_decode` and `kbat_encode` in a session.

    Reads of `s3://` and `s3a://` URLs without an option `storage.<name>` use the settings `spark.hadoop.fs.s3a.*` that
    the session has at this call, because Spark plans a Python data source in a process that can't see the session. They
    do not apply in Spark 4.0, which never replaces a source that it has found by itself.

    Registering twice has no effect, except for these settings. With `push_filters`, filters on `topic`, `partition`,
    `offset` and `timestamp` exclude files, segments and batches before they are read.

    `push_filters` is off by default because of a bug in Spark, at least in versions 4.1 to 4.3: a DataFrame keeps the
    tasks that were planned with the filters of one query. A later query on the same DataFrame or view, or another
    branch of the same query, then misses rows. Set it only if every query loads its own DataFrame. The options
    `subscribe`, `assign`, `startingOffsets`, `startingTimestamp` and their counterparts select rows without that risk.

    Args:
        spark: The session, classic or Connect.
        push_filters: Whether the source accepts filters, in Spark 4.1 and later. Sets
            `spark.sql.python.filterPushdown.enabled=true` in the session, which Spark requires for such a source.

    Raises:
        RuntimeError: Spark's workers run a Python on this machine that can't import kbat.
    """
    check_interpreter(spark)
    takes_filters = push_filters and hasattr(DataSourceReader, "pushFilters")
    if takes_filters:
        spark.conf.set(_PUSH_FILTERS, "true")
    try:
        source = FilteringDataSource if takes_filters else KbatDataSource
        spark.dataSource.register(with_s3a_settings(source, spark))
    except AnalysisException as error:  # Spark 4.0 refuses a source that it has found by itself
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
    import_module(f"{__name__}.sql").register_functions(spark)
