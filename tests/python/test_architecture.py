"""Imports between the modules of the crate."""

import pytest

import rust_imports
from rust_imports import Name

# Names in the crate's root that only a user of the crate imports from there.
ROOT: Name = ()


@pytest.mark.parametrize("folder", rust_imports.folders(), ids=lambda folder: "::".join(folder) or "crate")
def test_modules_of_a_folder_form_no_cycle(folder: Name) -> None:
    found = rust_imports.cycles_of(folder)
    assert not found, "\n".join(found)


def test_items_are_imported_from_the_module_that_defines_them() -> None:
    exported = set(rust_imports.re_exports(ROOT)) - {module[0] for module in rust_imports.modules() if module}
    assert {"Batch", "Error", "Limits"} <= exported
    found = [
        f"{'::'.join(module)}: crate::{'::'.join(path)}"
        for module in rust_imports.modules()
        if module and not rust_imports.is_test(module)
        for path in rust_imports.named_paths(module)
        if path and path[0] in exported
    ]
    assert not found, "\n".join(found)


def test_cycles_are_found() -> None:
    pairs = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "d")]
    assert rust_imports.cycles(pairs) == [{"a", "b", "c"}]
    assert rust_imports.cycles([("a", "b"), ("b", "c")]) == []


def test_imports_are_read_from_sources() -> None:
    edges = {(edge.module, edge.imported) for edge in rust_imports.edges(("log",))}
    assert ("headers", "reader") in edges  # use crate::log::reader::SegmentReader
    assert ("committed", "reader") in edges  # use crate::log::SegmentReader, which log/mod.rs re-exports
    assert rust_imports.definition(("format", "NewHeader")) == ("format", "record")
    assert rust_imports.definition(("Batch",)) == ("format", "batch")
