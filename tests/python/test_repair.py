"""verify, recover, salvage, rebuild_indexes: the Python layer; tests/rust compares the results with the corpora."""

import json
import os
import shutil
from pathlib import Path

import pytest

import data
import kbat.batches
from growing_log import GrowingLog
from partitions import Log

CORPUS = data.DATA / "corpus"
LOG = "00000000000000000000.log"
ENDINGS = (".log", "index", ".snapshot", "-checkpoint", ".metadata")


def copy_of(case: str, tmp_path: Path) -> Path:
    """Copy the files of a partition, not those that describe it."""
    place = tmp_path / "topic-0"
    place.mkdir()
    for path in (CORPUS / case).iterdir():
        if path.is_file() and path.name.endswith(ENDINGS):
            shutil.copy(path, place)
    return place


def content(directory: Path) -> dict[str, bytes]:
    """Read every file of a directory."""
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_recover_crashed_partition_is_what_the_broker_made_of_it(tmp_path: Path) -> None:
    """The log is truncated at the flipped bit; the other files are the same as the broker's."""
    place = copy_of("crash-flip", tmp_path)
    before = content(place)
    case = json.loads((CORPUS / "crash-flip" / "case.json").read_text())
    interval = int(case["topicConfig"]["index.interval.bytes"])
    dry = kbat.recover(place, dry_run=True)
    assert content(place) == before
    report = kbat.recover(place, tmp_path / "out", index_interval_bytes=interval)
    assert (dry.dry_run, report.dry_run, dry.out, report.out) == (True, False, None, str(tmp_path / "out"))
    assert dry.dropped == report.dropped
    assert content(place) == before
    found, expected = content(tmp_path / "out"), content(CORPUS / "crash-flip" / "recovered")
    for name in (
        LOG,
        LOG.replace(".log", ".index"),
        LOG.replace(".log", ".timeindex"),
        "00000000000000000099.snapshot",
    ):
        assert found[name] == expected[name]
    (dropped,) = report.dropped
    assert (dropped.position, dropped.length, dropped.reason) == (13905, 7482, "crc")
    assert (dropped.first_offset, dropped.last_offset) == (99, 149)
    assert (report.start_offset, report.end_offset, report.is_complete) == (0, 99, False)
    (segment,) = report.segments
    assert (segment.bytes_before, segment.bytes_after) == (21387, 13905)
    assert ("00000000000000000099.snapshot", "written") in report.files
    assert "offsets 99 to 149 are lost" in str(report)


def test_recover_in_place_needs_to_be_asked_for(tmp_path: Path) -> None:
    """Without ``out``, the only effect is an exception that names the argument."""
    place = copy_of("crash-torn", tmp_path)
    before = content(place)
    with pytest.raises(ValueError, match="in_place=True"):
        kbat.recover(place)
    with pytest.raises(ValueError, match="out"):
        kbat.recover(place, tmp_path / "out", in_place=True)
    assert content(place) == before
    report = kbat.recover(place, in_place=True, index_interval_bytes=1024)
    assert report.out is None
    expected = content(CORPUS / "crash-torn" / "recovered")
    for name, found in content(place).items():
        if name not in {"leader-epoch-checkpoint", "partition.metadata"}:
            assert found == expected[name], name


@pytest.mark.parametrize("case", ["crash-flip", "crash-index", "crash-torn", "crash-txn"])
def test_recover_in_place_ends_what_a_killed_run_began(case: str, tmp_path: Path) -> None:
    """Wherever a run was killed between two of its files, the next one leaves the same."""
    place = copy_of(case, tmp_path)
    before = content(place)
    changes = kbat.recover(place, in_place=True, index_interval_bytes=1024).files
    whole = content(place)
    assert len(changes) > 1
    assert whole != before
    for done in range(len(changes) + 1):
        for name in {*whole, *before}:
            now = whole if name in [change for change, _ in changes[:done]] else before
            (place / name).unlink(missing_ok=True)
            if name in now:
                (place / name).write_bytes(now[name])
        kbat.recover(place, in_place=True, index_interval_bytes=1024)
        assert content(place) == whole, changes[:done]


