"""`kbat.scan(on_corrupt=...)`: corruption is skipped or reported, and counted; nothing else is lost."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import kbat
from data import DATA, build, patched

CASES = ["codec-lz4", "codec-none", "mixed-codecs", "compacted-txn", "idempotent"]
ERROR = pa.struct(
    [
        ("kind", pa.string()),
        ("message", pa.string()),
        ("path", pa.string()),
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
    ]
)


def batch(base_offset: int, count: int = 3, **settings: Any) -> bytes:  # noqa: ANN401 -- those of kbat.BatchBuilder
    return build(
        [(base_offset, b"key", b"value %d" % index) for index in range(count)], base_offset=base_offset, **settings
    )


FIVE = [batch(base_offset) for base_offset in range(0, 15, 3)]
SIZE = len(FIVE[0])


def offsets(source: Any, on_corrupt: Literal["fail", "skip", "report"] = "skip", **options: Any) -> list[Any]:  # noqa: ANN401 -- those of kbat.scan
    found: list[Any] = kbat.scan(source, on_corrupt=on_corrupt, **options).to_pyarrow()["offset"].to_pylist()
    return found


def errors(source: Any, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 -- those of kbat.scan
    column = kbat.scan(source, on_corrupt="report", **options).to_pyarrow()["error"]
    return [row for row in column.to_pylist() if row is not None]


def stats(scan: kbat.Scan) -> dict[str, int]:
    assert scan.stats is not None
    return scan.stats.to_dict()


def damaged(index: int, byte: int, value: int = 0x5A) -> bytes:
    data = bytearray(b"".join(FIVE))
    data[index * SIZE + byte] ^= value
    return bytes(data)


@pytest.mark.parametrize("byte", [8, 9, 10, 11, 16, 17, 21, 23, 57, 61, 75, SIZE - 1])
@pytest.mark.parametrize("index", range(5))
def test_damage_takes_its_batch_and_no_other(index: int, byte: int, tmp_path: Path) -> None:
    data = damaged(index, byte)
    expected = [offset for offset in range(15) if offset // 3 != index]
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(data)
    for source in (data, path):
        scan = kbat.scan(source, on_corrupt="skip")
        assert scan.to_pyarrow()["offset"].to_pylist() == expected
        counted = stats(scan)
        assert (counted["batches"], counted["records"], counted["bytes_lost"]) == (4, 12, SIZE)
        [error] = errors(source)
        assert (error["position"], error["length"]) == (index * SIZE, SIZE)
        assert error["path"] == (str(path) if source is path else None)
        if index < 4 and (index > 0 or source is path):
            assert (error["first_offset"], error["last_offset"]) == (3 * index, 3 * index + 2)
            assert counted["offsets_lost"] == 3
        elif index == 4:
            assert (error["first_offset"], error["last_offset"]) == (12, None)


def test_fail_ends_the_pass_after_what_came_before() -> None:
    batches = kbat.scan(damaged(2, 30)).to_batches()
    assert next(batches)["offset"].to_pylist() == list(range(6))
    with pytest.raises(kbat.CrcError):
        next(batches)


def test_report_has_a_row_of_nulls_where_the_damage_is() -> None:
    scan = kbat.scan(
        damaged(2, 30),
        columns=["offset", "value", "topic", "partition", "position"],
        on_corrupt="report",
        topic="t",
        partition=7,
    )
    assert scan.schema.field("error").type == ERROR
    rows = scan.to_pyarrow().to_pylist()
    assert [row["offset"] for row in rows] == [*range(6), None, *range(9, 15)]
    assert [row["error"] for row in rows if row["offset"] is not None] == [None] * 12
    row = rows[6]
    error = row.pop("error")
    assert row == {"offset": None, "value": None, "topic": "t", "partition": 7, "position": 2 * SIZE}
    assert error["kind"] == "crc"
    assert error["message"].startswith("checksum mismatch")
    assert (error["first_offset"], error["last_offset"]) == (6, 8)
    assert stats(scan)["batches_skipped"] == 1


def test_the_column_of_damage_is_not_asked_for_by_name() -> None:
    with pytest.raises(ValueError, match='"error" is added as the last column when corruption is reported'):
        kbat.scan(b"", columns=["offset", "error"], on_corrupt="report")


def test_report_without_damage_has_no_errors() -> None:
    table = kbat.scan(b"".join(FIVE), on_corrupt="report", columns=[]).to_pyarrow()
    assert table.column_names == ["error"]
    assert table["error"].null_count == table.num_rows == 15


def test_bad_records_take_the_whole_batch() -> None:
    """A correct checksum over invalid records: no part of the batch is returned."""
    from data import with_right_crc  # noqa: PLC0415 -- one test

    bad = bytearray(FIVE[2])
    bad[-1] = 9  # the number of headers of the last record
    data = FIVE[0] + FIVE[1] + bytes(with_right_crc(bad)) + FIVE[3]
    assert offsets(data) == [0, 1, 2, 3, 4, 5, 9, 10, 11]
    [error] = errors(data)
    assert (error["position"], error["length"], error["first_offset"], error["last_offset"]) == (2 * SIZE, SIZE, 6, 8)
    assert error["kind"] not in {"crc", "truncated_file"}


def test_timestamp_that_does_not_fit_takes_its_batch() -> None:
    """Edge case 87: the scan continues."""
    far = build([(0, None, b"a"), (2**62, None, b"b")], base_offset=3)
    data = FIVE[0] + far + batch(5)
    assert offsets(data, timestamp_unit="us") == [0, 1, 2, 5, 6, 7]
    [error] = errors(data, timestamp_unit="us")
    assert "microseconds" in error["message"]
    assert (error["first_offset"], error["last_offset"]) == (3, 4)
    assert offsets(data, timestamp_unit="ms") == list(range(8))


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize("end", [8, 17, 61, 70, SIZE - 1])
def test_fail_counts_the_bytes_of_an_incomplete_batch_at_the_end(end: int, *, is_file: bool, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(FIVE[0] + FIVE[1][:end])
    source = path if is_file else path.read_bytes()
    for end_offset, expected in [(None, end), (4, end), (3, 0)]:
        scan = kbat.scan(source, end_offset=end_offset)
        assert scan.to_pyarrow()["offset"].to_pylist() == [0, 1, 2]
        assert (stats(scan)["batches_skipped"], stats(scan)["bytes_lost"]) == (0, expected)
    scan = kbat.scan(FIVE[0] + bytes(end))
    assert scan.to_pyarrow().num_rows == 3
    assert stats(scan)["bytes_lost"] == 0


@pytest.mark.parametrize(("end_offset", "is_counted"), [(3, False), (8, False), (9, False), (10, True), (None, True)])
def test_an_incomplete_batch_after_the_range_is_not_counted(
    end_offset: int | None, *, is_counted: bool, tmp_path: Path
) -> None:
    """Its header, which is complete, has the offset 9; the offsets 3 to 8 are missing."""
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(FIVE[0] + FIVE[3][:70])
    scan = kbat.scan(path, columns=["offset"], end_offset=end_offset)
    assert scan.to_pyarrow()["offset"].to_pylist() == [0, 1, 2]
    assert stats(scan)["bytes_lost"] == (70 if is_counted else 0)


@pytest.mark.parametrize("end", [8, 17, 61, 70, SIZE - 1])
def test_cut_batch_at_the_end_is_reported_not_skipped(end: int) -> None:
    data = FIVE[0] + FIVE[1][:end]
    scan = kbat.scan(data, on_corrupt="skip")
    assert scan.to_pyarrow()["offset"].to_pylist() == [0, 1, 2]
    assert (stats(scan)["batches_skipped"], stats(scan)["bytes_lost"]) == (0, end)
    [error] = errors(data)
    assert (error["kind"], error["position"], error["length"]) == ("truncated", SIZE, end)
    assert kbat.scan(data).to_pyarrow().num_rows == 3


def test_zeros_at_the_end_are_no_damage() -> None:
    assert errors(FIVE[0] + bytes(5000)) == []
    assert errors(FIVE[0] + bytes(5000) + FIVE[1])[0]["length"] == 5000


def test_lost_offsets_at_the_end_of_a_segment_reach_to_the_next(tmp_path: Path) -> None:
    (tmp_path / f"{0:020}.log").write_bytes(FIVE[0] + FIVE[1][:30])
    (tmp_path / f"{6:020}.log").write_bytes(FIVE[2])
    [error] = errors(tmp_path)
    assert (error["first_offset"], error["last_offset"]) == (3, 5)
    scan = kbat.scan(tmp_path, on_corrupt="skip")
    scan.to_pyarrow()
    assert stats(scan)["offsets_lost"] == 3


def test_batches_in_values_are_never_taken() -> None:
    """People keep copies of segments in records."""
    inner = b"".join(batch(base_offset) for base_offset in (1, 4, 7))
    outer = build([(1, b"key", inner)], base_offset=1)
    for start in [*range(8, 12), *range(16, 61)]:
        for length in (1, 4, 30):
            data = bytearray(build([(1, None, b"first")]) + outer + build([(2, None, b"last")], base_offset=2))
            start_of_outer = len(build([(1, None, b"first")]))
            for place in range(start_of_outer + start, start_of_outer + start + length):
                data[place] ^= 0x33
            assert offsets(bytes(data)) == [0, 2], (start, length)


def test_lengths_that_all_lead_far_ahead_do_not_make_a_scan_quadratic(tmp_path: Path) -> None:
    """Each damaged batch claims all that follows; to check them all would be to read 27 GB of a file of 3 MB."""
    count = 20_000
    goods = [batch(base_offset, 1) for base_offset in range(0, 2 * count, 2)]
    size = sum(map(len, goods)) + 61 * count + 1000
    data = bytearray()
    for number, good in enumerate(goods):
        data += good
        head = bytearray(good[:61])
        struct.pack_into(">qi", head, 0, 2 * number + 1, size - len(data) - 500)
        data += head
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(data + b"\xff" * (size - len(data)))

    def bytes_read() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = bytes_read()
    assert len(offsets(path)) == count
    between = bytes_read()
    assert kbat.verify(path).batch_count == count
    assert max(between - before, bytes_read() - between) < 300_000 * count  # the search for the next batch


@pytest.mark.parametrize("case", CASES)
def test_whatever_is_damaged_the_other_batches_are_there(case: str) -> None:
    """Random corruption of a broker's segments: overwritten, lost and added bytes."""
    source = random.Random(case)  # noqa: S311 -- no secret
    for path in sorted((DATA / "corpus" / case).glob("*.log")):
        whole = path.read_bytes()
        places = [(one.position, one.size, one.last_offset) for one in kbat.read_batches(whole)]
        by_batch = {
            place: offsets(whole[place : place + size], "fail", include_control=True) for place, size, _ in places
        }
        for _ in range(300):
            if len(places) < 3:
                break
            at, length = source.randrange(len(whole)), source.choice([1, 2, 8, 40, 300])
            kind = source.choice(["over", "lost", "added"])
            noise = source.randbytes(length)
            rest = whole[at:] if kind == "added" else whole[at + length :]
            data = whole[:at] + (b"" if kind == "lost" else noise) + rest
            end = at + 1 if kind == "added" else at + length
            after = end
            while kind == "lost" and whole[after - length : after - length + 1] == whole[after : after + 1] != b"":
                after += 1  # the same bytes are left if this one is lost in place of an equal one before
            intact = [place for place, size, _ in places if place + size <= at or place >= after]
            expected = [offset for place in intact for offset in by_batch[place]]
            found = offsets(data, include_control=True)
            missing = set(expected) - set(found)
            assert not missing, (path.name, kind, at, length)


