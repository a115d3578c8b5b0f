"""Ranges of times and of offsets: every way to read a log returns the rows of a filter over all of its rows.

The logs are those of both corpora and of the log directory, copied, with the files' modification times as they are, in
1970 and tomorrow: Kafka answers lookups of times by them, and a filter of rows must not.
"""

from __future__ import annotations

import bisect
import json
import os
import random
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest

import kbat
import kbat.spark
from data import DATA
from expected import case_directories
from kbat.spark.options import parse_options
from kbat.spark.schema import schema_of
from kbat.spark.source import KbatReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

# A flipped bit fails the checksum, and Kafka refuses a wrapper in a wrapper.
UNREADABLE = {DATA / "corpus" / "crash-flip", DATA / "corpus-legacy" / "k0822-nested-wire"}
CASES = [case for case in case_directories() if case not in UNREADABLE]
# Smaller milliseconds are refused, because they look like seconds.
LEAST_TIME = 100_000_000_000
RANGE_COUNT = 10
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Range = tuple[int | None, int | None]


@dataclass(frozen=True)
class Log:
    """A partition directory, all its rows, and the ranges to read of it."""

    directory: Path
    rows: list[tuple[int, int | None]]
    times: list[Range]
    offsets: list[Range]

    def within_times(self, start: int | None, end: int | None) -> list[int]:
        """Return the offsets of the records in a range of times. One without a timestamp is in no range."""
        return [
            offset
            for offset, timestamp in self.rows
            if (start is None and end is None)
            or (timestamp is not None and (start is None or timestamp >= start) and (end is None or timestamp < end))
        ]

    def within_offsets(self, start: int | None, end: int | None) -> list[int]:
        """Return the offsets in a range."""
        return [
            offset for offset, _ in self.rows if (start is None or offset >= start) and (end is None or offset < end)
        ]


def open_log(directory: Path) -> Log:
    table = kbat.scan(directory, columns=["offset", "timestamp"]).to_pyarrow()
    timestamps: list[Any] = table.column("timestamp").cast(pa.int64()).to_pylist()
    offsets: list[Any] = table.column("offset").to_pylist()
    chance = random.Random(directory.name)  # noqa: S311 -- no secret
    known = sorted({timestamp for timestamp in timestamps if timestamp is not None}) or [1_700_000_000_000]
    partition = kbat.PartitionLog(directory)
    bounds = partition.start_offset, partition.end_offset
    times = [pair(chance, lambda: usable(chance.choice(known) + chance.choice([-1, 0, 0, 1]))) for _ in range(7)]
    times += [(usable(known[0]), usable(known[-1])), (usable(known[-1]), None), (None, usable(known[0] + 1))]
    offset_pairs = [pair(chance, lambda: chance.randint(*bounds)) for _ in range(8)]
    offset_pairs += [(bounds[0], None), (bounds[1], None)]
    if offsets != sorted(set(offsets)):
        offset_pairs = []  # requests of producers, one after another: each begins with offset 0, and no log does that
    return Log(directory, list(zip(offsets, timestamps, strict=True)), times, offset_pairs)


def usable(timestamp: int) -> int:
    return max(timestamp, LEAST_TIME)


def pair(chance: random.Random, pick: Callable[[], int]) -> Range:
    first, last = sorted([pick(), pick()])
    return chance.choice([(first, last), (first, last), (first, last), (first, None), (None, last)])


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Log]:
    """Every log, as a partition of a separate log directory."""
    root = tmp_path_factory.mktemp("logs")
    for case in CASES:
        name = str(case.relative_to(DATA)).replace("/", ".")
        ignored = shutil.ignore_patterns("*.jsonl", "*.jsonl.gz", "*.json", "*.txt.gz", "recovered")
        shutil.copytree(case, root / f"{name}-0", ignore=ignored)
    for directory in sorted((DATA / "log-dir").glob("*-0")):
        shutil.copytree(directory, root / directory.name)
    found = [open_log(directory) for directory in sorted(root.iterdir())]
    assert len(found) > 250
    assert sum(len(log.rows) for log in found) > 10_000
    assert sum(bool(log.offsets) for log in found) > 230
    return found


