"""The examples of the README and of the guides do what they say."""

from __future__ import annotations

import doctest
import re
import tempfile
from typing import TYPE_CHECKING

import pytest

from data import DATA

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROOT = DATA.parents[1]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
# Tables that Spark shows end with an empty line.
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_examples(page: Path, spark: SparkSession, out: Path) -> int:
    """Run a page's examples one after the other and compare what they print. Returns how many there are.

    In a Spark session of their own, so that what they register is not there for other tests.
    """
    text = page.read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", text, flags=re.DOTALL))
    names = {"spark": spark.newSession(), "out": out}
    test = doctest.DocTestParser().get_doctest(examples, names, page.name, page.name, 0)
    output: list[str] = []
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=output.append)
    assert result.failed == 0, "".join(output)
    return result.attempted


def targets(page: Path) -> list[str]:
    """Links of a page that lead to files."""
    found = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    return [target for target in found if "://" not in target]


def test_readme_examples_print_what_they_print(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    assert run_examples(ROOT / "README.md", spark, tmp_path) > 10


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_guide_examples_print_what_they_print(
    guide: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run_examples(guide, spark, tmp_path) > 5


def test_readme_names_what_there_is() -> None:
    """Links within the repository lead somewhere, and one to each guide."""
    found = targets(ROOT / "README.md")
    assert [target for target in found if not (ROOT / target).exists()] == []
    assert {ROOT / target for target in found} >= set(GUIDES)
