"""Checks the English that people read against a list of phrases, and says what to write instead.

python tests/python/words.py            # what `make lint` runs
python tests/python/words.py src/log    # list every phrase in these files or directories
python tests/python/words.py --update   # lower the numbers in words_baseline.txt to the current ones
python tests/python/words.py --sample   # print fifty sentences at random, for a reader to judge

The pages in `CLEAN` must contain none of the phrases. Comments, docstrings and messages below `COUNTED` still contain
some: words_baseline.txt has a number for each directory, and that number may only go down.
"""

from __future__ import annotations

import io
import random
import re
import sys
import tokenize
from bisect import bisect_right
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT = Path(__file__).parents[2]
BASELINE = Path(__file__).with_name("words_baseline.txt")
CLEAN = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benches/README.md",
    "benches/python/chart.py",
    "docs",
    "examples",
    "mkdocs.yml",
    "tests/edge-cases.md",
    "tests/format-tests.md",
    ".github",
)
COUNTED = ("src", "python", "Makefile", ".ci")
# spark_page.py and command_pages.py write these pages from texts that are counted below python/kbat.
GENERATED = {"docs/spark-options.md", "docs/command-reference.md", "docs/exit-codes.md"}

_ENDS_CLAUSE = r"(?=[.,;:)\"]|$)"
_STOP_WORDS = "longer|more than|less than|later|fewer|different|such|way|need"

# A pattern, in any case and between word boundaries, and what to write instead.
PHRASES = (
    # telling and giving
    (r"(is|are|was|were|be|been|being) told|told (of|by|about)|tells|telling", "reports, shows, states"),
    (r"says? (otherwise|what (is|are|was|it|has))|said (by|what|to be)", "states, reports; name the thing"),
    (r"(is|are|was|were|be|been|that) given|given (by|to|back|out)", "returned, yielded, passed, set"),
    (r"not to (give|be had|print|have)|to be had", "up to but not including; not supported"),
    # verbs with a small word
    (r"(pass|step)(es|ed|ing)? over", "skip"),
    (r"(left|leaves?|leaving) out", "omit, skip"),
    (r"(go|goes|went|going) on", "continue, resume"),
    (r"look(s|ed|ing) (for|at|after|into|behind|whether)|looked up", "search, check, read, ignore"),
    (r"ask(s|ed|ing) for", "request, require, pass"),
    (r"found out|finds? out|finding out", "compute, determine"),
    (r"(stands?|stood) (in|at|before|behind|where|beside|there|to|for)", "is in, is at"),
    (r"(lies|lie|lay) (in|at|before|behind|above|below|outside|beside|there|apart|between)", "is in, is located"),
    (r"comes? (too|with it|unasked|as it)|as (it|they) comes?", "is included; default settings"),
    (r"(takes?|taken|took) (\w+ ){0,3}for (an?|the|seconds)\b", "mistakes for, treats as"),
    (r"believe[sd]?", "trusts, accepts"),
    (r"unasked", "by default"),
    (r"with nothing else", "with default settings"),
    # clauses without a noun
    (r"what (is|was|are|were) (there|asked|aborted|lost|left|right|whole|meant|known|not)", "name the thing"),
    (r"what is \w+ is", "name the thing"),
    (r"what (it|they|he) (must|can|may|should|hides?|could|has|have|takes?|gave)", "name the thing"),
    (r"what (only|no|bounds|killed|follows|had|comes|came|lies|stays|cannot|can't)", "name the thing"),
    (r"(is|are|was|were) what", "name the thing"),
    (r"that which|those of which", "name the thing"),
    (r"after which an?", "until; name the limit"),
    # small words
    (r"where (no|there|that|nothing|nobody|these|those|one|some)", "if, when"),
    (r"where (it|they|he) (is|are|was|were|can|does|do|has|have|had|may|would)", "if, when"),
    (r"but for", "except"),
    (r"likewise", "the same (repeat it)"),
    (r"otherwise than", "differently from"),
    (rf"(?<!there )(is|are|was|were) no (?!{_STOP_WORDS})", "is not a"),
    (r"(?<!there )(is|are|was|were|be) none", "is not one"),
    (rf"(can't|cannot|can not|must not|may not) be{_ENDS_CLAUSE}", "is invalid, is impossible"),
    (rf"(has|have|had) not{_ENDS_CLAUSE}", "does not have one"),
    (r"nobody|somebody|no one", "the caller, users, another thread"),
    (r"by now|anew|meanwhile", "so far; again; in the meantime"),
    (r"again as (fast|many|much|large)|half as (many|much|fast)|one and a half times", "1.5 times, 50 % more"),
    (r"half as many .{0,20}\bagain|as many .{0,20}\ba second again|up to half as", "1.5 times, 50 % more"),
    (r"now and then|a person's|in mind|at work|without a word|up to there", "name it exactly"),
    (r"an? (row|line|file|record|batch|message|test|task|folder|topic|figure) an? [a-z]+", "one … per …"),
    (
        r"(rows|records|batches|segments|messages|bytes|lines|files|core|test) an? (second|batch|segment|row|task)",
        "per …",
    ),
    # one word for one thing
    (r"damages?|faults?|harms?", "corruption; corrupt, damaged"),
    (r"(with|has|have|no|its|their|which) places?|in (its|the|their) place", "position (bytes), location (path)"),
    (r"cuts?|cutting", "truncate, split"),
    (r"behind", "after"),
    (r"contestants?", "library, program"),
    (r"rooms|(the|which|each|what) room", "module, directory"),
)
_COMPILED = [(re.compile(rf"\b(?:{pattern})", re.IGNORECASE), instead) for pattern, instead in PHRASES]


