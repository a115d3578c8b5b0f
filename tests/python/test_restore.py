"""`kbat.restore`: every layout becomes the partitions that it was made of, with the same offsets and bytes."""

from __future__ import annotations

import hashlib
import os
import shutil
import warnings
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import pytest

import kbat.results
from data import DATA
from growing_log import GrowingLog, time_of
from test_tiered import AIVEN, KAFKA, KEYS, MODES, TOPICS, copied, every_mode, keys_for, object_of, topic_directory

if TYPE_CHECKING:
    from pathlib import Path

    from s3_server import S3Server

LOG_DIR = DATA / "log-dir"
INTERVALS = {"txn-lz4": 400, "compacted": 512}
"""The setting index.interval.bytes of cases that do not have Kafka's default."""
TOPIC_ID = "bAmibu5sR86NaVa0PfqQXA"


def content(directory: Path) -> dict[str, bytes]:
    """The files below a directory, by their paths in it."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def logs_of(directory: Path) -> dict[str, bytes]:
    return {name: data for name, data in content(directory).items() if name.endswith(".log")}


def offsets_of(
    directory: Path, isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
) -> list[Any]:
    return kbat.scan(directory, isolation=isolation, columns=["offset"]).to_pyarrow()["offset"].to_pylist()


def without_difference(report: kbat.results.RestoreReport) -> dict[str, Any]:
    """A report without the fields in which a plan differs."""
    fields = report.to_dict()
    del fields["dry_run"]
    for partition in fields["partitions"]:
        del partition["open_transactions"]
    return fields


def restored(source: object, out: Path, **options: Any) -> kbat.results.RestoreReport:  # noqa: ANN401 - those of kbat.restore
    """Plan a restore, and do it. Both must report the same, and the plan must write nothing."""
    before = content(out.parent)
    plan = kbat.restore(str(source), out, dry_run=True, **options)
    assert content(out.parent) == before
    report = kbat.restore(str(source), out, **options)
    assert (plan.dry_run, report.dry_run) == (True, False)
    assert without_difference(plan) == without_difference(report)
    assert [one for one in kbat.verify(out).findings if one.severity == "error"] == []
    return report


def single(source: object, out: Path, **options: Any) -> kbat.RestoredPartition:  # noqa: ANN401 - those of kbat.restore
    (partition,) = restored(source, out, **options).partitions
    return partition


def differing(out: Path, case: Path) -> list[str]:
    """Files of a restored partition that are not those of a case."""
    found = content(out)
    truth = content(case)
    assert found
    return sorted(name for name, data in found.items() if truth.get(name) != data)


@every_mode
@pytest.mark.parametrize("topic", TOPICS)
def test_objects_of_aivens_plugin_become_the_files_that_they_were_made_of(
    mode: str, topic: str, tmp_path: Path
) -> None:
    interval = INTERVALS.get(topic, 4096)
    options = {"topics": topic, "index_interval_bytes": interval, "keep_producers": True, **keys_for(mode)}
    partition = single(AIVEN / mode, tmp_path / "out", **options)
    # the plugin has copied no segment before offset 316
    expected = ["leader-epoch-checkpoint"] if topic == "compacted" else []
    assert differing(tmp_path / "out" / f"{topic}-0", DATA / "corpus" / topic) == expected
    objects = sorted((topic_directory(mode, topic) / "0").glob("*.log"))
    assert [one.base_offset for one in partition.segments] == [int(one.name[:20]) for one in objects]
    assert len(logs_of(tmp_path / "out")) == len(objects)


def test_a_location_with_segments_of_a_broker_and_of_tiered_storage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="segments of a broker and of tiered storage are in this location: name one"):
        kbat.restore(KAFKA, tmp_path / "out")


def test_objects_of_kafkas_tiered_storage_become_the_files_that_the_broker_deleted(tmp_path: Path) -> None:
    partition = single(KAFKA / "remote", tmp_path / "out")
    lines = (KAFKA / "deleted.sha256").read_text().splitlines()
    deleted = {name.removesuffix(".deleted"): digest for digest, name in map(str.split, lines)}
    found = content(tmp_path / "out" / "orders-0")
    # a snapshot is uploaded with the segment before it
    assert found.keys() - deleted.keys() == {"00000000000000006678.snapshot", "leader-epoch-checkpoint"}
    same = {name: hashlib.sha256(data).hexdigest() for name, data in found.items() if name in deleted}
    assert same.items() <= deleted.items()
    assert sum(name.endswith(".log") for name in found) == len(partition.segments) == 6
    assert (partition.start_offset, partition.end_offset) == (200, 6678)
    (unfinished,) = partition.open_transactions
    assert (unfinished.producer_id, unfinished.first_offset, unfinished.aborted) == (1, 6478, False)


def test_a_log_directory_is_found_at_any_depth(tmp_path: Path) -> None:
    # as Pinterest's uploader stores it, with bits that spread the keys
    deep = tmp_path / "backup" / "kafka"
    for bits, log in enumerate(kbat.LogDirectory(LOG_DIR).partitions):
        name = f"{log.topic}-{log.partition}"
        target = deep / f"{bits:03b}" / "cluster-1" / name
        shutil.copytree(LOG_DIR / name, target, ignore=lambda _, names: {"leader-epoch-checkpoint"} & set(names))
        (target / "offset.wm").write_text(f"{max((one.base_offset for one in log.segments), default=0):020}")
        (target / "_metadata").write_text("{}")
    report = restored(tmp_path / "backup", tmp_path / "out")
    flat = restored(LOG_DIR, tmp_path / "flat")
    assert logs_of(tmp_path / "out") == logs_of(tmp_path / "flat") == logs_of(LOG_DIR)
    assert [one.end_offset for one in report.partitions] == [one.end_offset for one in flat.partitions]
    assert [one.leader_epoch for one in report.partitions] == [one.leader_epoch for one in flat.partitions]
    for name in ("log-start-offset-checkpoint", "recovery-point-offset-checkpoint"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "flat" / name).read_bytes()


@pytest.mark.parametrize("mode", ["plain", "zstd-aes"])
def test_a_bucket_is_restored_like_its_files(mode: str, tmp_path: Path, s3_server: S3Server) -> None:
    directory = topic_directory(mode, "txn-lz4")
    files = [path for path in directory.rglob("*") if path.is_file()]
    url = s3_server.upload(directory, f"restore/{mode}/{directory.name}", files)
    report = restored(url, tmp_path / "out", storage_options=s3_server.options, **keys_for(mode))
    kbat.restore(directory, tmp_path / "files", **keys_for(mode))
    assert content(tmp_path / "out") == content(tmp_path / "files")
    assert report.source == url
    assert report.partitions[0].segments[0].path.startswith(f"{url}/")


def test_a_log_directory_in_a_bucket_is_restored(tmp_path: Path, s3_server: S3Server) -> None:
    url = s3_server.upload(LOG_DIR, "restore/log-dir")
    restored(url, tmp_path / "out", storage_options=s3_server.options)
    assert logs_of(tmp_path / "out") == logs_of(LOG_DIR)


def test_the_start_of_a_log_is_kept(tmp_path: Path) -> None:
    source = tmp_path / "logs"
    shutil.copytree(DATA / "corpus" / "log-start", source / "log-start-0")
    (source / "log-start-offset-checkpoint").write_text("0\n1\nlog-start 0 170\n")
    start = kbat.PartitionLog(source / "log-start-0").start_offset
    partition = single(source, tmp_path / "out")
    assert partition.start_offset == start == 170
    assert kbat.PartitionLog(tmp_path / "out" / "log-start-0").start_offset == start
    assert logs_of(tmp_path / "out") == logs_of(source)


def batches_of(directory: Path) -> list[kbat.Batch]:
    return [batch for segment in kbat.PartitionLog(directory).segments for batch in segment.batches()]


def grown(tmp_path: Path, *, codec: str = "lz4") -> GrowingLog:
    """A partition with three segments of batches of seven records."""
    log = GrowingLog(tmp_path / "logs" / "t-0")
    for _ in range(3):
        log.append(7, 7, 7, compression=codec, partition_leader_epoch=0)
        log.roll()
    return log


@pytest.mark.parametrize("offset", [0, 1, 6, 7, 20, 21, 22, 40, 62, 63, 99])
def test_until_offset_ends_the_log_there(offset: int, tmp_path: Path) -> None:
    log = grown(tmp_path)
    partition = single(tmp_path / "logs", tmp_path / "out", until_offset=offset, topic_ids={"t": TOPIC_ID})
    end = min(offset, log.end_offset)
    assert offsets_of(tmp_path / "out") == list(range(end))
    assert (partition.end_offset, partition.cut_offset) == (end, offset if offset < log.end_offset else None)
    assert partition.cut_timestamp is None
    # only the batch with the end is written again
    before = [bytes(batch) for batch in batches_of(log.directory) if batch.last_offset < end]
    after = [bytes(batch) for batch in batches_of(tmp_path / "out" / "t-0")]
    assert after[: len(before)] == before
    assert len(after) == len(before) + (end % 7 > 0)


def test_until_offset_of_single_partitions(tmp_path: Path) -> None:
    for number in range(3):
        GrowingLog(tmp_path / "logs" / f"t-{number}").append(5, 5)
    report = restored(tmp_path / "logs", tmp_path / "out", until_offset={"t-0": 3, "t-2": 9})
    assert [one.end_offset for one in report.partitions] == [3, 10, 9]
    with pytest.raises(ValueError, match="until_offset names t-7, which is not restored"):
        kbat.restore(tmp_path / "logs", tmp_path / "new", until_offset={"t-7": 3})
    with pytest.raises(ValueError, match="is not a partition such as"):
        kbat.restore(tmp_path / "logs", tmp_path / "new", until_offset={"t": 3})
    with pytest.raises(TypeError, match="a number, or a mapping"):
        kbat.restore(tmp_path / "logs", tmp_path / "new", until_offset=True)


@pytest.mark.parametrize("offset", [0, 0.5, 1, 6, 6.5, 7, 20.5, 21, 62, 62.5, 99])
@pytest.mark.parametrize("form", [int, "datetime", "text"])
def test_until_timestamp_ends_the_log_before_a_record(offset: float, form: object, tmp_path: Path) -> None:
    log = grown(tmp_path)
    time: Any = time_of(offset)
    if form is not int:
        time = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=time)
    if form == "text":
        time = time.isoformat()
    partition = single(tmp_path / "logs", tmp_path / "out", until_timestamp=time)
    expected = [one for one in range(log.end_offset) if time_of(one) < time_of(offset)]
    assert offsets_of(tmp_path / "out") == expected
    is_cut = len(expected) < log.end_offset
    assert partition.cut_timestamp == (time_of(len(expected)) if is_cut else None)
    assert partition.max_timestamp == (time_of(expected[-1]) if expected else None)


def test_until_timestamp_ends_before_older_records_after_a_newer_one(tmp_path: Path) -> None:
    source = DATA / "corpus" / "out-of-order"
    shutil.copytree(source, tmp_path / "logs" / "out-of-order-0")
    rows = [(record.offset, record.timestamp) for batch in batches_of(source) for record in batch]
    times = sorted(time for _, time in rows)
    for place, time in enumerate((times[1], times[len(times) // 2], times[-1])):
        end = next(offset for offset, found in rows if found >= time)
        assert any(found < time for offset, found in rows if offset > end) or time == times[-1]
        out = tmp_path / f"out-{place}"
        assert single(tmp_path / "logs", out, until_timestamp=time).end_offset == end
        assert offsets_of(out) == [offset for offset, _ in rows if offset < end]


def test_open_transactions_at_the_end_are_named_or_aborted(tmp_path: Path) -> None:
    options: dict[str, Any] = {"topics": "txn-lz4", "until_offset": 200}
    kept = single(LOG_DIR, tmp_path / "kept", **options)
    opened = [(one.producer_id, one.first_offset) for one in kept.open_transactions]
    assert opened == [(1010, 157), (1008, 183), (1007, 187), (1009, 190)]
    log = kbat.PartitionLog(tmp_path / "kept" / "txn-lz4-0")
    assert (log.end_offset, log.last_stable_offset) == (200, 157)
    report = kbat.restore(LOG_DIR, tmp_path / "aborted", open_transactions="abort", **options)
    (aborted,) = report.partitions
    assert [(one.producer_id, one.first_offset) for one in aborted.open_transactions] == opened
    assert {one.aborted for one in aborted.open_transactions} == {True}
    log = kbat.PartitionLog(tmp_path / "aborted" / "txn-lz4-0")
    assert log.end_offset == log.last_stable_offset == aborted.end_offset == 204
    # consumers of committed records get those whose transactions were committed before the end
    directories = (tmp_path / name / "txn-lz4-0" for name in ("kept", "aborted"))
    kept_rows, aborted_rows = (offsets_of(one, "read_committed") for one in directories)
    assert kept_rows == [offset for offset in aborted_rows if offset < 157]
    assert {offset for offset in aborted_rows if offset >= 157} < set(range(157, 200))


def test_marker_of_an_aborted_transaction_has_an_epoch_of_the_restored_log(tmp_path: Path) -> None:
    with kbat.LogWriter(tmp_path / "logs" / "t-0") as log:
        open_producer: dict[str, Any] = {
            "producer_id": 7,
            "producer_epoch": 0,
            "base_sequence": 0,
            "transactional": True,
        }
        for base, epoch, fields in ((0, 3, open_producer), (5, 9, {})):
            builder = kbat.BatchBuilder(base_offset=base, partition_leader_epoch=epoch, **fields)
            for offset in range(base, base + 5):
                builder.append(None, b"v", timestamp=1_700_000_000_000 + offset)
            log.append_batch(builder.finish(), keep_offsets=True)
    (report,) = kbat.restore(tmp_path / "logs", tmp_path / "out", until_offset=5, open_transactions="abort").partitions
    epochs = [batch.partition_leader_epoch for batch in batches_of(tmp_path / "out" / "t-0")]
    assert (report.end_offset, report.leader_epoch, epochs) == (6, 3, [3, 3])


def test_gaps_overlaps_and_the_end_of_a_torn_copy_are_reported(tmp_path: Path) -> None:
    log = grown(tmp_path)
    batches = [bytes(batch) for batch in batches_of(log.directory)]
    _, second, third, last = sorted(log.directory.iterdir())
    # a second segment with offsets 14 to 34, and a third one with 42 to 55 and an incomplete batch
    second.unlink()
    (log.directory / f"{14:020}.log").write_bytes(b"".join(batches[2:5]))
    third.write_bytes(third.read_bytes()[:-10])
    last.unlink()
    report = restored(tmp_path / "logs", tmp_path / "out")
    (partition,) = report.partitions
    assert partition.overlaps == [(14, 20)]
    assert partition.gaps == [(35, 41)]
    assert partition.tail_bytes > 0
    assert offsets_of(tmp_path / "out") == [*range(35), *range(42, 56)]
    lines = str(report).splitlines()
    assert "  overlap: offsets 14 to 20 are in two segments, and restored once" in lines
    assert "  gap: offsets 35 to 41 are in no segment" in lines
    assert f"  not restored: {partition.tail_bytes} bytes after the last complete batch" in lines


def test_empty_segments_do_not_divide_a_gap(tmp_path: Path) -> None:
    partition = single(LOG_DIR, tmp_path / "out", topics="compacted")
    assert partition.gaps == [(0, 315), (360, 360)]


def test_a_missing_manifest_is_reported(tmp_path: Path) -> None:
    objects = copied("zstd", "txn-lz4", tmp_path / "source")
    (manifest,) = objects.glob("00000000000000000126-*.rsm-manifest")
    manifest.unlink()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        partition = single(tmp_path / "source", tmp_path / "out")
    texts = {str(one.message).removeprefix("kbat: ") for one in caught}
    assert texts == set(partition.warnings)
    assert partition.gaps == [(126, 230)]
    assert offsets_of(tmp_path / "out") == [
        offset for offset in offsets_of(AIVEN / "zstd" / "txn-lz4-0") if not 126 <= offset <= 230
    ]
    assert any("it is incomplete" in warning for warning in partition.warnings)
    assert str(manifest.with_suffix("")) in " ".join(partition.warnings)


def refused(source: Path, out: Path, error: type[Exception], match: str, **options: Any) -> Exception:  # noqa: ANN401 - those of kbat.restore
    with pytest.raises(error, match=match) as caught:
        kbat.restore(source, out, **options)
    assert not out.exists()
    assert list(out.parent.glob(f"*{out.name}*")) == []
    return caught.value


def test_corruption_is_an_error_with_its_position(tmp_path: Path) -> None:
    source = tmp_path / "source" / "codec-lz4-0"
    shutil.copytree(LOG_DIR / "codec-lz4-0", source)
    segment = source / "00000000000000000000.log"
    batches = list(kbat.read_batches(segment))
    data = bytearray(segment.read_bytes())
    data[batches[2].position + 100] ^= 1
    segment.write_bytes(data)
    error: Any = refused(tmp_path / "source", tmp_path / "out", kbat.CrcError, "checksum mismatch")
    assert (error.path, error.base_offset) == (str(segment), batches[2].base_offset)


def test_a_segment_that_lost_its_end_is_an_error_if_the_log_continues(tmp_path: Path) -> None:
    log = grown(tmp_path)
    first = min(log.directory.iterdir())
    first.write_bytes(first.read_bytes()[:-10])
    refused(tmp_path / "logs", tmp_path / "out", kbat.CorruptError, "but the log continues")


def test_a_wrong_key_and_a_damaged_chunk_are_errors(tmp_path: Path) -> None:
    out = tmp_path / "out"
    refused(AIVEN / "aes", out, ValueError, "no encryption keys were passed")
    other = {"key1": os.fspath(AIVEN / "other-private-key.pem")}
    refused(AIVEN / "aes", out, ValueError, "does not decrypt the segment's data key", encryption_keys=other)
    refused(AIVEN / "aes", out, ValueError, "key1", encryption_keys={"key2": KEYS["key1"]})
    path = object_of(copied("aes", "codec-lz4", tmp_path / "source"), ".log")
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)
    error: Any = refused(
        tmp_path / "source", out, kbat.CorruptError, "chunk 1 cannot be decrypted", encryption_keys=KEYS
    )
    assert error.path == os.fspath(path)


def test_arguments_are_checked(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for options, message in (
        ({"until_offset": -1}, "until_offset -1 is negative"),
        ({"leader_epoch": -1}, "leader_epoch -1 is negative"),
        ({"topic_ids": {"t": "abc"}}, "abc"),
        ({"topic_ids": {"t": "A" * 22}}, "all zeros"),
        ({"open_transactions": "commit"}, '"keep" or "abort"'),
        ({"topics": "missing"}, "no topic matches"),
        ({"committed_offsets": out / "csv"}, "inside the output directory"),
        ({"committed_offsets": tmp_path / "csv"}, "there is no partition of __consumer_offsets"),
        ({"storage_options": {"region": "x"}}, "no effect on a path"),
    ):
        refused(LOG_DIR, out, ValueError, message, **options)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ValueError, match="not empty"):
        kbat.restore(LOG_DIR, tmp_path / "full")
    with pytest.raises(ValueError, match="no partition directory is here"):
        kbat.restore(tmp_path, out)
    with pytest.raises(OSError, match="missing"):
        kbat.restore(tmp_path / "missing", out)


def test_progress_reaches_the_total_and_can_stop_the_restore(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    kbat.restore(LOG_DIR, tmp_path / "out", progress=lambda done, total: seen.append((done, total)))
    size = sum(map(len, logs_of(LOG_DIR).values()))
    assert seen[-1] == (size, size)

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kbat.restore(LOG_DIR, tmp_path / "stopped", progress=stop)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_modes_are_all_tested() -> None:
    assert {path.name for path in AIVEN.iterdir() if path.is_dir()} == set(MODES)
