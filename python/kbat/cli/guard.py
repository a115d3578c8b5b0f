"""How a command fails: one line with the location and the next step, and an exit code."""

import functools
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, ParamSpec

import typer

import kbat
from kbat.cli import output
from kbat.cli.location import Location
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
            _fail(_without_secrets(f"{error}{_what_next(error, kwargs, at_damage)}", kwargs), failed)
        except (ValueError, OverflowError) as error:
            _fail(_without_secrets(str(error), kwargs), WRONG_ARGUMENT)

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


def _what_next(error: Exception, arguments: dict[str, Any], at_damage: str) -> str:
    """Return the end of an error's line: what to do."""
    paths = _locations(arguments)
    path = paths[0]
    place = getattr(error, "path", None)
    damaged = path if place is None else path.at(place)
    if len(paths) > 1:
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
            advice = f"'kbat verify {word(path)}{path.again}' lists everything that can't be read"
        case kbat.KbatError():
            verify = f"kbat verify {word(path)}{path.again}"
            salvage = f"kbat salvage {word(repairable(damaged))} OUT{path.again}"
            advice = f"'{verify}' lists all corruption, '{salvage}' keeps all complete batches{at_damage}"
        case PermissionError() if not path.is_local:
            advice = "check the credentials in the environment, such as AWS_ACCESS_KEY_ID, or those of --storage-option"
        case PermissionError():
            advice = "run kbat as a user with access to it, such as the broker's"
    return f"; {advice}" if advice else ""


def _without_secrets(message: str, arguments: dict[str, Any]) -> str:
    return _locations(arguments)[0].without_secrets(message)


def _locations(arguments: dict[str, Any]) -> list[Location]:
    """Return the locations that a command reads, with its options."""
    found = arguments.get("paths") or [arguments.get("path")]
    options = (arguments.get("storage_option"), arguments.get("encryption_key"))
    locations = (one if isinstance(one, Location) else Location(str(one)) for one in found)
    return [one.opened_with(*options) for one in locations]


def _close_output() -> None:
    """Discard the rest of the output: the reader of the pipe is gone, and Python flushes when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
