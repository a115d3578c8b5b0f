"""Passes of a `Scan`: threads, progress, interruption, requested schemas, views of bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kbat
import kbat.progress
from data import DATA, build, patched
from interrupting import interrupt

LOG_DIR = DATA / "log-dir"
PARTITION = LOG_DIR / "segments-default-interval-0"
BATCHES = [build([(index, b"key", b"v" * 20)] * 10, base_offset=10 * index) for index in range(50)]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("max_memory_bytes", [0, 1 << 20])
def test_threads_give_the_rows_in_their_order(threads: int, max_memory_bytes: int) -> None:
    scan = kbat.scan(LOG_DIR, include_control=True)
    expected = scan.to_pyarrow(threads=1)
    assert scan.to_pyarrow(threads=threads, max_memory_bytes=max_memory_bytes) == expected
    batches = scan.to_batches(threads=threads, max_memory_bytes=max_memory_bytes)
    assert pa.Table.from_batches(batches) == expected
    stats = scan.stats
    assert stats is not None
    assert stats.records == len(expected)
    assert batches.stats.records == len(expected)


def test_threads_raise_the_first_fault_after_the_rows_before_it() -> None:
    sources: list[bytes] = list(BATCHES)
    for index in (20, 30):
        sources[index] = bytes(patched(bytearray(sources[index]), 17, ">I", 0))
    batches = kbat.scan(sources, columns=["offset"]).to_batches(threads=4)
    found: list[Any] = []
    with pytest.raises(kbat.CrcError) as raised:
        found.extend(offset for batch in batches for offset in batch["offset"].to_pylist())
    assert raised.value.base_offset == 200
    assert list(batches) == []


def test_threads_stop_when_the_pass_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"".join(BATCHES) * 200)
    batches = kbat.scan([path] * 200, max_rows=10).to_batches(threads=3, max_memory_bytes=100_000)
    next(batches)
    assert SCAN_THREAD in names_of_threads()
    del batches
    until(lambda: SCAN_THREAD not in names_of_threads())  # they would wait for room for ever


def test_threads_are_used_again() -> None:
    for _ in range(50):
        kbat.scan(BATCHES).to_pyarrow(threads=2)
    assert 0 < names_of_threads().count(SCAN_THREAD) < 50


@pytest.mark.filterwarnings("ignore:.*fork")
def test_threads_work_in_a_process_that_was_forked() -> None:
    """The child has none of the parent's threads, though they waited for work when it was made."""
    rows = kbat.scan(BATCHES).to_pyarrow(threads=2).num_rows
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        found = sum(batch.num_rows for batch in kbat.scan(BATCHES).to_batches(threads=2))
        os._exit(0 if found == rows else 1)
    assert os.waitpid(child, 0)[1] == 0


SCAN_THREAD = "kbat-scan"


def names_of_threads() -> list[str]:
    """The names of this process's threads, without their numbers."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has just ended
            names.append((task / "comm").read_text().strip().rpartition("-")[0])
    return names


def until(holds: Any) -> None:  # noqa: ANN401 -- a function of nothing
    """Wait for something that comes soon."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_reader_streams_and_raises_what_it_is() -> None:
    scan = kbat.scan(BATCHES, max_rows=7)
    reader = scan.to_reader(threads=2)
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.schema == scan.schema
    assert reader.read_all() == scan.to_pyarrow()
    with pytest.raises(kbat.CrcError):
        kbat.scan(bytes(patched(bytearray(BATCHES[0]), 17, ">I", 0))).to_reader().read_all()


@pytest.mark.parametrize("method", ["to_pyarrow", "to_pandas", "to_polars"])
def test_whole_tables_raise_what_it_is(method: str) -> None:
    broken = kbat.scan(bytes(patched(bytearray(BATCHES[0]), 17, ">I", 0)))
    with pytest.raises(kbat.CrcError):
        getattr(broken, method)()


