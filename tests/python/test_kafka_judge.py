"""Kafka's own classes read the batches that kbat writes, and kbat those of Kafka.

Generated batches of every message format, codec and level go through kbat and through Kafka (see kafka_judge.py).
Without compression the bytes are the same; with it, each side reads the other's batches to the same header fields and
records. What Kafka's builder refuses, kbat refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kafka_jars
import kbat
from java_process import RefusedError
from judge_inputs import (
    ANY_RULE,
    CODECS,
    COMPRESSED_FROM,
    KINDS,
    LEGACY_CODECS,
    MAX_INT,
    MAX_LONG,
    NOW,
    batches,
    identifier,
    kbat_read,
    kbat_write,
    payload,
    reproducible,
    timestamps,
    without_codec,
)
from kafka_jars import JudgeUnavailableError, find_java
from kafka_judge import (
    BatchSpec,
    Codec,
    KafkaJudge,
    MarkerSpec,
    RecordSpec,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


# Frames: all bytes around the compressed blocks are the same as Kafka's


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
    # a set of magic 1 whose messages count from above 0 has no room for offsets below that
    if spec.magic == 2 or not spec.records or spec.records[0].offset == spec.base_offset:
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
        find_java()


def test_judge_without_jars_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said: list[str] = []
    monkeypatch.setattr(kafka_jars, "CACHE", tmp_path)
    no_java = "false"
    with pytest.raises(JudgeUnavailableError, match=r"kafka-clients:.* can't be fetched.*set KBAT_OFFLINE=1"):
        kafka_jars.kafka_jars(no_java, kafka_jars.CLIENTS, said.append)
    assert said == [f"fetching jars into {tmp_path / kafka_jars.CLIENTS.name} (once, about 20 MB)"]
    assert not (tmp_path / kafka_jars.CLIENTS.name).exists()
