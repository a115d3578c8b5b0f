"""`kbat verify`: what is wrong, and the next command to type."""

import os
import re
from collections import Counter
from enum import Enum, auto
from pathlib import Path
from typing import Annotated

import typer

import kbat.results
from kbat.cli import output
from kbat.cli.location import Location
from kbat.cli.options import MAX, Json, Partitions, PathArgument, Topics, selection
from kbat.cli.place import CHECKPOINT, NothingToReadError, foreign, foreign_directory, locate, repairable, word
from kbat.cli.progress import progress
from kbat.cli.stores import opens_logs

_ORDER = ("error", "warning", "info")
_STYLES = {"error": "red", "warning": "yellow", "info": "dim"}
_INDEXES = {".index", ".timeindex", ".txnindex", ".snapshot"}
# A broker deletes such files, ignores them, or does not start until they are moved.
_NO_HELP = {
    "orphan_index",
    "snapshot_beyond_end",
    "file_name",
    "directory_name",
    "unfinished_write",
    "compressed_segment",
    "duplicate_segment",
    "segment_end_missing",
    # rebuild-indexes keeps a snapshot that can be read
    "snapshot_mismatch",
}
WARNING = 1
_SALVAGE = re.compile(r"; kbat salvage [^;]*")
# Findings of one kind that are shown without --all: in one file, and of information in all files.
_SHOWN = 3
_SHOWN_INFO = 10

All = Annotated[
    bool,
    typer.Option(
        "--all", help="Show every finding, not only three of a kind in a file, and ten of a kind with severity info."
    ),
]


class _Help(Enum):
    """What helps with a finding."""

    ACCESS = auto()
    NAME = auto()
    COMPACTION = auto()
    DUMP = auto()
    SWAP = auto()
    LOG = auto()
    INDEX = auto()


# What helps with a file, in the order in which it is shown; the rest helps with its directory.
_OF_FILES = (_Help.ACCESS, _Help.NAME, _Help.DUMP)
_BY_KIND = {
    "interrupted_compaction": _Help.COMPACTION,
    # a broker keeps neither as it is
    "corrupt_swap": _Help.SWAP,
    "segment_len": _Help.SWAP,
}


@opens_logs
def verify(
    path: PathArgument,
    *,
    topic: Topics = None,
    partition: Partitions = None,
    show_all: All = False,
    json: Json = False,
) -> None:
    """Verify a log directory, a partition or a segment with its indexes. Nothing is changed.

    Checks everything that a broker's recovery and `kafka-dump-log` check, and more. The output ends with the commands
    to type next.

    Examples: `kbat verify /var/lib/kafka/data/orders-0`, `kbat verify /var/lib/kafka/data --topic orders`

    Exit codes: 0 if nothing is wrong (there may be findings of severity "info"); 1 for warnings and for an empty
    directory; 2 for errors, for a path that can't be read or is not a log, and for wrong arguments.

    JSON: `path`, `ok`, `exit_code`, `segment_count`, `batch_count`, `record_count`, `byte_count`, `omitted_count`,
    `findings`: `severity` ("info", "warning", "error"), `kind` (a stable name), `path`, `position` (byte), `offset`,
    `message`; `warnings`: messages about directories without segments; `next`: commands to type.
    """
    chosen = selection(topic, partition)
    nothing, warnings = None, []
    try:
        # the report has a finding for each omission
        warnings = locate([path], is_judged=False, shows_omissions=False, **chosen).warnings
    except NothingToReadError as error:
        nothing = error
    except OSError as error:
        # the report has a finding for a file or partition that can't be read
        if str(error.filename) == str(path) or not path.is_local:
            raise
    except kbat.KbatError:
        # as for a partition that can't be read
        if path.is_file:
            raise
    with progress("verifying") as callback:
        report = kbat.verify(str(path), progress=callback, **chosen, **path.options)
    if nothing is not None:
        if report.exit_code == 0 or path.is_empty:
            raise nothing
        output.warn(str(nothing))
    commands = next_commands(path, report)
    exit_code = max(report.exit_code, WARNING if warnings else 0)
    if json:
        found = report.to_dict()
        for shown, finding in zip(found["findings"], report.findings, strict=True):
            shown["message"] = message_of(finding, path, report)
        output.write_json({**found, "exit_code": exit_code, "warnings": warnings, "next": list(commands)})
    else:
        _show(path, report, commands, show_all=show_all)
    raise typer.Exit(exit_code)


