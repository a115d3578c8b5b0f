"""Lengths and offsets with a flipped bit, which no checksum covers: other batches are neither lost nor trusted."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import run
from data import build, patched
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


def log_of(tmp_path: Path, batches: list[bytes]) -> Path:
    """Write a partition directory with one segment and no index."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / SEGMENT).write_bytes(b"".join(batches))
    return directory


def with_hidden_batches(tmp_path: Path, *, until: int = 4) -> Path:
    """Five batches of three records each. The length of batch 1, with the offsets 3 to 5, leads to batch `until`."""
    batches = [build([(1000 + at, b"k", b"v")] * 3, base_offset=3 * at) for at in range(5)]
    batches[1] = bytes(patched(batches[1], 8, ">i", sum(map(len, batches[1:until])) - 12))
    return log_of(tmp_path, batches)


def test_lookups_pass_over_no_batches_that_a_corrupt_length_hides(tmp_path: Path) -> None:
    log = kbat.PartitionLog(with_hidden_batches(tmp_path))
    lookups: list[kbat.PartitionLog | kbat.Segment] = [log, log.segments[0]]
    for lookup in lookups:
        for offset in (6, 7, 11):
            with pytest.raises(kbat.CrcError, match="base offset 3,"):
                lookup.find_offset(offset)
        for timestamp in (1002, 1003, 1004):
            with pytest.raises(kbat.CrcError, match="base offset 3,"):
                lookup.find_timestamp(timestamp)
        found = [lookup.find_offset(offset) for offset in (2, 3, 12, 14)]
        assert [place and place.base_offset for place in found] == [0, 3, 12, 12]
    first = log.segments[0].find_timestamp(1000)
    assert first is not None
    assert first.offset == 0
    with pytest.raises(kbat.CrcError):
        log.find_timestamp(kbat.MAX_TIMESTAMP)
    with pytest.raises(kbat.CrcError):
        _ = log.segments[0].largest_timestamp


def test_lookups_pass_over_a_corrupt_payload_before_missing_offsets(tmp_path: Path) -> None:
    """As a broker does. The batch before has a wrong checksum, but its length leads past no other batch."""
    batches = [bytearray(build([(1000 + at, b"k", b"v")] * 3, base_offset=9 * at)) for at in range(4)]
    batches[1][-1] ^= 1
    (tmp_path / SEGMENT).write_bytes(b"".join(batches))
    segment = kbat.Segment(tmp_path / SEGMENT)
    place, found = segment.find_offset(13), segment.find_timestamp(1002)
    assert place is not None
    assert found is not None
    assert (place.base_offset, found.offset, segment.largest_timestamp) == (18, 18, 1003)


def test_lookups_pass_over_a_corrupt_payload_before_an_older_format(tmp_path: Path) -> None:
    """An intact message of v1 after it confirms the length of a v2 batch, as in a view of batches."""
    batches = [bytearray(build([(1000 + at, b"k", b"v")] * 3, base_offset=3 * at)) for at in range(2)]
    batches[1][-1] ^= 1
    messages = [build([(1002 + at, b"k", b"v")], base_offset=9 + at, magic=1) for at in range(2)]
    directory = log_of(tmp_path, [*map(bytes, batches), *messages])
    place, found = (kbat.Segment(directory / SEGMENT).find_offset(7), kbat.PartitionLog(directory).find_timestamp(1002))
    assert place is not None
    assert found is not None
    assert (place.base_offset, found.offset) == (9, 9)
    view = kbat.scan(directory, view="batches", columns=["last_offset"]).to_pyarrow()
    assert view["last_offset"].to_pylist() == [2, 5, 9, 10]


@pytest.mark.parametrize("arguments", [["--start-offset", "7"], ["--start-time", "1970-01-01T00:00:01.002Z"]])
def test_a_copy_begins_at_no_later_batch_than_its_range(arguments: list[str], tmp_path: Path) -> None:
    done = run("copy", with_hidden_batches(tmp_path), tmp_path / "copy", *arguments)
    assert done.exit_code == 1
    assert "base offset 3," in done.stderr
    assert not (tmp_path / "copy").exists()
    done = run("lookup", tmp_path / "orders-0", *[argument.replace("start-", "") for argument in arguments])
    assert done.exit_code == 1
    assert "base offset 3," in done.stderr


@pytest.mark.parametrize("until", [2, 3, 4, 5])
def test_the_view_of_batches_notices_every_hidden_batch(until: int, tmp_path: Path) -> None:
    """A length that leads to the end of the file hides batches, too."""
    path = with_hidden_batches(tmp_path, until=until)
    columns = ["base_offset", "record_count"]
    found = kbat.scan(path, view="batches", columns=columns, on_corrupt="skip").to_pyarrow()["base_offset"].to_pylist()
    if until == 2:
        assert found == [0, 3, 6, 9, 12]
        return
    assert found == [0, 6, 9, 12]
    with pytest.raises(kbat.CrcError, match="base offset 3,"):
        kbat.scan(path, view="batches", columns=columns).to_pyarrow()


