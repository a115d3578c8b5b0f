"""Two Spark workers without a common disk read a bucket, also one that grows under a stream."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyspark
import pytest

import kbat
import kbat.spark
from growing_log import GrowingLog
from s3_server import SECRET_KEY, log_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from s3_server import S3Server

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode != 0,  # noqa: S607 -- from the path
        reason="hiding the driver's disk from workers needs unshare and root",
    ),
]

# Hides the driver's directory from a worker, gives it a disk of its own, and runs it.
HIDDEN = 'mount -t tmpfs none "$1" && mount -t tmpfs none "$2" && shift 2 && exec "$@"'
# Prints, for a batch query, the number of rows and of the working directories of the tasks; then the offsets that a
# stream adds; then why the driver's files cannot be read.
PROGRAM = """
import json, os, sys
from pyspark.sql import SparkSession
master, engine, jar, url, storage, local, checkpoint = json.loads(sys.argv[1])
builder = (
    SparkSession.builder.master(master)
    .config("spark.ui.enabled", False)
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.executor.memory", "512m")
    .config("spark.scheduler.minRegisteredResourcesRatio", 1.0)
)
spark = (builder.config("spark.jars", jar) if engine == "jvm" else builder).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
options = {"engine": engine, "columns": "topic,partition,offset,value", **storage}

def count(batches):
    import os, time, pyarrow
    rows = sum(batch.num_rows for batch in batches)
    time.sleep(1)  # so that both workers get tasks
    yield pyarrow.RecordBatch.from_pydict({"place": [os.getcwd()], "rows": [rows]})

read = spark.read.format("kbat").options(**options).option("maxPartitionBytes", "3k")
found = read.load(url).mapInArrow(count, "place string, rows long").collect()
print("rows", sum(row.rows for row in found), len({row.place for row in found}))
added = []
stream = spark.readStream.format("kbat").options(**options).option("startingOffsets", "earliest")
def add(frame, number):
    added.extend(sorted(map(tuple, frame.select("partition", "offset").collect())))

sink = stream.load(url).writeStream.foreachBatch(add).option("checkpointLocation", checkpoint)
query = sink.trigger(availableNow=True).start()
query.awaitTermination()
print("added", json.dumps(sorted(added)))
try:
    frame = spark.read.format("kbat").option("engine", engine).load(local)
    frame.select("offset").write.format("noop").mode("overwrite").save()
    print("local files were read")
except Exception as error:
    print("not there" if "deleted after the read was planned" in str(error) or "No such file" in str(error) else error)
"""


class Cluster(NamedTuple):
    """The URL of a master with two workers, and the driver's directory, which the workers do not see."""

    url: str
    directory: Path


def environment() -> dict[str, str]:
    """Return the environment of Spark's programs. kbat is installed on every machine."""
    paths = [str(Path(kbat.__file__).parents[1]), str(Path(pyspark.__file__).parents[1])]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_", "AWS_"))}
    own = {"PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return {**kept, **own, "SPARK_HOME": str(next(iter(pyspark.__path__)))}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers in processes of their own."""
    directory = tmp_path_factory.mktemp("cluster")
    driver = directory / "driver"
    driver.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    program = str(Path(next(iter(pyspark.__path__)), "bin", "spark-class"))
    started = "org.apache.spark.deploy.{}"
    master = [program, started.format("master.Master"), "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    commands = [master]
    for number in range(2):
        (work := directory / f"work{number}").mkdir()
        settings = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work)]
        worker = [program, started.format("worker.Worker"), "--host", "127.0.0.1", *settings, url]
        commands.append(["unshare", "--mount", "sh", "-c", HIDDEN, "sh", str(driver), str(work), *worker])
    log = directory / "cluster.log"
    with contextlib.ExitStack() as stack:
        output = stack.enter_context(log.open("w"))
        for command in commands:
            process = subprocess.Popen(command, env=environment(), stdout=output, stderr=subprocess.STDOUT)  # noqa: S603 -- from above
            stack.callback(process.wait, 60)
            stack.callback(process.terminate)
        end = time.monotonic() + 120
        while len(re.findall("Registering worker", log.read_text())) < 2:
            assert time.monotonic() < end, log.read_text()[-3000:]
            time.sleep(0.2)
        yield Cluster(url, driver)


@pytest.mark.parametrize("engine", ["python", "jvm"])
def test_workers_without_a_common_disk_read_a_growing_bucket(
    engine: str, cluster: Cluster, s3_server: S3Server
) -> None:
    place = cluster.directory / engine
    logs = [GrowingLog(place / "logs" / f"t-{number}") for number in range(2)]
    prefix = f"spark-cluster/{engine}"
    storage = {f"storage.{name}": str(value) for name, value in s3_server.options.items()}
    url, local = s3_server.url(prefix), str(place / "logs")
    arguments = [cluster.url, engine, kbat.spark.jar(), url, storage, local, str(place / "checkpoint")]
    seen: list[list[int]] = []
    for count in (40, 25):
        for log in logs:
            log.append(*[10] * count)
        s3_server.upload(place / "logs", prefix, [path for path in log_files(place / "logs") if path.stat().st_size])
        done = subprocess.run(  # noqa: S603 -- its own
            [sys.executable, "-c", PROGRAM, json.dumps(arguments)],
            check=False,
            capture_output=True,
            text=True,
            cwd=place,
            env=environment(),
            timeout=600,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert SECRET_KEY not in done.stdout + done.stderr
        lines = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
        assert lines["rows"] == f"{2 * logs[0].end_offset} 2"
        seen += json.loads(lines["added"])
        # the workers do not have the driver's files
        assert "not" in lines, done.stdout
        for log in logs:
            log.roll()
    assert sorted(seen) == [[partition, offset] for partition in range(2) for offset in range(650)]
