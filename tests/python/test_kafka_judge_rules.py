"""kbat rejects the settings that Kafka's builder rejects: a table of settings, and a search over random ones."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kbat
from java_process import RefusedError
from judge_inputs import (
    ANY_RULE,
    MAX_INT,
    MAX_LONG,
    NOW,
    append,
    kbat_builder,
    kbat_write,
    reproducible,
    without_codec,
)
from kafka_judge import (
    BatchSpec,
    Codec,
    KafkaJudge,
    RecordSpec,
)

# Rules


def one(
    offset: int = 0,
    timestamp: int = NOW,
    key: bytes | None = b"k",
    headers: tuple[tuple[str, bytes | None], ...] = (),
) -> tuple[RecordSpec, ...]:
    """A valid record except for the fields in the arguments."""
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
    "an end that its field can't hold": (BatchSpec(records=one(), last_offset=MAX_INT + 1), "too far from"),
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
