"""Compares the speed of kbat's Python API with other Python packages on the same bytes.

    python benches/python/bench.py [--shapes 100B-none,100B-lz4] [--passes 5] [--rows 100000]

kbat writes the bytes with a fixed seed: 16-byte keys, JSON values of 100 or 1,000 bytes, batches of 16 KB before
compression. Each pass runs all packages in turn. A figure is the median over passes, in millions of records per second
of CPU time. Packages that are not installed (aiokafka, kafka-python) are omitted and listed. All packages must read the
same number of records.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import random
import statistics
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import kbat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORDS = ["order", "view", "cart", "refund", "region", "queue", "batch", "note", "event", "click", "paid", "retry"]
BATCH_LEN = 16 << 10
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
CODEC_IDS: dict[Compression, int] = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}

Row = tuple[int, bytes, bytes]
Headers = list[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Shape:
    """The format of the batches that rows are written to."""

    value_len: int
    compression: Compression
    magic: int = 2
    header_count: int = 0

    @property
    def name(self) -> str:
        """Short name, for the command line."""
        parts = ["100B" if self.value_len == 100 else "1KB", self.compression]  # noqa: PLR2004 -- the two sizes
        parts += ["headers"] * bool(self.header_count) + ["v1"] * (self.magic == 1)
        return "-".join(parts)

    @property
    def headers(self) -> Headers:
        """The headers of every record."""
        return [("trace-id", b"7f3a9c"), ("source", b"checkout"), ("empty", None)][: self.header_count]


SHAPES = [Shape(n, codec) for n in (100, 1000) for codec in CODEC_IDS]
SHAPES += [Shape(100, "none", header_count=3), Shape(100, "none", magic=1), Shape(100, "lz4", magic=1)]


def make_rows(count: int, value_len: int) -> list[Row]:
    """Rows with a fixed seed."""
    rng = random.Random(1)  # noqa: S311 -- no secret
    rows, timestamp = [], 1_700_000_000_000
    for _ in range(count):
        timestamp += rng.randrange(4)
        text = f'{{"id":{rng.getrandbits(40)},"text":"' + " ".join(rng.choices(WORDS, k=value_len // 4))
        rows.append((timestamp, b"%016x" % rng.getrandbits(64), text[: value_len - 2].encode() + b'"}'))
    return rows


def chunks(rows: list[Row], shape: Shape) -> Iterator[tuple[int, list[Row]]]:
    """The rows of one batch each, with the offset of the first."""
    step = max(1, BATCH_LEN // (shape.value_len + 25))
    for start in range(0, len(rows), step):
        yield start, rows[start : start + step]


def kbat_encode(rows: list[Row], base_offset: int, shape: Shape) -> bytes:
    """One batch by kbat."""
    builder = kbat.BatchBuilder(shape.magic, shape.compression, base_offset=base_offset)
    for timestamp, key, value in rows:
        builder.append(key, value, timestamp=timestamp, headers=shape.headers)
    return builder.finish()


def peer_encode(builder_class: Any, shape: Shape, rows: list[Row], _base_offset: int) -> bytes:  # noqa: ANN401 -- untyped packages
    """One batch by aiokafka or kafka-python, whose builders have the same interface."""
    builder = builder_class(2, CODEC_IDS[shape.compression], 0, -1, -1, -1, 1 << 30)
    for offset, (timestamp, key, value) in enumerate(rows):
        builder.append(offset, timestamp, key, value, shape.headers)
    return bytes(builder.build())


def kbat_walk(data: bytes) -> int:
    """Headers only."""
    return sum(batch.record_count or 0 for batch in kbat.read_batches(data))


def kbat_iterate(data: bytes, *, check_crc: bool) -> int:
    """Four fields of each record."""
    count = 0
    for batch in kbat.read_batches(data, check_crc=check_crc):
        for record in batch:
            record.offset, record.timestamp, record.key, record.value  # noqa: B018 -- times the access
            count += 1
    return count


def kbat_arrow(data: bytes) -> int:
    """Four columns."""
    return int(kbat.scan(data, columns=["offset", "timestamp", "key", "value"]).to_pyarrow().num_rows)


def peer_batches(records_class: Any, data: bytes) -> Iterator[Any]:  # noqa: ANN401 -- untyped packages
    """The batches of aiokafka or kafka-python, with verified checksums."""
    records = records_class(data)
    while (batch := records.next_batch()) is not None:
        if not batch.validate_crc():
            raise ValueError
        yield batch


def peer_iterate(records_class: Any, data: bytes) -> int:  # noqa: ANN401 -- untyped packages
    """Four fields of each record."""
    count = 0
    for batch in peer_batches(records_class, data):
        for record in batch:
            record.offset, record.timestamp, record.key, record.value  # noqa: B018 -- times the access
            count += 1
    return count


def peer_arrow(records_class: Any, data: bytes) -> int:  # noqa: ANN401 -- untyped packages
    """Four columns, by lists."""
    import pyarrow as pa  # noqa: PLC0415 -- only for this

    rows = [(r.offset, r.timestamp, r.key, r.value) for batch in peer_batches(records_class, data) for r in batch]
    columns = list(zip(*rows, strict=True))
    types = [pa.int64(), pa.timestamp("ms"), pa.binary(), pa.binary()]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return int(pa.table(arrays, names=["offset", "timestamp", "key", "value"]).num_rows)


def peers() -> dict[str, tuple[Any, Any]]:
    """Reader and builder class of each package that is installed."""
    found: dict[str, tuple[Any, Any]] = {}
    for name, package in (("aiokafka", "aiokafka"), ("kafka-python", "kafka")):
        if importlib.util.find_spec(package):
            reader = importlib.import_module(f"{package}.record.memory_records").MemoryRecords
            builder = importlib.import_module(f"{package}.record.default_records").DefaultRecordBatchBuilder
            found[name] = (reader, builder)
    return found


def encode(rows: list[Row], shape: Shape, one: Callable[[list[Row], int], bytes]) -> int:
    """Encode all rows, one batch at a time."""
    return sum(len(part) for start, part in chunks(rows, shape) if one(part, start))


def contestants(shape: Shape, rows: list[Row], data: bytes) -> dict[str, Callable[[], int]]:
    """The functions to time for a shape, by name; each returns the number of records it read."""
    timed: dict[str, Callable[[], int]] = {}
    if shape.magic == 2:  # noqa: PLR2004 -- a message format
        timed["kbat header walk"] = lambda: kbat_walk(data)
    timed |= {
        "kbat iterate": lambda: kbat_iterate(data, check_crc=False),
        "kbat iterate + CRC": lambda: kbat_iterate(data, check_crc=True),
        "kbat to Arrow": lambda: kbat_arrow(data),
        "kbat encode": partial(encode, rows, shape, lambda part, start: kbat_encode(part, start, shape)),
    }
    for name, (reader, builder) in peers().items():
        timed[f"{name} iterate + CRC"] = partial(peer_iterate, reader, data)
        timed[f"{name} to Arrow"] = partial(peer_arrow, reader, data)
        if shape.magic == 2:  # noqa: PLR2004 -- a message format
            timed[f"{name} encode"] = partial(encode, rows, shape, partial(peer_encode, builder, shape))
    return timed


def measure(shape: Shape, rows: list[Row], passes: int) -> dict[str, str]:
    """Millions of records per second of CPU time."""
    data = b"".join(kbat_encode(part, start, shape) for start, part in chunks(rows, shape))
    timed = contestants(shape, rows, data)
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    failed: dict[str, str] = {}
    for turn in range(passes + 1):
        for name, run in timed.items():
            if name in failed:
                continue
            start = time.process_time()
            try:
                count = run()
            except Exception as error:  # noqa: BLE001 -- a failure of a package is a result
                failed[name] = type(error).__name__
                continue
            if turn:  # the first pass warms up
                seconds[name].append(time.process_time() - start)
            if count != len(rows):
                message = f"{name} read {count} of {len(rows)} records of {shape.name}"
                raise SystemExit(message)
    rates = {name: f"{len(rows) / statistics.median(s) / 1e6:.2f}" for name, s in seconds.items() if name not in failed}
    return rates | failed


def main() -> None:
    """Print one table with one row per library."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [shape.name for shape in SHAPES]
    parser.add_argument("--shapes", default=",".join(names), help=f"which of {', '.join(names)}")
    parser.add_argument("--passes", type=int, default=5, help="timed passes (default 5)")
    parser.add_argument("--rows", type=int, default=100_000, help="records of a 100-byte shape (default 100000)")
    arguments = parser.parse_args()
    chosen = [shape for shape in SHAPES if shape.name in arguments.shapes.split(",")]
    missing = {"aiokafka", "kafka-python"} - set(peers())
    print(f"$ python {' '.join(sys.argv)}")
    print("not installed: " + ", ".join(sorted(missing)) if missing else "", end="\n" * bool(missing))
    results = {}
    for shape in chosen:
        rows = make_rows(arguments.rows * 100 // shape.value_len, shape.value_len)
        results[shape.name] = measure(shape, rows, arguments.passes)
        print(f"{shape.name} done", file=sys.stderr)
    print("\nM records/s of CPU time, medians\n")
    print("|  | " + " | ".join(results) + " |\n|---|" + "---|" * len(results))
    for name in dict.fromkeys(name for rates in results.values() for name in rates):
        print(f"| {name} | " + " | ".join(rates.get(name, "") for rates in results.values()) + " |")


if __name__ == "__main__":
    main()