def test_stats_are_those_of_each_pass() -> None:
    scan = kbat.scan(damaged(1, 40), on_corrupt="skip", max_rows=3)
    assert scan.stats is None
    one, two = scan.to_batches(), scan.to_batches()
    list(one)
    next(two)
    assert (one.stats.records, two.stats.records) == (12, 3)
    assert one.stats.bytes_read == len(damaged(1, 40))
    assert scan.stats is not None
    assert scan.stats.records == 3
    assert repr(one.stats).startswith("ScanStats(batches=4, records=12")
    pa.table(scan)
    assert scan.stats.records == 12


def test_limits_are_faults_too() -> None:
    large = build([(0, None, bytes(5000))], base_offset=3)
    data = FIVE[0] + large + batch(4)
    assert offsets(data, limits=kbat.Limits(batch_len=1000)) == [0, 1, 2, 4, 5, 6]
    [error] = errors(data, limits=kbat.Limits(batch_len=1000))
    assert (error["kind"], error["length"]) == ("limit", len(large))


def test_files_that_cannot_be_read_are_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "gone.log"
    path.write_bytes(FIVE[0])
    scan = kbat.scan(path, on_corrupt="skip")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        scan.to_pyarrow()


def test_unknown_magic_is_passed_over() -> None:
    data = FIVE[0] + bytes(patched(FIVE[1], 16, ">b", 7)) + FIVE[2]
    assert offsets(data) == [0, 1, 2, 6, 7, 8]
    assert errors(data)[0]["kind"] == "unsupported_magic"


