"""`kbat.PartitionLog` and `kbat.LogDirectory` on directories of real brokers."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import kbat.results
from data import DATA

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CORPUS = DATA / "corpus"


def in_log_directory(case: str, tmp_path: Path) -> kbat.PartitionLog:
    """Copy a case into a log directory with its broker's checkpoints."""
    shutil.copytree(CORPUS / case, tmp_path / f"{case}-0")
    for checkpoint in (CORPUS / "log-dir").glob("*-checkpoint"):
        shutil.copy(checkpoint, tmp_path)
    return kbat.PartitionLog(tmp_path / f"{case}-0")


def test_partition_log_tells_topic_segments_and_bounds(tmp_path: Path) -> None:
    log = in_log_directory("txn-lz4", tmp_path)
    assert (log.topic, log.partition) == ("txn-lz4", 0)
    assert [segment.base_offset for segment in log.segments] == [0, 4, 114, 126, 231, 255, 356, 366]
    assert len(log) == 8
    assert (log.start_offset, log.end_offset) == (0, 374)
    assert [offset for offset, _ in log.snapshots] == [4, 114, 126, 231, 255, 356, 366, 374]
    assert log.topic_id is not None
    assert len(log.topic_id) == 22
    assert "8 segments" in repr(log)
    assert pickle.loads(pickle.dumps(log)).directory == log.directory  # noqa: S301 -- our own bytes


def test_start_offset_is_that_of_the_checkpoint_where_that_is_larger(tmp_path: Path) -> None:
    log = in_log_directory("log-start", tmp_path)
    assert log.start_offset == 170
    assert log.segments[0].base_offset < 170
    assert log.find_offset(169) is None
    place = log.find_offset(170)
    assert place is not None
    assert place.base_offset <= 170 <= place.last_offset
    at_end = in_log_directory("log-start-at-end", tmp_path)
    assert (at_end.start_offset, at_end.end_offset) == (40, 40)
    assert at_end.find_offset(40) is None


def test_records_that_were_deleted_are_in_the_files_until_their_segment_goes(tmp_path: Path) -> None:
    log = in_log_directory("log-start", tmp_path / "logs")
    offsets: list[Any] = kbat.scan(log.directory).to_pyarrow()["offset"].to_pylist()
    assert (min(offsets), log.start_offset) == (151, 170)
    kbat.rewrite(log.directory, tmp_path / "copy-0")
    assert kbat.scan(tmp_path / "copy-0").to_pyarrow()["offset"].to_pylist() == offsets
    served = kbat.scan(log.directory, start_offset=log.start_offset).to_pyarrow()["offset"].to_pylist()
    assert served == [offset for offset in offsets if offset >= 170]


def test_bounds_of_partitions_without_records(tmp_path: Path) -> None:
    assert (log := in_log_directory("empty", tmp_path)).start_offset == log.end_offset == 0
    retained = in_log_directory("retention-all", tmp_path)
    assert retained.start_offset == retained.end_offset > 0
    (tmp_path / "nothing-0").mkdir()
    nothing = kbat.PartitionLog(tmp_path / "nothing-0")
    assert (nothing.start_offset, nothing.end_offset, nothing.segments) == (0, 0, [])
    assert nothing.find_offset(0) is None
    assert nothing.find_timestamp(0) is None
    assert nothing.find_timestamp(kbat.MAX_TIMESTAMP) is None


def test_find_offset_of_every_offset_is_its_batch_or_the_next() -> None:
    for case in ("segments-dense-index", "compacted", "compacted-txn", "segments-index-0"):
        log = kbat.PartitionLog(CORPUS / case)
        batches = [(segment.path, batch) for segment in log.segments for batch in segment.batches()]
        for offset in range(log.start_offset, log.end_offset):
            path, batch = next((path, batch) for path, batch in batches if batch.last_offset >= offset)
            place = log.find_offset(offset)
            assert place is not None, (case, offset)
            assert (place.segment, place.position, place.size) == (path, batch.position, batch.size), (case, offset)
        assert log.find_offset(log.end_offset) is None
        assert log.find_offset(-1) is None


