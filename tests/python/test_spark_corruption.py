"""Random corruption: Spark's tasks together return the rows and errors of one scan, without Spark.

The base offset of a batch is outside its checksum, so a flipped bit there moves its records far forward or back, and
nothing in the batch shows it.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from growing_log import GrowingLog, time_of
from kbat.spark.options import parse_options
from kbat.spark.plan import plan
from kbat.spark.rows import RowReader
from kbat.spark.schema import schema_of
from kbat.spark.stream import KbatStreamReader

if TYPE_CHECKING:
    from pathlib import Path

Found = tuple[list[tuple[int, bytes]], list[tuple[str, int]]]

# Byte ranges of a batch: the base offset, the length, the leader epoch, the checksum, the header, and the records.
PARTS = {
    "offset": (0, 8),
    "length": (8, 12),
    "epoch": (12, 16),
    "crc": (17, 21),
    "header": (21, 61),
    "records": (61, None),
}


def read(path: Path, **given: object) -> list[Found]:
    """Return for each task its records and its errors."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
    options = parse_options({"path": str(path), "columns": "value,offset,segment"} | texts)
    options.check_batch()
    reader = RowReader.of(options, schema_of(options.column_names))
    return [found([row for batch in reader.read(task) for row in batch.to_pylist()]) for task in plan(options)]


def scanned(path: Path, on_corrupt: Any) -> Found:  # noqa: ANN401 -- one of the words of kbat.scan
    scan = kbat.scan(path, columns=["value", "offset", "segment"], on_corrupt=on_corrupt)
    return found(scan.to_pyarrow().to_pylist())


def found(rows: list[dict[str, Any]]) -> Found:
    records = [(row["offset"], row["value"]) for row in rows if row.get("error") is None]
    return records, [(row["error"]["path"], row["error"]["position"]) for row in rows if row.get("error") is not None]


def joined(tasks: list[Found]) -> Found:
    return [record for records, _ in tasks for record in records], [fault for _, faults in tasks for fault in faults]


def corrupt(segment: Path, chance: random.Random, count: int, parts: list[str]) -> None:
    """Flip a bit in each of several batches that are close to each other, or remove some bytes."""
    batches = list(kbat.read_batches(segment, check_crc=False))
    content = bytearray(segment.read_bytes())
    first = chance.randrange(len(batches))
    damaged = chance.sample(batches[first : first + count + 2], min(count, len(batches) - first))
    for batch in sorted(damaged, key=lambda batch: -batch.position):
        part = chance.choice(parts)
        start, end = PARTS.get(part, (12, None))  # bytes that are missing are after the length
        place = batch.position + chance.randrange(start, batch.size if end is None else end)
        if part == "missing":
            del content[place : min(place + chance.randint(1, 12), batch.position + batch.size)]
        else:
            content[place] ^= 1 << chance.randrange(8)
    segment.write_bytes(content)


def make_log(path: Path, chance: random.Random) -> GrowingLog:
    """Write a log as brokers do, with leader epochs, or as clients do, without."""
    log = GrowingLog(path / "a-0", chance.choice([0, 0, 1000]))
    settings: dict[str, Any] = {"compression": chance.choice(["none", "lz4"])}
    settings["partition_leader_epoch"] = chance.choice([-1, 0, 5])
    if chance.random() < 0.5:
        settings |= {"producer_id": 1000, "producer_epoch": 0, "base_sequence": 0}
    for _ in range(chance.randint(1, 3)):
        log.append(*[chance.choice([1, 3, 10, 12]) for _ in range(8)], **settings)
        log.roll()
    return log


def corrupt_log(path: Path, seed: int, parts: list[str]) -> tuple[GrowingLog, random.Random]:
    """Write a log, some with indexes, and corrupt up to four batches of one segment."""
    chance = random.Random(seed)  # noqa: S311 -- no secret
    log = make_log(path, chance)
    if seed % 3 == 0:
        kbat.rebuild_indexes(log.directory)
    corrupt(chance.choice(sorted(log.directory.glob("*.log"))[:-1]), chance, chance.randint(1, 4), parts)
    return log, chance


def log_with_missing_bytes(path: Path, start: int, count: int) -> GrowingLog:
    """Write 20 batches of 5 records; the one from offset 25 on lacks some bytes."""
    log = GrowingLog(path / "a-0")
    for base in range(0, 100, 5):
        batch = bytearray(log.batch(5, partition_leader_epoch=5, producer_id=1000, producer_epoch=0, base_sequence=0))
        if base == 25:
            del batch[start : start + count]
        log.append_bytes(bytes(batch))
        log.end_offset += 5
    return log


def stream_of(path: Path, on_corrupt: str) -> KbatStreamReader:
    options = parse_options({"path": str(path), "columns": "value,offset,segment", "onCorrupt": on_corrupt})
    return KbatStreamReader(schema_of(options.column_names), options)


def micro_batches(source: KbatStreamReader, ends: list[int]) -> list[Found]:
    """Read micro-batches that end at these offsets."""
    results = []
    for start, end in pairwise(ends):
        tasks = source.partitions({"a": {"0": start}}, {"a": {"0": end}})
        results.append(found([row for task in tasks for batch in source.read(task) for row in batch.to_pylist()]))
    return results


