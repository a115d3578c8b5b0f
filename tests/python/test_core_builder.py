"""`kbat.BatchBuilder`, size arithmetic and the edits in place."""

from __future__ import annotations

import array
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import kbat
from data import DATA, build, patched, plain, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator

CODECS: list[Any] = ["none", "gzip", "snappy", "lz4", "zstd"]
LEVELS = [("gzip", 1), ("gzip", 9), ("lz4", 1), ("lz4", 9), ("lz4", 17), ("zstd", -131072), ("zstd", 1), ("zstd", 22)]


class Int(int):
    """A subclass of int, as an enum or a numpy-like type may be."""


def appended(key: Any, value: Any = None, **arguments: Any) -> kbat.Record:  # noqa: ANN401 -- also wrong ones
    """The only record of a batch, after a round trip."""
    builder = kbat.BatchBuilder()
    builder.append(key, value, **{"timestamp": 0, **arguments})
    [record] = records_of(builder.finish())
    return record


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_round_trip_gives_the_records_back(magic: int, codec: str) -> None:
    """Edge case 30: null, empty and longer keys and values, in every format and codec."""
    if magic < 2 and codec == "zstd":
        with pytest.raises(ValueError, match="zstd compression is not supported for magic"):
            kbat.BatchBuilder(magic, "zstd")
        return
    lengths = [None, 0, 1, 63, 64, 127, 128, 8191, 8192, 16383, 16384, 100_000]
    data = [None if length is None else bytes(length) for length in lengths]
    records = [(1000 + index, data[index], data[-1 - index]) for index in range(len(data))]
    batch = build(records, magic=magic, compression=codec, base_offset=50)
    found = [(record.timestamp, record.key, record.value) for record in records_of(batch)]
    assert found == [(timestamp if magic else -1, key, value) for timestamp, key, value in records]
    assert [record.offset for record in records_of(batch)] == list(range(50, 50 + len(data)))


@pytest.mark.parametrize(("codec", "level"), LEVELS)
def test_every_level_reads_back(codec: Any, level: int) -> None:  # noqa: ANN401 -- of a literal type
    records = [(0, b"key", b"%d" % (index // 3) * 20) for index in range(300)]
    data = build(records, compression=codec, level=level)
    assert [record.value for record in records_of(data)] == [value for _, _, value in records]
    assert len(data) < kbat.batch_size(records) or level == -131072, "the lowest level gives up"


@pytest.mark.parametrize(("codec", "level"), [("gzip", 0), ("gzip", 10), ("lz4", 0), ("lz4", 18), ("zstd", 23)])
def test_level_outside_the_codecs_range_is_refused(codec: Any, level: int) -> None:  # noqa: ANN401 -- of a literal type
    with pytest.raises(ValueError, match=f"{codec} compression has levels .*, not {level}"):
        kbat.BatchBuilder(compression=codec, level=level)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"magic": 3}, "magic 3"),
        ({"magic": -1}, "magic -1"),
        ({"compression": "brotli"}, "brotli"),
        ({"compression": "snappy", "level": 1}, "snappy compression has no levels"),
        ({"timestamp_type": "createtime"}, "createtime"),
        ({"log_append_time": 5}, "LogAppendTime"),
        ({"magic": 1, "transactional": True}, "transactional records are not supported for magic 1"),
        ({"magic": 0, "control": True}, "control records are not supported for magic 0"),
        ({"magic": 1, "delete_horizon_ms": 5}, "delete horizon"),
        ({"delete_horizon_ms": -5}, "delete horizon"),
    ],
)
def test_settings_that_kafka_forbids_are_refused_at_once(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kbat.BatchBuilder(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"producer_id": 5, "base_sequence": 0}, "producer epoch"),
        ({"producer_id": 5, "producer_epoch": 0}, "base sequence"),
        ({"transactional": True}, "producer id"),
        ({"magic": 1, "producer_id": 5, "producer_epoch": 0, "base_sequence": 0}, "magic 1"),
    ],
)
def test_producer_settings_that_kafka_forbids_are_refused(settings: dict[str, Any], message: str) -> None:
    """Edge case 74."""
    with pytest.raises(ValueError, match=message):
        build(**settings)


def test_producer_fields_are_written() -> None:
    settings = {"producer_id": 2**62, "producer_epoch": 32767, "base_sequence": 2**31 - 1, "transactional": True}
    data = build([(0, b"a", None), (0, b"b", None)], partition_leader_epoch=9, **settings)
    [batch] = kbat.read_batches(data)
    assert (batch.producer_id, batch.producer_epoch, batch.partition_leader_epoch) == (2**62, 32767, 9)
    assert (batch.base_sequence, batch.last_sequence) == (2**31 - 1, 0)
    assert [record.sequence for record in batch] == [2**31 - 1, 0]


