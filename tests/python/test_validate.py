"""`kbat.validate`: the Python side; the rules are tested in Rust, Kafka's own judgement in `test_kafka_validate.py`."""

from __future__ import annotations

import time
from typing import Any

import pytest

import kbat
from data import build, records_of

NOW = 1_700_000_000_000


def test_validate_gives_what_a_broker_stores() -> None:
    """Offsets and leader epoch are set."""
    data = build([(NOW, b"k", b"v"), (NOW + 1, None, b"w")])
    answer = kbat.validate(bytearray(data), base_offset=42, partition_leader_epoch=3, now_ms=NOW)
    assert answer
    assert answer.ok
    assert (answer.error, answer.error_code, answer.message, answer.record_errors) == (None, 0, None, [])
    assert answer.position is None
    assert answer.bytes is not None
    assert [record.offset for record in records_of(answer.bytes)] == [42, 43]
    assert (answer.next_offset, answer.max_timestamp) == (44, NOW + 1)
    assert (answer.shallow_offset_of_max_timestamp, answer.is_rebuilt, answer.valid_len) == (43, False, len(data))
    assert repr(answer) == f"Validation(ok, {len(data)} bytes, next_offset=44)"


def test_validate_says_why_a_broker_refuses() -> None:
    """Code, message, records and position."""
    answer = kbat.validate(build([(NOW, b"k", b"v"), (NOW, None, b"w")]), compacted=True, now_ms=NOW)
    assert not answer
    assert (answer.error, answer.error_code, answer.position) == ("INVALID_RECORD", 87, 0)
    assert answer.record_errors == [(1, "Compacted topic cannot accept message without key")]
    assert answer.message is not None
    assert answer.message.endswith("Compacted topic cannot accept message without key")
    assert (answer.bytes, answer.next_offset, answer.is_rebuilt, answer.valid_len) == (None, None, None, None)
    assert repr(answer).startswith("Validation(INVALID_RECORD: One or more records")


def test_validate_takes_the_clock_where_no_time_is_given() -> None:
    """Two hours ahead of now is too far."""
    ahead = build([(int(time.time() * 1000) + 7_200_000, b"k", b"v")])
    assert kbat.validate(ahead).error == "INVALID_TIMESTAMP"
    assert kbat.validate(ahead, timestamp_after_max_ms=8_000_000).ok
    assert kbat.validate(build([(0, b"k", b"v")])).ok
    assert kbat.validate(build([(0, b"k", b"v")]), timestamp_before_max_ms=1000).error == "INVALID_TIMESTAMP"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"origin": "broker"}, "unknown origin"),
        ({"magic": 256}, "use 0, 1 or 2"),
        ({"compression": "uncompressed"}, "unknown compression"),
        ({"level": 3}, "a compression level needs a codec"),
        ({"timestamp_type": "Now"}, "unknown timestamp_type"),
    ],
)
def test_validate_with_bad_settings_raises(options: dict[str, Any], match: str) -> None:
    """The message names the error."""
    with pytest.raises(ValueError, match=match):
        kbat.validate(build(), **options)


def test_validate_of_a_bomb_raises() -> None:
    """If a limit is exceeded, an error is raised instead of an answer."""
    data = build([(NOW, None, bytes(1 << 20))], compression="zstd")
    with pytest.raises(kbat.LimitError):
        kbat.validate(data, limits=kbat.Limits(decompressed_len=1000, ratio_free_len=1000))
    with pytest.raises(TypeError, match="data must be a bytes-like object"):
        kbat.validate("text")  # type: ignore[arg-type]
