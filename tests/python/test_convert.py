"""`kbat.convert`: the Python side; the rules are tested in Rust, Kafka's own judgement in `test_kafka_convert.py`."""

from __future__ import annotations

from typing import Any

import pytest

import kbat
from data import build, records_of


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_convert_takes_bytes_like_objects_and_names_losses(kind: type[bytes | bytearray]) -> None:
    """Losses of v1 are reported; the records are the same."""
    builder = kbat.BatchBuilder(producer_id=5, producer_epoch=0, base_sequence=0)
    builder.append(b"key", b"value", timestamp=7, headers=[("h", b"1")])
    converted, losses = kbat.convert(kind(builder.finish()), 1, compression="gzip")
    assert losses == ["headers", "producer"]
    [record] = records_of(converted)
    assert (record.key, record.value, record.timestamp, record.headers) == (b"key", b"value", 7, [])
    [batch] = kbat.read_batches(converted)
    assert (batch.magic, batch.compression) == (1, "gzip")


def test_convert_up_and_down_gives_the_same_bytes() -> None:
    """Edge case 63: v2 can represent everything in v1."""
    old = build([(1, b"a", None), (2, None, b"b")], magic=1)
    new, losses = kbat.convert(old, 2)
    assert not losses
    assert kbat.convert(new, 1) == (old, [])
    assert kbat.convert(old, 0)[1] == ["timestamps"]


def test_convert_for_a_fetch_drops_earlier_records() -> None:
    """A broker drops them when it converts uncompressed batches."""
    data = build([(1, None, b"a"), (2, None, b"b")])
    assert [record.offset for record in records_of(kbat.convert(data, 1, first_offset=1)[0])] == [1]


@pytest.mark.parametrize(
    ("magic", "options", "error", "match"),
    [
        (3, {}, ValueError, "magic 3"),
        (-1, {}, ValueError, "use 0, 1 or 2"),
        (1, {"compression": "zstd"}, ValueError, "zstd compression is not supported"),
        (1, {"compression": "zip"}, ValueError, "unknown compression"),
        (2, {"level": 3}, ValueError, "level needs a codec"),
        (2, {"compression": "gzip", "first_offset": 0}, ValueError, "keeps the codecs"),
    ],
)
def test_convert_with_bad_options_raises(
    magic: int, options: dict[str, Any], error: type[Exception], match: str
) -> None:
    """The message names the error."""
    with pytest.raises(error, match=match):
        kbat.convert(b"", magic, **options)


def test_convert_of_bad_data_raises() -> None:
    """Corruption, zstd and arguments that are not bytes."""
    data = bytearray(build())
    data[-1] ^= 1
    with pytest.raises(kbat.CrcError):
        kbat.convert(data, 1)
    with pytest.raises(kbat.UnsupportedError, match="zstd"):
        kbat.convert(build(compression="zstd"), 1)
    with pytest.raises(kbat.LimitError):
        kbat.convert(build(), 1, limits=kbat.Limits(batch_len=10))
    with pytest.raises(TypeError, match="data must be a bytes-like object, not str"):
        kbat.convert("text", 1)  # type: ignore[arg-type]
