"""Writes a partition that a broker can serve, and reads it back.

python examples/write_partition.py DIRECTORY
"""

import sys
from pathlib import Path

import kbat

if len(sys.argv) < 2:
    print("usage: python examples/write_partition.py DIRECTORY", file=sys.stderr)
    sys.exit(2)
partition = Path(sys.argv[1]) / "orders-0"

with kbat.LogWriter(partition, compression="zstd") as writer:
    for number in range(1000):
        key, value = f"customer-{number % 7}".encode(), f"order {number}".encode()
        writer.append(key, value, timestamp=1_700_000_000_000 + number, headers=[("source", b"example")])

report = kbat.verify(partition)
print(f"{partition.name}: {report.record_count} records, ok: {report.ok}")

found = kbat.PartitionLog(partition).find_timestamp(1_700_000_000_500)
if found:
    print("offset of the first record at or after 1700000000500 ms:", found.offset)