@pytest.fixture(scope="module", params=["as they are", "1970", "tomorrow"])
def dated(request: pytest.FixtureRequest, logs: list[Log]) -> list[Log]:
    """The logs, whose files have these modification times."""
    if request.param != "as they are":
        at = 0 if request.param == "1970" else time.time() + 86_400
        for log in logs:
            for path in log.directory.iterdir():
                os.utime(path, (at, at))
    return logs


def scanned(log: Log, **bounds: Any) -> list[int]:  # noqa: ANN401 -- those of kbat.scan
    found: list[Any] = kbat.scan(log.directory, columns=["offset"], **bounds).to_pyarrow().column("offset").to_pylist()
    return found


def test_scan_has_the_rows_in_each_range(dated: list[Log]) -> None:
    for log in dated:
        for start, end in log.times:
            found = scanned(log, start_timestamp=start, end_timestamp=end)
            assert found == log.within_times(start, end), (log.directory.name, start, end)
        for start, end in log.offsets:
            found = scanned(log, start_offset=start, end_offset=end)
            assert found == log.within_offsets(start, end), (log.directory.name, start, end)


def bounded(column: str, bounds: Iterable[int | datetime | None]) -> pl.Expr:
    start, end = bounds
    condition = pl.lit(value=True)
    if start is not None:
        condition &= pl.col(column) >= start
    if end is not None:
        condition &= pl.col(column) < end
    return condition


def test_polars_has_the_rows_in_each_range(logs: list[Log]) -> None:
    for log in logs:
        frame = kbat.scan_polars(log.directory, columns=["offset", "timestamp"])
        queries = [
            frame.filter(bounded("timestamp", (at if at is None else moment(at) for at in some))) for some in log.times
        ]
        queries += [frame.filter(bounded("offset", some)) for some in log.offsets]
        expected = [log.within_times(*some) for some in log.times] + [log.within_offsets(*some) for some in log.offsets]
        found = [table["offset"].to_list() for table in pl.collect_all([query.select("offset") for query in queries])]
        assert found == expected, log.directory.name


def moment(timestamp: int) -> datetime:
    return EPOCH + timedelta(milliseconds=timestamp)


