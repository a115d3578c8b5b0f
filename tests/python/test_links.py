"""The documentation site builds, and links lead somewhere."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from data import DATA

if TYPE_CHECKING:
    from pathlib import Path

ROOT = DATA.parents[1]
MARKDOWN = sorted(path.name for path in ROOT.glob("*.md"))


def check_links(*paths: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / ".ci" / "check-links", *paths], capture_output=True, text=True, check=False)  # noqa: S603 - ours


def test_the_site_builds_strictly_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    site = tmp_path / "site"
    built = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", site],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    # `make docs` puts the Rust documentation beside it
    (site / "rust" / "kbat").mkdir(parents=True)
    (site / "rust" / "kbat" / "index.html").touch()
    links = check_links(site)
    assert links.returncode == 0, links.stdout
    page = site / "index.html"
    page.write_text(page.read_text(encoding="utf-8") + '<a href="names.html#no-such-name">x</a>', encoding="utf-8")
    links = check_links(site)
    assert links.returncode == 1
    assert "no-such-name: no such anchor" in links.stdout


def test_the_links_of_the_pages_at_the_top_lead_somewhere(tmp_path: Path) -> None:
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"} <= set(MARKDOWN)
    done = check_links(tmp_path, *(ROOT / name for name in MARKDOWN))
    assert done.returncode == 0, done.stdout
    assert "semver.org" in done.stdout


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("nothing.md", "no such file"),
        ("http://kafka.apache.org/", "not a complete https address"),
        ("https://example.com/kbat", "not a complete https address"),
        ("https://localhost/", "not a complete https address"),
        ("https://kafka/", "not a complete https address"),
        ("https://user:secret@kafka.apache.org/", "not a complete https address"),
    ],
)
def test_links_that_lead_nowhere_are_named(link: str, reason: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"[good](page.md), `[code](nothing)` and [x]({link})\n\n```\n[code](nothing)\n```\n")
    done = check_links(tmp_path, page)
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, f"page.md: {link}: {reason}")
