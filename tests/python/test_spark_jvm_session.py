"""What the session decides in the JVM: defaults of options, the working directory, and where warnings go."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

import kbat.spark
from growing_log import GrowingLog
from kbat.spark import jvm as of_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    SetDefault = Callable[[str, str], None]


@pytest.fixture
def defaults(jvm: SparkSession) -> Iterator[SetDefault]:
    names: list[str] = []

    def set_default(name: str, text: str) -> None:
        names.append(f"spark.datasource.kbat.{name}")
        jvm.conf.set(names[-1], text)

    yield set_default
    for name in names:
        jvm.conf.unset(name)


def test_warnings_of_tasks_are_logged(jvm: SparkSession, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(5)
    log.roll()
    log.append(5)
    appenders: Any = jvm._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # noqa: SLF001
    file = tmp_path / "warnings.txt"
    appender = appenders.core.appender.FileAppender.newBuilder().setName("test").withFileName(str(file)).build()
    appender.start()
    logger = appenders.LogManager.getLogger("kbat")
    logger.addAppender(appender)
    logger.setLevel(appenders.Level.WARN)  # the tests' sessions log nothing
    try:
        rows = jvm.read.format("kbat").option("failOnDataLoss", value=False).load(os.fspath(tmp_path)).rdd
        assert rows.getNumPartitions()  # the plan
        lost = tmp_path / "a-0" / "00000000000000000000.log"
        lost.unlink()
        assert rows.count() == 5
    finally:
        logger.setLevel(appenders.Level.OFF)
        logger.removeAppender(appender)
        appender.stop()
    assert f"{lost} was deleted after the read was planned" in file.read_text()


def test_relative_path_is_that_of_python(jvm: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    GrowingLog(tmp_path / "logs" / "a-0").append(5)
    monkeypatch.chdir(tmp_path)
    assert kbat.spark.read(jvm, "logs").count() == 5
    assert kbat.spark.to_parquet(jvm, "logs", "out").row_count == 5
    assert jvm.read.parquet(os.fspath(tmp_path / "out")).count() == 5


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_defaults_of_the_session_are_those_of_files(
    jvm: SparkSession, defaults: SetDefault, engine: str, tmp_path: Path
) -> None:
    GrowingLog(tmp_path / "a-0").append(5)
    defaults("columns", "value,offset,topic,key")
    defaults("endingOffsets", '{"a": {"0": 3}}')
    kbat.spark.to_parquet(jvm, tmp_path / "a-0", tmp_path / "out", engine=engine)
    files = jvm.read.parquet(os.fspath(tmp_path / "out"))
    assert files.columns == ["value", "offset", "key", "topic"]
    frame = kbat.spark.read(jvm, tmp_path / "a-0", engine=engine)
    assert frame.columns == ["value", "offset", "topic", "key"]
    assert sorted(files.select("value", "offset").collect()) == sorted(frame.select("value", "offset").collect())
    assert frame.count() == 3


def test_defaults_that_look_like_secrets_are_passed_on(jvm: SparkSession, defaults: SetDefault) -> None:
    defaults("storage.secret_access_key", "abc")
    assert of_session.session_defaults(jvm) == {"storage.secret_access_key": "abc"}


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_defaults_of_reads_do_not_stop_a_write(
    jvm: SparkSession, defaults: SetDefault, engine: str, tmp_path: Path
) -> None:
    defaults("onCorrupt", "skip")
    defaults("engine", engine)
    rows = jvm.sql("SELECT 'a' AS topic, 0 AS partition, 'v' AS value")
    rows.write.format("kbat").mode("append").save(os.fspath(tmp_path))
    assert kbat.scan(tmp_path).count() == 1
