"""`kbat.BatchBuilder` on the specifications of `corpus/writes`, against Kafka's bytes; golden bytes; sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import kbat
from data import DATA, Line, answer, build, from_base64, headers_of, json_lines, name_of, patched, plain, records_of

if TYPE_CHECKING:
    from pathlib import Path

SPECS = sorted((DATA / "corpus/writes").glob("*.spec.json"))
SETTINGS = {
    "magic": "magic",
    "codec": "compression",
    "level": "level",
    "baseOffset": "base_offset",
    "timestampType": "timestamp_type",
    "logAppendTime": "log_append_time",
    "lastOffset": "last_offset",
    "partitionLeaderEpoch": "partition_leader_epoch",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "baseSequence": "base_sequence",
    "transactional": "transactional",
    "control": "control",
    "deleteHorizonMs": "delete_horizon_ms",
}


def log_of(spec: Path) -> Path:
    return spec.with_name(spec.name.replace(".spec.json", ".log"))


def build_batch(spec: Line, expected: list[Line]) -> bytes:
    """Build one batch; control records, which a specification only names, get Kafka's key and value as bytes."""
    settings: dict[str, Any] = {SETTINGS[name]: value for name, value in spec.items() if name != "records"}
    builder = kbat.BatchBuilder(**settings)
    for record, line in zip(spec["records"], expected, strict=True):
        source = line if spec.get("control") else record
        builder.append(
            from_base64(source["key"]),
            from_base64(source["value"]),
            timestamp=record["timestamp"],
            headers=headers_of(source),
            offset=line["offset"],
        )
    size, most = builder.size, builder.estimated_size
    data = builder.finish()
    assert len(data) <= most
    if spec["codec"] == "none":
        assert len(data) == size == most
    return data


def build_spec(path: Path) -> bytes:
    expected = [record for batch in answer(log_of(path)).batches for record in batch.records]
    out = b""
    for spec in json_lines(path)[0]["batches"]:
        count = len(spec["records"])
        out += build_batch(spec, expected[:count])
        expected = expected[count:]
    assert not expected
    return out


def header(batch: kbat.Batch) -> tuple[object, ...]:
    """The header except the fields that depend on the compressed bytes: size and checksum."""
    return (
        (batch.base_offset, batch.last_offset, batch.record_count, batch.partition_leader_epoch, batch.magic),
        (batch.attributes, batch.base_timestamp, batch.max_timestamp, batch.delete_horizon_ms),
        (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence),
    )


def test_writes_are_all_here() -> None:
    codecs = [{batch["codec"] for batch in json_lines(spec)[0]["batches"]} for spec in SPECS]
    assert len(SPECS) == 84
    assert sum(codec == {"none"} for codec in codecs) == 24


@pytest.mark.parametrize("path", SPECS, ids=name_of)
def test_writes_equal_those_of_kafka(path: Path) -> None:
    """Edge case 69: the same bytes if nothing is compressed, otherwise the same header and records."""
    ours, kafkas = build_spec(path), log_of(path).read_bytes()
    if all(batch["codec"] == "none" for batch in json_lines(path)[0]["batches"]):
        assert ours == kafkas
        return
    pairs = zip(kbat.read_batches(ours), kbat.read_batches(kafkas), strict=True)
    for our_batch, kafkas_batch in pairs:
        assert our_batch.crc_ok
        assert header(our_batch) == header(kafkas_batch)
        assert list(map(plain, our_batch)) == list(map(plain, kafkas_batch))


TWO_RECORDS = [(283843, b"key1", b"value1"), (1234, b"key2", b"value2")]
V2_BATCH = bytes.fromhex(
    "000000000000000000000055ffffffff02e58cf1ff00000000000100000000000454c300000000000454c3"
    "ffffffffffffffffffffffffffff0000000220000000086b6579310c76616c756531002400e1bf2202086b6579320c76616c75653200"
)
COMMIT_MARKER = bytes.fromhex(
    "00000000000003d7000000420000001d02050d7e510030000000000000018bcfe568000000018bcfe568000000000000000049"
    "000dffffffff000000012000000008000000010c00000000015b00"
)


