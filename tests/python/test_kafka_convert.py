"""Down-conversion as by Kafka 3.9, the last version with it: the same bytes, or with a codec the same records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kbat
from data import name_of, segments
from java_process import RefusedError
from judge_inputs import batches, kbat_write, read_batch, reproducible, without_codec

if TYPE_CHECKING:
    from kafka_judge import BatchSpec, Codec, ReadBatch
    from old_kafka import OldKafka

# Kafka refuses zeros at the end, and linked LZ4 blocks (docs/differences.md).
ONLY_KBAT_READS = {
    "corpus/preallocated-live/00000000000000000000.log",
    "corpus-legacy/k0102-kp135-lz4-wire/00000000000000000000.log",
}


def comparable(data: bytes) -> list[ReadBatch]:
    """The properties of batches that must be equal, with the checksum for the bytes if nothing is compressed."""
    read = map(read_batch, kbat.read_batches(data))
    return [batch if batch.compression == "none" else without_codec(batch) for batch in read]


def by_kafka(old_kafka: OldKafka, data: bytes, magic: int, first_offset: int) -> bytes | None:
    """Kafka's answer, None where it refuses."""
    try:
        return old_kafka.down_convert(data, magic, first_offset)
    except RefusedError:
        return None


def by_kbat(data: bytes, magic: int, first_offset: int) -> bytes | None:
    """The answer of kbat, None where it refuses."""
    try:
        return kbat.convert(data, magic, first_offset=first_offset)[0]
    except (kbat.KbatError, ValueError):
        return None


def equal(ours: bytes | None, theirs: bytes | None) -> bool:
    """Whether two answers are the same."""
    if ours is None or theirs is None:
        return ours is theirs
    return ours == theirs or comparable(ours) == comparable(theirs)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_corpora_are_down_converted_as_by_kafka(old_kafka: OldKafka, magic: int) -> None:
    """Edge case 63: every log of both corpora, from its start and from its middle.

    Kafka gives damaged batches new checksums; kbat refuses to (`damage_is_not_given_a_new_checksum`, in Rust).
    """
    compared = 0
    for path in [*segments("corpus"), *segments("corpus-legacy")]:
        data = path.read_bytes()
        if not all(batch.crc_ok for batch in kbat.read_batches(data)):
            assert path.parent.name == "crash-flip"
            continue
        offsets = sorted(batch.last_offset for batch in kbat.read_batches(data))
        for first_offset in {0, *offsets[len(offsets) // 2 :][:1]}:
            theirs, ours = by_kafka(old_kafka, data, magic, first_offset), by_kbat(data, magic, first_offset)
            if theirs is None and ours is not None:
                assert name_of(path) in ONLY_KBAT_READS
            else:
                assert equal(ours, theirs), f"{path} from {first_offset}"
                compared += theirs is not None
    assert compared > 500


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_generated_batches_are_down_converted_as_by_kafka(old_kafka: OldKafka, compression: Codec) -> None:
    """Batches of every format in one buffer, fetched from any of their offsets."""
    magics = (2,) if compression == "zstd" else (0, 1, 2)
    specs = st.lists(st.sampled_from(magics).flatmap(lambda magic: batches(magic, compression)), max_size=4)

    @settings(reproducible, max_examples=100 if compression == "none" else 30)
    @given(specs, st.sampled_from((0, 1)), st.data())
    def check(specs: list[BatchSpec], magic: int, data: st.DataObject) -> None:
        offsets = [record.offset for spec in specs for record in spec.records]
        first_offset = data.draw(st.sampled_from((0, *offsets)))
        buffer = b"".join(map(kbat_write, specs))
        assert equal(by_kbat(buffer, magic, first_offset), by_kafka(old_kafka, buffer, magic, first_offset))

    check()


def test_bytes_that_kafka_converts_are_equal(old_kafka: OldKafka) -> None:
    """The comparison itself: bytes, not only what is read of them."""
    data = b"".join(path.read_bytes() for path in segments("corpus") if path.parent.name in {"codec-none", "txn-none"})
    for magic in (0, 1):
        assert kbat.convert(data, magic, first_offset=40)[0] == old_kafka.down_convert(data, magic, 40)
