"""What the help of each command contains: read from its function, for terminals, man pages and the documentation."""

import re
from dataclasses import dataclass, field
from typing import Any

# The paragraph of a help that has a section of its own, by its first word.
_SECTIONS = {"Example": "EXAMPLES", "Examples": "EXAMPLES", "JSON": "JSON", "Exit": "EXIT STATUS"}
CODE = re.compile(r"`([^`]+)`")
_TITLE = re.compile(r"^(Examples?|JSON|Exit codes): ")
_IN_BRACKETS = re.compile(r"^\[([^\[\]]*)\]$")


@dataclass(frozen=True)
class Option:
    """An option or an argument: how it is written, and what it does."""

    names: tuple[str, ...]
    value: str
    text: str
    default: str
    is_required: bool
    is_repeated: bool


@dataclass(frozen=True)
class Page:
    """The manual of a command."""

    name: str
    summary: str
    description: list[str]
    sections: dict[str, list[str]]
    arguments: list[Option]
    options: list[Option]
    panel: str = ""
    commands: dict[str, str] = field(default_factory=dict)

    @property
    def examples(self) -> list[str]:
        """The commands of the examples."""
        return [code for paragraph in self.sections.get("EXAMPLES", []) for code in CODE.findall(paragraph)]

    @property
    def synopsis(self) -> str:
        """The command as it is typed."""
        shown = [f"{one.value}..." if one.is_repeated else one.value for one in self.arguments]
        optional = [text if one.is_required else f"[{text}]" for one, text in zip(self.arguments, shown, strict=True)]
        return " ".join([self.name, "[OPTIONS]", *(["COMMAND", "..."] if self.commands else optional)])


def page_of(name: str, command: Any, commands: dict[str, str]) -> Page:  # noqa: ANN401 - typer does not export the class
    """Return the page of a command, or of the group of some commands with their summaries."""
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", command.help or "")]
    sections: dict[str, list[str]] = {}
    description = []
    for paragraph in paragraphs[1:]:
        title = _SECTIONS.get(paragraph.split(" ")[0].rstrip(":"))
        if title is None:
            description.append(paragraph)
        else:
            sections.setdefault(title, []).append(_TITLE.sub("", paragraph))
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    return Page(
        name=name,
        summary=summary_of(command.help),
        description=[paragraphs[0], *description],
        sections=sections,
        arguments=[_option(one) for one in shown if one.param_type_name == "argument"],
        options=[_option(one) for one in shown if one.param_type_name == "option"],
        panel=getattr(command, "rich_help_panel", None) or "",
        commands=commands,
    )


def summary_of(text: str | None) -> str:
    """Return the first sentence of a help, as one for lists."""
    first = " ".join((text or "").split("\n\n")[0].split())
    return re.split(r"(?<=[a-z`])\. ", first)[0].rstrip(".")


def _option(parameter: Any) -> Option:  # noqa: ANN401 - typer does not export the class
    is_flag = bool(getattr(parameter, "is_flag", False))
    default = parameter.default
    is_shown = bool(getattr(parameter, "show_default", False)) and default not in (None, False, [], ())
    names = (*parameter.opts, *parameter.secondary_opts) if parameter.param_type_name == "option" else ()
    text = " ".join((parameter.help or "").split())
    if is_flag and parameter.secondary_opts:
        shown = parameter.opts[0] if default else parameter.secondary_opts[0]
    else:
        shown = str(getattr(default, "value", default)) if is_shown and not callable(default) else ""
    metavar = parameter.metavar or parameter.name.upper()
    # the brackets of an optional argument, not those of a part of it
    metavar = "" if is_flag else _IN_BRACKETS.sub(r"\1", metavar)
    return Option(
        names=names,
        value=metavar,
        text=text,
        default=shown,
        is_required=parameter.required,
        is_repeated=parameter.multiple or parameter.nargs == -1,
    )
