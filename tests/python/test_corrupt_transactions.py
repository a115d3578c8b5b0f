"""`read_committed` over damaged batches: the rows are those of a log without these batches."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from growing_log import GrowingLog
from kbat.spark.options import parse_options
from kbat.spark.schema import schema_of
from kbat.spark.stream import KbatStreamReader

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

# The bytes of a batch that no checksum covers and no length depends on: its offset, and its leader epoch.
UNCHECKED = {*range(8), *range(12, 16)}


@dataclass
class Written:
    """A batch, and where it is."""

    segment: Path
    position: int
    size: int
    offsets: list[int]
    producer: int | None = None
    commits: bool | None = None


def transaction(log: GrowingLog, count: int, producer: int) -> list[int]:
    return log.append(count, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)


def random_log(log: GrowingLog, choice: random.Random) -> list[Written]:
    """Write batches, transactions of three producers, and markers to one to three segments."""
    written = []
    for _ in range(choice.randint(6, 16)):
        if choice.random() < 0.1 and log.segment.stat().st_size:
            log.roll()
        producer, commits = choice.choice([None, None, 1, 2, 3]), None
        position, first = log.segment.stat().st_size, log.end_offset
        if producer is None:
            log.append(choice.choice([1, 3, 40]))
        elif choice.random() < 0.5:
            transaction(log, choice.choice([1, 3, 40]), producer)
        else:
            commits = choice.random() < 0.5
            log.end_transaction(producer, commit=commits)
        size = log.segment.stat().st_size - position
        written.append(Written(log.segment, position, size, [*range(first, log.end_offset)], producer, commits))
    return written


def committed(batches: list[Written]) -> list[int]:
    """Return the offsets that a consumer may see, from the rules of Kafka's protocol."""
    began: dict[int, int] = {}
    hidden: set[int] = set()
    for batch in batches:
        if batch.producer is None:
            continue
        if batch.commits is None:
            began.setdefault(batch.producer, batch.offsets[0])
            continue
        first = began.pop(batch.producer, None)
        if first is not None and not batch.commits:
            of_producer = [other for other in batches if other.producer == batch.producer and other.commits is None]
            hidden.update(at for other in of_producer for at in other.offsets if first <= at < batch.offsets[0])
    stable = min(began.values(), default=10**9)
    visible = [at for batch in batches if batch.commits is None for at in batch.offsets]
    return [at for at in visible if at not in hidden and at < stable]


def seen(source: Path, **settings: Any) -> list[int]:  # noqa: ANN401 -- those of kbat.scan
    table = kbat.scan(source, columns=["offset"], isolation="read_committed", **settings).to_pyarrow()
    return integers(table.column("offset"))


def integers(column: pa.ChunkedArray[Any] | pa.Array[Any]) -> list[int]:
    return [value for value in column.to_pylist() if value is not None]


@pytest.mark.parametrize("seed", range(8))
def test_a_flipped_bit_hides_and_reveals_only_its_batch(seed: int, tmp_path: Path) -> None:
    choice = random.Random(seed)  # noqa: S311 -- reproducible test data
    for number in range(40):
        log = GrowingLog(tmp_path / f"log{number}-0")
        batches = random_log(log, choice)
        assert seen(log.directory) == committed(batches)
        damaged = choice.choice(batches)
        # lengths lead away from the other batches, so that they are damaged more often
        byte = choice.choice([*range(8, 12), choice.choice([*set(range(damaged.size)) - UNCHECKED])])
        bit = choice.randrange(8)
        content = bytearray(damaged.segment.read_bytes())
        content[damaged.position + byte] ^= 1 << bit
        damaged.segment.write_bytes(content)
        expected = committed([batch for batch in batches if batch is not damaged])
        case = f"case {number}: bit {bit} of byte {byte} of the batch with the offsets {damaged.offsets}"
        assert seen(log.directory, on_corrupt="skip") == expected, case
        table = kbat.scan(log.directory, on_corrupt="report", isolation="read_committed").to_pyarrow()
        rows = zip(table.column("offset").to_pylist(), table.column("error").to_pylist(), strict=True)
        assert [offset for offset, error in rows if error is None] == expected, case
        start = choice.randrange(log.end_offset)
        later = [offset for offset in expected if offset >= start]
        assert seen(log.directory, on_corrupt="skip", start_offset=start) == later, f"{case} from {start}"


@pytest.mark.parametrize("byte", [8, 9, 10, 11])
def test_a_corrupt_length_that_leads_into_a_later_batch_leaves_transactions_as_they_are(
    byte: int, tmp_path: Path
) -> None:
    """Only the headers are read until lengths and offsets disagree: each bit, for batches of several sizes."""
    for count in (1, 2, 40):
        for bit in range(8):
            log = GrowingLog(tmp_path / f"c{count}b{bit}-0")
            log.append(count)
            transaction(log, 5, 1)
            log.end_transaction(1, commit=False)
            after = log.append(3)
            content = bytearray(log.segment.read_bytes())
            content[byte] ^= 1 << bit
            log.segment.write_bytes(content)
            assert seen(log.directory, on_corrupt="skip") == after, (count, bit)
            partition = kbat.PartitionLog(log.directory)
            assert partition.last_stable_offset == log.end_offset, (count, bit)


