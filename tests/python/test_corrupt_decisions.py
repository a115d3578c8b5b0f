"""`read_committed` where corruption decides which records are visible: `fail` raises, and `report` names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import kbat
from data import with_right_crc
from growing_log import GrowingLog
from kbat.spark.options import parse_options
from kbat.spark.schema import schema_of
from kbat.spark.source import KbatReader
from test_corrupt_transactions import integers, seen, transaction
from test_spark_stream_reader import reader, rows

if TYPE_CHECKING:
    from pathlib import Path

# Positions in a batch.
MAGIC, CRC, LAST_OFFSET_DELTA, TIMESTAMP, PRODUCER_ID, PAYLOAD = 16, 19, 23, 35, 43, 66


def flip(segment: Path, position: int, bit: int = 0) -> None:
    content = bytearray(segment.read_bytes())
    content[position] ^= 1 << bit
    segment.write_bytes(content)


def reported(path: Path) -> list[tuple[int, int | None]]:
    """Return position and first offset of what a scan and a read in Spark report, which is the same."""
    table = kbat.scan(path, on_corrupt="report", isolation="read_committed").to_pyarrow()
    options = parse_options({"path": str(path), "onCorrupt": "report", "isolationLevel": "read_committed"})
    source = KbatReader(schema_of(options.column_names, options.view), options)
    tables = [batch for task in source.partitions() for batch in source.read(task)]
    found = [
        [row["error"] for table in every for row in table.to_pylist() if row["error"]] for every in ([table], tables)
    ]
    assert found[0] == found[1]
    offsets = [[row["offset"] for table in every for row in table.to_pylist()] for every in ([table], tables)]
    assert offsets[0] == offsets[1]
    return [(error["position"], error["first_offset"]) for error in found[0]]


def in_spark(path: Path, **settings: str) -> list[int]:
    options = parse_options({"path": str(path), "isolationLevel": "read_committed"} | settings)
    source = KbatReader(schema_of(["offset"]), options)
    return [value for task in source.partitions() for batch in source.read(task) for value in integers(batch.column(0))]


@pytest.mark.parametrize("is_alone", [False, True])
@pytest.mark.parametrize("byte", [MAGIC, CRC, LAST_OFFSET_DELTA + 3, TIMESTAMP, PRODUCER_ID, PAYLOAD])
def test_a_corrupt_last_batch_is_an_error(byte: int, tmp_path: Path, *, is_alone: bool) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(3, 3)
    if is_alone:
        log.roll()
    position = log.segment.stat().st_size
    log.append(3)
    flip(log.segment, position + byte)
    for read in (seen, in_spark):
        with pytest.raises((kbat.KbatError, ValueError), match=r"\.log"):
            read(log.directory)
    if byte != MAGIC or is_alone:
        assert seen(log.directory, end_offset=6) == [*range(6)]
    assert seen(log.directory, on_corrupt="skip") == [*range(6)]
    assert reported(log.directory) == [(position, 6)]


def test_a_corrupt_marker_that_hides_records_is_an_error(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(3)
    transaction(log, 3, 1)
    position = log.segment.stat().st_size
    log.end_transaction(1, commit=True)
    log.append(3)
    flip(log.segment, position + PAYLOAD)
    with pytest.raises(kbat.CrcError, match="base offset 6"):
        seen(log.directory)
    with pytest.raises(kbat.CrcError, match="base offset 6"):
        seen(log.directory, start_offset=4, end_offset=5)
    with pytest.raises(kbat.CrcError, match="base offset 6"):
        in_spark(log.directory)
    source = reader(tmp_path, isolationLevel="read_committed", startingOffsets="earliest")
    start = source.initialOffset()
    with pytest.raises(ValueError, match="base offset 6"):
        source.latestOffset(start, source.getDefaultReadLimit())
    assert seen(log.directory, end_offset=3) == [0, 1, 2]
    assert seen(log.directory, on_corrupt="skip") == [0, 1, 2]
    assert reported(log.directory) == [(position, 6)]


def test_corruption_before_the_range_is_no_error_if_no_transaction_was_open(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    transaction(log, 2, 1)
    log.end_transaction(1, commit=True)
    position = log.segment.stat().st_size
    log.append(3)
    log.append(3)
    log.roll()
    log.append(3)
    flip(next(iter(sorted(log.directory.glob("*.log")))), position + PAYLOAD)
    assert seen(log.directory, start_offset=6) == [*range(6, 12)]
    with pytest.raises(kbat.CrcError):
        seen(log.directory)


def test_a_control_batch_without_records_ends_no_doubt(tmp_path: Path) -> None:
    """Compaction leaves such batches; the producer id of a data batch became that of another one."""
    log = GrowingLog(tmp_path / "a-0")
    log.append(3)
    transaction(log, 2, 3)
    position = log.segment.stat().st_size
    transaction(log, 2, 3)
    size = log.segment.stat().st_size
    log.end_transaction(2, commit=True)
    marker = bytearray(log.segment.read_bytes()[size:])
    empty = marker[:57] + bytes(4)  # without its record
    empty[8:12] = (len(empty) - 12).to_bytes(4, "big")
    log.segment.write_bytes(log.segment.read_bytes()[:size] + with_right_crc(bytes(empty)))
    log.end_transaction(3, commit=True)
    log.append(2)
    content = bytearray(log.segment.read_bytes())
    content[position + PRODUCER_ID + 7] ^= 1  # 3 becomes 2
    log.segment.write_bytes(content)
    assert seen(log.directory, on_corrupt="skip") == [0, 1, 2, 3, 4, 9, 10]
    with pytest.raises(kbat.CrcError):
        seen(log.directory)


@pytest.mark.parametrize("byte", [PRODUCER_ID + 7, LAST_OFFSET_DELTA + 3])
def test_a_damaged_header_does_not_hide_records_as_aborted(byte: int, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(2)
    transaction(log, 1, 2)
    position = log.segment.stat().st_size
    transaction(log, 2, 3)
    log.end_transaction(2, commit=False)
    log.end_transaction(3, commit=True)
    log.append(2)
    flip(log.segment, position + byte)
    with pytest.raises(kbat.CrcError, match="base offset 3"):
        seen(log.directory)
    assert seen(log.directory, on_corrupt="skip") == [0, 1, 7, 8]


def test_a_damaged_abort_marker_after_the_last_stable_offset_is_an_error(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    transaction(log, 1, 1)
    transaction(log, 1, 2)
    position = log.segment.stat().st_size
    log.end_transaction(1, commit=False)
    transaction(log, 1, 1)
    log.end_transaction(1, commit=True)
    assert seen(log.directory) == []
    flip(log.segment, position + PAYLOAD)
    with pytest.raises(kbat.CrcError, match="base offset 2"):
        seen(log.directory)
    assert (position, 2) in reported(log.directory)


@pytest.mark.parametrize("ends", ["abort", None])
def test_an_offset_that_is_too_high_moves_no_transaction(ends: str | None, tmp_path: Path) -> None:
    """No checksum covers offsets."""
    log = GrowingLog(tmp_path / "a-0")
    log.append(2)
    position = log.segment.stat().st_size
    transaction(log, 2, 1)
    transaction(log, 2, 1)
    if ends:
        log.end_transaction(1, commit=False)
    after = log.append(2)
    before = kbat.PartitionLog(log.directory).last_stable_offset
    flip(log.segment, position + 5)
    expected = [0, 1, *after] if ends else [0, 1]
    assert seen(log.directory, on_corrupt="skip") == expected
    assert kbat.PartitionLog(log.directory).last_stable_offset == before
    with pytest.raises(kbat.CorruptError, match="expected an offset below that of the next batch"):
        seen(log.directory)
    kbat.rebuild_indexes(log.directory)


def test_an_offset_that_is_too_low_hides_nothing(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(16)
    position = log.segment.stat().st_size
    log.append(2)
    flip(log.segment, position + 7, bit=4)
    assert seen(log.directory)[:16] == [*range(16)]
    assert kbat.PartitionLog(log.directory).last_stable_offset == 16


def test_an_offset_that_is_too_high_at_the_end_of_a_segment_does_not_end_the_search(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(2)
    position = log.segment.stat().st_size
    log.append(2)
    first = log.segment
    log.roll()
    transaction(log, 2, 1)
    log.end_transaction(1, commit=False)
    log.append(2)
    flip(first, position + 5)
    assert not {4, 5} & {*seen(log.directory, end_offset=9, on_corrupt="skip")}


def two_transactions(tmp_path: Path, *, first_commits: bool) -> tuple[GrowingLog, int]:
    """Return a log, and the position of the first batch of its second, aborted transaction.

    The offset of this batch is 7 instead of 23, so it seems to be in the first transaction, which has 2 to 21.
    """
    log = GrowingLog(tmp_path / "a-0")
    log.append(2)
    transaction(log, 20, 1)
    log.end_transaction(1, commit=first_commits)
    position = log.segment.stat().st_size
    transaction(log, 2, 1)
    transaction(log, 2, 1)
    log.end_transaction(1, commit=False)
    log.append(2)
    flip(log.segment, position + 7, bit=4)
    return log, position


def test_a_transaction_inside_an_earlier_one_hides_neither(tmp_path: Path) -> None:
    """The offset of the second transaction of a producer is too low, so it seems to be in the first one."""
    log, _ = two_transactions(tmp_path, first_commits=False)
    assert not {*range(2, 22), 25, 26} & {*seen(log.directory, on_corrupt="skip")}


def test_a_micro_batch_over_a_corrupt_marker_has_the_same_rows_after_the_producer_has_gone_on(tmp_path: Path) -> None:
    """The snapshot of the next segment knows that the transaction has ended."""
    log = GrowingLog(tmp_path / "a-0")
    log.append(2)
    transaction(log, 3, 1)
    position = log.segment.stat().st_size
    first = log.segment
    log.end_transaction(1, commit=True)
    log.roll()
    log.append(2)
    kbat.rebuild_indexes(log.directory)
    flip(first, position + PAYLOAD)
    settings = {"isolationLevel": "read_committed", "onCorrupt": "skip", "startingOffsets": "earliest"}
    source = reader(tmp_path, **settings)
    start = source.initialOffset()
    end = source.latestOffset(start, source.getDefaultReadLimit())
    found = rows(source, start, end)
    assert found == {"a-0": [0, 1, 2, 3, 4, 6, 7]}
    transaction(log, 2, 1)
    log.end_transaction(1, commit=False)
    assert rows(reader(tmp_path, **settings), start, end) == found


def test_tasks_without_snapshots_have_the_transactions_of_the_plan(tmp_path: Path) -> None:
    """Otherwise each of them would read the log from its start."""
    log = GrowingLog(tmp_path / "a-0")
    expected = []
    for number in range(12):
        offsets = transaction(log, 5, 1)
        log.end_transaction(1, commit=number % 3 > 0)
        expected += offsets if number % 3 else []
        log.roll()
    log.append(1)
    options = parse_options({"path": str(tmp_path), "isolationLevel": "read_committed", "maxPartitionBytes": "1"})
    source = KbatReader(schema_of(["offset"]), options)
    tasks = source.partitions()
    assert len(tasks) > 10
    for segment in log.directory.glob("*.log"):
        if segment != log.segment and segment.stem != f"{6:020}":
            segment.rename(tmp_path / segment.name)
    found = []
    for task in tasks:
        try:
            found += [value for batch in source.read(task) for value in integers(batch.column(0))]
        except ValueError as error:
            assert "was deleted after the read was planned" in str(error)  # noqa: PT017
    assert found == [*range(6, 11), log.end_offset - 1]


ATTRIBUTES, IS_CONTROL = 21, 5


@pytest.mark.parametrize(("byte", "bit"), [(ATTRIBUTES + 1, IS_CONTROL), (8, 4)], ids=["attributes", "length"])
def test_a_marker_that_looks_like_data_or_leads_past_the_end_is_an_error(byte: int, bit: int, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    transaction(log, 3, 1)
    position, first = log.segment.stat().st_size, log.segment
    log.end_transaction(1, commit=True)
    log.roll()
    log.append(3)
    assert seen(log.directory) == [0, 1, 2, 4, 5, 6]
    flip(first, position + byte, bit)
    for read in (seen, in_spark):
        with pytest.raises((kbat.KbatError, ValueError), match="base offset 3"):
            read(log.directory)
    assert seen(log.directory, on_corrupt="skip") == []
    assert (position, 3) in reported(log.directory)


def test_any_flipped_bit_of_a_marker_is_an_error_or_changes_nothing(tmp_path: Path) -> None:
    """A marker without a producer would end no transaction, so that the log would seem to end before it."""
    log = GrowingLog(tmp_path / "a-0")
    log.append(3)
    transaction(log, 3, 1)
    position = log.segment.stat().st_size
    log.end_transaction(1, commit=True)
    size = log.segment.stat().st_size
    log.append(3)
    intact = log.segment.read_bytes()
    expected = [0, 1, 2, 3, 4, 5, 7, 8, 9]
    wrong = []
    for bit in range(8 * position, 8 * size):
        flip(log.segment, bit // 8, bit % 8)
        try:
            found = seen(log.directory)
        except (kbat.KbatError, ValueError):
            found = expected
        if found != expected:
            wrong.append((bit // 8 - position, bit % 8, found))
        log.segment.write_bytes(intact)
    assert wrong == []


def test_a_marker_whose_offset_is_too_low_is_an_error(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(2)
    transaction(log, 20, 1)
    position = log.segment.stat().st_size
    log.end_transaction(1, commit=False)
    log.append(2)
    flip(log.segment, position + 7, bit=4)  # 22 becomes 6
    for read in (seen, in_spark):
        with pytest.raises((kbat.CorruptError, ValueError), match="an offset above those of the batches before"):
            read(log.directory)
    assert seen(log.directory, on_corrupt="skip") == [0, 1]
    assert (position, 22) in reported(log.directory)


def test_a_first_batch_whose_offset_is_too_low_hides_no_earlier_transaction(tmp_path: Path) -> None:
    log, position = two_transactions(tmp_path, first_commits=True)
    for read in (seen, in_spark):
        with pytest.raises((kbat.CorruptError, ValueError), match="an offset above those of the batches before"):
            read(log.directory)
    assert seen(log.directory, on_corrupt="skip") == [*range(22), 28, 29]
    assert reported(log.directory) == [(position, 23)]


def test_an_abort_marker_whose_offset_is_too_high_hides_no_later_transaction(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(2)
    transaction(log, 20, 1)
    position = log.segment.stat().st_size
    log.end_transaction(1, commit=False)
    later = transaction(log, 8, 1)
    log.end_transaction(1, commit=True)
    flip(log.segment, position + 2)
    with pytest.raises(kbat.CorruptError, match="expected an offset below that of the next batch"):
        seen(log.directory)
    assert seen(log.directory, on_corrupt="skip") == [0, 1, *later]
    assert seen(log.directory, start_offset=23, on_corrupt="skip") == [*later]


def test_a_last_batch_whose_offset_is_too_high_begins_no_transaction_after_its_segment(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(2)
    position, first = log.segment.stat().st_size, log.segment
    transaction(log, 2, 1)
    log.roll()
    transaction(log, 2, 1)
    log.end_transaction(1, commit=False)
    after = log.append(2)
    flip(first, position + 2)
    for read in (seen, in_spark):
        with pytest.raises((kbat.CorruptError, ValueError), match="an offset below that of the next segment"):
            read(log.directory)
    assert seen(log.directory, on_corrupt="skip") == [0, 1, *after]
    assert reported(log.directory) == [(position, 2)]


@pytest.mark.parametrize("on_corrupt", ["fail", "skip"])
def test_without_checksums_a_wrong_one_hides_no_records(on_corrupt: str, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(3)
    log.append(3)
    position = log.segment.stat().st_size
    log.append(3)
    flip(log.segment, position + CRC)
    settings = {"on_corrupt": on_corrupt, "check_crc": False}
    assert seen(log.directory, **settings) == [*range(9)]
    assert in_spark(log.directory, checkCrc="false", onCorrupt=on_corrupt) == [*range(9)]


@pytest.mark.parametrize("threads", [1, 2])
def test_corruption_that_decides_is_an_error_before_the_first_row(threads: int, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    for _ in range(4):
        log.append(3)
        log.roll()
    position = log.segment.stat().st_size
    log.append(3)
    flip(log.segment, position + PAYLOAD)
    scan = kbat.scan(tmp_path, isolation="read_committed", columns=["offset"])
    with pytest.raises(kbat.CrcError, match="base offset 12"):
        next(iter(scan.to_batches(threads=threads)))
