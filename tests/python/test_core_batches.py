"""`kbat.read_batches`: framing, batches, records and headers as a Python program sees them."""

from __future__ import annotations

import array
import gc
import itertools
import os
import zlib
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from data import DATA, build, patched, plain, records_of, varint, with_right_crc

if TYPE_CHECKING:
    from pathlib import Path

THREE = [(100, b"a", b"1"), (101, None, b""), (102, b"", None)]
BATCH = build(THREE, base_offset=7)
NEXT = build([(200, b"next", b"batch")], base_offset=10)
SEGMENT = DATA / "corpus/txn-simple/00000000000000000000.log"

LENGTH_AT, MAGIC_AT, ATTRIBUTES_AT, MAX_TIMESTAMP_AT, COUNT_AT = 8, 16, 21, 35, 57


def v2_record(body: bytes) -> bytes:
    """Frame a record of less than 64 bytes."""
    return bytes([2 * len(body)]) + body


def v2_batch(*bodies: bytes, count: int | None = None, **settings: Any) -> bytes:  # noqa: ANN401 -- of BatchBuilder
    """Build a batch with hand-made record bodies, its checksum right."""
    data = bytearray(build([(0, None, None)], **settings)[:61]) + b"".join(map(v2_record, bodies))
    data = patched(data, LENGTH_AT, ">i", len(data) - 12)
    data = patched(data, COUNT_AT, ">i", len(bodies) if count is None else count)
    return bytes(with_right_crc(data))


@pytest.mark.parametrize("length", [0, *range(1, 12), 12, 16, 17, 60, 61, len(BATCH) - 1])
def test_read_less_than_a_batch_is_the_remainder(length: int) -> None:
    """Edge case 1."""
    walk = kbat.read_batches(BATCH[:length])
    assert list(walk) == []
    assert walk.remainder == BATCH[:length]
    assert walk.position == 0


def test_read_zeros_after_a_batch_are_the_remainder() -> None:
    """Edge case 2."""
    walk = kbat.read_batches(BATCH + bytes(4))
    assert len(list(walk)) == 1
    assert walk.remainder == bytes(4)
    assert walk.position == len(BATCH)


def test_read_truncated_anywhere_keeps_the_batches_before(tmp_path: Path) -> None:
    """Edge case 3, from memory and from a file."""
    path = tmp_path / "0.log"
    for length in range(len(BATCH), len(BATCH + NEXT)):
        data = (BATCH + NEXT)[:length]
        path.write_bytes(data)
        for source in (data, path):
            walk = kbat.read_batches(source)
            assert [batch.base_offset for batch in walk] == [7]
            assert walk.position == len(BATCH)
            assert walk.remainder == data[len(BATCH) :]


@pytest.mark.parametrize("length", [-(2**31), -13, -12, -1, 0, 13, 14, 48, 2**31 - 1])
def test_read_impossible_length_raises_at_its_place(length: int) -> None:
    """Edge cases 4 and 5: the batch before is returned, the error names the field, and the iteration ends."""
    walk = kbat.read_batches(bytes(BATCH + patched(NEXT, LENGTH_AT, ">i", length)))
    assert next(walk).base_offset == 7
    with pytest.raises(kbat.CorruptError, match=f"batch length {length} ") as raised:
        next(walk)
    assert raised.value.kind == "batch_length"
    assert raised.value.field == "batch_length"
    assert raised.value.position == len(BATCH) + LENGTH_AT
    assert raised.value.base_offset == 10
    assert list(walk) == []


@pytest.mark.parametrize("length", [len(NEXT) - 12 + 1, 2**20])
def test_read_length_past_the_end_is_a_partial_batch(length: int) -> None:
    """Edge case 4."""
    data = bytes(patched(NEXT, LENGTH_AT, ">i", length))
    walk = kbat.read_batches(data)
    assert list(walk) == []
    assert walk.remainder == data


