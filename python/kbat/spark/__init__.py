"""Kafka's log segments as a Spark data source.

```python
df = spark.read.format("kbat").load("/var/lib/kafka/data")
```

In a session with kbat's jar, such as one that [session][kbat.spark.session] starts, this runs in Spark's JVM. In any
other, it is a Python data source, which Spark finds by itself if kbat is installed for the Python of its workers, which
`PYSPARK_PYTHON` sets. If a session does not find it, call [register][kbat.spark.register].
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kbat.spark.settings import SETTINGS, jar

if TYPE_CHECKING:
    from kbat.spark.decoding import decode
    from kbat.spark.encoding import encode
    from kbat.spark.jvm import session
    from kbat.spark.map_in_arrow import read
    from kbat.spark.parquet import to_parquet
    from kbat.spark.registration import register
    from kbat.spark.source import KbatDataSource
    from kbat.spark.task_metrics import metrics

__all__ = [
    "SETTINGS",
    "KbatDataSource",
    "decode",
    "encode",
    "jar",
    "metrics",
    "read",
    "register",
    "session",
    "to_parquet",
]

# Spark imports this package at the start of every session; modules with pyarrow and numpy are imported on first use.
# So are those that need Spark 4: Spark 3.5 has the JVM's data source.
_MODULES = {
    "KbatDataSource": "source",
    "decode": "decoding",
    "encode": "encoding",
    "metrics": "task_metrics",
    "read": "map_in_arrow",
    "register": "registration",
    "session": "jvm",
    "to_parquet": "parquet",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 -- any of them
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
