"""Writes docs/command-reference.md and docs/exit-codes.md from the help of the commands.

python tests/python/command_pages.py
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from data import DATA
from kbat.cli.manual import pages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbat.cli.pages import Option, Page

DOCS = DATA.parents[1] / "docs"
REFERENCE = DOCS / "command-reference.md"
EXIT_CODES = DOCS / "exit-codes.md"

_REFERENCE_HEAD = """# Commands and options

`python tests/python/command_pages.py` writes this page from the help of the commands, and a test compares them.
[Command line](command-line.md) has examples with their output, and [exit codes](exit-codes.md) are on a page of their
own. `kbat COMMAND --help` and the [man pages](command-line.md#completion-and-man-pages) have the same text.
"""
_EXIT_CODES_HEAD = """# Exit codes

`python tests/python/command_pages.py` writes this page from the help of the commands, and a test compares them. Exit
codes are stable: later versions only add to them.

| code | meaning |
|---|---|
| 0 | success |
| 1 | corruption that stops the command, a file that cannot be read or written, or an empty directory |
| 2 | wrong arguments, or a path that is not a log |
| 130 | interrupted with Ctrl-C |
| 141 | the reader of a pipe has closed it, as `head` does |
| 143 | terminated by SIGTERM, which `timeout` and systemd send; 129 by SIGHUP |

An error is one line on the standard error, and ends with a command or an option if one helps. `--debug` adds the
error's attributes and the traceback. Results are on the standard output, so `kbat cat orders-0 > records.jsonl` never
mixes the two. In a script:

```sh
if ! kbat verify /var/lib/kafka/data --json > report.json; then
    jq -r '.next[]' report.json
fi
```

## By command
"""
# It would end the cell of a table.
_PIPE = re.compile(r"(?<!\\)\|")


def reference() -> str:
    """The page of all commands."""
    return _REFERENCE_HEAD + "".join(f"\n{line}".rstrip(" ") for page in pages() for line in _section(page)) + "\n"


def exit_codes() -> str:
    """The page of exit codes."""
    rows = [f"| {_link(page.name)} | {_cell(' '.join(page.sections['EXIT STATUS']))} |" for page in pages()]
    return "\n".join((_EXIT_CODES_HEAD, "| command | exit codes |", "|---|---|", *rows)) + "\n"


def _section(page: Page) -> Iterator[str]:
    yield from (f"## {page.name}", "", f"`{page.synopsis}`", "")
    for paragraph in page.description:
        yield from (_text(paragraph), "")
    if page.examples:
        yield from ("```sh", *page.examples, "```", "")
    shown = [*page.arguments, *page.options]
    yield from ("| option | purpose |", "|---|---|", *map(_row, shown), "")
    for paragraph in page.sections.get("JSON", []):
        yield from (_text(paragraph if paragraph.startswith("JSON") else f"JSON: {paragraph}"), "")
    if "EXIT STATUS" in page.sections:
        yield from (f"Exit codes: {_text(' '.join(page.sections['EXIT STATUS']))}", "")


def _row(option: Option) -> str:
    names = ", ".join(f"`{name}`" for name in option.names)
    value = f"`{option.value}`" if option.value else ""
    default = f" Default: `{option.default}`." if option.default else ""
    return f"| {_cell(' '.join(filter(None, (names, value))))} | {_cell(option.text)}{_cell(default)} |"


def _cell(text: str) -> str:
    return _PIPE.sub(r"\\|", _text(text))


def _text(text: str) -> str:
    """Protect what Markdown would take for emphasis or a link, outside of code."""
    parts = text.split("`")
    return "`".join(part if number % 2 else re.sub(r"([*_\[\]<])", r"\\\1", part) for number, part in enumerate(parts))


def _link(name: str) -> str:
    return f"[`{name}`](command-reference.md#{name.replace(' ', '-')})"


def main() -> None:
    """Write both pages."""
    REFERENCE.write_text(reference(), encoding="utf-8")
    EXIT_CODES.write_text(exit_codes(), encoding="utf-8")


if __name__ == "__main__":
    main()
