"""Commands on a log with the longest names and numbers: tables fit the terminal, or `--wide` shows the rest."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Literal

import pytest

import kbat
from command_line import CORPUS, bytes_on_terminal, on_terminal, run
from kbat.cli.app import COMMANDS
from test_cli_terminal import tables

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = "a-very-long-name-of-a-topic-" * 4 + "end"
FIRST = 1 << 62
CODECS: tuple[Literal["none", "gzip", "snappy", "lz4", "zstd"], ...] = ("none", "gzip", "snappy", "lz4", "zstd", "none")
LOG = f"{FIRST:020}.log"
NOTE = "hidden in this narrow terminal: "


def _batch(number: int) -> bytes:
    builder = kbat.BatchBuilder(
        compression=CODECS[number],
        base_offset=FIRST + 1000 * number,
        producer_id=FIRST + number,
        producer_epoch=32_000,
        base_sequence=2_147_483_000,
        transactional=True,
        partition_leader_epoch=2_147_483_000,
    )
    for record in range(50):
        builder.append(b"key-%d" % record, b"v" * 3000, timestamp=1_700_000_000_000 + number * 86_400_000)
    return builder.finish()


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("wide")
    for place in (root / f"{TOPIC}-2147483647", root / f"{TOPIC}-0", root / "orders-12"):
        place.mkdir()
        (place / LOG).write_bytes(b"".join(map(_batch, range(len(CODECS)))))
    for case, name in (
        ("consumer-offsets", "__consumer_offsets-0"),
        ("cluster-metadata", "__cluster_metadata-0"),
        ("transaction-state", "__transaction_state-0"),
    ):
        shutil.copytree(CORPUS / case, root / name)
    return root


# Arguments with which a command shows as much as it can; the others read the log directory.
ARGUMENTS: dict[str, str] = {
    # the first rows decide about the columns of all
    "batches": "PARTITION",
    "lookup": f"LOGS --offset {FIRST}",
    "stat": "LOGS --records --by topic,codec,producer,day",
    "audit": "LOGS --by partition,producer,magic,day",
    "advise": "PARTITION --seconds 1",
    "verify": "PARTITION",
    "recover": "PARTITION --dry-run",
    **dict.fromkeys(("salvage", "rebuild-indexes", "compact", "rewrite"), "PARTITION OUT"),
    **dict.fromkeys(("restore", "copy"), f"LOGS OUT --topic {TOPIC}"),
    "convert": f"LOGS OUT --topic {TOPIC} --compression lz4",
    "filter": f"LOGS OUT --topic {TOPIC} --key .*1",
    "export": f"LOGS OUT --topic {TOPIC} --format csv --partition-by partition",
    "import": "LINES OUT --log-directory",
}


def arguments(command: str, logs: Path, out: Path) -> list[str]:
    lines = out.with_name("lines.jsonl")
    partition = logs / f"{TOPIC}-2147483647"
    if command == "import":
        lines.write_text(run("cat", partition).stdout, encoding="utf-8")
    places = {"LOGS": str(logs), "PARTITION": str(partition), "OUT": str(out), "LINES": str(lines)}
    return [places.get(word, word) for word in ARGUMENTS.get(command, "LOGS").split()]


# `cat` and `dump` print as many characters as there are, and `report` writes a page.
SHOWING = [command for command in COMMANDS if command not in {"cat", "dump", "report"}]


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("command", SHOWING)
def test_tables_with_the_longest_names_and_numbers_fit(command: str, columns: int, logs: Path, tmp_path: Path) -> None:
    shown = on_terminal(columns, command, *arguments(command, logs, tmp_path / "out"))
    assert shown
    if columns == 80:
        # findings about a partition are lines of text below its row
        rows = [line for table in tables(shown) for line in table if not line.startswith("  open: ")]
        assert [line for line in rows if len(line) > columns] == []
    if NOTE in shown:
        assert "--wide" in run(command, "-h").stdout


@pytest.mark.parametrize("command", SHOWING)
def test_what_a_terminal_hides_is_in_a_pipe_and_in_json(command: str, logs: Path, tmp_path: Path) -> None:
    words = arguments(command, logs, tmp_path / "out")
    done = run(command, *words)
    assert NOTE not in done.stdout
    assert "\x1b" not in done.stdout
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    found = run(command, *words, "--json")
    assert found.exit_code == done.exit_code
    # `batches` has a line per batch
    assert [json.loads(line) for line in (found.stdout.splitlines() if command == "batches" else [found.stdout])]


@pytest.mark.parametrize("command", SHOWING)
def test_no_command_has_colors_if_they_are_not_wanted(command: str, logs: Path, tmp_path: Path) -> None:
    shown = bytes_on_terminal(80, command, *arguments(command, logs, tmp_path / "out"), NO_COLOR="1")
    assert shown
    assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", shown)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_the_options_of_all(command: str) -> None:
    short, long = run(command, "-h"), run(command, "--help")
    assert (short.exit_code, short.stdout) == (0, long.stdout)
    for option in ("--json", "--debug", "--help, -h"):
        assert option in short.stdout, option
    assert max(map(len, short.stdout.splitlines())) <= max(
        80, *(len(line) for line in short.stdout.splitlines() if line.startswith("  kbat "))
    )


# `verify` and `dump` report what they find as their result
@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in {"dump", "verify"}])
def test_debug_shows_the_details_of_an_error(command: str, tmp_path: Path) -> None:
    place = tmp_path / "orders-0"
    place.mkdir()
    (place / f"{0:020}.log").write_text("2026-11-22 a log of a program\n" * 50, encoding="utf-8")
    writes = {"salvage", "rebuild-indexes", "compact", "rewrite", "restore", "convert", "copy", "export", "import"}
    more = {"lookup": ("--offset", "0"), "filter": (tmp_path / "out", "--key", "a")}
    words = (place, *more.get(command, (tmp_path / "out",) if command in writes else ()))
    plain = run(command, *words)
    assert plain.exit_code == 2
    assert plain.stderr.startswith("kbat: ")
    assert plain.stderr.count("\n") == 1
    for detailed in (run(command, *words, "--debug"), run("--debug", command, *words)):
        assert detailed.exit_code == 2
        assert detailed.stderr.startswith(plain.stderr)
        assert "\nTraceback (most recent call last):\n" in detailed.stderr
        assert f"kbat {kbat.__version__}, Python " in detailed.stderr
