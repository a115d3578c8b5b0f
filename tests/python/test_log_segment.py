"""`kbat.Segment`: lookups on every segment of the corpora, with their indexes, without them and with broken ones."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from data import DATA, build, patched, with_right_crc, with_wrapper_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

CORPORA = (DATA / "corpus", DATA / "corpus-legacy")


def answers(log: Path, kind: str) -> list[dict[str, Any]] | None:
    """Kafka's answers for a segment, or None."""
    plain = log.with_name(f"{log.stem}.{kind}.jsonl")
    if plain.exists():
        text = plain.read_text()
    elif (packed := plain.with_name(plain.name + ".gz")).exists():
        text = gzip.decompress(packed.read_bytes()).decode()
    else:
        return None
    return [json.loads(line) for line in text.splitlines()]


def segments() -> Iterator[Path]:
    """Every segment that Kafka was asked about."""
    for corpus in CORPORA:
        for log in sorted(corpus.rglob("*.log")):
            if answers(log, "lookup-offset") is not None:
                yield log


def check(segment: kbat.Segment, log: Path, index: str | None) -> None:
    """Compare all lookups of a segment with those of Kafka on `log`."""
    for answer in answers(log, "lookup-offset") or []:
        place = segment.find_offset(answer["target"])
        found = place and (place.position, place.base_offset, place.last_offset, place.size)
        fields = ("batchPosition", "batchBaseOffset", "batchLastOffset", "batchSize")
        expected = tuple(answer[field] for field in fields)
        assert found == (None if expected[0] is None else expected), (log, answer)
        assert place is None or index is None or place.index == index, (log, answer, place)
    for answer in answers(log, "lookup-time") or []:
        record = segment.find_timestamp(answer["target"])
        got = record and (record.timestamp, record.offset, record.leader_epoch)
        expected = tuple(answer[field] for field in ("timestamp", "offset", "leaderEpoch"))
        assert got == (None if expected[1] is None else expected), (log, answer)
        assert record is None or index is None or record.index == index, (log, answer, record)


def test_lookups_of_every_segment_are_those_of_kafka() -> None:
    logs = list(segments())
    assert len(logs) > 160
    for log in logs:
        check(kbat.Segment(log), log, None)


def test_lookups_use_the_indexes_that_brokers_wrote() -> None:
    for log in segments():
        segment = kbat.Segment(log)
        for answer in answers(log, "lookup-offset") or []:
            place = segment.find_offset(answer["target"])
            assert place is None or place.index == ("used" if "index" in segment.files else "missing"), (log, place)


def test_lookups_without_indexes_are_the_same(tmp_path: Path) -> None:
    for log in segments():
        copy = shutil.copy(log, tmp_path)
        check(kbat.Segment(copy), log, "missing")
        Path(copy).unlink()


@pytest.mark.parametrize("damage", ["random", "beyond the end", "zeros", "cut", "backwards"])
def test_lookups_with_broken_indexes_are_the_same(tmp_path: Path, damage: str) -> None:
    source = DATA / "corpus" / "segments-dense-index"
    seen = set()
    for log in sorted(source.glob("*.log")):
        for suffix in (".log", ".index", ".timeindex"):
            shutil.copy(log.with_suffix(suffix), tmp_path)
        for suffix, size in ((".index", 8), (".timeindex", 12)):
            path = (tmp_path / log.name).with_suffix(suffix)
            path.write_bytes(broken(path.read_bytes(), damage, size))
        segment = kbat.Segment(tmp_path / log.name)
        check(segment, log, None)
        seen |= {place.index for offset in range(0, 400, 7) if (place := segment.find_offset(offset))}
    assert damage in {"cut", "zeros"} or "broken" in seen


