"""Concurrency: a scan of a growing log, callbacks that use their own iterator, two tools on one directory."""

from __future__ import annotations

import pickle
import resource
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kbat
from data import DATA
from interrupting import interrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

STATUS = Path("/proc/self/status")
CASE = DATA / "corpus" / "segments-default-interval"


def batch(count: int, **settings: Any) -> bytes:  # noqa: ANN401 -- those of the builder
    builder = kbat.BatchBuilder(2, **settings)
    for _ in range(count):
        builder.append(None, b"v" * 100, timestamp=1)
    return builder.finish()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_transaction_that_commits_during_a_committed_scan_leaves_no_hole(tmp_path: Path, threads: int) -> None:
    with kbat.LogWriter(tmp_path / "t-0", segment_bytes=20_000) as writer:
        for number in range(200):
            if number == 88:
                open_from = writer.end_offset
                writer.append_batch(
                    batch(10, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True),
                )
            else:
                writer.append_batch(batch(10))
        writer.flush()
        scan = kbat.scan(tmp_path / "t-0", columns=["offset"], isolation="read_committed", max_rows=10)
        offsets: list[Any] = []
        committed = False
        for arrow_batch in scan.to_batches(threads=threads, max_memory_bytes=0):
            offsets += arrow_batch["offset"].to_pylist()
            if offsets[-1] > 700 and not committed:
                time.sleep(0.2)  # threads get ahead, as far as they may
                marker = kbat.end_transaction_marker(commit=True, producer_id=7, producer_epoch=0, timestamp=1)
                writer.append_batch(marker)
                writer.flush()
                committed = True
    assert committed
    assert offsets == list(range(open_from))


def test_a_committed_scan_looks_at_the_log_once_however_many_threads(tmp_path: Path) -> None:
    with kbat.LogWriter(tmp_path / "t-0", segment_bytes=20_000) as writer:
        for _ in range(3000):
            writer.append_batch(batch(10))
    for snapshot in (tmp_path / "t-0").glob("*.snapshot"):
        snapshot.unlink()
    took = {}
    for threads in (1, 2):
        scan = kbat.scan(tmp_path / "t-0", columns=["offset"], isolation="read_committed")
        begin = time.perf_counter()
        assert scan.to_pyarrow(threads=threads).num_rows == 30_000
        took[threads] = time.perf_counter() - begin
    assert took[2] < 5 * took[1]  # 30 times as long where each of 170 segments was a reason to look


def test_stats_can_be_asked_for_from_the_progress_callback() -> None:
    seen: list[int] = []
    iterator = kbat.scan([CASE] * 20).to_batches(progress=lambda _done, _total: seen.append(iterator.stats.batches))
    rows = sum(arrow_batch.num_rows for arrow_batch in iterator)
    assert rows == iterator.stats.records
    assert seen == sorted(seen)
    assert seen


def test_an_iterator_that_is_advanced_from_its_own_step_raises() -> None:
    iterator = kbat.scan([CASE] * 20).to_batches(progress=lambda _done, _total: next(iterator))
    with pytest.raises(RuntimeError, match="already running"):
        list(iterator)


def test_a_producer_that_asks_for_what_is_made_of_it_raises() -> None:
    columns: list[Any] = [pa.field("value", pa.binary()), pa.field("timestamp", pa.int64())]
    schema = pa.schema(columns)
    made: list[Any] = []

    def produce() -> Iterator[pa.RecordBatch]:
        for _ in range(3):
            if made:
                next(made[0])
            yield pa.record_batch([pa.array([b"x"], pa.binary()), pa.array([1])], schema=schema)

    made.append(kbat.encode_batches(pa.RecordBatchReader.from_batches(schema, produce())))
    with pytest.raises(ValueError, match="already running"):
        list(made[0])