def test_find_timestamp_searches_the_first_segment_that_may_have_it() -> None:
    for case in ("segments-by-time", "out-of-order", "segments-default-interval"):
        log = kbat.PartitionLog(CORPUS / case)
        tops = [(segment, segment.largest_timestamp) for segment in log.segments]
        for timestamp in sorted({top + step for _, top in tops for step in (-1, 0, 1)}):
            segment = next((segment for segment, top in tops if top >= timestamp), None)
            expected = segment.find_timestamp(timestamp) if segment else None
            assert log.find_timestamp(timestamp) == expected, (case, timestamp)


def test_find_timestamp_special_values() -> None:
    log = kbat.PartitionLog(CORPUS / "out-of-order")
    earliest, latest = log.find_timestamp(kbat.EARLIEST), log.find_timestamp(kbat.LATEST)
    assert earliest is not None
    assert latest is not None
    assert (earliest.timestamp, earliest.offset) == (-1, 0)
    assert (latest.timestamp, latest.offset) == (-1, log.end_offset)
    records = [record for segment in log.segments for batch in segment.batches() for record in batch]
    top = max(record.timestamp for record in records)
    found = log.find_timestamp(kbat.MAX_TIMESTAMP)
    assert found is not None
    assert (found.timestamp, found.offset) == (top, next(r.offset for r in records if r.timestamp == top))


def test_find_timestamp_of_a_segment_without_timestamps_is_none_while_its_file_is_younger() -> None:
    log = kbat.PartitionLog(DATA / "corpus-legacy" / "k0822-java0822-none")
    assert log.find_timestamp(1) is None
    assert log.find_timestamp(kbat.MAX_TIMESTAMP) is None


def committed_cases() -> list[Path]:
    """Partitions that a broker served to a read_committed consumer."""
    return sorted(path.parent for path in DATA.rglob("read-committed.json"))


@pytest.mark.parametrize("directory", committed_cases(), ids=lambda path: str(path.relative_to(DATA)))
@pytest.mark.parametrize("with_indexes", [True, False], ids=["indexes", "markers"])
def test_committed_offsets_are_those_of_a_consumer(directory: Path, tmp_path: Path, *, with_indexes: bool) -> None:
    answer = json.loads((directory / "read-committed.json").read_text())
    if not with_indexes:
        for path in directory.glob("*.log"):
            shutil.copy(path, tmp_path)
        directory = tmp_path
    log = kbat.PartitionLog(directory)
    assert log.last_stable_offset == answer["endOffset"]
    aborted = log.aborted_transactions(0, log.end_offset)
    batches = [batch for segment in log.segments for batch in segment.batches() if not batch.is_control]
    visible = [
        record.offset
        for batch in batches
        if not any(
            batch.producer_id == a.producer_id and a.first_offset <= batch.base_offset < a.last_offset for a in aborted
        )
        for record in batch
        if record.offset < answer["endOffset"]
    ]
    assert visible == answer["offsets"]


def is_part(batch: kbat.Batch, transaction: kbat.results.AbortedTransaction) -> bool:
    """Whether a batch belongs to a transaction."""
    same = batch.producer_id == transaction.producer_id
    return same and transaction.first_offset <= batch.base_offset < transaction.last_offset


def test_aborted_transactions_of_a_range_are_those_that_reach_into_it() -> None:
    log = kbat.PartitionLog(CORPUS / "txn-none")
    everything = log.aborted_transactions(0, log.end_offset)
    assert len(everything) > 5
    for start in range(0, log.end_offset, 17):
        for end in range(start + 1, log.end_offset, 29):
            some = log.aborted_transactions(start, end)
            wanted = [a for a in everything if a.last_offset >= start and a.first_offset < end]
            assert some == wanted, (start, end)
    assert log.last_stable_offset < log.end_offset