def test_salvage_keeps_what_recover_cuts(tmp_path: Path) -> None:
    """All batches except the flipped one, as a new partition with a list of the hole."""
    case = CORPUS / "crash-flip"
    report = kbat.salvage(case / LOG, tmp_path / "out")
    (hole,) = report.dropped
    assert (hole.position, hole.reason, hole.first_offset) == (13905, "crc", 99)
    (listed,) = [json.loads(line) for line in (tmp_path / "out" / "holes.jsonl").read_text().splitlines()]
    assert (listed["position"], listed["last_offset"]) == (hole.position, hole.last_offset)
    offsets = [record.offset for batch in kbat.read_batches(tmp_path / "out" / LOG) for record in batch]
    lost = range(99, hole.last_offset + 1) if hole.last_offset is not None else []
    assert offsets == [offset for offset in range(150) if offset not in lost]
    assert kbat.verify(tmp_path / "out").ok
    with pytest.raises(ValueError, match="is not empty"):
        kbat.salvage(case / LOG, tmp_path / "out")


def test_rebuild_indexes_lookups_stay_the_same(tmp_path: Path) -> None:
    """Lookups with deleted and rebuilt indexes have the same results."""
    place = copy_of("segments-default-interval", tmp_path)
    before = content(place)
    for path in place.glob("*index"):
        path.unlink()
    report = kbat.rebuild_indexes(place)
    assert report.is_complete
    assert content(place) == before
    single = kbat.rebuild_indexes(place / LOG, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(name for name, _ in single.files)


def test_rebuilt_index_of_a_segment_has_transactions_that_began_after_a_snapshot_inside_the_one_before(
    tmp_path: Path,
) -> None:
    place = tmp_path / "topic-0"
    writer = Log(tmp_path / "batches")
    writer.batch((b"a", b"1"))
    with kbat.LogWriter(place) as log:
        log.append_batch(writer.segment.pop(), keep_offsets=True)
    assert [offset for offset, _ in kbat.PartitionLog(place).snapshots] == [1]  # in the segment from 0 on
    writer.batch((b"b", b"2"), pid=8, transactional=True)
    writer.marker(8, "ABORT")
    with kbat.LogWriter(place, segment_bytes=200) as log:
        for batch in writer.segment:
            log.append_batch(batch, keep_offsets=True)
    (place / f"{2:020}.snapshot").unlink()
    index = (place / f"{2:020}.txnindex").read_bytes()
    kbat.rebuild_indexes(place / f"{2:020}.log")
    assert (place / f"{2:020}.txnindex").read_bytes() == index


def test_verify_report_as_data_and_text(tmp_path: Path) -> None:
    """Findings with severity, kind and position; a JSON-compatible dictionary; a text."""
    place = copy_of("codec-lz4", tmp_path)
    assert kbat.verify(place).exit_code == 0
    log = bytearray((place / LOG).read_bytes())
    (third,) = [batch for index, batch in enumerate(kbat.read_batches(bytes(log))) if index == 2]
    log[third.position + 80] ^= 1
    (place / LOG).write_bytes(log)
    report = kbat.verify(place)
    assert (report.ok, report.exit_code, report.segment_count, report.byte_count) == (False, 2, 1, len(log))
    (error,) = [finding for finding in report.findings if finding.severity == "error"]
    assert (error.kind, error.position, error.offset) == ("crc", third.position, third.base_offset)
    assert error.path == str(place / LOG)
    assert "salvage" in error.message
    assert error.to_dict() in json.loads(json.dumps(report.to_dict()))["findings"]
    assert str(report).endswith("1 errors, 0 warnings")
    assert str(error) in str(report)


def test_verify_log_directory_of_the_corpus() -> None:
    """Partitions of many cases at once."""
    report = kbat.verify(data.DATA / "log-dir")
    assert report.ok
    assert report.segment_count > 10


def test_repair_progress_is_told_and_can_end_the_work(tmp_path: Path) -> None:
    """The callback gets the bytes done and the total; its exceptions are raised, and no files remain."""
    place = copy_of("large-values", tmp_path)
    seen: list[tuple[int, int]] = []
    kbat.verify(place, progress=lambda done, total: seen.append((done, total)))
    total = (place / LOG).stat().st_size
    assert (seen[0], seen[-1]) == ((0, total), (total, total))

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    for work in (kbat.recover, kbat.salvage, kbat.rebuild_indexes):
        with pytest.raises(KeyboardInterrupt):
            work(place, tmp_path / "out", progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["topic-0"]


def test_repair_bad_paths_raise(tmp_path: Path) -> None:
    """A missing path is an OSError, a directory without segments a ValueError."""
    for work in (kbat.recover, kbat.salvage, kbat.rebuild_indexes):
        with pytest.raises(ValueError, match="holds no segment"):
            work(tmp_path, tmp_path / "out")
    with pytest.raises(FileNotFoundError):
        kbat.verify(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        kbat.salvage(tmp_path / "missing", tmp_path / "out")
    with pytest.raises(ValueError, match=r"name the \.log file"):
        kbat.verify(CORPUS / "codec-lz4" / "00000000000000000000.index")


def partition(tmp_path: Path, *segments: tuple[int, bytes]) -> Path:
    """Write segments under the offsets given for their names."""
    place = tmp_path / "topic-0"
    place.mkdir()
    for base_offset, log in segments:
        (place / f"{base_offset:020}.log").write_bytes(log)
    return place


def batches(first: int, count: int) -> bytes:
    return b"".join(
        data.build([(offset, b"key", b"value")], base_offset=offset) for offset in range(first, first + count)
    )


def found(place: Path) -> list[tuple[str, str]]:
    return [
        (finding.severity, finding.kind) for finding in kbat.verify(place).findings if finding.kind != "index_missing"
    ]


def test_verify_what_ends_a_segment_is_worse_before_the_last(tmp_path: Path) -> None:
    zeros = partition(tmp_path, (0, batches(0, 3) + bytes(1000)), (3, batches(3, 3) + bytes(1000)))
    by_segment = [
        (item.severity, Path(item.path or "").name[:20])
        for item in kbat.verify(zeros).findings
        if item.kind == "zero_tail"
    ]
    assert by_segment == [("error", f"{0:020}"), ("info", f"{3:020}")]
    (zeros / f"{0:020}.log").write_bytes(batches(0, 3)[:-5])
    (cut,) = [item.message for item in kbat.verify(zeros).findings if item.kind == "partial_batch"]
    assert "deletes all later segments" in cut
    (zeros / f"{3:020}.log").unlink()
    (cut,) = [item.message for item in kbat.verify(zeros).findings if item.kind == "partial_batch"]
    assert "nothing before it is lost" in cut


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("hs_err_pid32300.log", "error"),
        ("old.snapshot", "error"),
        ("x.timeindex", "error"),
        ("00000000000000000000-copy.log", "error"),
        ("foo.log.swap", "error"),
        ("00000000000000000000.log.bak", "info"),
        ("notes.txt", "info"),
    ],
)
def test_verify_names_that_stop_a_broker_are_errors_and_not_copied(name: str, severity: str, tmp_path: Path) -> None:
    place = partition(tmp_path, (0, batches(0, 3)))
    (place / name).write_text("x")
    kind = "file_name" if severity == "error" else "unknown_file"
    assert (severity, kind) in found(place)
    kbat.recover(place, tmp_path / "recovered")
    kbat.salvage(place, tmp_path / "salvaged")
    for out in ("recovered", "salvaged"):
        assert (tmp_path / out / name).exists() == (severity == "info")


def test_verify_a_level_above_the_log_directory_says_so(tmp_path: Path) -> None:
    partition(tmp_path, (0, batches(0, 3))).rename(tmp_path / "a-0")
    (tmp_path / "data").mkdir()
    (tmp_path / "a-0").rename(tmp_path / "data" / "a-0")
    with pytest.raises(ValueError, match=r"the segments are in a subdirectory: name .*data"):
        kbat.verify(tmp_path)


def test_salvage_is_not_bound_by_a_segment_without_batches(tmp_path: Path) -> None:
    place = partition(tmp_path, (0, batches(0, 20)), (1, b""), (20, batches(20, 5)))
    report = kbat.salvage(place, tmp_path / "out")
    assert (report.dropped, report.end_offset) == ([], 25)
    assert kbat.scan(tmp_path / "out").to_pyarrow()["offset"].to_pylist() == list(range(25))


def test_salvage_keeps_what_comes_first_where_segments_overlap(tmp_path: Path) -> None:
    place = partition(tmp_path, (0, batches(0, 20)), (15, batches(15, 5)), (20, batches(20, 5)))
    report = kbat.salvage(place, tmp_path / "out")
    assert {(hole.reason, hole.first_offset, hole.last_offset) for hole in report.dropped} == {
        ("offset_order", None, None)
    }
    assert kbat.scan(tmp_path / "out").to_pyarrow()["offset"].to_pylist() == list(range(25))


def test_salvage_of_a_segment_with_another_ones_name_keeps_all_and_is_sound(tmp_path: Path) -> None:
    place = partition(tmp_path, (0, batches(0, 10)), (15, batches(10, 10)), (20, batches(20, 5)))
    report = kbat.salvage(place, tmp_path / "out")
    assert (report.dropped, [segment.base_offset for segment in report.segments]) == ([], [0, 10, 20])
    assert kbat.verify(tmp_path / "out").exit_code < 2


def test_salvage_tells_of_lost_offsets_once(tmp_path: Path) -> None:
    log = batches(0, 3) + batches(1, 2) + batches(5, 2)
    report = kbat.salvage(partition(tmp_path, (0, log)), tmp_path / "out")
    assert [(hole.first_offset, hole.last_offset) for hole in report.dropped] == [(3, 4), (None, None)]


def test_recover_says_what_it_knows_of_the_loss_before_zeros(tmp_path: Path) -> None:
    log = bytearray(batches(0, 20))
    size = len(log) // 20
    log[3 * size + 70] ^= 1
    log[10 * size : 10 * size + 2 * size] = bytes(2 * size)
    report = kbat.recover(partition(tmp_path, (0, bytes(log))), tmp_path / "out")
    assert [(hole.first_offset, hole.last_offset) for hole in report.dropped] == [(3, None)]


def test_verify_tells_of_a_link_to_nothing_and_goes_on(tmp_path: Path) -> None:
    place = partition(tmp_path, (0, batches(0, 3)), (6, batches(6, 3)))
    (place / f"{3:020}.log").symlink_to(tmp_path / "not-mounted")
    report = kbat.verify(place)
    (unreadable,) = [item for item in report.findings if item.kind == "unreadable"]
    assert (unreadable.severity, unreadable.path) == ("error", str(place / f"{3:020}.log"))
    assert report.batch_count == 6
    for tool in (kbat.recover, kbat.salvage):
        with pytest.raises(FileNotFoundError):
            tool(place, tmp_path / "out")


@pytest.mark.parametrize("name", [f"x-0/{0:020}.log", "x-0"])
def test_verify_reports_links_to_each_other_and_goes_on(name: str, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    partition(tmp_path / "logs", (0, batches(0, 3)))
    one = tmp_path / "logs" / name
    one.parent.mkdir(exist_ok=True)
    one.symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(one)
    report = kbat.verify(tmp_path / "logs")
    (unreadable,) = [item for item in report.findings if item.kind == "unreadable"]
    assert (unreadable.severity, unreadable.path) == ("error", str(one))
    assert unreadable.message.startswith("Too many levels of symbolic links")
    assert report.batch_count == 3


def test_verify_reports_a_partition_that_is_a_link_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    partition(tmp_path / "logs", (0, batches(0, 3)))
    (tmp_path / "logs" / "x-0").symlink_to(tmp_path / "not-mounted")
    report = kbat.verify(tmp_path / "logs")
    found = [(item.severity, item.kind) for item in report.findings if item.path == str(tmp_path / "logs" / "x-0")]
    assert found == [("error", "unreadable")]
    assert report.batch_count == 3


def test_verify_names_what_a_killed_spark_write_left(tmp_path: Path) -> None:
    for name in ("a-0", ".kbat-0123456789abcdef0123456789abcdef/0-0/a-0"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / LOG).touch()
    (message,) = [item.message for item in kbat.verify(tmp_path).findings if item.kind == "directory_name"]
    assert message.startswith("the working directory of a Spark write")


def test_segments_that_are_only_there_as_swap_files_are_not_passed_over(tmp_path: Path) -> None:
    log = copy_of("txn-none", tmp_path)
    expected = kbat.scan(log).to_pyarrow()
    segment = sorted(log.glob("*.log"))[2]
    swap = segment.with_name(segment.name + ".swap")
    shutil.copy(segment, swap)
    assert kbat.scan(log).to_pyarrow() == expected  # what it replaces is there still
    segment.unlink()
    for read in (kbat.scan, kbat.find_segments, lambda path: kbat.rewrite(path, tmp_path / "rewritten")):
        with pytest.raises(
            kbat.CorruptError, match="recover \\(or a broker's start\\) completes the replacement"
        ) as raised:
            read(log)
        assert (raised.value.kind, raised.value.path) == ("invalid_file", str(swap))
    out = tmp_path / "recovered"
    kbat.recover(log, out)
    assert kbat.scan(out, topic="t", partition=0).to_pyarrow()["offset"] == expected["offset"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_verify_of_a_log_directory_goes_on_behind_what_may_not_be_read(tmp_path: Path) -> None:
    for name in ("a-0", "b-0"):
        shutil.copytree(data.DATA / "log-dir" / "codec-lz4-0", tmp_path / name)
    (tmp_path / "a-0").chmod(0)
    report = kbat.verify(tmp_path)
    (tmp_path / "a-0").chmod(0o755)
    assert report.segment_count > 0
    assert "unreadable" in {finding.kind for finding in report.findings}


def test_verify_misses_no_entry_of_a_transaction_whose_data_was_filtered_out(tmp_path: Path) -> None:
    source, out = tmp_path / "t-0", tmp_path / "out" / "t-0"

    def part(sequence: int, key: bytes) -> bytes:
        builder = kbat.BatchBuilder(producer_id=3, producer_epoch=0, base_sequence=sequence, transactional=True)
        builder.append(key, b"v", timestamp=1)
        return builder.finish()

    def end(*, commit: bool) -> bytes:
        return kbat.batches.end_transaction_marker(producer_id=3, producer_epoch=0, commit=commit, timestamp=1)

    with kbat.LogWriter(source, segment_bytes=400, start_offset=5) as writer:
        writer.append_batch(part(0, b"alice"))
        for value in (b"y" * 300, b"y" * 200):  # each ends a segment
            writer.append(b"k", value, timestamp=1)
            writer.flush()
        for batch in (end(commit=False), part(1, b"bob"), end(commit=True)):
            writer.append_batch(batch)
    assert kbat.verify(source).exit_code == 0
    kbat.filter(source, out, drop_keys=[b"alice"])
    assert "aborted_transaction_missing" not in {finding.kind for finding in kbat.verify(out).findings}


def test_nothing_is_written_into_a_partition(tmp_path: Path) -> None:
    log = copy_of("txn-simple", tmp_path)
    before = content(log)
    for write in (kbat.salvage, kbat.recover, kbat.rewrite, kbat.compact):
        with pytest.raises(ValueError, match="which is only read: name a directory outside it"):
            write(log, log / "deeper" / "out")
    assert content(log) == before


def test_recover_refuses_a_file_without_batches(tmp_path: Path) -> None:
    """In place always. In another directory, the only batch may be corrupt: the log becomes empty, as in a broker."""
    partition = tmp_path / "a-0"
    partition.mkdir()
    segment = partition / f"{0:020}.log"
    builder = kbat.BatchBuilder()
    builder.append(None, b"value", timestamp=1_700_000_000_000)
    batch = bytearray(builder.finish())
    batch[-1] ^= 1
    for content, reason in ((b"see the other disk\n" * 10, "text file"), (bytes(range(200, 256)), "nothing to keep")):
        segment.write_bytes(content)
        with pytest.raises(kbat.KbatError, match=reason):
            kbat.recover(partition, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    segment.write_bytes(batch)
    with pytest.raises(kbat.KbatError, match="nothing to keep"):
        kbat.recover(partition, in_place=True)
    assert segment.read_bytes() == batch
    assert [dropped.length for dropped in kbat.recover(partition, tmp_path / "out").dropped] == [len(batch)]


def test_salvage_names_the_transactions_whose_ends_may_be_lost(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(3)
    log.append(2, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    position = log.segment.stat().st_size
    log.end_transaction(7, commit=False)
    log.append(3)
    log.append(2, producer_id=8, producer_epoch=0, base_sequence=0, transactional=True)
    log.end_transaction(8, commit=True)
    content = bytearray(log.segment.read_bytes())
    content[position + 70] ^= 1
    log.segment.write_bytes(content)
    (dropped,) = kbat.salvage(log.directory, tmp_path / "out").dropped
    assert dropped.open_transactions == [(7, 3)]
    assert str(dropped).endswith("the end of the transaction of producer 7 from offset 3 on may be among them")
    (listed,) = [json.loads(line) for line in (tmp_path / "out" / "holes.jsonl").read_text().splitlines()]
    assert listed["open_transactions"] == [[7, 3]]


@pytest.mark.parametrize("damaged", [0, 1, 2])
@pytest.mark.parametrize("gap", [2**31 - 4, 2**31, 3_000_000_000])
def test_salvage_keeps_the_batches_after_damage_behind_a_large_gap(tmp_path: Path, damaged: int, gap: int) -> None:
    source = tmp_path / "orders-0"
    with kbat.LogWriter(source) as writer:
        for base in (7, *range(8 + gap, 14 + gap)):
            builder = kbat.BatchBuilder(base_offset=base)
            builder.append(b"k", b"v", timestamp=1)
            writer.append_batch(builder.finish(), keep_offsets=True)
    segment = max(source.glob("*.log"))
    content = bytearray(segment.read_bytes())
    content[len(content) // 6 * damaged + 65] ^= 1
    segment.write_bytes(content)
    report = kbat.salvage(source, tmp_path / "out-0")
    kept = kbat.scan(tmp_path / "out-0", columns=["offset"]).to_pyarrow()["offset"].to_pylist()
    assert kept == [7, *(8 + gap + number for number in range(6) if number != damaged)]
    assert report.end_offset == 14 + gap


def test_verify_knows_that_converted_batches_have_no_leader_epoch(tmp_path: Path) -> None:
    place = tmp_path / "orders-0"
    with kbat.LogWriter(place, leader_epoch=3) as writer:
        writer.append(None, b"a", timestamp=1)
        for epoch in (-1, 2):
            builder = kbat.BatchBuilder(base_offset=writer.end_offset, partition_leader_epoch=epoch)
            builder.append(None, b"b", timestamp=1)
            writer.append_batch(builder.finish(), keep_offsets=True)
    found = [one.message for one in kbat.verify(place).findings if one.kind == "leader_epoch_order"]
    assert found == ["the batch has leader epoch 2, but an earlier batch has epoch 3"]
