"""`kbat verify`: what is wrong, and the next command to type."""

from collections import Counter
from enum import Enum, auto
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

import kbat
from kbat.cli import output
from kbat.cli.options import Json, PathArgument
from kbat.cli.place import repairable, word
from kbat.cli.progress import progress

_ORDER = ("error", "warning", "info")
_STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}
_INDEXES = {".index", ".timeindex", ".txnindex", ".snapshot"}
# A broker deletes such files, does not see them, or wants them moved away.
_NO_HELP = {"orphan_index", "snapshot_beyond_end", "file_name", "directory_name"}
# Findings of one kind in one file that are shown unasked.
_SHOWN = 3

All = Annotated[bool, typer.Option("--all", help="Show every finding, not only the first three of a kind in a file.")]


class _Help(Enum):
    """What helps with a finding."""

    ACCESS = auto()
    DUMP = auto()
    LOG = auto()
    INDEX = auto()


def verify(path: PathArgument, *, show_all: All = False, json: Json = False) -> None:
    """Verify a log directory, a partition or a segment with its indexes. Nothing is changed.

    All that a broker's recovery and `kafka-dump-log` check, and more. At the end stand the commands to type next.

    Example: `kbat verify /var/lib/kafka/data/orders-0`

    Exit codes: 0 where nothing is wrong (there may be findings of severity "info"), 1 for warnings, 2 for errors, for a
    path that can't be read and for wrong arguments.

    JSON: `path`, `ok`, `exit_code`, `segment_count`, `batch_count`, `record_count`, `byte_count`, `omitted_count`,
    `findings`: `severity` ("info", "warning", "error"), `kind` (a stable name), `path`, `position` (byte), `offset`,
    `message`; `next`: commands to type.
    """
    with progress("verifying") as callback:
        report = kbat.verify(path, progress=callback)
    commands = next_commands(path, report)
    if json:
        output.write_json({**report.to_dict(), "exit_code": report.exit_code, "next": list(commands)})
    else:
        _show(report, commands, show_all=show_all)
    raise typer.Exit(report.exit_code)


def next_commands(path: Path, report: kbat.Report) -> dict[str, str]:
    """Give the commands that help with what was found, each with what it is for; the first ones change nothing."""
    # keys alone, in the order of the findings
    found: dict[_Help, dict[Path, None]] = {what: {} for what in _Help}
    for finding in report.findings:
        place = Path(finding.path)
        what = _help_for(finding, path)
        if what is not None:
            found[what][place if what in {_Help.ACCESS, _Help.DUMP} else place.parent] = None
    unread = {place.parent for place in found[_Help.ACCESS] if place.suffix == ".log"}
    logs = [directory for directory in found[_Help.LOG] if directory not in unread]
    commands: dict[str, str] = {}
    for place in found[_Help.ACCESS]:
        commands[f"ls -ld {word(place)}"] = "what it is and who may read it; then verify as such a user"
    for place in found[_Help.DUMP]:
        commands[f"kbat salvage {word(place)} {word(f'salvaged/{place.stem}')}"] = "a segment with every whole batch"
    for directory in logs:
        name, quoted = directory.resolve().name, word(directory)
        commands[f"kbat recover {quoted} --dry-run"] = "what a broker would throw away"
        commands[f"kbat recover {quoted} {word(f'recovered/{name}')}"] = "a copy as a broker would leave it"
        commands[f"kbat salvage {quoted} {word(f'salvaged/{name}')}"] = "a copy with every whole batch"
    for directory in found[_Help.INDEX]:
        if directory not in unread and directory not in logs:
            quoted = word(path if path.is_file() else directory)
            commands[f"kbat rebuild-indexes {quoted}"] = "new indexes in the place of the old ones"
    return commands


def _help_for(finding: kbat.Finding, path: Path) -> _Help | None:
    place = Path(finding.path)
    is_log = place.suffix == ".log" or place.name == "leader-epoch-checkpoint"
    is_index = place.suffix in _INDEXES
    if finding.kind == "unreadable":
        # an index on a bad sector can be made anew
        is_replaced = is_index and not place.is_dir() and "Permission denied" not in finding.message
        return _Help.INDEX if is_replaced else _Help.ACCESS
    if finding.kind in _NO_HELP or finding.severity == "info":
        return None
    if finding.severity == "error" and place == path == repairable(path):
        return _Help.DUMP
    if finding.severity == "error" and is_log:
        return _Help.LOG
    return _Help.INDEX if is_index else None


def _show(report: kbat.Report, commands: dict[str, str], *, show_all: bool) -> None:
    console = output.console()
    seen: Counter[tuple[str, str]] = Counter()
    for finding in sorted(report.findings, key=lambda one: _ORDER.index(one.severity)):
        seen[finding.path, finding.kind] += 1
        if show_all or seen[finding.path, finding.kind] <= _SHOWN:
            console.print(_line(finding))
    hidden = report.omitted_count + (0 if show_all else sum(max(0, count - _SHOWN) for count in seen.values()))
    if hidden:
        more = "" if show_all else "; --all shows more"
        output.write_line(f"{hidden:,} more findings of the same kinds in the same files{more}")
    counts = Counter(finding.severity for finding in report.findings)
    output.write_line(
        f"{report.path}: {report.segment_count:,} segments, {report.batch_count:,} batches, {report.record_count:,} "
        f"records, {output.size_text(report.byte_count)}: {counts['error']} errors, {counts['warning']} warnings"
    )
    if commands:
        output.write_line("next:")
        width = max(map(len, commands))
        for command, purpose in commands.items():
            output.write_line(f"  {command:{width}}  # {purpose}")


def _line(finding: kbat.Finding) -> Text:
    place = output.text(finding.path)
    if finding.position is not None:
        place += f", byte {finding.position}"
    if finding.offset is not None:
        place += f", offset {finding.offset}"
    name = (f"{finding.severity}: {finding.kind}", _STYLES[finding.severity])
    return Text.assemble(name, f": {place}: {output.text(finding.message)}")