@pytest.mark.parametrize("magic", [3, 127, -1])
@pytest.mark.parametrize("from_file", [False, True])
def test_read_unknown_magic_can_be_skipped(magic: int, from_file: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """Edge case 6."""
    data = bytes(BATCH + patched(BATCH, MAGIC_AT, ">b", magic) + NEXT)
    path = tmp_path / "0.log"
    path.write_bytes(data)
    walk = kbat.read_batches(path if from_file else data)
    assert not walk.skip_batch(), "nothing failed"
    assert next(walk).base_offset == 7
    with pytest.raises(kbat.UnsupportedError, match=f"magic {magic} ") as raised:
        next(walk)
    assert raised.value.position == len(BATCH) + MAGIC_AT
    assert raised.value.path == (str(path) if from_file else None)
    assert walk.position == len(BATCH)
    assert walk.skip_batch()
    assert [batch.base_offset for batch in walk] == [10]
    assert walk.remainder == b""


@pytest.mark.parametrize("length", [-1, 0, 2**31 - 1])
def test_skip_batch_refuses_a_size_that_cannot_be(length: int) -> None:
    walk = kbat.read_batches(bytes(patched(NEXT, LENGTH_AT, ">i", length)))
    with pytest.raises(kbat.CorruptError):
        next(walk)
    assert not walk.skip_batch()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_read_magics_in_any_order(order: tuple[int, ...]) -> None:
    """Edge case 7."""
    data = b"".join(build([(5, b"k", b"%d" % magic)], magic=magic) for magic in order)
    batches = list(kbat.read_batches(data))
    assert [batch.magic for batch in batches] == list(order)
    assert [record.value for batch in batches for record in batch] == [b"%d" % magic for magic in order]


def test_read_zeros_up_to_the_end_are_a_clean_end() -> None:
    """Edge case 11."""
    walk = kbat.read_batches(BATCH + bytes(5000))
    assert [batch.base_offset for batch in walk] == [7]
    assert walk.remainder == bytes(5000)


def test_read_zeros_in_the_middle_raise() -> None:
    """Edge case 12."""
    walk = kbat.read_batches(BATCH + bytes(5000) + NEXT)
    assert next(walk).base_offset == 7
    with pytest.raises(kbat.CorruptError) as raised:
        next(walk)
    assert raised.value.position == len(BATCH) + LENGTH_AT


@pytest.mark.parametrize("count", [-1, -5, -(2**31)])
def test_record_count_negative_raises(count: int) -> None:
    """Edge case 13."""
    [batch] = kbat.read_batches(bytes(with_right_crc(patched(BATCH, COUNT_AT, ">i", count))))
    assert batch.record_count == count
    with pytest.raises(kbat.CorruptError) as raised:
        list(batch)
    assert (raised.value.field, raised.value.position) == ("record_count", COUNT_AT)


@pytest.mark.parametrize("count", [4, 1000, 2**31 - 1])
def test_record_count_too_high_gives_the_records_then_raises(count: int) -> None:
    """Edge case 13: no memory is taken for records that are only declared."""
    [batch] = kbat.read_batches(bytes(with_right_crc(patched(BATCH, COUNT_AT, ">i", count))))
    records = iter(batch)
    assert [next(records).offset for _ in range(3)] == [7, 8, 9]
    with pytest.raises(kbat.TruncatedError, match=f"declares a record count of {count}, but its bytes end after 3"):
        next(records)
    assert list(records) == [], "an iterator that has failed is at its end"


def test_record_count_too_low_raises() -> None:
    """Edge cases 13 and 32."""
    [batch] = kbat.read_batches(bytes(with_right_crc(patched(BATCH, COUNT_AT, ">i", 2))))
    with pytest.raises(kbat.CorruptError) as raised:
        list(batch)
    assert raised.value.kind == "trailing_bytes"


def test_record_count_without_bytes_raises() -> None:
    """Edge case 14."""
    [batch] = kbat.read_batches(v2_batch(count=1))
    assert (batch.size, batch.record_count) == (61, 1)
    with pytest.raises(kbat.TruncatedError):
        list(batch)


def test_empty_batch_keeps_its_offsets() -> None:
    """Edge case 15: the header of a batch that compaction emptied."""
    data = patched(v2_batch(base_offset=3), 23, ">i", 5)
    [batch] = kbat.read_batches(bytes(with_right_crc(data)))
    assert list(batch) == []
    assert (batch.record_count, batch.base_offset, batch.last_offset, batch.next_offset) == (0, 3, 8, 9)


@pytest.mark.parametrize("base_offset", [-1, 2**63 - 1, -(2**63)])
def test_base_offset_extremes_are_shown(base_offset: int) -> None:
    """Edge case 17: sums of offsets wrap as Java's do."""
    [batch] = kbat.read_batches(bytes(patched(BATCH, 0, ">q", base_offset)))
    wrapped = [(base_offset + delta + 2**63) % 2**64 - 2**63 for delta in range(3)]
    assert [record.offset for record in batch] == wrapped
    assert (batch.base_offset, batch.last_offset) == (base_offset, wrapped[-1])


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec_names_its_number(codec: int) -> None:
    """Edge case 18."""
    [batch] = kbat.read_batches(bytes(with_right_crc(patched(BATCH, ATTRIBUTES_AT, ">h", codec))))
    assert batch.attributes == codec
    assert "unknown codec" in repr(batch)
    with pytest.raises(kbat.UnsupportedError, match=f"codec {codec} ") as raised:
        list(batch)
    assert raised.value.position is not None
    with pytest.raises(kbat.UnsupportedError, match=f"codec {codec} "):
        _ = batch.compression


def test_attributes_unknown_bits_are_kept() -> None:
    """Edge case 18."""
    [batch] = kbat.read_batches(bytes(with_right_crc(patched(BATCH, ATTRIBUTES_AT, ">H", 0xFF80))))
    assert batch.attributes == 0xFF80
    assert len(list(batch)) == 3


@pytest.mark.parametrize("from_file", [False, True])
def test_check_crc_guards_the_records_of_that_batch_only(from_file: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """Edge case 21."""
    damaged = bytearray(BATCH)
    damaged[-1 - 7] ^= 1  # a bit of record 1's offset delta or value: the records parse
    data = bytes(damaged + NEXT)
    path = tmp_path / "0.log"
    path.write_bytes(data)
    first, second = kbat.read_batches(path if from_file else data)
    assert (first.crc_ok, second.crc_ok) == (False, True)
    with pytest.raises(kbat.CrcError, match="checksum mismatch") as raised:
        iter(first)
    assert raised.value.kind == "crc"
    assert raised.value.path == (str(path) if from_file else None)
    assert [record.key for record in second] == [b"next"]


def test_check_crc_off_reads_what_parses() -> None:
    """Edge case 21."""
    damaged = patched(BATCH, 17, ">I", 0)
    with pytest.raises(kbat.CrcError):
        records_of(bytes(damaged + NEXT))
    records = records_of(bytes(damaged + NEXT), check_crc=False)
    assert [record.offset for record in records] == [7, 8, 9, 10]


@pytest.mark.parametrize("magic", [0, 1])
def test_check_crc_covers_messages_inside_a_set(magic: int) -> None:
    """Edge case 59: a wrong checksum inside, a right one outside."""
    message = bytearray(build([(5, b"k", b"v")], magic=magic))
    message[-1] ^= 1
    raw_snappy = bytes([len(message), (len(message) - 1) << 2]) + message  # a length, then a literal
    wrapper = patched(build([(5, None, raw_snappy)], magic=magic), 17, ">b", 2)
    data = bytes(patched(wrapper, 12, ">I", zlib.crc32(wrapper[16:])))
    with pytest.raises(kbat.CrcError) as raised:
        records_of(data)
    assert raised.value.record == 0
    assert [record.value for record in records_of(data, check_crc=False)] == [bytes([ord("v") ^ 1])]


@pytest.mark.parametrize("delta", [2**31, -(2**31) - 1, 2_151_360_000, 2**62, -(2**62)])
def test_timestamp_delta_may_be_huge(delta: int) -> None:
    """Edge case 26."""
    data = v2_batch(b"\0" + varint(delta) + b"\0\1\1\0")
    assert records_of(data)[0].timestamp == delta


def test_timestamp_delta_past_i64_wraps_as_in_java() -> None:
    """Edge case 26."""
    data = patched(v2_batch(b"\0" + varint(2**63 - 1) + b"\0\1\1\0"), 27, ">q", 2)
    assert records_of(bytes(with_right_crc(data)))[0].timestamp == -(2**63) + 1


def test_timestamp_none_then_real() -> None:
    """Edge case 27: -1 is a value, and does not mean that the timestamp is not set."""
    data = build([(-1, b"a", None), (1700000000000, b"b", None), (-1, b"c", None)])
    assert [record.timestamp for record in records_of(data)] == [-1, 1700000000000, -1]


@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_log_append_time_is_every_records_timestamp(magic: int, compression: str) -> None:
    """Edge case 28."""
    records = [(5, b"a", None), (9_000_000_000_000, b"b", None)]
    settings = {"timestamp_type": "LogAppendTime", "log_append_time": 77}
    data = build(records, magic=magic, compression=compression, **settings)
    assert [record.timestamp for record in records_of(data)] == [77, 77]
    assert {record.timestamp_type for record in records_of(data)} == {"LogAppendTime"}
    assert {batch.max_timestamp for batch in kbat.read_batches(data)} == {77}


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_batch_iterates_any_number_of_times(compression: str) -> None:
    """Edge case 33."""
    [batch] = kbat.read_batches(build(THREE, compression=compression))
    first = [plain(record) for record in batch]
    assert [plain(record) for record in batch] == first
    one, two = iter(batch), iter(batch)
    interleaved = [record for pair in zip(one, two, strict=True) for record in pair]
    assert [record.offset for record in interleaved] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_records_outlive_batch_iterator_and_source(compression: str) -> None:
    """Edge case 33."""
    source = bytearray(build(THREE, compression=compression))
    [batch] = kbat.read_batches(source)
    records = iter(batch)
    kept = next(records)
    del batch
    source[:] = bytes(len(source))
    del source
    gc.collect()
    assert (kept.key, kept.value) == (b"a", b"1")
    assert [(record.key, record.value) for record in records] == [(None, b""), (b"", None)]


def test_source_mutated_after_the_call_changes_nothing() -> None:
    """Edge case 89: buffers other than `bytes` are copied by the call."""
    source = bytearray(BATCH + NEXT)
    walk = kbat.read_batches(source)
    source[:] = b"\xff" * 3
    assert [batch.base_offset for batch in walk] == [7, 10]


def test_file_that_is_gone_leaves_its_batches(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(BATCH)
    [batch] = kbat.read_batches(path)
    path.unlink()
    assert len(list(batch)) == 3


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, lambda data: array.array("B", data)])
def test_source_may_be_any_buffer(make: Any) -> None:  # noqa: ANN401 -- of four types
    assert [record.offset for record in records_of(make(BATCH))] == [7, 8, 9]


def test_source_may_be_a_buffer_with_gaps() -> None:
    """Edge case 72."""
    spread = bytes(byte for pair in zip(BATCH, BATCH, strict=True) for byte in pair)
    assert [batch.base_offset for batch in kbat.read_batches(memoryview(spread)[::2])] == [7]


@pytest.mark.parametrize("make", [str, os.fspath, lambda path: path])
def test_source_may_be_any_path(make: Any) -> None:  # noqa: ANN401 -- of three types
    assert [batch.base_offset for batch in kbat.read_batches(make(SEGMENT))] == [0]


@pytest.mark.parametrize("source", [None, 5, 1.5, [b"x"]])
def test_source_of_another_type_is_a_type_error(source: Any) -> None:  # noqa: ANN401 -- the wrong ones
    with pytest.raises(TypeError, match=type(source).__name__):
        kbat.read_batches(source)


def test_batch_bytes_are_those_of_the_source() -> None:
    assert b"".join(map(bytes, kbat.read_batches(BATCH + NEXT))) == BATCH + NEXT


def test_reprs_tell() -> None:
    walk = kbat.read_batches(BATCH)
    [batch] = walk
    assert repr(batch) == "Batch(offsets 7..9, 3 records, magic 2, none, 113 bytes at 0)".replace(
        "113", str(len(BATCH))
    )
    assert repr(next(iter(batch))) == "Record(offset=7, timestamp=100, key=b'a', value=b'1')"
    assert repr(walk) == f"BatchIterator(position={len(BATCH)})"
    long = records_of(build([(0, None, b"x" * 1000)]))[0]
    assert repr(long) == f"Record(offset=0, timestamp=0, key=None, value=b'{'x' * 40}'… (1000 bytes))"


@pytest.mark.parametrize("magic", [0, 1])
def test_key_of_a_compressed_set_is_ignored(magic: int) -> None:
    """format.md gotcha 16: only its messages have keys."""
    data = build([(1, b"k", b"v"), (2, None, b"w")], magic=magic, compression="gzip")
    place = 18 if magic == 0 else 26
    keyed = data[:place] + (6).to_bytes(4) + b"unused" + data[place + 4 :]
    keyed = bytes(patched(keyed, 8, ">i", len(keyed) - 12))
    keyed = bytes(patched(keyed, 12, ">I", zlib.crc32(keyed[16:])))
    assert [plain(record) for record in records_of(keyed)] == [plain(record) for record in records_of(data)]
