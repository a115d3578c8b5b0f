"""Compares every segment and snapshot of `tests/data`, read by the Python API, with Kafka 4.3.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import kbat
from data import DATA, Expected, Line, answer, decoded, name_of, plain, segments

if TYPE_CHECKING:
    from pathlib import Path

FILES = segments("corpus") + segments("corpus-legacy")
ALL_COLUMNS = [
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "headers",
    "base_offset",
    "position",
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "sequence",
    "is_transactional",
    "compression",
    "magic",
    "batch_size",
    "segment",
]
TIMESTAMP_TYPE_IDS = {None: -1, "CreateTime": 0, "LogAppendTime": 1}

LINKED_LZ4 = DATA / "corpus-legacy/k0102-kp135-lz4-wire/00000000000000000000.log"
# kbat's errors if Kafka's answer is an error; the linked LZ4 blocks are read (docs/differences.md).
ERRORS: dict[str, type[kbat.KbatError] | None] = {
    "k0102-kp135-lz4-wire": None,
    "k0822-nested-wire": kbat.CorruptError,
    "crash-flip": kbat.DecompressionError,
}

every_file = pytest.mark.parametrize("path", FILES, ids=name_of)


def assert_batch(batch: kbat.Batch, line: Line) -> None:
    legacy = line["magic"] < 2
    found = {
        "position": batch.position,
        "size": batch.size,
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": None if legacy else batch.record_count,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "magic": batch.magic,
        "crc": batch.crc,
        "crcValid": batch.crc_ok,
        "attributes": batch.attributes,
        "compression": batch.compression,
        "timestampType": batch.timestamp_type or "NoTimestampType",
        "baseTimestamp": None if legacy else batch.base_timestamp,
        "maxTimestamp": batch.max_timestamp,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": batch.delete_horizon_ms,
    }
    # the answers give a count for v0 and v1 too where nothing is compressed
    expected = {name: value for name, value in line.items() if name != "type"}
    if legacy:
        expected["count"] = expected["baseTimestamp"] = None
    assert found == expected
    assert batch.next_offset == line["lastOffset"] + 1


def assert_record(batch: kbat.Batch, record: kbat.Record, line: Line) -> None:
    assert plain(record) == decoded(line)
    assert (record.timestamp_type or "NoTimestampType") == line["timestampType"]
    assert [(key.decode(errors="replace"), value) for key, value in record.raw_headers] == record.headers
    if "controlType" not in line:
        assert batch.is_control or record.control is None
        return
    assert record.control is not None
    assert record.control.type == line["controlType"]
    assert record.control.coordinator_epoch == line.get("coordinatorEpoch")


def assert_records(batch: kbat.Batch, expected: Expected) -> None:
    if expected.error is None:
        for record, line in zip(batch, expected.records, strict=True):
            assert_record(batch, record, line)


def stored_base_offset(batch: kbat.Batch) -> int:
    return int.from_bytes(bytes(batch)[:8], signed=True)


def error_of(path: Path) -> type[kbat.KbatError] | None:
    case = path.parent.name
    assert case in ERRORS, f"{path} has an error that no rule names"
    return ERRORS[case]


@every_file
def test_corpus_file_reads_as_in_kafka(path: Path) -> None:
    """By path and from bytes, with checksums verified unless Kafka's answer is an error."""
    expected = answer(path)
    data = path.read_bytes()
    assert len(data) == expected.end["fileSize"]
    for source in (path, data):
        walk = kbat.read_batches(source)
        for batch, wanted in zip(walk, expected.batches, strict=True):
            if wanted.batch is not None:
                assert_batch(batch, wanted.batch)
            assert_records(batch, wanted)
        assert walk.position == expected.end["validBytes"]
        assert walk.remainder == data[walk.position :]
        if expected.framing_error is not None:
            assert set(walk.remainder) == {0}


def test_corpus_is_whole() -> None:
    answers = [answer(path) for path in FILES]
    assert len(FILES) == 242 + 209
    assert sum(len(found.batches) for found in answers) == 4147 + 2347
    assert sum(len(batch.records) for found in answers for batch in found.batches) == 17752 + 8632
    cases = {path.parent.name for path, found in zip(FILES, answers, strict=True) for b in found.batches if b.error}
    assert cases == set(ERRORS)


