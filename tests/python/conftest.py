"""What the Python tests share: the sample directory and one Spark session."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from data import DATA
from kafka_judge import KafkaJudge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def log_dir() -> Path:
    """A broker's log directory."""
    return DATA / "log-dir"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of all tests. Nothing registers kbat with it: Spark has to find it."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 -- slow, and most tests need no Spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", value=False)
        .config("spark.ui.showConsoleProgress", value=False)
        .config("spark.log.level", "OFF")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.warehouse.dir", os.fspath(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaJudge]:
    """Kafka's own classes in a process of their own."""
    if os.environ.get("KBAT_OFFLINE") == "1":
        pytest.skip("KBAT_OFFLINE=1: Kafka's jars would have to be fetched")
    with KafkaJudge() as judge:
        yield judge
