"""Where a new streaming query starts: at records that come meanwhile, after open transactions, and if it runs again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from data import build
from growing_log import GrowingLog, time_of
from kbat.spark.options import parse_options
from kbat.spark.schema import schema_of
from kbat.spark.stream import KbatStreamReader
from test_spark_stream_reader import reader, rows

if TYPE_CHECKING:
    from pathlib import Path

PARTITION = "a-0"


def offsets(number: int) -> dict[str, dict[str, int]]:
    return {"a": {"0": number}}


def test_records_that_come_before_the_start_is_known_are_no_lost_data(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / PARTITION)
    log.append(10)
    source = reader(tmp_path, startingOffsets="latest")
    source.prepareForTriggerAvailableNow()
    log.append(1)
    start = source.initialOffset()
    assert start == offsets(11)
    log.append(1)
    assert source.latestOffset(start, source.getDefaultReadLimit()) == offsets(11)


@pytest.mark.parametrize("is_available_now", [False, True])
@pytest.mark.parametrize("loss", ["true", "false"])
def test_a_start_after_an_open_transaction_is_kept(tmp_path: Path, loss: str, *, is_available_now: bool) -> None:
    log = GrowingLog(tmp_path / PARTITION)
    log.append(2)
    log.append(2, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    log.append(6)
    options = {"isolationLevel": "read_committed", "failOnDataLoss": loss, "startingTimestamp": time_of(7)}
    source = reader(tmp_path, **options)
    if is_available_now:
        source.prepareForTriggerAvailableNow()
    start = source.initialOffset()
    assert start == offsets(7)
    assert source.latestOffset(start, source.getDefaultReadLimit()) == start
    log.end_transaction(1, commit=True)
    source = reader(tmp_path, **options)
    end = source.latestOffset(start, source.getDefaultReadLimit())
    assert end == offsets(11)
    assert rows(source, start, end) == {PARTITION: [7, 8, 9]}


def test_a_first_micro_batch_that_would_start_after_its_end_is_lost_data(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / PARTITION)
    log.append(20)
    log.append(5)
    source = reader(tmp_path)
    start = source.initialOffset()
    with pytest.raises(ValueError, match="a-0 starts at offset 25, and ends at 20: the log became"):
        source.partitions(start, offsets(20))
    with pytest.warns(UserWarning, match="starts at offset 25, and ends at 20"):
        assert reader(tmp_path, failOnDataLoss="false").partitions(start, offsets(20)) == []


def test_stream_ends_after_a_batch_whose_offset_no_segment_can_have(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(2)
    damaged = bytearray(build([(1, b"k", b"v")] * 2, base_offset=2))
    damaged[3] = 2
    log.append_bytes(bytes(damaged))
    options = parse_options({"path": str(tmp_path), "startingOffsets": "earliest", "onCorrupt": "report"})
    source = KbatStreamReader(schema_of(options.column_names, options.view), options)
    start = source.initialOffset()
    end = source.latestOffset(start, source.getDefaultReadLimit())
    assert end == offsets(4)
    found = [row for task in source.partitions(start, end) for part in source.read(task) for row in part.to_pylist()]
    assert [row["offset"] for row in found if not row["error"]] == [0, 1]
    [error] = [row["error"] for row in found if row["error"]]
    assert "an offset within 2^31 of the segment's" in error["message"]
    assert (error["first_offset"], error["last_offset"]) == (2, 3)
