"""The rows and errors that Spark reads from damaged logs, planned and read as in Spark, without Spark."""

from __future__ import annotations

import json
import struct
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.sql import datasource

import kbat
from data import DATA, with_right_crc
from growing_log import GrowingLog, time_of
from kbat.spark.options import ReadOptions, parse_options
from kbat.spark.schema import schema_of
from kbat.spark.source import FilteringReader, KbatReader
from kbat.spark.stream import KbatStreamReader

if TYPE_CHECKING:
    from pathlib import Path

Rows = list[dict[str, Any]]


def options_of(path: Path, **given: object) -> ReadOptions:
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
    return parse_options({"path": str(path)} | texts)


def read(path: Path, **given: object) -> Rows:
    """Return the rows of a batch read."""
    options = options_of(path, **given)
    options.check_batch()
    reader = KbatReader(schema_of(options.column_names, options.view), options)
    return [row for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]


def stream(path: Path, most: int, start: str | dict[str, dict[str, int]] = "earliest", **given: object) -> list[Rows]:
    """Return the rows of each micro-batch of a stream."""
    options = options_of(path, startingOffsets=start, maxOffsetsPerTrigger=most, **given)
    source = KbatStreamReader(schema_of(options.column_names, options.view), options)
    first, found = source.initialOffset(), []
    while (after := source.latestOffset()) != first:
        tasks = source.partitions(first, after)
        found.append([row for task in tasks for batch in source.read(task) for row in batch.to_pylist()])
        first = after
    return found


def offsets(rows: Rows) -> list[int]:
    return [row["offset"] for row in rows if row.get("error") is None]


def span(*bounds: int) -> list[int]:
    """Return the numbers from the first to the second bound, from the third to the fourth, and so on."""
    return [number for start, end in zip(bounds[::2], bounds[1::2], strict=True) for number in range(start, end)]


def flip(path: Path, number: int) -> None:
    """Flip a bit of a batch's last byte."""
    batch = list(kbat.read_batches(path))[number]
    content = bytearray(path.read_bytes())
    content[batch.position + batch.size - 1] ^= 1
    path.write_bytes(content)


def lengthen(path: Path, number: int, length: int = 1_000_000) -> None:
    """Write another length into a batch's header."""
    position = list(kbat.read_batches(path))[number].position
    content = bytearray(path.read_bytes())
    struct.pack_into(">i", content, position + 8, length)
    path.write_bytes(content)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """a-0: offsets 0 to 50 in batches of 10 and 50 to 70; the length of the batch 20 to 30 leads beyond its file."""
    log = GrowingLog(tmp_path / "a-0")
    log.append(*[10] * 5)
    lengthen(log.segment, 2)
    log.roll()
    log.append(10, 10)
    return tmp_path


@pytest.fixture
def active(tmp_path: Path) -> Path:
    """a-0: offsets 0 to 50 in batches of 10, in one segment, damaged in the same way."""
    log = GrowingLog(tmp_path / "a-0")
    log.append(*[10] * 5)
    lengthen(log.segment, 2)
    return tmp_path


GOOD = span(0, 20, 30, 70)
JSON = '{"a": {"0": %d}}'


@pytest.mark.parametrize("on_corrupt", ["skip", "report"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, GOOD),
        *(({"maxRecordsPerPartition": most}, GOOD) for most in (1, 3, 10, 25, 100)),
        ({"maxPartitionBytes": "100"}, GOOD),
        ({"startingOffsets": JSON % 35}, span(35, 70)),
        ({"startingOffsets": JSON % 25, "maxRecordsPerPartition": 4}, span(30, 70)),
        ({"endingOffsets": JSON % 35}, span(0, 20, 30, 35)),
        ({"endingOffsets": JSON % 25}, span(0, 20)),
        ({"startingTimestamp": time_of(35)}, span(35, 70)),
        ({"startingTimestamp": time_of(22)}, span(30, 70)),
        ({"startingTimestamp": time_of(15), "endingTimestamp": time_of(42)}, span(15, 20, 30, 42)),
        ({"endingTimestamp": time_of(60)}, span(0, 20, 30, 60)),
    ],
)
def test_damage_skipped_costs_no_good_row(
    damaged: Path, on_corrupt: str, given: dict[str, object], expected: list[int]
) -> None:
    names = "offset,error" if on_corrupt == "report" else "offset"
    found = read(damaged, onCorrupt=on_corrupt, columns=names, **given)
    assert offsets(found) == expected


