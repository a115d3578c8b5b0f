"""What kbat writes, Kafka's own classes read, and the other way round.

Generated batches of every message format, codec and level go through kbat and through Kafka (see kafka_judge.py).
Without compression the bytes are the same; with it, each side reads the other's batches to the same header fields and
records. What Kafka's builder refuses, kbat refuses.
"""

from __future__ import annotations

import os
import random
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import kbat
from kafka_judge import (
    BatchSpec,
    Codec,
    JudgeUnavailableError,
    KafkaJudge,
    MarkerSpec,
    ReadBatch,
    ReadRecord,
    RecordSpec,
    RefusedError,
    java_command,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MAX_LONG = 2**63 - 1
MAX_INT = 2**31 - 1
NOW = 1_700_000_000_000

# Where the compressed bytes begin: after the batch header, or after the fields before a wrapper's value.
COMPRESSED_FROM = {0: 26, 1: 34, 2: 61}

reproducible = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaJudge]:
    if os.environ.get("KBAT_OFFLINE") == "1":
        pytest.skip("KBAT_OFFLINE=1: Kafka's jars would have to be fetched")
    with KafkaJudge() as judge:
        yield judge


# kbat in the judge's terms


def kbat_builder(spec: BatchSpec) -> kbat.BatchBuilder:
    return kbat.BatchBuilder(
        spec.magic,
        spec.compression,
        spec.level,
        base_offset=spec.base_offset,
        timestamp_type=spec.timestamp_type,
        log_append_time=spec.log_append_time,
        producer_id=spec.producer_id,
        producer_epoch=spec.producer_epoch,
        base_sequence=spec.base_sequence,
        transactional=spec.transactional,
        control=spec.control,
        partition_leader_epoch=spec.partition_leader_epoch,
        delete_horizon_ms=spec.delete_horizon_ms,
        last_offset=spec.last_offset,
    )


def append(builder: kbat.BatchBuilder, record: RecordSpec) -> None:
    builder.append(record.key, record.value, timestamp=record.timestamp, headers=record.headers, offset=record.offset)


def kbat_write(spec: BatchSpec) -> bytes:
    builder = kbat_builder(spec)
    for record in spec.records:
        append(builder, record)
    bound = builder.estimated_size
    data = builder.finish()
    assert len(data) <= bound
    return data


def kbat_read(data: bytes) -> list[ReadBatch]:
    batches = kbat.read_batches(data)
    read = [read_batch(batch) for batch in batches]
    assert batches.remainder == b""
    return read


def read_batch(batch: kbat.Batch) -> ReadBatch:
    assert batch.crc_ok
    return ReadBatch(
        size=batch.size,
        magic=batch.magic,
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        next_offset=batch.next_offset,
        # Kafka counts nothing below magic 2, although an uncompressed message is one record.
        record_count=None if batch.magic < 2 else batch.record_count,
        partition_leader_epoch=batch.partition_leader_epoch,
        crc=batch.crc,
        base_timestamp=None if batch.magic < 2 else batch.base_timestamp,
        max_timestamp=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        last_sequence=batch.last_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        delete_horizon_ms=batch.delete_horizon_ms,
        compression=batch.compression,
        timestamp_type=batch.timestamp_type,
        records=tuple(
            ReadRecord(
                offset=record.offset,
                timestamp=record.timestamp,
                sequence=record.sequence,
                key=record.key,
                value=record.value,
                headers=tuple(record.headers),
            )
            for record in batch
        ),
    )


# Generated batches


