"""Spark Connect: whether the server has the jar, and the jar's SQL functions there.

```
client ──► schema of format("kbat.DefaultSource") ──► server: the class exists, and registers functions in the session
                                                  └─► server: DATA_SOURCE_NOT_FOUND
```

A client can't call Java. The server searches for the class that the name of the format is in the session of the client,
so it finds the jar of `spark.jars`, of `--jars` and of `addArtifacts`. The request runs no job and no Python worker.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Mapping

CLASS = "kbat.DefaultSource"
"""The data source of the jar; its name as a format excludes the Python data source."""

Functions = Literal["none", "internal", "users"]
_FUNCTIONS = "kbat.functions"

# What each session is known to have. A session keeps its jar; one without the jar may get it at any time.
_registered: WeakKeyDictionary[Any, set[Functions]] = WeakKeyDictionary()


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is a client of Spark Connect, whose JVM is elsewhere."""
    return getattr(spark, "_jvm", None) is None


def is_started(options: Mapping[str, object]) -> bool:
    """Return whether a builder with these options connects to a server that is running already."""
    active = SparkSession.getActiveSession()
    url = str(options.get("spark.remote") or os.environ.get("SPARK_REMOTE", ""))
    return url.startswith("sc://") if active is None else is_connect(active)


def server_has(spark: SparkSession, functions: Functions = "none") -> bool:
    """Return whether the server has the jar for this session, and register functions of the jar in the session.

    `functions` are those for users, those that `decode` uses, or none. The server is asked until it has the jar.
    """
    known = _registered.setdefault(spark, set())
    if functions in known:
        return True
    reader = spark.read.format(CLASS).options(**{"engine": "jvm", _FUNCTIONS: functions})
    try:
        _ = reader.load().schema  # the request
    except PySparkException:
        # no such class, an older jar without these functions, or no library for the server's platform
        return False
    known.update({"none", functions})
    return True