def test_stats_in_a_signal_handler_are_those_so_far() -> None:
    seen = []
    iterator = kbat.scan([CASE] * 3000, start_offset=10**9).to_batches()
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(iterator.stats))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert not list(iterator)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Consumed:
    """Arrow data whose schema another consumer took first."""

    def __init__(self) -> None:
        columns: dict[str, Any] = {"value": pa.array([b"x"], pa.binary()), "timestamp": pa.array([1])}
        arrow_batch: Any = pa.record_batch(columns)
        self.capsules = arrow_batch.__arrow_c_array__()
        pa.Schema._import_from_c_capsule(self.capsules[0])  # noqa: SLF001 -- what consumers call

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:  # noqa: ANN401 -- Arrow's interface
        """Return the rest."""
        return self.capsules


def test_arrow_schemas_that_were_consumed_are_refused() -> None:
    with pytest.raises(ValueError, match="schema was already consumed"):
        kbat.encode(Consumed())
    capsule = pa.schema([("offset", pa.int64())]).__arrow_c_schema__()
    pa.Schema._import_from_c_capsule(capsule)  # noqa: SLF001 -- what consumers call
    with pytest.raises(ValueError, match="schema was already consumed"):
        kbat.scan(CASE).__arrow_c_stream__(capsule)


def test_two_salvages_into_one_place_give_one_whole_result(tmp_path: Path) -> None:
    with kbat.LogWriter(tmp_path / "t-0", segment_bytes=100_000) as writer:
        for _ in range(3000):
            writer.append_batch(batch(10))
    for attempt in range(8):
        out = tmp_path / f"out{attempt}"
        failed: list[Exception] = []

        def salvage(out: Path = out, failed: list[Exception] = failed) -> None:
            try:
                kbat.salvage(tmp_path / "t-0", out)
            except (OSError, ValueError) as error:
                failed.append(error)

        running = [threading.Thread(target=salvage) for _ in range(2)]
        for thread in running:
            thread.start()
            time.sleep(0.002 * attempt)
        for thread in running:
            thread.join()
        assert len(failed) <= 1
        assert kbat.scan(out, columns=["offset"]).to_pyarrow().num_rows == 30_000
    assert {path.name for path in tmp_path.iterdir()} == {"t-0", *(f"out{attempt}" for attempt in range(8))}


def test_an_error_in_a_with_block_of_a_writer_stays_what_it_is(tmp_path: Path) -> None:
    bounds = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def fill() -> None:
        with kbat.LogWriter(tmp_path / "t-0", batch_size=1000) as writer:
            resource.setrlimit(resource.RLIMIT_FSIZE, (3000, bounds[1]))
            for _ in range(1000):
                writer.append(b"k", b"v" * 100, timestamp=1)

    try:
        with pytest.raises(OSError, match="File too large"):
            fill()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, bounds)
        signal.signal(signal.SIGXFSZ, before)


def test_limits_travel_with_a_pickle() -> None:
    limits = kbat.Limits(batch_len=100)
    segment = min(CASE.glob("*.log"))
    for opened in (kbat.PartitionLog(CASE, limits=limits), kbat.Segment(segment, limits=limits)):
        copy = pickle.loads(pickle.dumps(opened))  # noqa: S301 -- our own bytes
        with pytest.raises(kbat.LimitError):
            _ = copy.end_offset


def test_a_batch_over_the_limit_counts_for_what_is_committed(tmp_path: Path) -> None:
    large = kbat.BatchBuilder(2, base_offset=10)
    large.append(None, bytes(200_000), timestamp=1)
    log = tmp_path / "t-0" / f"{0:020}.log"
    log.parent.mkdir()
    log.write_bytes(batch(10) + large.finish())
    limits = kbat.Limits(batch_len=100_000)
    assert kbat.PartitionLog(log.parent, limits=limits).last_stable_offset == 11
    scan = kbat.scan(log.parent, isolation="read_committed", limits=limits)
    with pytest.raises(kbat.LimitError):
        scan.to_pyarrow()
    assert (
        kbat.scan(log.parent, isolation="read_committed", limits=limits, on_corrupt="skip").to_pyarrow().num_rows == 10
    )


