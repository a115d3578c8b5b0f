"""The docstrings of stubs and binary are equal, so that editors show the same text as `help()`."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import kbat
from kbat import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

STUBS = sorted(Path(kbat.__file__).parent.glob("_core/*.pyi"))


def documented(node: ast.Module | ast.ClassDef, owner: object) -> Iterator[tuple[str, str, str]]:
    """Yield name, the stub's docstring and the binary's of all classes, functions and attributes below a node."""
    for child in node.body:
        if not isinstance(child, ast.ClassDef | ast.FunctionDef) or child.name.startswith("_"):
            continue
        of_binary = getattr(owner, child.name)
        yield child.name, ast.get_docstring(child) or "", inspect.cleandoc(of_binary.__doc__ or "")
        if isinstance(child, ast.ClassDef):
            yield from documented(child, of_binary)


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.stem)
def test_a_stub_says_what_the_binary_says(stub: Path) -> None:
    module = _core if stub.stem == "__init__" else getattr(_core, stub.stem)
    assert isinstance(module, ModuleType)
    found = list(documented(ast.parse(stub.read_text()), module))
    assert found
    for name, in_stub, in_binary in found:
        assert in_stub == in_binary, name