def test_a_length_that_leads_exactly_to_a_later_batch_hides_no_transaction(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(1)
    transaction(log, 2, 1)
    position = log.segment.stat().st_size
    log.end_transaction(1, commit=False)
    log.append(2)
    content = bytearray(log.segment.read_bytes())
    content[8:12] = (position - 12).to_bytes(4, "big")
    log.segment.write_bytes(content)
    assert seen(log.directory, on_corrupt="skip") == [4, 5]


def test_a_producer_that_never_existed_does_not_hide_the_rest_of_the_log(tmp_path: Path) -> None:
    """A damaged producer id would begin a transaction that nobody ends."""
    log = GrowingLog(tmp_path / "a-0")
    log.append(2)
    transaction(log, 3, 1)
    position = log.segment.stat().st_size
    transaction(log, 3, 1)
    log.end_transaction(1, commit=True)
    log.append(2)
    content = bytearray(log.segment.read_bytes())
    content[position + 43] ^= 4  # the highest byte but one of the producer id
    log.segment.write_bytes(content)
    assert seen(log.directory, on_corrupt="skip") == [0, 1, 2, 3, 4, 9, 10]
    assert kbat.PartitionLog(log.directory).last_stable_offset == 11


def test_a_micro_batch_has_the_same_rows_after_the_log_has_grown_past_a_corrupt_length(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    transaction(log, 5, 1)
    position = log.segment.stat().st_size
    log.append(10)
    log.end_transaction(1, commit=True)
    log.append(3)
    content = bytearray(log.segment.read_bytes())
    content[position + 10] ^= 16  # past the end of the file
    log.segment.write_bytes(content)
    options = parse_options(
        {"path": str(tmp_path), "onCorrupt": "skip", "isolationLevel": "read_committed", "startingOffsets": "earliest"}
    )

    def stream() -> KbatStreamReader:
        return KbatStreamReader(schema_of(["offset"]), options)

    def rows(start: dict[str, Any], end: dict[str, Any]) -> list[int]:
        reader = stream()
        tables = [table for task in reader.partitions(start, end) for table in reader.read(task)]
        return [offset for table in tables for offset in integers(table.column("offset"))]

    reader = stream()
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert rows(start, end) == [0, 1, 2, 3, 4, 16, 17, 18]
    log.append(*[50] * 8)
    assert rows(start, end) == [0, 1, 2, 3, 4, 16, 17, 18]
    later = stream().latestOffset(end, reader.getDefaultReadLimit())
    assert rows(end, later) == [*range(19, 419)]


def test_a_stream_that_waits_for_a_lost_marker_says_so_once(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    log = GrowingLog(tmp_path / "a-0")
    transaction(log, 5, 1)
    position = log.segment.stat().st_size
    log.end_transaction(1, commit=True)
    log.append(3)
    content = bytearray(log.segment.read_bytes())
    content[position + 70] ^= 1
    log.segment.write_bytes(content)
    given = {"path": str(tmp_path), "isolationLevel": "read_committed", "startingOffsets": "earliest"}
    stream = KbatStreamReader(schema_of(["offset"]), parse_options(given | {"onCorrupt": "skip"}))
    assert stream.latestOffset() == {"a": {"0": 0}}
    log.append(2)
    assert stream.latestOffset() == {"a": {"0": 0}}
    (message,) = [str(warning.message) for warning in recwarn]
    assert message == (
        "kbat: this query reads a-0 up to offset 0, where a transaction begins whose end may be in the corrupt bytes "
        "at offset 5; it continues when the producer ends another transaction; isolationLevel=read_uncommitted reads "
        "all records"
    )
    with pytest.raises(ValueError, match="option onCorrupt=skip omits the batch, onCorrupt=report adds a row"):
        KbatStreamReader(schema_of(["offset"]), parse_options(given)).latestOffset()
    transaction(log, 2, 1)
    log.end_transaction(1, commit=True)
    assert stream.latestOffset() == {"a": {"0": log.end_offset}}


def test_a_stream_that_waits_for_an_open_transaction_does_not_warn(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(5)
    position = log.segment.stat().st_size
    log.append(5)
    transaction(log, 5, 1)
    content = bytearray(log.segment.read_bytes())
    content[position + 70] ^= 1
    log.segment.write_bytes(content)
    given = {"path": str(tmp_path), "isolationLevel": "read_committed", "onCorrupt": "skip"}
    assert KbatStreamReader(schema_of(["offset"]), parse_options(given)).latestOffset() == {"a": {"0": 10}}
    assert not recwarn.list


@pytest.mark.parametrize("indexed", [False, True])
def test_a_part_after_a_batch_with_a_damaged_last_offset_has_its_transactions(tmp_path: Path, *, indexed: bool) -> None:
    batches = []
    for base in range(0, 100, 5):
        builder = kbat.BatchBuilder(
            base_offset=base, producer_id=7, producer_epoch=0, base_sequence=base, transactional=True
        )
        for _ in range(5):
            builder.append(b"k", bytes(50), timestamp=0)
        batches.append(builder.finish())
    marker = kbat.end_transaction_marker(producer_id=7, producer_epoch=0, commit=True, timestamp=0, base_offset=100)
    log = tmp_path / "a-0" / f"{0:020}.log"
    log.parent.mkdir()
    content = bytearray(b"".join((*batches, marker)))
    log.write_bytes(content)
    if indexed:
        kbat.rebuild_indexes(log.parent, index_interval_bytes=1)
    content[len(b"".join(batches[:3])) + 24] ^= 1  # of the last offset: 65,536 too high
    log.write_bytes(content)
    point = len(b"".join(batches[:4]))
    parts = [(str(log), 0, point), (str(log), point, len(content))]
    expected = [offset for offset in range(100) if offset not in range(15, 20)]
    for isolation in ("read_uncommitted", "read_committed"):
        scan = kbat.scan(parts, columns=["offset"], on_corrupt="skip", isolation=isolation)
        assert scan.to_pyarrow()["offset"].to_pylist() == expected
        assert scan.stats is not None
        assert scan.stats.batches_skipped == 1
