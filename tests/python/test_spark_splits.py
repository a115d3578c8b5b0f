"""Splits of every size: planned and read as Spark does it, without Spark; no record is lost or read twice."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import kbat
from data import DATA, name_of
from expected import case_directories
from growing_log import GrowingLog, time_of
from kbat.spark.options import parse_options
from kbat.spark.plan import plan
from kbat.spark.rows import RowReader, null_headers
from kbat.spark.schema import schema_of

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ("offset", "timestamp", "key", "value", "headers", "position", "segment")
# Kafka refuses these too: a flipped bit, a wrapper in a wrapper.
DAMAGED = {DATA / "corpus" / "crash-flip", DATA / "corpus-legacy" / "k0822-nested-wire"}
CASES = [case for case in case_directories() if case not in DAMAGED]


def read(source: Path, **given: object) -> pa.Table:
    """Plan and read everything of a source."""
    names = {"columns": ",".join(COLUMNS), "includeControl": "true", "path": os.fspath(source)}
    options = parse_options(names | {name: str(value) for name, value in given.items()})
    reader = RowReader.of(options, schema_of(options.column_names, options.view))
    batches = [batch for task in plan(options) for batch in reader.read(task)]
    return pa.Table.from_batches(batches, scanned(source).schema).combine_chunks()


def scanned(source: Path) -> pa.Table:
    scan = kbat.scan(source, columns=list(COLUMNS), include_control=True, timestamp_unit="us", missing_timestamp=-1)
    return pa.Table.from_batches(
        map(null_headers, scan.to_pyarrow().to_batches()), scan.to_pyarrow().schema
    ).combine_chunks()


SMALL = (
    DATA / "corpus" / "tiny-batches" / "00000000000000000000.log",
    DATA / "corpus" / "compacted-txn-expired" / "00000000000000000445.log",
    DATA / "corpus-legacy" / "upgrade-chain-0102" / "00000000000000000000.log",
)


@pytest.mark.parametrize("log", SMALL, ids=name_of)
def test_splits_of_every_size_hold_every_record_once(log: Path) -> None:
    expected = scanned(log)
    assert expected.num_rows > 3
    seen = set()
    for size in range(1, log.stat().st_size + 1):
        parts = tuple(kbat.split(log, size))
        if parts not in seen:
            seen.add(parts)
            assert read(log, maxPartitionBytes=size) == expected
    assert len(seen) > 2


@pytest.mark.parametrize("size", [1, 1000, 50_000])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_splits_of_every_case_give_what_the_core_gives(case: Path, size: int) -> None:
    assert read(case, maxPartitionBytes=size) == scanned(case)


def test_splits_min_partitions_makes_about_as_many(log_dir: Path) -> None:
    directory = log_dir / "segments-default-interval-0"
    expected = scanned(directory)
    for count in (1, 2, 7, 30):
        options = parse_options({"path": os.fspath(directory), "minPartitions": str(count)})
        assert count <= len(plan(options)) <= 2 * count
        assert read(directory, minPartitions=count) == expected


def test_splits_cut_a_window_of_offsets_too(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(*[3] * 40)
    for size in (1, 300, 1000):
        given = {"startingTimestamp": time_of(10), "endingTimestamp": time_of(100), "maxPartitionBytes": size}
        assert read(tmp_path, **given).column("offset").to_pylist() == list(range(10, 100))
    assert len(plan(parse_options({"path": str(tmp_path), "maxPartitionBytes": "300"}))) > 10


@pytest.fixture
def transactions(tmp_path: Path) -> GrowingLog:
    """Two transactions of 1 and 2 over two segments, one of 2 aborted and one of 1 open."""
    log = GrowingLog(tmp_path / "a-0")
    log.append(2, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)  # 0, 1
    log.append(2, producer_id=2, producer_epoch=0, base_sequence=0, transactional=True)  # 2, 3 aborted
    log.append(1)  # 4
    log.end_transaction(1, commit=True)  # 5
    log.roll()
    log.append(2, producer_id=2, producer_epoch=0, base_sequence=2, transactional=True)  # 6, 7 aborted
    log.end_transaction(2, commit=False)  # 8
    log.append(1, producer_id=2, producer_epoch=0, base_sequence=4, transactional=True)  # 9
    log.end_transaction(2, commit=True)  # 10
    log.append(1, producer_id=1, producer_epoch=0, base_sequence=2, transactional=True)  # 11 open
    log.append(2)  # 12, 13: stable only when 11 is
    return log


@pytest.mark.parametrize("size", [1, 100, 300, 1 << 20])
def test_read_committed_is_right_across_splits(transactions: GrowingLog, size: int) -> None:
    given = {"maxPartitionBytes": size, "includeControl": "false"}
    found = read(transactions.directory, isolationLevel="read_committed", **given)
    assert found.column("offset").to_pylist() == [0, 1, 4, 9]
    found = read(transactions.directory, **{"kafka.isolation.level": "read_uncommitted"}, **given)
    assert found.column("offset").to_pylist() == [0, 1, 2, 3, 4, 6, 7, 9, 11, 12, 13]


def test_read_committed_latest_is_the_last_stable_offset(transactions: GrowingLog) -> None:
    given = {"isolationLevel": "read_committed", "includeControl": "false", "maxRecordsPerPartition": 2}
    bounds = {"startingOffsets": '{"a": {"0": 1}}', "endingOffsets": '{"a": {"0": 13}}'}
    found = read(transactions.directory, **given, **bounds)
    assert found.column("offset").to_pylist() == [1, 4, 9]
    transactions.end_transaction(1, commit=False)
    found = read(transactions.directory, **given)
    assert found.column("offset").to_pylist() == [0, 1, 4, 9, 12, 13]