def message_of(finding: kbat.results.Finding, path: Location, report: kbat.results.Report) -> str:
    """Return a finding's message in the words of a shell, without salvage for a file that is not a log."""
    message = output.in_shell(finding.message)
    place = path.at(finding.path)
    if finding.severity != "error" or place.name == CHECKPOINT or place.suffix in _INDEXES:
        return message
    reason = foreign(place)
    if reason or not report.batch_count:
        message = _SALVAGE.sub("", message)
    return f"{message}; {reason}" if reason else message


def next_commands(path: Location, report: kbat.results.Report) -> dict[str, str]:
    """Return the commands that help with the findings, each with its purpose; the first ones change nothing."""
    # dictionaries as ordered sets, in the order of the findings
    found: dict[_Help, dict[Location, None]] = {what: {} for what in _Help}
    for finding in report.findings:
        place = path.at(finding.path)
        what = _help_for(finding, path, report)
        if what is not None:
            found[what][place if what in _OF_FILES else place.parent] = None
    unread = {place.parent for what in (_Help.ACCESS, _Help.NAME) for place in found[what] if place.suffix == ".log"}
    logs = [directory for directory in found[_Help.LOG] if directory not in unread]
    commands: dict[str, str] = {}
    for what in _OF_FILES:
        for place in found[what]:
            commands.update(_commands_for_file(what, place, path.again))
    for directory in found[_Help.COMPACTION]:
        commands.update(_commands_for_log(directory))
    for directory in found[_Help.SWAP]:
        commands.update(_salvage(directory))
    for directory in logs:
        commands.update(_commands_for_log(directory))
    for directory in found[_Help.INDEX]:
        if directory not in unread and directory not in logs and not foreign_directory(directory):
            commands.update(_commands_for_index(path if path.is_file else directory))
    return commands


def _commands_for_file(what: _Help, place: Location, again: str) -> dict[str, str]:
    if what is _Help.DUMP:
        salvaged = word(f"salvaged/{place.stem}")
        return {f"kbat salvage {word(place)} {salvaged}{again}": "a segment with every complete batch"}
    if what is _Help.NAME:
        right = place.parent.child(f"{int(place.stem):020}{place.suffix}")
        return {f"mv {word(place)} {word(right)}": "the name that a broker reads"}
    help_of_access = {f"ls -ld {word(place)}": "its kind and permissions; then verify as a user with access"}
    return {} if _is_missing(place) else help_of_access


def _is_missing(place: Location) -> bool:
    """Return whether the file system has no such file: objects, and what tiered storage presents as directories."""
    try:
        os.lstat(str(place))
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _out(directory: Location, where: str) -> str:
    """Return a directory for a result: below the working directory, unless that is in the partition itself."""
    name, own = f"{where}/{directory.own_name}", os.path.realpath(str(directory))
    here = os.path.realpath(".")
    if directory.is_local and os.path.commonpath([own, here]) == own:
        return word(os.path.relpath(Path(own).parent.parent / name, here))
    return word(name)


def _recovery(directory: Location) -> dict[str, str]:
    quoted, again = word(directory), directory.again
    return {
        f"kbat recover {quoted} --dry-run{again}": "what a broker would discard",
        f"kbat recover {quoted} {_out(directory, 'recovered')}{again}": "a copy as a broker would leave it",
    }


