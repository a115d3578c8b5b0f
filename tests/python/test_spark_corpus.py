"""Every segment of both corpora through Spark, against Kafka's own answers and against `kbat.scan`.

All are read by one Spark job, so that the suite stays quick.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import kbat
from data import DATA
from expected import Row, case_directories, read_expected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A flipped bit fails the checksum, and a wrapper in a wrapper is refused by Kafka too: test_spark.py reads these.
DAMAGED = {DATA / "corpus" / "crash-flip", DATA / "corpus-legacy" / "k0822-nested-wire"}
CASES = [case for case in case_directories() if case not in DAMAGED]
COLUMNS = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "headers",
    "position",
    "segment",
)


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> pa.Table:
    """All records of all cases."""
    reader = spark.read.format("kbat").option("columns", ",".join(COLUMNS)).option("includeControl", value=True)
    return reader.load([os.fspath(case) for case in CASES]).toArrow()


@pytest.fixture(scope="module")
def rows(table: pa.Table) -> dict[str, list[tuple[int, Row]]]:
    """Position of the batch and the record, by segment file."""
    found = defaultdict(list)
    place = table.column_names.index("timestamp")
    in_micros = table.set_column(place, "timestamp", table.column("timestamp").cast(pa.int64()))
    for record in in_micros.to_pylist():
        headers = tuple((header["key"], header["value"]) for header in record["headers"] or ())
        row = Row(**{name: record[name] for name in Row._fields} | {"headers": headers})
        found[record["segment"]].append((record["position"], row))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: os.fspath(case.relative_to(DATA)))
def test_corpus_case_gives_the_records_that_kafka_reads(case: Path, rows: dict[str, list[tuple[int, Row]]]) -> None:
    logs = sorted(case.glob("*.log"))
    assert logs
    for log in logs:
        expected = read_expected(log)
        found = [row for position, row in rows.get(os.fspath(log), []) if position not in expected.unreadable]
        assert found == expected.rows


def test_corpus_is_the_same_as_scanned_without_spark(table: pa.Table) -> None:
    paths = [segment.path for case in CASES for segment in kbat.find_segments(case)]
    scan = kbat.scan(paths, columns=COLUMNS, include_control=True, timestamp_unit="us", missing_timestamp=-1)
    place = table.column_names.index("headers")
    lists = [headers or [] for headers in table.column(place).to_pylist()]  # Spark has null without headers
    field = scan.to_pyarrow().schema.field("headers")
    assert (
        table.set_column(place, field, pa.array(lists, field.type)).combine_chunks()
        == scan.to_pyarrow().combine_chunks()
    )


def test_corpus_topic_and_partition_are_those_of_the_directory(table: pa.Table) -> None:
    named = table.group_by(["segment", "topic", "partition"]).aggregate([])
    for place in named.to_pylist():
        directory = re.fullmatch(r"(.+)-(\d+)", Path(place["segment"]).parent.name)
        topic, partition = (directory[1], int(directory[2])) if directory else (None, None)
        assert (place["topic"], place["partition"]) == (topic, partition)