def test_leader_epochs_are_those_of_the_checkpoint() -> None:
    directory = CORPUS / "leader-epochs"
    lines = (directory / "leader-epoch-checkpoint").read_text().splitlines()[2:]
    epochs = kbat.PartitionLog(directory).leader_epochs
    assert epochs == [(int(line.split()[0]), int(line.split()[1])) for line in lines]
    assert len(epochs) > 1


def test_log_directory_lists_partitions_checkpoints_and_meta(log_dir: Path) -> None:
    directory = kbat.LogDirectory(log_dir)
    names = [f"{log.topic}-{log.partition}" for log in directory.partitions]
    assert names == sorted(path.name for path in log_dir.iterdir() if path.is_dir())
    assert directory.stray == []
    assert directory.meta is not None
    assert (directory.meta.version, directory.meta.node_id) == (1, 1)
    assert directory.meta.cluster_id
    assert directory.meta.directory_id
    starts = directory.checkpoints["log-start-offset-checkpoint"]
    assert starts["log-start", 0] == 170
    assert len(directory.checkpoints) == 4
    log = directory.partition("codec-lz4", 0)
    assert log is not None
    assert log.directory == os.fspath(log_dir / "codec-lz4-0")
    assert directory.partition("codec-lz4", 1) is None


def test_log_directory_reports_what_is_no_live_partition(tmp_path: Path) -> None:
    unique = "0123456789abcdef0123456789abcdef"
    for name in (
        "a-0",
        f"a-1.{unique}-delete",
        f"a-2.{unique}-future",
        f"a-3.{unique}-stray",
        "lost+found",
        ".snapshots",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / "remote-log-index-cache").mkdir()
    (tmp_path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":7}')
    directory = kbat.LogDirectory(tmp_path)
    assert [log.directory for log in directory.partitions] == [os.fspath(tmp_path / "a-0")]
    stray = {(entry.topic, entry.partition): entry.state for entry in directory.stray}
    assert stray == {("a", 1): "delete", ("a", 2): "future", ("a", 3): "stray", (None, None): "unknown"}
    assert directory.is_clean_shutdown
    assert directory.meta is None
    assert directory.checkpoints == {}


def test_log_directory_with_malformed_files_says_which(tmp_path: Path) -> None:
    (tmp_path / "a-0").mkdir()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n2\na 0 5\n")
    directory = kbat.LogDirectory(tmp_path)
    assert directory.partitions[0].start_offset == 0
    with pytest.raises(kbat.CorruptError, match="log-start-offset-checkpoint"):
        _ = directory.checkpoints


def test_a_malformed_leader_epoch_checkpoint_stops_only_what_needs_it(tmp_path: Path) -> None:
    log = in_log_directory("segments-default-interval", tmp_path)
    directory = log.directory
    place, rows = log.find_timestamp(1_700_000_000_000), kbat.scan(directory).count()
    checkpoint = tmp_path / "segments-default-interval-0" / "leader-epoch-checkpoint"
    checkpoint.write_text("garbage\n")
    assert kbat.scan(directory).count() == rows
    log = kbat.PartitionLog(directory)
    assert (log.end_offset, log.find_timestamp(1_700_000_000_000)) == (rows, place)
    assert log.find_offset(rows - 1) is not None
    needs_epochs: list[Callable[[], object]] = [
        lambda: log.find_timestamp(kbat.EARLIEST),
        lambda: log.find_timestamp(kbat.LATEST),
        lambda: kbat.LogWriter(directory),
        lambda: kbat.rewrite(directory, tmp_path / "rewritten"),
        lambda: kbat.compact(directory, tmp_path / "compacted"),
    ]
    for call in needs_epochs:
        with pytest.raises(kbat.CorruptError, match="leader-epoch-checkpoint"):
            call()
    for repair in (kbat.recover, kbat.salvage):
        repair(directory, tmp_path / repair.__name__)
        assert kbat.verify(tmp_path / repair.__name__).ok
        assert (tmp_path / repair.__name__ / checkpoint.name).read_text() != "garbage\n"