def test_delete_horizon_is_stored_and_timestamps_stay() -> None:
    """Edge case 19."""
    [batch] = kbat.read_batches(build([(500, b"a", None), (400, b"b", None)], delete_horizon_ms=10_000))
    assert (batch.delete_horizon_ms, batch.base_timestamp, batch.max_timestamp) == (10_000, 10_000, 500)
    assert [record.timestamp for record in batch] == [500, 400]


def test_last_offset_may_be_set_as_compaction_does() -> None:
    [batch] = kbat.read_batches(build(base_offset=5, last_offset=9))
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (5, 9, 1)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("length", [0, 100, 10_000])
def test_size_is_exact_or_a_bound(codec: Any, length: int) -> None:  # noqa: ANN401 -- of a literal type
    """Edge cases 70 and 76: a producer checks the size before each append to fill a batch up to a limit."""
    records = [(index, b"key", bytes(range(256)) * (length // 256)) for index in range(5)]
    builder = kbat.BatchBuilder(compression=codec)
    assert (builder.size, builder.record_count) == (0, 0)
    sizes = []
    for timestamp, key, value in records:
        builder.append(key, value, timestamp=timestamp, headers=[("h", b"v")])
        sizes.append(builder.size)
    most = builder.estimated_size
    assert sizes == sorted(set(sizes))
    assert kbat.batch_size([(*record, [("h", b"v")]) for record in records], compression=codec) == most
    data = builder.finish()
    assert len(data) <= most
    if codec == "none":
        assert len(data) == sizes[-1] == most


def test_estimate_holds_for_data_that_does_not_compress() -> None:
    """Edge case 76."""
    noise = (DATA / "corpus/codec-zstd/00000000000000000000.log").read_bytes()
    for codec in CODECS:
        records = [(0, None, noise[start : start + 1000]) for start in range(0, len(noise), 1000)]
        assert len(build(records, compression=codec)) <= kbat.batch_size(records, compression=codec)


def test_finish_without_records_gives_no_bytes() -> None:
    assert kbat.BatchBuilder().finish() == b""
    assert kbat.batch_size([]) == 0


def test_builder_is_closed_after_finish() -> None:
    """Edge case 71."""
    builder = kbat.BatchBuilder()
    builder.append(b"k", b"v", timestamp=0)
    builder.finish()
    with pytest.raises(ValueError, match="finished"):
        builder.append(b"k", b"v", timestamp=0)
    with pytest.raises(ValueError, match="finished"):
        builder.finish()
    with pytest.raises(ValueError, match="finished"):
        _ = builder.size


BAD_APPENDS: list[tuple[tuple[Any, Any], dict[str, Any], type[Exception]]] = [
    (("str", b""), {}, TypeError),
    ((b"", "str"), {}, TypeError),
    ((5, b""), {}, TypeError),
    ((b"", [1]), {}, TypeError),
    ((b"", b""), {"timestamp": 1.0}, TypeError),
    ((b"", b""), {"timestamp": "1"}, TypeError),
    ((b"", b""), {"timestamp": None}, TypeError),
    ((b"", b""), {"timestamp": -2}, ValueError),
    ((b"", b""), {"timestamp": 2**63}, OverflowError),
    ((b"", b""), {"offset": 1.0}, TypeError),
    ((b"", b""), {"headers": [("key", "str")]}, TypeError),
    ((b"", b""), {"headers": [(None, b"")]}, TypeError),
    ((b"", b""), {"headers": [("key", b"", b"")]}, ValueError),
    ((b"", b""), {"headers": 5}, TypeError),
    ((b"", b""), {"headers": [("\ud800", b"")]}, UnicodeEncodeError),
    ((b"", b""), {"offset": 9}, ValueError),
    ((b"", b""), {"offset": 10}, ValueError),
    ((b"", b""), {"offset": 10 + 2**31}, ValueError),
]


@pytest.mark.parametrize(("record", "arguments", "error"), BAD_APPENDS)
def test_failed_append_leaves_the_builder_as_it_was(
    record: tuple[Any, Any], arguments: dict[str, Any], error: type[Exception]
) -> None:
    """Edge cases 71, 72 and 73."""
    builder, twin = kbat.BatchBuilder(base_offset=10), kbat.BatchBuilder(base_offset=10)
    for one in (builder, twin):
        one.append(b"first", b"1", timestamp=5, headers=[("h", None)])
    with pytest.raises(error):
        builder.append(*record, **{"timestamp": 6, **arguments})
    assert (builder.record_count, builder.size) == (1, twin.size)
    for one in (builder, twin):
        one.append(b"second", b"2", timestamp=7)
    assert builder.finish() == twin.finish()


def test_headers_below_magic_2_are_refused() -> None:
    for magic in (0, 1):
        builder = kbat.BatchBuilder(magic)
        with pytest.raises(ValueError, match=f"headers are not supported for magic {magic}"):
            builder.append(b"", b"", timestamp=0, headers=[("a", b"")])
        builder.append(b"", b"", timestamp=0, headers=[])
        assert builder.record_count == 1


@pytest.mark.parametrize("number", [True, Int(7)])
def test_numbers_may_be_bool_or_a_subclass_of_int(number: int) -> None:
    """Edge case 72: both are int to Python."""
    record = appended(b"", timestamp=number, offset=number)
    assert (record.timestamp, record.offset) == (int(number), int(number))


@pytest.mark.parametrize(
    ("made", "stored"),
    [
        (bytearray(b"abc"), b"abc"),
        (memoryview(b"abcdef")[::2], b"ace"),
        (memoryview(b"abcdef")[::-1], b"fedcba"),
        (memoryview(b"abcdef").cast("B", (2, 3)), b"abcdef"),
        (memoryview(b"abcd").cast("c"), b"abcd"),
        (memoryview(b"abcd").cast("H"), b"abcd"),
        (array.array("i", [1, -1]), array.array("i", [1, -1]).tobytes()),
        (memoryview(array.array("i", [1, 2, 3]))[::2], array.array("i", [1, 3]).tobytes()),
        (array.array("d", [0.5]), array.array("d", [0.5]).tobytes()),
        (memoryview(b""), b""),
    ],
)
def test_any_buffer_is_stored_as_its_bytes(made: Any, stored: bytes) -> None:  # noqa: ANN401 -- of many types
    """Edge case 72: memory with gaps, and items larger than a byte."""
    record = appended(made, made, headers=[("h", made)])
    assert (record.key, record.value, record.headers) == (stored, stored, [("h", stored)])
    key_bytes = appended(b"", headers=[(made, None)]).raw_headers
    assert key_bytes == [(stored, None)]


def test_bytearray_resized_while_append_runs_is_stored_whole() -> None:
    """Edge case 72: the header iterator changes key and value under the hands of `append`."""
    key, value = bytearray(b"key"), bytearray(b"value")

    def headers() -> Iterator[tuple[str, bytes]]:
        yield "a", b"1"
        key.extend(b"x" * 100_000)
        value.clear()
        yield "b", b"2"

    record = appended(key, value, headers=headers())
    assert (record.key, record.value) == (b"key" + b"x" * 100_000, b"")
    assert record.headers == [("a", b"1"), ("b", b"2")]


def test_bytearray_changed_after_append_changes_nothing() -> None:
    """Edge case 89: and it is not locked."""
    key = bytearray(b"key")
    builder = kbat.BatchBuilder()
    builder.append(key, None, timestamp=0)
    key[:] = b"other, and longer"
    assert records_of(builder.finish())[0].key == b"key"


def test_headers_that_fail_halfway_leave_the_builder_as_it_was() -> None:
    """Edge case 71."""
    builder = kbat.BatchBuilder()

    def headers() -> Iterator[tuple[str, bytes]]:
        yield "a", b"1"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        builder.append(b"", b"", timestamp=0, headers=headers())
    assert builder.record_count == 0
    assert builder.finish() == b""


def test_headers_that_append_themselves_come_first() -> None:
    """A header iterator that uses the builder does not deadlock."""
    builder = kbat.BatchBuilder()

    def headers() -> Iterator[tuple[str, bytes]]:
        builder.append(b"inner", None, timestamp=0)
        yield "a", b"1"

    builder.append(b"outer", None, timestamp=0, headers=headers())
    assert [record.key for record in records_of(builder.finish())] == [b"inner", b"outer"]


def test_offsets_may_have_gaps_but_not_fall() -> None:
    """Edge case 73."""
    builder = kbat.BatchBuilder(base_offset=100)
    for offset in (100, 105, None, 100 + 2**31 - 1):
        builder.append(b"", None, timestamp=0, offset=offset)
    assert [record.offset for record in records_of(builder.finish())] == [100, 105, 106, 100 + 2**31 - 1]


def test_same_records_give_the_same_bytes() -> None:
    """Edge case 90."""
    for codec in CODECS:
        records = [(index, b"key", b"value" * index) for index in range(100)]
        assert build(records, compression=codec) == build(records, compression=codec)


def test_repr_tells() -> None:
    builder = kbat.BatchBuilder()
    builder.append(b"key", b"value", timestamp=0)
    assert repr(builder) == "BatchBuilder(1 records, 76 bytes)"


def test_set_base_offset_keeps_the_checksum() -> None:
    """Edge case 75."""
    data = bytearray(build(base_offset=3) + build(base_offset=4))
    kbat.set_base_offset(data, 1000, position=76)
    first, second = kbat.read_batches(data)
    assert (first.base_offset, second.base_offset) == (3, 1000)
    assert data[84:] == build(base_offset=4)[8:]
    assert second.crc_ok


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_set_base_offset_of_magic_1(codec: str) -> None:
    """Edge case 75: the offset stored for a set is that of its last message."""
    data = bytearray(build([(0, b"a", None), (0, b"b", None)], magic=1, compression=codec, base_offset=3))
    kbat.set_base_offset(data, 1000)
    assert records_of(bytes(data))[0].offset == 1000
    if codec != "none":
        assert [record.offset for record in records_of(bytes(data))] == [1000, 1001]


def test_set_base_offset_of_a_magic_0_set_is_refused() -> None:
    data = bytearray(build([(0, b"a", None), (0, b"b", None)], magic=0, compression="gzip", base_offset=3))
    before = bytes(data)
    with pytest.raises(ValueError, match="magic 0"):
        kbat.set_base_offset(data, 1000)
    assert data == before


def test_an_edit_changes_its_batch_only() -> None:
    one = build()
    data = bytearray(one * 3 + b"rest")
    kbat.set_base_offset(data, 7, position=len(one))
    assert data == one + build(base_offset=7) + one + b"rest"


def test_set_partition_leader_epoch_keeps_the_checksum() -> None:
    """Edge case 75."""
    data = bytearray(build())
    kbat.set_partition_leader_epoch(data, 77)
    assert data == patched(build(), 12, ">i", 77)
    assert next(kbat.read_batches(data)).crc_ok
    with pytest.raises(ValueError, match="magic 1"):
        kbat.set_partition_leader_epoch(bytearray(build(magic=1)), 77)


@pytest.mark.parametrize("magic", [1, 2])
def test_set_log_append_time_renews_the_checksum(magic: int) -> None:
    """Edge case 75: as if the batch had been built so."""
    records = [(5, b"a", b"1")]
    data = bytearray(build(records, magic=magic))
    kbat.set_log_append_time(data, 999)
    [batch] = kbat.read_batches(data)
    assert batch.crc_ok
    assert (batch.timestamp_type, batch.max_timestamp) == ("LogAppendTime", 999)
    assert [record.timestamp for record in batch] == [999]
    twin = build(records, magic=magic, timestamp_type="LogAppendTime", log_append_time=999)
    assert [plain(record) for record in batch] == [plain(record) for record in records_of(twin)]
    with pytest.raises(ValueError, match="magic 0"):
        kbat.set_log_append_time(bytearray(build(magic=0)), 999)


@pytest.mark.parametrize("data", [build(), memoryview(bytearray(build())), None])
def test_edits_need_a_bytearray(data: Any) -> None:  # noqa: ANN401 -- the wrong ones
    with pytest.raises(TypeError, match="bytearray"):
        kbat.set_base_offset(data, 5)


@pytest.mark.parametrize(("length", "position"), [(75, 0), (0, 0), (76, 76), (76, 77), (76, 2**40)])
def test_edits_need_a_whole_batch(length: int, position: int) -> None:
    data = bytearray(build()[:length])
    with pytest.raises(ValueError, match=r"batch|past the end"):
        kbat.set_base_offset(data, 5, position=position)
    assert data == build()[:length]


def test_edits_of_damaged_bytes_raise() -> None:
    for position, layout, value in ((8, ">i", -1), (16, ">b", 3)):
        data = patched(build(), position, layout, value)
        before = bytes(data)
        with pytest.raises(kbat.KbatError):
            kbat.set_base_offset(data, 5)
        assert data == before


def test_array_of_python_objects_is_no_value() -> None:
    builder = kbat.BatchBuilder()
    objects: Any = np.array([b"a"], dtype=object)
    numbers: Any = np.array([97], dtype=np.uint8)
    with pytest.raises(TypeError):
        builder.append(None, objects, timestamp=0)
    builder.append(None, numbers, timestamp=0)
    assert [record.value for record in next(kbat.read_batches(builder.finish()))] == [b"a"]
