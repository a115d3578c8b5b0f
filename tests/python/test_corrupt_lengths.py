"""Lengths and offsets with a flipped bit, which no checksum covers: other batches are neither lost nor trusted."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from data import build
from reliability_logs import batch, offsets, segment_of

if TYPE_CHECKING:
    from pathlib import Path

SEGMENT = "00000000000000000000.log"


def plain(base_offset: int, count: int, size: int = 50) -> bytes:
    return build(records=[(1, b"k", bytes(size))] * count, base_offset=base_offset)


def aborted(first_offset: int) -> bytes:
    """Three records of an aborted transaction and its marker."""
    builder = kbat.BatchBuilder(
        base_offset=first_offset, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    for _ in range(3):
        builder.append(b"k", b"v" * 50, timestamp=1)
    marker = kbat.end_transaction_marker(
        producer_id=7, producer_epoch=0, commit=False, timestamp=1, base_offset=first_offset + 3
    )
    return bytes(builder.finish()) + bytes(marker)


def with_long_batch(batch: bytes) -> bytes:
    """The batch, with a length that leads past the end of every file."""
    return batch[:8] + b"\x7f" + batch[9:]


@pytest.mark.parametrize("layout", ["buffer", "file", "segment", "with a later segment"])
@pytest.mark.parametrize("on_corrupt", ["skip", "report"])
def test_an_aborted_transaction_behind_a_corrupt_length_stays_aborted(
    layout: str,
    on_corrupt: Any,  # noqa: ANN401 -- one of two literals
    tmp_path: Path,
) -> None:
    content = plain(0, 3) + with_long_batch(plain(3, 3)) + aborted(6) + plain(10, 2)
    expected = [0, 1, 2, 10, 11]
    source: Any = content
    if layout == "file":
        source = tmp_path / "batches.bin"
        source.write_bytes(content)
    elif layout != "buffer":
        source = tmp_path / "orders-0"
        source.mkdir()
        (source / SEGMENT).write_bytes(content)
        if layout == "with a later segment":
            (source / "00000000000000000012.log").write_bytes(plain(12, 2))
            expected += [12, 13]
    scan = kbat.scan(source, columns=["offset"], isolation="read_committed", on_corrupt=on_corrupt)
    assert [row for row in scan.to_pyarrow()["offset"].to_pylist() if row is not None] == expected
    if layout == "segment":
        log = kbat.PartitionLog(source)
        assert log.last_stable_offset == 12
        assert [one.producer_id for one in log.aborted_transactions(0, 12)] == [7]


@pytest.mark.parametrize("columns", [None, ["base_offset", "crc_ok"], ["base_offset", "uncompressed_size"]])
def test_the_view_of_batches_omits_no_good_batch_after_a_corrupt_length(
    columns: list[str] | None, tmp_path: Path
) -> None:
    path = tmp_path / "orders-0" / SEGMENT
    path.parent.mkdir()
    chance = random.Random(1)  # noqa: S311 -- damage, no secret
    for _ in range(100):
        batches = [plain(5 * index, 5, chance.choice([20, 300, 2000])) for index in range(8)]
        damaged = chance.randrange(7)
        content = bytearray(b"".join(batches))
        content[sum(map(len, batches[:damaged])) + 8 + chance.randrange(4)] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        scan = kbat.scan(path, view="batches", columns=columns, on_corrupt="skip")
        found = scan.to_pyarrow()["base_offset"].to_pylist()
        assert [5 * index for index in range(8) if index != damaged] == [one for one in found if one != 5 * damaged]
        with pytest.raises(kbat.KbatError):
            kbat.scan(path, view="batches", columns=columns).to_pyarrow()


def test_a_corrupt_payload_is_a_row_of_the_view_of_batches(tmp_path: Path) -> None:
    path = tmp_path / "orders-0" / SEGMENT
    path.parent.mkdir()
    batches = [bytearray(plain(5 * index, 5)) for index in range(3)]
    batches[1][-1] ^= 1
    path.write_bytes(b"".join(batches))
    rows = kbat.scan(path, view="batches", columns=["base_offset", "crc_ok"]).to_pyarrow().to_pydict()
    assert rows == {"base_offset": [0, 5, 10], "crc_ok": [True, False, True]}
    batches[1][-1] ^= 1
    batches[2][-1] ^= 1
    for tail in (b"", bytes(5000)):
        path.write_bytes(b"".join(batches) + tail)
        rows = kbat.scan(path, view="batches", columns=["base_offset", "crc_ok"]).to_pyarrow().to_pydict()
        assert rows == {"base_offset": [0, 5, 10], "crc_ok": [True, True, False]}


@pytest.mark.parametrize("on_corrupt", ["fail", "skip"])
@pytest.mark.parametrize("bit", [1, 31])
@pytest.mark.parametrize("index", [0, 4, 8])
def test_a_scan_returns_a_wrong_offset_that_verify_reports(
    index: int,
    bit: int,
    on_corrupt: Any,  # noqa: ANN401 -- one of two literals
    tmp_path: Path,
) -> None:
    segment = segment_of("v2-none")
    partition = segment.write(tmp_path / "orders-0", segment.flipped(index, bit))
    expected = segment.offsets()
    for offset in range(3 * index, 3 * index + 3):
        expected[offset] += 1 << 63 - bit
    assert offsets(partition, on_corrupt) == expected
    found = {finding.kind for finding in kbat.verify(partition).findings if finding.severity == "error"}
    assert "offset_overflow" in found


@pytest.mark.parametrize("is_file", [True, False])
@pytest.mark.parametrize("size", [0, 13])
def test_a_size_that_is_too_small_at_the_end_is_an_error(size: int, is_file: bool, tmp_path: Path) -> None:  # noqa: FBT001 -- a parameter
    segment = segment_of("v2-none")
    header = batch(27)[:8] + size.to_bytes(4, "big") + b"\x01" * 5
    for count in (1, 11, 12, 17):
        data = segment.data + header[:count]
        source = segment.write(tmp_path / "orders-0", data) if is_file else data
        if count < 12:
            assert offsets(source) == segment.offsets()
        else:
            with pytest.raises(kbat.CorruptError) as raised:
                offsets(source)
            assert (raised.value.kind, raised.value.position) == ("batch_length", len(segment.data) + 8)


@pytest.mark.parametrize("name", [SEGMENT, f"orders-0-{SEGMENT}", "copy.bin"])
@pytest.mark.parametrize("shape", ["v2-none", "v2-zstd", "v1-none", "v0-snappy"])
def test_a_file_of_any_name_does_not_end_silently_before_a_good_batch(shape: str, name: str, tmp_path: Path) -> None:
    segment = segment_of(shape)
    data = bytearray(segment.data)
    data[segment.position(4) + 9] ^= 0x40
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(kbat.TruncatedError) as raised:
        offsets(path)
    assert (raised.value.kind, raised.value.position) == ("cut_batch", segment.position(4))
    # a file may end inside a batch
    path.write_bytes(segment.data[: segment.position(5) + 40])
    assert offsets(path) == segment.offsets(5, 6, 7, 8)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_lost_bytes_before_a_range_never_hide_its_records(magic: int, tmp_path: Path) -> None:
    """The bytes that follow look like headers of later batches, with which a range would end."""
    batches = [
        build(magic=magic, records=[(-1 if magic == 0 else 1, b"k", b'{"n": null}' + bytes(30))], base_offset=offset)
        for offset in range(20)
    ]
    start = sum(map(len, batches[:3]))
    path = tmp_path / "t-0" / SEGMENT
    path.parent.mkdir()
    errors = 0
    for first in range(0, len(batches[3]), 2):
        for count in range(1, len(batches[3]) - first, 3):
            data = b"".join(batches)
            path.write_bytes(data[: start + first] + data[start + first + count :])
            for begin in (None, 10):
                scan = kbat.scan(path.parent, columns=["offset"], start_offset=begin, end_offset=15)
                try:
                    rows = scan.to_pyarrow()["offset"].to_pylist()
                except kbat.KbatError:
                    errors += 1
                else:
                    assert rows == list(range(begin or 0, 15)), (first, count)
    assert errors > 0
