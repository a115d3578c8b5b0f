"""The manual: what each command's help contains, and man pages with it.

`python -m kbat.cli.manual DIRECTORY` writes a man page per command.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
import typer.main

import kbat
from kbat.cli.app import app

# The paragraph of a help that has a section of its own, by its first word.
_SECTIONS = {"Example": "EXAMPLES", "Examples": "EXAMPLES", "JSON": "JSON", "Exit": "EXIT STATUS"}
_CODE = re.compile(r"`([^`]+)`")
_TITLE = re.compile(r"^(Examples?|JSON|Exit codes): ")


@dataclass(frozen=True)
class Option:
    """An option or an argument: how it is written, and what it does."""

    names: tuple[str, ...]
    value: str
    text: str
    default: str
    is_required: bool
    is_repeated: bool


@dataclass(frozen=True)
class Page:
    """The manual of a command."""

    name: str
    summary: str
    description: list[str]
    sections: dict[str, list[str]]
    arguments: list[Option]
    options: list[Option]
    panel: str = ""
    commands: dict[str, str] = field(default_factory=dict)

    @property
    def examples(self) -> list[str]:
        """The commands of the examples."""
        return [code for paragraph in self.sections.get("EXAMPLES", []) for code in _CODE.findall(paragraph)]

    @property
    def synopsis(self) -> str:
        """The command as it is typed."""
        shown = [f"{one.value}..." if one.is_repeated else one.value for one in self.arguments]
        optional = [text if one.is_required else f"[{text}]" for one, text in zip(self.arguments, shown, strict=True)]
        return " ".join([self.name, "[OPTIONS]", *(["COMMAND", "..."] if self.commands else optional)])


def pages() -> list[Page]:
    """Return the manual of `kbat`, and then that of each command that its help lists."""
    group: Any = typer.main.get_command(app)
    context = group.make_context("kbat", ["--help"], resilient_parsing=True)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    commands = {name: command for name, command in found.items() if not command.hidden}
    listed = {name: _summary(command.help) for name, command in commands.items()}
    return [_page("kbat", group, listed), *(_page(f"kbat {name}", one, {}) for name, one in commands.items())]


def _page(name: str, command: Any, commands: dict[str, str]) -> Page:  # noqa: ANN401 - typer does not export the class
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", command.help or "")]
    sections: dict[str, list[str]] = {}
    description = []
    for paragraph in paragraphs[1:]:
        title = _SECTIONS.get(paragraph.split(" ")[0].rstrip(":"))
        if title is None:
            description.append(paragraph)
        else:
            sections.setdefault(title, []).append(_TITLE.sub("", paragraph))
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    return Page(
        name=name,
        summary=_summary(command.help),
        description=[paragraphs[0], *description],
        sections=sections,
        arguments=[_option(one) for one in shown if one.param_type_name == "argument"],
        options=[_option(one) for one in shown if one.param_type_name == "option"],
        panel=getattr(command, "rich_help_panel", None) or "",
        commands=commands,
    )


def _summary(text: str | None) -> str:
    """Return the first sentence of a help, as one for lists."""
    first = " ".join((text or "").split("\n\n")[0].split())
    return re.split(r"(?<=[a-z`])\. ", first)[0].rstrip(".")


def _option(parameter: Any) -> Option:  # noqa: ANN401 - typer does not export the class
    is_flag = bool(getattr(parameter, "is_flag", False))
    default = parameter.default
    is_shown = bool(getattr(parameter, "show_default", False)) and default not in (None, False, [], ())
    names = (*parameter.opts, *parameter.secondary_opts) if parameter.param_type_name == "option" else ()
    text = " ".join((parameter.help or "").split())
    if is_flag and parameter.secondary_opts:
        shown = parameter.opts[0] if default else parameter.secondary_opts[0]
    else:
        shown = str(getattr(default, "value", default)) if is_shown and not callable(default) else ""
    metavar = (parameter.metavar or parameter.name.upper()).strip("[]") if not is_flag else ""
    return Option(
        names=names,
        value=metavar,
        text=text,
        default=shown,
        is_required=parameter.required,
        is_repeated=parameter.multiple or parameter.nargs == -1,
    )


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
    parts = _CODE.split(text)
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