def _salvage(directory: Location) -> dict[str, str]:
    command = f"kbat salvage {word(directory)} {_out(directory, 'salvaged')}{directory.again}"
    return {command: "a copy with every complete batch"}


def _commands_for_log(directory: Location) -> dict[str, str]:
    return {**_recovery(directory), **_salvage(directory)}


def _commands_for_index(place: Location) -> dict[str, str]:
    if place.is_local:
        return {f"kbat rebuild-indexes {word(place)}": "replaces the indexes there; with OUT, writes new ones to OUT"}
    out = word(f"salvaged/{place.own_name.removesuffix('.log')}")
    return {f"kbat salvage {word(place)} {out}{place.again}": "a copy with new indexes"}


def _is_lost(place: Location, report: kbat.results.Report) -> bool:
    """Return whether no command would keep anything: the segments are text files, compressed copies or noise."""
    if place.suffix != ".log":
        return place.name != CHECKPOINT and (report.batch_count == 0 or bool(foreign(place)))
    return report.batch_count == 0 or bool(foreign_directory(place.parent))


def _help_for(finding: kbat.results.Finding, path: Location, report: kbat.results.Report) -> _Help | None:
    place = path.at(finding.path)
    is_log = place.suffix == ".log" or place.name == CHECKPOINT
    is_index = place.suffix in _INDEXES
    if finding.kind == "unreadable":
        # an index on a bad sector can be rebuilt
        is_replaced = is_index and not place.is_dir and "Permission denied" not in finding.message
        return _Help.INDEX if is_replaced else _Help.ACCESS
    if finding.kind == "file_name" and finding.severity == "error" and place.is_local and _is_offset(place.stem):
        return _Help.NAME
    if finding.kind in _NO_HELP or finding.severity == "info":
        return None
    if finding.kind in _BY_KIND:
        return _BY_KIND[finding.kind]
    is_dump = place == path == repairable(path)
    if finding.severity == "error" and (is_dump or is_log):
        return None if _is_lost(place, report) else _Help.DUMP if is_dump else _Help.LOG
    return _Help.INDEX if is_index else None


def _is_offset(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) <= MAX


def _show(path: Location, report: kbat.results.Report, commands: dict[str, str], *, show_all: bool) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    shown: Counter[str] = Counter()
    hidden = report.omitted_count
    for finding in sorted(report.findings, key=lambda one: _ORDER.index(one.severity)):
        seen[finding.path, finding.kind] += 1
        is_of_many = finding.severity == "info" and shown[finding.kind] >= _SHOWN_INFO
        if not show_all and (is_of_many or seen[finding.path, finding.kind] > _SHOWN):
            hidden += 1
            continue
        shown[finding.kind] += 1
        output.write_line(_line(finding, message_of(finding, path, report)))
    if hidden:
        more = "" if show_all else "; --all shows more"
        output.write_line(f"{output.count_text(hidden, 'more finding')} of the same kinds{more}")
    counts = Counter(finding.severity for finding in report.findings)
    numbers = ", ".join(
        (
            output.count_text(report.segment_count, "segment"),
            output.count_text(report.batch_count, "batch", "batches"),
            output.count_text(report.record_count, "record"),
            output.size_text(report.byte_count),
        )
    )
    verdict = f"{output.count_text(counts['error'], 'error')}, {output.count_text(counts['warning'], 'warning')}"
    output.write_line(f"{report.path}: {numbers}: {verdict}")
    if commands:
        output.write_line("next:")
        width = max(map(len, commands))
        for command, purpose in commands.items():
            output.write_line(f"  {command:{width}}  # {purpose}")


def _line(finding: kbat.results.Finding, message: str) -> str:
    place = output.text(finding.path)
    if finding.position is not None:
        place += f", byte {finding.position}"
    if finding.offset is not None:
        place += f", offset {finding.offset}"
    name = output.styled(f"{finding.severity}: {finding.kind}", _STYLES[finding.severity])
    return f"{name}: {place}: {output.text(message)}"
