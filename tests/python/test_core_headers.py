"""Record headers and control records as a Python program sees them."""

from __future__ import annotations

from typing import Any

import pytest

import kbat
from data import build, patched, records_of, varint, with_right_crc

Pairs = list[tuple[str | bytes, bytes | None]]


def with_headers(headers: Pairs, **settings: Any) -> bytes:  # noqa: ANN401 -- those of BatchBuilder
    builder = kbat.BatchBuilder(**settings)
    builder.append(b"key", b"value", timestamp=0, headers=headers)
    return builder.finish()


def with_header_section(section: bytes) -> bytes:
    """Make a batch of one record whose headers are these bytes."""
    body = b"\0\0\0\1\1" + section
    data = build([(0, None, None)])[:61] + varint(len(body)) + body
    return bytes(with_right_crc(patched(data, 8, ">i", len(data) - 12)))


def control_batch(key: bytes | None, value: bytes | None, *, transactional: bool = True) -> bytes:
    """Set the control bit of a batch manually: the builder rejects keys that Kafka never writes."""
    data = build([(0, key, value)])
    return bytes(with_right_crc(patched(data, 21, ">h", 0x30 if transactional else 0x20)))


@pytest.mark.parametrize("count", [0, 1, 10_000])
def test_headers_any_number(count: int) -> None:
    """Edge case 34."""
    headers: Pairs = [(f"h{index}", b"%d" % index) for index in range(count)]
    [record] = records_of(with_headers(headers))
    assert record.headers == headers


@pytest.mark.parametrize("count", [-1, 2**31 - 1])
def test_headers_impossible_count_raises(count: int) -> None:
    """Edge case 34: three bytes are left for two thousand million headers."""
    with pytest.raises(kbat.CorruptError) as raised:
        records_of(with_header_section(varint(count) + b"abc"))
    assert raised.value.field == "header_count"
    assert raised.value.record == 0


def test_header_value_null_empty_and_missing_differ() -> None:
    """Edge case 35."""
    headers: Pairs = [("null", None), ("empty", b""), ("some", b"x")]
    data = with_headers(headers)
    [record] = records_of(data)
    assert record.headers == headers
    assert with_headers(list(record.raw_headers)) == data, "the same bytes again"
    assert records_of(with_headers([]))[0].headers == []


def test_header_order_and_duplicates_are_kept() -> None:
    """Edge case 36."""
    headers: Pairs = [("b", b"1"), ("a", b"2"), ("b", b"3"), ("a", b"2")]
    assert records_of(with_headers(headers))[0].headers == headers


def test_header_key_may_be_empty() -> None:
    """Edge case 37."""
    [record] = records_of(with_headers([("", b"v")]))
    assert record.headers == [("", b"v")]
    assert record.raw_headers == [(b"", b"v")]


def test_header_key_null_raises() -> None:
    """Edge case 37."""
    with pytest.raises(kbat.CorruptError) as raised:
        records_of(with_header_section(varint(1) + varint(-1) + varint(-1)))
    assert raised.value.field == "header_key_length"


# The result of `new String(bytes, UTF_8)` in Java 17.
JAVA_TEXTS = [
    (b"gr\xc3\xbc\xc3\x9fe", "gr\u00fc\u00dfe"),
    (b"\xff", "\ufffd"),
    (b"a\xc3", "a\ufffd"),
    (b"\xe2\x82", "\ufffd"),
    (b"\xe2\x28\xa1", "\ufffd(\ufffd"),
    (b"\xe0\x80\x80", "\ufffd\ufffd\ufffd"),
    (b"\xf0\x9f\x98", "\ufffd"),
    (b"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"),
    (b"\xc0\x80", "\ufffd\ufffd"),
    (b"\xed", "\ufffd"),
    (b"\xed\xa0", "\ufffd"),
    (b"\xed\xa0\x80", "\ufffd"),
    (b"\xed\xa0\x80\xed\xb0\x80", "\ufffd\ufffd"),
    (b"\xed\xbf\xbfA", "\ufffdA"),
    (b"\xed\xb0A\x80", "\ufffdA\ufffd"),
]


@pytest.mark.parametrize(("raw", "text"), JAVA_TEXTS)
def test_header_key_that_is_no_utf8_shows_u_fffd(raw: bytes, text: str) -> None:
    """Edge case 37: as in Java, which replaces an encoded surrogate by one character; the bytes are available too."""
    [record] = records_of(with_headers([(raw, b"v")]))
    assert record.headers == [(text, b"v")]
    assert record.raw_headers == [(raw, b"v")]
    [row] = kbat.scan(with_headers([(raw, b"v")]), columns=["headers"]).to_pyarrow().to_pylist()
    assert row == {"headers": [{"key": text, "value": b"v"}]}


