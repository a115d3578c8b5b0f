"""Staging directories, killed runs, forks and Ctrl-C: nothing half-written is seen, and no process hangs."""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

import pytest

import kbat
from interrupting import interrupt
from reliability_logs import names, offsets, run, snapshot, write_log

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.parametrize("tool", _CALLS)
def test_directories_of_users_beside_the_target_are_kept(tool: str, tmp_path: Path) -> None:
    source, out = write_log(tmp_path / "orders-0"), tmp_path / "small-0"
    others = {f"small-0.kbat-partial-{end}" for end in ("b-0", "of-may", "1-0", "1-x-delete", "1-0-2-delete")}
    for name in others:
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes").write_bytes(b"notes")
    exec(_CALLS[tool], {"kbat": kbat, "source": source, "out": out, "progress": None})  # noqa: S102 -- as in the child
    assert names(tmp_path.iterdir()) == {"orders-0", "small-0", *others}


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


def test_a_child_that_is_forked_while_another_thread_writes_does_not_wait(tmp_path: Path) -> None:
    script = """
import os, signal, sys, threading
import kbat
writer = kbat.LogWriter(sys.argv[1], batch_size=1, sync="always")
ended = threading.Event()

def write():
    while not ended.is_set():
        writer.append(b"parent", b"", timestamp=-1)

thread = threading.Thread(target=write)
thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            writer.append(b"child", b"", timestamp=-1)
        except ValueError as error:
            os._exit("after forking" in str(error))
        os._exit(2)
    status = os.waitpid(child, 0)[1]
    if status != 1 << 8:
        break
ended.set()
thread.join()
writer.close()
print(status >> 8, status & 0xff)
"""
    code, printed, errors = run(script, tmp_path / "orders-0")
    assert (code, printed.split()) == (0, ["1", "0"]), errors


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
