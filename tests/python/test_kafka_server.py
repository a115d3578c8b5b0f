"""Kafka's server classes return the results of Kafka's own tests, so they can check kbat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from data import DATA, patched, read_text
from java_process import RefusedError
from kafka_judge import BatchSpec, Codec, KafkaJudge, MarkerSpec, ReadBatch, RecordSpec
from kafka_server import KafkaServer, ProduceRefusedError

if TYPE_CHECKING:
    from pathlib import Path

    from old_kafka import OldKafka

LAST_OFFSET_DELTA, RECORD_COUNT = 23, 57


def offsets(batches: list[ReadBatch]) -> list[int]:
    return [record.offset for batch in batches for record in batch.records]


# Produce validation, as in LogValidatorTest


def three_records(compression: Codec) -> BatchSpec:
    return BatchSpec(records=tuple(RecordSpec(at, 100 + at, b"k", b"v") for at in range(3)), compression=compression)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_validate_assigns_offsets_and_epoch(kafka: KafkaJudge, kafka_server: KafkaServer, compression: Codec) -> None:
    validated = kafka_server.validate(kafka.write(three_records(compression)), offset=1234, leader_epoch=7)
    (batch,) = kafka.read(validated.data)
    assert (batch.base_offset, batch.last_offset, batch.partition_leader_epoch) == (1234, 1236, 7)
    assert (batch.compression, validated.next_offset, validated.max_timestamp) == (compression, 1237, 102)
    assert not validated.size_maybe_changed


def test_validate_log_append_time_recompresses_to_the_topics_codec(
    kafka: KafkaJudge, kafka_server: KafkaServer
) -> None:
    data = kafka.write(three_records("gzip"))
    validated = kafka_server.validate(data, timestamp_type="LogAppendTime", compression="zstd", level=3, now_ms=555)
    (batch,) = kafka.read(validated.data)
    assert (batch.compression, batch.timestamp_type) == ("zstd", "LogAppendTime")
    assert [record.timestamp for record in batch.records] == [555] * 3
    assert (validated.log_append_time, validated.size_maybe_changed) == (555, True)


@pytest.mark.parametrize(
    ("last_offset_delta", "record_count", "accepted"),
    [(2, 3, True), (0, 3, False), (15, 3, False), (-3, 3, False), (5, 6, False), (1, 2, False)],
)
def test_validate_compares_last_offset_delta_and_count(
    kafka: KafkaJudge, kafka_server: KafkaServer, last_offset_delta: int, record_count: int, *, accepted: bool
) -> None:
    data = patched(kafka.write(three_records("none")), LAST_OFFSET_DELTA, ">i", last_offset_delta)
    data = patched(data, RECORD_COUNT, ">i", record_count)
    if accepted:
        assert kafka_server.validate(bytes(data)).next_offset == 3
        return
    with pytest.raises(ProduceRefusedError) as refusal:
        kafka_server.validate(bytes(data))
    assert (refusal.value.kind, refusal.value.name) == ("InvalidRecordException", "INVALID_RECORD")


def test_validate_compacted_topic_names_records_without_key(kafka: KafkaJudge, kafka_server: KafkaServer) -> None:
    records = (RecordSpec(0, 0, b"k"), RecordSpec(1, 0), RecordSpec(2, 0, b"k"), RecordSpec(3, 0))
    with pytest.raises(ProduceRefusedError, match="Compacted topic cannot accept message without key") as refusal:
        kafka_server.validate(kafka.write(BatchSpec(records=records)), compacted=True)
    assert (refusal.value.code, [index for index, _ in refusal.value.record_errors]) == (87, [1, 3])


def test_validate_refuses_timestamps_out_of_the_topics_range(kafka: KafkaJudge, kafka_server: KafkaServer) -> None:
    with pytest.raises(ProduceRefusedError, match="invalid timestamp") as refusal:
        kafka_server.validate(kafka.write(three_records("none")), now_ms=1102, before_max_ms=1000)
    assert (refusal.value.name, [index for index, _ in refusal.value.record_errors]) == ("INVALID_TIMESTAMP", [0, 1])


@pytest.mark.parametrize(
    ("batches", "version", "reason"),
    [
        (1, 13, None),
        (2, 13, "exactly one record batch"),
        (0, 13, "at least one record batch"),
        (1, 6, "ZStandard compression"),
    ],
)
def test_check_request_counts_batches_and_looks_at_the_codec(
    kafka: KafkaJudge, kafka_server: KafkaServer, batches: int, version: int, *, reason: str | None
) -> None:
    data = kafka.write(three_records("zstd")) * batches
    if reason is None:
        kafka_server.check_request(data, version)
        return
    with pytest.raises(ProduceRefusedError, match=reason):
        kafka_server.check_request(data, version)


# Filtering, as in MemoryRecordsTest

REFERENCE = (
    (RecordSpec(0, 10, None, b"a"),),
    (RecordSpec(1, 11, b"1", b"b"), RecordSpec(2, 12, None, b"c")),
    (RecordSpec(3, 13, None, b"d"), RecordSpec(4, 20, b"4", b"e"), RecordSpec(5, 15, b"5", b"f")),
    (RecordSpec(6, 16, b"6", b"g"),),
)
"""The input of MemoryRecordsTest.testFilterTo; format.md 7.4 has it with its results."""


def reference(kafka: KafkaJudge, magic: int, compression: Codec) -> bytes:
    specs = [
        BatchSpec(records=records, magic=magic, compression=compression, base_offset=records[0].offset)
        for records in REFERENCE
    ]
    return b"".join(kafka.write(spec) for spec in specs)


@pytest.mark.parametrize(
    ("magic", "compression", "expected"),
    [
        (1, "none", [(1, 1, 11), (4, 4, 20), (5, 5, 15), (6, 6, 16)]),
        (1, "gzip", [(1, 1, 11), (4, 5, 20), (6, 6, 16)]),
        (2, "none", [(1, 2, 11), (3, 5, 20), (6, 6, 16)]),
        (2, "zstd", [(1, 2, 11), (3, 5, 20), (6, 6, 16)]),
    ],
)
def test_filter_to_keeps_records_with_keys(
    kafka: KafkaJudge,
    kafka_server: KafkaServer,
    magic: int,
    compression: Codec,
    expected: list[tuple[int, int, int]],
) -> None:
    data = reference(kafka, magic, compression)
    filtered = kafka_server.filter_to(data)
    batches = kafka.read(filtered.data)
    assert [(batch.base_offset, batch.last_offset, batch.max_timestamp) for batch in batches] == expected
    assert offsets(batches) == [1, 4, 5, 6]
    assert (filtered.records_read, filtered.records_retained, filtered.bytes_read) == (7, 4, len(data))
    assert (filtered.bytes_retained, filtered.max_timestamp) == (len(filtered.data), 20)


def test_filter_to_retains_an_empty_batch_when_told(kafka: KafkaJudge, kafka_server: KafkaServer) -> None:
    spec = BatchSpec(
        records=(RecordSpec(3, 10, b"a", b"1"), RecordSpec(4, 12, b"b", b"2")),
        base_offset=3,
        producer_id=23,
        producer_epoch=5,
        base_sequence=10,
        partition_leader_epoch=293,
    )
    data = kafka.write(spec)
    filtered = kafka_server.filter_to(data, keep_offsets=[], batch_retention={3: "RETAIN_EMPTY"})
    (batch,) = kafka.read(filtered.data)
    assert (len(filtered.data), batch.record_count, batch.max_timestamp) == (61, 0, 12)
    assert (batch.base_sequence, batch.last_sequence, batch.partition_leader_epoch) == (10, 11, 293)
    assert kafka_server.filter_to(data, keep_offsets=[]).data == b""


def test_filter_to_sets_the_delete_horizon_of_tombstones(kafka: KafkaJudge, kafka_server: KafkaServer) -> None:
    data = kafka.write(BatchSpec(records=(RecordSpec(0, 50, b"a"), RecordSpec(1, 60, b"b", b"2"))))
    filtered = kafka_server.filter_to(data, now_ms=1000, delete_retention_ms=100)
    (batch,) = kafka.read(filtered.data)
    assert batch.delete_horizon_ms == 1100
    assert [record.timestamp for record in batch.records] == [50, 60]


def test_filter_to_full_buffer_is_resumed_by_bytes_read(kafka: KafkaJudge, kafka_server: KafkaServer) -> None:
    data, found = reference(kafka, 2, "none"), []
    while data:
        filtered = kafka_server.filter_to(data, buffer_len=64)
        found += offsets(kafka.read(filtered.data))
        data = data[filtered.bytes_read :]
    assert found == [1, 4, 5, 6]


# Down-conversion, as in FileRecordsTest


def mixed(kafka: KafkaJudge, compression: Codec) -> bytes:
    header = (("headerKey", b"headerValue"),)
    places = [(0, (0, 2, 3)), (1, (9, 11, 15)), (2, (16, 17, 22, 24))]
    specs = [
        BatchSpec(
            records=tuple(RecordSpec(at, at, b"k", b"v", header if at in {17, 24} else ()) for at in offsets),
            magic=magic,
            compression=compression,
            base_offset=offsets[0],
        )
        for magic, offsets in places
    ]
    return b"".join(kafka.write(spec) for spec in specs)


ALL = [0, 2, 3, 9, 11, 15, 16, 17, 22, 24]


@pytest.mark.parametrize(
    ("compression", "magic", "first_offset", "left_out"),
    [
        ("none", 0, 0, []),
        ("none", 1, 0, []),
        ("none", 2, 0, []),
        ("gzip", 0, 0, []),
        ("gzip", 1, 0, []),
        ("none", 0, 11, [9]),
        ("none", 1, 17, [16]),
        ("gzip", 0, 11, []),
    ],
)
def test_down_convert_keeps_offsets_and_drops_headers(  # noqa: PLR0913 - a table
    kafka: KafkaJudge, old_kafka: OldKafka, *, compression: Codec, magic: int, first_offset: int, left_out: list[int]
) -> None:
    converted = kafka.read(old_kafka.down_convert(mixed(kafka, compression), magic, first_offset))
    assert offsets(converted) == [offset for offset in ALL if offset not in left_out]
    assert all(batch.magic <= magic for batch in converted)
    headers = [record.offset for batch in converted for record in batch.records if record.headers]
    assert headers == ([17, 24] if magic == 2 else [])


def test_down_convert_leaves_out_markers(kafka: KafkaJudge, old_kafka: OldKafka) -> None:
    marker = MarkerSpec(
        producer_id=9, producer_epoch=0, commit=True, timestamp=5, base_offset=3, coordinator_epoch=0,
        partition_leader_epoch=0,
    )  # fmt: skip
    data = kafka.write(three_records("none")) + kafka.end_transaction_marker(**marker)
    assert offsets(kafka.read(old_kafka.down_convert(data, 1))) == [0, 1, 2]


def test_down_convert_refuses_zstd(kafka: KafkaJudge, old_kafka: OldKafka) -> None:
    with pytest.raises(RefusedError) as refusal:
        old_kafka.down_convert(kafka.write(three_records("zstd")), 1)
    assert refusal.value.kind == "UnsupportedCompressionTypeException"


# kafka-dump-log


@pytest.mark.parametrize("name", ["compacted", "crash-torn", "txn-live", "retention-all"])
def test_dump_log_prints_what_is_stored_in_the_corpus(kafka_server: KafkaServer, name: str) -> None:
    directory = DATA / "corpus" / name
    for section in read_text(directory / "kafka-dump-log.txt").split("$ kafka-dump-log --files ")[1:]:
        command, _, expected = section.partition("\n")
        file, option = command.split(" ")
        printed, complaints = kafka_server.dump_log([directory / file], option)
        found = printed + (f"[stderr]\n{complaints}" if complaints else "")
        assert found.replace(f"{DATA}/corpus/", "") == expected


def test_faults_are_empty_for_a_broker_s_files(kafka_server: KafkaServer) -> None:
    assert kafka_server.faults(DATA / "corpus" / "segments-dense-index") == []


def test_faults_names_bad_checksums_cut_batches_and_wrong_index_entries(
    kafka_server: KafkaServer, tmp_path: Path
) -> None:
    segments = sorted((DATA / "corpus" / "segments-dense-index").glob("*.log"))
    log, index = segments[0], segments[0].with_suffix(".index")
    (tmp_path / log.name).write_bytes(patched(log.read_bytes(), 100, ">B", 255))
    (tmp_path / index.name).write_bytes(patched(index.read_bytes(), 0, ">i", 1))
    (tmp_path / segments[1].name).write_bytes(segments[1].read_bytes()[:-1])
    faults = "\n".join(kafka_server.faults(tmp_path))
    assert "isvalid: false" in faults
    assert f"Mismatches in :{tmp_path / index.name}" in faults
    assert "invalid bytes at the end of" in faults
