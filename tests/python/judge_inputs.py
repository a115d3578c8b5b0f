"""Batches to write for the tests against Kafka's own classes, and kbat in the judge's terms."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import kbat
from kafka_judge import (
    BatchSpec,
    Codec,
    ReadBatch,
    ReadRecord,
    RecordSpec,
)

MAX_LONG = 2**63 - 1
MAX_INT = 2**31 - 1
NOW = 1_700_000_000_000

# Subjects of an expected error.
ANY_RULE = r"(?i)magic|level|producer|offset|timestamp|log append time|control|delete horizon"

# Where the compressed bytes begin: after the batch header, or after the fields before a wrapper's value.
COMPRESSED_FROM = {0: 26, 1: 34, 2: 61}

reproducible = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


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
        # Kafka has no count below magic 2, although an uncompressed message is one record.
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
    """Bytes that are incompressible, compress moderately, or compress very well."""
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
# append refuses numbers that look like seconds
timestamps = st.one_of(
    st.sampled_from((-1, 0, NOW, NOW + 1, MAX_LONG)),
    st.integers(0, MAX_LONG).filter(lambda number: not 1_500_000_000 <= number < 2_000_000_000),
)
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
    """Add the fields that only magic 2 has."""
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
    """A batch without the fields that depend on the writer's compression."""
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
