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
from data import DATA

if TYPE_CHECKING:
    from collections.abc import Iterator

CORPORA = (DATA / "corpus", DATA / "corpus-legacy")


def answers(log: Path, kind: str) -> list[dict[str, Any]] | None:
    """Kafka's answers on a segment, None where there are none."""
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