class Hit(NamedTuple):
    """A phrase in a file, by the line that it begins in."""

    path: str
    line: int
    phrase: str
    instead: str

    def __str__(self) -> str:
        """Return a line such as an editor can jump to."""
        return f"{self.path}:{self.line}: {self.phrase!r} -> {self.instead}"


def phrases(text: str) -> list[tuple[int, str, str]]:
    """Find the phrases of a text: where each begins, its words, and what to write instead."""
    found = []
    for pattern, instead in _COMPILED:
        for match in pattern.finditer(text):
            follows = text[match.end() : match.end() + 1]
            if not (match[0][-1].isalnum() and (follows.isalnum() or follows == "_")):
                found.append((match.start(), " ".join(match[0].split()), instead))
    return sorted(found)


# What a file has to read, as paragraphs of numbered lines: a phrase may begin in one line and end in the next.
Paragraph = list[tuple[int, str]]


def markdown(text: str) -> Iterator[Paragraph]:
    """Yield the paragraphs outside blocks of code; a row of a table is one."""
    fenced, part = False, Paragraph()
    for number, line in enumerate(text.splitlines(), start=1):
        fence = line.lstrip(" >").startswith(("```", "~~~"))
        fenced ^= fence
        if fence or fenced or not line.strip() or line.lstrip().startswith("|"):
            yield part
            part = [(number, line)] if line.lstrip().startswith("|") else []
        else:
            part.append((number, line))
    yield part


def hashes(text: str) -> Iterator[Paragraph]:
    """Yield the comments of a file whose comments begin with `#`."""
    for number, line in enumerate(text.splitlines(), start=1):
        _, mark, comment = line.partition("#")
        if mark:
            yield [(number, comment)]


# From Python 3.12 on, an f-string is several tokens.
_FSTRING_START = getattr(tokenize, "FSTRING_START", -1)
_FSTRING_END = getattr(tokenize, "FSTRING_END", -1)


def python(text: str) -> Iterator[Paragraph]:
    """Yield comments, adjacent ones together, and string literals, docstrings among them."""
    lines, comments, starts = text.splitlines(), Paragraph(), list[tuple[int, int]]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.append((token.start[0], token.string.lstrip("# ")))
        elif token.type == _FSTRING_START:
            starts.append(token.start)
        elif token.type == _FSTRING_END or (token.type == tokenize.STRING and not starts):
            start = starts.pop() if token.type == _FSTRING_END else token.start
            if not starts:
                yield _between(lines, start, token.end)
        elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            yield comments
            comments = []
    yield comments


def _between(lines: Sequence[str], start: tuple[int, int], end: tuple[int, int]) -> Paragraph:
    (first, begin), (last, stop) = start, end
    part = list(lines[first - 1 : last])
    part[-1] = part[-1][:stop]
    part[0] = part[0][begin:]
    return list(enumerate(part, start=first))


_RUST = re.compile(
    r"""(?P<comment>//[^\n]*)|/\*.*?\*/|(?:r\#*"(?P<raw>.*?)"\#*)|"(?P<string>(?:\\.|[^"\\])*)"|'(?:\\.|[^'\\])'""",
    re.DOTALL,
)


def rust(text: str) -> Iterator[Paragraph]:
    """Yield comments, adjacent ones together, and string literals; no examples of the documentation."""
    comments, fenced = Paragraph(), False
    for match in _RUST.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        if match["comment"] is not None:
            line = match["comment"].lstrip("/!").strip()
            fence = line.startswith("```")
            fenced ^= fence
            if fence or fenced or not line or (comments and number > comments[-1][0] + 1):
                yield comments
                comments = []
            if line and not fence and not fenced:
                comments.append((number, line))
        elif literal := match["raw"] or match["string"]:
            yield [(number + index, line) for index, line in enumerate(literal.splitlines())]
    yield comments


