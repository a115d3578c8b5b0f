"""Drivers that are killed while a stream is written in Python, before and after the commit of a micro-batch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

import kbat
from growing_log import GrowingLog
from test_spark_sink import counted, last_micro_batches, values_of
from test_spark_versions import spark_home

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.long

VERSIONS = ("4.0.5", pyspark.__version__)

# Writes all existing records. The process that commits micro-batch `number` kills the driver
# before or after the commit; "late", it commits when the file `go` exists, and then creates the file `gone`.
PROGRAM = """
import json, os, signal, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from kbat.spark.source import KbatDataSource
from kbat.spark.stream_writer import KbatStreamWriter
directory, moment, number = json.loads(sys.argv[1])
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
driver = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()

class Writer(KbatStreamWriter):
    def commit(self, messages, batchId):
        if batchId == number and moment == "before":
            os.kill(driver, signal.SIGKILL)
            os._exit(1)
        if batchId == number and moment == "late":
            for name in (signal.SIGHUP, signal.SIGTERM):
                signal.signal(name, signal.SIG_IGN)
            os.kill(driver, signal.SIGKILL)
            while not Path(directory, "go").exists():
                time.sleep(0.1)
        super().commit(messages, batchId)
        if batchId == number and moment == "late":
            Path(directory, "gone").touch()
        if batchId == number and moment == "after":
            os.kill(driver, signal.SIGKILL)
            os._exit(1)

class Source(KbatDataSource):
    @classmethod
    def name(cls):
        return "killing"
    def streamWriter(self, schema, overwrite):
        writer = Writer(schema, self.options, overwrite=overwrite)
        if not self.is_restored:
            writer.start()
        return writer

spark.dataSource.register(Source)
reader = spark.readStream.format("kbat").option("startingOffsets", "earliest")
rows = reader.load(directory + "/from").select("topic", "partition", "key", "value")
writer = rows.writeStream.format("killing").option("checkpointLocation", directory + "/checkpoint")
writer.trigger(processingTime="0 seconds").start(directory + "/to").processAllAvailable()
print("complete")
"""


def run(home: Path, directory: Path, moment: str, number: int) -> bool:
    """Run PROGRAM, and return whether it was not killed."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(home.parent), str(Path(kbat.__file__).parents[1])]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, "-c", PROGRAM, json.dumps([str(directory), moment, number])]
    with (directory / f"output-{moment}").open("w+") as output:
        # the process that commits late has the pipes of its driver
        subprocess.run(command, check=False, stdout=output, stderr=output, cwd=directory, env=environment, timeout=600)  # noqa: S603 -- from above
        output.seek(0)
        text = output.read()
    assert "STREAM_FAILED" not in text, text[-3000:]
    return "complete" in text.splitlines()


@pytest.mark.parametrize("version", VERSIONS)
def test_stream_of_drivers_that_are_killed_is_written_once(
    say: Callable[[str], None], tmp_path: Path, version: str
) -> None:
    home = spark_home(version, say)
    log = GrowingLog(tmp_path / "from" / "a-0")
    target = tmp_path / "to"
    for number, (moment, count) in enumerate([("before", 0), ("after", 6), ("late", 6)]):
        log.append(3)
        assert not run(home, tmp_path, moment, number)
        assert (values_of(target) if (target / "a-0").exists() else []) == counted(count)
        # Spark repeats micro-batches whose commit it has not recorded
        commits = {path.name for path in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")}
        assert commits == {str(earlier) for earlier in range(number)}
    assert run(home, tmp_path, "never", 0)
    assert values_of(target) == counted(9)
    (tmp_path / "go").touch()
    for _ in range(300):
        if (tmp_path / "gone").exists():
            break
        time.sleep(0.1)
    assert (tmp_path / "gone").exists()
    assert values_of(target) == counted(9)
    assert last_micro_batches(target) == ["2"]
    assert kbat.verify(target / "a-0").exit_code == 0