def test_header_value_cut_by_the_record_raises() -> None:
    """Edge case 38."""
    with pytest.raises(kbat.TruncatedError) as raised:
        records_of(with_header_section(varint(1) + varint(1) + b"k" + varint(5) + b"only"[:3]))
    assert raised.value.field == "header_value"


def test_raw_headers_do_not_share_memory_with_the_record() -> None:
    [record] = records_of(with_headers([("a", b"1")]))
    record.headers.append(("b", b"2"))
    assert record.headers == [("a", b"1")]


@pytest.mark.parametrize(("key", "name", "number"), [(b"\0\0\0\0", "ABORT", 0), (b"\0\0\0\1", "COMMIT", 1)])
@pytest.mark.parametrize("version", [0, 1, 99])
def test_control_markers(key: bytes, name: str, number: int, version: int) -> None:
    """Edge case 64: a version above the known one is read as that."""
    key = version.to_bytes(2) + key[2:]
    [record] = records_of(control_batch(key, b"\0\0\0\0\0\x2a"))
    assert record.control is not None
    assert (record.control.type, record.control.type_id, record.control.coordinator_epoch) == (name, number, 42)
    assert record.control.fields == {"coordinator_epoch": 42}


@pytest.mark.parametrize("number", [7, 99, -3])
def test_control_unknown_type_is_named_by_its_number(number: int) -> None:
    """Edge case 64: with an unknown value."""
    [record] = records_of(control_batch(b"\0\0" + number.to_bytes(2, signed=True), bytes(range(22))))
    assert record.control is not None
    assert (record.control.type, record.control.type_id) == (f"UNKNOWN({number})", number)
    assert record.control.coordinator_epoch is None
    assert record.control.fields == {}
    assert record.value == bytes(range(22))


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_control_key_too_short_raises_when_asked_for(key: bytes | None) -> None:
    """Edge case 64: the record itself is read."""
    [record] = records_of(control_batch(key, b"\0\0\0\0\0\0"))
    assert record.key == key
    with pytest.raises(kbat.CorruptError):
        _ = record.control


def test_control_key_may_be_longer() -> None:
    """Edge case 64."""
    [record] = records_of(control_batch(b"\0\0\0\1\xff\xff\xff\xff", b"\0\0\0\0\0\1"))
    assert record.control is not None
    assert record.control.type == "COMMIT"


@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0\0"])
def test_control_marker_value_too_short_raises_when_asked_for(value: bytes | None) -> None:
    """Edge case 64."""
    [record] = records_of(control_batch(b"\0\0\0\1", value))
    with pytest.raises(kbat.CorruptError):
        _ = record.control


def test_control_batch_with_no_or_two_records() -> None:
    """Edge case 65."""
    builder = kbat.BatchBuilder(control=True)
    for kind in (b"\0\0\0\3", b"\0\0\0\4"):
        builder.append(kind, b"\0\0" + bytes(8) + b"\0", timestamp=0)
    data = builder.finish()
    kinds = [record.control.type for record in records_of(data) if record.control is not None]
    assert kinds == ["SNAPSHOT_HEADER", "SNAPSHOT_FOOTER"]
    empty = patched(patched(data[:61], 8, ">i", 49), 57, ">i", 0)
    [batch] = kbat.read_batches(bytes(with_right_crc(empty)))
    assert batch.is_control
    assert list(batch) == []


def test_control_batch_outside_a_transaction_is_read() -> None:
    """Edge case 65: the control bit without the transactional one."""
    data = control_batch(b"\0\0\0\0", b"\0\0\0\0\0\7", transactional=False)
    [batch] = kbat.read_batches(data)
    assert (batch.is_control, batch.is_transactional) == (True, False)
    [record] = batch
    assert record.control is not None
    assert record.control.coordinator_epoch == 7


def test_control_records_compare_by_what_they_say() -> None:
    one, two, other = (
        records_of(control_batch(b"\0\0\0\1", b"\0\0\0\0\0" + bytes([epoch])))[0].control for epoch in (1, 1, 2)
    )
    assert one == two
    assert one != other


def test_control_is_none_for_data() -> None:
    assert records_of(with_headers([]))[0].control is None
