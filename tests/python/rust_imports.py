"""Which modules of the crate import which, read from the sources.

python tests/python/rust_imports.py            # every cycle, with the imports that close it
python tests/python/rust_imports.py arrow      # the modules of one folder and what each imports

A module is a file or a folder of `src`. Two modules form a cycle if each imports the other, directly or through others
of the same folder. Imports of tests do not count. An item that a module re-exports counts as an import of the module
that defines it.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SRC = Path(__file__).parents[2] / "src"
Name = tuple[str, ...]

_TESTS = re.compile(r"\n#\[cfg\((?:all\()?test\b[^\n]*\n(?:#\[[^\n]*\n)*mod \w+ \{.*", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*")
_USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
_PATH = re.compile(r"\b(?:crate|super)(?:::\w+)+")
_TREE = re.compile(r"(.*?)\{(.*)\}", re.DOTALL)


class Import(NamedTuple):
    """One path that a module names."""

    module: Name
    path: Name


class Edge(NamedTuple):
    """Two modules of a folder, and the imports from the first of the second."""

    module: str
    imported: str
    imports: tuple[Import, ...]


def _module(file: Path) -> Name:
    parts = file.relative_to(SRC).with_suffix("").parts
    return parts[:-1] if parts[-1] in {"mod", "lib"} else parts


@cache
def modules() -> dict[Name, Path]:
    """Return the files of all modules by their names."""
    return {_module(file): file for file in sorted(SRC.rglob("*.rs"))}


def is_test(module: Name) -> bool:
    """Whether a module contains only tests."""
    return bool(module) and (module[-1] == "tests" or module[-1].endswith("_tests"))


@cache
def code_of(module: Name) -> str:
    """Return the source of a module without comments and tests."""
    return _COMMENT.sub("", _TESTS.sub("\n", modules()[module].read_text(encoding="utf-8")))


def _flat(tree: str) -> Iterator[str]:
    """Yield the paths of a tree such as `a::{b, c::{self, d}}`."""
    found = _TREE.fullmatch(tree.strip())
    if found is None:
        yield tree.split(" as ", maxsplit=1)[0].strip()
        return
    depth, start, inner = 0, 0, found[2] + ","
    for place, char in enumerate(inner):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            if inner[start:place].strip():
                yield from (found[1] + path for path in _flat(inner[start:place]))
            start = place + 1


def _absolute(path: str, module: Name) -> Name | None:
    """Return a path from the crate's root; nothing for a path of another crate."""
    parts = tuple(part for part in re.sub(r"\s", "", path).split("::") if part)
    if parts[0] == "crate":
        return tuple(part for part in parts[1:] if part != "self")
    if parts[0] not in {"self", "super"}:
        return None
    while parts and parts[0] in {"self", "super"}:
        module = module[: len(module) - (parts[0] == "super")]
        parts = parts[1:]
    return module + tuple(part for part in parts if part != "self")


def named_paths(module: Name) -> Iterator[Name]:
    """Yield every path of this crate that a module names."""
    code = code_of(module)
    texts = [path for found in _USE.finditer(code) for path in _flat(found[2])]
    texts += _PATH.findall(_USE.sub("", code))
    for text in texts:
        path = _absolute(text, module)
        if path is not None:
            yield path


@cache
def re_exports(module: Name) -> dict[str, Name]:
    """Return the paths of the items that a module exports and another one defines."""
    found = {}
    for exported in _USE.finditer(code_of(module)):
        if exported[1]:
            for text in _flat(exported[2]):
                path = _absolute(text, module)
                parts = tuple(re.sub(r"\s", "", text).split("::"))
                if path is None and (*module, parts[0]) in modules():
                    path = module + parts
                if path:
                    found[path[-1]] = path
    return found


def definition(path: Name) -> Name:
    """Return the module that defines the item at a path."""
    seen = {path}
    while True:
        length = next(length for length in range(len(path), -1, -1) if path[:length] in modules())
        rest = path[length:]
        target = re_exports(path[:length]).get(rest[0]) if rest else None
        if target is None or (*target, *rest[1:]) in seen:
            return path[:length]
        path = (*target, *rest[1:])
        seen.add(path)


def folders() -> list[Name]:
    """Return the folders of modules, the crate's root included."""
    return sorted({module[:-1] for module in modules() if module})


def edges(folder: Name) -> list[Edge]:
    """Return which modules of a folder import which others of it."""
    depth = len(folder)
    found: defaultdict[tuple[str, str], list[Import]] = defaultdict(list)
    for module in modules():
        if module[:depth] != folder or len(module) == depth or is_test(module):
            continue
        for path in named_paths(module):
            target = definition(path)
            if target[:depth] == folder and len(target) > depth and target[depth] != module[depth]:
                found[module[depth], target[depth]].append(Import(module, path))
    return [Edge(*pair, tuple(imports)) for pair, imports in sorted(found.items())]


def cycles(pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Return the groups of names that reach each other."""
    following: defaultdict[str, set[str]] = defaultdict(set)
    for one, other in pairs:
        following[one].add(other)

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        todo = [start]
        while todo:
            new = following[todo.pop()] - found
            found |= new
            todo += new
        return found

    reach = {name: reached(name) for name in list(following)}
    groups = {frozenset(other for other in reach[name] if name in reach.get(other, ())) for name in reach}
    return sorted((set(group) for group in groups if group), key=sorted)


def show(edge: Edge) -> str:
    """Return an edge with the paths that make it."""
    paths = sorted({f"{'::'.join(found.path)} in {'::'.join(found.module)}" for found in edge.imports})
    return f"{edge.module} -> {edge.imported}: {', '.join(paths)}"


def cycles_of(folder: Name) -> list[str]:
    """Return a text for each cycle of a folder."""
    all_edges = edges(folder)
    texts = []
    for group in cycles((edge.module, edge.imported) for edge in all_edges):
        inside = [show(edge) for edge in all_edges if {edge.module, edge.imported} <= group]
        texts.append(f"{'::'.join(folder) or 'crate'}: {', '.join(sorted(group))}\n    " + "\n    ".join(inside))
    return texts


if __name__ == "__main__":
    if sys.argv[1:]:
        lines = [show(edge) for edge in edges(tuple(sys.argv[1].split("::")))]
    else:
        lines = [text for folder in folders() for text in cycles_of(folder)]
    sys.stdout.writelines(f"{line}\n" for line in lines)
