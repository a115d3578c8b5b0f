"""Headless Chromium, for pages that a person would open."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--hide-scrollbars", "--enable-logging=stderr", "--virtual-time-budget=10000",
    # a page that works offline asks for nothing
    "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip


class Opened(NamedTuple):
    """A page after its scripts have run: its elements as HTML, and what it wrote to the console."""

    html: str
    console: list[str]


def open_page(page: Path) -> Opened:
    """Open a file and wait for its scripts."""
    done = _run(page, "--dump-dom", "--window-size=1280,900")
    return Opened(done.stdout, re.findall(r"CONSOLE.*", done.stderr))


def screenshot(page: Path, image: Path, width: int, height: int, *, is_dark: bool = False) -> None:
    """Write a picture of a file."""
    # 0 is dark, 1 is light
    scheme = f"--blink-settings=preferredColorScheme={0 if is_dark else 1}"
    _run(page, f"--screenshot={image}", f"--window-size={width},{height}", scheme)


def _run(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("Chromium is missing; install it with: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [program, *_OPTIONS, f"--user-data-dir={profile}", *options, page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)  # noqa: S603 - a browser
