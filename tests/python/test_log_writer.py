"""``kbat.LogWriter`` from Python: arguments, every codec, threads, and the files after a kill."""

from __future__ import annotations

import fcntl
import gzip
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import pytest

import kbat

KILLS = 30

# Writes records of 40 bytes forever, and prints the durable end offset after each flush.
CHILD = """
import os, sys
import kbat
settings = {"segment_bytes": 3000, "index_interval_bytes": 100, "batch_size": 200, "compression": sys.argv[2]}
writer = kbat.LogWriter(sys.argv[1], **settings)
print(writer.end_offset, flush=True)
while True:
    for _ in range(7):
        offset = writer.append(b"key", b"%040d" % writer.end_offset, timestamp=1000 + writer.end_offset)
    writer.flush()
    os.write(1, b"%d\\n" % (offset + 1))
"""


def _values(directory: Path) -> list[bytes | None]:
    """Every record's value, whose offsets count up from 0."""
    values: list[bytes | None] = []
    for segment in kbat.PartitionLog(directory).segments:
        for batch in kbat.read_batches(segment.path):
            for record in batch:
                assert record.offset == len(values)
                values.append(record.value)
    return values


def _assert_indexes(directory: Path) -> None:
    """Each entry refers to an existing batch."""
    for segment in kbat.PartitionLog(directory).segments:
        batches = {batch.position: batch for batch in kbat.read_batches(segment.path)}
        index = kbat.OffsetIndex(Path(segment.path).with_suffix(".index"))
        index.sanity_check()
        for offset, position in index.entries:
            assert batches[position].last_offset == offset
        time_index = kbat.TimeIndex(Path(segment.path).with_suffix(".timeindex"))
        time_index.sanity_check()
        last_offsets = {batch.last_offset: batch.max_timestamp for batch in batches.values()}
        for timestamp, offset in time_index.entries:
            assert last_offsets[offset] == timestamp


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_log_writer_killed_anywhere_keeps_what_it_flushed(tmp_path: Path) -> None:
    """A writing child is killed at random points; the next one continues at the end of the log."""
    directory = tmp_path / "killed-0"
    chance = random.Random(5)  # noqa: S311 -- when to kill
    for attempt in range(KILLS):
        codec = ["none", "lz4", "zstd"][attempt % 3]
        command = [sys.executable, "-c", CHILD, str(directory), codec]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 -- our own program
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(chance.random() * 0.05)
        child.send_signal(signal.SIGKILL)
        lines = [first, *child.stdout.read().splitlines(keepends=True)]
        child.stdout.close()
        child.wait()
        flushed = int([line for line in lines if line.endswith(b"\n")][-1])
        with kbat.LogWriter(directory, segment_bytes=3000, index_interval_bytes=100) as writer:
            end_offset = writer.end_offset
        assert end_offset >= flushed
        values = _values(directory)
        assert values == [b"%040d" % offset for offset in range(end_offset)]
        _assert_indexes(directory)
    assert end_offset > KILLS * 7
    assert len(kbat.PartitionLog(directory).segments) > 3


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_log_writer_records_are_found_again(tmp_path: Path, codec: Any) -> None:  # noqa: ANN401 -- a Literal
    """Several segments, closed and opened again in the middle."""
    directory = tmp_path / "orders-0"
    rows = [(None if n % 5 == 0 else b"k%d" % n, b"v%d" % (n * n), 1000 + n) for n in range(500)]
    topic_id = "bAmibu5sR86NaVa0PfqQXA"
    for part in (rows[:250], rows[250:]):
        sizes: dict[str, Any] = {"segment_bytes": 3000, "batch_size": 300, "index_interval_bytes": 200}
        with kbat.LogWriter(directory, compression=codec, topic_id=topic_id, **sizes) as writer:
            for key, value, timestamp in part:
                writer.append(key, value, timestamp=timestamp, headers=[("h", b"1"), (b"n", None)])
        assert writer.closed
    table = kbat.scan(directory).to_pyarrow()
    assert list(zip(*(table[name].to_pylist() for name in ("key", "value")), strict=True)) == [row[:2] for row in rows]
    assert table["offset"].to_pylist() == list(range(500))
    _assert_indexes(directory)
    log = kbat.PartitionLog(directory)
    assert (log.start_offset, log.end_offset, log.topic_id) == (0, 500, topic_id)
    assert log.leader_epochs == [(0, 0)]
    found = log.find_timestamp(1250)
    assert found is not None
    assert found.offset == 250