_READERS = {".md": markdown, ".py": python, ".pyi": python, ".rs": rust}
_PLAIN = {"Makefile", "check-tools", "matrix", "run"}
_SUFFIXES = {*_READERS, ".yml", ".toml"}


def check(path: Path) -> list[Hit]:
    """Find the phrases of a file."""
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()
    read = _READERS.get(path.suffix, hashes)
    return [
        Hit(name, line, phrase, instead)
        for paragraph in read(path.read_text(encoding="utf-8"))
        for line, phrase, instead in _check_paragraph(paragraph)
    ]


def _check_paragraph(paragraph: Paragraph) -> Iterator[tuple[int, str, str]]:
    starts, text = [], ""
    for _, line in paragraph:
        starts.append(len(text))
        text += line.strip() + " "
    # names and code are not prose; links lead where they lead
    text = re.sub(r"`+[^`]*`+|\]\([^)]*\)|<https?:[^>]*>", lambda match: "`" * len(match[0]), text)
    for start, phrase, instead in phrases(text.rstrip()):
        yield paragraph[bisect_right(starts, start) - 1][0], phrase, instead


def files(names: Iterable[str]) -> Iterator[Path]:
    """Yield the files below some paths that hold prose, in order."""
    for name in names:
        path = ROOT / name
        inside = sorted(path.rglob("*")) if path.is_dir() else [path] * path.exists()
        yield from (one for one in inside if one.is_file() and (one.suffix in _SUFFIXES or one.name in _PLAIN))


def unclean() -> list[Hit]:
    """Find the phrases of the pages that must not have any."""
    pages = (page for page in files(CLEAN) if page.relative_to(ROOT).as_posix() not in GENERATED)
    return [hit for page in pages for hit in check(page)]


def counts() -> Counter[str]:
    """Count the phrases of each directory that may have some."""
    return Counter(Path(hit.path).parent.as_posix() for path in files(COUNTED) for hit in check(path))


def baseline() -> dict[str, int]:
    """Read how many phrases each directory may have."""
    lines = BASELINE.read_text(encoding="utf-8").splitlines()
    return {name: int(count) for name, count in (line.split() for line in lines if not line.startswith("#"))}


def exceeded(current: Counter[str], allowed: dict[str, int]) -> list[str]:
    """Name the directories that have more phrases than they may."""
    return [
        f"{name}: {count} phrases, {allowed.get(name, 0)} are allowed; list them with: "
        f"python tests/python/words.py {'Makefile' if name == '.' else name}"
        for name, count in sorted(current.items())
        if count > allowed.get(name, 0)
    ]


def _update(current: Counter[str], allowed: dict[str, int]) -> None:
    lowered = {name: min(count, allowed.get(name, count)) for name, count in sorted(current.items())}
    head = "# Phrases that words.py still finds in each directory. The numbers may only go down: words.py --update\n"
    BASELINE.write_text(head + "".join(f"{name} {count}\n" for name, count in lowered.items()), encoding="utf-8")


def sample(count: int) -> list[str]:
    """Pick sentences of six words or more from everything that is checked, each with its position."""
    found = []
    for path in files((*CLEAN, *COUNTED)):
        read = _READERS.get(path.suffix, hashes)
        for paragraph in read(path.read_text(encoding="utf-8")):
            text = " ".join(line.strip() for _, line in paragraph)
            sentences = re.split(r"(?<=[.!?])\s+|\s\|\s", text.strip("\"' "))
            name = path.relative_to(ROOT)
            found += [f"{name}:{paragraph[0][0]}: {one}" for one in sentences if len(re.findall(r"[a-z]{2,}", one)) > 5]
    return random.sample(found, count)


def main(arguments: Sequence[str]) -> int:
    """Check the pages and directories of the project, or list the phrases of some paths. Returns the exit code."""
    if arguments == ["--update"]:
        _update(counts(), baseline() if BASELINE.exists() else {})
        return 0
    if arguments == ["--sample"]:
        sys.stdout.write("".join(f"{sentence}\n" for sentence in sample(50)))
        return 0
    found = [hit for path in files(arguments) for hit in check(path)] if arguments else unclean()
    complaints = [*map(str, found), *([] if arguments else exceeded(counts(), baseline()))]
    sys.stdout.write("".join(f"{line}\n" for line in complaints))
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
