"""Shows what is broken in a partition, what a broker would lose, and saves every intact batch.

python examples/repair_partition.py OUTPUT [PARTITION]
"""

import sys

import kbat.results

if len(sys.argv) < 2:
    print("usage: python examples/repair_partition.py OUTPUT [PARTITION]", file=sys.stderr)
    sys.exit(2)
output = sys.argv[1]
partition = sys.argv[2] if len(sys.argv) > 2 else "tests/data/corpus/crash-flip"


def lost_offsets(report: kbat.results.RepairReport) -> int:
    """Count the offsets in the dropped ranges that are known."""
    ranges = [(lost.first_offset, lost.last_offset) for lost in report.dropped]
    return sum(last - first + 1 for first, last in ranges if first is not None and last is not None)


for finding in kbat.verify(partition).findings:
    if finding.severity != "info":
        print(f"{finding.severity}: {finding.kind} at byte {finding.position}, offset {finding.offset}")

# A dry run changes nothing.
print("a broker would lose", lost_offsets(kbat.recover(partition, dry_run=True)), "offsets")
print("salvage loses", lost_offsets(kbat.salvage(partition, output)), "offsets")
print("the copy is valid:", kbat.verify(output).ok)
