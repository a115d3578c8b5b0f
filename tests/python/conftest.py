"""Shared fixtures of the Python tests: the sample directory and one Spark session."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import pytest

from data import DATA
from growing_log import GrowingLog
from kafka_broker import Broker
from kafka_judge import KafkaJudge
from kafka_server import KafkaServer
from old_kafka import OldKafka
from store_servers import start_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from s3_server import S3Server


@pytest.fixture(scope="session")
def log_dir() -> Path:
    """A broker's log directory."""
    return DATA / "log-dir"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of all tests. Nothing registers kbat with it: Spark has to find it.

    With KBAT_TEST_ENGINE=jvm in the environment, it has kbat's jar, and so all its tests read in the JVM.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 -- slow, and most tests need no Spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder
    if os.environ.get("KBAT_TEST_ENGINE") == "jvm":
        import kbat.spark  # noqa: PLC0415 -- slow, and most tests need no Spark

        builder = builder.config("spark.jars", kbat.spark.jar())
    session = (
        builder.master("local[2]")
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


@pytest.fixture(scope="module")
def jvm(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of all tests, with kbat's jar for the tests of one module."""
    with with_jar(spark):
        yield spark


@pytest.fixture(scope="module", params=["python", "jvm"])
def face(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The session of all tests, in which kbat runs in Python, and then in the JVM."""
    with with_jar(spark) if request.param == "jvm" else in_python(spark):
        yield spark


# Spark's threads that load classes by name
LATE_THREADS = ("spark-listener-group", "task-result-getter", "dispatcher-", "element-tracking-store-worker")


@contextmanager
def with_jar(spark: SparkSession) -> Iterator[None]:
    """Add kbat's jar to the session, for this thread."""
    import kbat.spark  # noqa: PLC0415 -- imports Spark

    threads = spark._jvm.java.lang.Thread  # type: ignore[union-attr]  # noqa: SLF001
    thread = threads.currentThread()
    before = thread.getContextClassLoader()
    spark.sql(f"ADD JAR '{kbat.spark.jar()}'")
    # these threads know the jar in a session that has it from the start
    for other in threads.getAllStackTraces().keySet():
        if other.getName().startswith(LATE_THREADS):
            other.setContextClassLoader(thread.getContextClassLoader())
    yield
    # the other tests have the Python data source again
    thread.setContextClassLoader(before)


@contextmanager
def in_python(spark: SparkSession) -> Iterator[None]:
    """Make Python the default of a session that may have the jar."""
    spark.conf.set("spark.datasource.kbat.engine", "python")
    yield
    spark.conf.unset("spark.datasource.kbat.engine")


@pytest.fixture(scope="session")
def many_batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory with two partitions of 40 batches of 5 records."""
    directory = tmp_path_factory.mktemp("logs")
    for partition in range(2):
        GrowingLog(directory / f"a-{partition}").append(*[5] * 40)
    return directory


@pytest.fixture(scope="session")
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Report slow downloads on the terminal. Skips the test if downloads are not allowed."""
    if os.environ.get("KBAT_OFFLINE") == "1":
        pytest.skip("KBAT_OFFLINE=1: Kafka's jars would have to be fetched")
    capture = request.config.pluginmanager.get_plugin("capturemanager")

    def tell(text: str) -> None:
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            print(f"\n{text}", file=sys.stderr, flush=True)  # noqa: T201 - a message to a person

    return tell


@pytest.fixture(scope="session")
def kafka(say: Callable[[str], None]) -> Iterator[KafkaJudge]:
    """Kafka's own record classes in a process of their own: they read and build batches."""
    with KafkaJudge(say) as judge:
        yield judge


@pytest.fixture(scope="session")
def kafka_server(say: Callable[[str], None]) -> Iterator[KafkaServer]:
    """Kafka's server classes in a process of their own: they validate, filter, clean, recover and dump."""
    with KafkaServer(say) as server:
        yield server


@pytest.fixture(scope="session")
def old_kafka(say: Callable[[str], None]) -> Iterator[OldKafka]:
    """The record classes of Kafka 3.9 in a process of their own: they convert batches to older formats."""
    with OldKafka(say) as old:
        yield old


@pytest.fixture(scope="session")
def broker(kafka_server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One real Kafka broker for all tests, started when it is first used. Topics are shared: use names of your own."""
    node = Broker(kafka_server, tmp_path_factory.mktemp("broker"))
    yield node
    node.stop()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One server of objects for all tests, with one bucket. Use keys of your own.

    It is moto, an S3-compatible server, unless KBAT_TEST_STORE in the environment names another one.
    """
    with start_server() as server:
        yield server


@pytest.fixture(scope="session")
def log_url(s3_server: S3Server, log_dir: Path) -> str:
    """The log directory in the bucket."""
    return s3_server.upload(log_dir, "spark/log-dir")


@pytest.fixture(scope="session")
def storage(s3_server: S3Server) -> dict[str, str]:
    """The options of the bucket, with the names of the data source."""
    return {f"storage.{name}": str(value) for name, value in s3_server.options.items()}