def test_pandas_takes_arguments_of_pyarrow() -> None:
    frame = kbat.scan(BATCHES, columns=["value"]).to_pandas(types_mapper=pd.ArrowDtype)
    assert frame["value"].dtype == pd.ArrowDtype(pa.binary())


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("view", ["records", "batches", "segments"])
def test_progress_grows_to_the_bytes_of_the_sources(threads: int, view: Any) -> None:  # noqa: ANN401 -- one of three
    calls: list[tuple[int, int]] = []
    scan = kbat.scan([LOG_DIR, BATCHES[0]], view=view, max_rows=50)
    table = scan.to_pyarrow(threads=threads, progress=lambda done, total: calls.append((done, total)))
    assert table == scan.to_pyarrow()
    total = sum(segment.size for segment in kbat.find_segments(LOG_DIR)) + len(BATCHES[0])
    assert {of for _, of in calls} == {total}
    done = [done for done, _ in calls]
    assert done == sorted(done)
    assert done[-1] == total
    if view == "records":
        assert len(set(done)) > 5


def test_progress_that_raises_ends_the_pass() -> None:
    def refuse(_done: int, _total: int) -> None:
        raise RuntimeError

    for threads in (1, 2):
        with pytest.raises(RuntimeError):
            kbat.scan(BATCHES).to_pyarrow(threads=threads, progress=refuse)


def test_progress_true_shows_a_bar_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(kbat.progress, "bar", lambda: lambda done, total: calls.append((done, total)))
    kbat.scan(BATCHES).to_polars(progress=True)
    assert calls
    assert calls[-1][0] == calls[-1][1]
    calls.clear()
    kbat.scan(BATCHES).to_polars(progress=False)
    monkeypatch.setattr(kbat.progress, "bar", lambda: None)
    assert kbat.scan(BATCHES).to_polars(progress=True).height == 500
    assert not calls


def test_progress_bar_needs_rich_only_when_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    assert kbat.progress.bar() is None


INTERRUPTED = """
import sys, kbat
path, how, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
data = open(path, "rb").read()
scan = kbat.scan([data] * 100_000, **({} if how == "rows" else {"start_offset": 10**9}))
print("go", flush=True)
try:
    if how == "batches":
        kbat.scan([data] * 100_000, view="batches", start_offset=10**9).to_pyarrow()
    elif how == "rows":
        for batch in scan.to_batches(threads=threads): pass
    else:
        scan.to_pyarrow(threads=threads)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize(
    ("how", "threads"), [("rows", 1), ("rows", 2), ("nothing asked for", 1), ("nothing asked for", 2), ("batches", 1)]
)
def test_control_c_ends_a_pass_at_once(tmp_path: Path, how: str, threads: int) -> None:
    """While rows are returned, and while many rows are excluded."""
    path = tmp_path / "messages.log"
    path.write_bytes(b"".join(BATCHES) * 200)
    _, printed, _ = interrupt(INTERRUPTED, str(path), how, str(threads))
    assert printed == "interrupted\n"


def test_binary_view_gives_the_same_values() -> None:
    for source in (PARTITION, LOG_DIR / "txn-lz4-0"):
        plain, viewed = kbat.scan(source), kbat.scan(source, binary_view=True)
        assert viewed.schema.field("value").type == pa.binary_view()
        table = viewed.to_pyarrow()
        table.validate(full=True)
        assert table.cast(plain.schema) == plain.to_pyarrow()
        assert viewed.to_polars().equals(plain.to_polars())


def test_binary_view_of_a_buffer_outlives_the_scan_and_the_buffer() -> None:
    data = b"".join(BATCHES)
    expected = [b"v" * 20] * 500
    table = kbat.scan(bytes(bytearray(data)), columns=["value"], binary_view=True).to_pyarrow()
    assert table["value"].to_pylist() == expected


def test_requested_schema_names_columns_and_views() -> None:
    scan = kbat.scan(BATCHES)
    view = pa.field("value", pa.binary_view())
    offset = pa.field("offset", pa.int64())
    wanted: list[list[pa.Field[Any]]] = [[view, offset], [offset, pa.field("key", pa.binary())]]
    for schema in map(pa.schema, wanted):
        reader = pa.RecordBatchReader.from_stream(Capsules(scan, schema))
        assert reader.schema == schema
        assert reader.read_all()["offset"].to_pylist() == list(scan.to_pyarrow()["offset"].to_pylist())
    for other in (pa.schema([pa.field("nope", pa.int64())]), pa.schema([])):
        assert pa.RecordBatchReader.from_stream(Capsules(scan, other)).schema == scan.schema
    batches = kbat.scan(BATCHES, view="batches")
    asked = pa.schema([pa.field("last_offset", pa.int64())])
    assert pa.table(Capsules(batches, asked)).column_names == ["last_offset"]


class Capsules:
    """Asks a scan for a schema."""

    def __init__(self, scan: kbat.Scan, schema: pa.Schema) -> None:
        self._scan, self._schema = scan, schema

    def __arrow_c_stream__(self, _requested: object = None) -> object:
        """Return the scan's stream on request."""
        return self._scan.__arrow_c_stream__(self._schema.__arrow_c_schema__())


