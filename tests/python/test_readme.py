"""The README's examples do what they say."""

from __future__ import annotations

import doctest
import re
from typing import TYPE_CHECKING

from data import DATA

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

ROOT = DATA.parents[1]


def test_readme_examples_print_what_they_print(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", text, flags=re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {"spark": spark, "out": tmp_path}, "README.md", "README.md", 0)
    assert len(test.examples) > 10
    output: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=output.append)
    assert result.failed == 0, "".join(output)


def test_readme_names_what_there_is() -> None:
    """Links within the repository lead somewhere."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
