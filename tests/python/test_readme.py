"""The examples of the README and of the documentation print what the pages show."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from data import DATA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = DATA.parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
# Tables that Spark shows end with an empty line.
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# The kinds of code blocks: run here, run by `cargo test`, or for readers to type or compare.
LANGUAGES = {"pycon", "console", "rust", "sh", "text"}
# Examples without output to compare, each with its reason.
NOT_RUN = {
    "docs/guides/backfill.md": {"python"},  # a read of `format("kafka")`, which needs a broker
    "docs/guides/spark-jvm.md": {"python", "scala", "sql"},  # test_spark_versions starts such sessions
}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a page in a language."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


def files_of(page: Path) -> dict[str, str]:
    """The files that a page shows, by name. Its commands may use them."""
    text = page.read_text(encoding="utf-8")
    return dict(re.findall(r'^```python title="(\w+\.py)"\n(.*?)^```$', text, flags=re.DOTALL | re.MULTILINE))


def run_examples(page: Path, spark: SparkSession, out: Path) -> int:
    """Run a page's examples one after the other and compare what they print. Returns their number.

    They run in a Spark session of their own, so that other tests do not see what they register.
    """
    examples = "\n".join(blocks(page, "pycon"))
    names = {"spark": spark.newSession(), "out": out}
    test = doctest.DocTestParser().get_doctest(examples, names, page.name, page.name, 0)
    output: list[str] = []
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=output.append)
    assert result.failed == 0, "".join(output)
    return result.attempted


@pytest.mark.parametrize("page", pages_with("pycon"), ids=name_of)
def test_examples_print_what_the_page_shows(
    page: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run_examples(page, spark, tmp_path) > 0


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a block and their output."""
    return [
        (command, shown) for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, flags=re.MULTILINE)
    ]


@pytest.mark.parametrize("page", pages_with("console"), ids=name_of)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    files = files_of(page)
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in blocks(page, "console"):
        assert commands(block), block
        for command, shown in commands(block):
            assert command.startswith("kbat ") or command in {f"python {name}" for name in files}, command
            done = subprocess.run(  # noqa: S602 - the commands of our own pages, pipes among them
                command,
                shell=True,
                cwd=tmp_path,
                env={**os.environ, "PATH": path, "COLUMNS": "130", "TERM": "dumb"},
                capture_output=True,
                text=True,
                check=False,
            )
            printed = done.stdout + done.stderr
            assert doctest.OutputChecker().check_output(shown, printed, OPTIONS), f"$ {command}\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_has_a_language_that_something_checks(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # those with a title are files, which commands of the page run
    fences = re.findall(r"^ *```(\w+)( title)?", text, flags=re.MULTILINE)
    languages = {language for language, title in fences if not title}
    assert languages - LANGUAGES - NOT_RUN.get(name_of(page), set()) == set()


def targets(page: Path) -> list[str]:
    """Links of a page that lead to files."""
    found = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    return [target for target in found if "://" not in target]


def test_links_of_the_readme_lead_to_files_and_to_each_guide() -> None:
    found = targets(README)
    assert [target for target in found if not (ROOT / target).exists()] == []
    assert {ROOT / target for target in found} >= set((ROOT / "docs" / "guides").glob("*.md"))


def test_the_readme_is_short() -> None:
    """It has 600 to 800 words, not counting code, tags and link targets."""
    text = re.sub(r"```.*?```", "", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    words = re.sub(r"<[^>]*>|\]\([^)]*\)", " ", text).split()
    assert 600 <= sum(any(char.isalnum() for char in word) for word in words) <= 800
