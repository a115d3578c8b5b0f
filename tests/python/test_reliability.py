"""What a reader, writer or tool may never do: hide or delete a good batch.

Each test fails at the state that an attempt to break kbat found; `D1` to `D9` are its findings.
"""

from __future__ import annotations

import itertools
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from reliability_logs import NOW, SHAPES, Bytes, batch, in_every_way, offsets, segment_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# D2: a flipped bit in a stored offset


@pytest.mark.parametrize("where", ["first", "middle", "last"])
@pytest.mark.parametrize("shape", SHAPES)
def test_salvage_loses_at_most_the_batch_whose_stored_offset_has_a_flipped_bit(
    shape: str, where: str, tmp_path: Path
) -> None:
    segment = segment_of(shape)
    index = {"first": 0, "middle": 4, "last": 8}[where]
    others = segment.offsets(index)
    for bit in range(64):
        partition = segment.write(tmp_path / "orders-0", segment.flipped(index, bit))
        report = kbat.salvage(partition, tmp_path / f"saved-{bit}")
        kept = offsets(tmp_path / f"saved-{bit}")
        assert set(kept) >= set(others), f"bit {bit}"
        assert sum(each.batch_count for each in report.segments) >= 8
        # a loss is reported
        assert report.dropped or len(kept) == len(segment.offsets())
        assert report.end_offset <= 1 << 32


@pytest.mark.parametrize("where", [0, 3])
def test_salvage_of_several_segments_loses_at_most_the_batch_whose_first_offset_has_a_flipped_bit(
    where: int, tmp_path: Path
) -> None:
    """The first batch of each segment in turn, and segments of one batch only."""
    logs = [
        Bytes([batch(0), batch(3)]),
        Bytes([batch(6)], base_offset=6),
        Bytes([batch(9), batch(12), batch(15)], base_offset=9),
        Bytes([batch(18)], base_offset=18),
    ]
    for bit, number in itertools.product(range(where, 64, 5), range(4)):
        directory = tmp_path / f"orders-{bit}"
        for each in logs:
            each.write(directory)
        logs[number].write(directory, logs[number].flipped(0, bit))
        kbat.salvage(directory, tmp_path / "saved")
        others = [offset for i, each in enumerate(logs) for offset in each.offsets(*([0] if i == number else []))]
        assert set(offsets(tmp_path / "saved", "skip")) >= set(others), f"bit {bit} of segment {number}"
        shutil.rmtree(tmp_path / "saved")
        shutil.rmtree(directory)


# D3: offsets that fall


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("base_offsets", [[0] * 10, [0, 500, 3, 3, 90, 1, 0, 7, 8, 2], list(range(90, -10, -10))])
def test_a_buffer_whose_offsets_fall_loses_the_corrupt_batch_only(shape: str, base_offsets: list[int]) -> None:
    magic = int(shape[1])
    count = 1 if magic < 2 and shape.endswith("none") else 4
    compression: Any = shape[3:]
    batches = [
        batch(base_offset, count, value=b"batch %d" % index * 9, magic=magic, compression=compression)
        for index, base_offset in enumerate(base_offsets)
    ]
    request = Bytes(batches)
    for index in (0, 4, 8):
        size = len(request.batches[index])
        expected = [b"batch %d" % each * 9 for each in range(10) if each != index for _ in range(count)]
        crc = 14 if magic < 2 else 18
        for byte in (crc, size - 1, 8, 11, 16):
            data = bytearray(request.data)
            data[request.position(index) + byte] ^= 0x55
            for mode in ("skip", "report"):
                table = kbat.scan(bytes(data), on_corrupt=mode).to_pyarrow()
                found = [value for value in table["value"].to_pylist() if value is not None]
                assert found == expected, f"{mode}: byte {byte} of batch {index}"
            if byte != 8:  # a length that leads past the end of a buffer is a batch that has not arrived
                with pytest.raises(kbat.KbatError):
                    kbat.scan(bytes(data)).to_pyarrow()


# D6: bytes missing inside a large record

_TAILS = ["nothing", "torn", "zeros", "gap"]


