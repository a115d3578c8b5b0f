"""The codecs are the rows of one table in `src/compression/mod.rs`, and all lists of codecs are derived from it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from kbat._core import build
from kbat.compression import CODECS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
STUB = ROOT / "python" / "kbat" / "_core" / "__init__.pyi"
# The files that a fifth codec touches, apart from its own and Cargo.toml.
TABLE = {"src/compression/mod.rs", "python/kbat/_core/__init__.pyi"}
# Files that name several codecs although a fifth one does not touch them, and the reason.
EXCEPTIONS = {
    "src/parquet/options.rs": "the codecs of Parquet's pages",
    "python/kbat/cli/export.py": "the codecs of Parquet and of Arrow's IPC format",
    "src/store/contents.rs": "formats of files that are not segments",
    "src/store/listing.rs": "endings of compressed copies of segments",
    "src/fuzzing.rs": "codecs of the conversions that a fuzz target tries",
    "python/kbat/advise/codecs.py": "the usual order, and levels to measure; other codecs get their default level",
}
_NAMES = [name for name in CODECS if name != "none"]
_NAMED = re.compile(rf"\b(?:{'|'.join(_NAMES)})\b")
_RUST_NAMED = re.compile(rf"\bCompression::({'|'.join(name.capitalize() for name in _NAMES)})\b")
_RUST_COMMENT = re.compile(r"(?m)^\s*//.*$|\s//\s.*$")
_RUST_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_RUST_TESTS = re.compile(r"\n#\[cfg\((?:all\()?test\b[^\n]*\n(?:#\[[^\n]*\n)*mod \w+ \{.*", re.DOTALL)


def named_in_rust(text: str) -> set[str]:
    """Return the codecs that code names outside of comments and tests, as texts or as variants."""
    code = _RUST_COMMENT.sub("", _RUST_TESTS.sub("", text))
    variants = {name.lower() for name in _RUST_NAMED.findall(code)}
    return variants.union(*(_NAMED.findall(literal) for literal in _RUST_TEXT.findall(code)))


def named_in_python(text: str) -> set[str]:
    """Return the codecs that code names in texts, except in docstrings."""
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            found.update(_NAMED.findall(node.value))
    return found


def files_with_several_codecs() -> Iterator[str]:
    """Yield the files of the crate and the package that name two codecs or more."""
    for folder, suffix, named in (("src", ".rs", named_in_rust), ("python", ".py", named_in_python)):
        for file in sorted((ROOT / folder).rglob(f"*{suffix}*")):
            is_test = file.stem == "tests" or "tests" in file.parts
            if file.suffix not in {".rs", ".py", ".pyi"} or is_test:
                continue
            text = file.read_text(encoding="utf-8")
            if len(set(_NAMED.findall(text.lower()))) > 1 and len(named(text)) > 1:
                yield file.relative_to(ROOT).as_posix()


def test_no_other_file_has_a_list_of_codecs() -> None:
    assert set(files_with_several_codecs()) == TABLE | set(EXCEPTIONS)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('const CODECS: [&str; 2] = ["none", "zstd"];', {"zstd"}),
        ("let one = [Compression::Gzip, Compression::Lz4]; // not snappy", {"gzip", "lz4"}),
        ('/// such as "snappy"\nlet text = "use gzip";\n#[cfg(test)]\nmod tests {\n    "lz4"\n}\n', {"gzip"}),
    ],
)
def test_codecs_are_found_in_rust(text: str, named: set[str]) -> None:
    assert named_in_rust(text) == named


def test_codecs_are_found_in_python() -> None:
    assert named_in_python('"""snappy"""\nx: Literal["gzip"] = "gzip"  # lz4\ndef f():\n    "lz4"\n') == {"gzip"}


def test_the_type_of_the_stub_has_the_names_of_the_table() -> None:
    aliases = [
        node.value
        for node in ast.parse(STUB.read_text(encoding="utf-8")).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "_Compression"
    ]
    [literal] = aliases
    assert literal is not None
    assert [node.value for node in ast.walk(literal) if isinstance(node, ast.Constant)] == list(CODECS)


def test_the_table_has_the_codecs_of_kafka() -> None:
    assert build.codecs() == [
        ("none", None, None, 0),
        ("gzip", 6, (1, 9), 0),
        ("snappy", None, None, 0),
        ("lz4", 9, (1, 17), 0),
        ("zstd", 3, (-131072, 22), 2),
    ]


@pytest.mark.parametrize("name", CODECS)
def test_the_default_level_is_what_the_codec_uses(name: Any) -> None:  # noqa: ANN401 -- of a literal type
    def built(**level: Any) -> bytes:  # noqa: ANN401 -- a level or nothing
        builder = kbat.BatchBuilder(compression=name, **level)
        for number in range(500):
            builder.append(b"key", b"value %d" % (number % 7 * number), timestamp=0)
        return builder.finish()

    codec = CODECS[name]
    if codec.levels is None:
        with pytest.raises(ValueError, match="has no levels"):
            built(level=1)
        return
    assert built() == built(level=codec.default_level)
    assert built() != built(level=codec.levels[1])
    for level in (codec.levels[0] - 1, codec.levels[1] + 1):
        with pytest.raises(ValueError, match=f"has levels {codec.levels[0]} to {codec.levels[1]}, not {level}"):
            built(level=level)


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_the_oldest_format_is_the_first_that_accepts_the_codec(magic: int, name: Any) -> None:  # noqa: ANN401 -- of a literal type
    if magic >= CODECS[name].min_magic:
        assert kbat.BatchBuilder(magic, name).finish() == b""
    else:
        with pytest.raises(ValueError, match=f"{name} compression is not supported for magic {magic}"):
            kbat.BatchBuilder(magic, name)