def test_a_segment_that_ends_inside_a_batch_is_an_error_unless_it_is_the_last(tmp_path: Path) -> None:
    first, second = tmp_path / f"{0:020}.log", tmp_path / f"{15:020}.log"
    first.write_bytes(b"".join(FIVE)[:-7])
    assert offsets(first, "fail") == offsets(tmp_path, "fail") == list(range(12))
    second.write_bytes(batch(15))
    for source in (tmp_path, first, (first, 0, SIZE * 5), [first, second]):
        for threads in (1, 2):
            with pytest.raises(kbat.TruncatedError) as raised:
                kbat.scan(source).to_pyarrow(threads=threads)
            assert (raised.value.position, raised.value.base_offset) == (SIZE * 4, 12)
        assert len(offsets(source)) >= 12
    # zeros are not a batch, and the last segment may end anywhere
    first.write_bytes(b"".join(FIVE) + bytes(5000))
    second.write_bytes(batch(15)[:-7])
    assert offsets(tmp_path, "fail") == list(range(15))


def test_zeros_in_place_of_batches_are_no_end_of_a_segment_before_the_last(tmp_path: Path) -> None:
    log = tmp_path / "t-0"
    log.mkdir()
    first, second = log / f"{0:020}.log", log / f"{15:020}.log"
    first.write_bytes(b"".join(FIVE[:3]) + bytes(SIZE * 2))
    assert offsets(log, "fail") == list(range(9))  # of the last segment they are a preallocated file's
    second.write_bytes(batch(15))
    for source in (log, first, (first, 0, SIZE * 5)):
        with pytest.raises(kbat.TruncatedError, match="the log continues at a later offset") as raised:
            kbat.scan(source).to_pyarrow()
        assert (raised.value.kind, raised.value.position, raised.value.base_offset) == ("zero_tail", SIZE * 3, 9)
    assert offsets(log) == [*range(9), 15, 16, 17]
    [error] = errors(log)
    assert [error[name] for name in ("kind", "position", "length", "first_offset", "last_offset")] == [
        *("zero_tail", SIZE * 3, SIZE * 2, 9, 14)
    ]
    for rewrite in (kbat.rewrite, kbat.compact):
        with pytest.raises(kbat.TruncatedError, match="the log continues at a later offset"):
            rewrite(log, tmp_path / "out")
    first.write_bytes(bytes(SIZE * 5))
    assert offsets(log) == [15, 16, 17]