def broken(index: bytes, damage: str, size: int) -> bytes:
    """Return an index that is broken in some way."""
    entries = [index[start : start + size] for start in range(0, len(index), size)]
    match damage:
        case "random":
            return bytes((byte * 167 + 13 * place) % 256 for place, byte in enumerate(index))
        case "beyond the end":
            return b"".join(entry[:-4] + b"\x7f\xff\xff\x00" for entry in entries)
        case "zeros":
            return bytes(len(index))
        case "cut":
            return index[: len(index) // 2 + 3]
        case _:
            return b"".join(reversed(entries))


def test_end_offset_and_largest_timestamp_are_those_of_the_batches() -> None:
    for log in segments():
        segment = kbat.Segment(log)
        batches = list(kbat.read_batches(log))
        assert segment.end_offset == (batches[-1].last_offset + 1 if batches else segment.base_offset), log
        assert segment.largest_timestamp == max((batch.max_timestamp for batch in batches), default=-1), log


def test_batches_begin_at_a_place_that_was_found() -> None:
    log = DATA / "corpus" / "codec-lz4" / "00000000000000000000.log"
    segment = kbat.Segment(log)
    place = segment.find_offset(100)
    assert place is not None
    assert place.segment == os.fspath(log)
    first = next(iter(segment.batches(place.position)))
    assert (first.position, first.base_offset, first.last_offset) == (
        place.position,
        place.base_offset,
        place.last_offset,
    )
    assert 100 in [record.offset for record in first]


def test_segment_of_a_file_that_is_no_segment_raises(tmp_path: Path) -> None:
    other = tmp_path / "notes.log"
    other.write_bytes(b"")
    with pytest.raises(ValueError, match="20 digits"):
        kbat.Segment(other)
    with pytest.raises(FileNotFoundError):
        kbat.Segment(tmp_path / "00000000000000000000.log")


def test_segment_tells_its_files_and_pickles() -> None:
    log = DATA / "corpus" / "txn-lz4" / "00000000000000000004.log"
    segment = kbat.Segment(log)
    assert (segment.base_offset, segment.size, segment.state) == (4, log.stat().st_size, "live")
    assert sorted(segment.files) == ["index", "log", "snapshot", "timeindex", "txnindex"]
    copy = pickle.loads(pickle.dumps(segment))  # noqa: S301 -- our own bytes
    assert (copy.path, copy.base_offset) == (segment.path, segment.base_offset)
    assert repr(segment) == f"Segment({log}, {segment.size} bytes)"


def test_segment_scan_takes_the_options_of_scan() -> None:
    segment = kbat.Segment(DATA / "corpus" / "codec-lz4" / "00000000000000000000.log")
    rows = segment.scan(columns=["offset"], start_offset=10, end_offset=20).to_pyarrow()
    assert rows["offset"].to_pylist() == list(range(10, 20))


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="bytes read are known from /proc")
def test_lookup_in_a_segment_of_one_gib_reads_kilobytes(tmp_path: Path) -> None:
    template = bytearray(kbat_batch(b"\0" * 65_400))
    head, size = len(template.rstrip(b"\0")), len(template)
    count = (1 << 30) // size
    log = tmp_path / f"{0:020}.log"
    with log.open("wb") as file, log.with_suffix(".index").open("wb") as index:
        for offset in range(count):  # the zeros of the values are holes in the file
            file.seek(offset * size)
            kbat.set_base_offset(template, offset)
            file.write(template[:head])
            index.write(struct.pack(">ii", offset, offset * size) if offset else b"")
        file.truncate(count * size)
    segment = kbat.Segment(log)
    before = bytes_read()
    place = segment.find_offset(count - 5)
    read = bytes_read() - before
    assert place is not None
    assert (place.position, place.index) == ((count - 5) * size, "used")
    assert segment.end_offset == count
    assert read < 100_000


def bytes_read() -> int:
    """Bytes that this process has read by system calls."""
    return int(Path("/proc/self/io").read_text().split()[1])


def kbat_batch(value: bytes) -> bytes:
    """Return a batch of one record."""
    builder = kbat.BatchBuilder()
    builder.append(None, value, timestamp=1)
    return builder.finish()


def segment_of(tmp_path: Path, *batches: bytes, base_offset: int = 0) -> kbat.Segment:
    """Write a segment without indexes."""
    log = tmp_path / f"{base_offset:020}.log"
    log.write_bytes(b"".join(batches))
    return kbat.Segment(log)


def found_at(segment: kbat.Segment, timestamp: int) -> tuple[int, int, int | None] | None:
    place = segment.find_timestamp(timestamp)
    return place and (place.timestamp, place.offset, place.leader_epoch)


def test_find_timestamp_gives_the_answers_of_kafkas_tests(tmp_path: Path) -> None:
    """format.md 4.9: offsets 40 to 49, timestamps of ten times that."""
    batches = [build([(10 * offset, None, b"v")], base_offset=offset) for offset in range(40, 50)]
    segment = segment_of(tmp_path, *batches, base_offset=40)
    expected = {420: 42, 421: 43, 430: 43, 431: 44, 491: None, 401: 41, 399: 40}
    places = {timestamp: segment.find_timestamp(timestamp) for timestamp in expected}
    assert {timestamp: place and place.offset for timestamp, place in places.items()} == expected


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_find_timestamp_tells_the_leader_epoch_of_v2_only(tmp_path: Path, magic: int) -> None:
    """format.md test 56: v1 has no epochs, v0 no timestamps either."""
    batches = [bytearray(build([(10 + at, None, b"v")], base_offset=5 + at, magic=magic)) for at in (0, 1)]
    if magic == 2:
        for epoch, batch in enumerate(batches):
            kbat.set_partition_leader_epoch(batch, epoch)
    segment = segment_of(tmp_path, *map(bytes, batches), base_offset=5)
    found = [found_at(segment, timestamp) for timestamp in (9, 10, 11, 12)]
    first, second = (10, 5, 0 if magic == 2 else None), (11, 6, 1 if magic == 2 else None)
    assert found == ([None] * 4 if magic == 0 else [first, first, second, None])


