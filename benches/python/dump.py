"""Compares `kbat dump` with `kafka-dump-log`, on segments of 64 MiB and 1 GiB.

    PYTHONPATH=tests/python python benches/python/dump.py [--directory PLACE] [--repeats 5]

The segments have JSON values of 100 bytes with a fixed seed and batches of 16 KB. Kafka's class runs in a JVM without
the shell script around it; its jars are those of the tests. Both programs write to /dev/null, in turn. A figure is the
smallest number of seconds of several runs; CPU time counts all threads. The output of both has to be the same.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench import make_rows

import kbat
from kafka_jars import KAFKA_VERSION, SERVER, find_java, kafka_jars

SIZES = {"64 MiB": 64 << 20, "1 GiB": 1 << 30}
OPTIONS = [("64 MiB", ()), ("64 MiB", ("--deep-iteration",)), ("64 MiB", ("--print-data-log",)), ("1 GiB", ())]
# About the bytes of a record of these rows.
RECORD_LEN = 126
LOG = "0" * 20 + ".log"


@dataclass
class Times:
    """The smallest times of a program, in seconds."""

    clock: float = float("inf")
    cpu: float = float("inf")


def write_segment(directory: Path, size: int) -> Path:
    """Write records to one segment until it has a size."""
    rows = make_rows(20_000, 100)
    with kbat.LogWriter(directory, segment_bytes=(1 << 31) - 1) as writer:
        for number in range(size // RECORD_LEN):
            _, key, value = rows[number % len(rows)]
            writer.append(key, value, timestamp=1_700_000_000_000 + number)
    return directory / LOG


def measure(program: list[str], times: Times) -> None:
    """Run a program once."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with Path(os.devnull).open("wb") as sink:
        subprocess.run(program, check=True, stdout=sink, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    times.clock = min(times.clock, time.perf_counter() - begun)
    times.cpu = min(times.cpu, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def digest(program: list[str]) -> str:
    """Return the checksum of what a program prints."""
    with tempfile.TemporaryFile() as output:
        subprocess.run(program, check=True, stdout=output, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
        output.seek(0)
        return hashlib.file_digest(output, "sha256").hexdigest()


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, help="where to write the segments; default: a temporary directory")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    java = find_java()
    jars = kafka_jars(java, SERVER, lambda line: print(line, file=sys.stderr))
    kafka = [java, "-cp", os.pathsep.join(map(str, jars)), "org.apache.kafka.tools.DumpLogSegments"]
    print("$ PYTHONPATH=tests/python python", shlex.join(sys.argv))
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs\n")
    with tempfile.TemporaryDirectory(dir=options.directory) as place:
        logs = {name: write_segment(Path(place) / name, size) for name, size in SIZES.items()}
        print(f"| segment | options | kbat, s | Kafka {KAFKA_VERSION} | times | kbat, CPU s | Kafka | times |")
        print("|---|---|---|---|---|---|---|---|")
        for name, flags in OPTIONS:
            arguments = ["--files", str(logs[name]), *flags]
            programs = [[sys.executable, "-m", "kbat", "dump", *arguments], [*kafka, *arguments]]
            if len({digest(program) for program in programs}) != 1:
                sys.exit(f"the outputs for {arguments} differ")
            ours, theirs = Times(), Times()
            for _ in range(options.repeats):
                measure(programs[0], ours)
                measure(programs[1], theirs)
            print(
                f"| {name} | {' '.join(f'`{flag}`' for flag in flags)} | {ours.clock:.2f} | {theirs.clock:.2f} "
                f"| {theirs.clock / ours.clock:.1f} | {ours.cpu:.2f} | {theirs.cpu:.2f} | {theirs.cpu / ours.cpu:.1f} |"
            )


if __name__ == "__main__":
    main()