def test_batches_before_missing_offsets_are_read_once(tmp_path: Path) -> None:
    """A scan with bounds by time verifies every batch next to a gap."""
    batches = [build([(1000 + at, None, bytes(5000))], base_offset=2 * at) for at in range(500)]
    path = log_of(tmp_path, batches) / SEGMENT
    scan = kbat.scan(path, columns=["offset"], start_timestamp=1499)
    assert scan.to_pyarrow()["offset"].to_pylist() == [998]
    assert scan.stats is not None
    assert scan.stats.bytes_read < 1.1 * path.stat().st_size


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_lookup_finds_nothing_in_bytes_that_only_look_like_a_header(tmp_path: Path, *, is_followed: bool) -> None:
    """A length that is 4 bytes too small: the last 4 bytes and the next batch's header are a header of v0."""
    records = [(1000, b"k", b"value")] * 3
    batches = [build(records, base_offset=30 * at, partition_leader_epoch=0) for at in range(5)]
    if not is_followed:
        batches[2:] = [batches[2][:-1] + b"\x7f"]  # the only batch after it has a wrong checksum
    batches[1] = bytes(patched(batches[1], 8, ">i", len(batches[1]) - 16))
    directory = log_of(tmp_path, batches)
    after = b"".join(batches)[len(batches[0]) + len(batches[1]) - 4 :]
    assert next(iter(kbat.read_batches(after, check_crc=False))).magic == 0
    log = kbat.PartitionLog(directory)
    for offset in (33, 60, 62, 122, 1 << 40):
        with pytest.raises(kbat.CorruptError):
            log.find_offset(offset)
    with pytest.raises(kbat.CorruptError):
        kbat.scan(directory, view="batches").to_pyarrow()
    scan = kbat.scan(directory, view="batches", columns=["base_offset"], on_corrupt="skip")
    assert scan.to_pyarrow()["base_offset"].to_pylist() == ([0, 60, 90, 120] if is_followed else [0])
    assert scan.stats is not None
    assert scan.stats.bytes_lost >= len(batches[1])


@pytest.mark.parametrize("damages_next", [False, True])
def test_a_message_set_with_a_corrupt_length_hides_no_other(tmp_path: Path, *, damages_next: bool) -> None:
    """Compressed sets of v1; a wrong length leads past two of them, the first of which may be corrupt, too."""
    chance = random.Random(1)  # noqa: S311 -- damage, no secret
    values = [(1000, b"k", chance.randbytes(60)) for _ in range(3)]
    batches = [build(values, magic=1, compression="lz4", base_offset=3 * at) for at in range(6)]
    sizes = sum(map(len, batches[1:4]))
    batches[1] = bytes(patched(batches[1], 8, ">i", sizes - 12))
    if damages_next:
        batches[2] = batches[2][:-3] + bytes([batches[2][-3] ^ 1]) + batches[2][-2:]
    directory = log_of(tmp_path, batches)
    with pytest.raises(kbat.CorruptError):
        kbat.PartitionLog(directory).find_offset(7)
    with pytest.raises(kbat.CorruptError):
        kbat.scan(directory, view="batches", columns=["last_offset"]).to_pyarrow()
    scan = kbat.scan(directory, view="batches", columns=["last_offset"], on_corrupt="skip")
    found = scan.to_pyarrow()["last_offset"].to_pylist()
    assert {2, 14, 17} <= set(found)
    assert scan.stats is not None
    assert scan.stats.bytes_lost > 0


@pytest.mark.parametrize("view", ["records", "batches"])
@pytest.mark.parametrize("on_corrupt", ["fail", "skip"])
def test_a_batch_that_is_completed_during_a_scan_is_no_corruption(view: Any, on_corrupt: Any, tmp_path: Path) -> None:  # noqa: ANN401 -- literals
    batches = [plain(3 * at, 3, 500) for at in range(600)]
    path = log_of(tmp_path, [*batches[:-3], batches[-3][:500]]) / SEGMENT
    column = "offset" if view == "records" else "base_offset"
    scan = kbat.scan(path.parent, view=view, columns=[column], on_corrupt=on_corrupt, max_rows=50, max_bytes=1000)
    rows = iter(scan.to_batches())
    count = next(rows).num_rows
    with path.open("ab") as file:
        file.write(b"".join([batches[-3][500:], *batches[-2:]]))
    count += sum(batch.num_rows for batch in rows)
    assert count == (597 * 3 if view == "records" else 597)
    assert scan.stats is None or scan.stats.bytes_lost == 0


def test_skipping_counts_no_incomplete_batch_after_the_range(tmp_path: Path) -> None:
    path = log_of(tmp_path, [plain(0, 3), plain(9, 3)[:100]]) / SEGMENT
    for end_offset, lost in ((9, 0), (10, 100), (None, 100)):
        scan = kbat.scan(path, columns=["offset"], on_corrupt="skip", end_offset=end_offset)
        assert scan.to_pyarrow()["offset"].to_pylist() == [0, 1, 2]
        assert scan.stats is not None
        assert scan.stats.bytes_lost == lost