@pytest.mark.parametrize("most", [1, 7, 10, 33, 100])
def test_damage_skipped_costs_a_stream_no_good_row(damaged: Path, most: int) -> None:
    found = stream(damaged, most, onCorrupt="skip", columns="offset")
    assert [offset for rows in found for offset in offsets(rows)] == GOOD
    assert max(map(len, found)) <= most


@pytest.mark.parametrize("given", [{}, {"maxRecordsPerPartition": 7}, {"maxPartitionBytes": "100"}])
def test_damage_skipped_in_the_last_segment_costs_no_good_row(active: Path, given: dict[str, object]) -> None:
    def found(**more: object) -> list[int]:
        return offsets(read(active, onCorrupt="skip", columns="offset", **given, **more))

    assert found() == span(0, 20, 30, 50)
    assert found(startingOffsets=JSON % 35) == span(35, 50)
    assert found(startingTimestamp=time_of(41)) == span(41, 50)
    assert found(endingTimestamp=time_of(42)) == span(0, 20, 30, 42)
    found_by_stream = stream(active, 7, onCorrupt="skip", columns="offset")
    assert [offset for rows in found_by_stream for offset in offsets(rows)] == span(0, 20, 30, 50)


@pytest.mark.parametrize("length", [1, 2_000_000_000])
def test_damage_of_any_length_costs_no_good_row(tmp_path: Path, length: int) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(*[10] * 8)
    lengthen(log.segment, 3, length)
    good = kbat.scan(tmp_path, columns=["offset"], on_corrupt="skip").to_pyarrow().column("offset").to_pylist()
    for most in (1, 10, 25):
        assert offsets(read(tmp_path, onCorrupt="skip", columns="offset", maxRecordsPerPartition=most)) == good
        found = stream(tmp_path, most, onCorrupt="skip", columns="offset")
        assert [offset for rows in found for offset in offsets(rows)] == good


@pytest.mark.parametrize("number", [0, 3, 7])
def test_damage_of_a_last_offset_costs_no_good_row(tmp_path: Path, number: int) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(*[10] * 8)
    content = bytearray(log.segment.read_bytes())
    content[list(kbat.read_batches(log.segment))[number].position + 24] ^= 1  # of the last offset delta
    log.segment.write_bytes(content)
    good = span(0, number * 10, number * 10 + 10, 80)
    for most in (1, 10, 25):
        assert offsets(read(tmp_path, onCorrupt="skip", columns="offset", maxRecordsPerPartition=most)) == good
        found = stream(tmp_path, most, onCorrupt="skip", columns="offset")
        assert [offset for rows in found for offset in offsets(rows)] == good


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"maxRecordsPerPartition": 7},
        {"maxPartitionBytes": "100"},
        {"startingOffsets": JSON % 35},
        {"endingOffsets": JSON % 35},
        {"startingTimestamp": time_of(35)},
        {"startingOffsetsByTimestamp": {"a": {"0": time_of(35)}}},
        {"view": "batches"},
    ],
)
def test_damage_that_hides_batches_of_a_sealed_segment_fails(damaged: Path, given: dict[str, object]) -> None:
    with pytest.raises(kbat.TruncatedError, match="its length exceeds the rest of the file") as raised:
        read(damaged, **given)
    assert raised.value.path == str(damaged / "a-0" / f"{0:020}.log")
    advice = "option onCorrupt=skip omits the batch, onCorrupt=report adds a row that describes it"
    assert str(raised.value).endswith(f"; offsets 20 to 29 can't be read; {advice}")


