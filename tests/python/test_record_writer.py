"""`RecordWriter`: partitions whose records keep their offsets, timestamps and types, also from JSON lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kbat
from command_line import LOG, LOG_DIR, run
from kbat._core.writer import RecordWriter

if TYPE_CHECKING:
    from pathlib import Path

TIME = 1_700_000_000_000
LINE = {
    "topic": "t",
    "partition": 3,
    "offset": 0,
    "timestamp": TIME,
    "timestamp_type": "CreateTime",
    "key": "k",
    "value": "v",
    "headers": [],
}


def rows(place: Path) -> list[tuple[Any, ...]]:
    return [
        (record.offset, record.timestamp, record.key, record.value, batch.timestamp_type, batch.magic)
        for segment in kbat.PartitionLog(place).segments
        for batch in segment.batches()
        for record in batch
    ]


def lines(*changes: dict[str, Any]) -> bytes:
    return b"".join(json.dumps({**LINE, **one}).encode() + b"\n" for one in changes)


def test_offsets_and_types_of_records_are_kept(tmp_path: Path) -> None:
    place = tmp_path / "t-3"
    writer = RecordWriter(place, start_offset=10)
    writer.append(b"a", None, timestamp=TIME, offset=12)
    writer.append(None, b"b", timestamp=TIME - 5)
    writer.append(b"c", b"", timestamp=TIME + 1, timestamp_type="LogAppendTime")
    writer.append(b"d", b"d", timestamp=TIME + 2, offset=90, timestamp_type="LogAppendTime")
    writer.append(b"e", b"e", timestamp=-1, timestamp_type=None)
    assert writer.end_offset == 92
    writer.close()
    writer.close()
    assert rows(place) == [
        (12, TIME, b"a", None, "CreateTime", 2),
        (13, TIME - 5, None, b"b", "CreateTime", 2),
        (14, TIME + 1, b"c", b"", "LogAppendTime", 2),
        (90, TIME + 2, b"d", b"d", "LogAppendTime", 2),
        (91, -1, b"e", b"e", None, 0),
    ]
    assert not [found for found in kbat.verify(place).findings if found.severity != "info"]
    with pytest.raises(ValueError, match="closed"):
        _ = writer.end_offset


def test_refused_records_are_not_written(tmp_path: Path) -> None:
    place = tmp_path / "t-3"
    writer = RecordWriter(place)
    writer.append(b"a", b"a", timestamp=TIME, offset=5)
    for offset in (5, 4, 0):
        with pytest.raises(ValueError, match="offset"):
            writer.append(b"b", b"b", timestamp=TIME, offset=offset)
    with pytest.raises(ValueError, match="header"):
        writer.append(b"b", b"b", timestamp=-1, timestamp_type=None, headers=[("h", b"1")])
    writer.append(b"c", b"c", timestamp=TIME)
    writer.close()
    assert [row[:3] for row in rows(place)] == [(5, TIME, b"a"), (6, TIME, b"c")]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_records_without_gaps_are_the_batches_of_the_log_writer(codec: Any, tmp_path: Path) -> None:  # noqa: ANN401 - a literal
    writer = RecordWriter(tmp_path / "a-0", compression=codec)
    with kbat.LogWriter(tmp_path / "b-0", compression=codec) as other:
        for number in range(3000):
            key, value = b"%d" % number, b"v" * (number % 50)
            headers = [("h", None)] * (number % 3)
            writer.append(key, value, timestamp=TIME + number, headers=headers)
            other.append(key, value, timestamp=TIME + number, headers=headers)
    writer.close()
    assert (tmp_path / "a-0" / LOG).read_bytes() == (tmp_path / "b-0" / LOG).read_bytes()


def test_json_lines_end_at_the_first_other_line(tmp_path: Path) -> None:
    good = lines({}, {"offset": 4, "headers": [["h", "1"], ["i", None]]})
    others = {
        "another partition": lines({"offset": 9, "partition": 4}),
        "another topic": lines({"offset": 9, "topic": "u"}),
        "an offset that does not rise": lines({"offset": 4}),
        "no JSON": b"{oops\n",
        "no object": b"[1]\n",
        "a number as key": lines({"offset": 9, "key": 1}),
        "a part of a line": lines({"offset": 9})[:-20],
    }
    for number, (name, other) in enumerate(others.items()):
        place = tmp_path / f"{number}" / "t-3"
        writer = RecordWriter(place)
        data = b"skipped" + good + other
        assert writer.append_json_lines(data, 7, "t", 3) == (7 + len(good), 2), name
        writer.append(b"z", b"z", timestamp=TIME)
        writer.close()
        assert [row[0] for row in rows(place)] == [0, 4, 5], name


def test_base64_and_nulls_of_lines_are_bytes(tmp_path: Path) -> None:
    data = lines({"key": {"base64": "/wA="}, "value": None}, {"offset": 1, "key": None, "value": "\u00e9\n\U0001f600"})
    writer = RecordWriter(tmp_path / "t-3")
    assert writer.append_json_lines(data, 0, "t", 3) == (len(data), 2)
    writer.close()
    assert [row[2:4] for row in rows(tmp_path / "t-3")] == [(b"\xff\x00", None), (None, "\u00e9\n\U0001f600".encode())]


def test_lines_of_cat_are_taken_by_the_core_to_the_last_one(tmp_path: Path) -> None:
    """All of them, so that an import is as fast as it is documented."""
    for place in sorted(path for path in LOG_DIR.iterdir() if (path / LOG).exists()):
        data = run("cat", place).stdout.encode()
        if not data or b'"timestamp_type": null' in data:
            continue
        first = json.loads(data.split(b"\n", 1)[0])
        writer = RecordWriter(tmp_path / place.name, start_offset=first["offset"])
        end, count = writer.append_json_lines(data, 0, first["topic"], first["partition"])
        writer.close()
        assert (end, count) == (len(data), data.count(b"\n")), place
        assert run("cat", tmp_path / place.name).stdout.encode() == data


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 250))
def test_no_bytes_break_the_reader_of_lines(tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int) -> None:
    """The records before the corrupt part are written; the position is that of a line."""
    data = bytearray(lines({}, {"offset": 1}))
    at = min(at, len(data))
    data[at : at + len(noise)] = noise
    place = tmp_path_factory.mktemp("noise") / "t-3"
    writer = RecordWriter(place)
    end, count = writer.append_json_lines(bytes(data), 0, "t", 3)
    writer.close()
    assert end == 0 or data[end - 1 : end] == b"\n" or end == len(data)
    assert len(rows(place)) == count
