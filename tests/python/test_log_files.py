"""Indexes, snapshots and checkpoints through the Python API: the answers of ``indexes.jsonl``, arguments and errors."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from data import DATA

if TYPE_CHECKING:
    from pathlib import Path

CASES = ["txn-none", "live", "crash-index", "segments-dense-index"]


def _dump(case: str) -> dict[str, list[dict[str, Any]]]:
    path = DATA / "corpus" / case / "indexes.jsonl"
    text = path.read_text() if path.exists() else gzip.decompress(path.with_suffix(".jsonl.gz").read_bytes()).decode()
    by_file: dict[str, list[dict[str, Any]]] = {}
    for line in text.splitlines():
        entry = json.loads(line)
        entries = by_file.setdefault(entry["file"], [])
        if "type" not in entry:
            entries.append(entry)
    return by_file


@pytest.mark.parametrize("case", CASES)
def test_index_entries_are_those_that_kafka_reads(case: str) -> None:
    """Every file of a case, by its class."""
    folder = DATA / "corpus" / case
    for name, lines in _dump(case).items():
        path = folder / name
        if path.suffix == ".index":
            offset_index = kbat.OffsetIndex(path)
            assert offset_index.entries == [(line["offset"], line["position"]) for line in lines]
            assert len(offset_index) == len(lines)
            assert offset_index.base_offset == int(path.stem)
            assert offset_index.path == str(path)
        elif path.suffix == ".timeindex":
            time_index = kbat.TimeIndex(str(path))
            assert time_index.entries == [(line["timestamp"], line["offset"]) for line in lines]
            assert len(time_index) == len(lines)
        elif path.suffix == ".txnindex":
            found = [
                (entry.version, entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset)
                for entry in kbat.TransactionIndex(path).entries
            ]
            fields = ["version", "producerId", "firstOffset", "lastOffset", "lastStableOffset"]
            assert found == [tuple(line[field] for field in fields) for line in lines]
        else:
            snapshot = kbat.ProducerSnapshot(path)
            assert snapshot.offset == int(path.stem)
            by_id = {entry.producer_id: entry for entry in snapshot.entries}
            assert len(by_id) == len(snapshot) == len(lines)
            for line in lines:
                _assert_producer(by_id[line["producerId"]], line)


def _assert_producer(entry: kbat.ProducerEntry, line: dict[str, Any]) -> None:
    assert entry.producer_epoch == line["producerEpoch"]
    assert entry.coordinator_epoch == line["coordinatorEpoch"]
    assert entry.current_txn_first_offset == line["currentTxnFirstOffset"]
    assert entry.timestamp == line["lastTimestamp"]
    for batch in line["batches"]:
        assert (entry.first_sequence, entry.last_sequence) == (batch["firstSequence"], batch["lastSequence"])
        assert (entry.last_offset, entry.offset_delta) == (batch["lastOffset"], batch["offsetDelta"])
        assert entry.first_offset == entry.last_offset - entry.offset_delta
    assert (entry.last_offset >= 0) == bool(line["batches"])


def test_index_lookup_gives_the_floor_or_the_start() -> None:
    """Kafka's answers for targets below, at and above the entries."""
    folder = DATA / "corpus" / "txn-none"
    offset_index = kbat.OffsetIndex(folder / "00000000000000000024.index")
    (first, position), *_, last = offset_index.entries
    assert offset_index.lookup(first - 1) == (24, 0)
    assert offset_index.lookup(first) == (first, position)
    assert offset_index.lookup(2**62) == last
    time_index = kbat.TimeIndex(folder / "00000000000000000024.timeindex")
    assert time_index.lookup(0) == (-1, 24)
    assert time_index.lookup(2**62) == time_index.entries[-1]


def test_index_base_offset_is_asked_for_where_the_name_does_not_tell(tmp_path: Path) -> None:
    """Another name than Kafka's."""
    path = tmp_path / "copy.bin"
    path.write_bytes((DATA / "corpus" / "txn-none" / "00000000000000000024.index").read_bytes())
    with pytest.raises(ValueError, match="base_offset"):
        kbat.OffsetIndex(path)
    with pytest.raises(ValueError, match="base_offset"):
        kbat.TimeIndex(path)
    assert kbat.OffsetIndex(path, 0).lookup(0) == (0, 0)
    assert kbat.OffsetIndex(path, base_offset=1000).entries[0][0] > 1000


def test_index_sanity_check_raises_what_kafka_finds(tmp_path: Path) -> None:
    """A truncated entry; the entries before it are still read."""
    whole = (DATA / "corpus" / "txn-none" / "00000000000000000024.index").read_bytes()
    path = tmp_path / "00000000000000000024.index"
    path.write_bytes(whole[:-1])
    index = kbat.OffsetIndex(path)
    with pytest.raises(kbat.CorruptError, match="not a multiple of the entry size of 8 bytes") as caught:
        index.sanity_check()
    assert (caught.value.kind, caught.value.path) == ("invalid_file", str(path))
    assert len(index.entries) == len(whole) // 8 - 1
    kbat.OffsetIndex(DATA / "corpus" / "live" / "00000000000000000217.index").sanity_check()


