"""Measures how planning grows with the number of segments: time, driver memory, tasks. Writes a table and a figure.

    python benches/python/spark_scale.py [--partitions 500,1000,2000] [--segments 20] [--jar PATH] [--draw]

Writes partitions of tiny segments, one record each, and plans a read of all of them: with default options, where many
segments are one task, and with ``maxPartitionBytes=1``, where each segment is a task of its own. ``Spark`` is the time
of ``format("kbat")`` in the JVM, from the query to its RDD; ``core`` is that of the planner alone, which both faces
share; ``stream`` is that of a stream's first micro-batch in it. Nothing may grow with the square of the number of
segments: the last column is the exponent of the core's CPU time between two rows, which is 1 if it is proportional.

Times are the least of three passes. ``--draw`` writes the results to ``benches/results/spark_scale.json`` and draws
``docs/images/spark-scale.svg``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

import kbat
import kbat.spark
from kbat._core import plan as core

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benches" / "results" / "spark_scale.json"
FIGURE = ROOT / "docs" / "images" / "spark-scale.svg"
MODES: dict[str, dict[str, str]] = {"default": {}, "task per segment": {"maxPartitionBytes": "1"}}
FIELDS = ["topic", "partition", "offset", "value"]
MIB = 1 << 20
PASSES = 3


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--partitions", default="500,1000,2000", help="numbers of partitions, one measurement for each")
    parser.add_argument("--segments", type=int, default=20, help="segments of each partition")
    parser.add_argument("--jar", default=None, help="default: that of the installed wheel")
    parser.add_argument("--draw", action="store_true", help="write the results and the figure")
    arguments = parser.parse_args()
    print(f"$ python {' '.join(sys.argv)}")
    spark = session(arguments.jar or kbat.spark.jar())
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        done = 0
        for count in sorted(map(int, arguments.partitions.split(","))):
            make_logs(Path(directory), range(done, count), arguments.segments)
            done = count
            for mode, options in MODES.items():
                rows.append(
                    {"mode": mode, "segments": count * arguments.segments, **measure(spark, directory, options)}
                )
                print(json.dumps(rows[-1]), flush=True)
    spark.stop()
    print(table(rows))
    if arguments.draw:
        RESULT.write_text(json.dumps(rows, indent=1) + "\n")
        draw(rows)


def session(jar: str) -> SparkSession:
    """Start a session with the jar."""
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jar).config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.memory", "4g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def make_logs(directory: Path, partitions: range, segment_count: int) -> None:
    """Write partitions of segments with one record each."""
    contents = []
    for offset in range(segment_count):
        builder = kbat.BatchBuilder(base_offset=offset)
        builder.append(None, b"value", timestamp=1_700_000_000_000 + offset)
        contents.append((f"{offset:020}.log", builder.finish()))
    for partition in partitions:
        log = directory / f"scale-{partition}"
        log.mkdir()
        for name, content in contents:
            (log / name).write_bytes(content)


def measure(spark: SparkSession, directory: str, options: dict[str, str]) -> dict[str, Any]:
    """Return the figures of one number of segments."""
    jvm: Any = spark._jvm  # noqa: SLF001 -- nothing else leads to Java
    process = jvm.java.lang.ProcessHandle.current().pid()

    def plan_in_jvm() -> int:
        frame = spark.read.format("kbat").options(**options).option("engine", "jvm").load(directory)
        frame = frame.select(*FIELDS)
        count: int = frame._jdf.queryExecution().toRdd().getNumPartitions()  # noqa: SLF001
        return count

    os.sync()  # new files are not written back during the measurement
    parsed = core.ReadOptions([("path", directory), *options.items()], [])
    plan_in_jvm()  # classes are loaded, and the directories are in the page cache
    tasks, jvm_seconds, _, jvm_bytes = timed(plan_in_jvm, process, jvm.java.lang.System.gc)
    core.plan(parsed, FIELDS, [], splits=True)
    planned, core_seconds, core_cpu, core_bytes = timed(lambda: core.plan(parsed, FIELDS, [], splits=True), os.getpid())
    _, stream_seconds, stream_cpu, _ = timed(lambda: first_micro_batch(directory, options), os.getpid())
    return {
        "tasks": tasks,
        "task_bytes": sum(map(len, planned)),
        "jvm_seconds": round(jvm_seconds, 3),
        "jvm_bytes": jvm_bytes,
        "core_seconds": round(core_seconds, 3),
        "core_cpu": round(core_cpu, 3),
        "core_bytes": core_bytes,
        "stream_seconds": round(stream_seconds, 3),
        "stream_cpu": round(stream_cpu, 3),
    }


def first_micro_batch(directory: str, options: dict[str, str]) -> int:
    """Plan the first micro-batch of a stream, and return the number of its tasks."""
    given = [("path", directory), ("startingOffsets", "earliest"), *options.items()]
    stream = core.Stream(core.ReadOptions(given, []), FIELDS)
    start = stream.initial_offset()
    return len(stream.plan(start, stream.latest_offset(start, is_limited=False)))


def timed(
    call: Callable[[], Any], process: int, collect: Callable[[], object] = lambda: None
) -> tuple[Any, float, float, int]:
    """Return what a call returns, the least wall-clock and CPU seconds of some calls, and how many bytes memory grew.

    CPU time is that of this process; memory is the peak of the resident memory of `process` during the first call.
    """
    collect()
    Path(f"/proc/{process}/clear_refs").write_text("5")  # resets the peak
    before = resident(process, "VmRSS")
    growth = None
    seconds = cpu_seconds = math.inf
    for _ in range(PASSES):
        start, cpu_start = time.monotonic(), time.process_time()
        result = call()
        seconds = min(seconds, time.monotonic() - start)
        cpu_seconds = min(cpu_seconds, time.process_time() - cpu_start)
        growth = max(0, resident(process, "VmHWM") - before) if growth is None else growth
    return result, seconds, cpu_seconds, growth or 0


def resident(process: int, field: str) -> int:
    """Return bytes of memory of a process, now (VmRSS) or at most (VmHWM)."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


