"""An HTTP proxy with faults at chosen requests, which also counts requests and bytes."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from s3_server import options_for

Kind = Literal[
    "reset",
    "reset in body",
    "error",
    "slow down",
    "truncate",
    "drip",
    "stall",
    "longer",
    "shorter",
    "whole",
    "other range",
]
_PACKET_LEN = 256 << 10
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "server", "date"}
_SLOW_DOWN = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
_INTERNAL = b"<?xml version='1.0'?><Error><Code>InternalError</Code><Message>Try again.</Message></Error>"


@dataclass
class Request:
    """A request that the proxy received, and what it answered."""

    number: int
    method: str
    path: str
    query: str
    range: str | None
    status: int = 0
    body_len: int = 0

    @property
    def is_read(self) -> bool:
        """Whether it reads an object, rather than listing a prefix."""
        return self.method == "GET" and not self.is_list

    @property
    def is_write(self) -> bool:
        """Whether it writes an object, or begins, completes or cancels an upload in parts."""
        return self.method in {"PUT", "POST", "DELETE"}

    @property
    def is_list(self) -> bool:
        """Whether it lists a prefix."""
        return "list-type" in self.query or "comp=list" in self.query


# Decides what happens to a request. None: nothing.
Plan: TypeAlias = Callable[[Request], Kind | None]


def no_faults(_request: Request) -> Kind | None:
    """Plan without faults."""
    return None


@dataclass
class FaultProxy:
    """The proxy, as a context. `requests` are those since the last :meth:`clear`."""

    port: int
    plan: Plan = no_faults
    requests: list[Request] = field(default_factory=list)
    #: Seconds before each answer.
    delay: float = 0.0
    #: Bytes per second of all answers together.
    rate: float | None = None
    options_at: Callable[[str], dict[str, Any]] = options_for

    def __post_init__(self) -> None:
        """Start the threads."""
        self._lock = threading.Lock()
        self._free_at = 0.0
        self.released = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """Return the proxy."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the proxy."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def options(self) -> dict[str, Any]:
        """Value of `storage_options` for the server through the proxy."""
        return self.options_at(f"http://127.0.0.1:{self._server.server_address[1]}")

    def clear(self, plan: Plan = no_faults) -> None:
        """Forget the requests, and set another plan."""
        with self._lock:
            self.requests, self.plan = [], plan

    def reads(self) -> list[Request]:
        """Requests for bytes of objects."""
        return [request for request in self.requests if request.is_read]

    def lists(self) -> list[Request]:
        """Requests that list a prefix."""
        return [request for request in self.requests if request.is_list]

    def body_len(self) -> int:
        """Bytes of objects that were sent."""
        return sum(request.body_len for request in self.reads())

    def pace(self, size: int) -> None:
        """Wait until the line is free for some bytes."""
        if self.rate is None:
            return
        with self._lock:
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + size / self.rate
            pause = self._free_at - now
        time.sleep(pause)

    def note(self, method: str, path: str, asked: str | None) -> tuple[Request, Kind | None]:
        """Record a request, and decide what happens to it."""
        parts = urlsplit(path)
        with self._lock:
            request = Request(len(self.requests), method, parts.path, parts.query, asked)
            self.requests.append(request)
            return request, self.plan(request)


class _Server(ThreadingHTTPServer):
    proxy: FaultProxy
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that close connections."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server
    upstream: http.client.HTTPConnection | None = None

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def handle_request(self) -> None:
        """Forward a request, and send the answer with a fault."""
        proxy = self.server.proxy
        length = int(self.headers.get("Content-Length") or 0)
        sent = self.rfile.read(length) if length else None
        request, kind = proxy.note(self.command, self.path, self.headers.get("Range"))
        if proxy.delay:
            time.sleep(proxy.delay)
        if kind == "reset":
            self._reset()
            return
        if kind in {"error", "slow down"}:
            status, text = (500, _INTERNAL) if kind == "error" else (503, _SLOW_DOWN)
            request.status = status
            self._send(status, [("Content-Type", "application/xml")], text, len(text))
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        if kind == "whole":
            headers = {name: value for name, value in headers.items() if name.lower() != "range"}
        if self.upstream is None:
            self.upstream = http.client.HTTPConnection("127.0.0.1", proxy.port)
        self.upstream.request(self.command, self.path, body=sent, headers=headers)
        answer = self.upstream.getresponse()
        body = answer.read()
        request.status = answer.status
        named = [(name, value) for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP]
        body_len = len(body) if self.command != "HEAD" else int(answer.getheader("Content-Length") or 0)
        if kind == "other range":
            named = [(n, "bytes 1-2/3" if n.lower() == "content-range" else v) for n, v in named]
        if kind == "shorter" and len(body) > 1:
            body = body[: len(body) // 2]
            body_len = len(body)
        if kind == "longer":
            body_len += 10
        request.body_len = len(body)
        self._send_body(answer.status, named, body, body_len, kind)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request  # noqa: N815 - names that http.server calls

    def _send(self, status: int, headers: list[tuple[str, str]], body: bytes, body_len: int) -> None:
        self._head(status, headers, body_len)
        if self.server.proxy.rate is None:
            self.wfile.write(body)
            return
        whole = memoryview(body)
        for start in range(0, len(body), _PACKET_LEN):
            packet = whole[start : start + _PACKET_LEN]
            self.server.proxy.pace(len(packet))
            self.wfile.write(packet)

    def _head(self, status: int, headers: list[tuple[str, str]], body_len: int) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(body_len))
        self.end_headers()

    def _send_body(
        self, status: int, headers: list[tuple[str, str]], body: bytes, body_len: int, kind: Kind | None
    ) -> None:
        if kind == "stall":
            self._head(status, headers, body_len)
            self.wfile.write(body[: len(body) // 2])
            self.server.proxy.released.wait(60)
            self.close_connection = True
            return
        if kind == "drip":
            self._head(status, headers, body_len)
            step = max(1, len(body) // 10)
            for start in range(0, len(body), step):
                self.wfile.write(body[start : start + step])
                self.wfile.flush()
                time.sleep(0.01)
            return
        if kind == "reset in body":
            self._head(status, headers, body_len)
            self.wfile.write(body[: len(body) // 2])
            self._reset()
            return
        if kind == "truncate":
            body = body[: len(body) // 2]
        self._send(status, headers, body, body_len)
        if kind in {"truncate", "longer"}:
            self.close_connection = True

    def _reset(self) -> None:
        """Close the connection with RST instead of FIN."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def finish(self) -> None:
        """Close the connection to the server with that of the client."""
        if self.upstream is not None:
            self.upstream.close()
        super().finish()
