"""Reads through a proxy: their requests and bytes, and what faults, Ctrl-C and forks do to them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from data import DATA, build
from fault_proxy import FaultProxy
from kbat.spark.options import parse_options
from kbat.spark.plan import plan
from s3_server import BUCKET
from store_servers import SCHEME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fault_proxy import Kind, Request
    from s3_server import S3Server


def values(count: int, size: int, fill: bytes = b"a") -> bytes:
    """A segment of `count` batches of `size` bytes."""
    return b"".join(build([(1, b"k%d" % at, fill * size)], base_offset=at) for at in range(count))


@pytest.fixture(scope="module")
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    """A proxy to the server, with a segment of 40 batches of 100 kB, and one of 500 batches of 16 kB."""
    s3_server.put("faults/large-0/00000000000000000000.log", values(40, 100_000))
    s3_server.put("faults/small-0/00000000000000000000.log", values(500, 16_000))
    with FaultProxy(s3_server.port, options_at=s3_server.options_at) as running:
        yield running


LARGE, SMALL = f"{SCHEME}://{BUCKET}/faults/large-0", f"{SCHEME}://{BUCKET}/faults/small-0"


def offsets_of(url: str, proxy: FaultProxy, threads: int = 1, **options: Any) -> list[Any]:  # noqa: ANN401 - of kbat.scan
    scan = kbat.scan(url, storage_options=proxy.options, **options)
    found: list[Any] = scan.to_pyarrow(threads=threads)["offset"].to_pylist()
    return found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["reset", "error", "slow down", "truncate", "drip"])
def test_rows_are_complete_despite_faults(kind: Kind, threads: int, proxy: FaultProxy) -> None:
    proxy.clear(lambda request: kind if request.is_read and request.number % 2 else None)
    assert offsets_of(LARGE, proxy, threads) == list(range(40))
    assert len(proxy.requests) <= 30


@pytest.mark.parametrize("kind", ["reset", "error", "slow down", "truncate"])
def test_a_listing_is_complete_despite_faults(kind: Kind, proxy: FaultProxy) -> None:
    proxy.clear(lambda request: kind if request.number == 0 else None)
    assert offsets_of(LARGE, proxy) == list(range(40))


@pytest.mark.parametrize("kind", ["longer", "shorter", "whole", "other range"])
def test_an_answer_with_other_bytes_is_an_error(kind: Kind, proxy: FaultProxy) -> None:
    proxy.clear(lambda request: kind if request.is_read else None)
    with pytest.raises((OSError, kbat.KbatError), match=LARGE):
        offsets_of(LARGE, proxy)
    assert len(proxy.requests) <= 30


def test_a_short_answer_is_not_corruption(proxy: FaultProxy) -> None:
    proxy.clear(lambda request: "shorter" if request.is_read and request.number == 2 else None)
    try:
        offsets = offsets_of(LARGE, proxy, on_corrupt="skip")
    except OSError:
        return
    assert offsets == list(range(40))


def test_a_server_that_always_fails_is_an_error(proxy: FaultProxy) -> None:
    proxy.clear(lambda request: "slow down" if request.is_read else None)
    with pytest.raises(OSError, match="503"):
        offsets_of(LARGE, proxy)
    assert len(proxy.requests) <= 40


def test_a_stalled_answer_is_requested_again(proxy: FaultProxy) -> None:
    proxy.clear(lambda request: "stall" if request.is_read and request.number == 3 else None)
    options: dict[str, Any] = {"storage_options": {**proxy.options, "timeout": "1s"}}
    assert kbat.scan(LARGE, **options).count() == 40


@pytest.mark.parametrize("on_corrupt", ["fail", "skip", "report"])
def test_an_object_that_is_replaced_is_an_error(on_corrupt: Any, s3_server: S3Server) -> None:  # noqa: ANN401 - a literal
    """The object is longer than everything that a reader requests in advance."""
    key = f"replaced-{on_corrupt}/x-0/00000000000000000000.log"
    url = s3_server.put(key, values(600, 100_000))
    options: dict[str, Any] = {"storage_options": s3_server.options, "on_corrupt": on_corrupt}
    # a scan with bounds requests less in advance
    batches = kbat.scan(url, max_bytes=1, end_offset=1_000_000, **options).to_batches()
    assert next(batches)["value"][0].as_py()[:1] == b"a"
    s3_server.put(key, values(600, 100_000, b"b"))
    with pytest.raises(OSError, match="the object was replaced while it was read"):
        assert {batch["value"][0].as_py()[:1] for batch in batches} == {b"a"}
    s3_server.delete(key)


def test_batches_of_an_object_that_is_replaced_are_an_error(s3_server: S3Server) -> None:
    url = s3_server.put("replaced/x-0/00000000000000000000.log", values(200, 100_000))
    options: dict[str, Any] = {"storage_options": s3_server.options}
    batches = kbat.read_batches(url, **options)
    next(batches)
    s3_server.put("replaced/x-0/00000000000000000000.log", values(200, 100_000, b"b"))
    with pytest.raises(OSError, match="the object was replaced while it was read"):
        list(batches)


# A shell's background jobs ignore Ctrl-C, and so would their child processes.
_HEARD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
_READ = """
import sys, kbat
from ast import literal_eval
options = literal_eval(sys.argv[2])
print("go", flush=True)
print(kbat.scan(sys.argv[1], storage_options=options).count())
"""


def run_script(script: str, proxy: FaultProxy, seconds: float, *, stop: bool = False) -> tuple[int, str, str]:
    """Run a script and its child processes, and optionally press Ctrl-C after its first line."""
    with subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-c", _HEARD + script, LARGE, repr(proxy.options)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        if stop:
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
        try:
            printed, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, printed, errors


def test_control_c_ends_a_stalled_read(proxy: FaultProxy) -> None:
    proxy.clear(lambda request: "stall" if request.is_read else None)
    _, printed, errors = run_script(_READ.replace(".count()", ".count(threads=2)"), proxy, 2, stop=True)
    assert printed == ""
    assert "KeyboardInterrupt" in errors


def test_control_c_ends_a_stalled_read_of_one_thread(proxy: FaultProxy) -> None:
    proxy.clear(lambda request: "stall" if request.is_read else None)
    _, printed, errors = run_script(_READ.replace(".count()", ".count(threads=1)"), proxy, 2, stop=True)
    assert printed == ""
    assert "KeyboardInterrupt" in errors


def test_control_c_ends_a_stalled_listing(proxy: FaultProxy) -> None:
    proxy.clear(lambda request: "stall" if request.is_list else None)
    _, printed, errors = run_script(_READ, proxy, 2, stop=True)
    assert printed == ""
    assert "KeyboardInterrupt" in errors


_FORK = """
import os, sys, warnings, kbat
from ast import literal_eval
warnings.simplefilter("ignore")
print("go", flush=True)
def opened():
    return kbat.scan(sys.argv[1], storage_options=literal_eval(sys.argv[2]))