def test_damage_of_the_last_segment_does_not_stop_a_read_of_those_before_it(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(*[10] * 5)
    log.roll()
    log.append(10, 10)
    flip(log.segment, 1)
    for end in (35, 50):
        assert offsets(read(tmp_path, endingOffsets=JSON % end)) == span(0, end)
    with pytest.raises(kbat.CrcError):
        read(tmp_path, endingOffsets=JSON % 61)


@pytest.mark.parametrize("indexed", [False, True])
def test_a_read_that_starts_in_a_batch_with_a_damaged_last_offset_fails(tmp_path: Path, *, indexed: bool) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(*[10] * 6)
    if indexed:
        kbat.rebuild_indexes(tmp_path / "a-0", index_interval_bytes=1)
    content = bytearray(log.segment.read_bytes())
    content[list(kbat.read_batches(log.segment))[2].position + 26] = 2  # offsets 20 to 22 instead of 29
    log.segment.write_bytes(content)
    log.roll()
    log.append(10)
    for given in ({"startingOffsets": JSON % 25}, {"startingOffsets": JSON % 25, "endingOffsets": JSON % 28}):
        with pytest.raises(kbat.CrcError):
            read(tmp_path, **given)
    with pytest.raises(kbat.CrcError):
        stream(tmp_path, 100, {"a": {"0": 25}})


@pytest.mark.parametrize("most", [1, 3, 7, 10, 100])
def test_a_stream_reports_damage_at_the_start_of_a_segment_once(tmp_path: Path, most: int) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(10, 10, 10)
    content = log.segment.read_bytes()
    log.segment.write_bytes(content[:70] + b"garbage" + content[70:])
    log.roll()
    log.append(10)
    found = [row for rows in stream(tmp_path, most, onCorrupt="report") for row in rows]
    assert offsets(found) == span(10, 40)
    errors = [row["error"] for row in found if row["error"] is not None]
    assert [(error["position"], error["first_offset"], error["last_offset"]) for error in errors] == [(0, 0, 9)]


@pytest.mark.parametrize("kept", [0, 1])
def test_a_read_that_starts_in_zeros_before_another_segment_fails(tmp_path: Path, kept: int) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(10, 10, 10)
    content = log.segment.read_bytes()
    good = content[: list(kbat.read_batches(log.segment))[kept].position]
    log.segment.write_bytes(good + bytes(len(content) - len(good)))
    log.roll()
    log.append(10)
    for given in ({}, {"startingOffsets": JSON % 15}, {"startingOffsets": JSON % 15, "endingOffsets": JSON % 25}):
        with pytest.raises(kbat.TruncatedError, match="zeros"):
            read(tmp_path, **given)
        rows = read(tmp_path, onCorrupt="report", **given)
        assert [row["error"]["kind"] for row in rows if row["error"]] == ["zero_tail"]
    assert offsets(read(tmp_path, startingOffsets=JSON % 30)) == span(30, 40)


@pytest.mark.parametrize("on_corrupt", ["fail", "skip"])
@pytest.mark.parametrize("bit", [22, 40, 62])
def test_a_damaged_offset_of_a_set_does_not_make_millions_of_tasks(tmp_path: Path, on_corrupt: str, bit: int) -> None:
    content = b""
    for base in (0, 10):
        builder = kbat.BatchBuilder(0, "gzip", base_offset=base)
        for _ in range(10):
            builder.append(b"k", b"v", timestamp=0)
        content += builder.finish()
    damaged = bytearray(content)
    position = len(content) // 2
    struct.pack_into(">q", damaged, position, struct.unpack_from(">q", damaged, position)[0] ^ (1 << bit))
    (tmp_path / "a-0").mkdir()
    (tmp_path / "a-0" / f"{0:020}.log").write_bytes(damaged)
    options = options_of(tmp_path, onCorrupt=on_corrupt, maxRecordsPerPartition=10, columns="offset")
    tasks = KbatReader(schema_of(options.column_names, options.view), options).partitions()
    assert len(tasks) < 1100


@pytest.mark.parametrize("most", [7, 45, 100])
def test_damage_that_hides_batches_of_a_sealed_segment_fails_a_stream(damaged: Path, most: int) -> None:
    with pytest.raises(kbat.TruncatedError, match=r"its length exceeds .*; offsets 20 to 29 can't be read; option on"):
        stream(damaged, most)


def test_damage_is_none_where_a_log_ends_with_a_part_of_a_batch_or_zeros(tmp_path: Path) -> None:
    for number, tail in enumerate([GrowingLog(tmp_path / "x-0").batch(5)[:-1], bytes(5000)]):
        log = GrowingLog(tmp_path / f"a-{number}")
        log.append(10, 10)
        if number == 1:  # as a file that was allocated ahead
            log.append_bytes(tail)
            log.roll()
            log.append(10)
        log.append_bytes(tail)
        for on_corrupt in ("fail", "skip"):
            for most in (7, 100):
                given = {"onCorrupt": on_corrupt, "maxRecordsPerPartition": most, "columns": "offset"}
                assert offsets(read(log.directory, **given)) == span(0, log.end_offset)
            found = read(log.directory, startingTimestamp=time_of(15), onCorrupt=on_corrupt, columns="offset")
            assert offsets(found) == span(15, log.end_offset)


@pytest.mark.parametrize("kind", ["length", "bit"])
@pytest.mark.parametrize("given", [{}, *({"maxRecordsPerPartition": most} for most in (1, 3, 4, 10, 25))])
def test_damage_is_reported_once(tmp_path: Path, kind: str, given: dict[str, object]) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(*[10] * 5)
    (lengthen if kind == "length" else flip)(log.segment, 2)
    found = read(tmp_path, onCorrupt="report", columns="offset,error", **given)
    faults = [row["error"] for row in found if row["error"] is not None]
    assert [(fault["first_offset"], fault["last_offset"]) for fault in faults] == [(20, 29)]
    assert offsets(found) == span(0, 20, 30, 50)
    for most in (1, 4, 10, 25):
        rows = [row for rows in stream(tmp_path, most, onCorrupt="report", columns="offset,error") for row in rows]
        assert [row["error"] for row in rows if row["error"] is not None] == faults
        assert offsets(rows) == span(0, 20, 30, 50)


@pytest.mark.parametrize("on_corrupt", ["fail", "skip"])
def test_damage_is_not_an_empty_batch_with_the_largest_timestamp(tmp_path: Path, on_corrupt: str) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(10, 10)
    last = log.segment.read_bytes()[list(kbat.read_batches(log.segment))[1].position :]
    # the header of a batch whose records compaction removed
    empty = bytearray(last[:57] + struct.pack(">i", 0))
    struct.pack_into(">i", empty, 8, len(empty) - 12)
    log.segment.write_bytes(log.segment.read_bytes()[: -len(last)] + with_right_crc(empty))
    log.roll()
    log.append(10)
    given = {"startingTimestamp": time_of(15), "onCorrupt": on_corrupt}
    # a broker answers that there is none, because the first segment's largest timestamp is that of the empty batch
    assert offsets(read(tmp_path, columns="offset", **given)) == span(20, 30)


@pytest.mark.parametrize("most", [1, 3, 10, 25, 100])
@pytest.mark.parametrize("on_corrupt", ["fail", "skip"])
def test_view_batches_has_each_batch_once(tmp_path: Path, on_corrupt: str, most: int) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(10, 7, 1)
    log.roll()
    log.append(12, 10)
    if on_corrupt == "skip":
        lengthen(log.segment.with_name(f"{0:020}.log"), 1)
    bases = [0, 10, 17, 18, 30] if on_corrupt == "fail" else [0, 17, 18, 30]
    given = {"view": "batches", "columns": "baseOffset", "onCorrupt": on_corrupt}
    assert [row["baseOffset"] for row in read(tmp_path, maxRecordsPerPartition=most, **given)] == bases
    assert [row["baseOffset"] for rows in stream(tmp_path, most, **given) for row in rows] == bases
    # with bounds, also those that only reach into them
    bounds = {"startingOffsets": JSON % 17, "endingOffsets": JSON % 19, "maxRecordsPerPartition": most}
    assert [row["baseOffset"] for row in read(tmp_path, **given, **bounds)] == [17, 18]
    found = stream(tmp_path, most, {"a": {"0": 20}}, **given)
    assert [row["baseOffset"] for rows in found for row in rows] == [18, 30]


@pytest.mark.skipif(pyspark.__version__ < "4.1", reason="Spark 4.0 pushes no filters down to Python")
@pytest.mark.parametrize("on_corrupt", ["skip", "report"])
def test_filter_on_time_leaves_out_no_good_row_behind_damage(active: Path, on_corrupt: str) -> None:
    names = ["offset", "timestamp"] + ["error"] * (on_corrupt == "report")
    options = options_of(active, onCorrupt=on_corrupt, columns=",".join(names))
    reader = FilteringReader(schema_of(options.column_names), options)
    list(
        reader.pushFilters(
            [datasource.GreaterThanOrEqual(("timestamp",), datetime.fromtimestamp(time_of(41) / 1000, UTC))]
        )
    )
    rows = [row for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]
    assert [offset for offset in offsets(rows) if offset >= 41] == span(41, 50)


def batch_of(log: GrowingLog, offsets: list[int]) -> bytes:
    """Return the batch that comes next, damaged, of records with these offsets."""
    builder = kbat.BatchBuilder(base_offset=offsets[0])
    for offset in offsets:
        builder.append(None, b"value", timestamp=time_of(offset), offset=offset)
    batch = bytearray(builder.finish())
    batch[-1] ^= 1
    log.end_offset = offsets[-1] + 1
    return bytes(batch)


@pytest.mark.parametrize("view", ["records", "batches"])
def test_damaged_batch_with_gaps_is_in_one_micro_batch_however_they_cut_it(tmp_path: Path, view: str) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(2)
    log.append_bytes(batch_of(log, [2, 5]))
    log.append(2)
    for most in range(1, 9):
        parts = stream(tmp_path, most, onCorrupt="report", view=view)
        found = [row for part in parts for row in part]
        if view == "records":
            assert [row["error"]["first_offset"] for row in found if row["error"]] == [2], most
            assert offsets(found) == [0, 1, 6, 7]
        else:
            assert [row["baseOffset"] for row in found] == [0, 2, 6], most


@pytest.mark.parametrize("gap", [0, 3])
def test_stream_half_a_batch_behind_damage_takes_nothing_back(tmp_path: Path, gap: int) -> None:
    """With a gap, the end of the damaged batch is unknown until another batch follows."""
    log = GrowingLog(tmp_path / "a-0")
    log.append(4)
    log.append_bytes(batch_of(log, [4, 5 + gap]))
    options = options_of(tmp_path, startingOffsets="earliest", onCorrupt="report")
    source = KbatStreamReader(schema_of(options.column_names, options.view), options)
    start = source.initialOffset()
    first = source.latestOffset()
    assert first == {"a": {"0": 4 if gap else 6}}
    batch = log.batch(3)
    log.append_bytes(batch[:40])
    assert source.latestOffset() == first
    log.append_bytes(batch[40:])
    last = source.latestOffset()
    assert last == {"a": {"0": log.end_offset + 3}}
    found = []
    for bounds in ((start, first), (first, last)):
        for task in source.partitions(*bounds):
            found += [row for arrow_batch in source.read(task) for row in arrow_batch.to_pylist()]
    assert offsets(found) == [0, 1, 2, 3, *range(log.end_offset, log.end_offset + 3)]
    assert [row["error"]["first_offset"] for row in found if row["error"]] == [4]


def test_view_batches_between_equal_bounds_has_none(tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(10)
    at = {"a": {"0": 5}}
    assert read(tmp_path, view="batches", startingOffsets=at, endingOffsets=at) == []
    assert len(read(tmp_path, view="batches", startingOffsets=at)) == 1


def test_the_offsets_of_an_error_do_not_depend_on_where_a_task_ends(tmp_path: Path) -> None:
    """The compressed message after the damaged one does not say where its offsets begin."""
    path = tmp_path / "b-0"
    path.mkdir()
    for segment in (DATA / "corpus-legacy" / "k0102-compacted").glob("*.log"):
        (path / segment.name).write_bytes(segment.read_bytes())
    damaged = path / f"{288:020}.log"
    content = bytearray(damaged.read_bytes())
    content[315 + 276] ^= 1
    damaged.write_bytes(content)
    whole, split = (
        [row["error"] for row in read(path, onCorrupt="report", maxPartitionBytes=size) if row["error"]]
        for size in ("384m", "1")
    )
    assert whole == split
    assert [(error["first_offset"], error["last_offset"]) for error in whole] == [(333, None)]
