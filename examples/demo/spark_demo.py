"""`python examples/demo/spark_demo.py LOG_DIR`: a broker's log directory as rows, answers and Parquet, on local Spark.

Shows the first record of each topic, a table of what each topic keeps on disk by codec, and copies every record to
Parquet and back. Reads the directory and never writes into it. Answers go to the standard output, progress to the
standard error.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import os
import shutil
import sys
import tempfile
import time
import unicodedata
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import kbat
from kbat.spark import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = (
    "topic, partition, offset, timestamp, timestampType, key, value, headers, compression, batchSize, segment, position"
)

# Spark formats times, as Kafka's range exceeds Python's. Format v0 has no timestamps.
_TIME = "CASE WHEN timestampType >= 0 THEN timestamp END"

_FIRST_RECORDS = f"""
SELECT topic, partition, offset, date_format({_TIME}, 'yyyy-MM-dd HH:mm:ss.SSS') AS time,
       substr(key, 1, 160) AS key, substr(value, 1, 400) AS value, headers
FROM (SELECT *, row_number() OVER (PARTITION BY topic ORDER BY partition, offset) AS place FROM log)
WHERE place = 1
ORDER BY topic
LIMIT 12
"""

# Each record has the size of its batch: so first one row per batch, then one row per topic and codec.
_ANSWERS = f"""
SELECT topic, compression, sum(records) AS records, count(*) AS batches,
       sum(batch_size) AS stored, sum(payload) AS payload,
       date_format(min(first), 'yyyy-MM-dd HH:mm:ss') AS first, date_format(max(last), 'yyyy-MM-dd HH:mm:ss') AS last
FROM (
  SELECT topic, compression, segment, position, any_value(batchSize) AS batch_size, count(*) AS records,
         sum(coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)
             + coalesce(aggregate(headers, 0, (sum, header) ->
                         sum + octet_length(header.key) + coalesce(octet_length(header.value), 0)), 0)) AS payload,
         min({_TIME}) AS first, max({_TIME}) AS last
  FROM log GROUP BY topic, compression, segment, position
)
GROUP BY topic, compression
ORDER BY topic, compression
"""

_FINGERPRINT = """
SELECT count(*) AS records, bit_xor(xxhash64(topic, partition, offset, timestamp, key, value, headers)) AS fingerprint
FROM {view}
"""


class _Columns(NamedTuple):
    """Titles of a printed table, and the titles of its right-aligned columns."""

    titles: Sequence[str]
    right: Sequence[str] = ()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit code: 0, or 1 with a message on the standard error."""
    given = _parse(arguments)
    try:
        with warnings.catch_warnings(action="ignore"):  # an empty directory is an error here, not a warning
            segments = kbat.find_segments(given.log_dir)
        _check(given.log_dir, segments)
        _say(f"{given.log_dir}: segments: {len(segments)}, {_size(sum(segment.size for segment in segments))}")
        with _local_spark() as spark:
            _show(spark, given.log_dir, Path(given.output))
    except FileNotFoundError:
        sys.stderr.write(f"kbat demo: {given.log_dir} does not exist\n")
    except (OSError, ValueError) as error:
        sys.stderr.write(f"kbat demo: {error}\n")
    else:
        return 0
    return 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument(
        "log_dir", metavar="LOG_DIR", help="a broker's log directory, a partition directory or a .log file"
    )
    parser.add_argument("--output", default="demo-output", help="directory for the Parquet copy (default: %(default)s)")
    return parser.parse_args(arguments)


def _check(log_dir: str, segments: Sequence[kbat.SegmentFile]) -> None:
    """Raise `ValueError` if there are no records to show."""
    if not any(segment.size for segment in segments):
        message = (
            f"{log_dir} has no records: it contains neither .log files nor <topic>-<partition> directories with "
            ".log files that are not empty; pass a directory from the broker's log.dirs"
        )
        raise ValueError(message)


def _show(spark: SparkSession, log_dir: str, output: Path) -> None:
    log = spark.read.format("kbat").option("columns", _COLUMNS).load(log_dir)
    log.createOrReplaceTempView("log")
    _say("reading the first record of each topic")
    _print_first_records(spark.sql(_FIRST_RECORDS))
    _say("adding up records, batches and bytes")
    _print_answers(spark.sql(_ANSWERS))
    _say("writing Parquet and reading it back")
    _copy(spark, log, output / "records.parquet")


def _print_first_records(rows: DataFrame) -> None:
    columns = _Columns(
        ("topic", "partition", "offset", "timestamp (UTC)", "key", "value", "headers"),
        ("partition", "offset", "headers"),
    )
    print("\nThe first record of each topic")
    _print_table(
        columns,
        [
            (
                _text(row.topic),
                _text(row.partition),
                str(row.offset),
                _text(row.time),
                _bytes(row.key, 16),
                _bytes(row.value, 40),
                str(len(row.headers or ())),
            )
            for row in rows.collect()
        ],
    )