def test_a_segment_that_is_rolled_while_it_is_read_is_no_damage(tmp_path: Path) -> None:
    """A broker fills a preallocated file, truncates it and begins the next, after a scan has read its zeros."""
    log = tmp_path / "t-0"
    log.mkdir()
    segment = log / f"{0:020}.log"
    segment.write_bytes(b"".join(FIVE[:3]) + bytes(SIZE * 4))
    found = kbat.scan(log, max_rows=1).to_batches()
    next(found)
    with segment.open("r+b") as file:
        file.write(b"".join(FIVE))
        file.truncate(SIZE * 5)
    (log / f"{15:020}.log").write_bytes(batch(15))
    assert sum(arrow_batch.num_rows for arrow_batch in found) == 8


def test_a_damaged_offset_is_no_end_of_what_is_asked_for(tmp_path: Path) -> None:
    """No checksum covers a batch's offset: one that is too high looks like the first after the bounds."""
    log = tmp_path / "t-0"
    log.mkdir()
    path = log / f"{0:020}.log"
    for byte in (1, 4, 6):
        data = bytearray(b"".join(FIVE))
        data[SIZE + byte] ^= 0x10
        path.write_bytes(data)
        assert len(offsets(log, "fail")) == 15
        bounded: list[dict[str, Any]] = [{"end_offset": 12}, {"isolation": "read_committed"}]
        for bounds in bounded:
            with pytest.raises(kbat.CorruptError, match="below that of the next batch") as raised:
                offsets(log, "fail", **bounds)
            assert (raised.value.position, raised.value.field) == (SIZE, "base_offset")
            assert offsets(log, **bounds) == [0, 1, 2, *range(6, bounds.get("end_offset", 15))]
            [error] = errors(log, **bounds)
            assert [error[name] for name in ("kind", "first_offset", "last_offset")] == ["invalid_value", 3, 5]
    # a gap is not corruption, whatever follows
    path.write_bytes(FIVE[0] + FIVE[4] + bytes(500))
    assert offsets(log, "fail", end_offset=5) == [0, 1, 2]


def test_a_size_that_leads_out_of_the_file_is_an_error_where_batches_follow(tmp_path: Path) -> None:
    log = tmp_path / f"{0:020}.log"
    data = bytearray(b"".join(FIVE))
    data[SIZE + 8 : SIZE + 12] = (0x7FFF0000).to_bytes(4, "big")
    log.write_bytes(data)
    with pytest.raises(kbat.TruncatedError):
        kbat.scan(log).to_pyarrow()
    assert offsets(log) == [0, 1, 2, *range(6, 15)]


