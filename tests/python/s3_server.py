"""A real S3-compatible server in a process of its own: moto, which checks no signatures and keeps objects in memory."""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote
from xml.sax.saxutils import unescape

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

BUCKET = "kbat-tests"
ACCESS_KEY, SECRET_KEY = "AKIAKBATTESTS", "hunter2-is-a-secret"
START_SECONDS = 30
# The server writes the head and the body of an answer one by one. With Nagle's algorithm, each answer takes 40 ms.
_PROGRAM = """
import socketserver, sys
socketserver.StreamRequestHandler.disable_nagle_algorithm = True
from moto.server import main
main(sys.argv[1:])
"""
# Not checked, but without it nobody may write an object that exists.
_AUTHORIZATION = f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20260101/us-east-1/s3/aws4_request"
# What describes a case is not part of a log.
_ANSWERS = {".json", ".jsonl", ".txt", ".gz"}


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def log_files(directory: Path) -> list[Path]:
    """List the files of a directory of test data that a broker wrote."""
    return sorted(path for path in directory.rglob("*") if path.is_file() and path.suffix not in _ANSWERS)


class S3Server:
    """The server with one bucket. Every key of a test begins with a prefix that no other test uses."""

    #: The beginning of URLs.
    scheme = "s3"

    def __init__(self) -> None:
        """Start the server, and wait until it answers."""
        self.port = free_port()
        self._process = subprocess.Popen(  # noqa: S603 - a server of the tests
            self._command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._lock = threading.Lock()
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._make_bucket()
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise
                time.sleep(0.1)
            else:
                return

    def _command(self) -> list[str]:
        return [sys.executable, "-c", _PROGRAM, "-H", "127.0.0.1", "-p", str(self.port)]

    def _make_bucket(self) -> None:
        self._request("PUT", f"/{BUCKET}")

    def __enter__(self) -> Self:
        """Return the server."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self.stop()

    def stop(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    @property
    def endpoint(self) -> str:
        """URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> dict[str, Any]:
        """Value of `storage_options`."""
        return self.options_at(self.endpoint)

    def options_at(self, endpoint: str) -> dict[str, Any]:
        """Value of `storage_options` for a proxy of the server."""
        return options_for(endpoint)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the environment with the same meaning as the options."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
        }

    def url(self, key: str) -> str:
        """URL of an object or prefix."""
        return f"{self.scheme}://{BUCKET}/{key}"

    def put(self, key: str, data: bytes) -> str:
        """Write an object; its URL."""
        self._request("PUT", f"/{BUCKET}/{quote(key)}", data)
        return self.url(key)

    def get(self, key: str) -> bytes:
        """Read an object."""
        return self._request("GET", f"/{BUCKET}/{quote(key)}")

    def delete(self, key: str) -> None:
        """Delete an object."""
        self._request("DELETE", f"/{BUCKET}/{quote(key)}")

    def keys(self, prefix: str) -> list[str]:
        """List the objects below a prefix, of which there are at most 1000."""
        answer = self._request("GET", f"/{BUCKET}?list-type=2&prefix={quote(prefix, safe='')}%2F")
        return [unescape(key) for key in re.findall(r"<Key>(.*?)</Key>", answer.decode())]

    def upload(self, directory: Path, prefix: str, files: Iterable[Path] | None = None) -> str:
        """Write the files of a directory as objects under a prefix; the prefix's URL."""
        for path in log_files(directory) if files is None else files:
            self.put(f"{prefix}/{path.relative_to(directory).as_posix()}", path.read_bytes())
        return self.url(prefix)

    def _request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        with self._lock:
            try:
                self._connection.request(method, path, body=body, headers={"Authorization": _AUTHORIZATION})
                response = self._connection.getresponse()
                text = response.read()
            except (OSError, http.client.HTTPException):
                self._connection.close()
                raise
        if response.status >= 300:
            message = f"{method} {path}: {response.status} {text[:200]!r}"
            raise AssertionError(message)
        return text


def options_for(endpoint: str) -> dict[str, Any]:
    """Value of `storage_options` for an endpoint."""
    return {
        "endpoint": endpoint,
        "region": "us-east-1",
        "access_key_id": ACCESS_KEY,
        "secret_access_key": SECRET_KEY,
    }
