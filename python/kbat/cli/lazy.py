"""The group of all commands: imports the module of a command only when the command is invoked or its help is shown."""

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from kbat.cli import output
from kbat.cli.guard import BROKEN_PIPE, FAILED, INTERRUPTED, WRONG_ARGUMENT, close_output, guarded

# The base class of errors about arguments; releases of typer have it in different modules.
_UsageError: Any = typer.BadParameter.__mro__[1]

# Parsers of parameters that do not have their own.
_PARSERS: dict[Any, Callable[[Any], Any]] = {str: str, list[str]: str, bool: bool}
# Options whose value is a regular expression.
_PATTERNS = {"--key", "--grep"}
_REPAIR = "'kbat recover' repairs a partition as a broker does, 'kbat salvage' keeps every complete batch"
_COMPARISON = "'diff <(kbat cat A) <(kbat cat B)' compares the records of two logs"
# Names that users try, and what helps instead.
_SYNONYMS = {
    "repair": _REPAIR,
    "fix": _REPAIR,
    "check": "did you mean 'verify'?",
    "validate": "did you mean 'verify'?",
    "compare": _COMPARISON,
    "diff": _COMPARISON,
}
_OPTION_SYNONYMS = {"--codec": "--compression"}


class _Conversion:
    """What typer calls to convert the text of a parameter: the parameter's own parser, or none."""

    def __init__(self, parser: Callable[[Any], Any], *, is_list: bool) -> None:
        self._parser = parser
        self._is_list = is_list

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401 - typer calls it
        del param, ctx
        if self._is_list:
            return [self._parser(one) for one in value or ()]
        return None if value is None else self._parser(value)


def _collect(option: Any, parser: Any, ctx: Any) -> None:  # noqa: ANN401 - typer calls it
    """Make a parser collect all values of an option that accepts one, of which it would keep only the last."""
    del ctx
    parser.add_option(obj=option, opts=option.opts, dest=option.name, action="append", nargs=option.nargs)


