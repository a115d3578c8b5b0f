"""`kbat.validate` returns the answers of Kafka's `LogValidator`: the error, its records, and the stored bytes.

The checks before it, of `UnifiedLog`, are tested in Rust (`tests/rust/validate.rs`).
"""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kbat
from data import build, with_right_crc
from java_process import RefusedError
from judge_inputs import MAX_LONG, NOW, batches, kbat_read, kbat_write, reproducible, without_codec
from kafka_server import ProduceRefusedError, Validated

if TYPE_CHECKING:
    from kafka_judge import BatchSpec, Codec
    from kafka_server import KafkaServer

CODECS: list[Codec] = ["none", "gzip", "snappy", "lz4", "zstd"]
HOUR = 3_600_000
BIG = 2**31 - 1


@dataclass(frozen=True)
class Topic:
    """The settings of a topic, and the state of the log at an append."""

    compression: Any = "producer"
    compacted: bool = False
    timestamp_type: Any = "CreateTime"
    before_max_ms: int = MAX_LONG
    after_max_ms: int = MAX_LONG
    leader_epoch: int = 0
    offset: int = 0
    origin: Any = "CLIENT"


topics = st.builds(
    Topic,
    compression=st.sampled_from(("producer", "producer", *CODECS)),
    compacted=st.booleans(),
    timestamp_type=st.sampled_from(("CreateTime", "CreateTime", "LogAppendTime")),
    before_max_ms=st.sampled_from((MAX_LONG, 1000)),
    after_max_ms=st.sampled_from((MAX_LONG, HOUR)),
    leader_epoch=st.sampled_from((0, 7)),
    offset=st.sampled_from((0, 1234, 10**12)),
    origin=st.sampled_from(("CLIENT", "CLIENT", "COORDINATOR")),
)


@dataclass
class Tally:
    """Counts of each answer, to check that the test covers all of them."""

    seen: dict[str, int] = field(default_factory=dict)

    def add(self, answer: str) -> None:
        """Count an answer."""
        self.seen[answer] = self.seen.get(answer, 0) + 1


def by_kafka(server: KafkaServer, data: bytes, topic: Topic) -> Validated | ProduceRefusedError:
    """Kafka's answer."""
    try:
        return server.validate(data, now_ms=NOW, **vars(topic))
    except ProduceRefusedError as refusal:
        return refusal


def by_kbat(data: bytes, topic: Topic) -> kbat.Validation:
    """The answer of kbat."""
    return kbat.validate(
        data,
        request_version=None,
        origin=topic.origin.lower(),
        compression=topic.compression,
        timestamp_type=topic.timestamp_type,
        timestamp_before_max_ms=topic.before_max_ms,
        timestamp_after_max_ms=topic.after_max_ms,
        compacted=topic.compacted,
        max_message_bytes=BIG,
        segment_bytes=BIG,
        now_ms=NOW,
        base_offset=topic.offset,
        partition_leader_epoch=topic.leader_epoch,
    )


def compare(server: KafkaServer, data: bytes, topic: Topic) -> str:
    """Validate with both, and return their common answer."""
    theirs, ours = by_kafka(server, data, topic), by_kbat(data, topic)
    if isinstance(theirs, ProduceRefusedError):
        assert ours.error == theirs.name, theirs
        assert ours.error_code == theirs.code
        assert [index for index, _ in ours.record_errors] == [index for index, _ in theirs.record_errors]
        return theirs.name
    assert ours.bytes is not None, ours
    assert ours.next_offset == theirs.next_offset
    assert ours.max_timestamp == theirs.max_timestamp
    assert ours.is_rebuilt == theirs.size_maybe_changed
    same_bytes = not ours.is_rebuilt or all(batch.compression == "none" for batch in kbat.read_batches(ours.bytes))
    if same_bytes:
        assert ours.bytes == theirs.data
    else:
        assert [*map(without_codec, kbat_read(ours.bytes))] == [*map(without_codec, kbat_read(theirs.data))]
    return "rebuilt" if ours.is_rebuilt else "in place"


@pytest.mark.parametrize("compression", CODECS)
def test_requests_of_v2_are_answered_as_by_kafka(kafka_server: KafkaServer, compression: Codec) -> None:
    """Any batch, any topic."""
    tally = Tally()

    @settings(reproducible, max_examples=200 if compression == "none" else 80)
    @given(batches(2, compression), topics, st.booleans())
    def check(spec: BatchSpec, topic: Topic, dense: bool) -> None:  # noqa: FBT001 - hypothesis passes it so
        records = spec.records
        if dense:
            records = tuple(record._replace(offset=at) for at, record in enumerate(records))
            spec = replace(spec, base_offset=0, records=records, last_offset=None)
        if topic.origin == "CLIENT" and spec.base_offset != 0:
            return  # refused before LogValidator
        tally.add(compare(kafka_server, kbat_write(spec), topic))

    check()
    assert {"in place", "INVALID_RECORD"} <= tally.seen.keys()
    if compression == "none":  # of which there are enough examples to meet every answer
        assert {"rebuilt", "INVALID_TIMESTAMP"} <= tally.seen.keys()


@pytest.mark.parametrize("magic", [0, 1])
def test_requests_of_older_formats_are_converted_as_by_kafka(kafka_server: KafkaServer, magic: int) -> None:
    """Messages and compressed sets become one batch of v2."""
    tally = Tally()

    @settings(reproducible, max_examples=150)
    @given(st.sampled_from(CODECS[:4]).flatmap(lambda codec: batches(magic, codec)), topics)
    def check(spec: BatchSpec, topic: Topic) -> None:
        tally.add(compare(kafka_server, kbat_write(spec), topic))

    check()
    assert {"rebuilt", "INVALID_RECORD"} <= tally.seen.keys()


