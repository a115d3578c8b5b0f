"""A Spark cluster of processes: a master and workers, which start executors as further processes."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True)
class Cluster:
    """A running cluster: the URL of its master, and the processes of its workers."""

    url: str
    workers: tuple[int, ...]

    def executors(self) -> list[int]:
        """Return the processes of the executors, which are children of the workers."""
        return [process for worker in self.workers for process in children_of(worker)]


@contextlib.contextmanager
def started(home: Path, directory: Path, environment: Mapping[str, str], workers: int = 2) -> Iterator[Cluster]:
    """Start a cluster of the Spark in a directory; its log and its executors' files are in another one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    name = "org.apache.spark.deploy.{}"
    commands = [[name.format("master.Master"), "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    worker = [name.format("worker.Worker"), "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1"]
    commands += [[*worker, "--memory", "1g", "--work-dir", str(directory / f"work{n}"), url] for n in range(workers)]
    with contextlib.ExitStack() as stack:
        log = stack.enter_context((directory / "cluster.log").open("w"))
        processes = []
        for command in commands:
            process = subprocess.Popen(  # noqa: S603 -- from above
                [str(home / "bin" / "spark-class"), *command], env=environment, stdout=log, stderr=subprocess.STDOUT
            )
            stack.callback(process.wait, 60)
            stack.callback(process.terminate)
            processes.append(process.pid)
        end = time.monotonic() + 120
        while len(re.findall("Registering worker", (directory / "cluster.log").read_text())) < workers:
            assert time.monotonic() < end, (directory / "cluster.log").read_text()[-3000:]
            time.sleep(0.2)
        yield Cluster(url, tuple(processes[1:]))


def children_of(parent: int) -> list[int]:
    """Return the processes that a process started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                found += [int(entry.name)] if int(fields[1]) == parent else []
    return found


def resident_of(process: int) -> int:
    """Return bytes of resident memory of a process, 0 if it has ended."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