scan = opened()
first = scan.count()
child = os.fork()
if child:
    print(first, os.waitpid(child, 0)[1])
else:
    os._exit(0 if CHILD.count() == first else 1)
"""


def test_a_forked_process_opens_a_store(proxy: FaultProxy) -> None:
    proxy.clear()
    assert run_script(_FORK.replace("CHILD", "opened()"), proxy, 10)[1] == "40 0\n"


def test_a_forked_process_uses_an_open_store(proxy: FaultProxy) -> None:
    proxy.clear()
    assert run_script(_FORK.replace("CHILD", "scan"), proxy, 5)[1] == "40 0\n"


def test_a_scan_requests_every_byte_once(proxy: FaultProxy) -> None:
    proxy.clear()
    assert offsets_of(SMALL, proxy) == list(range(500))
    size = len(values(500, 16_000))
    assert size <= proxy.body_len() <= size + 65_536
    assert len(proxy.reads()) <= 8
    assert len(proxy.lists()) == 1
    assert len(proxy.requests) <= 11


def test_headers_of_large_batches_are_read_without_their_records(proxy: FaultProxy, s3_server: S3Server) -> None:
    s3_server.put("faults/huge-0/00000000000000000000.log", values(40, 500_000))
    proxy.clear()
    assert kbat.scan(s3_server.url("faults/huge-0"), view="batches", storage_options=proxy.options).count() == 40
    assert proxy.body_len() <= 40 * 65_536 + 500_200  # and the last batch, which is verified
    assert len(proxy.requests) <= 45


def test_headers_of_small_batches_are_read_in_few_requests(proxy: FaultProxy) -> None:
    proxy.clear()
    assert kbat.scan(SMALL, view="batches", storage_options=proxy.options).count() == 500
    assert len(proxy.requests) <= 11


def test_a_lookup_reads_the_index_and_one_range(proxy: FaultProxy, s3_server: S3Server) -> None:
    url = s3_server.upload(DATA / "corpus" / "segments-default-interval", "faults/lookup-0")
    proxy.clear()
    options: dict[str, Any] = {"storage_options": proxy.options}
    place = kbat.PartitionLog(url, **options).find_offset(500)
    assert place is not None
    assert place.index == "used"
    assert len(proxy.requests) <= 4
    assert proxy.body_len() <= 32_000


def test_end_offsets_read_the_ends_of_last_segments(proxy: FaultProxy, s3_server: S3Server) -> None:
    for number in range(10):
        s3_server.upload(DATA / "corpus" / "txn-lz4", f"ends/t-{number}")
    proxy.clear()
    options: dict[str, Any] = {"storage_options": proxy.options}
    directory = kbat.LogDirectory(s3_server.url("ends"), **options)
    assert [log.end_offset for log in directory.partitions] == [374] * 10
    assert len(proxy.lists()) == 1
    assert len(proxy.requests) <= 22
    assert proxy.body_len() <= 32_000


class Unanswered:
    """Counts the segments for which requests arrive before one of them is answered, which takes a while."""

    def __init__(self, proxy: FaultProxy) -> None:
        """Count from 0."""
        self.proxy, self.most = proxy, 0
        proxy.clear(self)
        proxy.delay = 0.2

    def __call__(self, _request: Request) -> None:
        """Count."""
        waiting = {one.path for one in self.proxy.requests if one.is_read and one.status == 0}
        self.most = max(self.most, sum(path.endswith(".log") for path in waiting))

    def stop(self) -> int:
        """Return the largest count."""
        self.proxy.delay = 0.0
        return self.most


@pytest.fixture(scope="module")
def many(s3_server: S3Server) -> str:
    """A partition of 6 segments of 10 batches of 30 kB."""
    for base in range(0, 60, 10):
        rows = [build([(1, None, b"v" * 30_000)], base_offset=base + at) for at in range(10)]
        s3_server.put(f"faults/many-0/{base:020}.log", b"".join(rows))
    return LARGE.replace("large-0", "many-0")


@pytest.mark.parametrize("threads", [1, 2])
def test_segments_are_requested_before_they_are_read(threads: int, proxy: FaultProxy, many: str) -> None:
    counted = Unanswered(proxy)
    assert offsets_of(many, proxy, threads) == list(range(60))
    assert counted.stop() >= 3


def test_a_plan_splits_several_segments_at_a_time(proxy: FaultProxy, many: str) -> None:
    counted = Unanswered(proxy)
    options = {f"storage.{name}": str(value) for name, value in proxy.options.items()}
    assert len(plan(parse_options({"path": many, "maxPartitionBytes": "100000", **options}))) == 24
    assert counted.stop() >= 5


def test_end_offsets_are_those_of_the_partitions() -> None:
    directory = kbat.LogDirectory(DATA / "log-dir")
    ends = directory.end_offsets()
    assert ends == {(log.topic, log.partition): log.end_offset for log in directory.partitions}
    assert list(ends) == sorted(ends)
    assert set(kbat.LogDirectory(DATA / "log-dir", topics="codec-lz4").end_offsets()) == {("codec-lz4", 0)}


def test_end_offsets_of_partitions_in_a_store_are_read_at_the_same_time(proxy: FaultProxy, s3_server: S3Server) -> None:
    for number in range(4):
        s3_server.put(f"four-ends/t-{number}/00000000000000000000.log", values(number + 1, 10))
    directory = kbat.LogDirectory(f"{SCHEME}://{BUCKET}/four-ends", storage_options=proxy.options)
    counted = Unanswered(proxy)
    assert directory.end_offsets() == {("t", number): number + 1 for number in range(4)}
    assert counted.stop() == 4


def test_end_offsets_raise_the_corruption_of_a_partition(tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"t-{number}").mkdir()
        (tmp_path / f"t-{number}" / f"{0:020}.log").write_bytes(values(2, 10))
    log = tmp_path / "t-1" / f"{0:020}.log"
    content = bytearray(log.read_bytes())
    content[-1] ^= 1
    log.write_bytes(content)
    with pytest.raises(kbat.CrcError, match="t-1"):
        kbat.LogDirectory(tmp_path).end_offsets()
