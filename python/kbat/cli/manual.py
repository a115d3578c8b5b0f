"""The manual: what each command's help contains, and man pages with it.

`python -m kbat.cli.manual DIRECTORY` writes a man page per command.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import typer.main

import kbat
from kbat.cli.app import app
from kbat.cli.pages import CODE, Page, page_of, summary_of


def pages() -> list[Page]:
    """Return the manual of `kbat`, and then that of each command that its help lists."""
    group: Any = typer.main.get_command(app)
    context = group.make_context("kbat", ["--help"], resilient_parsing=True)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    commands = {name: command for name, command in found.items() if not command.hidden}
    listed = {name: summary_of(command.help) for name, command in commands.items()}
    return [page_of("kbat", group, listed), *(page_of(f"kbat {name}", one, {}) for name, one in commands.items())]


def man_page(page: Page, names: list[str]) -> str:
    """Return the page in the language of `man`; `names` are those of all pages."""
    return "\n".join(_roff(page, names)) + "\n"


def _roff(page: Page, names: list[str]) -> Iterator[str]:
    name = page.name.replace(" ", "-")
    yield f'.TH {_escape(name.upper())} 1 "" "kbat {kbat.__version__}" "kbat"'
    # names in JSON are long: neither hyphens nor stretched spaces
    yield from (".nh", ".ad l")
    yield from (".SH NAME", rf"{_escape(name)} \- {_inline(page.summary[:1].lower() + page.summary[1:])}")
    yield from (".SH SYNOPSIS", f".B {_escape(page.name)}", _escape(page.synopsis.removeprefix(page.name).strip()))
    yield ".SH DESCRIPTION"
    yield from _paragraphs(page.description)
    if page.commands:
        yield ".SH COMMANDS"
        for command, summary in page.commands.items():
            yield from (".TP", rf"\fB{_escape(f'kbat-{command}')}\fR(1)", _inline(f"{summary}."))
    if page.arguments:
        yield ".SH ARGUMENTS"
        for one in page.arguments:
            yield from (".TP", rf"\fI{_escape(one.value)}\fR", _inline(one.text))
    yield ".SH OPTIONS"
    for one in page.options:
        value = rf" \fI{_escape(one.value)}\fR" if one.value else ""
        default = f" The default is {one.default}." if one.default else ""
        yield from (".TP", ", ".join(rf"\fB{_escape(each)}\fR" for each in one.names) + value)
        yield _inline(f"{one.text}{default}")
    if page.examples:
        yield from (".SH EXAMPLES", ".nf", *(_start(_escape(example)) for example in page.examples), ".fi")
    for title in ("JSON", "EXIT STATUS"):
        if title in page.sections:
            yield f".SH {title}"
            yield from _paragraphs(page.sections[title])
    others = [other for other in names if other != page.name and (page.name == "kbat" or other == "kbat")]
    if others:
        yield ".SH SEE ALSO"
        yield ", ".join(rf"\fB{_escape(other.replace(' ', '-'))}\fR(1)" for other in others)


def _paragraphs(paragraphs: list[str]) -> Iterator[str]:
    for number, paragraph in enumerate(paragraphs):
        if number:
            yield ".PP"
        yield _inline(paragraph)


def _inline(text: str) -> str:
    """Return a paragraph with its `code` in bold."""
    parts = CODE.split(text)
    shown = "".join(rf"\fB{_escape(part)}\fR" if index % 2 else _escape(part) for index, part in enumerate(parts))
    return _start(shown)


def _start(line: str) -> str:
    """Return a line that is text, although lines that begin with a dot or an apostrophe are instructions."""
    return rf"\&{line}" if line.startswith((".", "'")) else line


def _escape(text: str) -> str:
    shown = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    return "".join(char if char.isascii() else rf"\[u{ord(char):04X}]" for char in shown)


def write_man_pages(directory: Path) -> list[Path]:
    """Write a man page per command, and return their paths."""
    found = pages()
    names = [page.name for page in found]
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for page in found:
        path = directory / f"{page.name.replace(' ', '-')}.1"
        path.write_text(man_page(page, names), encoding="utf-8")
        written.append(path)
    return written


def _main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):  # noqa: PLR2004 - the program and its argument
        sys.exit("usage: python -m kbat.cli.manual DIRECTORY")
    directory = Path(sys.argv[1])
    written = write_man_pages(directory)
    sys.stdout.write(f"wrote {len(written)} man pages to {directory}; read one with: man {written[0]}\n")


if __name__ == "__main__":
    _main()
