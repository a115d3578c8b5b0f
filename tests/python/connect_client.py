"""A client of Spark Connect, run as a program: prints what kbat's functions do in its session, as JSON.

python connect_client.py '{"remote": "sc://…", "log_dir": "…", "directory": "…", "way": "artifact"}'

The way to the jar is `artifact`, which sends it to the server before all else, `session`, which starts a server with
`kbat.spark.session`, or null.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

import kbat
import kbat.spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

COLUMNS = ["topic", "partition", "offset", "timestamp", "key", "value"]
# Spark has -1 ms where a record has no timestamp
NO_TIMESTAMP = datetime.fromtimestamp(-0.001, UTC)
LOG = "codec-lz4-0"
_MESSAGE = re.compile(r"kbat: .*?(?= SQLSTATE|$)", re.MULTILINE)


def face_of(frame: DataFrame) -> str:
    """Return where kbat runs, as explain shows it."""
    plan = str(frame._explain_string())  # type: ignore[operator]  # noqa: SLF001 -- explain only prints
    marks = {"jvm": ("kbat engine: jvm", "kbat_decode_part("), "python": ("(Python)", "MapInArrow", "pythonUDF")}
    found = [face for face, texts in marks.items() if any(text in plan for text in texts)]
    return found[0] if len(found) == 1 else plan


def outcome(call: Callable[[], Any]) -> Any:  # noqa: ANN401 -- what the call returns
    """Return what a call returns, or kbat's message of its error, or the error."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 -- any is an outcome
        found = _MESSAGE.search(str(error))
        return found[0] if found else str(error).splitlines()[0]


def rows_of(frame: DataFrame) -> list[Any]:
    """Return the rows in the order of their logs."""
    return sorted(((row[:3], row) for row in map(tuple, frame.select(COLUMNS).collect())), key=lambda pair: pair[0])


def scanned(path: Path) -> list[Any]:
    """Return the rows of kbat.scan, as Spark's driver shows them."""
    table = kbat.scan(path, columns=COLUMNS, timestamp_unit="us").to_pyarrow()
    rows = zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True)
    found = [(*row[:3], (row[3] or NO_TIMESTAMP).astimezone().replace(tzinfo=None), *row[4:]) for row in rows]
    return sorted(((row[:3], row) for row in found), key=lambda pair: pair[0])


