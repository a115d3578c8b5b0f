"""Compares `kbat.scan` of segments in tiered storage with Kafka's consumer, which reads them through a broker.

    PYTHONPATH=tests/python python benches/python/tiered.py [--mib 256] [--passes 5] [--codecs none,lz4]

The script starts a broker of one node with Kafka's `LocalTieredStorage`, which keeps segments in a directory. Kafka's
producer writes each topic with its default settings: JSON values with a fixed seed, without keys, in batches of 16 KB.
The script waits until the broker has uploaded all segments except the active one, and has deleted them locally. Then
all programs read all records in turn. The first pass warms the broker and the page cache, and is not counted. A figure
is the median of the other passes. Each program has to read the same number of records.

The consumer is `kafka-consumer-perf-test`, in a new JVM for each pass, with the options of Kafka's scripts. Its clock
time is the one that it reports for fetching, without the start of the JVM and without joining its group; the warm-up of
the JVM is included. Its CPU time includes everything. It counts records and bytes, and does not verify checksums. kbat
makes Arrow columns of key, value, offset and timestamp, with one thread. The jars are those of the tests.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bench import make_rows

import kbat
from kafka_broker import free_ports, plain, properties
from kafka_jars import KAFKA_VERSION, LOCAL_TIERED_STORAGE, SERVER, find_java, kafka_jars

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
WAIT_SECONDS = 180
COLUMNS = ["key", "value", "offset", "timestamp"]
# Those of kafka-run-class.sh.
JVM_OPTIONS = ["-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"]
JVM_OPTIONS += ["-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true", "-Duser.language=en"]
SETTINGS: dict[str, str | int | bool] = {
    "remote.log.storage.system.enable": True,
    "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    **{f"rlmm.config.remote.log.metadata.topic.{name}": 1 for name in ("replication.factor", "num.partitions")},
    **{f"{name}.ms": 1000 for name in ("remote.log.manager.task.interval", "log.retention.check.interval")},
    "log.initial.task.delay.ms": 1000,
}
FETCH_SIZES = {"default settings": 1 * MIB, "8 MiB per fetch": 8 * MIB, "32 MiB per fetch": 32 * MIB}


@dataclass
class Times:
    """The times of a program in seconds, of each pass."""

    clock: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    broker: list[float] = field(default_factory=list)


class TieredBroker:
    """A broker with tiered storage, in a process of its own. A context manager, which stops it.

    Attributes:
        logs: Its log directory.
        remote: Where it keeps segments of tiered storage.
    """

    def __init__(self, directory: Path) -> None:
        """Format the log directory and start the broker, without waiting until it serves."""
        java = find_java()
        jars, tiered = (kafka_jars(java, wanted, print) for wanted in (SERVER, LOCAL_TIERED_STORAGE))
        self._java = [java, *JVM_OPTIONS, "-cp", os.pathsep.join(map(str, jars))]
        self._directory, self.logs, self.remote = directory, directory / "logs", directory / "remote"
        self._port, controller_port = free_ports(2)
        settings = properties(self._port, controller_port, self.logs) | plain(SETTINGS)
        settings["remote.log.storage.manager.class.path"] = os.pathsep.join(map(str, tiered))
        settings["rsm.config.dir"] = str(self.remote)
        file = directory / "server.properties"
        file.write_text("".join(f"{name}={setting}\n" for name, setting in settings.items()))
        self.run("kafka.tools.StorageTool", "format", "-t", "kbatKafkaBrokerFixture", "-c", str(file))
        command = [*self._java, "-Xmx1G", "-Xms1G", "kafka.Kafka", str(file)]
        with (directory / "broker.txt").open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)  # noqa: S603 -- ours

    def __enter__(self) -> Self:
        """Return this broker."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the broker."""
        self._process.kill()
        self._process.wait()

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of Kafka and return its output; exit with its messages if it fails."""
        command = [*self._java, "-Xmx512M", program, *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 -- ours
        if done.returncode:
            sys.exit(f"{program} ends with status {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def run_tool(self, tool: str, *arguments: str) -> str:
        """Run a tool of Kafka with this broker."""
        return self.run(f"org.apache.kafka.tools.{tool}", "--bootstrap-server", f"127.0.0.1:{self._port}", *arguments)

    def wait(self, failure: str, is_done: Callable[[], bool]) -> None:
        """Wait for a condition; exit with the broker's output if it does not become true."""
        end = time.monotonic() + WAIT_SECONDS
        while not is_done():
            if time.monotonic() > end or self._process.poll() is not None:
                sys.exit(f"{failure}:\n{(self._directory / 'broker.txt').read_text()[-5000:]}")
            time.sleep(0.5)

    def is_open(self) -> bool:
        """Return whether the broker accepts connections."""
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self._port)) == 0

    def cpu(self) -> float:
        """Return the CPU time of the broker so far, in seconds, on Linux."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class TieredTopic:
    """A partition of which all segments except the active one are in tiered storage only.

    Attributes:
        name: The topic, which has the name of its codec.
        count: The number of its records.
    """

    def __init__(self, broker: TieredBroker, codec: str, options: argparse.Namespace) -> None:
        """Produce the records, and wait until the segments are uploaded and deleted."""
        self.name, self.broker = codec, broker
        self.count = options.mib * MIB // options.value_bytes
        configs = ["remote.storage.enable=true", f"segment.bytes={options.segment_mib * MIB}", "retention.ms=-1"]
        configs += ["local.retention.bytes=1", "file.delete.delay.ms=1000"]
        arguments = [text for config in configs for text in ("--config", config)]
        broker.run_tool("TopicCommand", "--create", "--topic", codec, "--partitions", "1", *arguments)
        with tempfile.NamedTemporaryFile() as payloads:
            payloads.write(b"\n".join(value for _, _, value in make_rows(20_000, options.value_bytes)))
            payloads.flush()
            arguments = ["--topic", codec, "--num-records", str(self.count), "--throughput", "-1"]
            arguments += ["--payload-file", payloads.name, "--command-property", f"compression.type={codec}"]
            broker.run_tool("ProducerPerformance", *arguments)
        broker.wait("the segments are not uploaded and deleted", self._is_tiered)

    @property
    def local(self) -> Path:
        """The directory of the partition in the broker's log directory."""
        return self.broker.logs / f"{self.name}-0"

    def segments(self) -> list[Path]:
        """Return the segments in tiered storage."""
        return sorted(self.broker.remote.glob(f"**/{self.name}-0-*/*.log"))

    def _is_tiered(self) -> bool:
        names = [path.name for path in self.local.iterdir()]
        logs = [name for name in names if name.endswith(".log")]
        return len(logs) == 1 and int(logs[0][:20]) > 0 and not any(name.endswith(".deleted") for name in names)

    def scan(self, times: Times, **options: Any) -> int:  # noqa: ANN401 -- those of kbat.scan
        """Read all records with kbat, and return their number."""
        begun, cpu = time.perf_counter(), time.process_time()
        scan = kbat.scan(self.local, remote=self.broker.remote, columns=COLUMNS, **options)
        count = sum(batch.num_rows for batch in scan.to_batches(threads=1))
        times.clock.append(time.perf_counter() - begun)
        times.cpu.append(time.process_time() - cpu)
        return count

    def consume(self, times: Times, fetch_len: int) -> int:
        """Read all records with Kafka's consumer, and return their number."""
        before, broker = resource.getrusage(resource.RUSAGE_CHILDREN), self.broker.cpu()
        arguments = ["--topic", self.name, "--num-records", str(self.count), "--fetch-size", str(fetch_len)]
        printed = self.broker.run_tool("ConsumerPerformance", *arguments, "--timeout", "60000", "--hide-header")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        *_, line = printed.strip().splitlines()
        # start, end, MB, MB per second, records, records per second, milliseconds of joining, of fetching, …
        figures = [text.strip() for text in line.split(",")]
        times.clock.append(int(figures[7]) / 1000)
        times.cpu.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
        times.broker.append(self.broker.cpu() - broker)
        return int(figures[4])


