"""What the commands print: tables for people, JSON for programs.

Results go to the standard output, everything else to the standard error. Text has sizes in KiB, MiB or GiB and times in
UTC; JSON has sizes in bytes and timestamps in milliseconds since the epoch.
"""

import datetime as dt
import functools
import json
import os
import re
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

#: What Kafka stores for a record without a timestamp.
NO_TIMESTAMP = -1

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# Columns of a table that goes to a file or a pipe: nothing is hidden or shortened there.
_PIPE_WIDTH = 10_000
# Codes of ECMA-48; those from 30 on are colors, which NO_COLOR switches off.
_STYLES = {"bold": [1], "dim": [2], "red": [1, 31], "yellow": [33]}
_FIRST_COLOR = 30
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
_UNIT = 1024
# The warnings that the command has shown.
_warned: set[str] = set()
# Replaces a path while the words of a message are replaced.
_PATH = "\0"
# Words with a slash are paths; so are the arguments of the command, which may contain spaces.
_SLASHED = rf"\S*/\S*|{_PATH}"
_paths = re.compile(_SLASHED)
# A word that is not a part of a name of a file or directory.
_START, _END = r"(?<![\w.'/-])", r"(?![\w-]|\.\w)"
# Messages of the package name Python's functions and arguments.
_SHELL_WORDS = (
    (re.compile(rf"{_START}rebuild_indexes{_END}"), "kbat rebuild-indexes"),
    (re.compile(r"(?<=; )(salvage|recover)(?= \w)"), r"kbat \1"),
    (re.compile(r"\bset (?=replicas=)"), "add "),
    (
        re.compile(r'the key "([^"]+)": no encryption keys were passed'),
        r'the key "\1": add --encryption-key \1=PATH.pem',
    ),
    (re.compile(rf"{_START}(until_offset|offsets_source){_END}"), lambda match: f"--{match[1].replace('_', '-')}"),
    (re.compile(rf"{_START}storage_options{_END}"), "--storage-option"),
    (re.compile(rf"{_START}encryption_keys{_END}"), "--encryption-key"),
    (re.compile(r"(--(?:storage-option|encryption-key)) have no effect"), r"\1 has no effect"),
    (re.compile(r"(?<!-)\bremote(?= has no effect| is a file)"), "--remote"),
    (re.compile(r"\bremote_log_metadata(?= has no effect)"), "--remote-log-metadata"),
    (re.compile(r"(?<=the file system: )remove them, or name a URL"), "remove it, or name a URL"),
    (
        re.compile(rf"{_START}(replicas|on_corrupt|compression|magic|leader_epoch)=\"?(\w+)\"?{_END}"),
        lambda match: _option(match[1], match[2]),
    ),
)


def _option(name: str, value: str) -> str:
    return f"--{name.replace('_', '-')} {value}"


def console(*, stderr: bool = False) -> "Console":
    """Return a console of rich on the current standard output or error. The import takes as long as a short command."""
    from rich.console import Console  # noqa: PLC0415

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=output_width(stream), highlight=False, soft_wrap=True)


def output_width(stream: TextIO) -> int:
    """Return the number of columns of an output: a terminal's, or enough for every table."""
    return shutil.get_terminal_size().columns if stream.isatty() else _PIPE_WIDTH


def styled(text: str, style: str) -> str:
    """Return text in bold or another style of `_STYLES`, if the standard output is a terminal that shows it."""
    if not sys.stdout.isatty() or os.environ.get("TERM") in {None, "", "dumb", "unknown"}:
        return text
    codes = _STYLES[style]
    if os.environ.get("NO_COLOR"):
        codes = [code for code in codes if code < _FIRST_COLOR]
    return f"\x1b[{';'.join(map(str, codes))}m{text}\x1b[0m" if codes else text


def write_line(text: str) -> None:
    """Write a line to the standard output unchanged."""
    sys.stdout.write(f"{text}\n")


def write_tail_bytes(count: int) -> None:
    """Write how many bytes after the last batches were not copied, if there are any."""
    if count:
        write_line(f"bytes after the last complete batch of a segment, not copied: {count:,}")


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
    sys.stderr.write(f"{escaped(in_shell(text.strip(), is_line=True))}\n")


def warn(text: str) -> None:
    """Write a warning to the standard error, as a line that a command shows only once."""
    text = text.removeprefix("kbat: ")
    if text not in _warned:
        _warned.add(text)
        note(f"kbat: warning: {text}")


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show the warnings of the package as `warn` does, in the block of a command."""
    _warned.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        show = warnings.showwarning

        def show_line(message: Warning | str, category: type[Warning], *others: Any) -> None:  # noqa: ANN401 - of Python
            if issubclass(category, UserWarning):
                warn(str(message))
            else:
                show(message, category, *others)

        warnings.showwarning = show_line  # type: ignore[assignment] # it passes all arguments on
        yield


def keep_paths(paths: Iterable[object]) -> None:
    """Set the arguments of the command, which no message changes, even if they look like a word of Python."""
    global _paths  # noqa: PLW0603 - the arguments belong to the process
    # a path that is a word, such as `remote`, appears in sentences too
    names = {str(path) for path in paths if re.search(r"\s", str(path)) or _in_shell(str(path)) != str(path)}
    names |= {shlex.quote(name) for name in names}
    known = sorted((rf"{re.escape(name)}(?:/\S*)?" for name in names), key=lambda one: -len(one))
    _paths = re.compile("|".join([*known, _SLASHED]))


def in_shell(message: str, *, is_line: bool = False) -> str:
    """Return a message of the package with commands and options instead of Python's functions and arguments.

    Paths in the message stay as they are.

    Args:
        message: The message.
        is_line: Whether to join its lines.
    """
    found = iter(_paths.findall(message))
    changed = _paths.sub(_PATH, message)
    if is_line:
        changed = re.sub(r" *[\n\r\t]+ *", " ", changed)
    return re.sub(_PATH, lambda _: next(found, ""), _in_shell(changed))


def _in_shell(message: str) -> str:
    for pattern, words in _SHELL_WORDS:
        message = pattern.sub(words, message)
    return message


def count_text(count: int, singular: str, plural: str | None = None) -> str:
    """Return a number and its noun, such as `1 segment` or `2 segments`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def size_text(size: float) -> str:
    """Return a size in bytes, KiB, MiB or larger units."""
    amount, unit = _in_unit(size, size)
    return f"{amount} {unit}"


def sizes_text(part: float, whole: float) -> str:
    """Return a size and the whole that it is part of, in the same unit: `1.5/20.0 MiB`."""
    return f"{_in_unit(part, whole)[0]}/{size_text(whole)}"


def _in_unit(size: float, whole: float) -> tuple[str, str]:
    """Return a size in the unit that suits another one, and the unit."""
    if whole < _UNIT:
        return f"{size:.0f}", "B"
    for unit in _UNITS:
        size, whole = size / _UNIT, whole / _UNIT
        if whole < _UNIT or unit == _UNITS[-1]:
            break
    return f"{size:,.1f}", unit


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
    return escaped(f"{value:,}" if isinstance(value, int) else str(value))


def escaped(shown: str) -> str:
    """Return text with escapes for the characters that could change a terminal."""
    if shown.isprintable():
        return shown
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)