def check_ranges(path: Path, first: int, end: int, chance: random.Random) -> None:
    """Check that ranges of a log have the records of a full scan, and that each error is in one micro-batch."""
    for on_corrupt in ("report", "skip"):
        records, faults = scanned(path, on_corrupt)
        cuts = sorted({first, end, *(chance.randint(first, end) for _ in range(12))})
        for start, after in pairwise(cuts):
            given = {"startingOffsets": {"a": {"0": start}}, "endingOffsets": {"a": {"0": after}}}
            inside = [record for record in records if start <= record[0] < after]
            assert joined(read(path, onCorrupt=on_corrupt, **given))[0] == inside, (on_corrupt, start, after)
        assert joined(micro_batches(stream_of(path, on_corrupt), cuts)) == (records, faults), (on_corrupt, cuts)
        assert stream_of(path, on_corrupt).latestOffset() == {"a": {"0": end}}
        good = set(kbat.scan(path, columns=["position"], on_corrupt="skip").to_pyarrow()["position"].to_pylist())
        views = kbat.scan(path, view="batches", columns=["position", "crc_ok"], on_corrupt="skip").to_pyarrow()
        assert {row["position"] for row in views.to_pylist() if row["crc_ok"]} == good
        views = kbat.scan(path, view="batches", columns=["position"], on_corrupt="skip").to_pyarrow()
        assert set(views["position"].to_pylist()) >= good, "a view of headers only"


@pytest.mark.parametrize("seed", range(60))
def test_corruption_costs_no_task_a_row_or_a_fault(tmp_path: Path, seed: int) -> None:
    _, chance = corrupt_log(tmp_path, seed, ["offset"] if seed % 2 else list(PARTS))
    for on_corrupt in ("report", "skip"):
        expected = scanned(tmp_path, on_corrupt)
        for most in (1, 2, 4, 7, 11, 25, 1000):
            tasks = read(tmp_path, onCorrupt=on_corrupt, maxRecordsPerPartition=most)
            assert joined(tasks) == expected, (on_corrupt, most)
            # in a corrupt segment, a batch that can't be split may be in a window of its own
            assert max(len(records) for records, _ in tasks) <= max(most, 12), most
        for size in (1, 300, 1000):
            given = {"maxPartitionBytes": size, "maxRecordsPerPartition": chance.randint(1, 15)}
            assert joined(read(tmp_path, onCorrupt=on_corrupt, **given)) == expected, (on_corrupt, given)


@pytest.mark.parametrize("seed", range(100))
def test_every_range_of_a_corrupt_log_has_its_records(tmp_path: Path, seed: int) -> None:
    log, chance = corrupt_log(tmp_path, seed, ["missing"] if seed % 2 else ["missing", "length", "crc", "records"])
    first = int(min(log.directory.glob("*.log")).stem)
    check_ranges(tmp_path, first, log.end_offset, chance)


@pytest.mark.parametrize("start", range(61, 136, 7))
@pytest.mark.parametrize("count", range(1, 13))
def test_bytes_that_are_missing_cost_no_range_a_record(tmp_path: Path, start: int, count: int) -> None:
    log_with_missing_bytes(tmp_path, start, count)
    check_ranges(tmp_path, 0, 100, random.Random(start))  # noqa: S311 -- no secret


@pytest.mark.parametrize("seed", range(20))
def test_corrupt_offsets_alone_are_no_error_and_cost_no_task_a_row(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 -- no secret
    log = make_log(tmp_path, chance)
    corrupt(chance.choice(sorted(log.directory.glob("*.log"))[:-1]), chance, chance.randint(1, 4), ["offset"])
    expected = scanned(tmp_path, "fail")
    for most in (1, 4, 7, 25):
        assert joined(read(tmp_path, maxRecordsPerPartition=most)) == expected, most


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("on_corrupt", ["fail", "report"])
def test_corrupt_offsets_are_not_where_a_time_starts(tmp_path: Path, seed: int, on_corrupt: str) -> None:
    chance = random.Random(seed)  # noqa: S311 -- no secret
    log = GrowingLog(tmp_path / "a-0")
    log.append(*[5] * 10)
    log.roll()
    log.append(5)
    (segment, _) = sorted(log.directory.glob("*.log"))
    if seed % 2:
        kbat.rebuild_indexes(log.directory)
    number = chance.randrange(1, 9)
    content = bytearray(segment.read_bytes())
    position = list(kbat.read_batches(segment))[number].position
    content[position + chance.randrange(8)] ^= 1 << chance.randrange(8)
    segment.write_bytes(content)
    given = {"onCorrupt": on_corrupt, "columns": "value,offset,segment"}
    for first in (number * 5 - 2, number * 5, number * 5 + 2, number * 5 + 5):
        start = {"a": {"0": time_of(first)}}
        values = Counter(value for _, value in joined(read(tmp_path, startingOffsetsByTimestamp=start, **given))[0])
        sound = [offset for offset in range(first, 55) if not number * 5 <= offset < number * 5 + 5]
        missing = [offset for offset in sound if f"a-0:{offset}".encode() not in values]
        assert not missing, first
        assert max(values.values()) == 1
        rows = [value for _, value in joined(read(tmp_path, startingTimestamp=time_of(first), **given))[0]]
        assert rows == [f"a-0:{offset}".encode() for offset in range(first, 55)]
        options = parse_options({"path": str(tmp_path), "startingTimestamp": str(time_of(first))})
        begins = KbatStreamReader(schema_of(["offset"]), options).initialOffset()["a"]["0"]
        # inside the corrupt batch, the offset after the batch before it
        assert begins in ({first, number * 5} if number * 5 <= first < number * 5 + 5 else {first})


def test_corrupt_last_offset_of_the_log_does_not_make_more_tasks(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(*[5] * 4)
    content = bytearray(log.segment.read_bytes())
    content[list(kbat.read_batches(log.segment))[-1].position] ^= 0x20
    log.segment.write_bytes(content)
    for on_corrupt in ("fail", "report"):
        tasks = read(tmp_path, onCorrupt=on_corrupt, maxRecordsPerPartition=4)
        assert joined(tasks) == scanned(tmp_path, on_corrupt)
        assert len(tasks) <= 8
