"""How the command `kbat` starts: with the packages that a command needs, and no others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from command_line import CORPUS, LOG_DIR, bytes_on_terminal, environment, on_terminal, run
from kbat.cli.app import COMMANDS
from kbat.cli.pages import summary_of

# Their imports take longer than the rest of a short command.
SLOW = {"rich", "pydantic", "pyarrow", "numpy", "pandas", "polars", "pygments"}
SCRIPT = """
import atexit, sys
from kbat.cli import main
slow = set(sys.argv.pop().split(","))
atexit.register(lambda: sys.stderr.write(" ".join(slow & set(sys.modules))))
main()
"""


def imported(*arguments: object) -> set[str]:
    """The slow packages that a command has imported."""
    command = [sys.executable, "-c", SCRIPT, *map(str, arguments), ",".join(SLOW)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())  # noqa: S603 - its own script
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("--help",),
        ("advise", "--help"),
        ("ls", LOG_DIR),
        ("ls", LOG_DIR, "--json"),
        ("batches", LOG_DIR),
        ("stat", LOG_DIR, "--by", "topic,day"),
        ("stat", LOG_DIR, "--records"),
        ("audit", LOG_DIR),
        ("producers", LOG_DIR),
        ("transactions", LOG_DIR),
        ("groups", CORPUS / "consumer-offsets"),
        ("topics", CORPUS / "cluster-metadata"),
        ("lookup", LOG_DIR, "--offset", "0"),
        ("verify", LOG_DIR / "codec-lz4-0"),
        ("recover", LOG_DIR / "codec-lz4-0", "--dry-run"),
        ("cat", LOG_DIR, "-n", "3"),
        (
            "cat",
            LOG_DIR,
            "-o",
            "-1",
            "-f",
            "%o",
            "--topic",
            "codec-*",
            "--partition",
            "*",
            "--key",
            "a",
            "--value",
            "hex",
        ),
        ("dump", LOG_DIR / "codec-lz4-0" / "00000000000000000000.log"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments)) if isinstance(arguments, tuple) else "",
)
def test_short_commands_import_no_slow_package(arguments: tuple[object, ...]) -> None:
    assert imported(*arguments) == set()


def test_a_command_imports_no_other_command() -> None:
    script = (
        "import sys; from typer.testing import CliRunner; from kbat.cli.app import COMMANDS, app;"
        f"done = CliRunner().invoke(app, ['ls', {str(LOG_DIR)!r}]); assert done.exit_code == 0, done.output;"
        "names = {one.function.split(':')[0] for one in COMMANDS.values()};"
        "print(*sorted(name for name in names if f'kbat.cli.{name}' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment())  # noqa: S603 - its own script
    assert done.stdout == "ls\n"


def test_help_lists_every_command_under_its_heading() -> None:
    text = run("--help").stdout
    panels = {part.split("\n", 1)[0].rstrip(":"): part for part in text.split("\n\n")}
    for name, command in COMMANDS.items():
        assert (f"\n  {name} " in panels[command.panel]) != command.hidden
        # from the module, which help does not import
        assert command.summary() == summary_of(command.load(name).help) != ""
        words = " ".join(panels[command.panel].split())
        assert f"{name} {command.summary().replace('`', '')}." in words


def test_help_fits_the_terminal() -> None:
    for arguments in (("--help",), ("stat", "-h"), ("cat", "--help")):
        for columns in (60, 80, 200):
            shown = on_terminal(columns, *arguments)
            examples = shown.split("Example")[1].split("\n\n")[0].splitlines()
            assert max(len(line) for line in shown.splitlines() if line not in examples) <= min(columns, 100)
    assert b"\x1b[1mOptions:\x1b[0m" in bytes_on_terminal(80, "ls", "--help")
    assert "\x1b" not in run("ls", "--help").stdout
    assert "`" not in run("ls", "--help").stdout