def table(rows: list[dict[str, Any]]) -> str:
    """Return the results as a table in Markdown."""
    lines = [
        "| tasks | segments | planned | core, s; CPU | Spark, s | stream, s; CPU | driver MiB | tasks MiB | exponent |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    before: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: (row["mode"], row["segments"])):
        last = before.get(row["mode"])
        exponent = ""
        if last is not None:
            growth = math.log(row["core_cpu"] / last["core_cpu"])
            exponent = f"{growth / math.log(row['segments'] / last['segments']):.2f}"
        before[row["mode"]] = row
        lines.append(
            f"| {row['mode']} | {row['segments']:,} | {row['tasks']:,} | "
            f"{row['core_seconds']:.2f}; {row['core_cpu']:.2f} | {row['jvm_seconds']:.2f} | "
            f"{row['stream_seconds']:.2f}; {row['stream_cpu']:.2f} | {row['jvm_bytes'] / MIB:.0f} | "
            f"{row['task_bytes'] / MIB:.1f} | {exponent} |"
        )
    return "\n".join(lines)


def draw(rows: list[dict[str, Any]]) -> None:
    """Draw time, memory and tasks against segments, on logarithmic axes, with a line of proportional growth."""
    import matplotlib as mpl  # noqa: PLC0415 -- only --draw needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "kbat", "font.size": 8}):
        figure = Figure(figsize=(9, 3), layout="constrained")
        panels = figure.subplots(1, 3)
        series = (
            ("seconds to plan", {"jvm_seconds": "Spark", "core_cpu": "core, CPU", "stream_cpu": "stream, CPU"}, 1),
            ("driver memory, MiB", {"jvm_bytes": "growth at most", "task_bytes": "the tasks"}, MIB),
            ("tasks", {"tasks": ""}, 1),
        )
        for axes, (title, fields, unit) in zip(panels, series, strict=True):
            for mode, style in zip(MODES, ("-", "--"), strict=True):
                own = [row for row in rows if row["mode"] == mode]
                segments = [row["segments"] for row in own]
                for number, (field, label) in enumerate(fields.items()):
                    values = [max(row[field], 1e-3) / unit for row in own]
                    name = ", ".join(text for text in (label, mode) if text)
                    axes.loglog(segments, values, style, marker=".", color=f"C{number}", label=name)
            axes.set_title(title)
            axes.set_xlabel("segments")
            ticks = sorted({row["segments"] for row in rows})
            axes.set_xticks(ticks, [f"{tick / 1000:g}k" for tick in ticks])
            axes.minorticks_off()
            axes.legend(fontsize=6)
        figure.savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
