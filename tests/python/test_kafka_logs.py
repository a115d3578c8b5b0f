"""Kafka's log classes return the corpus's answers in the tests, so they can check kbat on other data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import kafka_logs
from data import DATA, json_lines, read_text
from kafka_judge import BatchSpec, KafkaJudge, MarkerSpec, RecordSpec
from kafka_logs import Append, Appended
from kafka_server import NOW, KafkaServer, ProduceRefusedError

if TYPE_CHECKING:
    from pathlib import Path

CORPUS = DATA / "corpus"

# Indexes and lookups


@pytest.mark.parametrize("name", ["segments-dense-index", "txn-lz4", "live", "retention-all"])
def test_read_index_gives_the_lines_of_the_corpus(kafka_server: KafkaServer, name: str) -> None:
    expected = json_lines(CORPUS / name / "indexes.jsonl")
    files = dict.fromkeys(line["file"] for line in expected)
    assert [line for file in files for line in kafka_logs.read_index(kafka_server, CORPUS / name / file)] == expected


@pytest.mark.parametrize("name", ["segments-dense-index", "compacted", "out-of-order"])
def test_lookups_give_the_lines_of_the_corpus(kafka_server: KafkaServer, name: str) -> None:
    for log in sorted((CORPUS / name).glob("*.log")):
        for kind, look_up in (("offset", kafka_logs.lookup_offsets), ("time", kafka_logs.lookup_times)):
            expected = json_lines(log.with_suffix(f".lookup-{kind}.jsonl"))
            assert look_up(kafka_server, log, [line["target"] for line in expected]) == expected


# Loading


@pytest.mark.parametrize("name", ["crash-torn", "crash-flip", "crash-index", "crash-txn"])
def test_load_recovers_to_the_files_that_the_broker_left(kafka_server: KafkaServer, tmp_path: Path, name: str) -> None:
    configs = json.loads(read_text(CORPUS / name / "case.json"))["topicConfig"]
    loaded = kafka_logs.load(kafka_server, CORPUS / name, tmp_path, configs=configs)
    recovered = CORPUS / name / "recovered"
    for file in recovered.iterdir():
        # The broker was the leader with a new epoch after its recovery.
        if kafka_logs.KAFKAS_FILE.fullmatch(file.name) and file.name != "leader-epoch-checkpoint":
            assert (loaded.directory / file.name).read_bytes() == file.read_bytes(), file.name
    assert loaded.segments == [(int(log.stem), log.stat().st_size) for log in sorted(recovered.glob("*.log"))]


def test_load_answers_as_a_broker(kafka_server: KafkaServer, tmp_path: Path) -> None:
    expected = json.loads(read_text(CORPUS / "txn-lz4" / "read-committed.json"))
    loaded = kafka_logs.load(
        kafka_server, CORPUS / "txn-lz4", tmp_path, clean_shutdown=True, timestamps=[-1, -2, 2**62],
        aborted_ranges=[(0, 10), (374, 375)],
    )  # fmt: skip
    assert (loaded.log_end_offset, loaded.last_stable_offset) == (374, expected["endOffset"])
    assert loaded.timestamps == [(-1, 374, 0), (-1, 0, 0), None]
    assert loaded.aborted_transactions == [[(1010, 0), (1010, 5)], []]
    assert sum("currentTxnFirstOffset" in producer for producer in loaded.producers) == len(loaded.producers) > 1


# Appending


def test_append_rolls_segments_and_checks_sequences(
    kafka: KafkaJudge, kafka_server: KafkaServer, tmp_path: Path
) -> None:
    def batch(sequence: int) -> bytes:
        record = (RecordSpec(0, NOW, b"k", b"v"),)
        return kafka.write(BatchSpec(records=record, producer_id=9, producer_epoch=0, base_sequence=sequence))

    appends = [Append(batch(0), 3), Append(batch(1), 3), Append(batch(1), 3), Append(batch(5), 3)]
    log, done = kafka_logs.append(kafka_server, tmp_path, appends, configs={"internal.segment.bytes": 100})
    assert done[:3] == [Appended(0, 0, NOW, -1), Appended(1, 1, NOW, -1), Appended(1, 1, NOW, NOW)]  # a duplicate
    assert isinstance(done[3], ProduceRefusedError)
    assert (done[3].kind, done[3].code) == ("OutOfOrderSequenceException", 45)
    assert [base for base, _ in log.segments] == [0, 1, 2]  # it rolls before it knows a duplicate
    assert log.leader_epochs == [(3, 0)]
    assert kafka_server.faults(log.directory) == []


def test_append_as_follower_keeps_offsets(kafka: KafkaJudge, kafka_server: KafkaServer, tmp_path: Path) -> None:
    data = kafka.write(BatchSpec(records=(RecordSpec(7, NOW, b"k"),), base_offset=5, partition_leader_epoch=2))
    log, done = kafka_logs.append(kafka_server, tmp_path, [Append(data, 2, as_follower=True)])
    assert done == [Appended(5, 7, NOW, -1)]
    assert log.log_end_offset == 8
    assert (log.directory / f"{0:020}.log").read_bytes() == data


# Cleaning


def offsets(kafka: KafkaJudge, log: kafka_logs.Loaded) -> list[int]:
    data = b"".join(path.read_bytes() for path in sorted(log.directory.glob("*.log")))
    return [record.offset for batch in kafka.read(data) for record in batch.records]


def test_clean_keeps_the_last_record_of_a_key_and_tombstones_until_the_horizon(
    kafka: KafkaJudge, kafka_server: KafkaServer, tmp_path: Path
) -> None:
    rows = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"b", None), (b"c", b"4"), (b"active", b"5")]
    appends = [Append(kafka.write(BatchSpec(records=(RecordSpec(0, NOW, *row),)))) for row in rows]
    places = [tmp_path / name for name in ("written", "once", "twice", "thrice")]
    for place in places:
        place.mkdir()
    log, _ = kafka_logs.append(kafka_server, places[0], appends, configs={"internal.segment.bytes": 80})
    configs = {"delete.retention.ms": 100}
    once = kafka_logs.clean(kafka_server, log.directory, places[1], configs=configs)
    assert offsets(kafka, once) == [2, 3, 4, 5]
    assert (once.next_dirty_offset, once.records_read, once.records_written) == (5, 5, 3)
    early = kafka_logs.clean(kafka_server, once.directory, places[2], now_ms=NOW + 99, configs=configs)
    assert offsets(kafka, early) == [2, 3, 4, 5]
    late = kafka_logs.clean(kafka_server, early.directory, places[3], now_ms=NOW + 101, configs=configs)
    assert offsets(kafka, late) == [2, 4, 5]
    assert kafka_server.faults(late.directory) == []


def test_clean_drops_aborted_data_and_then_its_marker(
    kafka: KafkaJudge, kafka_server: KafkaServer, tmp_path: Path
) -> None:
    def data(key: bytes, sequence: int) -> Append:
        spec = BatchSpec(
            records=(RecordSpec(0, NOW, key, b"1"),), producer_id=9, producer_epoch=0, base_sequence=sequence,
            transactional=True,
        )  # fmt: skip
        return Append(kafka.write(spec))

    def marker(*, commit: bool) -> Append:
        spec = MarkerSpec(
            producer_id=9, producer_epoch=0, commit=commit, timestamp=NOW, base_offset=0, coordinator_epoch=0,
            partition_leader_epoch=0,
        )  # fmt: skip
        return Append(kafka.end_transaction_marker(**spec), origin="COORDINATOR")

    appends = [data(b"a", 0), marker(commit=False), data(b"b", 1), marker(commit=True), data(b"c", 2)]
    places = [tmp_path / name for name in ("written", "once", "twice", "thrice")]
    for place in places:
        place.mkdir()
    log, _ = kafka_logs.append(kafka_server, places[0], appends, configs={"internal.segment.bytes": 80})
    assert log.last_stable_offset == 4
    found = [offsets(kafka, log)]
    for place, now_ms in zip(places[1:], [NOW, NOW + 1, NOW + 1000], strict=True):
        log = kafka_logs.clean(kafka_server, log.directory, place, now_ms=now_ms, configs={"delete.retention.ms": 100})
        found.append(offsets(kafka, log))
    assert found == [[0, 1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [2, 3, 4]]
