"""CPU time of commands: how long each takes to start, and how many records and batches each reads in a second.

    python benches/python/commands.py [DIRECTORY]

DIRECTORY is used for the logs that the script writes, 120 MB in all; by default it is a temporary one. Each figure is
the smallest of several runs, and counts the time of the process in user and kernel mode, with all its threads.

Python's modules are compiled before, as pip does when it installs a wheel. In a copy of the repository with
PYTHONDONTWRITEBYTECODE set, each start would compile them again.
"""

from __future__ import annotations

import compileall
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import kbat

REPEATS = 7
BATCH_COUNT = 1_000_000
RECORD_COUNT = 1_000_000
BATCHES_PER_APPEND = 10_000
SMALL = Path(__file__).parents[2] / "tests" / "data" / "log-dir"
SEGMENT = SMALL / "codec-lz4-0" / "00000000000000000000.log"
STARTS: dict[str, tuple[object, ...]] = {
    "--version": (),
    "--help": (),
    "cat --help": (),
    "ls": (SMALL,),
    "verify": (SMALL / "codec-lz4-0",),
    "cat": (SMALL / "codec-lz4-0", "-n", 1),
    "batches": (SMALL / "codec-lz4-0",),
    "lookup": (SMALL / "codec-lz4-0", "--offset", 100),
    "dump": (SEGMENT,),
    "stat": (SMALL,),
    "audit": (SMALL,),
    "producers": (SMALL,),
    "transactions": (SMALL,),
    "groups": (SMALL.parent / "corpus" / "consumer-offsets",),
    "topics": (SMALL.parent / "corpus" / "cluster-metadata",),
    "recover --dry-run": (SMALL / "codec-lz4-0",),
    "stat --records": (SMALL,),
    "copy": (SMALL / "codec-lz4-0", "OUT"),
    "export": (SMALL / "codec-lz4-0", "OUT.parquet"),
}


def cpu_of_children() -> float:
    """Return the CPU time of all processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_of(*arguments: object, repeats: int = REPEATS) -> float:
    """Return the smallest CPU time of a command, in seconds."""
    times = []
    with tempfile.TemporaryDirectory() as directory:
        for number in range(repeats):
            words = [str(one).replace("OUT", f"{directory}/{number}") for one in arguments]
            before = cpu_of_children()
            with Path(os.devnull).open("wb") as sink:
                subprocess.run([sys.executable, "-m", "kbat", *words], check=True, stdout=sink)  # noqa: S603 - ours
            times.append(cpu_of_children() - before)
    return min(times)


def write_batches(directory: Path) -> Path:
    """Write a partition of batches with one short record each."""
    place = directory / "batches-0"
    if place.exists():
        return place
    builder = kbat.BatchBuilder()
    builder.append(b"key", b"value", timestamp=1_700_000_000_000)
    data = builder.finish() * BATCHES_PER_APPEND
    with kbat.LogWriter(place) as writer:
        for _ in range(BATCH_COUNT // BATCHES_PER_APPEND):
            writer.append_batch(data)
    return place


def write_lines(directory: Path) -> Path:
    """Write the JSON lines of a partition of records with keys of 8 bytes, values of 100 bytes and one header."""
    place = directory / "records-0"
    lines = directory / "records.jsonl"
    if lines.exists():
        return lines
    with kbat.LogWriter(place) as writer:
        for number in range(RECORD_COUNT):
            key, value = b"%08d" % (number % 10_000), b"%0100d" % number
            writer.append(key, value, timestamp=1_700_000_000_000 + number, headers=[("trace", b"1")])
    with lines.open("wb") as file:
        subprocess.run([sys.executable, "-m", "kbat", "cat", place], check=True, stdout=file)  # noqa: S603 - ours
    return lines


def main(directory: Path) -> None:
    """Print a table of starts and one of rates."""
    compileall.compile_dir(Path(kbat.__file__).parent, quiet=1)
    for words, arguments in STARTS.items():
        command, *options = words.split()
        print(f"start  {words:20} {1000 * cpu_of(command, *arguments, *options):6.0f} ms")
    batches, lines = write_batches(directory), write_lines(directory)
    rates: dict[str, tuple[int, tuple[object, ...]]] = {
        "stat, batches": (BATCH_COUNT, ("stat", batches)),
        "stat --by topic,day,producer, batches": (BATCH_COUNT, ("stat", batches, "--by", "topic,day,producer")),
        "audit, batches": (BATCH_COUNT, ("audit", batches)),
        "batches, batches": (BATCH_COUNT, ("batches", batches)),
        "batches --json, batches": (BATCH_COUNT, ("batches", batches, "--json")),
        "cat, records": (RECORD_COUNT, ("cat", directory / "records-0")),
        "import, records": (RECORD_COUNT, ("import", lines, "OUT")),
        "import --compression lz4, records": (RECORD_COUNT, ("import", lines, "OUT", "--compression", "lz4")),
    }
    for name, (count, arguments) in rates.items():
        seconds = cpu_of(*arguments, repeats=3)
        print(f"rate   {name:40} {seconds:6.2f} s {count / seconds / 1e6:6.2f} M/s")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