@pytest.mark.parametrize("size", [1000, 300_000])
def test_skip_batch_steps_over_the_same_in_a_file_and_in_a_buffer(tmp_path: Path, size: int) -> None:
    builder = kbat.BatchBuilder(2)
    builder.append(None, bytes(size), timestamp=1)
    unknown = bytearray(builder.finish())
    unknown[16] = 3
    data = bytes(unknown) + batch(1, base_offset=1)
    file = tmp_path / "some.log"
    file.write_bytes(data)
    for source in (data, file):
        batches = kbat.read_batches(source)
        with pytest.raises(kbat.UnsupportedError):
            next(batches)
        assert batches.skip_batch()
        assert [found.base_offset for found in batches] == [1]


def address_space() -> int:
    """Bytes that this process has allocated, used or not."""
    return next(int(line.split()[1]) << 10 for line in STATUS.read_text().splitlines() if line.startswith("VmSize"))


@pytest.mark.skipif(not STATUS.exists(), reason="requires /proc to measure memory")
def test_one_large_batch_does_not_make_all_that_follow_large() -> None:
    large = kbat.BatchBuilder(2)
    large.append(None, bytes(50_000_000), timestamp=1)
    data = large.finish() + b"".join(batch(100, base_offset=1 + 100 * at) for at in range(300))
    before = address_space()
    kept = list(kbat.scan(data, columns=["value"], max_rows=100).to_batches())
    assert len(kept) > 100
    assert address_space() - before < 4 << 30  # each had room for 50 MB


def test_iterating_a_large_set_takes_time_in_proportion() -> None:
    took = []
    for count in (50_000, 400_000):
        builder = kbat.BatchBuilder(1, "gzip")
        for _ in range(count):
            builder.append(None, b"", timestamp=0)
        (found,) = kbat.read_batches(builder.finish())
        begin = time.perf_counter()
        assert sum(1 for _ in found) == count
        took.append(time.perf_counter() - begin)
    assert took[1] < 20 * took[0]  # 60 times and more where each chunk walked over all of the set


def test_ctrl_c_stops_a_consumer_of_the_c_stream() -> None:
    code, _, errors = interrupt(f"""
import kbat, pathlib, pyarrow as pa
data = next(pathlib.Path({str(CASE)!r}).glob('*.log')).read_bytes()
scan = kbat.scan([data] * 3000)
print("go", flush=True)
pa.table(scan)
""")
    assert "KeyboardInterrupt" in errors  # in kbat's error, or where Python itself was at that moment
    assert code != 0


def test_a_pattern_takes_what_a_log_directory_would(tmp_path: Path) -> None:
    for name in ("t-0", "t-1", "t-2.0123456789abcdef0123456789abcdef-delete", "t-3.0123456789abcdef-stray"):
        with kbat.LogWriter(tmp_path / name) as writer:
            writer.append_batch(batch(10))
    (tmp_path / "t-meta.properties").write_text("version=1")
    assert (
        kbat.scan(tmp_path / "t-*", columns=["partition"]).to_pyarrow()["partition"].to_pylist() == [0] * 10 + [1] * 10
    )
    assert kbat.scan(tmp_path / "t-0" / "*", columns=["offset"]).to_pyarrow().num_rows == 10
    assert kbat.scan(tmp_path / "*" / "*.log", columns=["offset"]).to_pyarrow().num_rows == 20
    found = kbat.find_segments(tmp_path / "t-*")
    assert [(file.topic, file.partition) for file in found] == [("t", 0), ("t", 1)]
    for pattern in ("t-meta*", "t-2*"):
        with pytest.raises(FileNotFoundError, match="nothing that matches"):
            kbat.scan(tmp_path / pattern)
