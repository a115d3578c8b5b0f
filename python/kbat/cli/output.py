"""What the commands print: tables for people, JSON for programs.

Results go to the standard output, everything else to the standard error. Text has sizes in KiB, MiB or GiB and times in
UTC; JSON has sizes in bytes and timestamps in milliseconds since the epoch.
"""

import datetime as dt
import functools
import json
import re
import sys
from collections.abc import Iterable
from typing import NoReturn

from rich.console import Console

#: What Kafka stores for a record without a timestamp.
NO_TIMESTAMP = -1

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# Columns of a table that goes to a file or a pipe: nothing is hidden or shortened there.
_PIPE_WIDTH = 10_000
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
_UNIT = 1024
# Messages of the package name Python's functions and arguments.
_SHELL_WORDS = (
    (re.compile(r"(?<![\w.'/-])rebuild_indexes\b"), "kbat rebuild-indexes"),
    (re.compile(r"(?<=; )(salvage|recover)(?= \w)"), r"kbat \1"),
    (re.compile(r"\bset (?=replicas=)"), "add "),
    (
        re.compile(r'the key "([^"]+)": no encryption keys were passed'),
        r'the key "\1": add --encryption-key \1=PATH.pem',
    ),
    (re.compile(r"\bstorage_options\b"), "--storage-option"),
    (re.compile(r"\bencryption_keys\b"), "--encryption-key"),
    (re.compile(r"(--(?:storage-option|encryption-key)) have no effect"), r"\1 has no effect"),
    (re.compile(r"(?<=the file system: )remove them, or name a URL"), "remove it, or name a URL"),
    (re.compile(r"\b(replicas|on_corrupt|compression|magic)=\"?(\w+)\"?"), lambda match: _option(match[1], match[2])),
)


def _option(name: str, value: str) -> str:
    return f"--{name.replace('_', '-')} {value}"


class _Console(Console):
    """A console that raises an error for a broken pipe, for the command to handle."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return a console on the current standard output or error."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return _Console(stderr=stderr, width=width, highlight=False, soft_wrap=True)


def write_line(text: str) -> None:
    """Write a line to the standard output unchanged."""
    sys.stdout.write(f"{text}\n")


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to the standard output in one piece."""
    if joined := "\n".join(lines):
        sys.stdout.write(f"{joined}\n")


def write_json(value: object) -> None:
    """Write a JSON document."""
    write_line(json.dumps(value, indent=2, ensure_ascii=False))


def note(text: str) -> None:
    """Write a line to the standard error, in the words of a shell, after everything printed before."""
    sys.stdout.flush()
    sys.stderr.write(f"{in_shell(' '.join(text.split()))}\n")


def in_shell(message: str) -> str:
    """Return a message of the package with commands and options instead of Python's functions and arguments."""
    for pattern, words in _SHELL_WORDS:
        message = pattern.sub(words, message)
    return message


def count_text(count: int, singular: str, plural: str | None = None) -> str:
    """Return a number and its noun, such as `1 segment` or `2 segments`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def size_text(size: float) -> str:
    """Return a size in bytes, KiB, MiB or larger units."""
    if size < _UNIT:
        return f"{size:.0f} B"
    for unit in _UNITS:
        size /= _UNIT
        if size < _UNIT or unit == _UNITS[-1]:
            break
    return f"{size:,.1f} {unit}"


def time_text(timestamp: int | None) -> str:
    """Return milliseconds since the epoch as a time in UTC, a dash for none, the number if no calendar has it."""
    if timestamp is None or timestamp == NO_TIMESTAMP:
        return "-"
    if timestamp < 0:
        return str(timestamp)
    try:
        return f"{_second_text(timestamp // 1000)}.{timestamp % 1000:03}Z"
    except OverflowError:
        return str(timestamp)


@functools.lru_cache(maxsize=1024)
def _second_text(seconds: int) -> str:
    return f"{_EPOCH + dt.timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"


def text(value: object) -> str:
    """Return a value on one line that is safe on a terminal: null as a dash, unprintable characters escaped."""
    if value is None:
        return "-"
    shown = f"{value:,}" if isinstance(value, int) else str(value)
    if shown.isprintable():
        return shown
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)
