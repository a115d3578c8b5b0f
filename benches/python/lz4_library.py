"""Compares kbat's decoding of LZ4 batches with LZ4's own library on the same frames, in one thread.

    python benches/python/lz4_library.py [--rows 500000] [--passes 7]

The batches are those of bench.py, as kbat writes them. *LZ4 alone* decompresses their frames with the C library of the
package lz4, and does nothing else: no checksum, no records, no columns. Figures are medians of passes that alternate,
in microseconds of CPU time per row.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import TYPE_CHECKING

import lz4.frame  # type: ignore[import-untyped]
from bench import Shape, chunks, kbat_encode, make_rows

import kbat

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH_HEADER_LEN = 61


def cpu_time(call: Callable[[], object]) -> float:
    """Seconds of CPU time of this process."""
    start = time.process_time()
    call()
    return time.process_time() - start


def measured(value_len: int, row_count: int, passes: int) -> tuple[float, float]:
    """CPU time per row of kbat and of LZ4 alone, in microseconds."""
    shape = Shape(value_len, "lz4")
    rows = make_rows(row_count, value_len)
    batches = [kbat_encode(part, base, shape) for base, part in chunks(rows, shape)]
    data, frames = b"".join(batches), [batch[BATCH_HEADER_LEN:] for batch in batches]

    def columns() -> int:
        return sum(
            batch.num_rows for batch in kbat.scan(data, columns=["key", "value", "offset", "timestamp"]).to_batches()
        )

    def decompress() -> int:
        return sum(len(lz4.frame.decompress(frame)) for frame in frames)

    if columns() != len(rows) or decompress() < len(rows) * value_len:
        raise ValueError(shape.name)
    times: list[tuple[float, float]] = [(cpu_time(columns), cpu_time(decompress)) for _ in range(passes)]
    by_kbat, alone = (statistics.median(column) / len(rows) * 1e6 for column in zip(*times, strict=True))
    return by_kbat, alone


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000, help="rows of 100 bytes; a tenth of it of 1 KB")
    parser.add_argument("--passes", type=int, default=7)
    given = parser.parse_args()
    print("python benches/python/lz4_library.py", *sys.argv[1:])
    print("\n| rows | kbat: checksum, records, columns | LZ4 alone | share |\n|---|---|---|---|")
    for value_len, count in ((100, given.rows), (1000, given.rows // 10)):
        by_kbat, alone = measured(value_len, count, given.passes)
        print(f"| {value_len} B | {by_kbat:.3f} | {alone:.3f} | {alone / by_kbat:.0%} |", flush=True)


if __name__ == "__main__":
    main()