def _print_answers(rows: DataFrame) -> None:
    right = ("records", "batches", "on disk", "payload", "ratio")
    columns = _Columns(("topic", "codec", *right, "first (UTC)", "last (UTC)"), right)
    print("\nWhat each topic keeps on disk, by codec (ratio: bytes of keys, values and headers to bytes on disk)")
    _print_table(
        columns,
        [
            (
                _text(row.topic),
                row.compression,
                f"{row.records:,}",
                f"{row.batches:,}",
                _size(row.stored),
                _size(row.payload),
                f"{row.payload / row.stored:.2f}",
                _text(row.first),
                _text(row.last),
            )
            for row in rows.collect()
        ],
    )


def _copy(spark: SparkSession, log: DataFrame, path: Path) -> None:
    """Write every record to Parquet, read it back and compare. Raises `ValueError` if anything differs."""
    log.write.mode("overwrite").option("compression", "zstd").parquet(os.fspath(path))
    spark.read.parquet(os.fspath(path)).createOrReplaceTempView("copy")
    original, copied = (spark.sql(_FINGERPRINT.format(view=view)).collect()[0] for view in ("log", "copy"))
    if original != copied:
        message = f"{path} differs from the log: {copied.records:,} records of {original.records:,}"
        raise ValueError(message)
    stored = sum(part.stat().st_size for part in path.glob("*.parquet"))
    print(f"\n{path}: {copied.records:,} records in {_size(stored)}, identical to the log when read back")


@contextlib.contextmanager
def _local_spark() -> Iterator[SparkSession]:
    """Yield a local Spark session whose log is written to a file, which an error of Spark names."""
    _check_java()
    _say("starting Spark on this machine")
    directory = Path(tempfile.mkdtemp(prefix="kbat-demo-"))
    spark_log = directory / "spark.log"
    try:
        with _standard_error_to(spark_log):
            spark = _start(directory)
        try:
            yield spark
        finally:
            spark.stop()
    except (OSError, ValueError):
        raise
    except Exception as error:
        _, is_ours, reason = str(error).rpartition("kbat.errors.")
        message = reason if is_ours else f"Spark failed; its log is {spark_log}\n{error}"
        raise OSError(message) from error
    shutil.rmtree(directory, ignore_errors=True)


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not shutil.which(os.path.join(home, "bin", "java") if home else "java"):  # noqa: PTH118 -- which takes strings
        message = "Spark needs Java 17 or later, and java was not found; install it or set JAVA_HOME"
        raise OSError(message)


def _start(directory: Path) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 -- slow; a wrong path is reported first

    # the Spark and the Python of this environment, regardless of the shell's settings
    os.environ.pop("SPARK_HOME", None)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return (
        SparkSession.builder.appName("kbat demo")
        .master("local[*]")
        .config(map=dict(SETTINGS))
        .config("spark.ui.enabled", value=False)
        .config("spark.ui.showConsoleProgress", value=False)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", 4)
        .config("spark.sql.warehouse.dir", os.fspath(directory / "warehouse"))
        .getOrCreate()
    )


@contextlib.contextmanager
def _standard_error_to(path: Path) -> Iterator[None]:
    """Redirect the standard error of processes started in the block to a file; the JVM keeps writing to it."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)


_STARTED = time.monotonic()


def _say(text: str) -> None:
    sys.stderr.write(f"[{time.monotonic() - _STARTED:5.1f} s] {text}\n")
    sys.stderr.flush()


def _print_table(columns: _Columns, rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(_width, cells)) for cells in zip(columns.titles, *rows, strict=True)]
    for cells in (columns.titles, ["─" * width for width in widths], *rows):
        gaps = [" " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)]
        aligned = [
            gap + cell if title in columns.right else cell + gap
            for cell, gap, title in zip(cells, gaps, columns.titles, strict=True)
        ]
        print("  " + "  ".join(aligned).rstrip())


def _width(text: str) -> int:
    """Return the width of a text on a terminal: two columns for each wide East Asian character or emoji."""
    return len(text) + sum(unicodedata.east_asian_width(char) in "WF" for char in text)


def _text(value: object) -> str:
    """Return a value as text, with a middle dot for each unprintable character and a dash for null."""
    return "-" if value is None else "".join(char if char.isprintable() else "·" for char in str(value))


def _bytes(value: bytes | None, length: int) -> str:
    """Return the start of a key or value: text on one line, or hexadecimal if the bytes are not UTF-8."""
    if value is None:
        return "-"
    try:
        # not bytes.decode: the last character may be truncated
        text = codecs.getincrementaldecoder("utf-8")().decode(value)
    except UnicodeDecodeError:
        return f"0x{value.hex()}"[:length]
    return _text(" ".join(text.split())[:length])


def _size(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


if __name__ == "__main__":
    sys.exit(main())
