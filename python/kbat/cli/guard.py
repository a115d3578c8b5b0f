"""How a command fails: one line with the location and the next step, and an exit code."""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn, ParamSpec

import typer

import kbat
from kbat.cli import output
from kbat.cli.location import Location
from kbat.cli.place import MANIFEST, NothingToReadError, foreign, repairable, word
from kbat.cli.signals import Stopped
from kbat.cli.stores import OPTIONS

P = ParamSpec("P")

FAILED = 1
WRONG_ARGUMENT = 2
INTERRUPTED = 130
# Added to the number of a signal.
_SIGNALLED = 128
BROKEN_PIPE = 141
# Words of errors about files of another format.
_NOT_A_SEGMENT = "not a Kafka log segment"

Debug = Annotated[bool, typer.Option("--debug", help="Also show the details of an error, for a bug report.")]
_debugging = False


def set_debug(*, is_set: bool) -> None:
    """Set whether the commands that run from now on show the details of errors, also without their own option."""
    global _debugging  # noqa: PLW0603 - the option of `kbat` itself belongs to the process
    _debugging = is_set


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
        debug = bool(kwargs.pop("debug", False)) or _debugging
        output.keep_paths(_paths_in(kwargs))
        try:
            try:
                with output.warnings_as_lines():
                    command(*args, **kwargs)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            close_output()
            raise typer.Exit(BROKEN_PIPE) from None
        except Stopped as signal:
            _fail("terminated", _SIGNALLED + signal.number)
        except KeyboardInterrupt:
            _fail("interrupted", INTERRUPTED)
        except (typer.Exit, typer.Abort, typer.BadParameter, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, users see one line
            message, exit_code = _judged(error, kwargs, failed, at_damage)
            _fail(message, exit_code, _details(error, kwargs) if debug else "")

    signature = inspect.signature(command, eval_str=True)
    option = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug)
    # the signature from which typer makes options
    vars(run)["__signature__"] = signature.replace(parameters=[*signature.parameters.values(), option])
    return run


def _paths_in(arguments: dict[str, Any]) -> Iterator[object]:
    """Return the paths among the arguments of a command."""
    for value in arguments.values():
        values = value if isinstance(value, list) else [value]
        yield from (one for one in values if isinstance(one, (Location, Path)))
    yield from (arguments[name] for name in ("remote", "remote_log_metadata") if arguments.get(name))
    yield from (name for names in arguments.get("files") or () for name in names.split(","))


def _judged(error: BaseException, arguments: dict[str, Any], failed: int, at_damage: str) -> tuple[str, int]:
    """Return the line about an error, and the exit code."""
    match error:
        case ModuleNotFoundError():
            return f"{error}: pip install 'kbat[cli]'", WRONG_ARGUMENT
        case NothingToReadError():
            return f"warning: {error}", FAILED
        case kbat.KbatError() | OSError() | FailedError():
            message, exit_code = f"{error}{_what_next(error, arguments, at_damage)}", failed
        case UnicodeEncodeError(object=str(text)) if any("\ud800" <= one <= "\udfff" for one in text):
            message = (
                f"the argument {os.fsencode(text)!r} is not UTF-8: in --key and --grep, write such bytes as a pattern, "
                r"such as '(?-u:\xff\xfe)'"
            )
            exit_code = WRONG_ARGUMENT
        case ValueError() | OverflowError():
            message, exit_code = str(error), WRONG_ARGUMENT
        case MemoryError():
            message, exit_code = "out of memory; read less at once, such as one partition", failed
        case _:
            message = f"internal error: {type(error).__name__}: {error}; --debug shows the details for a bug report"
            exit_code = failed
    return _without_secrets(message, arguments), exit_code


def _fail(message: str, exit_code: int, details: str = "") -> NoReturn:
    try:
        # keep the order of the output if both outputs are the same file
        sys.stdout.flush()
    except (OSError, KeyboardInterrupt):
        # a full disk, or the second Ctrl-C while the reader of the pipe pauses
        close_output()
    output.note(f"kbat: {message}")
    sys.stderr.write(details)
    raise typer.Exit(exit_code)


def _details(error: BaseException, arguments: dict[str, Any]) -> str:
    """Return the attributes of an error and its traceback, as lines."""
    import platform  # noqa: PLC0415 - slow, and only needed here
    import traceback  # noqa: PLC0415

    about = [f"{name}: {value}" for name, value in vars(error).items() if value is not None]
    version = f"kbat {kbat.__version__}, Python {platform.python_version()}, {platform.platform()}"
    lines = [*about, version, "".join(traceback.format_exception(error)).rstrip()]
    return _without_secrets("\n".join(lines), arguments) + "\n"


def _what_next(error: BaseException, arguments: dict[str, Any], at_damage: str) -> str:
    """Return the end of an error's line: what to do."""
    paths = _locations(arguments)
    path = paths[0]
    place = getattr(error, "path", None)
    damaged = path if place is None else path.at(place)
    if len(paths) > 1 or (path.is_file and path.suffix != ".log"):
        path = repairable(damaged)
    advice = ""
    match error:
        case kbat.KbatError() if place is not None and (reason := foreign(damaged)):
            # errors of scans include it
            advice = "" if _NOT_A_SEGMENT in str(error) else reason
        case kbat.errors.LimitError():
            advice = "raise it in Python, with limits=kbat.Limits(...)"
        case kbat.KbatError() if str(damaged) == "-":
            advice = "save the standard input to a file: 'kbat verify FILE' lists all corruption"
        case kbat.errors.UnsupportedError():
            advice = f"'kbat verify {word(path)}{path.again}' lists everything that can't be read"
        case kbat.KbatError():
            advice = _advice_on_log(error, paths[0], path, damaged) + (at_damage if error.position is not None else "")
        case PermissionError() if error.errno is None or not path.is_local:  # errors of stores have no number
            advice = "check the credentials in the environment, such as AWS_ACCESS_KEY_ID, or those of --storage-option"
        case FileNotFoundError(filename=str(gone)) if gone.endswith(".log") and path.is_dir:
            advice = "a broker may have deleted it after it was listed: repeat the command"
        case PermissionError():
            advice = "run kbat as a user with access to it, such as the broker's"
    return f"; {advice}" if advice else ""


def _advice_on_log(error: kbat.KbatError, given: Location, path: Location, damaged: Location) -> str:
    """Return the commands for corruption of a log. An error without a position is about a file and says what to do."""
    verify = f"'kbat verify {word(path)}{path.again}'"
    if damaged.suffix == MANIFEST:
        return f"'kbat verify {word(given)}{given.again}' checks the other segments"
    if error.position is None:
        return f"{verify} has the details"
    salvage = f"kbat salvage {word(repairable(damaged))} OUT{path.again}"
    return f"{verify} lists all corruption, '{salvage}' keeps all complete batches"


def _without_secrets(message: str, arguments: dict[str, Any]) -> str:
    return _locations(arguments)[0].without_secrets(message)


def _locations(arguments: dict[str, Any]) -> list[Location]:
    """Return the locations that a command reads, with its options."""
    # the option of `dump`
    files = [name for names in arguments.get("files") or () for name in names.split(",")]
    found = arguments.get("paths") or files or [arguments.get("path")]
    options = [arguments.get(name) for name in OPTIONS]
    locations = (one if isinstance(one, Location) else Location(str(one)) for one in found)
    return [one.opened_with(*options) for one in locations]


def close_output() -> None:
    """Discard the rest of the output: the reader of the pipe is gone, and Python flushes when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