def _only_value(option: Any, consume: Callable[..., Any], ctx: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - typer calls it
    """Return the value of an option that accepts one.

    Raises:
        UsageError: It has several different values.
    """
    found = values.get(option.name)
    if not isinstance(found, list):
        return consume(ctx, values)
    if len(set(found)) > 1 and not ctx.resilient_parsing:
        name = max(option.opts, key=len)
        several = ", which may be a pattern for several, such as 'c3|c4'" if name in _PATTERNS else ""
        message = f"{name} is set twice: {found[0]!r} and {found[-1]!r}; it accepts one value{several}"
        raise _UsageError(message, ctx)
    return consume(ctx, {**values, option.name: found[-1]})


class _Quick:
    """A command whose parameters are converted by their own parsers, and text and flags without typer.

    Newer releases of typer convert with pydantic, whose import takes longer than `kbat ls`. Older ones do not have the
    method that is replaced.
    """

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer does not export the class
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in found:
            if parameter.param_type_name == "option" and not (
                parameter.multiple
                or parameter.is_flag
                or parameter.count
                or isinstance(parameter.consume_value, partial)
            ):
                parameter.add_to_parser = partial(_collect, parameter)
                parameter.consume_value = partial(_only_value, parameter, parameter.consume_value)
            described = getattr(parameter, "type_descriptor", None)
            if described is None or not hasattr(parameter, "get_runtime_param"):
                continue
            parser = described.parameter_info.parser or _PARSERS.get(described.annotation)
            if parser is not None:
                parameter.get_runtime_param = partial(_Conversion, parser, is_list=described.is_list)
        return found


class _QuickCommand(_Quick, TyperCommand):
    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer does not export the classes
        """Write the help of the command."""
        from kbat.cli.help import help_text  # noqa: PLC0415 - only needed here
        from kbat.cli.pages import page_of  # noqa: PLC0415

        formatter.write(help_text(page_of(ctx.command_path, self, {})))


@dataclass(frozen=True)
class Command:
    """Location of a command's function, and how it is run.

    Args:
        function: Module below `kbat.cli` and the function in it, such as `repair:recover`.
        panel: Heading in the list of commands.
        failed: As for `guarded`.
        at_damage: As for `guarded`.
        hidden: Whether the list of commands omits it.
    """

    function: str
    panel: str
    failed: int = FAILED
    at_damage: str = ""
    hidden: bool = False

    def summary(self) -> str:
        """Return the first sentence of its help, from the compiled module. Importing all modules takes too long."""
        from kbat.cli.pages import summary_of  # noqa: PLC0415 - only needed for help

        module, _, function = self.function.partition(":")
        name = f"kbat.cli.{module}"
        spec = importlib.util.find_spec(name)
        code = getattr(spec.loader, "get_code", lambda _: None)(name) if spec is not None else None
        found = [one for one in getattr(code, "co_consts", ()) if getattr(one, "co_name", None) == function]
        # the first constant of a function is its docstring
        return summary_of(found[0].co_consts[0]) if found else ""

    def load(self, name: str) -> Any:  # noqa: ANN401 - typer does not export the class
        """Import the function and return it as a command."""
        module, _, function = self.function.partition(":")
        found = getattr(importlib.import_module(f"kbat.cli.{module}"), function)
        alone = typer.Typer(rich_markup_mode="markdown", add_completion=False, pretty_exceptions_enable=False)
        run = guarded(found, failed=self.failed, at_damage=self.at_damage)
        alone.command(name, cls=_QuickCommand, hidden=self.hidden, rich_help_panel=self.panel)(run)
        return typer.main.get_command(alone)


class _Commands(Mapping[str, Any]):
    """The commands of a table by name. Only a command that is read is imported."""

    def __init__(self, table: Mapping[str, Command]) -> None:
        self._table = table
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - as above
        if name not in self._loaded:
            self._loaded[name] = self._table[name].load(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


class LazyGroup(_Quick, TyperGroup):
    """A group with the commands of a table, whose errors about arguments are one line."""

    table: Mapping[str, Command]

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(**attributes)
        commands: Any = _Commands(self.table)
        self.commands = commands

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer does not export the classes
        """Write the help with the list of commands, none of which is imported."""
        from kbat.cli.help import help_text  # noqa: PLC0415 - only needed here
        from kbat.cli.pages import page_of  # noqa: PLC0415

        listed = {name: command for name, command in self.table.items() if not command.hidden}
        panels: dict[str, list[str]] = {}
        for name, command in listed.items():
            panels.setdefault(command.panel, []).append(name)
        summaries = {name: command.summary() for name, command in listed.items()}
        formatter.write(help_text(page_of(ctx.command_path, self, summaries), panels))

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer does not export the class
        """Return the names of all commands without importing them."""
        del ctx
        return list(self.table)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - as above
        """Return the command that the arguments name.

        Raises:
            UsageError: There is no such command. The message has what helps instead of some names.
        """
        name = args[0]
        if name in _SYNONYMS and not ctx.resilient_parsing:
            message = f"no such command {name!r}; {_SYNONYMS[name]}"
            raise _UsageError(message, ctx)
        return super().resolve_command(ctx, args)

    def main(self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]  # noqa: ANN401 - as above
        """Run the command line."""
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **extra)
        try:
            exit_code = self._run(args, **extra)
            # the help and the version are written here
            sys.stdout.flush()
        except BrokenPipeError:
            close_output()
            exit_code = BROKEN_PIPE
        except OSError as error:
            close_output()
            output.note(f"kbat: {error}")
            exit_code = FAILED
        sys.exit(exit_code)

    def _run(self, args: Sequence[str] | None, **extra: Any) -> Any:  # noqa: ANN401 - as above
        """Run the command line and return its exit code."""
        try:
            return super().main(args, standalone_mode=False, **extra)
        except _UsageError as error:
            return _refuse(error)
        except ModuleNotFoundError as error:
            output.note(f"kbat: {error}: pip install 'kbat[cli]'")
            return WRONG_ARGUMENT
        except typer.Abort:
            return INTERRUPTED


def _refuse(error: Any) -> Any:  # noqa: ANN401 - as above
    """Show what is wrong with the arguments; the help if there are none. Return the exit code."""
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.ctx.get_help())
    else:
        message = _message_of(error)
        command = error.ctx.command_path if error.ctx else "kbat"
        end = " " if message.endswith("?") else "; "
        output.note(f"kbat: {message[:1].lower()}{message[1:]}{end}'{command} --help' lists the arguments and options")
    return error.exit_code


def _message_of(error: Any) -> str:  # noqa: ANN401 - as above
    """Return what is wrong with the arguments, without the stop, and with names that the user may have meant."""
    name = getattr(error, "option_name", None)
    possibilities = getattr(error, "possibilities", None) or ()
    if name is None or type(error).__name__ != "NoSuchOption":
        return str(error.format_message()).rstrip(".").replace(". Did you mean ", "; did you mean ")
    known = {one for parameter in error.ctx.command.params for one in parameter.opts} if error.ctx else set()
    if _OPTION_SYNONYMS.get(name) in known:
        possibilities = (_OPTION_SYNONYMS[name],)
    hint = f"; did you mean {' or '.join(sorted(possibilities))}?" if possibilities else ""
    return f"no such option: {name}{hint}"