@pytest.mark.parametrize("case", [case for case, error in ERRORS.items() if error is not None])
def test_corpus_bad_batch_raises_and_the_walk_goes_on(case: str) -> None:
    [path] = [path for path in FILES if path.parent.name == case and any(b.error for b in answer(path).batches)]
    error = ERRORS[case]
    assert error is not None
    bad = {batch.position for batch in answer(path).batches if batch.error}
    for batch in kbat.read_batches(path, check_crc=False):
        if batch.position in bad:
            with pytest.raises(error) as raised:
                list(batch)
            assert raised.value.path == str(path)
            assert raised.value.base_offset == stored_base_offset(batch)
        else:
            list(batch)


def test_corpus_linked_lz4_blocks_are_read() -> None:
    """Edge case 45: brokers refused the set; kbat reads it, and the message checksums vouch for the records."""
    [bad] = [batch.position for batch in answer(LINKED_LZ4).batches if batch.error]
    [batch] = [batch for batch in kbat.read_batches(LINKED_LZ4) if batch.position == bad]
    records = list(batch)
    assert [record.offset for record in records] == list(range(len(records)))
    assert sum(len(record.value or b"") for record in records) > 65536, "one block would not be linked to anything"


def rows_by_reading(path: Path) -> list[Line]:
    """The expected result of a scan, computed from the records."""
    rows = []
    for batch in kbat.read_batches(path):
        rows += [
            {
                "key": record.key,
                "value": record.value,
                "topic": None,
                "partition": None,
                "offset": record.offset,
                "timestamp": None if record.timestamp == -1 else record.timestamp,
                "timestamp_type": TIMESTAMP_TYPE_IDS[record.timestamp_type],
                "headers": [{"key": key, "value": value} for key, value in record.headers],
                "base_offset": batch.base_offset,
                "position": batch.position,
                "partition_leader_epoch": batch.partition_leader_epoch,
                "producer_id": batch.producer_id,
                "producer_epoch": batch.producer_epoch,
                "sequence": record.sequence,
                "is_transactional": batch.is_transactional,
                "compression": batch.compression,
                "magic": batch.magic,
                "batch_size": batch.size,
                "segment": str(path),
            }
            for record in batch
        ]
    return rows


def with_plain_timestamps(table: pa.Table) -> pa.Table:
    """Timestamps as milliseconds: `datetime` has no room for all of them."""
    index = table.schema.get_field_index("timestamp")
    return table.set_column(index, "timestamp", table["timestamp"].cast(pa.int64()))


@every_file
def test_corpus_file_scans_to_the_rows_that_reading_gives(path: Path) -> None:
    scan = kbat.scan(path, columns=ALL_COLUMNS, include_control=True)
    unreadable = any(batch.error for batch in answer(path).batches) and error_of(path)
    if unreadable:
        with pytest.raises(kbat.CorruptError) as raised:
            scan.to_pyarrow()
        assert raised.value.path == str(path)
        return
    table = scan.to_pyarrow()
    table.validate(full=True)
    rows = with_plain_timestamps(table).to_pylist()
    expected = rows_by_reading(path)
    if path.parent.parent.name in {"corpus", "corpus-legacy"} and path.parent.name.rpartition("-")[2].isdigit():
        # a case such as `level-gzip-1` looks like partition 1 of a topic
        topic, _, partition = path.parent.name.rpartition("-")
        expected = [{**row, "topic": topic, "partition": int(partition)} for row in expected]
    assert rows == expected


@pytest.mark.parametrize("path", [p for p in FILES if p.parent.name.startswith("txn")], ids=name_of)
def test_corpus_scan_leaves_control_records_out(path: Path) -> None:
    offsets = kbat.scan(path, columns=["offset"]).to_pyarrow()["offset"].to_pylist()
    batches = [batch for batch in answer(path).batches if batch.batch is not None and not batch.batch["isControl"]]
    assert offsets == [record["offset"] for batch in batches for record in batch.records]