def with_missing_bytes(size: int, missing: int, at: int, good: int, tail: str) -> tuple[Bytes, bytes, list[int]]:
    """Return a segment, its bytes without some of the large value, and the offsets of its good batches."""
    value = bytes((i * i + i // 251) % 256 for i in range(size))
    start = 8 if tail == "gap" else 6
    behind = [batch(start + 3 * index) for index in range(good)]
    segment = Bytes([batch(0, 2), batch(2), batch(5, 1, value=value), *behind])
    place = segment.position(2) + 75 + at
    data = segment.data[:place] + segment.data[place + missing :]
    if tail == "torn":
        data += batch(start + 3 * good, 2)[:80]
    if tail == "zeros":
        data += bytes(4096)
    return segment, data, segment.offsets(2)


def cases(tail: str) -> Iterator[tuple[str, Bytes, bytes, list[int]]]:
    """Every size of the value, of what is missing, and of the log after it."""
    for size, share, place in itertools.product([300, 1100, 2500, 20_000], [0.01, 0.2, 0.6, 0.95], [0, 0.03]):
        for good in (1, 2, 4):
            missing, at = int(size * share), int(size * place)
            yield f"{missing} of {size} bytes at {at}, {good}", *with_missing_bytes(size, missing, at, good, tail)


@pytest.mark.parametrize("tail", _TAILS)
def test_a_writer_truncates_no_good_batch_behind_missing_bytes(tail: str, tmp_path: Path) -> None:
    for case, segment, data, _ in cases(tail):
        partition = segment.write(tmp_path / "orders-0", data)
        with pytest.raises(kbat.CorruptError):
            kbat.LogWriter(partition)
        assert (partition / f"{0:020}.log").read_bytes() == data, case
        assert not kbat.verify(partition).ok, case


@pytest.mark.parametrize("tail", _TAILS)
def test_a_scan_raises_if_a_good_batch_lies_behind_missing_bytes(tail: str, tmp_path: Path) -> None:
    for case, segment, data, _ in cases(tail):
        partition = segment.write(tmp_path / "orders-0", data)
        try:
            found = offsets(partition)
        except kbat.KbatError:
            continue
        pytest.fail(f"{case}: {found}")


@pytest.mark.parametrize("tail", _TAILS)
def test_readers_that_continue_keep_a_good_batch_behind_missing_bytes(tail: str, tmp_path: Path) -> None:
    for case, segment, data, expected in cases(tail):
        partition = segment.write(tmp_path / "orders-0", data)
        found = in_every_way(partition, data)
        assert all(each == expected for each in found.values()), f"{case}: {found}"


@pytest.mark.parametrize("tail", _TAILS)
def test_salvage_keeps_a_good_batch_behind_missing_bytes(tail: str, tmp_path: Path) -> None:
    for case, segment, data, expected in cases(tail):
        partition = segment.write(tmp_path / "orders-0", data)
        kbat.salvage(partition, tmp_path / "saved")
        assert offsets(tmp_path / "saved") == expected, case
        shutil.rmtree(tmp_path / "saved")


@pytest.mark.parametrize("tail", _TAILS)
def test_the_end_of_a_log_is_not_before_a_good_batch(tail: str, tmp_path: Path) -> None:
    for missing in (10, 500, 1500, 1900):
        segment, data, _ = with_missing_bytes(2000, missing, 30, 2, tail)
        partition = segment.write(tmp_path / f"orders-{missing}", data)
        with pytest.raises(kbat.KbatError):
            _ = kbat.PartitionLog(partition).end_offset


@pytest.mark.parametrize("zeros", [17, 20, 61, 300])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_writer_truncates_no_good_batch_behind_zeros(shape: str, zeros: int, tmp_path: Path) -> None:
    """Zeros are the end of a log only if they reach up to the end of the file."""
    segment = segment_of(shape, 20)
    for at in (0, 1, 3):
        data = bytearray(segment.data)
        place = segment.position(2) + at
        data[place : place + zeros] = bytes(zeros)
        partition = segment.write(tmp_path / "orders-0", bytes(data))
        with pytest.raises(kbat.CorruptError):
            kbat.LogWriter(partition)
        assert (partition / f"{0:020}.log").read_bytes() == data


def test_a_limit_is_no_reason_to_truncate_a_good_batch(tmp_path: Path) -> None:
    segment = Bytes([batch(0, 2), batch(2)[:90], batch(5, value=b"large" * 400)])
    partition = segment.write(tmp_path / "orders-0")
    with pytest.raises(kbat.KbatError):
        kbat.LogWriter(partition, limits=kbat.Limits(batch_len=1000))
    assert (partition / f"{0:020}.log").read_bytes() == segment.data


def test_a_writer_does_not_continue_at_an_offset_that_exists(tmp_path: Path) -> None:
    segment = Bytes([batch(3 * index) for index in range(10)])
    data = bytearray(segment.data)
    data[segment.position(9) + 7] = 5
    partition = segment.write(tmp_path / "orders-0", bytes(data))
    with pytest.raises(kbat.KbatError):
        _ = kbat.PartitionLog(partition).end_offset
    with pytest.raises(kbat.KbatError):
        kbat.LogWriter(partition)


@pytest.mark.parametrize("bounds", [{"start_offset": 2}, {"start_timestamp": NOW + 2}])
def test_a_bounded_scan_raises_rather_than_lose_a_good_batch(bounds: dict[str, Any], tmp_path: Path) -> None:
    """Bytes are missing in a batch before the bounds, so that its length leads into the batch that they include."""
    segment = Bytes([batch(0, 2, value=b"x" * 2000), batch(2, 1, value=b"y" * 20_000)])
    data = segment.data[:1000] + segment.data[1008:]
    partition = segment.write(tmp_path / "orders-0", data)
    assert offsets(partition, "skip", **bounds) == [2]
    with pytest.raises(kbat.KbatError):
        kbat.scan(partition, **bounds).to_pyarrow()
    with pytest.raises(kbat.KbatError):
        _ = kbat.PartitionLog(partition).end_offset
    with pytest.raises(kbat.KbatError):
        kbat.PartitionLog(partition).find_offset(2)


def test_a_lookup_past_a_corrupt_length_raises(tmp_path: Path) -> None:
    segment = Bytes([batch(3 * index) for index in range(4)])
    data = bytearray(segment.data)
    data[segment.position(1) + 10] ^= 1
    partition = segment.write(tmp_path / "orders-0", bytes(data))
    with pytest.raises(kbat.CorruptError):
        kbat.PartitionLog(partition).find_offset(7)
    with pytest.raises(kbat.CorruptError):
        kbat.PartitionLog(partition).find_timestamp(NOW + 7)


@pytest.mark.parametrize("mode", ["skip", "report"])
def test_a_time_range_has_the_rows_after_a_corrupt_length(mode: Any, tmp_path: Path) -> None:  # noqa: ANN401 -- one of two literals
    """The length of the first batch leads to the end of the file."""
    segment = Bytes([batch(3 * index) for index in range(4)])
    data = bytearray(segment.data)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    partition = segment.write(tmp_path / "orders-0", bytes(data))
    assert offsets(partition, mode) == list(range(3, 12))
    assert offsets(partition, mode, start_timestamp=NOW + 5) == list(range(5, 12))


def test_good_batches_between_two_corrupt_ones_are_kept(tmp_path: Path) -> None:
    """A byte is missing in each, so that the value of the first seems to end inside the next batch."""
    value = bytes(index * index % 251 for index in range(2000))
    good = [batch(3 + 3 * index) for index in range(4)]
    segment = Bytes([batch(0, 2), batch(2, 1, value=value), *good, batch(15, 1, value=value), batch(16)])
    first, second = segment.position(1) + 300, segment.position(6) + 300
    data = segment.data[:first] + segment.data[first + 1 : second] + segment.data[second + 1 :]
    partition = segment.write(tmp_path / "orders-0", data)
    expected = segment.offsets(1, 6)
    assert all(each == expected for each in in_every_way(partition, data).values())
    kbat.salvage(partition, tmp_path / "saved")
    assert offsets(tmp_path / "saved") == expected


_SHORT_TAILS = pytest.mark.parametrize("tail", [batch(99, value=b"torn" * 20)[:90], bytes(10)], ids=["torn", "zeros"])


def missing_bytes(magic: int, gap: int, missing: int, tail: bytes) -> tuple[Bytes, bytes, list[int]]:
    """The length of the third batch leads past the end. Returns the segment, its damaged bytes and its good offsets."""
    first, second = (batch(offset, 1, magic=magic) for offset in (0, 1))
    large = batch(2, 1, value=bytes(index * index % 251 for index in range(2000)), magic=magic)
    good = [batch(3 + gap + offset, 1, magic=magic) for offset in range(4)]
    data = b"".join([first, second, large[:300], large[300 + missing :], *good, tail])
    return Bytes([first, second, large, *good]), data, [0, 1, *range(3 + gap, 7 + gap)]


@_SHORT_TAILS
@pytest.mark.parametrize(("magic", "gap", "missing"), [(2, 1, 2), (2, 50, 1500), (1, 0, 1500), (0, 0, 1500)])
def test_a_tail_is_no_reason_to_end_silently(magic: int, gap: int, missing: int, tail: bytes, tmp_path: Path) -> None:
    segment, data, _ = missing_bytes(magic, gap, missing, tail)
    partition = segment.write(tmp_path / "orders-0", data)
    with pytest.raises(kbat.KbatError):
        kbat.scan(partition).to_pyarrow()
    with pytest.raises(kbat.KbatError):
        kbat.rewrite(partition, tmp_path / "rewritten")
    with pytest.raises(kbat.KbatError):
        _ = kbat.PartitionLog(partition).end_offset
    with pytest.raises(kbat.KbatError):
        kbat.LogWriter(partition)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_zeros_after_good_batches_are_no_reason_to_end_silently(magic: int, tmp_path: Path) -> None:
    """The length of the third batch leads into the zeros of a preallocated file."""
    segment, data, _ = missing_bytes(magic, 0, 1500, bytes(4096))
    partition = segment.write(tmp_path / "orders-0", data)
    with pytest.raises(kbat.KbatError):
        kbat.scan(partition).to_pyarrow()
    with pytest.raises(kbat.KbatError):
        _ = kbat.PartitionLog(partition).end_offset


@_SHORT_TAILS
@pytest.mark.parametrize(("magic", "gap", "missing"), [(2, 1, 2), (2, 0, 1500), (1, 0, 1500), (0, 0, 1500)])
def test_a_tail_hides_no_batch_after_a_gap_and_no_message(
    magic: int, gap: int, missing: int, tail: bytes, tmp_path: Path
) -> None:
    segment, data, expected = missing_bytes(magic, gap, missing, tail)
    partition = segment.write(tmp_path / "orders-0", data)
    assert all(each == expected for each in in_every_way(partition, data).values())
    kbat.salvage(partition, tmp_path / "saved")
    assert offsets(tmp_path / "saved") == expected


@_SHORT_TAILS
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_batches_that_may_be_a_value_of_an_incomplete_batch_are_omitted_and_reported(
    magic: int, tail: bytes, tmp_path: Path
) -> None:
    """Their offsets do not continue the log: docs/troubleshooting.md shows how to read them."""
    segment, data, expected = missing_bytes(magic, 50, 1500, tail)
    partition = segment.write(tmp_path / "orders-0", data)
    with pytest.raises(kbat.TruncatedError) as raised:
        kbat.scan(partition).to_pyarrow()
    assert (raised.value.kind, raised.value.position) == ("cut_batch", segment.position(2))
    assert all(each == [0, 1] for each in in_every_way(partition, data).values())
    rows = kbat.scan(partition, on_corrupt="report").to_pyarrow().to_pylist()
    [error] = [row["error"] for row in rows if row["error"]]
    assert (error["position"], error["length"]) == (segment.position(2), len(data) - segment.position(2))
    [dropped] = kbat.salvage(partition, tmp_path / "saved").dropped
    assert (dropped.position, dropped.length, dropped.first_offset) == (error["position"], error["length"], 2)
    [found] = [finding for finding in kbat.verify(partition).findings if finding.kind == "partial_batch"]
    hidden = f"; a complete batch at byte {segment.position(3) - 1500} may be part of its value"
    assert hidden in found.message
    assert hidden in dropped.message
    # without the start of the incomplete batch, they are not in a value
    assert offsets(data[error["position"] + 1 :], "skip") == expected[2:]


@pytest.mark.parametrize("corrupt", ["shorter", "longer"])
def test_corruption_does_not_decide_which_replica_is_longer(corrupt: str, tmp_path: Path) -> None:
    """The last offset delta of the shorter one is too high, or a length in the longer one leads past its end."""
    for name, count in (("shorter", 10), ("longer", 30)):
        segment = Bytes([batch(3 * index) for index in range(count)])
        data = bytearray(segment.data)
        if name == corrupt:
            byte = {"shorter": segment.position(9) + 24, "longer": segment.position(count - 10) + 9}[name]
            data[byte] ^= 0x40
        segment.write(tmp_path / name / "orders-0", bytes(data))
    found = offsets([tmp_path / "shorter", tmp_path / "longer"], "skip", replicas="longest")
    assert len(found) >= 87


@pytest.mark.parametrize("tail", [bytes(10), batch(90)[:5], batch(90)[:40]], ids=["zeros", "5 bytes", "40 bytes"])
@pytest.mark.parametrize("shape", ["v0-none", "v1-none"])
def test_a_short_tail_of_a_buffer_hides_no_good_message(shape: str, tail: bytes) -> None:
    segment = segment_of(shape, 20)
    place = segment.position(3) + 30
    data = segment.data[:place] + b"Z" + segment.data[place:] + tail
    assert offsets(data, "skip") == segment.offsets(3)


def test_a_batch_that_was_not_written_completely_is_truncated(tmp_path: Path) -> None:
    """The other side: a torn write is the end of a log, whatever its value looks like."""
    values = [bytes(2000), b"\xff" * 2000, b"text " * 400, batch(9)[:70] * 20]
    for number, value in enumerate(values):
        whole = [batch(0, 2), batch(2)]
        torn = batch(5, 1, value=value)
        for cut in (1, 20, 61, 75, 500, len(torn) - 1):
            data = b"".join([*whole, torn[:cut]])
            partition = Bytes(whole).write(tmp_path / f"orders-{number}{cut}", data)
            assert offsets(partition) == [0, 1, 2, 3, 4]
            with kbat.LogWriter(partition) as writer:
                assert (writer.end_offset, writer.truncated_bytes) == (5, cut)
