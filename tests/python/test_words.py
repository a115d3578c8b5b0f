"""The check of the words that people read: it passes here, and fails on sentences that were corrected once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

import words

if TYPE_CHECKING:
    from pathlib import Path

# Sentences of a first version, each from a README, a page, a docstring, a message or a comment.
SENTENCES = (
    (
        "Or it writes such bytes and whole partition directories that a broker serves, or says what is wrong "
        "with damaged ones, where, and what can be saved."
    ),
    "What only a running broker answers: offset and timestamp lookups",
    "(what is missing is named, with the command that installs it)",
    "A session that is started with these takes rows up to one and a half times as fast.",
    "Every contestant met the same records (check sums agree).",
    "The line for v1 uncompressed was run again after a change, with the others in it but for Python's.",
    "The command, with the peers' decoders as contestants: a harness outside this repository.",
    "end_offset: First offset not to give any more.",
    (
        "What was aborted is told by the markers in the partition's segments, and their transaction indexes; "
        "for a buffer or a file outside a partition directory, by itself."
    ),
    "What bounds leave out by its header is not checked with fail, as nobody reads it.",
    "partition: Partition likewise.",
    "max_bytes: Bytes of keys, values and headers after which an Arrow batch ends with the Kafka batch.",
    "A column that does not exist, or an argument that can't be.",
    "CorruptError: While iterating, where no batch can be.",
    "a damaged batch ends the job, is left out, or is left out and told of in a row with the column error",
    "those marked come unasked",
    "option x='a' says otherwise than y: leave one out",
    "Small batches are what no codec can help: linger.ms and batch.size of the producers can.",
    "Information is no reason to act: zeros behind the entries of an index are how a broker leaves it that was killed.",
    "they are in the files; where the log starts says a checkpoint of the log directory above, which a copy has not",
    "a field holds what it must not",
    "what was asked for can't be",
    (
        "Removes what killed runs left that had the same result in mind: nobody holds its lock. That it can't "
        "be removed stops nobody."
    ),
    (
        "Goes on after damage, perhaps inside a batch that was given: lengths that lead far ahead are believed "
        "so often only."
    ),
    "As new, for somebody who looks up now and then.",
    "Not to be had.",
    "Not to be had, but for the schema it has, which a union asks for.",
)
REWRITTEN = (
    (
        "It also writes batches and complete partition directories that a broker can serve, and diagnoses and repairs "
        "damaged ones."
    ),
    "Broker semantics without a broker: offset and timestamp lookups.",
    "make checks for each tool and prints how to install what is missing",
    "All libraries decoded the same records (verified by checksum).",
    "Read up to, but not including, this offset.",
    "An unknown column or an invalid argument.",
    "While iterating, if the bytes at the current position are not a valid batch.",
    "fail: stop the job; skip: drop damaged batches; report: drop them and emit a row describing each in column error",
    "columns marked are included by default",
    "options x and y conflict; set only one of them",
    "There is no broker, and the file is no longer open.",
    "An error message says what failed, where, and what to do.",
)


def test_pages_for_users_have_none_of_the_phrases() -> None:
    assert [str(hit) for hit in words.unclean()] == []


def test_no_directory_has_more_phrases_than_its_baseline() -> None:
    assert words.exceeded(words.counts(), words.baseline()) == []


def test_a_directory_with_one_phrase_more_fails() -> None:
    allowed = words.baseline()
    name = next(iter(allowed))
    assert words.exceeded(Counter(allowed), allowed) == []
    assert len(words.exceeded(Counter({**allowed, name: allowed[name] + 1}), allowed)) == 1
    assert len(words.exceeded(Counter({"src/unknown": 1}), allowed)) == 1


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("page.md", "{}"),
        ("module.rs", "//! {}\n"),
        ("module.rs", 'let text = "{}";\n'),
        ("module.py", '"""{}"""\n'),
        ("module.py", "# {}\n"),
    ],
)
def test_a_corrected_sentence_that_comes_back_fails(name: str, form: str, sentence: str, tmp_path: Path) -> None:
    page = tmp_path / name
    page.write_text(form.format(sentence), encoding="utf-8")
    assert words.check(page) != []


@pytest.mark.parametrize("sentence", REWRITTEN)
def test_a_plain_sentence_passes(sentence: str) -> None:
    assert words.phrases(sentence) == []


def test_a_phrase_across_lines_is_found_in_the_line_that_it_begins_in(tmp_path: Path) -> None:
    page = tmp_path / "module.rs"
    page.write_text("fn main() {}\n/// The batch is\n/// passed\n/// over.\nfn other() {}\n", encoding="utf-8")
    assert [(hit.line, hit.phrase) for hit in words.check(page)] == [(3, "passed over")]


def test_code_is_no_prose(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Call `passed over`.\n\n```python\nnobody = likewise\n```\n", encoding="utf-8")
    assert words.check(page) == []
    assert words.main([str(page)]) == 0