@dataclass(frozen=True)
class Client:
    """A session, the logs that it reads and a directory to write to."""

    spark: SparkSession
    log_dir: Path
    directory: Path

    @property
    def log(self) -> Path:
        """The directory of one partition."""
        return self.log_dir / LOG

    def load(self, path: Path, **options: str) -> DataFrame:
        """Read a path with the data source."""
        return self.spark.read.format("kbat").options(**options).load(os.fspath(path))

    def files(self) -> DataFrame:
        """The bytes of the partition's segments."""
        return self.spark.read.format("binaryFile").load(f"{self.log}/*.log").select("path", "content")

    def outcomes(self) -> dict[str, Any]:
        """Return the outcome of each feature."""
        engines = ("auto", "jvm", "python", "x")
        return {
            "rows": outcome(lambda: rows_of(self.load(self.log_dir)) == scanned(self.log_dir)),
            "engines": {name: outcome(lambda: face_of(self.load(self.log, engine=name))) for name in engines},  # noqa: B023 -- called at once
            "missing": outcome(lambda: self.load(self.log_dir / "missing").count()),
            "stream": outcome(self.stream),
            "writes": {name: outcome(lambda: self.write(name)) for name in engines[:3]},  # noqa: B023 -- as above
            "read": outcome(self.read),
            "read engines": {name: outcome(lambda: self.read_by(name)) for name in engines[:3]},  # noqa: B023 -- as above
            "read missing": outcome(lambda: kbat.spark.read(self.spark, self.log_dir / "missing").count()),
            "decode": outcome(lambda: self.decoded(kbat.spark.decode(self.files(), "content"))),
            "encode": outcome(self.encode),
            "parquet": outcome(self.to_parquet),
            "functions before": outcome(self.functions),
            "register": outcome(lambda: kbat.spark.register(self.spark)),
            "functions": outcome(self.functions),
        }

    def stream(self) -> list[Any]:
        """Return the rows of a stream, and whether it reports its lag, as only that of the JVM does."""
        reader = self.spark.readStream.format("kbat").option("startingOffsets", "earliest").load(os.fspath(self.log))
        writer = reader.writeStream.format("memory").queryName("streamed")
        query = writer.option("checkpointLocation", os.fspath(self.directory / "checkpoint")).trigger(availableNow=True)
        (running := query.start()).awaitTermination(120)
        lags = ["maxOffsetsBehindLatest" in step["sources"][0].get("metrics", {}) for step in running.recentProgress]
        return [self.spark.table("streamed").count(), any(lags)]

    def write(self, engine: str) -> bool:
        """Write a log, and return whether it has the records of the source."""
        target = self.directory / engine
        rows = self.load(self.log).select("topic", "partition", "timestamp", "key", "value").coalesce(1)
        rows.write.format("kbat").option("engine", engine).mode("append").save(os.fspath(target))
        return scanned(target) == scanned(self.log)

    def read(self) -> list[Any]:
        """Read by a path that is relative to this process."""
        os.chdir(self.log_dir)
        frame = kbat.spark.read(self.spark, LOG)
        return [face_of(frame), rows_of(frame) == scanned(self.log)]

    def read_by(self, engine: str) -> str:
        """Return the face of kbat.spark.read with an engine."""
        return face_of(kbat.spark.read(self.spark, self.log, engine=engine))

    def decoded(self, frame: DataFrame) -> list[Any]:
        """Return the face of a decoded frame, and whether it has the records of the partition."""
        found = sorted(tuple(row) for row in frame.select("offset", "key", "value").collect())
        return [face_of(frame), found == [(row[2], *row[4:]) for _, row in scanned(self.log)]]

    def encode(self) -> bool:
        """Encode the partition, and return whether kbat.scan reads its records."""
        encoded = kbat.spark.encode(self.load(self.log), compression="zstd").sort("baseOffset").collect()
        table = kbat.scan(b"".join(row.batch for row in encoded), columns=COLUMNS[2:]).to_pyarrow()
        return table == kbat.scan(self.log, columns=COLUMNS[2:]).to_pyarrow()

    def to_parquet(self) -> list[Any]:
        """Write Parquet files; return their rows, and whether a read in the JVM wrote them."""
        from kbat.spark import parquet  # noqa: PLC0415 -- to see which way is taken

        calls = []
        in_jvm = parquet._files_in_jvm  # noqa: SLF001 -- as above

        def spy(*arguments: Any) -> DataFrame:  # noqa: ANN401 -- as the original
            calls.append(arguments)
            return in_jvm(*arguments)

        parquet._files_in_jvm = spy  # type: ignore[assignment]  # noqa: SLF001 -- as above
        written = kbat.spark.to_parquet(self.spark, self.log_dir, self.directory / "parquet")
        count = self.spark.read.parquet(os.fspath(self.directory / "parquet")).count()
        return [written.row_count == count == len(scanned(self.log_dir)), bool(calls)]

    def functions(self) -> list[Any]:
        """Return where kbat_decode runs, and the value that both functions return together."""
        decoded = self.files().selectExpr("inline(kbat_decode(content))")
        both = self.spark.sql("SELECT kbat_decode(kbat_encode(array(struct('a value' AS value))))[0].value AS value")
        plan = str(decoded._explain_string())  # type: ignore[operator]  # noqa: SLF001 -- explain only prints
        return ["python" if "pythonUDF" in plan else "jvm", decoded.count(), both.collect()[0].value.decode()]


def main() -> None:
    """Print the outcomes."""
    given = json.loads(sys.argv[1])
    builder = SparkSession.builder.remote(given["remote"])
    client = Client(
        kbat.spark.session(builder) if given["way"] == "session" else builder.getOrCreate(),
        Path(given["log_dir"]),
        Path(given["directory"]),
    )
    found: dict[str, Any] = {"before": face_of(kbat.spark.read(client.spark, client.log))}
    if given["way"] == "artifact":
        client.spark.addArtifacts(kbat.spark.jar())
    if given["way"] == "session":
        found["functions"] = outcome(client.functions)
    else:
        found |= client.outcomes()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found["is same"] = kbat.spark.session(builder) is client.spark
        found["warnings"] = [str(warning.message) for warning in caught]
        found["after session"] = face_of(kbat.spark.read(client.spark, client.log))
    print(json.dumps(found))  # noqa: T201 -- the output of this program
    client.spark.stop()


if __name__ == "__main__":
    main()