def test_transaction_index_collects_until_the_last_stable_offset() -> None:
    """The fifth entry's last stable offset, 81, is past the bound."""
    index = kbat.TransactionIndex(DATA / "corpus" / "txn-none" / "00000000000000000024.txnindex")
    everything, complete = index.collect(0, 2**62)
    assert (everything, complete) == (index.entries, False)
    found, complete = index.collect(24, 24)
    assert complete
    assert [entry.first_offset for entry in found] == [7, 0, 8]
    assert len({*index.entries, *everything}) == len(index) == 6
    assert repr(index.entries[0]).startswith("AbortedTransaction(producer_id=1003, first_offset=7, last_offset=24")
    index.sanity_check(24)
    with pytest.raises(kbat.CorruptError):
        index.sanity_check(1000)


def test_snapshot_damaged_raises(tmp_path: Path) -> None:
    """A changed byte, a missing byte, an empty file, another version."""
    whole = (DATA / "corpus" / "txn-none" / "00000000000000000024.snapshot").read_bytes()
    path = tmp_path / "x.snapshot"
    cases: list[tuple[bytes, type[kbat.CorruptError]]] = [
        (whole[:-1] + b"\x7f", kbat.CrcError),
        (whole[:-1], kbat.CrcError),
        (b"", kbat.TruncatedError),
        (b"\x00\x02" + whole[2:], kbat.CorruptError),
    ]
    for content, error in cases:
        path.write_bytes(content)
        with pytest.raises(error) as caught:
            kbat.ProducerSnapshot(path)
        assert caught.value.path == str(path)
    path.write_bytes(whole)
    assert kbat.ProducerSnapshot(path).offset is None


def test_checkpoint_tells_its_kind() -> None:
    """Leader epochs and offsets, by the lines; an empty file by its name."""
    epochs = kbat.Checkpoint(DATA / "corpus" / "leader-epochs" / "leader-epoch-checkpoint")
    assert (epochs.kind, epochs.version, len(epochs)) == ("leader_epochs", 0, 2)
    assert [(entry.epoch, entry.start_offset) for entry in epochs.entries if isinstance(entry, kbat.EpochEntry)] == [
        (0, 0),
        (2, 40),
    ]
    assert repr(epochs.entries[1]) == "EpochEntry(epoch=2, start_offset=40)"
    offsets = kbat.Checkpoint(DATA / "corpus" / "log-dir" / "log-start-offset-checkpoint")
    assert (offsets.kind, offsets.version) == ("offsets", 0)
    assert [(entry.topic, entry.partition, entry.offset) for entry in _offsets(offsets)] == [
        ("log-start", 0, 170),
        ("log-start-at-end", 0, 40),
    ]
    empty = kbat.Checkpoint(DATA / "corpus-legacy" / "k0110-format010-logappend" / "leader-epoch-checkpoint")
    assert (empty.kind, empty.entries) == ("leader_epochs", [])


def _offsets(checkpoint: kbat.Checkpoint) -> list[kbat.PartitionOffset]:
    return [entry for entry in checkpoint.entries if isinstance(entry, kbat.PartitionOffset)]


@pytest.mark.parametrize("text", ["1\n0\n", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na b 1\n", "0\n1\n\n", "x\n"])
def test_checkpoint_malformed_raises(tmp_path: Path, text: str) -> None:
    """Version, count and lines."""
    path = tmp_path / "replication-offset-checkpoint"
    path.write_text(text)
    with pytest.raises(kbat.CorruptError) as caught:
        kbat.Checkpoint(path)
    assert caught.value.kind == "invalid_file"


def test_files_that_are_not_there_raise(tmp_path: Path) -> None:
    """As Python's own open."""
    for name in ["OffsetIndex", "TimeIndex", "TransactionIndex", "ProducerSnapshot", "Checkpoint"]:
        with pytest.raises(FileNotFoundError):
            getattr(kbat, name)(tmp_path / "00000000000000000000.none")


@pytest.mark.parametrize("length", [34 * 1000, 100 << 30])
def test_transaction_index_of_zeros_is_refused_at_once(tmp_path: Path, length: int) -> None:
    path = tmp_path / f"{0:020}.txnindex"
    path.touch()
    os.truncate(path, length)
    index, message = kbat.TransactionIndex(path), r"entry 1 repeats the entry before it|more than a segment can have"
    with pytest.raises(kbat.CorruptError, match=message):
        _ = index.entries
    with pytest.raises(kbat.CorruptError, match=message):
        index.collect(0, 10)