@pytest.mark.parametrize(
    ("magic", "compression", "crc"),
    [(0, "none", 1978725405), (1, "none", 109425508), (2, "none", 3851219455), (2, "lz4", 2745969314)],
)
def test_writes_golden_checksums_are_kafkas(magic: int, compression: str, crc: int) -> None:
    """After `MemoryRecordsTest.testChecksum`."""
    data = build(TWO_RECORDS, magic=magic, compression=compression)
    batch = next(kbat.read_batches(data))
    assert batch.crc == crc
    assert batch.crc_ok


def test_writes_golden_batch_is_exact() -> None:
    assert build(TWO_RECORDS) == V2_BATCH


@pytest.mark.parametrize(("magic", "head"), [(0, "04224d1860401a"), (1, "04224d18604082"), (2, "04224d18604082")])
def test_writes_lz4_frame_head_depends_on_magic(magic: int, head: str) -> None:
    """Edge case 44: magic 0 has the broken header checksum, which is read for magic 0 only."""
    data = build(TWO_RECORDS, magic=magic, compression="lz4")
    start = data.index(bytes.fromhex("04224d18"))
    assert data[start : start + 7].hex() == head
    assert [record.key for record in records_of(data)] == [b"key1", b"key2"]
    flipped = bytes(patched(data, start + 6, ">B", 0x1A if magic else 0x82))
    if magic:
        with pytest.raises(kbat.DecompressionError):
            records_of(flipped, check_crc=False)
    else:
        assert len(records_of(flipped, check_crc=False)) == 2


def test_writes_commit_marker_is_exact() -> None:
    """Edge case 64. After `MemoryRecordsTest.testBuildEndTxnMarker`."""
    marker = kbat.end_transaction_marker(
        base_offset=983,
        timestamp=1700000000000,
        partition_leader_epoch=29,
        producer_id=73,
        producer_epoch=13,
        coordinator_epoch=347,
        commit=True,
    )
    assert marker == COMMIT_MARKER
    [record] = records_of(marker)
    assert record.control is not None
    assert (record.control.type, record.control.type_id, record.control.coordinator_epoch) == ("COMMIT", 1, 347)
    assert repr(record.control) == "ControlRecord(COMMIT, coordinator_epoch=347)"


def test_writes_abort_marker_differs_in_the_type_only() -> None:
    """Edge case 64."""
    arguments: dict[str, Any] = {"timestamp": 5, "producer_id": 1, "producer_epoch": 0, "coordinator_epoch": 9}
    commit = kbat.end_transaction_marker(commit=True, **arguments)
    abort = kbat.end_transaction_marker(commit=False, **arguments)
    differing = [index for index, (a, b) in enumerate(zip(commit, abort, strict=True)) if a != b]
    assert [index for index in differing if not 17 <= index < 21] == [69], "all but the checksum: the key's last byte"
    [record] = records_of(abort)
    assert record.control is not None
    assert (record.control.type, record.control.type_id) == ("ABORT", 0)


@pytest.mark.parametrize(("name", "value"), [("producer_id", -1), ("producer_epoch", -1), ("timestamp", -5)])
def test_writes_marker_refuses_what_kafka_refuses(name: str, value: int) -> None:
    arguments: dict[str, Any] = {"timestamp": 5, "producer_id": 1, "producer_epoch": 0, "commit": True, name: value}
    with pytest.raises(ValueError, match=name.removeprefix("producer_")):
        kbat.end_transaction_marker(**arguments)


@pytest.mark.parametrize(("magic", "size", "ten_records"), [(0, 34, 320), (1, 42, 400), (2, 76, 191)])
def test_writes_known_sizes(magic: int, size: int, ten_records: int) -> None:
    one = [(1700000000000, b"key", b"value")]
    ten = [(1700000000000, None, b"value%d" % index) for index in range(10)]
    for records, expected in ((one, size), (ten, ten_records)):
        assert len(build(records, magic=magic)) == expected
        assert kbat.batch_size(records, magic=magic) == expected


@pytest.mark.parametrize("boundary", [63, 64, 8191, 8192, 1048575, 1048576])
def test_writes_varint_boundaries_cost_a_byte(boundary: int) -> None:
    """Edge case 30."""
    sizes = {length: kbat.batch_size([(0, None, bytes(length))]) - length for length in (boundary, boundary + 1)}
    data = build([(0, None, bytes(boundary))])
    assert len(data) == sizes[boundary] + boundary
    assert records_of(data)[0].value == bytes(boundary)
    if boundary % 2:
        assert sizes[boundary + 1] == sizes[boundary] + 1, "the length field grows"