# Corruption with a correct checksum


def sealed(head: bytes | bytearray, records: bytes | bytearray) -> bytes:
    """A v2 batch with the length and checksum of its bytes."""
    batch = bytearray(head[:61] + records)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    return bytes(with_right_crc(batch))


def mutated(records: bytes, chance: random.Random) -> bytes:
    """Records with something wrong in their structure."""
    data = bytearray(records)
    for _ in range(chance.randrange(1, 3)):
        place = chance.randrange(len(data))
        match chance.randrange(4):
            case 0 | 1:
                data[place] = chance.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            case 2:
                data[place:place] = bytes([chance.choice((0x80, 0xFF, 0, 1))] * chance.randrange(1, 6))
            case _:
                data = data[: max(place, 1)]
    return bytes(data)


def small_batch(chance: random.Random, compression: Codec) -> bytes:
    """A batch of a few records."""
    builder = kbat.BatchBuilder(compression=compression)
    for _ in range(chance.randrange(1, 5)):
        key = chance.choice((None, b"", b"key"))
        headers = [("h", b"1")] if chance.random() < 1 / 3 else None
        builder.append(key, b"v" * chance.randrange(40), timestamp=NOW - chance.randrange(2000), headers=headers)
    return builder.finish()


FIELDS: list[tuple[int, str, tuple[int, ...]]] = [
    (21, ">H", (0, 8, 16, 32, 64, 128, 0x4000)),
    (23, ">i", (0, 1, 2, -1, -3)),
    (27, ">q", (0, NOW, -1)),
    (35, ">q", (-1, NOW, 5)),
    (43, ">q", (-1, -2, 5)),
    (51, ">h", (-1, 3)),
    (53, ">i", (-1, 0, 5)),
    (57, ">i", (0, 1, 2, 3, -1, 10**6)),
]


def test_wrong_records_under_a_right_checksum_are_answered_as_by_kafka(kafka_server: KafkaServer) -> None:
    """Uncompressed and gzip: a broker checks all fields of the first and skips those of the second."""
    chance, tally = random.Random(7), Tally()  # noqa: S311 - test data
    for number in range(1500):
        plain = small_batch(chance, "none")
        records = mutated(plain[61:], chance)
        compression = chance.choice(("producer", "producer", "none", "gzip"))
        topic = Topic(compression=compression, compacted=number % 3 == 0, before_max_ms=1000)
        packed = bytearray(plain)
        packed[22] |= 1
        tally.add(compare(kafka_server, sealed(plain, records), topic))
        tally.add(compare(kafka_server, sealed(packed, gzip.compress(records, mtime=0)), topic))
    assert {"rebuilt", "in place", "INVALID_RECORD", "INVALID_TIMESTAMP", "UNKNOWN_SERVER_ERROR"} <= tally.seen.keys()


@pytest.mark.parametrize("origin", ["CLIENT", "COORDINATOR"])
def test_wrong_headers_under_a_right_checksum_are_answered_as_by_kafka(kafka_server: KafkaServer, origin: str) -> None:
    """Counts, offsets, producers, attributes, in every combination of two."""
    tally = Tally()
    for first in FIELDS:
        for second in FIELDS:
            for compression in ("none", "gzip"):
                batch = bytearray(build([(NOW, b"k", b"v"), (NOW, None, b"v")], compression=compression))
                for number, (place, layout, values) in enumerate((first, second)):
                    value = values[(second[0] + number) % len(values)]
                    struct.pack_into(layout, batch, place, value | (batch[22] & 7 if place == 21 else 0))
                tally.add(compare(kafka_server, sealed(batch, batch[61:]), Topic(origin=origin)))
    assert {"in place", "INVALID_RECORD"} <= tally.seen.keys()


def test_damaged_streams_are_refused_as_by_kafka(kafka_server: KafkaServer) -> None:
    """Which of two errors is detected first depends on how far a codec reads ahead: the code is not compared."""
    chance = random.Random(11)  # noqa: S311 - test data
    refused = 0
    for _ in range(1000):
        codec = chance.choice(CODECS[1:])
        batch = bytearray(small_batch(chance, codec))
        batch[chance.randrange(61, len(batch))] ^= 1 << chance.randrange(8)
        data = sealed(batch, batch[61:])
        try:
            ours = by_kbat(data, Topic()).ok
        except kbat.LimitError:
            continue
        try:
            theirs = isinstance(by_kafka(kafka_server, data, Topic()), Validated)
        except RefusedError:  # an Error of Java's: no memory, or snappy's own
            theirs = False
        assert ours == theirs, data.hex()
        refused += not ours
    assert refused > 100


def test_sets_of_older_formats_with_wrong_messages_are_refused_as_by_kafka(kafka_server: KafkaServer) -> None:
    """Messages inside a compressed set: their checksum, codec, format."""
    tally = Tally()
    for magic in (0, 1):
        for place, value in ((12, 1), (17, 1), (17, 2), (17, 8), (8, 1), (0, 1)):
            inner = bytearray(build([(NOW, b"k", b"v"), (NOW, None, b"v")], magic=magic))
            inner[place] ^= value
            for right_crc in (False, True):
                if right_crc:
                    size = int.from_bytes(inner[8:12]) + 12
                    struct.pack_into(">I", inner, 12, zlib.crc32(inner[16:size]))
                outer = bytearray(build([(NOW, None, gzip.compress(inner, mtime=0))], magic=magic))
                outer[17] |= 1
                struct.pack_into(">I", outer, 12, zlib.crc32(outer[16:]))
                tally.add(compare(kafka_server, bytes(outer), Topic(compacted=True)))
    assert {"INVALID_RECORD", "CORRUPT_MESSAGE"} <= tally.seen.keys()
