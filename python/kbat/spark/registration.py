"""`kbat.spark.register`: the Python data source and the SQL functions in a session."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSourceReader

from kbat.spark.interpreter import check_interpreter
from kbat.spark.jvm import has_jar
from kbat.spark.source import FilteringDataSource, KbatDataSource
from kbat.spark.stores import with_s3a_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        RuntimeError: Spark's workers run a Python on this machine that can't import kbat. Without workers, as in a
            session with kbat's jar, this is not checked.
    """
    if not has_jar(spark):
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
    import_module("kbat.spark.sql").register_functions(spark)
