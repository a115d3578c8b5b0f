"""Spark Connect: a server and its clients, each a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from data import DATA

if TYPE_CHECKING:
    from collections.abc import Iterator

HOME = Path(next(iter(pyspark.__path__)))
CLIENT = Path(__file__).with_name("connect_client.py")
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_STARTED = re.compile(r"Spark Connect server started at: 127.0.0.1:(\d+)")


def environment() -> dict[str, str]:
    """Return the environment of a server or client, whose Python is that of the tests."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    return ours | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "UTC",
    }


@contextlib.contextmanager
def started(directory: Path, *options: str) -> Iterator[str]:
    """Start a server with options of `spark-submit`; its log is in the directory. Yields its URL."""
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": 0,
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # saves a third of the processor time
        "spark.sql.shuffle.partitions": 1,
        "spark.ui.enabled": "false",
    }
    # as start-connect-server.sh does, which allows one server for each user of a machine
    command = [str(HOME / "bin" / "spark-submit"), "--class", _CLASS, "--master", "local[2]", *options]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command.append("spark-internal")
    with contextlib.ExitStack() as stack:
        log = stack.enter_context((directory / "server.log").open("w"))
        server = subprocess.Popen(  # noqa: S603 -- from above
            command, cwd=directory, env=environment(), stdout=log, stderr=subprocess.STDOUT
        )
        stack.callback(server.wait, 60)
        stack.callback(server.terminate)
        end = time.monotonic() + 120
        while (found := _STARTED.search(text := (directory / "server.log").read_text())) is None:
            assert server.poll() is None and time.monotonic() < end, text[-3000:]  # noqa: PT018 -- one condition
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{found[1]}"


def outcomes(remote: str, directory: Path, way: str | None = None) -> dict[str, Any]:
    """Run the client, and return what it prints."""
    directory.mkdir()
    given = {"remote": remote, "log_dir": os.fspath(DATA / "log-dir"), "directory": os.fspath(directory), "way": way}
    done = subprocess.run(  # noqa: S603 -- from above
        [sys.executable, str(CLIENT), json.dumps(given)],
        check=False,
        capture_output=True,
        text=True,
        cwd=directory,
        env=environment(),
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
