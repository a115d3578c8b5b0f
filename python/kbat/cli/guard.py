"""How a command fails: one line with the location and the next step, and an exit code."""

import functools
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, ParamSpec

import typer

import kbat
from kbat.cli import output
from kbat.cli.place import NothingToReadError, foreign, repairable, word

P = ParamSpec("P")

FAILED = 1
WRONG_ARGUMENT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


class FailedError(Exception):
    """A command failed, and its message is complete."""


def guarded(command: Callable[P, None], *, failed: int = FAILED, at_damage: str = "") -> Callable[P, None]:
    """Run a command so that its errors become a line on the standard error and an exit code.

    Args:
        command: The command, with an argument `path` or `paths`.
        failed: Exit code for bytes or files that can't be read or written.
        at_damage: Another way to handle corruption, for the end of the line.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            _close_output()
            raise typer.Exit(BROKEN_PIPE) from None
        except KeyboardInterrupt:
            _fail("interrupted", INTERRUPTED)
        except ModuleNotFoundError as error:
            _fail(f"{error}: pip install 'kbat[cli]'", WRONG_ARGUMENT)
        except NothingToReadError as error:
            _fail(f"warning: {error}", FAILED)
        except (kbat.KbatError, OSError, FailedError) as error:
            _fail(f"{error}{_what_next(error, kwargs, at_damage)}", failed)
        except (ValueError, OverflowError) as error:
            _fail(str(error), WRONG_ARGUMENT)

    return run


def _fail(message: str, exit_code: int) -> NoReturn:
    try:
        # keep the order of the output if both outputs are the same file
        sys.stdout.flush()
    except (BrokenPipeError, KeyboardInterrupt):
        # the second Ctrl-C, while the reader of the pipe pauses
        _close_output()
    output.note(f"kbat: {message}")
    raise typer.Exit(exit_code)


def _what_next(error: Exception, arguments: dict[str, object], at_damage: str) -> str:
    """Return the end of an error's line: what to do."""
    paths = arguments.get("paths")
    path = Path(str(paths[0] if isinstance(paths, list) and paths else arguments.get("path")))
    place = getattr(error, "path", None)
    damaged = path if place is None else Path(place)
    if isinstance(paths, list) and len(paths) > 1:
        path = repairable(damaged)
    advice = ""
    match error:
        case kbat.KbatError() if place is not None and (reason := foreign(damaged)):
            advice = reason
        case kbat.LimitError():
            advice = "raise it in Python, with limits=kbat.Limits(...)"
        case kbat.KbatError() if str(damaged) == "-":
            advice = "save the standard input to a file: 'kbat verify FILE' lists all corruption"
        case kbat.UnsupportedError():
            advice = f"'kbat verify {word(path)}' lists everything that can't be read"
        case kbat.KbatError():
            salvage = f"kbat salvage {word(repairable(damaged))} OUT"
            advice = (
                f"'kbat verify {word(path)}' lists all corruption, '{salvage}' keeps all complete batches{at_damage}"
            )
        case PermissionError():
            advice = "run kbat as a user with access to it, such as the broker's"
    return f"; {advice}" if advice else ""


def _close_output() -> None:
    """Discard the rest of the output: the reader of the pipe is gone, and Python flushes when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