def test_log_writer_batches_are_checked_and_get_offsets(tmp_path: Path) -> None:
    """Assigned, kept, refused."""
    builder = kbat.BatchBuilder(base_offset=50)
    builder.append(b"k", b"v", timestamp=1)
    builder.append(b"k", b"w", timestamp=2)
    batch = builder.finish()
    with kbat.LogWriter(tmp_path, start_offset=10, leader_epoch=3) as writer:
        assert writer.append_batch(memoryview(batch + batch)) == 10
        assert writer.append_batch(batch, keep_offsets=True) == 50
        with pytest.raises(ValueError, match="does not continue the log"):
            writer.append_batch(batch, keep_offsets=True)
        with pytest.raises(kbat.CrcError):
            writer.append_batch(batch[:-1] + b"\1")
        with pytest.raises(ValueError, match="complete batch"):
            writer.append_batch(batch[:-1])
        with pytest.raises(TypeError):
            writer.append_batch("text")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="negative"):
            writer.append(None, None, timestamp=-2)
        assert (writer.end_offset, writer.last_stable_offset, writer.start_offset) == (52, 52, 10)
        assert writer.append(None, b"x", timestamp=-1) == 52
        assert repr(writer) == f"LogWriter({tmp_path}, end_offset=53)"
    epochs = [batch.partition_leader_epoch for batch in kbat.read_batches(tmp_path / "00000000000000000010.log")]
    assert epochs == [3, 3, -1, 3]


def test_log_writer_is_alone_and_closes_once(tmp_path: Path) -> None:
    """A second writer is rejected until the first is closed; a closed writer can't be used."""
    writer = kbat.LogWriter(tmp_path, sync="always")
    with pytest.raises(ValueError, match="another LogWriter"):
        kbat.LogWriter(tmp_path)
    writer.append(b"", b"", timestamp=0)
    writer.close()
    writer.close()
    for call in (writer.flush, lambda: writer.append(b"", b"", timestamp=0), lambda: writer.end_offset):
        with pytest.raises(ValueError, match="closed"):
            call()
    with kbat.LogWriter(tmp_path) as again:
        assert (again.end_offset, again.truncated_bytes) == (1, 0)


def _batch(base_offset: int, epoch: int) -> bytes:
    builder = kbat.BatchBuilder(base_offset=base_offset, partition_leader_epoch=epoch)
    builder.append(None, b"v", timestamp=0)
    return builder.finish()


def _epochs(directory: Path) -> list[int]:
    return [batch.partition_leader_epoch for one in kbat.PartitionLog(directory).segments for batch in one.batches()]


def test_leader_epochs_do_not_fall_after_batches_that_keep_theirs(tmp_path: Path) -> None:
    with kbat.LogWriter(tmp_path / "t-0") as log:
        log.append(None, b"v", timestamp=0)
        log.append_batch(_batch(1, 7), keep_offsets=True)
        log.append(None, b"v", timestamp=0)
        log.append_batch(_batch(0, 0))
    assert _epochs(tmp_path / "t-0") == [0, 7, 7, 7]
    assert [one for one in kbat.verify(tmp_path / "t-0").findings if one.severity != "info"] == []


def test_leader_epochs_without_a_file_are_those_of_earlier_segments(tmp_path: Path) -> None:
    with kbat.LogWriter(tmp_path / "t-0") as log:
        log.append_batch(_batch(0, 7), keep_offsets=True)
    (tmp_path / "t-0" / "leader-epoch-checkpoint").unlink()
    (tmp_path / "t-0" / f"{1:020}.log").touch()
    with kbat.LogWriter(tmp_path / "t-0") as log:
        log.append(None, b"v", timestamp=0)
    assert _epochs(tmp_path / "t-0") == [7, 7]