def test_narrow_gives_what_is_within_both() -> None:
    scan = kbat.scan(BATCHES, start_offset=100, end_offset=200, start_timestamp=5)

    def offsets(**bounds: Any) -> list[Any]:  # noqa: ANN401 -- those of narrow
        found: list[Any] = scan.narrow(**bounds).to_pyarrow()["offset"].to_pylist()
        return found

    assert offsets() == list(range(100, 200))
    assert offsets(start_offset=150) == list(range(150, 200))
    assert offsets(start_offset=50, end_offset=110) == list(range(100, 110))
    assert offsets(start_timestamp=12, end_timestamp=14) == list(range(120, 140))
    assert offsets(end_offset=50) == []
    assert scan.narrow(columns=["value"]).schema.names == ["value"]
    with pytest.raises(ValueError, match="no column"):
        scan.narrow(columns=["nope"])
    logs = kbat.scan([LOG_DIR, BATCHES[0]], columns=["topic"])
    assert len(logs.topic_partitions) == 16
    assert logs.narrow(topics=["txn-lz4"]).topic_partitions == [("txn-lz4", 0), (None, None)]
    assert logs.narrow(topics=["txn-lz4"], partitions=[1]).topic_partitions == [(None, None)]


def test_lazy_frames_are_of_any_view() -> None:
    views: list[Any] = ["batches", "segments"]
    for view in views:
        frame = kbat.scan_polars(LOG_DIR, view=view).filter(pl.col("topic") == "txn-lz4")
        expected = kbat.scan(LOG_DIR / "txn-lz4-0", view=view).to_polars()
        assert frame.collect().equals(expected)


_LARGE_BATCHES = """
import os, resource, sys
import kbat
with open(sys.argv[1], "wb") as file:
    for offset in range(6):
        builder = kbat.BatchBuilder(base_offset=offset, compression="lz4")
        builder.append(None, os.urandom(20 << 20), timestamp=1)
        file.write(builder.finish())
    del builder
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert kbat.scan(sys.argv[1]).count(threads=2) == 6
assert sum(1 for batch in kbat.read_batches(sys.argv[1]) for _ in batch) == 6
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_large_batches_need_a_few_times_their_size(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _LARGE_BATCHES, str(tmp_path / f"{0:020}.log")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - the tests' own interpreter
    assert int(done.stdout) < 600  # of MiB; 1 GiB or more if the buffer grows by a large factor


def test_a_thread_reads_several_small_segments_at_a_time(tmp_path: Path) -> None:
    for offset in range(600):
        builder = kbat.BatchBuilder(base_offset=offset)
        builder.append(None, b"v", timestamp=1)
        (tmp_path / f"{offset:020}.log").write_bytes(builder.finish())
    for threads in (1, 2, 4):
        table = kbat.scan(tmp_path, columns=["offset"]).to_pyarrow(threads=threads)
        assert table["offset"].to_pylist() == list(range(600))
        assert table["offset"].num_chunks <= 3
