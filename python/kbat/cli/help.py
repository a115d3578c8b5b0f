"""The help of a command on a terminal, from the same page as its man page.

rich is not used: importing it takes longer than most commands.
"""

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from kbat.cli.output import styled
from kbat.cli.pages import CODE, Option, Page

# Long lines are hard to read, on a wide terminal too.
_MOST_COLUMNS = 100
_PIPE_COLUMNS = 80
_INDENT = "  "
# Columns of names before the texts begin; longer names have a line of their own.
_NAMES = 26
_HELP = Option(("--help", "-h"), "", "Show this message.", "", is_required=False, is_repeated=False)


def help_text(page: Page, panels: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return the help of a command; `panels` are the names of commands by the headings of the group's list."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_COLUMNS
    return "\n".join(_lines(page, panels or {}, min(columns, _MOST_COLUMNS)))


def _lines(page: Page, panels: Mapping[str, Sequence[str]], width: int) -> Iterator[str]:
    yield from (f"{_heading('Usage:')} {page.synopsis}", "")
    for paragraph in page.description:
        yield from (*_wrapped(paragraph, width), "")
    if page.examples:
        yield _heading("Examples:" if len(page.examples) > 1 else "Example:")
        # commands are copied, so they are never wrapped
        yield from (f"{_INDENT}{example}" for example in page.examples)
        yield ""
    longest = max(map(len, page.commands), default=0)
    for heading, names in panels.items():
        yield from _listed(heading, [(name, f"{page.commands[name]}.") for name in names], width, longest)
    arguments = [(one.value, _described(one)) for one in page.arguments]
    yield from _listed("Arguments", arguments, width)
    options = [(" ".join(filter(None, (", ".join(one.names), one.value))), _described(one)) for one in page.options]
    yield from _listed("Options", [*options, (", ".join(_HELP.names), _HELP.text)], width)
    for paragraph in page.sections.get("JSON", []):
        title, text = ("", paragraph) if paragraph.startswith("JSON") else ("JSON: ", paragraph)
        yield from (*_wrapped(f"{title}{text}", width), "")
    yield from _wrapped(f"Exit codes: {' '.join(page.sections.get('EXIT STATUS', []))}", width)


def _heading(text: str) -> str:
    return styled(text, "bold")


def _listed(heading: str, rows: Sequence[tuple[str, str]], width: int, longest: int = 0) -> Iterator[str]:
    """Yield a heading, and names in a column beside their texts."""
    if not rows:
        return
    yield _heading(f"{heading}:")
    longest = longest or max((len(name) for name, _ in rows if len(name) <= _NAMES), default=0)
    margin = " " * (len(_INDENT) + longest + len(_INDENT))
    for name, text in rows:
        lines = _wrapped(text, width - len(margin))
        if len(name) > longest:
            yield f"{_INDENT}{name}"
        else:
            yield f"{_INDENT}{name.ljust(longest)}{_INDENT}{lines.pop(0) if lines else ''}".rstrip()
        yield from (f"{margin}{line}" for line in lines)
    yield ""


def _described(option: Option) -> str:
    return f"{option.text} [default: {option.default}]" if option.default else option.text


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(CODE.sub(r"\1", text), max(20, width), break_on_hyphens=False, break_long_words=False)