def test_pipes_and_links_to_nothing_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (lambda: kbat.scan(tmp_path / "pipe").to_pyarrow(), lambda: list(kbat.read_batches(tmp_path / "pipe"))):
        with pytest.raises(ValueError, match="pipe or a device"):
            read()
    (tmp_path / f"{0:020}.log").write_bytes(FIVE[0])
    (tmp_path / f"{3:020}.log").symlink_to(tmp_path / "not-mounted" / "3.log")
    for listed in (kbat.scan, kbat.PartitionLog, kbat.find_segments):
        with pytest.raises(FileNotFoundError):
            listed(tmp_path)


def test_a_time_prunes_no_segment_whose_end_can_not_be_seen(tmp_path: Path) -> None:
    log = tmp_path / f"{0:020}.log"
    data = bytearray(b"".join(build([(1000 + at, b"k", b"v")], base_offset=at) for at in range(20)))
    size = len(data) // 20
    data[3 * size + 8 : 3 * size + 12] = (0x7FFF0000).to_bytes(4, "big")
    log.write_bytes(data)
    assert offsets(log, start_timestamp=1010) == list(range(10, 20))
    with pytest.raises(kbat.TruncatedError, match="its length exceeds the rest of the file"):
        offsets(log, "fail", start_timestamp=1010)


@pytest.mark.parametrize("length", [150, 200, 230])
def test_bounds_believe_no_length_that_may_be_damaged(tmp_path: Path, length: int) -> None:
    """A wrong length before the bounds must not lead into the middle of a batch within them."""
    batches = [batch(base_offset, 10) for base_offset in range(0, 80, 10)]
    assert len(batches[3]) - 12 not in {150, 200, 230}
    batches[3] = bytes(patched(batches[3], 8, ">i", length))
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(b"".join(batches))
    for source in (log, log.read_bytes()):
        assert offsets(source, start_offset=40) == list(range(40, 80))
        assert offsets(source, start_offset=40, end_offset=60) == list(range(40, 60))
        assert offsets(source, isolation="read_committed") == [*range(30), *range(40, 80)]


@pytest.mark.parametrize("bounds", [{"start_timestamp": 2000}, {"start_timestamp": 1500, "end_timestamp": 2500}])
@pytest.mark.parametrize("has_newer_end", [True, False])
def test_a_length_that_leads_to_a_later_batch_hides_no_record_with_other_times(
    bounds: dict[str, Any], *, has_newer_end: bool, tmp_path: Path
) -> None:
    """Batch 2 leads exactly to batch 5, and all of these are outside the bounds."""
    times = [1000, 1000, 1000, 2000, 2000, 1000, 1000, 2000 if has_newer_end else 1000, 1000]
    batches = [build([(time, b"k", b"v")], base_offset=at) for at, time in enumerate(times)]
    batches[2] = bytes(patched(batches[2], 8, ">i", sum(map(len, batches[2:5])) - 12))
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(b"".join(batches))
    with pytest.raises(kbat.CrcError, match="base offset 2,"):
        offsets(log, "fail", **bounds)
    assert offsets(log, **bounds) == [3, 4, *([7] if has_newer_end else [])]


@pytest.mark.parametrize("is_indexed", [True, False])
def test_corruption_whose_offsets_are_outside_the_bounds_is_not_reported(tmp_path: Path, *, is_indexed: bool) -> None:
    segment = tmp_path / "orders-0" / f"{0:020d}.log"
    segment.parent.mkdir()
    starts, content = [], b""
    for offset in range(20):
        builder = kbat.BatchBuilder(base_offset=offset)
        builder.append(None, bytes(3_000), timestamp=offset)
        starts.append(len(content))
        content += builder.finish()
    segment.write_bytes(content)
    if is_indexed:
        kbat.rebuild_indexes(segment.parent)
    damaged = bytearray(content)
    damaged[starts[5] + 500] ^= 1
    segment.write_bytes(damaged)
    for bounds, lost in [((15, None), 0), ((6, None), 0), ((5, None), 1), ((None, 5), 0), ((None, 6), 1)]:
        scan = kbat.scan(tmp_path, on_corrupt="report", start_offset=bounds[0], end_offset=bounds[1])
        errors = [row for row in scan.to_pyarrow().to_pylist() if row["error"]]
        assert scan.stats is not None
        assert (len(errors), scan.stats.offsets_lost) == (lost, lost), bounds
