"""What a command does when it can't go on: one line that says where and what to do next, and an exit code."""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

import typer

import kbat
from kbat.cli import output
from kbat.cli.place import repairable, word

P = ParamSpec("P")

FAILED = 1
WRONG_ARGUMENT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


class FailedError(Exception):
    """A command failed, and its message says all."""


def guarded(command: Callable[P, None], *, failed: int = FAILED, at_damage: str = "") -> Callable[P, None]:
    """Run a command so that its errors become a line on the standard error and an exit code.

    Args:
        command: The command, whose argument `path` is what it works on.
        failed: Exit code for bytes or files that can't be read or written.
        at_damage: What else helps with damaged bytes.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        path = kwargs.get("path")
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            _close_output()
            raise typer.Exit(BROKEN_PIPE) from None
        except KeyboardInterrupt:
            output.note("kbat: interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except ModuleNotFoundError as error:
            output.note(f"kbat: {error}: pip install 'kbat[cli]'")
            raise typer.Exit(WRONG_ARGUMENT) from error
        except (kbat.KbatError, OSError, FailedError) as error:
            output.note(f"kbat: {error}{_what_next(error, path, at_damage)}")
            raise typer.Exit(failed) from error
        except (ValueError, OverflowError) as error:
            output.note(f"kbat: {error}")
            raise typer.Exit(WRONG_ARGUMENT) from error

    return run


def _what_next(error: Exception, path: object, at_damage: str) -> str:
    """Give the end of an error's line: what to do."""
    place = word(str(path))
    match error:
        case kbat.LimitError():
            return "; kbat.Limits raises the limit, in Python"
        case kbat.UnsupportedError():
            return f"; 'kbat verify {place}' lists what can't be read"
        case kbat.KbatError():
            damaged = place if error.path is None else word(repairable(Path(error.path)))
            return (
                f"; 'kbat verify {place}' lists all damage, 'kbat salvage {damaged} OUT' keeps what is whole{at_damage}"
            )
        case PermissionError():
            return "; run kbat as a user who may, such as the broker's"
        case _:
            return ""


def _close_output() -> None:
    """Let nothing more be written to a pipe that nobody reads, when Python ends neither."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
