"""The reader of streams as Spark calls it on the driver and in tasks, without Spark."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING

import pyspark
import pytest

if pyspark.__version__ < "4.2":
    pytest.skip("Spark before 4.2 asks a Python source for no limits", allow_module_level=True)

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from growing_log import GrowingLog, time_of
from kbat.spark.options import parse_options
from kbat.spark.schema import schema_of
from kbat.spark.stream import KbatStreamReader

if TYPE_CHECKING:
    from pathlib import Path

    from kbat.spark import stream

ALL = ReadAllAvailable()


def reader(path: Path, **given: object) -> KbatStreamReader:
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
    return KbatStreamReader(schema_of(["topic", "partition", "offset"]), parse_options({"path": str(path)} | texts))


def rows(source: KbatStreamReader, start: stream.Offsets, end: stream.Offsets) -> dict[str, list[int]]:
    """Return the offsets of a micro-batch, by `<topic>-<partition>`."""
    found: dict[str, list[int]] = {}
    for task in source.partitions(start, end):
        for arrow_batch in source.read(task):
            for row in arrow_batch.to_pylist():
                found.setdefault(f"{row['topic']}-{row['partition']}", []).append(row["offset"])
    return found


@pytest.fixture
def logs(tmp_path: Path) -> list[GrowingLog]:
    first, second = GrowingLog(tmp_path / "a-0"), GrowingLog(tmp_path / "a-1", 50)
    first.append(10)
    second.append(5)
    return [first, second]


def test_stream_starts_where_it_is_told(tmp_path: Path, logs: list[GrowingLog]) -> None:
    assert reader(tmp_path).initialOffset() == {"a": {"0": 10, "1": 55}}
    assert reader(tmp_path, startingOffsets="earliest").initialOffset() == {"a": {"0": 0, "1": 50}}
    by_partition = {"a": {"0": 3, "1": -1}}
    assert reader(tmp_path, startingOffsets=by_partition).initialOffset() == {"a": {"0": 3, "1": 55}}
    assert reader(tmp_path, startingTimestamp=time_of(4.5)).initialOffset() == {"a": {"0": 5, "1": 50}}
    with pytest.raises(ValueError, match="a-0 has no record with the timestamp"):
        reader(tmp_path, startingTimestamp=time_of(20)).initialOffset()
    latest = reader(tmp_path, startingTimestamp=time_of(20), startingOffsetsByTimestampStrategy="latest")
    assert latest.initialOffset() == {"a": {"0": 10, "1": 50}}
    logs[0].append(1)
    assert reader(tmp_path).initialOffset() == {"a": {"0": 11, "1": 55}}


def test_stream_reads_from_start_to_end(tmp_path: Path, logs: list[GrowingLog]) -> None:
    source = reader(tmp_path, startingOffsets="earliest")
    start = source.initialOffset()
    end = source.latestOffset(start, ALL)
    assert end == {"a": {"0": 10, "1": 55}}
    assert rows(source, start, end) == {"a-0": list(range(10)), "a-1": list(range(50, 55))}
    assert source.partitions(end, end) == []
    logs[0].append(2)
    logs[0].roll()
    logs[0].append(2)
    later = source.latestOffset(end, ALL)
    assert rows(source, end, later) == {"a-0": [10, 11, 12, 13]}
    assert source.reportLatestOffset() == later
    # what was read can be read again, whatever came after
    logs[0].append(9)
    assert rows(reader(tmp_path), start, end) == {"a-0": list(range(10)), "a-1": list(range(50, 55))}


def test_stream_of_an_empty_directory_waits(tmp_path: Path) -> None:
    source = reader(tmp_path)
    assert source.initialOffset() == {}
    assert source.latestOffset({}, ALL) == {}
    GrowingLog(tmp_path / "a-0").append(3)
    assert rows(source, {}, source.latestOffset({}, ALL)) == {"a-0": [0, 1, 2]}


def test_stream_finds_new_partitions_from_their_first_record(tmp_path: Path, logs: list[GrowingLog]) -> None:
    source = reader(tmp_path)
    start = source.initialOffset()
    GrowingLog(tmp_path / "b-0").append(3)
    end = source.latestOffset(start, ALL)
    assert end == {"a": {"0": 10, "1": 55}, "b": {"0": 3}}
    assert rows(source, start, end) == {"b-0": [0, 1, 2]}
    assert logs[0].end_offset == 10


def test_stream_new_partition_that_lost_its_beginning_is_lost_data(tmp_path: Path, logs: list[GrowingLog]) -> None:
    start = reader(tmp_path).initialOffset()
    GrowingLog(tmp_path / "b-0", 5).append(3)
    with pytest.raises(ValueError, match="b-0 is new and starts with offset 5, not 0; option failOnDataLoss=false"):
        reader(tmp_path).partitions(start, {**start, "b": {"0": 8}})
    with pytest.warns(UserWarning, match="b-0 is new and starts with offset 5"):
        assert rows(reader(tmp_path, failOnDataLoss="false"), start, {**start, "b": {"0": 8}}) == {"b-0": [5, 6, 7]}
    assert logs[0].end_offset == 10


@pytest.mark.parametrize("tail", [1, 60, 61, -1])
def test_stream_shows_whole_batches_only(tmp_path: Path, logs: list[GrowingLog], tail: int) -> None:
    source = reader(tmp_path)
    start = source.initialOffset()
    batch = logs[0].batch(4)
    logs[0].append_bytes(batch[:tail])
    assert source.latestOffset(start, ALL) == start
    logs[0].append_bytes(batch[tail:])
    assert rows(source, start, source.latestOffset(start, ALL)) == {"a-0": [10, 11, 12, 13]}


def first_of_two_segments(directory: Path) -> Path:
    """Make a log of ten records, and ten in a second segment."""
    log = GrowingLog(directory)
    log.append(10)
    first = log.segment
    log.roll()
    log.append(10)
    return first


def test_stream_deleted_segments_are_lost_data(tmp_path: Path) -> None:
    first = first_of_two_segments(tmp_path / "a-0")
    start, end = {"a": {"0": 5}}, {"a": {"0": 20}}
    assert rows(reader(tmp_path), start, end) == {"a-0": list(range(5, 20))}
    first.unlink()
    with pytest.raises(ValueError, match="offsets 5 to 9 of a-0 no longer exist; option failOnDataLoss=false"):
        reader(tmp_path).partitions(start, end)
    with pytest.warns(UserWarning, match="offsets 5 to 9 of a-0 no longer exist"):
        assert rows(reader(tmp_path, failOnDataLoss="false"), start, end) == {"a-0": list(range(10, 20))}


def test_stream_deleted_partitions_are_lost_data(tmp_path: Path, logs: list[GrowingLog]) -> None:
    start = reader(tmp_path).initialOffset()
    logs[0].append(2)
    shutil.rmtree(tmp_path / "a-1")
    with pytest.raises(ValueError, match="a-1 no longer exists, or is no longer selected; records may be lost"):
        reader(tmp_path).latestOffset(start, ALL)
    source = reader(tmp_path, failOnDataLoss="false")
    with pytest.warns(UserWarning, match="a-1 no longer exists"):
        end = source.latestOffset(start, ALL)
    assert end == {"a": {"0": 12, "1": 55}}
    assert rows(source, start, end) == {"a-0": [10, 11]}
    with pytest.raises(ValueError, match="a-1 no longer exists, nor do its offsets before 60"):
        reader(tmp_path).partitions(start, {"a": {"0": 12, "1": 60}})


def test_stream_log_that_went_back_is_lost_data(tmp_path: Path, logs: list[GrowingLog]) -> None:
    start = {"a": {"0": 12, "1": 55}}
    with pytest.raises(ValueError, match="the end of a-0 went from 12 back to 10"):
        reader(tmp_path).latestOffset(start, ALL)
    with pytest.warns(UserWarning, match="the end of a-0 went from 12 back to 10"):
        assert reader(tmp_path, failOnDataLoss="false").latestOffset(start, ALL) == {"a": {"0": 10, "1": 55}}
    with pytest.raises(ValueError, match="a-0 ends before offset 12"):
        reader(tmp_path).partitions({"a": {"0": 9, "1": 55}}, start)
    assert logs[0].end_offset == 10


def test_stream_limit_is_shared_by_size_and_reached(tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(90)
    GrowingLog(tmp_path / "a-1").append(10)
    GrowingLog(tmp_path / "b-0").append(1)
    source = reader(tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger="10")
    limit = source.getDefaultReadLimit()
    assert limit == ReadMaxRows(10)
    start = source.initialOffset()
    end = source.latestOffset(start, limit)
    assert end == {"a": {"0": 8, "1": 1}, "b": {"0": 1}}  # 8.9 and 0.99 and 0.099: rounded down, but never to nothing
    assert source.latestOffset(start, ALL) == {"a": {"0": 90, "1": 10}, "b": {"0": 1}}
    found, count = rows(source, start, end), 1
    while (after := source.latestOffset(end, limit)) != end:
        for name, offsets in rows(source, end, after).items():
            found[name] += offsets
        end, count = after, count + 1
    assert found == {"a-0": list(range(90)), "a-1": list(range(10)), "b-0": [0]}
    assert 10 <= count <= 13


def test_stream_limit_holds_for_new_partitions_too(tmp_path: Path) -> None:
    source = reader(tmp_path, maxOffsetsPerTrigger="10")
    GrowingLog(tmp_path / "a-0").append(90)
    assert source.latestOffset({}, source.getDefaultReadLimit()) == {"a": {"0": 10}}


@pytest.mark.parametrize("delay", [0.0, 1.0])
def test_stream_waits_for_enough_offsets_but_not_for_ever(tmp_path: Path, logs: list[GrowingLog], delay: float) -> None:
    source = reader(tmp_path, minOffsetsPerTrigger="5", maxTriggerDelay=f"{delay * 1000:.0f}ms")
    limit = source.getDefaultReadLimit()
    assert limit == ReadMinRows(5)
    start = source.initialOffset()
    logs[0].append(1)
    began = time.monotonic()
    first = source.latestOffset(start, limit)
    assert first == {"a": {"0": 11, "1": 55}}  # the first trigger never waits, as in Spark's Kafka source
    logs[0].append(4)
    assert source.latestOffset(first, ALL) == {"a": {"0": 15, "1": 55}}
    while (second := source.latestOffset(first, limit)) == first:
        time.sleep(0.01)
    assert time.monotonic() - began >= delay
    assert second == {"a": {"0": 15, "1": 55}}
    logs[1].append(5)
    assert source.latestOffset(second, limit) == {"a": {"0": 15, "1": 60}}


def test_stream_least_and_most_go_together(tmp_path: Path, logs: list[GrowingLog]) -> None:
    source = reader(tmp_path, minOffsetsPerTrigger="5", maxOffsetsPerTrigger="6")
    limit = source.getDefaultReadLimit()
    start = source.initialOffset()
    assert source.latestOffset(start, limit) == start
    logs[0].append(3)
    assert source.latestOffset(start, limit) == start
    logs[0].append(6)
    assert source.latestOffset(start, limit) == {"a": {"0": 16, "1": 55}}


def test_stream_available_now_ends_where_it_was_when_it_began(tmp_path: Path, logs: list[GrowingLog]) -> None:
    source = reader(tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger="6", minOffsetsPerTrigger="5")
    source.prepareForTriggerAvailableNow()
    limit, start = source.getDefaultReadLimit(), source.initialOffset()
    logs[0].append(20)
    GrowingLog(tmp_path / "b-0").append(3)
    seen, end = [], start
    while (after := source.latestOffset(end, limit)) != end:
        seen.append(rows(source, end, after))
        end = after
    assert end == {"a": {"0": 10, "1": 55}}
    assert [offset for found in seen for offset in found.get("a-0", [])] == list(range(10))
    assert [offset for found in seen for offset in found.get("a-1", [])] == list(range(50, 55))


def test_stream_available_now_judges_a_partition_that_is_gone(tmp_path: Path, logs: list[GrowingLog]) -> None:
    start, end = {"a": {"0": 4, "1": 52}}, {"a": {"0": 10, "1": 55}}
    before = reader(tmp_path)
    before.prepareForTriggerAvailableNow()
    shutil.rmtree(tmp_path / "a-1")
    after = reader(tmp_path)
    after.prepareForTriggerAvailableNow()
    for source in (before, after):
        with pytest.raises(ValueError, match="a-1 no longer exists, or is no longer selected; records may be lost"):
            source.latestOffset(start, ALL)
    assert before.latestOffset(end, ALL) == end  # all of it was read before it went
    lenient = reader(tmp_path, failOnDataLoss="false")
    lenient.prepareForTriggerAvailableNow()
    with pytest.warns(UserWarning, match="a-1 no longer exists"):
        assert lenient.latestOffset(start, ALL) == {"a": {"0": 10, "1": 52}}
    assert logs[0].end_offset == 10


def test_stream_before_spark_4_2_goes_by_what_it_saw_last(tmp_path: Path, logs: list[GrowingLog]) -> None:
    source = reader(tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger="9")
    start = source.initialOffset()
    end = source.latestOffset()
    assert end == {"a": {"0": 6, "1": 53}}
    assert rows(source, start, end) == {"a-0": list(range(6)), "a-1": [50, 51, 52]}
    assert source.latestOffset() == {"a": {"0": 10, "1": 55}}
    restarted = reader(tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger="1")
    assert restarted.latestOffset() == {"a": {"0": 10, "1": 55}}  # the last offsets are unknown: no limit
    assert logs[0].end_offset == 10


def test_stream_of_topics_reads_these(tmp_path: Path, logs: list[GrowingLog]) -> None:
    GrowingLog(tmp_path / "b-0").append(3)
    assert reader(tmp_path, subscribe="b").initialOffset() == {"b": {"0": 3}}
    assert reader(tmp_path, assign='{"a": [1]}').initialOffset() == {"a": {"1": 55}}
    with pytest.raises(ValueError, match="c is not under the path"):
        reader(tmp_path, subscribe="c").initialOffset()
    with pytest.raises(ValueError, match="a-1 is missing"):
        reader(tmp_path, subscribe="a", startingOffsets={"a": {"0": 0}}).initialOffset()
    assert logs[0].end_offset == 10


def test_stream_of_files_that_tell_no_partition_is_an_error(tmp_path: Path) -> None:
    GrowingLog(tmp_path / "backup").append(3)
    with pytest.raises(ValueError, match="so a stream can't store its offset"):
        reader(tmp_path / "backup").initialOffset()


def test_stream_of_a_partition_in_two_directories_is_an_error(tmp_path: Path) -> None:
    for broker in ("b1", "b2"):
        GrowingLog(tmp_path / broker / "a-0").append(3)
    with pytest.raises(ValueError, match=r"partition a-0 is in several directories: .*b1/a-0 and .*b2/a-0"):
        reader(tmp_path / "*").initialOffset()


def test_stream_read_committed_goes_up_to_the_last_stable_offset(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    source = reader(tmp_path, startingOffsets="earliest", isolationLevel="read_committed", maxOffsetsPerTrigger="3")
    start, limit = source.initialOffset(), source.getDefaultReadLimit()
    log.append(2)  # 0, 1
    log.append(2, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)  # 2, 3
    log.append(2)  # 4, 5
    first = source.latestOffset(start, limit)
    assert first == {"a": {"0": 2}}
    assert source.latestOffset(first, limit) == first  # the transaction is open
    log.end_transaction(1, commit=False)  # 6
    second = source.latestOffset(first, limit)
    third = source.latestOffset(second, limit)
    assert (second, third) == ({"a": {"0": 5}}, {"a": {"0": 7}})
    found = [rows(source, *span).get("a-0", []) for span in ((start, first), (first, second), (second, third))]
    assert found == [[0, 1], [4], [5]]


def test_stream_with_a_limit_goes_back_with_the_log_too(tmp_path: Path, logs: list[GrowingLog]) -> None:
    source = reader(tmp_path, failOnDataLoss="false", maxOffsetsPerTrigger="100")
    with pytest.warns(UserWarning, match="the end of a-0 went from 12 back to 10"):
        end = source.latestOffset({"a": {"0": 12, "1": 55}}, source.getDefaultReadLimit())
    assert end == {"a": {"0": 10, "1": 55}}
    logs[0].append(4)
    later = source.latestOffset(end, source.getDefaultReadLimit())
    assert rows(source, end, later) == {"a-0": [10, 11, 12, 13]}


def test_stream_of_what_is_available_judges_a_new_partition_that_goes(tmp_path: Path, logs: list[GrowingLog]) -> None:
    source = reader(tmp_path, maxOffsetsPerTrigger="100", startingOffsets="latest")
    start = source.initialOffset()
    new = GrowingLog(tmp_path / "b-0")
    new.append(3)
    source.prepareForTriggerAvailableNow()
    shutil.rmtree(new.directory)
    end = source.latestOffset(start, source.getDefaultReadLimit())
    assert end["a"] == {"0": logs[0].end_offset, "1": logs[1].end_offset}
    with pytest.raises(ValueError, match="b-0 no longer exists, nor do its offsets before 3"):
        source.partitions(start, end)


def test_stream_segments_that_go_before_their_task_are_lost_data(tmp_path: Path) -> None:
    first = first_of_two_segments(tmp_path / "a-0")
    start, end = {"a": {"0": 5}}, {"a": {"0": 20}}
    source, lenient = reader(tmp_path), reader(tmp_path, failOnDataLoss="false")
    [task], [lenient_task] = source.partitions(start, end), lenient.partitions(start, end)
    first.rename(f"{first}.deleted")
    with pytest.raises(ValueError, match=r"0\.log was deleted after the read was planned; option failOnDataLoss=false"):
        list(source.read(task))
    with pytest.warns(UserWarning, match=r"0\.log was deleted after"):
        batches = list(lenient.read(lenient_task))
    assert [offset for batch in batches for offset in batch.column("offset").to_pylist()] == list(range(10, 20))


def test_stream_that_ends_where_it_starts_warns_once(tmp_path: Path, logs: list[GrowingLog]) -> None:
    assert len(logs) == 2
    source = reader(tmp_path)
    source.prepareForTriggerAvailableNow()
    with pytest.warns(UserWarning, match="reads no existing record; set startingOffsets=earliest") as warned:
        source.initialOffset()
    source.prepareForTriggerAvailableNow()
    assert len(warned) == 1
    for given in ({"startingOffsets": "latest"}, {"startingOffsets": "earliest"}, {"startingTimestamp": time_of(2)}):
        chosen = reader(tmp_path, **given)
        chosen.prepareForTriggerAvailableNow()
        chosen.initialOffset()
    restarted = reader(tmp_path)  # from a checkpoint: Spark does not call initialOffset
    restarted.prepareForTriggerAvailableNow()
    restarted.latestOffset()


def test_stream_of_locations_without_segments_is_silent(tmp_path: Path) -> None:
    assert reader(tmp_path).initialOffset() == {}
    (tmp_path / "a-0").mkdir()
    assert reader(tmp_path / "a-0").initialOffset() == {}


@pytest.mark.parametrize("tail", [bytes(range(1, 200)), b"stray"])
def test_stream_reports_the_bytes_after_a_batch_when_the_log_goes_on(tmp_path: Path, tail: bytes) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(10)
    (segment,) = (tmp_path / "a-0").glob("*.log")
    size = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(tail)
    options = parse_options({"path": str(tmp_path), "startingOffsets": "earliest", "onCorrupt": "report"})
    source = KbatStreamReader(schema_of(["offset", "error"]), options)

    def found(first: int, after: int) -> tuple[list[int], list[int]]:
        """Return the offsets of a micro-batch, and the positions of its corruption."""
        tasks = source.partitions({"a": {"0": first}}, {"a": {"0": after}})
        rows = [row for task in tasks for batch in source.read(task) for row in batch.to_pylist()]
        offsets = [row["offset"] for row in rows if row["error"] is None]
        return offsets, [row["error"]["position"] for row in rows if row["error"] is not None]

    assert source.latestOffset(source.initialOffset(), ALL) == {"a": {"0": 10}}
    # a broker may be writing these bytes
    assert found(0, 10) == (list(range(10)), [])
    log.roll()
    log.append(5)
    assert source.latestOffset({"a": {"0": 10}}, ALL) == {"a": {"0": 15}}
    assert found(0, 10) == (list(range(10)), [])
    assert found(10, 15) == (list(range(10, 15)), [size])
    assert found(12, 15) == (list(range(12, 15)), [])
    assert found(0, 15) == (list(range(15)), [size])
    assert found(5, 12) == (list(range(5, 12)), [size])