def compare(topic: TieredTopic, passes: int) -> None:
    """Print the times of all programs."""
    programs: dict[str, Callable[[Times], int]] = {
        "kbat `scan`": topic.scan,
        "kbat `scan`, `check_crc=False`": lambda times: topic.scan(times, check_crc=False),
        **{
            f"Kafka's consumer, {name}": lambda times, size=size: topic.consume(times, size)  # type: ignore[misc]
            for name, size in FETCH_SIZES.items()
        },
    }
    results = {name: Times() for name in programs}
    for number in range(passes + 1):
        for name, run in programs.items():
            count = run(results[name] if number else Times())
            if count != topic.count:
                sys.exit(f"{name} has read {count} records of {topic.count}")
    tail, remote = (sum(one.stat().st_size for one in some) for some in (topic.local.glob("*.log"), topic.segments()))
    size = (tail + remote) / MIB
    print(f"\n{topic.name}: {topic.count:,} records, {size:.0f} MiB, of which {tail / MIB:.0f} MiB are local;")
    print(f"segments in tiered storage: {len(topic.segments())}\n")
    print("| program | s | MiB/s | million records/s | times as long | CPU s | CPU s of the broker |")
    print("|---|---|---|---|---|---|---|")
    base = statistics.median(results["kbat `scan`"].clock)
    for name, times in results.items():
        clock, cpu = statistics.median(times.clock), statistics.median(times.cpu)
        rates = f"{size / clock:,.0f} | {topic.count / clock / 1e6:.2f} | {clock / base:.1f}"
        broker = f"{statistics.median(times.broker):.2f}" if times.broker else ""
        print(f"| {name} | {clock:.3f} | {rates} | {cpu:.3f} | {broker} |")


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256, help="MiB of values per topic")
    parser.add_argument("--segment-mib", type=int, default=16)
    parser.add_argument("--value-bytes", type=int, default=1000)
    parser.add_argument("--codecs", default="none,lz4")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--directory", type=Path, help="where to keep the logs; default: a temporary directory")
    options = parser.parse_args()
    print("$ PYTHONPATH=tests/python python", shlex.join(sys.argv))
    print(f"kbat {kbat.__version__}, Kafka {KAFKA_VERSION}, Python {platform.python_version()}")
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs", flush=True)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.directory)))
        broker = stack.enter_context(TieredBroker(directory))
        broker.wait("the broker does not start", broker.is_open)
        for topic in [TieredTopic(broker, codec, options) for codec in options.codecs.split(",")]:
            compare(topic, options.passes)


if __name__ == "__main__":
    main()