def test_find_timestamp_goes_by_the_headers_largest_timestamp(tmp_path: Path) -> None:
    """format.md gotcha 6: if the header's timestamp is below the records', a lookup skips the batch, as in Kafka."""
    first, second = build([(100, None, b"v")]), build([(200, None, b"v")], base_offset=1)
    older = bytes(with_right_crc(patched(first, 35, ">q", -1)))
    assert found_at(segment_of(tmp_path, first, second), 50) == (100, 0, None)
    assert found_at(segment_of(tmp_path, older, second), 50) == (200, 1, None)
    assert [record.timestamp for record in next(kbat.read_batches(older))] == [100]


def test_find_offset_in_a_gap_is_the_next_batch(tmp_path: Path) -> None:
    """format.md tests 52 and 95: offsets 0, 1, 2 and 50."""
    batches = [build([(1, None, b"v")], base_offset=offset) for offset in (0, 1, 2, 50)]
    segment = segment_of(tmp_path, *batches)
    for offset in (3, 49, 50):
        place = segment.find_offset(offset)
        assert place is not None
        assert (place.base_offset, place.position) == (50, 3 * len(batches[0]))
    assert segment.find_offset(51) is None


@pytest.mark.parametrize("first", [5, 12])
def test_segment_may_begin_below_or_above_its_name(tmp_path: Path, first: int) -> None:
    """format.md gotchas 25 and 26: the name is a bound for indexes; offsets come from the batches."""
    batches = [build([(1, None, b"v")], base_offset=offset) for offset in (first, first + 1, first + 20)]
    segment = segment_of(tmp_path, *batches, base_offset=10)
    assert segment.base_offset == 10
    assert segment.end_offset == first + 21
    assert [record.offset for batch in segment.batches() for record in batch] == [first, first + 1, first + 20]
    for offset in (first, first + 1, first + 2, first + 20):
        place = segment.find_offset(offset)
        assert place is not None
        assert place.base_offset == min(at for at in (first, first + 1, first + 20) if at >= offset)
    kinds = {finding.kind for finding in kbat.verify(segment.path).findings}
    assert ("offset_below_base" in kinds or "offset_overflow" in kinds) == (first < 10)


def test_time_index_may_repeat_an_offset_with_a_later_timestamp(tmp_path: Path) -> None:
    """format.md gotcha 24: entries rise by timestamp; the last one may have the offset of the one before."""
    batches = [build([(10, None, b"v"), (20, None, b"v")]), build([(15, None, b"v")], base_offset=2)]
    segment = segment_of(tmp_path, *batches)
    Path(segment.path).with_suffix(".timeindex").write_bytes(struct.pack(">qiqi", 10, 1, 20, 1))
    index = kbat.TimeIndex(Path(segment.path).with_suffix(".timeindex"))
    index.sanity_check()
    assert index.entries == [(10, 1), (20, 1)]
    assert [found_at(segment, timestamp) for timestamp in (9, 11, 20, 21)] == [
        (10, 0, None),
        (20, 1, None),
        (20, 1, None),
        None,
    ]


def test_is_older_tells_only_what_is_certain(tmp_path: Path) -> None:
    def is_older(data: bytes, timestamp: int) -> bool:
        path = tmp_path / f"{0:020}.log"
        path.write_bytes(data)
        return kbat.Segment(path).is_older(timestamp)

    new = build([(50, None, b"v"), (40, None, b"v")])
    assert [is_older(new, timestamp) for timestamp in (40, 50, 51)] == [False, False, True]
    old = with_wrapper_timestamp(build([(50, None, b"v")], magic=1, compression="gzip", base_offset=2), 0)
    gap = new + build([(10, None, b"v")], base_offset=3)
    for log in (old, new + old, old + build([(10, None, b"v")], base_offset=3), new + new[:70], new + bytes(100), gap):
        assert not is_older(log, 51)
    with pytest.raises(kbat.CorruptError):
        is_older(new + patched(new, 8, ">i", 5), 51)
