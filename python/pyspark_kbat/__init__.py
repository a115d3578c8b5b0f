"""Spark imports every package named `pyspark_*` and registers its `DefaultSource`."""

from kbat.spark.source import KbatDataSource as DefaultSource

__all__ = ["DefaultSource"]
