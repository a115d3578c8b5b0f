"""Copies the docstrings of the compiled module into its stubs: run it after a change in Rust.

`test_stub_docs.py` holds the two together.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path

import kbat
from kbat import _core

STUBS = sorted(Path(kbat.__file__).parent.glob("_core/*.pyi"))


def module_of(stub: Path) -> object:
    """Return the compiled module that a stub describes."""
    return _core if stub.stem == "__init__" else getattr(_core, stub.stem)


def written(lines: list[str], node: ast.ClassDef | ast.FunctionDef, text: str) -> None:
    """Replace the docstring of a definition."""
    old = node.body[0]
    if not isinstance(old, ast.Expr) or old.end_lineno is None:
        message = f"{node.name}: write a docstring first"
        raise ValueError(message)
    indent = " " * old.col_offset
    quoted = f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'
    indented = textwrap.indent(quoted, indent, lambda line: bool(line.strip()))
    lines[old.lineno - 1 : old.end_lineno] = indented.split("\n")


def synchronized(stub: Path) -> str:
    """Return the text of a stub with the docstrings of the compiled module."""
    text = stub.read_text(encoding="utf-8")
    lines = text.split("\n")
    found: list[tuple[ast.ClassDef | ast.FunctionDef, object]] = []
    todo: list[tuple[ast.Module | ast.ClassDef, object]] = [(ast.parse(text), module_of(stub))]
    while todo:
        node, owner = todo.pop()
        for child in node.body:
            if isinstance(child, ast.ClassDef | ast.FunctionDef) and not child.name.startswith("_"):
                compiled = getattr(owner, child.name)
                found.append((child, compiled))
                if isinstance(child, ast.ClassDef):
                    todo.append((child, compiled))
    for child, compiled in sorted(found, key=lambda one: -one[0].lineno):
        doc = inspect.cleandoc(compiled.__doc__ or "")
        if doc != (ast.get_docstring(child) or ""):
            written(lines, child, doc)
    return "\n".join(lines)


if __name__ == "__main__":
    for path in STUBS:
        path.write_text(synchronized(path), encoding="utf-8")
