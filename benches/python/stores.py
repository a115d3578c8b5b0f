"""Measures reads from an S3-compatible server: bytes per second, requests per query, and the cost of latency.

    PYTHONPATH=tests/python python benches/python/stores.py [--server versitygw] [--mib 256] [--passes 5]

The script writes one topic with a fixed seed, uncompressed and with lz4: values of 1,000 bytes, batches of 16 KB,
segments of 64 MiB. It starts the server, uploads the topic, and reads it with all programs in turn. A figure of bytes
per second is the median of the passes. `make test-stores` installs versitygw; moto, which is written in Python, is
slower than all programs that read from it.

Requests and bytes are counted by a proxy, which also adds the latency.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import obstore
from bench import make_rows
from obstore.store import S3Store

import kbat
from fault_proxy import FaultProxy
from s3_server import BUCKET
from store_servers import start_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from s3_server import S3Server

MIB = 1 << 20
SEGMENT_LEN = 64 * MIB
PIECE_LEN = 8 * MIB
LATENCY = 0.05
RATE = 100 * MIB
PARTITIONS = 100
ROWS = 20_000
COLUMNS = ["key", "value", "offset", "timestamp"]
Codec = Literal["none", "lz4"]


def write_topic(directory: Path, codec: Codec, size: int) -> Path:
    """Write a partition of about `size` bytes before compression."""
    place = directory / f"{codec}-0"
    rows = make_rows(ROWS, 1000)
    with kbat.LogWriter(place, compression=codec, segment_bytes=SEGMENT_LEN) as writer:
        for number in range(size // 1000):
            _, key, value = rows[number % ROWS]
            writer.append(key, value, timestamp=1_700_000_000_000 + number)
    return place


def seconds(run: Callable[[], object]) -> float:
    """Return the wall time of a call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


class Readers:
    """The programs that read all segments of a partition.

    Args:
        place: The partition in the file system, whose name is the prefix of its objects.
        server: The server.
    """

    def __init__(self, place: Path, server: S3Server) -> None:
        self.place, self.server = place, server
        self.keys = [f"{place.name}/{path.name}" for path in sorted(place.glob("*.log"))]
        self.size = sum(path.stat().st_size for path in place.glob("*.log"))
        self.store = S3Store(BUCKET, client_options={"allow_http": True}, **server.options)

    def scan(self, source: str | Path, threads: int = 1, **options: Any) -> int:  # noqa: ANN401 -- those of kbat.scan
        """Decode all records into Arrow batches."""
        scan = kbat.scan(source, columns=COLUMNS, **options)
        return sum(batch.num_rows for batch in scan.to_batches(threads=threads))

    def stored(self, threads: int = 1) -> int:
        """Decode the objects."""
        return self.scan(self.server.url(self.place.name), threads, storage_options=self.server.options)

    def local(self) -> int:
        """Decode the files."""
        return self.scan(self.place)

    def plain_get(self) -> int:
        """Download each object with one request, and decode nothing."""
        return sum(len(obstore.get(self.store, key).bytes()) for key in self.keys)

    def ranges(self) -> int:
        """Download ranges of the objects one by one with obstore, and decode nothing."""
        found = 0
        for key in self.keys:
            size = obstore.head(self.store, key)["size"]
            for start in range(0, size, PIECE_LEN):
                found += len(obstore.get_range(self.store, key, start=start, end=min(start + PIECE_LEN, size)))
        return found

    def boto_ranges(self) -> int:
        """The same with boto3."""
        import boto3  # type: ignore[import-untyped]  # noqa: PLC0415 -- slow

        options = self.server.options
        client = boto3.client(
            "s3",
            endpoint_url=options["endpoint"],
            region_name=options["region"],
            aws_access_key_id=options["access_key_id"],
            aws_secret_access_key=options["secret_access_key"],
        )
        found = 0
        for key in self.keys:
            size = client.head_object(Bucket=BUCKET, Key=key)["ContentLength"]
            for start in range(0, size, PIECE_LEN):
                asked = f"bytes={start}-{min(start + PIECE_LEN, size) - 1}"
                found += len(client.get_object(Bucket=BUCKET, Key=key, Range=asked)["Body"].read())
        return found


def compare(readers: Readers, passes: int) -> None:
    """Print the bytes per second of all programs."""
    programs: dict[str, Callable[[], object]] = {
        "obstore `get`, nothing decoded": readers.plain_get,
        "kbat `scan` of the store": readers.stored,
        "kbat `scan` of the store, 2 threads": lambda: readers.stored(2),
        "kbat `scan` of local files": readers.local,
        "obstore `get_range` of 8 MiB, nothing decoded": readers.ranges,
        "boto3 ranges of 8 MiB, nothing decoded": readers.boto_ranges,
    }
    times: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(passes + 1):
        for name, run in programs.items():
            taken = seconds(run)
            if number:  # the first pass warms the page cache and the connections
                times[name].append(taken)
    base = statistics.median(times["obstore `get`, nothing decoded"])
    print(f"\n{readers.place.name.removesuffix('-0')}: {readers.size / MIB:.0f} MiB in {len(readers.keys)} segments\n")
    print("| program | MiB/s | of `get` |\n|---|---|---|")
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"| {name} | {readers.size / MIB / middle:,.0f} | {base / middle:.2f} |")


