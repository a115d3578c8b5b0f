"""Several threads on one object. Edge case 88."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import pytest

import kbat
from data import DATA, build, plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")

THREADS = 8
SEGMENT = DATA / "corpus/segments-default-interval/00000000000000000000.log"


def together(work: Callable[[], T]) -> list[T]:
    """The results of `work` in several threads that begin at once."""
    barrier = threading.Barrier(THREADS)

    def run() -> T:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(run) for _ in range(THREADS)]
        return [future.result(timeout=60) for future in futures]


@pytest.fixture(params=["none", "zstd"])
def batch(request: pytest.FixtureRequest) -> kbat.Batch:
    records = [(index, b"key%d" % index, b"value" * (index % 20)) for index in range(20_000)]
    [batch] = kbat.read_batches(build(records, compression=request.param))
    return batch


def test_threads_iterate_one_batch(batch: kbat.Batch) -> None:
    """Each its own iterator."""
    expected = [plain(record) for record in batch]
    assert len(expected) == 20_000
    for found in together(lambda: [plain(record) for record in batch]):
        assert found == expected


def test_threads_share_one_record_iterator(batch: kbat.Batch) -> None:
    """Each thread gets different records, in order."""
    records = iter(batch)
    parts = together(lambda: [(record.offset, record.key) for record in records])
    for part in parts:
        assert part == sorted(part)
    everything = {pair for part in parts for pair in part}
    assert sum(map(len, parts)) == 20_000
    assert everything == {(index, b"key%d" % index) for index in range(20_000)}


@pytest.mark.parametrize("from_file", [False, True])
def test_threads_share_one_batch_iterator(from_file: bool) -> None:  # noqa: FBT001 -- a case
    """Each thread gets different batches."""
    expected = [(batch.position, batch.crc) for batch in kbat.read_batches(SEGMENT)]
    walk = kbat.read_batches(SEGMENT if from_file else SEGMENT.read_bytes())

    def work() -> list[tuple[int, int]]:
        return [(batch.position, batch.crc) for batch in walk if list(batch)]

    assert sorted(pair for part in together(work) for pair in part) == expected


def test_threads_pass_over_one_scan() -> None:
    scan = kbat.scan(DATA / "log-dir", columns=["topic", "offset", "key", "value"], max_rows=50)
    expected = scan.to_pyarrow()
    assert len(expected) > 2000
    assert all(table == expected for table in together(scan.to_pyarrow))


def test_threads_share_one_arrow_iterator() -> None:
    scan = kbat.scan(DATA / "log-dir/segments-default-interval-0", columns=["offset"], max_rows=7)
    batches = scan.to_batches()
    parts = together(lambda: [offset for arrow in batches for offset in arrow["offset"].to_pylist()])
    assert sum(map(len, parts)) == 1100
    assert {offset for part in parts for offset in part} == set(range(1100))


def test_threads_share_one_builder() -> None:
    """Appends of several threads do not mix."""
    builder = kbat.BatchBuilder()

    def work() -> None:
        for index in range(500):
            builder.append(b"k%d" % index, b"v%d" % index, timestamp=index)

    together(work)
    assert builder.record_count == 500 * THREADS
    [batch] = kbat.read_batches(builder.finish())
    found = Counter((record.timestamp, record.key, record.value) for record in batch)
    assert found == {(index, b"k%d" % index, b"v%d" % index): THREADS for index in range(500)}


def test_builder_is_finished_by_one_thread_only() -> None:
    builder = kbat.BatchBuilder(compression="gzip")
    for index in range(2000):
        builder.append(b"key", b"%d" % index, timestamp=0)

    def finish() -> bytes | None:
        try:
            return builder.finish()
        except ValueError:
            return None

    [data] = [data for data in together(finish) if data is not None]
    assert sum(1 for batch in kbat.read_batches(data) for _ in batch) == 2000


def test_decompression_lets_other_threads_run() -> None:
    """The GIL is released: this thread runs while another one decompresses."""
    [batch] = kbat.read_batches(build([(0, None, bytes(2 << 20))], compression="gzip"))
    turn = threading.Event()
    passes = 0

    def work() -> None:
        nonlocal passes
        while not turn.is_set() and passes < 200:
            assert len(list(batch)) == 1
            passes += 1

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=work)
    sys.setswitchinterval(100)  # seconds: no thread is made to give up the GIL
    try:
        thread.start()
        turn.set()
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert passes < 200, "it never had a turn"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_after_import_and_use(tmp_path: Path) -> None:
    """Edge case 88: as in Spark's Python daemon. Runs in a separate process, because pytest's has threads."""
    path = tmp_path / "0.log"
    path.write_bytes(build([(0, b"k", b"v" * 1000)] * 2000, compression="zstd"))
    program = (
        "import os, sys, kbat\n"
        "path = sys.argv[1]\n"
        "read = lambda: (len(list(next(kbat.read_batches(path)))), kbat.scan(path).to_pyarrow().num_rows)\n"
        "assert read() == (2000, 2000)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if read() == (2000, 2000) else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    subprocess.run([sys.executable, "-c", program, path], check=True, timeout=60)  # noqa: S603 -- our own interpreter


def test_threads_asked_for_by_millions_are_a_thousand_at_the_most() -> None:
    table = kbat.scan(DATA / "log-dir").to_pyarrow(threads=2**31 - 1)
    assert table == kbat.scan(DATA / "log-dir").to_pyarrow()
    assert threading.active_count() < 50
