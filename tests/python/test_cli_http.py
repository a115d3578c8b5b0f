"""The command `kbat` with URLs of a web server that can't list directories, as most of them."""

from __future__ import annotations

import functools
import http.server
import io
import re
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pytest

from command_line import LOG, LOG_DIR, lines_of, run

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Files(http.server.SimpleHTTPRequestHandler):
    """Serves files, with the ranges that the base class ignores."""

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        path = Path(self.translate_path(self.path))
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted is None or not path.is_file():
            return super().send_head()
        content = path.read_bytes()
        first, last = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        self.end_headers()
        return io.BytesIO(content[first : last + 1])

    def do_PROPFIND(self) -> None:
        self.send_error(405)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a partition directory whose name has a space."""
    root = tmp_path_factory.mktemp("served")
    shutil.copytree(LOG_DIR / "codec-lz4-0", root / "my logs" / "codec-lz4-0")
    handler = functools.partial(_Files, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{{}}/codec-lz4-0"
        server.shutdown()


@pytest.mark.parametrize("name", ["my logs", "my%20logs"])
def test_segment_is_read_with_the_url_of_a_browser(url: str, name: str) -> None:
    assert lines_of(f"{url.format(name)}/{LOG}") == lines_of(LOG_DIR / "codec-lz4-0" / LOG)


def test_directory_of_a_server_without_listings_is_an_error_with_advice(url: str) -> None:
    done = run("ls", url.format("my%20logs"))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "this server does not list directories" in " ".join(done.stderr.split())
    assert "name the URLs of .log files" in " ".join(done.stderr.split())
