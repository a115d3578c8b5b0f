"""Man pages, the pages of the documentation about commands, and shell completion: all from the commands themselves."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import typer.main

import command_pages
from command_line import environment
from kbat.cli.app import COMMANDS, app
from kbat.cli.manual import man_page, pages, write_man_pages

if TYPE_CHECKING:
    from pathlib import Path

LISTED = [name for name, command in COMMANDS.items() if not command.hidden]


@pytest.mark.parametrize("page", ["reference", "exit_codes"])
def test_the_documentation_has_the_help_of_all_commands(page: str) -> None:
    path = {"reference": command_pages.REFERENCE, "exit_codes": command_pages.EXIT_CODES}[page]
    text = {"reference": command_pages.reference, "exit_codes": command_pages.exit_codes}[page]()
    assert path.read_text(encoding="utf-8") == text, "run python tests/python/command_pages.py"


def test_every_command_has_a_page_with_its_options() -> None:
    found = {page.name: page for page in pages()}
    assert list(found) == ["kbat", *(f"kbat {name}" for name in LISTED)]
    assert list(found["kbat"].commands) == LISTED
    group = typer.main.get_command(app)
    for name in LISTED:
        page = found[f"kbat {name}"]
        command = group.commands[name]  # type: ignore[attr-defined]
        shown = [one for one in command.params if not getattr(one, "hidden", False)]
        assert len(page.arguments) + len(page.options) == len(shown)
        roff = man_page(page, list(found)).replace(r"\-", "-")
        for one in shown:
            if one.param_type_name == "option":
                assert all(rf"\fB{option}\fR" in roff for option in one.opts), (name, one.opts)
        assert page.examples
        assert all(example.startswith(("kbat ", "KBAT_", "cat ")) for example in page.examples)
        assert {"EXAMPLES", "EXIT STATUS"} <= page.sections.keys()


def test_man_pages_are_valid_and_readable(tmp_path: Path) -> None:
    written = write_man_pages(tmp_path / "man1")
    assert [path.name for path in written] == ["kbat.1", *(f"kbat-{name}.1" for name in LISTED)]
    assert all(path.read_text(encoding="utf-8").isascii() for path in written)
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is missing")
    for path in written:
        command = [groff, "-man", "-Tutf8", "-ww", "-P-c", str(path)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)  # noqa: S603 - its own arguments
        assert done.stderr == ""
        plain = re.sub(r".\x08", "", done.stdout).translate({0x2212: "-", 0x2010: "-"})
        assert all(heading in plain for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"))
        assert f"{path.stem} - " in plain


def test_the_manual_is_written_by_a_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kbat.cli.manual"]
    done = subprocess.run(  # noqa: S603 - its own module
        [*command, str(tmp_path / "man1")], capture_output=True, text=True, check=True, env=environment()
    )
    assert done.stdout.startswith(f"wrote {len(LISTED) + 1} man pages to {tmp_path / 'man1'}")
    assert (tmp_path / "man1" / "kbat-stat.1").exists()
    wrong = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())  # noqa: S603 - as above
    assert (wrong.returncode, wrong.stderr) == (1, "usage: python -m kbat.cli.manual DIRECTORY\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("lo",), {"lookup"}),
        (("stat", "--by", "topic,co"), {"topic,codec"}),
        (("cat", "--on-c"), {"--on-corrupt"}),
        (("cat", "--on-corrupt", ""), {"fail", "skip", "report"}),
        (("rewrite", "--compression", "z"), {"zstd"}),
    ],
    ids=str,
)
def test_bash_completes_commands_options_and_values(words: tuple[str, ...], expected: set[str], tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is missing")
    kbat = tmp_path / "kbat"
    kbat.write_text(f'#!{bash}\nexec {shlex.quote(sys.executable)} -m kbat "$@"\n')
    kbat.chmod(0o755)
    script = (
        f"source <(_KBAT_COMPLETE=source_bash {kbat}); COMP_WORDS=(kbat {shlex.join(words)}); COMP_CWORD={len(words)};"
        f'_kbat_completion {kbat}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run([bash, "-c", script], capture_output=True, text=True, check=True, env=environment())  # noqa: S603 - its own script
    assert done.stderr == ""
    assert set(done.stdout.split()) == expected
