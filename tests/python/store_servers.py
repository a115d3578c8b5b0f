"""Servers of object stores besides moto: versitygw, which is written in Go, and Azurite, Microsoft's for Azure.

`make test-stores` installs both into target/servers, and runs the tests of stores with each of them. KBAT_TEST_STORE in
the environment names the server of the tests; moto is the default. Unlike moto, these servers check signatures.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import os
import tempfile
from email.utils import formatdate
from pathlib import Path
from typing import Any

import obstore
from obstore.store import AzureStore, S3Store

from s3_server import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server

PROGRAMS = Path(os.environ.get("KBAT_SERVERS", Path(__file__).parents[2] / "target" / "servers"))
# Public: every Azurite has this account.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_API = "2021-08-06"
NAME = os.environ.get("KBAT_TEST_STORE", "moto")
#: The beginning of URLs of the tests' server.
SCHEME = "az" if NAME == "azurite" else "s3"


def start_server(name: str | None = None) -> S3Server:
    """Start the server with a name, by default the one in the environment."""
    return {"moto": S3Server, "versitygw": VersityServer, "azurite": AzuriteServer}[name or NAME]()


class _SignedServer(S3Server):
    """A server that is written to with signed requests."""

    def __init__(self) -> None:
        """Start the server in an empty directory."""
        # the directory exists as long as the server
        self._directory = tempfile.TemporaryDirectory(prefix="kbat-store-")
        self._store: Any = None
        super().__init__()

    def stop(self) -> None:
        """End the process, and remove its directory."""
        super().stop()
        self._directory.cleanup()

    def _open(self) -> S3Store | AzureStore:
        raise NotImplementedError

    @property
    def store(self) -> Any:  # noqa: ANN401 - stores of several types
        """The bucket."""
        if self._store is None:
            self._store = self._open()
        return self._store

    def put(self, key: str, data: bytes) -> str:
        """Write an object; its URL."""
        obstore.put(self.store, key, data)
        return self.url(key)

    def get(self, key: str) -> bytes:
        """Read an object."""
        return bytes(obstore.get(self.store, key).bytes())

    def delete(self, key: str) -> None:
        """Delete an object."""
        obstore.delete(self.store, key)

    def keys(self, prefix: str) -> list[str]:
        """List the objects below a prefix."""
        return sorted(str(one["path"]) for page in obstore.list(self.store, prefix=prefix) for one in page)


class VersityServer(_SignedServer):
    """versitygw over a directory: objects are files below it."""

    def _command(self) -> list[str]:
        root, metadata = (Path(self._directory.name, name) for name in ("objects", "metadata"))
        (root / BUCKET).mkdir(parents=True)
        metadata.mkdir()
        keys = ["--access", ACCESS_KEY, "--secret", SECRET_KEY]
        settings = ["--port", f"127.0.0.1:{self.port}", "--quiet", "--keep-alive", *keys]
        # not every file system has extended attributes
        return [str(PROGRAMS / "bin" / "versitygw"), *settings, "posix", "--sidecar", str(metadata), str(root)]

    def _make_bucket(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/")
        connection.getresponse().read()
        connection.close()

    def _open(self) -> S3Store:
        return S3Store(BUCKET, client_options={"allow_http": True}, **self.options)


class AzuriteServer(_SignedServer):
    """Azurite, with everything in memory."""

    scheme = "az"

    def _command(self) -> list[str]:
        program = PROGRAMS / "node_modules" / ".bin" / "azurite-blob"
        place = ["--blobHost", "127.0.0.1", "--blobPort", str(self.port)]
        return [
            str(program),
            *place,
            "--inMemoryPersistence",
            "--silent",
            "--disableTelemetry",
            "--skipApiVersionCheck",
        ]

    def _make_bucket(self) -> None:
        now = formatdate(usegmt=True)
        signed = f"x-ms-date:{now}\nx-ms-version:{_API}\n/{ACCOUNT}/{ACCOUNT}/{BUCKET}\nrestype:container"
        text = "PUT" + "\n" * 12 + signed
        digest = hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
        authorization = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        headers = {"x-ms-date": now, "x-ms-version": _API, "Authorization": authorization, "Content-Length": "0"}
        connection.request("PUT", f"/{ACCOUNT}/{BUCKET}?restype=container", headers=headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        if response.status >= 300:
            message = f"the container was not created: {response.status} {text[:200]}"
            raise AssertionError(message)

    def options_at(self, endpoint: str) -> dict[str, Any]:
        """Value of `storage_options` for a proxy of the server."""
        return {"account_name": ACCOUNT, "account_key": ACCOUNT_KEY, "endpoint": f"{endpoint}/{ACCOUNT}"}

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the environment with the same meaning as the options."""
        return {f"AZURE_STORAGE_{name.upper()}": value for name, value in self.options.items()}

    def _open(self) -> AzureStore:
        return AzureStore(BUCKET, client_options={"allow_http": True}, **self.options)
