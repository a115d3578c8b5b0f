"""Kafka's log segments as a Spark data source.

```python
df = spark.read.format("kbat").load("/var/lib/kafka/data")
```

Spark finds the source by itself where kbat is installed for the driver's Python. Where it does not look, as in
a session of an older Spark, [register][kbat.spark.register] makes it known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbat.spark.source import KbatDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["KbatDataSource", "register"]


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("kbat")` known to a session that did not find it by itself; twice does no harm."""
    spark.dataSource.register(KbatDataSource)