def planned(path: Path, **given: object) -> list[int]:
    """Return the offsets that Spark's source reads, called as Spark calls it but without a JVM."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
    options = parse_options({"path": os.fspath(path), "columns": "offset"} | texts)
    reader = KbatReader(schema_of(options.column_names), options)
    found: list[Any] = [
        offset for task in reader.partitions() for batch in reader.read(task) for offset in batch.column(0).to_pylist()
    ]
    return found


def test_spark_source_has_the_rows_in_each_range(dated: list[Log]) -> None:
    for number, log in enumerate(dated):
        # split in different ways in each log
        cuts = [{}, {"maxPartitionBytes": 700}, {"maxRecordsPerPartition": 9}, {"minPartitions": 5}][number % 4]
        for some in log.times:
            given = time_options(some) | cuts
            assert planned(log.directory, **given) == log.within_times(*some), (log.directory.name, given)
        for some in log.offsets:
            given = offset_options({log.directory.name: some}) | cuts
            assert planned(log.directory, **given) == log.within_offsets(*some), (log.directory.name, given)


def test_spark_source_intersects_times_and_offsets(logs: list[Log]) -> None:
    for log in logs[::5]:
        for times, offsets in zip(log.times[:4], log.offsets[:4], strict=False):
            wanted = {*log.within_offsets(None, offsets[1])}
            given = time_options((times[0], None)) | offset_options({log.directory.name: (None, offsets[1])})
            expected = [offset for offset in log.within_times(times[0], None) if offset in wanted]
            assert planned(log.directory, **given) == expected, (log.directory.name, given)


def test_spark_by_timestamp_starts_and_ends_at_the_first_record_since_a_time(dated: list[Log]) -> None:
    for log in [log for log in dated if log.offsets][::3]:
        everything = scan_with_control(log.directory)
        for at in {at for some in log.times[:4] for at in some if at is not None}:
            first = next((offset for offset, timestamp in everything if (timestamp or -1) >= at), None)
            topic = log.directory.name.removesuffix("-0")
            by_time = {topic: {"0": at}}
            found = planned(
                log.directory, startingOffsetsByTimestamp=by_time, startingOffsetsByTimestampStrategy="latest"
            )
            assert found == ([] if first is None else log.within_offsets(first, None)), (topic, at)
            assert planned(log.directory, endingOffsetsByTimestamp=by_time) == log.within_offsets(None, first)
            if first is None:
                with pytest.raises(ValueError, match="has no record with the timestamp"):
                    planned(log.directory, startingOffsetsByTimestamp=by_time)


def scan_with_control(directory: Path) -> list[tuple[int, int | None]]:
    table = kbat.scan(directory, columns=["offset", "timestamp"], include_control=True).to_pyarrow()
    timestamps: list[Any] = table.column("timestamp").cast(pa.int64()).to_pylist()
    offsets: list[Any] = table.column("offset").to_pylist()
    return list(zip(offsets, timestamps, strict=True))


def time_options(some: Range) -> dict[str, object]:
    named = zip(("startingTimestamp", "endingTimestamp"), some, strict=True)
    return {name: at for name, at in named if at is not None}


def offset_options(ranges: dict[str, Range]) -> dict[str, object]:
    """Return the options of ranges by the names of partitions."""
    given: dict[str, object] = {}
    for place, (name, unset) in enumerate((("startingOffsets", -2), ("endingOffsets", -1))):
        found = {partition: some[place] for partition, some in ranges.items()}
        if any(offset is not None for offset in found.values()):
            given[name] = {
                partition.removesuffix("-0"): {"0": unset if offset is None else offset}
                for partition, offset in found.items()
            }
    return given


def by_log(frame: DataFrame) -> dict[str, list[int]]:
    """Return the offsets of a DataFrame by the names of partitions."""
    found: dict[str, list[int]] = {}
    for row in frame.select("topic", "partition", "offset").toArrow().to_pylist():
        found.setdefault(f"{row['topic']}-{row['partition']}", []).append(row["offset"])
    return found


def test_spark_itself_has_the_rows_in_each_range(spark: SparkSession, logs: list[Log]) -> None:
    root = os.fspath(logs[0].directory.parent)
    known = sorted(timestamp for log in logs for _, timestamp in log.rows if timestamp and timestamp > LEAST_TIME)
    at = [known[len(known) * tenth // 10] for tenth in range(10)]
    for number in range(RANGE_COUNT):
        end = None if number % 4 == 3 else bisect.bisect(known, at[number]) + len(known) // (3 + number)
        some = at[number], None if end is None else known[min(end, len(known) - 1)]
        expected = {log.directory.name: offsets for log in logs if (offsets := log.within_times(*some))}
        options = time_options(some) | {"columns": "topic,partition,offset"}
        assert by_log(loaded(spark, root, options, is_fast=number % 2 == 1)) == expected, some
    for number in range(RANGE_COUNT):
        ranges = {log.directory.name: log.offsets[number] if log.offsets else (None, None) for log in logs}
        expected = {
            log.directory.name: found for log in logs if (found := log.within_offsets(*ranges[log.directory.name]))
        }
        options = offset_options(ranges) | {"columns": "topic,partition,offset"}
        assert by_log(loaded(spark, root, options, is_fast=number % 2 == 0)) == expected, number


def loaded(spark: SparkSession, root: str, options: dict[str, Any], *, is_fast: bool) -> DataFrame:
    """Load by `kbat.spark.read` or by the data source."""
    if is_fast:
        return kbat.spark.read(spark, root, **options)
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in options.items()}
    return spark.read.format("kbat").options(**texts).load(root)