def compare_on_a_line(readers: list[Readers], proxy: FaultProxy, passes: int) -> None:
    """Print how long a scan takes beside a plain download, if the network is the bottleneck."""
    print(f"\n{RATE / MIB:.0f} MiB per second in all, {LATENCY * 1000:.0f} ms until each answer\n")
    print("| data | obstore `get`, MiB/s | kbat `scan`, MiB/s | of `get` |\n|---|---|---|---|")
    proxy.clear()
    proxy.rate, proxy.delay = RATE, LATENCY
    for one in readers:
        store = S3Store(BUCKET, client_options={"allow_http": True}, **proxy.options)
        url = one.server.url(one.place.name)
        gets, scans = [], []
        for _ in range(passes):
            gets.append(seconds(lambda: [obstore.get(store, key).bytes() for key in one.keys]))  # noqa: B023 -- called here
            scans.append(seconds(lambda: one.scan(url, storage_options=proxy.options)))  # noqa: B023 -- called here
        get, scan = (one.size / MIB / statistics.median(times) for times in (gets, scans))
        print(f"| {one.place.name.removesuffix('-0')} | {get:,.0f} | {scan:,.0f} | {scan / get:.2f} |")
    proxy.rate, proxy.delay = None, 0.0


def lookup(url: str, options: dict[str, Any]) -> object:
    """Find a record by its offset."""
    log = kbat.PartitionLog(url, storage_options=options)
    return log.find_offset(50_000)


def headers(url: str, options: dict[str, Any]) -> object:
    """Read the header of every batch."""
    return kbat.scan(url, view="batches", storage_options=options).count(threads=1)


def ends(url: str, options: dict[str, Any]) -> object:
    """Compute the end offset of each partition."""
    directory = kbat.LogDirectory(f"{url.rpartition('/')[0]}/many", storage_options=options)
    return sum(directory.end_offsets().values())


def time_range(url: str, options: dict[str, Any]) -> object:
    """Read the records of one second out of the middle."""
    start = 1_700_000_050_000
    scan = kbat.scan(url, start_timestamp=start, end_timestamp=start + 1000, storage_options=options)
    return scan.count(threads=1)


def whole(url: str, options: dict[str, Any], threads: int = 1) -> object:
    """Read all records."""
    scan = kbat.scan(url, columns=COLUMNS, storage_options=options)
    return sum(batch.num_rows for batch in scan.to_batches(threads=threads))


QUERIES: dict[str, Callable[[str, dict[str, Any]], object]] = {
    "one offset: `find_offset`": lookup,
    '`view="batches"`': headers,
    f"`end_offset` of {PARTITIONS} partitions": ends,
    "a time range of 1,000 records": time_range,
    "all records": whole,
    "all records, 2 threads": partial(whole, threads=2),
}


def count_requests(url: str, proxy: FaultProxy, passes: int) -> None:
    """Print requests, bytes and times of queries without and with latency."""
    print(f"\n| query | requests | bytes | time, ms | with {LATENCY * 1000:.0f} ms | round trips | times as long |")
    print("|---|---|---|---|---|---|---|")
    for name, run in QUERIES.items():
        proxy.clear()
        run(url, proxy.options)
        requests, size = len(proxy.requests), proxy.body_len()
        taken: list[float] = []
        for delay in (0.0, LATENCY):
            proxy.delay = delay
            taken.append(statistics.median(seconds(lambda run=run: run(url, proxy.options)) for _ in range(passes)))  # type: ignore[misc]
        proxy.delay = 0.0
        trips = (taken[1] - taken[0]) / LATENCY
        figures = f"{taken[0] * 1000:,.0f} | {taken[1] * 1000:,.0f} | {trips:.1f} | {taken[1] / taken[0]:.2f}"
        print(f"| {name} | {requests} | {size / 1024:,.0f} KiB | {figures} |")


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="versitygw", choices=["versitygw", "moto"])
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--passes", type=int, default=5)
    options = parser.parse_args()
    print(f"$ PYTHONPATH=tests/python python benches/python/stores.py {shlex.join(sys.argv[1:])}".rstrip())
    print(f"server: {options.server}; load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    with tempfile.TemporaryDirectory() as directory, start_server(options.server) as server:
        places = [write_topic(Path(directory), codec, options.mib * MIB) for codec in ("none", "lz4")]
        readers = [Readers(place, server) for place in places]
        for one in readers:
            server.upload(one.place, one.place.name)
            compare(one, options.passes)
        small = write_topic(Path(directory) / "small", "none", MIB)
        for number in range(PARTITIONS):
            server.upload(small, f"many/t-{number}")
        with FaultProxy(server.port) as proxy:
            compare_on_a_line(readers, proxy, options.passes)
            count_requests(server.url(places[0].name), proxy, options.passes)
    print(f"\nload average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