def payload(kind: str, size: int, seed: int) -> bytes:
    """Bytes that compress not at all, somewhat, or to nothing."""
    if kind == "zeros":
        return bytes(size)
    generator = random.Random(seed)  # noqa: S311 - test data
    if kind == "random":
        return generator.randbytes(size)
    words = [generator.randbytes(generator.randrange(1, 12)).hex().encode() for _ in range(50)]
    return b" ".join(generator.choices(words, k=size // 2 + 1))[:size]


KINDS = ("random", "words", "zeros")
# Around what the varints of lengths and the blocks of snappy (32 KiB) and lz4 (64 KiB) end at.
SIZES = (63, 64, 1000, 8191, 8192, 32_767, 32_768, 65_536, 70_000)

some_bytes = st.one_of(
    st.none(),
    st.just(b""),
    st.binary(max_size=20),
    st.builds(payload, st.sampled_from(KINDS), st.sampled_from(SIZES), st.integers(0, 99)),
)
timestamps = st.one_of(st.sampled_from((-1, 0, NOW, NOW + 1, MAX_LONG)), st.integers(0, MAX_LONG))
header_lists = st.lists(
    st.tuples(
        st.one_of(st.sampled_from(("", "trace", "clé", "ключ", "鍵", "🔑")), st.text(max_size=5)),
        st.one_of(st.none(), st.just(b""), st.binary(max_size=9)),
    ),
    max_size=4,
).map(tuple)


@st.composite
def batches(draw: st.DrawFn, magic: int, compression: Codec = "none", level: int | None = None) -> BatchSpec:
    """Batches that Kafka's rules allow."""
    base_offset = draw(st.one_of(st.sampled_from((0, 1, 57, MAX_INT, MAX_LONG - MAX_INT)), st.integers(0, 10**12)))
    control = magic == 2 and draw(st.sampled_from((False,) * 5 + (True,)))
    offset = base_offset + draw(st.sampled_from((0, 0, 0, 7)))
    records = []
    for _ in range(draw(st.integers(1, 12))):
        key = struct.pack(">hh", 0, draw(st.integers(0, 6))) if control else draw(some_bytes)
        headers = draw(header_lists) if magic == 2 else ()
        records.append(RecordSpec(offset, draw(timestamps), key, draw(some_bytes), headers))
        offset += draw(st.sampled_from((1, 1, 1, 2, 63, 64, 10_000_000)))
    log_append_time = draw(st.one_of(st.none(), st.sampled_from((0, NOW, MAX_LONG)))) if magic else None
    spec = BatchSpec(
        records=tuple(records),
        magic=magic,
        compression=compression,
        level=level,
        base_offset=base_offset,
        timestamp_type="CreateTime" if log_append_time is None else "LogAppendTime",
        log_append_time=log_append_time,
        last_offset=draw(st.sampled_from((None, None, None, offset))),
    )
    return spec if magic < 2 else draw(with_batch_fields(replace(spec, control=control)))


@st.composite
def with_batch_fields(draw: st.DrawFn, spec: BatchSpec) -> BatchSpec:
    """Adds what only magic 2 has."""
    spec = replace(
        spec,
        partition_leader_epoch=draw(st.sampled_from((-1, 0, 29, MAX_INT))),
        delete_horizon_ms=draw(st.sampled_from((None, None, 0, 100, NOW, MAX_LONG))),
    )
    if draw(st.booleans()):
        return spec
    return replace(
        spec,
        producer_id=draw(st.sampled_from((0, 983, MAX_LONG))),
        producer_epoch=draw(st.sampled_from((0, 13, 32_767))),
        base_sequence=-1 if spec.control else draw(st.sampled_from((0, 5, MAX_INT - 1, MAX_INT))),
        transactional=draw(st.booleans()),
    )


def without_codec(batch: ReadBatch) -> ReadBatch:
    """A batch without what depends on how well the writer compresses."""
    return batch._replace(size=0, crc=0)


def identifier(codec: tuple[Codec, int | None]) -> str:
    return codec[0] if codec[1] is None else f"{codec[0]}{codec[1]:+d}"


LEVELS: dict[Codec, tuple[int, ...]] = {
    "gzip": tuple(range(1, 10)),
    "lz4": tuple(range(1, 18)),
    "zstd": (-131_072, -5, 1, 3, 19, 22),
}
CODECS: list[tuple[Codec, int | None]] = [("gzip", None), ("snappy", None), ("lz4", None), ("zstd", None)]
CODECS += [(codec, level) for codec, levels in LEVELS.items() for level in levels]
LEGACY_CODECS = [codec for codec in CODECS if codec[0] != "zstd"]


# Writing


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_write_uncompressed_is_byte_equal_to_kafka(kafka: KafkaJudge, magic: int) -> None:
    @settings(reproducible, max_examples=150)
    @given(batches(magic))
    def check(spec: BatchSpec) -> None:
        data = kbat_write(spec)
        assert data == kafka.write(spec)
        assert kbat_read(data) == kafka.read(data)

    check()


@pytest.mark.parametrize(
    ("magic", "codec"),
    [(magic, codec) for magic in (0, 1) for codec in LEGACY_CODECS] + [(2, codec) for codec in CODECS],
    ids=lambda value: identifier(value) if isinstance(value, tuple) else f"v{value}",
)
def test_write_compressed_is_read_as_kafkas(kafka: KafkaJudge, magic: int, codec: tuple[Codec, int | None]) -> None:
    compression, level = codec
    # Kafka takes half a second for each batch at level 22, for its window of 128 MiB.
    slow = compression == "zstd" and (level or 0) > 9
    examples = 3 if slow else 25 if level is None else 8

    @settings(reproducible, max_examples=examples)
    @given(batches(magic, compression, level))
    def check(spec: BatchSpec) -> None:
        ours, theirs = kbat_write(spec), kafka.write(spec)
        ours_read = kafka.read(ours)
        assert kbat_read(ours) == ours_read
        assert kbat_read(theirs) == kafka.read(theirs)
        assert list(map(without_codec, ours_read)) == list(map(without_codec, kbat_read(theirs)))

    check()


@pytest.mark.parametrize(
    ("magic", "compression"),
    [(magic, codec) for magic in (0, 1, 2) for codec in ("none", "gzip", "snappy", "lz4")] + [(2, "zstd")],
)
def test_write_megabyte_values_are_read_as_kafkas(kafka: KafkaJudge, magic: int, compression: Codec) -> None:
    records = [RecordSpec(i, NOW, b"key", payload(kind, 1 << 20, i)) for i, kind in enumerate(KINDS)]
    spec = BatchSpec(records=tuple(records), magic=magic, compression=compression)
    ours, theirs = kbat_write(spec), kafka.write(spec)
    assert kafka.read(ours) == kbat_read(ours)
    assert kafka.read(theirs) == kbat_read(theirs)
    assert list(map(without_codec, kafka.read(ours))) == list(map(without_codec, kafka.read(theirs)))
    if compression == "none":
        assert ours == theirs


# Frames: what stands around the compressed blocks is Kafka's to the byte


def compressed_bytes(data: bytes, magic: int) -> bytes:
    return data[COMPRESSED_FROM[magic] :]


def lz4_frame(data: bytes) -> tuple[bytes, int]:
    """Header of an lz4 frame, and how many blocks follow; the end mark is the last thing."""
    position, blocks = 7, 0
    while (length := int.from_bytes(data[position : position + 4], "little")) != 0:
        position += 4 + (length & 0x7FFF_FFFF)
        blocks += 1
    assert position + 4 == len(data)
    return data[:7], blocks


def snappy_frame(data: bytes) -> tuple[bytes, list[int]]:
    """Header of xerial's framing, and the uncompressed length of each chunk."""
    position, lengths = 16, []
    while position < len(data):
        length = shift = 0
        for byte in data[position + 4 : position + 9]:
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        lengths.append(length)
        position += 4 + int.from_bytes(data[position : position + 4])
    assert position == len(data)
    return data[:16], lengths


FRAMES: dict[tuple[Codec, int | None], Callable[[bytes], object]] = {
    ("lz4", None): lz4_frame,
    ("lz4", 1): lz4_frame,
    ("lz4", 17): lz4_frame,
    ("snappy", None): snappy_frame,
}


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", FRAMES, ids=identifier)
def test_write_frames_like_kafka(kafka: KafkaJudge, magic: int, codec: tuple[Codec, int | None]) -> None:
    (compression, level), frame = codec, FRAMES[codec]
    for kind in KINDS:
        for size in (0, 1, 32_768, 65_536, 200_000):
            records = (RecordSpec(0, NOW, None, payload(kind, size, size)),)
            spec = BatchSpec(records=records, magic=magic, compression=compression, level=level)
            ours, theirs = (compressed_bytes(data, magic) for data in (kbat_write(spec), kafka.write(spec)))
            assert frame(ours) == frame(theirs), (kind, size)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_write_lz4_of_random_bytes_is_byte_equal_to_kafka(kafka: KafkaJudge, magic: int) -> None:
    records = tuple(RecordSpec(i, NOW, None, payload("random", 100_000, i)) for i in range(5))
    spec = BatchSpec(records=records, magic=magic, compression="lz4")
    assert kbat_write(spec) == kafka.write(spec)


# Rules

# What a refusal may be about.
ANY_RULE = r"(?i)magic|level|producer|offset|timestamp|log append time|control|delete horizon"


def one(
    offset: int = 0,
    timestamp: int = NOW,
    key: bytes | None = b"k",
    headers: tuple[tuple[str, bytes | None], ...] = (),
) -> tuple[RecordSpec, ...]:
    """A harmless record but for the fields given."""
    return (RecordSpec(offset, timestamp, key, b"v", headers),)


PRODUCER = BatchSpec(records=one(), producer_id=7, producer_epoch=1, base_sequence=0)
CONTROL = BatchSpec(records=one(key=b"\0\0\0\4"), control=True)
TOO_MUCH: dict[Codec, tuple[int, ...]] = {"gzip": (0, 10), "lz4": (0, -1, 18), "zstd": (-131_073, 23)}
REFUSED: dict[str, BatchSpec] = {
    **{
        f"{name} below magic 2, v{magic}": replace(spec, magic=magic)
        for magic in (0, 1)
        for name, spec in {
            "transactional": replace(PRODUCER, transactional=True),
            "control": CONTROL,
            "zstd": BatchSpec(records=one(), compression="zstd"),
            "delete horizon": BatchSpec(records=one(), delete_horizon_ms=5),
            "producer id": PRODUCER,
            "headers": BatchSpec(records=one(headers=(("h", b"1"),))),
        }.items()
    },
    **{
        f"{codec} level {level}": BatchSpec(records=one(), compression=codec, level=level)
        for codec, levels in TOO_MUCH.items()
        for level in levels
    },
    "transactional without producer id": BatchSpec(records=one(), transactional=True),
    "producer id without epoch": replace(PRODUCER, producer_epoch=-1),
    "producer id without sequence": replace(PRODUCER, base_sequence=-1),
    "producer id with a negative sequence": replace(PRODUCER, base_sequence=-2),
    "transactional without producer id or records": BatchSpec(records=(), transactional=True),
    "offset again": BatchSpec(records=one() + one()),
    "offset going back": BatchSpec(records=one(offset=5) + one(offset=4)),
    "offset 2**31 above the base": BatchSpec(records=one() + one(offset=MAX_INT + 1)),
    **{
        f"timestamp {timestamp}, v{magic}": BatchSpec(records=one(timestamp=timestamp), magic=magic)
        for timestamp in (-2, -(2**63))
        for magic in (0, 1, 2)
    },
    "timestamp -2 under LogAppendTime": BatchSpec(
        records=one(timestamp=-2), timestamp_type="LogAppendTime", log_append_time=NOW
    ),
    "log append time -2, v1": BatchSpec(records=one(), magic=1, timestamp_type="LogAppendTime", log_append_time=-2),
    **{
        f"control record with key {key!r}": replace(CONTROL, records=one(key=key))
        for key in (None, b"", b"key", b"\0\0\0\7", b"\0\0\xff\xff", b"\xff\xff\0\0")
    },
}


@pytest.mark.parametrize("spec", REFUSED.values(), ids=REFUSED.keys())
def test_write_refuses_what_kafka_refuses(kafka: KafkaJudge, spec: BatchSpec) -> None:
    with pytest.raises(RefusedError):
        kafka.write(spec)
    with pytest.raises(ValueError, match=ANY_RULE) as refused:
        kbat_write(spec)
    assert not isinstance(refused.value, kbat.KbatError)


FORGOTTEN: dict[str, tuple[BatchSpec, str]] = {
    "a record before the batch": (BatchSpec(records=one(offset=9), base_offset=10), "before the base offset"),
    "an end that its field can't hold": (BatchSpec(records=one(), last_offset=MAX_INT + 1), "out of reach"),
}


@pytest.mark.parametrize(("spec", "why"), FORGOTTEN.values(), ids=FORGOTTEN.keys())
def test_write_refuses_offsets_that_kafka_forgot_to_check(kafka: KafkaJudge, spec: BatchSpec, why: str) -> None:
    (batch,) = kafka.read(kafka.write(spec))
    assert batch.last_offset < batch.base_offset or batch.records[0].offset < batch.base_offset
    with pytest.raises(ValueError, match=why):
        kbat_write(spec)


REFUSED_APPENDS: dict[str, tuple[int, RecordSpec]] = {
    "offset again, v2": (2, RecordSpec(0, NOW)),
    "offset out of reach, v2": (2, RecordSpec(MAX_INT + 1, NOW)),
    "timestamp -2, v0": (0, RecordSpec(1, -2)),
    "timestamp -2, v1": (1, RecordSpec(1, -2)),
    "timestamp -2, v2": (2, RecordSpec(1, -2)),
    "headers, v0": (0, RecordSpec(1, NOW, headers=(("h", b"1"),))),
    "headers, v1": (1, RecordSpec(1, NOW, headers=(("h", b"1"),))),
}


@pytest.mark.parametrize(("magic", "bad"), REFUSED_APPENDS.values(), ids=REFUSED_APPENDS.keys())
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_refused_append_leaves_no_trace(kafka: KafkaJudge, magic: int, bad: RecordSpec, compression: Codec) -> None:
    spec = BatchSpec(records=one() + one(offset=1, timestamp=NOW + 1), magic=magic, compression=compression)
    builder = kbat_builder(spec)
    append(builder, spec.records[0])
    before = builder.size, builder.estimated_size
    with pytest.raises(ValueError, match=r"offset|timestamp|headers"):
        append(builder, bad)
    assert (builder.size, builder.estimated_size) == before
    append(builder, spec.records[1])
    data = builder.finish()
    assert list(map(without_codec, kafka.read(data))) == list(map(without_codec, kafka.read(kafka.write(spec))))
    if compression == "none":
        assert data == kafka.write(spec)


Harmless = TypeVar("Harmless")


def usually(value: Harmless, *others: Harmless) -> st.SearchStrategy[Harmless]:
    """Mostly a harmless value."""
    return st.sampled_from([value] * 12 + list(others))


WILD_LEVELS: dict[Codec, tuple[int, ...]] = {"gzip": (0, 9, 10), "lz4": (0, 17, 18), "zstd": (-131_073, -131_072, 23)}


@st.composite
def wild_batches(draw: st.DrawFn) -> BatchSpec:
    """Batches of settings that may contradict each other."""
    control = draw(st.sampled_from((False, False, False, True)))
    keys = [struct.pack(">hh", version, kind) for version in (0, 1, -1) for kind in range(-1, 8)]
    base_offset = draw(st.sampled_from((0, 10, -5, -(2**63), MAX_LONG, MAX_LONG - MAX_INT)))
    offset, records = base_offset, []
    for _ in range(draw(st.integers(0, 3))):
        record = RecordSpec(
            offset,
            draw(usually(NOW, -1, -2, 0, -(2**63))),
            draw(st.sampled_from(keys[9:18] if control else [b"k", None]) | st.sampled_from([*keys, None, b"key"])),
            draw(st.sampled_from((b"v", None))),
            draw(usually((), (("h", None),))),
        )
        records.append(record)
        offset = min(offset + draw(usually(1, 0, 2, MAX_INT, MAX_INT + 1)), MAX_LONG)
    codecs: tuple[Codec, ...] = ("none", "none", "gzip", "snappy", "lz4", "zstd")
    compression = draw(st.sampled_from(codecs))
    level = draw(usually(None, 1, *WILD_LEVELS[compression])) if compression in WILD_LEVELS else None
    log_append_time = draw(usually(None, NOW, -1, -2))
    return BatchSpec(
        records=tuple(records),
        magic=draw(st.sampled_from((0, 1, 2, 2, 2, 2))),
        compression=compression,
        level=level,
        base_offset=base_offset,
        timestamp_type="CreateTime" if log_append_time is None else "LogAppendTime",
        log_append_time=log_append_time,
        producer_id=draw(st.sampled_from((-1, -1, 7, -2))),
        producer_epoch=draw(usually(0, -1, -2)),
        base_sequence=draw(usually(0, -1, -2)),
        transactional=draw(st.sampled_from((False, False, False, False, True))),
        control=control,
        partition_leader_epoch=draw(usually(-1, 0, -2)),
        delete_horizon_ms=draw(usually(None, 0, NOW)),
    )


def test_write_refuses_exactly_what_kafka_refuses(kafka: KafkaJudge) -> None:
    outcomes = set()

    @settings(reproducible, max_examples=1500)
    @given(wild_batches())
    def check(spec: BatchSpec) -> None:
        try:
            theirs = kafka.write(spec)
        except RefusedError:
            outcomes.add("refused")
            with pytest.raises(ValueError, match=ANY_RULE):
                kbat_write(spec)
            return
        outcomes.add("written")
        ours = kbat_write(spec)
        if spec.compression == "none":
            assert ours == theirs

    check()
    assert outcomes == {"refused", "written"}


# Markers and edits in place

some_batches = st.one_of(
    batches(2), batches(2, "lz4"), batches(1), batches(1, "gzip"), batches(0), batches(0, "snappy")
)


MARKER = MarkerSpec(
    producer_id=73,
    producer_epoch=13,
    commit=True,
    timestamp=NOW,
    base_offset=983,
    coordinator_epoch=347,
    partition_leader_epoch=29,
)
markers = st.builds(
    MarkerSpec,
    producer_id=st.integers(0, MAX_LONG),
    producer_epoch=st.integers(0, 32_767),
    commit=st.booleans(),
    timestamp=timestamps,
    base_offset=st.integers(0, MAX_LONG),
    coordinator_epoch=st.integers(-(2**31), MAX_INT),
    partition_leader_epoch=st.integers(-1, MAX_INT),
)


@settings(reproducible, max_examples=100)
@given(marker=markers)
@example(marker=MARKER)
def test_end_transaction_marker_is_byte_equal_to_kafka(kafka: KafkaJudge, marker: MarkerSpec) -> None:
    data = kbat.end_transaction_marker(**marker)
    assert data == kafka.end_transaction_marker(**marker)
    assert len(data) == 78


@pytest.mark.parametrize(
    "marker",
    [{**MARKER, "producer_id": -1}, {**MARKER, "producer_epoch": -1}, {**MARKER, "timestamp": -2}],
    ids=["producer id", "producer epoch", "timestamp"],
)
def test_end_transaction_marker_refuses_what_kafka_refuses(kafka: KafkaJudge, marker: MarkerSpec) -> None:
    with pytest.raises(RefusedError):
        kafka.end_transaction_marker(**marker)
    with pytest.raises(ValueError, match=ANY_RULE):
        kbat.end_transaction_marker(**marker)


@settings(reproducible, max_examples=150)
@given(spec=some_batches, base_offset=st.sampled_from((0, 1, 57, 2**31, MAX_LONG - MAX_INT)))
def test_set_base_offset_is_byte_equal_to_kafka(kafka: KafkaJudge, spec: BatchSpec, base_offset: int) -> None:
    data = bytearray(kbat_write(spec))
    if spec.magic == 0 and spec.compression != "none":
        with pytest.raises(ValueError, match="magic 0"):
            kbat.set_base_offset(data, base_offset)
        return
    batch = kafka.read(bytes(data))[0]
    last_offset = base_offset + batch.last_offset - batch.base_offset
    expected = kafka.set_last_offset(bytes(data), last_offset)
    kbat.set_base_offset(data, base_offset)
    assert data == expected
    assert kbat_read(bytes(data))[0].base_offset == base_offset


@settings(reproducible, max_examples=100)
@given(spec=some_batches, epoch=st.sampled_from((-1, 0, 29, MAX_INT)))
def test_set_partition_leader_epoch_is_byte_equal_to_kafka(kafka: KafkaJudge, spec: BatchSpec, epoch: int) -> None:
    data = bytearray(kbat_write(spec))
    before = bytes(data)
    if spec.magic < 2:
        with pytest.raises(RefusedError):
            kafka.set_partition_leader_epoch(before, epoch)
        with pytest.raises(ValueError, match="magic"):
            kbat.set_partition_leader_epoch(data, epoch)
        assert data == before
        return
    kbat.set_partition_leader_epoch(data, epoch)
    assert data == kafka.set_partition_leader_epoch(before, epoch)


@settings(reproducible, max_examples=150)
@given(spec=some_batches, timestamp=st.sampled_from((0, NOW, MAX_LONG)))
def test_set_log_append_time_is_byte_equal_to_kafka(kafka: KafkaJudge, spec: BatchSpec, timestamp: int) -> None:
    data = bytearray(kbat_write(spec))
    before = bytes(data)
    if spec.magic == 0:
        with pytest.raises(RefusedError):
            kafka.set_log_append_time(before, timestamp)
        with pytest.raises(ValueError, match="magic 0"):
            kbat.set_log_append_time(data, timestamp)
        assert data == before
        return
    kbat.set_log_append_time(data, timestamp)
    assert data == kafka.set_log_append_time(before, timestamp)
    assert kbat_read(bytes(data)) == kafka.read(bytes(data))


# The judge itself


def test_judge_without_java_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JudgeUnavailableError, match="install a Java 17 runtime"):
        java_command()
