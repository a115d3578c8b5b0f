"""The documentation agrees with the code: names, tables, figures."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import kbat.batches
import kbat.results
import spark_page
from data import DATA

if TYPE_CHECKING:
    from pathlib import Path

ROOT = DATA.parents[1]
EDGE_CASES = "tests/edge-cases.md"
FORMAT_TESTS = "tests/format-tests.md"
DIFFERENCES = "tests/differences.md"


def all_names() -> set[str]:
    """All functions of the tests, Rust's and Python's."""
    sources = [*ROOT.glob("tests/rust/*.rs"), *ROOT.glob("tests/python/test_*.py"), *ROOT.glob("src/**/*.rs")]
    return {name for path in sources for name in re.findall(r"\b(?:fn|def) (\w+)", path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", [EDGE_CASES, DIFFERENCES, FORMAT_TESTS])
def test_pages_name_tests_that_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`([a-z0-9_]{12,})`", text) if "_" in name}
    assert len(named) > 20
    no_tests = {"partition_leader_epoch", "estimated_size", "decompressed_len", "read_committed"}
    assert named - all_names() - no_tests == set()


def rules_of(page: str) -> list[str]:
    """The first cells of all tables below the first heading."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [line.split("|")[1].strip() for line in lines]


def test_the_differences_from_kafka_and_their_tests_are_the_same_rules() -> None:
    assert rules_of("docs/differences.md") == rules_of(DIFFERENCES)


def test_every_edge_case_has_a_test_or_a_reason() -> None:
    text = (ROOT / EDGE_CASES).read_text(encoding="utf-8")
    lines = [line.split("|") for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    rows = {int(cells[1]): "".join(cells[3:]).strip() for cells in lines}
    assert sorted(rows) == list(range(1, 93))
    assert [case for case, cells in rows.items() if not cells] == []


def test_every_rule_of_the_format_has_a_test_or_a_reason() -> None:
    text = (ROOT / FORMAT_TESTS).read_text(encoding="utf-8")
    exercised, surprising = text.split("\n## ")[1:]
    for part, last in (exercised, 109), (surprising, 30):
        lines = [line.split("|") for line in part.splitlines() if re.match(r"\| \d", line)]
        spans = [[int(number) for number in cells[1].split("to")] for cells in lines]
        assert [number for span in spans for number in range(span[0], span[-1] + 1)] == list(range(1, last + 1))
        assert [cells[1] for cells in lines if not "".join(cells[3:]).strip()] == []


def test_the_page_of_spark_options_is_that_of_the_tables() -> None:
    assert spark_page.PAGE.read_text(encoding="utf-8") == spark_page.page(), "run python tests/python/spark_page.py"


def names_of(page: str, heading: str) -> set[str]:
    """The names in the first cells of the table under a heading."""
    part = page.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]
    return set(re.findall(r"^\| `(\w+)`", part, flags=re.MULTILINE))


def test_the_page_of_names_has_all_of_them() -> None:
    page = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
    error = (ROOT / "src" / "error.rs").read_text(encoding="utf-8").split("pub fn name(")[1].split("impl fmt")[0]
    assert names_of(page, "Errors") == set(re.findall(r'=> "(\w+)"', error))
    verify = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/repair/verify").glob("*.rs"))
    no_kinds = {"info", "warning", "error", "index", "timeindex", "txnindex"}  # severities and extensions of files
    assert names_of(page, "Findings of verify") == set(re.findall(r'"([a-z_]{3,})"', verify)) - no_kinds
    recovery = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/repair").glob("*.rs"))
    assert {name for name in names_of(page, "Dropped bytes") if f'"{name}"' not in recovery} == set()


def test_what_verify_finds_in_the_corpora_is_named() -> None:
    page = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
    named = names_of(page, "Findings of verify") | names_of(page, "Errors") | names_of(page, "Dropped bytes")
    partitions = [path for path in (DATA / "corpus").iterdir() if any(path.glob("[0-9]" * 20 + ".log"))]
    found = {finding.kind for path in partitions for finding in kbat.verify(path).findings}
    assert len(found) > 5
    assert found - named == set()


def test_the_api_pages_have_every_public_name_once() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))
    names = re.findall(r"^::: kbat\.([\w.]+)$", pages, flags=re.MULTILINE)
    top = set(kbat.__all__) - {"__version__"}
    others = {
        f"{module.__name__.removeprefix('kbat.')}.{name}"
        for module in (kbat.results, kbat.batches, kbat.errors)
        for name in set(module.__all__) - top
    }
    assert sorted(name for name in names if not name.startswith("spark.")) == sorted(top | others)


def test_names_of_submodules_are_attributes_of_kbat() -> None:
    assert dir(kbat) == sorted(kbat.__all__)
    for module in (kbat.results, kbat.batches, kbat.errors):
        for name in module.__all__:
            assert getattr(kbat, name) is getattr(module, name), name
    with pytest.raises(AttributeError, match="module 'kbat' has no attribute 'Findings'"):
        _ = kbat.Findings  # type: ignore[attr-defined]


def test_the_benchmark_table_has_the_figures_of_the_result_file() -> None:
    result: dict[str, Any] = json.loads((ROOT / "benches" / "results" / "decode.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]
    titles = rows[0][1:]
    found = {row[0]: row[1:] for row in rows[2:]}
    for file in result["files"]:
        rates = [file["rates"][title] for title in titles]
        assert [None if cell == "no v1" else float(cell) for cell in found[file["file"]]] == rates
    assert result["date"] in page


def test_the_chart_is_that_of_the_result_file(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    subprocess.run([sys.executable, ROOT / "benches" / "python" / "chart.py", tmp_path], check=True)  # noqa: S603 - ours
    for name in ("speed.svg", "speed-dark.svg"):
        drawn, kept = (tmp_path / name).read_bytes(), (ROOT / "docs" / "images" / name).read_bytes()
        assert drawn == kept, "run python benches/python/chart.py"


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md", "benches/README.md", "docs/formats.md"])
def test_paths_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w/.])((?:src|python|tests|docs|benches|fuzz|examples|\.ci)/[\w./-]*[\w/])", text))
    assert named
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_the_navigation_of_the_site_has_every_page() -> None:
    """The navigation of the site has each page; mkdocs fails on a page that it does not have."""
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if page not in config} == set()
