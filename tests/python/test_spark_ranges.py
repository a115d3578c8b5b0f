"""The rows of a Spark read with bounds, planned and read as in Spark, without Spark."""

from __future__ import annotations

import itertools
import json
import os
import re
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

import kbat
from growing_log import GrowingLog, time_of
from kbat.spark.options import parse_options
from kbat.spark.plan import plan
from kbat.spark.rows import RowReader
from kbat.spark.schema import schema_of
from spark_pieces import pieces_of

if TYPE_CHECKING:
    from pathlib import Path

Offsets = dict[str, list[int]]


def read(path: Path, **given: object) -> Offsets:
    """Return the offsets of a read, by `<topic>-<partition>`."""
    options = parse_options({"path": str(path)} | {name: _text(value) for name, value in given.items()})
    options.check_batch()
    reader = RowReader.of(options, schema_of(["topic", "partition", "offset"]))
    found: Offsets = {}
    for task in plan(options, reader.fields):
        for arrow_batch in reader.read(task):
            for row in arrow_batch.to_pylist():
                found.setdefault(f"{row['topic']}-{row['partition']}", []).append(row["offset"])
    return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def span(start: int, end: int) -> list[int]:
    return list(range(start, end))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a-0: three segments of 0 to 60; a-1: one of 100 to 130; b-0: no records; __consumer_offsets-3: 0 to 5."""
    path = tmp_path_factory.mktemp("logs")
    first = GrowingLog(path / "a-0")
    for _ in range(3):
        first.append(7, 13, compression="lz4")
        first.roll()
    GrowingLog(path / "a-1", 100).append(*[5] * 6)
    GrowingLog(path / "b-0")
    GrowingLog(path / "__consumer_offsets-3").append(5)
    return path


ALL_A = {"a-0": span(0, 60), "a-1": span(100, 130)}


def test_range_of_nothing_asked_for_is_everything(logs: Path) -> None:
    assert read(logs) == ALL_A | {"__consumer_offsets-3": span(0, 5)}


def test_range_of_topics_has_these(logs: Path) -> None:
    assert read(logs, subscribe="a") == ALL_A
    assert read(logs, subscribePattern="[a-z]") == ALL_A
    assert read(logs, assign={"a": [1], "b": [0]}) == {"a-1": span(100, 130)}
    assert read(logs, subscribe="b") == {}
    with pytest.raises(ValueError, match="c is not under the path; topics found: __consumer_offsets, a, b"):
        read(logs, subscribe="c")


@pytest.mark.parametrize(("start", "end"), [(0, 60), (0, 1), (7, 20), (19, 21), (20, 40), (33, 34), (59, 60), (60, 60)])
def test_range_of_offsets_is_exact(logs: Path, start: int, end: int) -> None:
    found = read(logs / "a-0", startingOffsets={"a": {"0": start}}, endingOffsets={"a": {"0": end}})
    assert found == ({"a-0": span(start, end)} if start < end else {})


def test_range_every_pair_of_offsets_is_exact(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "t-0", 5)
    for count in (1, 2, 1):
        log.append(count, 2)
        log.roll()
    for start in range(5, 16):
        for end in range(start, 16):
            found = read(tmp_path, startingOffsets={"t": {"0": start}}, endingOffsets={"t": {"0": end}})
            assert found.get("t-0", []) == [offset for offset in log_offsets(log) if start <= offset < end]


def log_offsets(log: GrowingLog) -> list[int]:
    return span(5, log.end_offset)


def test_range_minus_two_and_minus_one_are_the_ends(logs: Path) -> None:
    given = {"startingOffsets": {"a": {"0": -2, "1": 110}}, "endingOffsets": {"a": {"0": 10, "1": -1}}}
    assert read(logs, subscribe="a", **given) == {"a-0": span(0, 10), "a-1": span(110, 130)}


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ({"a": {"0": 0}}, "a-1 is missing (-2 is earliest and -1 latest)"),
        ({"a": {"0": 0, "1": 100}, "b": {"0": 0}}, "b-0 is not read"),
        ({"a": {"0": 0, "2": 100}}, "a-1 is missing; a-2 is not read"),
    ],
)
@pytest.mark.parametrize("name", ["starting", "ending"])
def test_range_json_names_every_partition(
    logs: Path, name: str, offsets: dict[str, dict[str, int]], message: str
) -> None:
    with pytest.raises(ValueError, match=f"JSON of {name} offsets must name every partition.*" + re.escape(message)):
        read(logs, subscribe="a", **{f"{name}Offsets": offsets})


@pytest.mark.parametrize("offset", [99, 131])
def test_range_offsets_that_are_gone_are_lost_data(logs: Path, offset: int) -> None:
    message = f"offset {offset} of a-1 is not in {logs}/a-1, which has 100 to 130"
    with pytest.raises(ValueError, match=message + "; option failOnDataLoss=false reads"):
        read(logs / "a-1", startingOffsets={"a": {"1": offset}})
    with pytest.warns(UserWarning, match=message):
        found = read(logs / "a-1", startingOffsets={"a": {"1": offset}}, failOnDataLoss="false")
    assert found == ({"a-1": span(100, 130)} if offset == 99 else {})
    with pytest.warns(UserWarning, match=message):
        found = read(logs / "a-1", endingOffsets={"a": {"1": offset}}, failOnDataLoss="false")
    assert found == ({} if offset == 99 else {"a-1": span(100, 130)})


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 200, ALL_A),
        (20, 115, {"a-0": span(20, 60), "a-1": span(100, 115)}),
        (20.001, 39.999, {"a-0": span(21, 40)}),
        (5.5, 5.501, {}),
        (40, 40, {}),
        (100, 200, {"a-1": span(100, 130)}),
    ],
)
def test_range_of_times_has_the_records_in_it(logs: Path, start: float, end: float, expected: Offsets) -> None:
    given = {"startingTimestamp": time_of(start), "endingTimestamp": time_of(end)}
    assert read(logs, subscribe="a", **given) == expected
    assert read(logs, subscribe="a", startingOffsetsByTimestampStrategy="latest", **given) == expected


def test_range_of_times_in_any_order_of_the_records_is_a_filter(tmp_path: Path) -> None:
    with kbat.LogWriter(tmp_path / "a-0") as log:
        for offset in (3, 1, 4, 0, 2, 5):
            log.append(None, b"v", timestamp=time_of(offset))
            log.flush()
    given = {"startingTimestamp": time_of(2), "endingTimestamp": time_of(5)}
    assert read(tmp_path, **given) == {"a-0": [0, 2, 4]}
    assert read(tmp_path, startingTimestamp=time_of(2), endingOffsets={"a": {"0": 4}}) == {"a-0": [0, 2]}
    assert read(tmp_path, startingOffsets={"a": {"0": 1}}, endingTimestamp=time_of(4)) == {"a-0": [1, 3, 4]}
    by_partition = {"startingOffsetsByTimestamp": {"a": {"0": time_of(4)}}, "endingTimestamp": time_of(5)}
    assert read(tmp_path, **by_partition) == {"a-0": [2, 3, 4]}


def test_range_of_times_may_be_text_with_a_zone(logs: Path) -> None:
    at = datetime.fromtimestamp(time_of(30) / 1000, timezone(timedelta(hours=2)))
    assert read(logs / "a-0", startingTimestamp=at.isoformat()) == {"a-0": span(30, 60)}
    starts = {"a": {"0": at.isoformat()}}
    assert read(logs / "a-0", startingOffsetsByTimestamp=starts) == {"a-0": span(30, 60)}


def test_range_of_times_by_partition(logs: Path) -> None:
    starts, ends = (
        {"a": {"0": time_of(50), "1": 0}},
        {"a": {"0": time_of(55), "1": time_of(100.001)}},
    )
    found = read(logs, subscribe="a", startingOffsetsByTimestamp=starts, endingOffsetsByTimestamp=ends)
    assert found == {"a-0": span(50, 55), "a-1": [100]}
    with pytest.raises(ValueError, match=r"JSON of starting timestamps .*a-1 is missing \(0 is before all"):
        read(logs, subscribe="a", startingOffsetsByTimestamp={"a": {"0": 0}})


def test_range_by_timestamp_does_not_depend_on_the_time_of_a_file(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.roll()  # an empty segment, of which a broker takes the time of the file
    log.append(5, 5)
    for time in (0, 4_000_000_000):
        for segment in log.directory.glob("*.log"):
            os.utime(segment, (time, time))
        assert read(tmp_path, startingOffsetsByTimestamp={"a": {"0": time_of(7)}}) == {"a-0": span(7, 10)}
        assert read(tmp_path, endingOffsetsByTimestamp={"a": {"0": time_of(7)}}) == {"a-0": span(0, 7)}
        assert read(tmp_path, startingTimestamp=time_of(7)) == {"a-0": span(7, 10)}


def test_range_without_a_record_since_its_starting_time_is_an_error_if_the_strategy_is_set(logs: Path) -> None:
    message = f"a-0 has no record with the timestamp {time_of(100)} or a later one; with "
    given = {"startingTimestamp": time_of(100), "startingOffsetsByTimestampStrategy": "error"}
    with pytest.raises(ValueError, match=message):
        read(logs, subscribe="a", **given)
    assert read(logs / "a-1", **given) == {"a-1": span(100, 130)}
    starts = {"a": {"0": time_of(100), "1": time_of(100)}}
    with pytest.raises(ValueError, match=message):
        read(logs, subscribe="a", startingOffsetsByTimestamp=starts)
    found = read(logs, subscribe="a", startingOffsetsByTimestamp=starts, startingOffsetsByTimestampStrategy="latest")
    assert found == {"a-1": span(100, 130)}


@pytest.fixture
def replicas(logs: Path, tmp_path: Path) -> list[Path]:
    """Two disks: on both a partition a-0, of which the second one has less; on the second also c-0."""
    GrowingLog(tmp_path / "a-0").append(3)
    GrowingLog(tmp_path / "c-0").append(2)
    return [logs, tmp_path]


def test_range_of_a_partition_in_two_directories_is_an_error(replicas: list[Path]) -> None:
    first, second = replicas
    paths = json.dumps([str(path) for path in replicas])
    for given in ({}, {"startingTimestamp": time_of(1)}, {"startingOffsets": {"a": {"0": 1, "1": 101}}}):
        with pytest.raises(ValueError, match="partition a-0 is in several directories") as raised:
            read(first / "b-0", paths=paths, subscribe="a", **given)
        assert str(first / "a-0") in str(raised.value)
        assert str(second / "a-0") in str(raised.value)
        assert 'replicas="longest"' in str(raised.value)
    # a partition that is not read may be in two directories
    assert read(first / "b-0", paths=paths, subscribe="c") == {"c-0": [0, 1]}


def test_range_of_replicas_is_that_of_the_longest(replicas: list[Path]) -> None:
    first, _ = replicas
    paths = json.dumps([str(path) for path in reversed(replicas)])
    given = {"paths": paths, "replicas": "longest"}
    assert read(first / "b-0", subscribe="a,c", **given) == ALL_A | {"c-0": [0, 1]}
    bounds = {"startingOffsets": {"a": {"0": 50, "1": 120}}}
    assert read(first / "b-0", subscribe="a", **given, **bounds) == {"a-0": span(50, 60), "a-1": span(120, 130)}


def test_range_of_a_topic_option_without_effect_is_an_error(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"option topic has no effect: .*; use subscribe=a to read one topic"):
        read(logs, topic="a")
    with pytest.raises(ValueError, match=r"option partition has no effect: .*; use assign=.*\[1\]} to read one"):
        read(logs, partition="1")
    (tmp_path / "dump").mkdir()
    (segment,) = (logs / "a-1").glob("*.log")
    (tmp_path / "dump" / segment.name).write_bytes(segment.read_bytes())
    assert read(tmp_path / "dump", topic="x", partition="7") == {"x-7": span(100, 130)}
    # of several files, those in a <topic>-<partition> directory keep their topic
    paths = json.dumps([str(logs / "a-0")])
    found = read(tmp_path / "dump", paths=paths, topic="x", partition="7")
    assert found == {"a-0": span(0, 60), "x-7": span(100, 130)}


def test_range_of_files_that_an_option_makes_one_partition_has_no_offsets(logs: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (segment,) = (logs / "a-1").glob("*.log")
        (tmp_path / name / segment.name).write_bytes(segment.read_bytes())
    given = {"paths": json.dumps([str(tmp_path / "two")]), "topic": "x", "partition": "7"}
    assert read(tmp_path / "one", **given) == {"x-7": span(100, 130) * 2}
    with pytest.raises(ValueError, match=f"partition x-7 is in {tmp_path}/one and in {tmp_path}/two"):
        read(tmp_path / "one", startingOffsets={"x": {"7": 110}}, **given)


def test_range_of_segments_in_any_order_is_that_of_their_log(logs: Path) -> None:
    segments = json.dumps(sorted(map(str, (logs / "a-0").glob("*.log")), reverse=True))
    given = {"paths": segments, "subscribe": "a"}
    nothing = logs / "b-0"
    assert read(nothing, **given) == {"a-0": span(0, 60)}
    assert read(nothing, startingOffsets={"a": {"0": 15}}, **given) == {"a-0": span(15, 60)}
    assert read(nothing, endingTimestamp=time_of(45), maxRecordsPerPartition=7, **given) == {"a-0": span(0, 45)}


def test_range_of_a_path_given_twice_is_that_of_one(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(logs)
    paths = json.dumps([str(logs / "a-0"), str(logs / "b-0" / ".." / "a-0"), str(tmp_path / "link" / "a-0")])
    for given in ({}, {"startingTimestamp": time_of(0)}):
        assert read(logs / "a-0", paths=paths, **given) == {"a-0": span(0, 60)}


def test_range_of_earliest_is_the_checkpointed_start(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(10)
    log.roll()
    log.append(10)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\na 0 4\n")
    assert read(tmp_path) == {"a-0": span(4, 20)}
    with pytest.raises(ValueError, match=r"offset 3 of a-0 is not in .* which has 4 to 20"):
        read(tmp_path, startingOffsets={"a": {"0": 3}})


def test_range_of_a_file_without_a_base_offset_has_offsets_and_times(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(4, 4)
    dump = tmp_path / "dump.bin"
    log.segment.rename(dump)
    given = {"topic": "a", "partition": "0"}
    assert read(dump, startingOffsets={"a": {"0": 2}}, endingOffsets={"a": {"0": 7}}, **given) == {"a-0": span(2, 7)}
    assert read(dump, startingTimestamp=time_of(1), endingTimestamp=time_of(6), **given) == {"a-0": span(1, 6)}
    with pytest.raises(
        ValueError, match=r"dump\.bin is not named after its base offset, so it can't be searched for a time"
    ):
        read(dump, startingOffsetsByTimestamp={"a": {"0": time_of(1)}}, **given)


def test_range_with_a_cut_or_zeroed_tail_ends_before_it(tmp_path: Path) -> None:
    cut, zeroed = GrowingLog(tmp_path / "a-0"), GrowingLog(tmp_path / "a-1")
    for log in (cut, zeroed):
        log.append(3, 4)
    cut.append_bytes(cut.batch(5)[:-1])
    zeroed.append_bytes(bytes(1000))
    assert read(tmp_path, endingOffsets={"a": {"0": -1, "1": 7}}) == {"a-0": span(0, 7), "a-1": span(0, 7)}


def tasks(path: Path, **given: object) -> list[list[int]]:
    """Return the offsets of each task."""
    options = parse_options({"path": str(path)} | {name: _text(value) for name, value in given.items()})
    reader = RowReader.of(options, schema_of(["offset"]))
    return [
        [row["offset"] for arrow_batch in reader.read(task) for row in arrow_batch.to_pylist()]
        for task in plan(options, reader.fields)
    ]


@pytest.mark.parametrize("most", [1, 2, 7, 19, 20, 21, 60, 1000])
def test_plan_max_records_per_partition_bounds_every_task(logs: Path, most: int) -> None:
    found = tasks(logs / "a-0", maxRecordsPerPartition=most)
    assert list(itertools.chain(*found)) == span(0, 60)
    assert max(map(len, found)) <= most
    assert len(found) <= -(-60 // most) + 2


def test_plan_max_records_per_partition_within_bounds(logs: Path) -> None:
    found = tasks(logs / "a-0", maxRecordsPerPartition=4, startingTimestamp=time_of(17), endingTimestamp=time_of(30))
    assert list(itertools.chain(*found)) == span(17, 30)
    assert max(map(len, found)) <= 4


def test_plan_reads_only_the_window_that_may_have_the_offsets(logs: Path) -> None:
    options = parse_options(
        {"path": str(logs / "a-0"), "startingOffsets": '{"a": {"0": 30}}', "endingOffsets": '{"a": {"0": 40}}'}
    )
    ((piece,),) = [pieces_of(task) for task in plan(options)]
    assert piece.path.endswith("20.log")
    assert piece.start > 0
    options = parse_options(
        {"path": str(logs / "a-0"), "startingOffsets": '{"a": {"0": 21}}', "endingOffsets": '{"a": {"0": 25}}'}
    )
    ((first,),) = [pieces_of(task) for task in plan(options)]
    assert (first.start, first.end) == (0, piece.start)
