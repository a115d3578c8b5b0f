"""What a reader, writer or tool may never do: hide or delete a good batch, return rows twice, leave a process hanging.

Each test fails at the state that an attempt to break kbat found; `D1` to `D9` are its findings.
"""

from __future__ import annotations

import gzip
import itertools
import json
import pickle
import shutil
import signal
from collections import Counter
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kbat
from data import DATA, build
from interrupting import interrupt
from reliability_logs import NOW, Bytes, batch, in_every_way, names, offsets, run, segment_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOG_DIR = DATA / "log-dir"
SHAPES = ["v2-none", "v2-zstd", "v2-gzip", "v1-none", "v1-lz4", "v0-none", "v0-snappy"]


def write_log(directory: Path, records: int = 100, **settings: Any) -> Path:  # noqa: ANN401 -- those of kbat.LogWriter
    with kbat.LogWriter(directory, batch_size=200, **settings) as writer:
        for offset in range(records):
            writer.append(b"key %d" % (offset % 7), b"value %d" % offset, timestamp=NOW + offset)
    return directory


def snapshot(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


# D1: staging directories and files

_CALLS = {
    "rewrite": "kbat.rewrite(source, out, compression='zstd', progress=progress)",
    "salvage": "kbat.salvage(source, out, progress=progress)",
    "filter": "kbat.filter(source, out, lambda record: record.offset % 2, progress=progress)",
    "compact": "kbat.compact(source, out, include_active=True, progress=progress)",
    "recover": "kbat.recover(source, out, progress=progress)",
    "rebuild_indexes": "kbat.rebuild_indexes(source, out, progress=progress)",
}
# It watches the log directory from the tool's own callback, and kills itself before the result gets its name.
_KILLED = """
import os, signal, sys
import kbat
root, source, out = sys.argv[1:]
def progress(done, total):
    assert [(log.topic, log.partition) for log in kbat.LogDirectory(root).partitions] == [("orders", 0)]
    assert kbat.scan(root, columns=["offset"]).count() == 100
    assert {part[0] for part in kbat.split(root, 500)} == {os.path.join(source, "0" * 20 + ".log")}
    assert not os.path.exists(out)
    if done == total and len(os.listdir(root)) > 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("tool", _CALLS)
def test_a_staging_directory_is_never_a_partition_and_the_next_run_removes_it(tool: str, tmp_path: Path) -> None:
    root = tmp_path / "logs"
    source, out = write_log(root / "orders-0"), root / "small-0"
    before = snapshot(source)
    code, _, errors = run(_KILLED + _CALLS[tool], root, source, out)
    assert code == -signal.SIGKILL, errors
    [left] = names(root.iterdir()) - {"orders-0"}
    assert left.startswith("small-0.kbat-partial-")
    assert [(log.topic, log.partition) for log in kbat.LogDirectory(root).partitions] == [("orders", 0)]
    assert kbat.scan(root).count() == 100
    for location in (root, f"{root}/*", f"{root}/*/*.log"):
        assert len(kbat.find_segments(location)) == 1
    assert kbat.verify(root).segment_count == 1
    exec(_CALLS[tool], {"kbat": kbat, "source": source, "out": out, "progress": None})  # noqa: S102 -- as in the child
    assert names(root.iterdir()) == {"orders-0", "small-0"}
    assert snapshot(source) == before


@pytest.mark.parametrize("tool", sorted(set(_CALLS) - {"recover", "rebuild_indexes"}))
def test_a_run_that_an_exception_ends_leaves_nothing(tool: str, tmp_path: Path) -> None:
    source = write_log(tmp_path / "orders-0")

    def progress(done: int, total: int) -> None:
        if done == total:
            raise KeyError(tool)

    with pytest.raises(KeyError):
        exec(_CALLS[tool], {"kbat": kbat, "source": source, "out": tmp_path / "new" / "out-0", "progress": progress})  # noqa: S102 -- as above
    assert names(tmp_path.iterdir()) == {"orders-0"}


def test_a_running_tool_is_not_disturbed_by_another_one_with_the_same_target(tmp_path: Path) -> None:
    source, out = write_log(tmp_path / "orders-0"), tmp_path / "small-0"
    inner: list[kbat.RewriteReport] = []

    def progress(done: int, total: int) -> None:
        if done == total and not inner:
            inner.append(kbat.rewrite(source, out, compression="zstd"))

    with pytest.raises(OSError, match="small-0"):
        kbat.rewrite(source, out, compression="lz4", progress=progress)
    assert names(tmp_path.iterdir()) == {"orders-0", "small-0"}
    assert {each.compression for each in kbat.read_batches(out / f"{0:020}.log")} == {"zstd"}


def test_a_staged_file_is_no_segment_and_the_next_run_replaces_it(tmp_path: Path) -> None:
    partition = write_log(tmp_path / "orders-0")
    before = snapshot(partition)
    for suffix in ("index", "timeindex"):
        shutil.copy(partition / f"{0:020}.log", partition / f"{0:020}.{suffix}.kbat-partial")
    shutil.copy(partition / f"{0:020}.log", partition / f"{500:020}.log.kbat-partial")
    assert kbat.scan(tmp_path).count() == 100
    assert len(kbat.find_segments(f"{partition}/*")) == 1
    assert kbat.verify(partition).ok
    kbat.rebuild_indexes(partition)
    kbat.recover(partition, in_place=True)
    assert set(snapshot(partition)) - set(before) <= {f"{500:020}.log.kbat-partial"}
    with kbat.LogWriter(partition) as writer:
        assert writer.end_offset == 100


_KILLED_PARQUET = """
import os, signal, sys
import kbat
source, target = sys.argv[1:]
def progress(done, total):
    if any(name.startswith(".") for _, _, files in os.walk(os.path.dirname(target)) for name in files):
        os.kill(os.getpid(), signal.SIGKILL)
kbat.write_parquet(kbat.scan([source] + [open(source, "rb").read()] * 300), target, progress=progress%s)
"""


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_killed_parquet_write_leaves_nothing_that_readers_see(partitioned: bool, tmp_path: Path) -> None:  # noqa: FBT001 -- a parameter of the test
    source = write_log(tmp_path / "orders-0", 20_000) / f"{0:020}.log"
    target = tmp_path / "out" / ("table" if partitioned else "table.parquet")
    target.parent.mkdir()
    extra = ", partition_by=['partition']" if partitioned else ""
    code, _, errors = run(_KILLED_PARQUET % extra, source, target)
    assert code == -signal.SIGKILL, errors
    left = [path for path in target.parent.rglob("*") if path.is_file()]
    assert left
    assert all(path.name.startswith(".") for path in left)


def test_the_next_parquet_write_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    source = write_log(tmp_path / "orders-0", 20_000) / f"{0:020}.log"
    target = tmp_path / "out" / "table.parquet"
    target.parent.mkdir()
    assert run(_KILLED_PARQUET % "", source, target)[0] == -signal.SIGKILL
    kbat.write_parquet(kbat.scan(source), target)
    assert names(target.parent.iterdir()) == {"table.parquet"}


# D2: a flipped bit in a stored offset


@pytest.mark.parametrize("where", ["first", "middle", "last"])
@pytest.mark.parametrize("shape", SHAPES)
def test_salvage_loses_at_most_the_batch_whose_stored_offset_has_a_flipped_bit(
    shape: str, where: str, tmp_path: Path
) -> None:
    segment = segment_of(shape)
    index = {"first": 0, "middle": 4, "last": 8}[where]
    others = segment.offsets(index)
    for bit in range(64):
        partition = segment.write(tmp_path / "orders-0", segment.flipped(index, bit))
        report = kbat.salvage(partition, tmp_path / f"saved-{bit}")
        kept = offsets(tmp_path / f"saved-{bit}")
        assert set(kept) >= set(others), f"bit {bit}"
        assert sum(each.batch_count for each in report.segments) >= 8
        # a loss is reported
        assert report.dropped or len(kept) == len(segment.offsets())
        assert report.end_offset <= 1 << 32


@pytest.mark.parametrize("where", [0, 3])
def test_salvage_of_several_segments_loses_at_most_the_batch_whose_first_offset_has_a_flipped_bit(
    where: int, tmp_path: Path
) -> None:
    """The first batch of each segment in turn, and segments of one batch only."""
    logs = [
        Bytes([batch(0), batch(3)]),
        Bytes([batch(6)], base_offset=6),
        Bytes([batch(9), batch(12), batch(15)], base_offset=9),
        Bytes([batch(18)], base_offset=18),
    ]
    for bit, number in itertools.product(range(where, 64, 5), range(4)):
        directory = tmp_path / f"orders-{bit}"
        for each in logs:
            each.write(directory)
        logs[number].write(directory, logs[number].flipped(0, bit))
        kbat.salvage(directory, tmp_path / "saved")
        others = [offset for i, each in enumerate(logs) for offset in each.offsets(*([0] if i == number else []))]
        assert set(offsets(tmp_path / "saved", "skip")) >= set(others), f"bit {bit} of segment {number}"
        shutil.rmtree(tmp_path / "saved")
        shutil.rmtree(directory)


# D3: offsets that fall


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("base_offsets", [[0] * 10, [0, 500, 3, 3, 90, 1, 0, 7, 8, 2], list(range(90, -10, -10))])
def test_a_buffer_whose_offsets_fall_loses_the_corrupt_batch_only(shape: str, base_offsets: list[int]) -> None:
    magic = int(shape[1])
    count = 1 if magic < 2 and shape.endswith("none") else 4
    compression: Any = shape[3:]
    batches = [
        batch(base_offset, count, value=b"batch %d" % index * 9, magic=magic, compression=compression)
        for index, base_offset in enumerate(base_offsets)
    ]
    request = Bytes(batches)
    for index in (0, 4, 8):
        size = len(request.batches[index])
        expected = [b"batch %d" % each * 9 for each in range(10) if each != index for _ in range(count)]
        crc = 14 if magic < 2 else 18
        for byte in (crc, size - 1, 8, 11, 16):
            data = bytearray(request.data)
            data[request.position(index) + byte] ^= 0x55
            for mode in ("skip", "report"):
                table = kbat.scan(bytes(data), on_corrupt=mode).to_pyarrow()
                found = [value for value in table["value"].to_pylist() if value is not None]
                assert found == expected, f"{mode}: byte {byte} of batch {index}"
            if byte != 8:  # a length that leads past the end of a buffer is a batch that has not arrived
                with pytest.raises(kbat.KbatError):
                    kbat.scan(bytes(data)).to_pyarrow()


# D4, D5: writers and forks

_FORK = """
import os, sys
import kbat
directory = sys.argv[1]
writer = kbat.LogWriter(directory)
writer.append(b"parent", b"", timestamp=-1)
held, release = os.pipe()
ready, done = os.pipe()
child = os.fork()
if child == 0:
    os.close(release)
    for use in (
        lambda: writer.append(b"child", b"", timestamp=-1),
        lambda: writer.append_batch(b""),
        writer.flush,
        writer.close,
        lambda: kbat.LogWriter(directory),
    ):
        try:
            use()
        except ValueError as error:
            print(error, flush=True)
    os.write(done, b"1")
    os.read(held, 1)
    os._exit(0)
os.close(held)
os.read(ready, 1)
try:
    kbat.LogWriter(directory)
except ValueError as error:
    assert "another LogWriter" in str(error)
else:
    raise SystemExit("two writers")
writer.append(b"parent", b"", timestamp=-1)
writer.close()
# the child lives, and has the directory open
with kbat.LogWriter(directory) as again:
    assert again.end_offset == 2
    again.append(b"again", b"", timestamp=-1)
os.close(release)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_child_neither_writes_through_a_writer_nor_keeps_its_lock(tmp_path: Path) -> None:
    code, printed, errors = run(_FORK, tmp_path / "orders-0")
    assert code == 0, errors
    refused = printed.splitlines()
    assert len(refused) >= 4
    assert all("fork" in line or "another LogWriter" in line for line in refused)
    table = kbat.scan(tmp_path / "orders-0", columns=["offset", "key"]).to_pyarrow().to_pydict()
    assert table == {"offset": [0, 1, 2], "key": [b"parent", b"parent", b"again"]}
    assert kbat.verify(tmp_path / "orders-0").ok


def test_a_writer_that_is_dropped_in_a_forked_child_unlocks_nothing(tmp_path: Path) -> None:
    script = """
import os, sys
import kbat
writer = kbat.LogWriter(sys.argv[1])
writer.append(b"parent", b"", timestamp=-1)
child = os.fork()
if child == 0:
    del writer
    os._exit(0)
os.waitpid(child, 0)
try:
    kbat.LogWriter(sys.argv[1])
except ValueError as error:
    print(error)
writer.close()
"""
    code, printed, errors = run(script, tmp_path / "orders-0")
    assert code == 0, errors
    assert "another LogWriter" in printed
    assert offsets(tmp_path / "orders-0") == [0]


_FORKED_ITERATOR = """
import os, signal, sys
import kbat
source = [open(sys.argv[1], "rb").read()] * 200
batches = kbat.scan(source, max_rows=50).to_batches(threads=3, max_memory_bytes=10_000)
next(batches)
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        for _ in batches:
            pass
    except Exception as error:
        print(error, flush=True)
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
print(sum(batch.num_rows for batch in batches))
"""


def test_a_threaded_iterator_raises_in_a_forked_child_and_continues_in_the_parent(tmp_path: Path) -> None:
    path = write_log(tmp_path / "orders-0") / f"{0:020}.log"
    first = next(kbat.scan(path, max_rows=50).to_batches()).num_rows
    code, printed, errors = run(_FORKED_ITERATOR, path)
    assert code == 0, errors
    message, rows = printed.splitlines()
    assert "fork" in message
    assert int(rows) == 200 * 100 - first


# D6: bytes missing inside a large record

_TAILS = ["nothing", "torn", "zeros", "gap"]


def with_missing_bytes(size: int, missing: int, at: int, good: int, tail: str) -> tuple[Bytes, bytes, list[int]]:
    """Return a segment, its bytes without some of the large value, and the offsets of its good batches."""
    value = bytes((i * i + i // 251) % 256 for i in range(size))
    start = 8 if tail == "gap" else 6
    behind = [batch(start + 3 * index) for index in range(good)]
    segment = Bytes([batch(0, 2), batch(2), batch(5, 1, value=value), *behind])
    place = segment.position(2) + 75 + at
    data = segment.data[:place] + segment.data[place + missing :]
    if tail == "torn":
        data += batch(start + 3 * good, 2)[:80]
    if tail == "zeros":
        data += bytes(4096)
    return segment, data, segment.offsets(2)


def cases(tail: str) -> Iterator[tuple[str, Bytes, bytes, list[int]]]:
    """Every size of the value, of what is missing, and of the log after it."""
    for size, share, place in itertools.product([300, 1100, 2500, 20_000], [0.01, 0.2, 0.6, 0.95], [0, 0.03]):
        for good in (1, 2, 4):
            missing, at = int(size * share), int(size * place)
            yield f"{missing} of {size} bytes at {at}, {good}", *with_missing_bytes(size, missing, at, good, tail)


@pytest.mark.parametrize("tail", _TAILS)
def test_a_writer_truncates_no_good_batch_behind_missing_bytes(tail: str, tmp_path: Path) -> None:
    for case, segment, data, _ in cases(tail):
        partition = segment.write(tmp_path / "orders-0", data)
        with pytest.raises(kbat.CorruptError):
            kbat.LogWriter(partition)
        assert (partition / f"{0:020}.log").read_bytes() == data, case
        assert not kbat.verify(partition).ok, case


@pytest.mark.parametrize("tail", _TAILS)
def test_a_scan_raises_if_a_good_batch_lies_behind_missing_bytes(tail: str, tmp_path: Path) -> None:
    for case, segment, data, _ in cases(tail):
        partition = segment.write(tmp_path / "orders-0", data)
        try:
            found = offsets(partition)
        except kbat.KbatError:
            continue
        pytest.fail(f"{case}: {found}")


@pytest.mark.parametrize("tail", _TAILS)
def test_readers_that_continue_keep_a_good_batch_behind_missing_bytes(tail: str, tmp_path: Path) -> None:
    for case, segment, data, expected in cases(tail):
        partition = segment.write(tmp_path / "orders-0", data)
        found = in_every_way(partition, data)
        assert all(each == expected for each in found.values()), f"{case}: {found}"


@pytest.mark.parametrize("tail", _TAILS)
def test_salvage_keeps_a_good_batch_behind_missing_bytes(tail: str, tmp_path: Path) -> None:
    for case, segment, data, expected in cases(tail):
        partition = segment.write(tmp_path / "orders-0", data)
        kbat.salvage(partition, tmp_path / "saved")
        assert offsets(tmp_path / "saved") == expected, case
        shutil.rmtree(tmp_path / "saved")


@pytest.mark.parametrize("tail", _TAILS)
def test_the_end_of_a_log_is_not_before_a_good_batch(tail: str, tmp_path: Path) -> None:
    for missing in (10, 500, 1500, 1900):
        segment, data, _ = with_missing_bytes(2000, missing, 30, 2, tail)
        partition = segment.write(tmp_path / f"orders-{missing}", data)
        with pytest.raises(kbat.KbatError):
            _ = kbat.PartitionLog(partition).end_offset


@pytest.mark.parametrize("zeros", [17, 20, 61, 300])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_writer_truncates_no_good_batch_behind_zeros(shape: str, zeros: int, tmp_path: Path) -> None:
    """Zeros are the end of a log only if they reach up to the end of the file."""
    segment = segment_of(shape, 20)
    for at in (0, 1, 3):
        data = bytearray(segment.data)
        place = segment.position(2) + at
        data[place : place + zeros] = bytes(zeros)
        partition = segment.write(tmp_path / "orders-0", bytes(data))
        with pytest.raises(kbat.CorruptError):
            kbat.LogWriter(partition)
        assert (partition / f"{0:020}.log").read_bytes() == data


def test_a_limit_is_no_reason_to_truncate_a_good_batch(tmp_path: Path) -> None:
    segment = Bytes([batch(0, 2), batch(2)[:90], batch(5, value=b"large" * 400)])
    partition = segment.write(tmp_path / "orders-0")
    with pytest.raises(kbat.KbatError):
        kbat.LogWriter(partition, limits=kbat.Limits(batch_len=1000))
    assert (partition / f"{0:020}.log").read_bytes() == segment.data


def test_a_writer_does_not_continue_at_an_offset_that_exists(tmp_path: Path) -> None:
    segment = Bytes([batch(3 * index) for index in range(10)])
    data = bytearray(segment.data)
    data[segment.position(9) + 7] = 5
    partition = segment.write(tmp_path / "orders-0", bytes(data))
    with pytest.raises(kbat.KbatError):
        _ = kbat.PartitionLog(partition).end_offset
    with pytest.raises(kbat.KbatError):
        kbat.LogWriter(partition)


@pytest.mark.parametrize("bounds", [{"start_offset": 2}, {"start_timestamp": NOW + 2}])
def test_a_bounded_scan_raises_rather_than_lose_a_good_batch(bounds: dict[str, Any], tmp_path: Path) -> None:
    """Bytes are missing in a batch before the bounds, so that its length leads into the batch that they include."""
    segment = Bytes([batch(0, 2, value=b"x" * 2000), batch(2, 1, value=b"y" * 20_000)])
    data = segment.data[:1000] + segment.data[1008:]
    partition = segment.write(tmp_path / "orders-0", data)
    assert offsets(partition, "skip", **bounds) == [2]
    with pytest.raises(kbat.KbatError):
        kbat.scan(partition, **bounds).to_pyarrow()
    with pytest.raises(kbat.KbatError):
        _ = kbat.PartitionLog(partition).end_offset
    with pytest.raises(kbat.KbatError):
        kbat.PartitionLog(partition).find_offset(2)


def test_a_lookup_past_a_corrupt_length_raises(tmp_path: Path) -> None:
    segment = Bytes([batch(3 * index) for index in range(4)])
    data = bytearray(segment.data)
    data[segment.position(1) + 10] ^= 1
    partition = segment.write(tmp_path / "orders-0", bytes(data))
    with pytest.raises(kbat.CorruptError):
        kbat.PartitionLog(partition).find_offset(7)
    with pytest.raises(kbat.CorruptError):
        kbat.PartitionLog(partition).find_timestamp(NOW + 7)


@pytest.mark.parametrize("mode", ["skip", "report"])
def test_a_time_range_has_the_rows_after_a_corrupt_length(mode: Any, tmp_path: Path) -> None:  # noqa: ANN401 -- one of two literals
    """The length of the first batch leads to the end of the file."""
    segment = Bytes([batch(3 * index) for index in range(4)])
    data = bytearray(segment.data)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    partition = segment.write(tmp_path / "orders-0", bytes(data))
    assert offsets(partition, mode) == list(range(3, 12))
    assert offsets(partition, mode, start_timestamp=NOW + 5) == list(range(5, 12))


def test_good_batches_between_two_corrupt_ones_are_kept(tmp_path: Path) -> None:
    """A byte is missing in each, so that the value of the first seems to end inside the next batch."""
    value = bytes(index * index % 251 for index in range(2000))
    good = [batch(3 + 3 * index) for index in range(4)]
    segment = Bytes([batch(0, 2), batch(2, 1, value=value), *good, batch(15, 1, value=value), batch(16)])
    first, second = segment.position(1) + 300, segment.position(6) + 300
    data = segment.data[:first] + segment.data[first + 1 : second] + segment.data[second + 1 :]
    partition = segment.write(tmp_path / "orders-0", data)
    expected = segment.offsets(1, 6)
    assert all(each == expected for each in in_every_way(partition, data).values())
    kbat.salvage(partition, tmp_path / "saved")
    assert offsets(tmp_path / "saved") == expected


_SHORT_TAILS = pytest.mark.parametrize("tail", [batch(99, value=b"torn" * 20)[:90], bytes(10)], ids=["torn", "zeros"])


def missing_bytes(magic: int, gap: int, missing: int, tail: bytes) -> tuple[Bytes, bytes, list[int]]:
    """The length of the third batch leads past the end. Returns the segment, its damaged bytes and its good offsets."""
    first, second = (batch(offset, 1, magic=magic) for offset in (0, 1))
    large = batch(2, 1, value=bytes(index * index % 251 for index in range(2000)), magic=magic)
    good = [batch(3 + gap + offset, 1, magic=magic) for offset in range(4)]
    data = b"".join([first, second, large[:300], large[300 + missing :], *good, tail])
    return Bytes([first, second, large, *good]), data, [0, 1, *range(3 + gap, 7 + gap)]


@_SHORT_TAILS
@pytest.mark.parametrize(("magic", "gap", "missing"), [(2, 1, 2), (2, 50, 1500), (1, 0, 1500), (0, 0, 1500)])
def test_a_tail_is_no_reason_to_end_silently(magic: int, gap: int, missing: int, tail: bytes, tmp_path: Path) -> None:
    segment, data, _ = missing_bytes(magic, gap, missing, tail)
    partition = segment.write(tmp_path / "orders-0", data)
    with pytest.raises(kbat.KbatError):
        kbat.scan(partition).to_pyarrow()
    with pytest.raises(kbat.KbatError):
        kbat.rewrite(partition, tmp_path / "rewritten")
    with pytest.raises(kbat.KbatError):
        _ = kbat.PartitionLog(partition).end_offset
    with pytest.raises(kbat.KbatError):
        kbat.LogWriter(partition)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_zeros_after_good_batches_are_no_reason_to_end_silently(magic: int, tmp_path: Path) -> None:
    """The length of the third batch leads into the zeros of a preallocated file."""
    segment, data, _ = missing_bytes(magic, 0, 1500, bytes(4096))
    partition = segment.write(tmp_path / "orders-0", data)
    with pytest.raises(kbat.KbatError):
        kbat.scan(partition).to_pyarrow()
    with pytest.raises(kbat.KbatError):
        _ = kbat.PartitionLog(partition).end_offset


_AMBIGUOUS = pytest.mark.xfail(reason="the good batches may also be in the value of an incomplete batch")


@_SHORT_TAILS
@pytest.mark.parametrize(
    ("magic", "gap", "missing"),
    [
        (2, 1, 2),
        *(pytest.param(*case, marks=_AMBIGUOUS) for case in [(2, 50, 1500), (1, 0, 1500), (0, 0, 1500)]),
    ],
)
def test_a_tail_hides_no_batch_after_a_gap_and_no_message(
    magic: int, gap: int, missing: int, tail: bytes, tmp_path: Path
) -> None:
    segment, data, expected = missing_bytes(magic, gap, missing, tail)
    partition = segment.write(tmp_path / "orders-0", data)
    assert all(each == expected for each in in_every_way(partition, data).values())
    kbat.salvage(partition, tmp_path / "saved")
    assert offsets(tmp_path / "saved") == expected


@pytest.mark.parametrize("corrupt", ["shorter", "longer"])
def test_corruption_does_not_decide_which_replica_is_longer(corrupt: str, tmp_path: Path) -> None:
    """The last offset delta of the shorter one is too high, or a length in the longer one leads past its end."""
    for name, count in (("shorter", 10), ("longer", 30)):
        segment = Bytes([batch(3 * index) for index in range(count)])
        data = bytearray(segment.data)
        if name == corrupt:
            byte = {"shorter": segment.position(9) + 24, "longer": segment.position(count - 10) + 9}[name]
            data[byte] ^= 0x40
        segment.write(tmp_path / name / "orders-0", bytes(data))
    found = offsets([tmp_path / "shorter", tmp_path / "longer"], "skip", replicas="longest")
    assert len(found) >= 87


@pytest.mark.parametrize("tail", [bytes(10), batch(90)[:5], batch(90)[:40]], ids=["zeros", "5 bytes", "40 bytes"])
@pytest.mark.parametrize("shape", ["v0-none", "v1-none"])
def test_a_short_tail_of_a_buffer_hides_no_good_message(shape: str, tail: bytes) -> None:
    segment = segment_of(shape, 20)
    place = segment.position(3) + 30
    data = segment.data[:place] + b"Z" + segment.data[place:] + tail
    assert offsets(data, "skip") == segment.offsets(3)


def test_a_batch_that_was_not_written_completely_is_truncated(tmp_path: Path) -> None:
    """The other side: a torn write is the end of a log, whatever its value looks like."""
    values = [bytes(2000), b"\xff" * 2000, b"text " * 400, batch(9)[:70] * 20]
    for number, value in enumerate(values):
        whole = [batch(0, 2), batch(2)]
        torn = batch(5, 1, value=value)
        for cut in (1, 20, 61, 75, 500, len(torn) - 1):
            data = b"".join([*whole, torn[:cut]])
            partition = Bytes(whole).write(tmp_path / f"orders-{number}{cut}", data)
            assert offsets(partition) == [0, 1, 2, 3, 4]
            with kbat.LogWriter(partition) as writer:
                assert (writer.end_offset, writer.truncated_bytes) == (5, cut)


# D6b, D7: Ctrl-C

_REWRITE = """
import os, random, sys
import kbat
random.seed(1)
words = [b"%x" % random.getrandbits(40) for _ in range(5000)]
lines = [b" ".join(random.choices(words, k=20)) * 20 for _ in range(2000)]
source, out = os.path.join(sys.argv[1], "orders-0"), os.path.join(sys.argv[1], "small-0")
with kbat.LogWriter(source, batch_size=1 << 20, compression="zstd", level=1) as writer:
    for index in range(40_000):
        writer.append(b"", random.choice(lines)[random.randrange(40):], timestamp=index)
print("go", flush=True)
kbat.rewrite(source, out, compression="zstd", level=19, batch_bytes=1 << 22)
"""


def test_ctrl_c_ends_a_rewrite_at_the_highest_level(tmp_path: Path) -> None:
    """Of a few megabytes of input, which take many seconds to compress again."""
    code, _, errors = interrupt(_REWRITE, str(tmp_path))
    assert code != 0
    assert "KeyboardInterrupt" in errors
    assert names(tmp_path.iterdir()) == {"orders-0"}


_ENCODE = """
import kbat
builder = kbat.BatchBuilder()
for index in range(1000):
    builder.append(b"key", b"value" * 20, timestamp=index)
source = kbat.scan([builder.finish()] * 20_000, columns=["key", "value", "timestamp"])
print("go", flush=True)
try:
    %s
except ValueError as error:
    print("swallowed", error)
"""


@pytest.mark.parametrize(
    "call",
    ["kbat.encode(source)", "list(kbat.encode_batches(source))", "kbat.encode(source, compression='zstd', level=19)"],
)
def test_ctrl_c_in_encode_is_a_keyboard_interrupt(call: str) -> None:
    code, printed, errors = interrupt(_ENCODE % call)
    assert printed == ""
    assert code != 0
    assert "KeyboardInterrupt" in errors


# D9: a dangling symlink


@pytest.fixture
def with_dangling_link(tmp_path: Path) -> Path:
    """A log directory with one partition that is a symlink to nowhere."""
    write_log(tmp_path / "logs" / "orders-0")
    (tmp_path / "logs" / "x-0").symlink_to(tmp_path / "nowhere")
    return tmp_path / "logs"


@pytest.mark.parametrize("on_corrupt", ["fail", "skip", "report"])
def test_a_dangling_symlink_is_named_by_the_error(on_corrupt: Any, with_dangling_link: Path) -> None:  # noqa: ANN401 -- one of three literals
    for call in (
        lambda: kbat.scan(with_dangling_link, on_corrupt=on_corrupt).to_pyarrow(),
        lambda: kbat.find_segments(with_dangling_link),
        lambda: kbat.split(with_dangling_link, 1000),
    ):
        with pytest.raises(FileNotFoundError, match="x-0"):
            call()


def test_a_dangling_symlink_is_not_touched_if_its_topic_is_not_read(with_dangling_link: Path) -> None:
    assert kbat.scan(with_dangling_link, topics=["orders"]).count() == 100
    assert kbat.scan(with_dangling_link, topics=["o*"], partitions=[0]).count() == 100
    assert len(kbat.find_segments(with_dangling_link, topics="orders")) == 1
    assert [log.topic for log in kbat.LogDirectory(with_dangling_link, topics="orders").partitions] == ["orders"]
    assert kbat.verify(with_dangling_link, topics="orders").segment_count == 1


def test_a_dangling_symlink_is_listed_as_a_stray_directory(with_dangling_link: Path) -> None:
    directory = kbat.LogDirectory(with_dangling_link)
    assert [log.topic for log in directory.partitions] == ["orders"]
    [stray] = directory.stray
    assert (stray.topic, stray.partition, stray.state) == ("x", 0, "unreadable")
    assert stray.path == str(with_dangling_link / "x-0")
    assert "No such file" in (stray.error or "")


# Dictionary indexes, base offsets


@pytest.mark.parametrize("index_type", [pa.int8(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("index", [2, 100, -1])
@pytest.mark.parametrize("column", ["key", "value"])
def test_a_dictionary_index_out_of_range_is_an_error(column: str, index: int, index_type: Any) -> None:  # noqa: ANN401 -- one of three types
    values = pa.array([b"a", b"b"], pa.binary())
    array = pa.DictionaryArray.from_arrays(pa.array([0, index, 1], index_type), values, safe=False)
    table = pa.table({"value": pa.array([b"v"] * 3), column: array})
    with pytest.raises(ValueError, match=rf"column {column} has dictionary index {index}"):
        kbat.encode(table, timestamp=NOW)
    good = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], index_type), values)
    encoded = kbat.encode(pa.table({"value": pa.array([b"v"] * 3), column: good}), timestamp=NOW)
    found = [getattr(record, column) for each in kbat.read_batches(encoded) for record in each]
    assert found == [b"a", None, b"b"]


@pytest.mark.parametrize(
    ("shape", "last"), [("v2-none", 2), ("v2-zstd", 2), ("v1-gzip", 2), ("v1-none", 0), ("v0-none", 0)]
)
def test_set_base_offset_does_not_wrap(shape: str, last: int) -> None:
    data = bytearray(segment_of(shape, 1).data)
    largest = (1 << 63) - 1
    kbat.set_base_offset(data, largest - last)
    assert [record.offset for each in kbat.read_batches(data) for record in each][-1] == largest
    for base_offset in range(largest - last + 1, largest + 1):
        with pytest.raises(ValueError, match="too large"):
            kbat.set_base_offset(data, base_offset)
    [found] = kbat.read_batches(data)
    assert (found.last_offset, next(iter(found)).offset) == (largest, largest - last)


# Record and Batch


def some_batches() -> list[kbat.Batch]:
    """Batches of every format, a marker among them."""
    built = [segment_of(shape, 1).data for shape in SHAPES]
    marker = kbat.end_transaction_marker(producer_id=1, producer_epoch=0, commit=True, timestamp=NOW)
    with_headers = build([(NOW, None, b"")], timestamp_type="LogAppendTime", log_append_time=NOW + 5)
    return [each for data in [*built, marker, with_headers] for each in kbat.read_batches(data)]


def test_records_are_equal_if_their_fields_are() -> None:
    first, second = ([record for each in some_batches() for record in each] for _ in range(2))
    assert first == second
    assert list(map(hash, first)) == list(map(hash, second))
    unlike = {record.offset: record for record in first}
    assert len({*unlike.values()}) == len(unlike)
    assert all(one != other for one, other in itertools.combinations(unlike.values(), 2))
    assert first[0] != "record"
    builder = kbat.BatchBuilder()
    for headers in ([], [("a", b"1")], [("a", None)], [("a", b"")]):
        builder.append(b"key", b"value", timestamp=NOW, headers=headers)
    [found] = kbat.read_batches(builder.finish())
    assert len(set(found)) == 4


def test_batches_are_equal_if_their_bytes_and_positions_are() -> None:
    first, second = some_batches(), some_batches()
    assert first == second
    assert list(map(hash, first)) == list(map(hash, second))
    assert len(set(first)) == len(first)
    twice = list(kbat.read_batches(batch(0) * 2))
    assert twice[0] != twice[1]
    assert bytes(twice[0]) == bytes(twice[1])


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_records_and_batches_survive_pickling(protocol: int) -> None:
    for each in some_batches():
        copy = pickle.loads(pickle.dumps(each, protocol))  # noqa: S301 -- made here
        assert copy == each
        assert (hash(copy), copy.asdict(), bytes(copy), repr(copy)) == (
            hash(each),
            each.asdict(),
            bytes(each),
            repr(each),
        )
        for record, other in zip(each, copy, strict=True):
            again = pickle.loads(pickle.dumps(record, protocol))  # noqa: S301 -- made here
            assert again == record == other
            assert (hash(again), again.asdict(), again.control) == (hash(record), record.asdict(), record.control)


def test_asdict_has_the_public_fields() -> None:
    for each in some_batches():
        fields = each.asdict()
        for name in set(fields) - {"base_offset"}:
            assert fields[name] == getattr(each, name), name
        if fields["base_offset"] is not None:
            assert fields["base_offset"] == each.base_offset
        for record in each:
            assert record.asdict() == {name: getattr(record, name) for name in record.asdict()}
            assert {"offset", "timestamp", "timestamp_type", "key", "value", "headers"} <= set(record.asdict())


# Scan


def test_scan_is_iterated_in_arrow_batches_as_often_as_you_like() -> None:
    scan = kbat.scan(LOG_DIR)
    expected = scan.to_pyarrow()
    assert pa.Table.from_batches(scan) == expected
    assert pa.Table.from_batches(list(scan)) == expected


def test_scan_head_count_and_columns() -> None:
    scan = kbat.scan(LOG_DIR, columns=["offset", "topic"])
    table = scan.to_pyarrow()
    assert scan.columns == ["offset", "topic"] == table.column_names
    assert kbat.scan(LOG_DIR).columns == kbat.scan(LOG_DIR).schema.names
    assert scan.count() == scan.count(threads=1) == len(table)
    assert scan.head() == table.slice(0, 10)
    for rows in (0, 1, 1000, len(table) + 5):
        assert scan.head(rows) == table.slice(0, rows)
    assert kbat.scan(LOG_DIR, columns=[]).count() == len(table)
    assert kbat.scan(LOG_DIR, view="batches").count() == len(kbat.scan(LOG_DIR, view="batches").to_pyarrow())
    assert kbat.scan(LOG_DIR, view="segments").count() == len(kbat.find_segments(LOG_DIR))


def test_scan_says_what_to_do_with_a_second_positional_argument() -> None:
    for second in (["offset"], str(LOG_DIR)):
        with pytest.raises(TypeError, match=r'columns=\["offset"\].*list'):
            kbat.scan(LOG_DIR, second)  # type: ignore[call-arg]


# Headers

_PAIRS = [("trace", b"1"), ("empty", b""), ("null", None)]
_HEADERS = {
    "dict": dict(_PAIRS),
    "bytes": {key.encode(): value for key, value in _PAIRS},
    "tuples": _PAIRS,
    "lists": [list(pair) for pair in _PAIRS],
    "dicts": [{"key": key, "value": value} for key, value in _PAIRS],
    "mixed": [{"value": b"1", "key": b"trace"}, ["empty", bytearray()], (b"null", None)],
}


@pytest.mark.parametrize("form", _HEADERS)
def test_headers_are_taken_in_every_usual_form(form: str, tmp_path: Path) -> None:
    headers: Any = _HEADERS[form]
    builder = kbat.BatchBuilder()
    builder.append(b"", b"", timestamp=NOW, headers=headers)
    [found] = [record for each in kbat.read_batches(builder.finish()) for record in each]
    assert found.headers == _PAIRS
    assert kbat.batch_size([(NOW, b"", b"", headers)]) == kbat.batch_size([(NOW, b"", b"", _PAIRS)])
    with kbat.LogWriter(tmp_path / "orders-0") as writer:
        writer.append(b"", b"", timestamp=NOW, headers=headers)
    [again] = [record for each in kbat.read_batches(tmp_path / "orders-0" / f"{0:020}.log") for record in each]
    assert again == found


def test_headers_read_from_json_can_be_written() -> None:
    headers = json.loads('[["a", null], ["a", null]]')
    builder = kbat.BatchBuilder()
    builder.append(b"", b"", timestamp=NOW, headers=headers)
    [found] = [record for each in kbat.read_batches(builder.finish()) for record in each]
    assert found.headers == [("a", None), ("a", None)]


@pytest.mark.parametrize(
    "headers",
    ["ab", ["ab"], [["a"]], [{"key": "a"}], [{"key": "a", "value": b"", "more": 1}], {"a": "text"}, [("a", b"", b"")]],
)
def test_headers_of_another_form_are_refused(headers: Any) -> None:  # noqa: ANN401 -- no headers
    builder = kbat.BatchBuilder()
    with pytest.raises((TypeError, ValueError), match="header"):
        builder.append(b"", b"", timestamp=NOW, headers=headers)
    assert builder.record_count == 0


# The same segment twice


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A directory with a partition of two segments, and symlinks to the partition and to one of the segments."""
    write_log(tmp_path / "logs" / "orders-0", segment_bytes=1000)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "orders-0").symlink_to(tmp_path / "logs" / "orders-0")
    (tmp_path / "links" / "one.log").symlink_to(tmp_path / "logs" / "orders-0" / f"{0:020}.log")
    return tmp_path


def test_a_segment_that_is_named_twice_is_read_once(linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(linked / "logs")
    logs, links = linked / "logs", linked / "links"
    partition = logs / "orders-0"
    segments = sorted(map(str, partition.glob("*.log")))
    assert len(segments) > 1
    sources: list[Any] = [
        [logs, logs],
        [logs, partition],
        [partition, *segments],
        [*segments, *segments],
        [segments[0], partition],
        [partition, links],
        [links / "orders-0", partition],
        [partition, links / "one.log"],
        [partition, "orders-0", "./orders-0/", "../links/../logs/orders-0"],
        f"{linked}/*/orders-0",
        [f"{linked}/lo*", f"{linked}/*/*-0", f"{linked}/*/*-0/*.log"],
    ]
    for source in sources:
        assert sorted(offsets(source)) == list(range(100)), source
        assert len(kbat.find_segments(source)) == len(segments), source
        assert {part[0] for part in kbat.split(source, 1 << 20)} <= {str(p.path) for p in kbat.find_segments(source)}
        assert kbat.scan(source, view="segments").count() == len(segments)
        assert kbat.scan_polars(source).collect().height == 100


def test_a_buffer_that_is_passed_twice_is_read_twice() -> None:
    assert offsets([batch(0), batch(0)]) == [0, 1, 2, 0, 1, 2]


# Replicas


def replica(directory: Path, first: int, end: int) -> Path:
    """Write a log directory with one partition that has some offsets."""
    with kbat.LogWriter(directory / "orders-0", batch_size=100, segment_bytes=400, start_offset=first) as writer:
        for offset in range(first, end):
            writer.append(None, b"%s %d" % (directory.name.encode(), offset), timestamp=NOW)
    return directory


def test_replicas_are_an_error_that_names_both(tmp_path: Path) -> None:
    one, two = replica(tmp_path / "one", 0, 40), replica(tmp_path / "two", 0, 60)
    for source in ([one, two], [two, one / "orders-0"], f"{tmp_path}/*", [one / "orders-0", two / "orders-0"]):
        for call in (kbat.scan, kbat.find_segments, kbat.scan_polars, kbat.dataset):
            with pytest.raises(ValueError, match=r"orders-0.*one/orders-0.*two/orders-0.*longest"):
                call(source)
        assert {row.split()[0] for row in values(source, "longest")} == {b"two"}
    with pytest.raises(ValueError, match="replicas"):
        kbat.scan(one, replicas="all")  # type: ignore[arg-type]


def values(source: Any, replicas: Any) -> list[bytes]:  # noqa: ANN401 -- those of kbat.scan
    found: list[Any] = kbat.scan(source, replicas=replicas).to_pyarrow()["value"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("one", "two", "taken"),
    [
        ((0, 40), (0, 60), "two"),
        ((0, 60), (0, 40), "one"),
        ((0, 60), (30, 60), "one"),
        ((20, 50), (40, 80), "two"),
        ((0, 50), (40, 80), "one"),
        ((0, 40), (0, 40), "one"),
    ],
)
def test_the_longest_replica_is_the_one_with_more_offsets(
    one: tuple[int, int], two: tuple[int, int], taken: str, tmp_path: Path
) -> None:
    sources = [replica(tmp_path / "one", *one), replica(tmp_path / "two", *two)]
    for source in (sources, sources[::-1]):
        found = values(source, "longest")
        assert found == [b"%s %d" % (taken.encode(), offset) for offset in range(*(one if taken == "one" else two))]


def test_the_longest_replica_is_chosen_for_each_partition(tmp_path: Path) -> None:
    one, two = replica(tmp_path / "one", 0, 40), replica(tmp_path / "two", 0, 60)
    for directory, records in ((one, 60), (two, 40)):
        write_log(directory / "other-1", records)
    table = kbat.scan([one, two], replicas="longest", columns=["topic"]).to_pyarrow()
    assert Counter(table["topic"].to_pylist()) == {"other": 60, "orders": 60}


# Topics and partitions


@pytest.fixture(scope="module")
def every_case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The partitions of both corpora in one log directory, under topic names with dots, digits and dashes."""
    root = tmp_path_factory.mktemp("corpora")
    for corpus in ("corpus", "corpus-legacy"):
        for number, case in enumerate(sorted((DATA / corpus).iterdir())):
            logs = list(case.glob("*.log")) if case.is_dir() else []
            if case.name in {"log-dir", "verdicts", "writes"} or not logs or any(len(p.stem) != 20 for p in logs):
                continue
            target = root / f"{corpus}.{case.name}-{number % 4}"
            target.mkdir()
            for path in logs:
                (target / path.name).symlink_to(path)
    return root


_PATTERNS: list[tuple[list[str] | None, list[int] | None]] = [
    (["corpus.compacted*"], None),
    (["*none*", "*.txn-*"], None),
    (["corpus.codec-gzip", "corpus.empty"], None),
    (["*[lz]4"], [0, 2]),
    (["corpus?codec-*"], [1, 3]),
    (None, [2]),
    (["*"], [0, 1, 2, 3]),
    (["corpus.codec-????", "corpus.codec-none"], None),
]


@pytest.mark.parametrize(("topics", "partitions"), _PATTERNS)
def test_topics_and_partitions_select_what_brute_force_does(
    topics: list[str] | None, partitions: list[int] | None, every_case: Path
) -> None:
    for root in (every_case, LOG_DIR):
        every = [(log.topic or "", log.partition or 0) for log in kbat.LogDirectory(root).partitions]
        expected = [
            (topic, partition)
            for topic, partition in every
            if (topics is None or any(fnmatchcase(topic, pattern) for pattern in topics))
            and (partitions is None or partition in partitions)
        ]
        options: dict[str, Any] = {"topics": topics, "partitions": partitions}
        unmatched = [p for p in topics or [] if not any(fnmatchcase(topic, p) for topic, _ in every)]
        if unmatched or not expected:
            with pytest.raises(ValueError, match=r"no topic|none of the"):
                kbat.scan(root, **options)
            continue
        expected.sort()
        scan = kbat.scan(root, columns=["topic", "partition", "offset"], on_corrupt="skip", **options)
        rows = list(zip(*scan.to_pyarrow().to_pydict().values(), strict=True))
        whole = kbat.scan(root, columns=["topic", "partition", "offset"], on_corrupt="skip").to_pyarrow()
        assert rows == [row for row in zip(*whole.to_pydict().values(), strict=True) if row[:2] in expected]
        assert {(s.topic, s.partition) for s in kbat.find_segments(root, **options)} == set(expected)
        assert (
            sorted((log.topic or "", log.partition or 0) for log in kbat.LogDirectory(root, **options).partitions)
            == expected
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": ["orders", "nothing"]}, '"nothing".*orders'),
        ({"topics": "*x"}, r"\*x"),
        ({"partitions": [5]}, "partitions found: 0"),
        ({"topics": []}, "empty"),
        ({"partitions": []}, "empty"),
        ({"partitions": [-1]}, "negative"),
        ({"topic": "orders"}, "topics"),
        ({"partition": 0}, "partitions"),
    ],
)
def test_a_filter_without_effect_is_an_error(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_log(tmp_path / "orders-0", 5)
    with pytest.raises(ValueError, match=message):
        kbat.scan(tmp_path, **options)


# Locations


@pytest.fixture
def locations(tmp_path: Path) -> Path:
    """Locations that hold something, but no segment that is recognized."""
    segment = (write_log(tmp_path / "good" / "orders-0") / f"{0:020}.log").read_bytes()
    files = {
        f"packed-0/{0:020}.log.gz": gzip.compress(segment),
        "text/notes.txt": b"see the other disk\n",
        f"tiered/{0:020}-yE0sVPm3RBCZQ3wWQlVUaw.log": segment,
        f"deep/disk/data/orders-0/{0:020}.log": segment,
        f"indexes-0/{0:020}.index": bytes(8),
        "file.log": gzip.compress(segment),
        "words.log": b"2024-01-01 started\n2024-01-01 stopped\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("packed-0", r"\.log\.gz.*gzip-compressed.*decompress"),
        (f"packed-0/{0:020}.log.gz", "gzip-compressed.*decompress"),
        ("text", r"notes\.txt.*text file"),
        ("tiered", "tiered storage"),
        ("deep", "deep/disk/data"),
        ("indexes-0", r"index whose \.log file is missing"),
        ("file.log", "gzip-compressed"),
        ("words.log", "text file"),
    ],
)
def test_a_location_without_segments_is_named_for_what_it_is(name: str, message: str, locations: Path) -> None:
    source = locations / name
    calls: list[Any] = [kbat.scan, kbat.find_segments, kbat.scan_polars, lambda path: kbat.split(path, 1000)]
    calls += [kbat.verify]
    if source.is_dir():
        calls += [kbat.PartitionLog, lambda path: kbat.recover(path, locations / "out")]
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call(source)
    # beside a good location too: its rows alone would be a silent loss
    with pytest.raises(ValueError, match=message):
        kbat.scan([locations / "good", source])
    with pytest.raises(ValueError, match=message.split(".*", maxsplit=1)[0]):
        kbat.salvage(source, locations / "out")
    assert not (locations / "out").exists()


def test_a_tiered_segment_that_is_named_is_read(locations: Path) -> None:
    [path] = (locations / "tiered").iterdir()
    assert offsets(path) == list(range(100))


@pytest.mark.parametrize("call", [kbat.scan, kbat.find_segments, kbat.scan_polars, lambda path: kbat.split(path, 1000)])
def test_an_empty_directory_is_a_warning(call: Any, tmp_path: Path) -> None:  # noqa: ANN401 -- a function of a path
    with pytest.warns(UserWarning, match="empty"):
        call(tmp_path)


def test_salvage_and_recover_of_an_empty_directory_are_errors(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    for call in (kbat.salvage, kbat.recover):
        with pytest.raises(ValueError, match="no segment"):
            call(tmp_path / "orders-0", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_partitions_and_log_directories_are_not_confused(tmp_path: Path) -> None:
    partition = write_log(tmp_path / "orders-0")
    with pytest.raises(ValueError, match="partition directory"):
        kbat.LogDirectory(partition)
    with pytest.raises(ValueError, match="log directory"):
        kbat.PartitionLog(tmp_path)
    with pytest.raises(ValueError, match="log directory"):
        kbat.PartitionLog(LOG_DIR)
    for missing in (kbat.LogDirectory, kbat.PartitionLog):
        with pytest.raises(FileNotFoundError, match="nothing"):
            missing(tmp_path / "nothing")