def _message(offset: int, value: bytes, attributes: int) -> bytes:
    """Return a message of format v1, which may be the wrapper of a compressed set."""
    body = struct.pack(">bbqii", 1, attributes, 0, -1, len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def test_set_that_no_segment_can_have_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    offsets = [2, (1 << 31) + 50]
    messages = b"".join(_message(offset - offsets[0], b"v", 0) for offset in offsets)
    wide = _message(offsets[-1], gzip.compress(messages), 1)
    with kbat.LogWriter(tmp_path / "t-0") as log:
        with pytest.raises(ValueError, match="offsets 2 to 2147483698 do not fit in one segment"):
            log.append_batch(_batch(0, 0) + wide, keep_offsets=True)
        assert log.end_offset == 0
        log.append(None, b"v", timestamp=0)


@pytest.mark.skipif(shutil.which("unshare") is None or os.geteuid() != 0, reason="needs another namespace of processes")
def test_broker_in_another_container_is_detected(tmp_path: Path) -> None:
    with kbat.LogWriter(tmp_path / "t-0") as log:
        log.append(None, b"v", timestamp=0)
    script = f"import kbat; kbat.LogWriter({os.fspath(tmp_path / 't-0')!r}).close()"
    # /proc/locks has no locks of processes outside
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", script]
    with (tmp_path / ".lock").open("w") as lock:
        free = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 -- this interpreter
        fcntl.lockf(lock, fcntl.LOCK_EX)
        held = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 -- this interpreter
    assert (free.returncode, free.stderr) == (0, "")
    assert f"a broker holds {tmp_path}/.lock" in held.stderr


def test_log_writer_cuts_a_torn_tail(tmp_path: Path) -> None:
    """Half a batch at the end."""
    with kbat.LogWriter(tmp_path) as writer:
        writer.append(b"k", b"v", timestamp=1)
    log = tmp_path / "00000000000000000000.log"
    with log.open("ab") as file:
        file.write(log.read_bytes()[:40])
    with kbat.LogWriter(tmp_path) as writer:
        assert (writer.truncated_bytes, writer.end_offset) == (40, 1)
    assert _values(tmp_path) == [b"v"]


@pytest.mark.parametrize("place", [9, 80])
def test_opening_does_not_cut_whole_batches_behind_damage(tmp_path: Path, place: int) -> None:
    with kbat.LogWriter(tmp_path) as writer:
        for _ in range(5):
            writer.append(b"k", b"v" * 50, timestamp=1)
            writer.flush()
    log = tmp_path / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    size = len(data) // 5
    data[2 * size + place] ^= 0x10
    log.write_bytes(data)
    with pytest.raises(kbat.CorruptError, match=f"followed by a complete batch at byte {3 * size}") as raised:
        kbat.LogWriter(tmp_path)
    assert raised.value.position == 2 * size
    assert log.read_bytes() == data
    log.write_bytes(data[: 3 * size])  # as after an interrupted write
    with kbat.LogWriter(tmp_path) as writer:
        assert (writer.truncated_bytes, writer.end_offset) == (size, 2)


@pytest.mark.parametrize(
    "options",
    [{"segment_bytes": 0}, {"sync": "never"}, {"compression": "rar"}, {"topic_id": "x"}, {"leader_epoch": -1}],
)
def test_log_writer_with_bad_options_raises(tmp_path: Path, options: dict[str, Any]) -> None:
    """Nothing is created."""
    with pytest.raises(ValueError, match=next(iter(options))):
        kbat.LogWriter(tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def test_no_batch_is_larger_than_the_limits_of_its_readers(tmp_path: Path) -> None:
    limits = kbat.Limits(batch_len=1000)
    large = kbat.BatchBuilder()
    large.append(None, bytes(2000), timestamp=0)
    with kbat.LogWriter(tmp_path / "t-0", limits=limits, batch_size=10_000) as writer:
        with pytest.raises(ValueError, match=r"a batch of 20\d\d bytes is larger than limits.batch_len \(1000\)"):
            writer.append(None, bytes(2000), timestamp=0)
        with pytest.raises(ValueError, match=r"a batch of 20\d\d bytes is larger than limits.batch_len \(1000\)"):
            writer.append_batch(large.finish())
        for number in range(100):
            assert writer.append(None, bytes(50), timestamp=0) == number
    assert kbat.scan(tmp_path, limits=limits).count() == 100
    with kbat.LogWriter(tmp_path / "t-1", limits=limits, compression="zstd") as writer:
        with pytest.raises(ValueError, match="counted before compression, is larger than limits"):
            writer.append(None, bytes(2000), timestamp=0)
        compressed = kbat.BatchBuilder(compression="zstd")
        compressed.append(None, bytes(2000), timestamp=0)
        writer.append_batch(compressed.finish())
    assert kbat.scan(tmp_path / "t-1", limits=limits).count() == 1


def test_log_writer_shared_by_threads_gives_each_record_its_offset(tmp_path: Path) -> None:
    """Each offset is returned to only one thread, and is the offset in the log."""
    told: dict[int, bytes] = {}
    with kbat.LogWriter(tmp_path, batch_size=200) as writer:

        def work(name: int) -> None:
            for number in range(200):
                value = b"%d %d" % (name, number)
                told[writer.append(None, value, timestamp=0)] = value
                if number % 50 == 0:
                    writer.flush()

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert _values(tmp_path) == [told[offset] for offset in range(800)]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs permissions that bind")
def test_log_writer_into_a_closed_directory_raises(tmp_path: Path) -> None:
    """As Python's own open."""
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        kbat.LogWriter(tmp_path / "new")


def test_writer_ends_before_the_largest_offset(tmp_path: Path) -> None:
    with kbat.LogWriter(tmp_path / "a-0", start_offset=2**63 - 2) as log:
        assert log.append(None, b"", timestamp=0) == 2**63 - 2
        with pytest.raises(ValueError, match="there is no offset after this one"):
            log.append(None, b"", timestamp=0)
        assert log.end_offset == 2**63 - 1
    found = kbat.scan(tmp_path / "a-0", columns=["offset"]).to_pyarrow()["offset"].to_pylist()
    assert found == [2**63 - 2]


def test_records_of_a_writer_that_is_not_closed_are_counted(tmp_path: Path) -> None:
    def write(place: Path, count: int) -> kbat.LogWriter:
        writer = kbat.LogWriter(place)
        for _ in range(count):
            writer.append(None, b"v", timestamp=1)
        return writer

    with pytest.warns(ResourceWarning, match=r"the LogWriter was not closed, and 2 records not written to .*a-0$"):
        write(tmp_path / "a-0", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        write(tmp_path / "b-0", 1).flush()
        write(tmp_path / "c-0", 1).close()
    assert [kbat.scan(tmp_path / name).count() for name in ("b-0", "c-0")] == [1, 1]
