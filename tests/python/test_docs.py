"""The documentation names what there is."""

from __future__ import annotations

import re

import pytest

from data import DATA

ROOT = DATA.parents[1]


def all_names() -> set[str]:
    """All functions of the tests, Rust's and Python's."""
    sources = [*ROOT.glob("tests/rust/*.rs"), *ROOT.glob("tests/python/test_*.py"), *ROOT.glob("src/**/*.rs")]
    return {name for path in sources for name in re.findall(r"\b(?:fn|def) (\w+)", path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", ["edge-cases.md", "differences.md", "format-tests.md"])
def test_pages_name_tests_that_exist(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`([a-z0-9_]{12,})`", text) if "_" in name}
    assert len(named) > 20
    no_tests = {"partition_leader_epoch", "estimated_size", "decompressed_len", "read_committed"}
    assert named - all_names() - no_tests == set()


def test_every_edge_case_has_a_test_or_a_reason() -> None:
    text = (ROOT / "docs" / "edge-cases.md").read_text(encoding="utf-8")
    lines = [line.split("|") for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    rows = {int(cells[1]): "".join(cells[3:]).strip() for cells in lines}
    assert sorted(rows) == list(range(1, 93))
    assert [case for case, cells in rows.items() if not cells] == []


def test_every_rule_of_the_format_has_a_test_or_a_reason() -> None:
    text = (ROOT / "docs" / "format-tests.md").read_text(encoding="utf-8")
    exercised, surprising = text.split("\n## ")[1:]
    for part, last in (exercised, 109), (surprising, 30):
        lines = [line.split("|") for line in part.splitlines() if re.match(r"\| \d", line)]
        spans = [[int(number) for number in cells[1].split("to")] for cells in lines]
        assert [number for span in spans for number in range(span[0], span[-1] + 1)] == list(range(1, last + 1))
        assert [cells[1] for cells in lines if not "".join(cells[3:]).strip()] == []
