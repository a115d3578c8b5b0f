"""A table of options: a frozen dataclass whose fields have an option's name, parser and text.

```
option name in any case ──► its field ──► its parser ──► its value, or a ValueError that names option and values
```
"""

from __future__ import annotations

import difflib
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from dataclasses import Field

Options = TypeVar("Options")


def option(  # noqa: PLR0913 -- all but three by keyword
    name: str,
    parse: Callable[[str], object],
    doc: str,
    *,
    default: object = None,
    aliases: tuple[str, ...] = (),
    is_secret: bool = False,
) -> Any:  # noqa: ANN401 -- as dataclasses.field
    """Return a field for the option `name` and its `aliases`; no repr and no message has the value of a secret one.

    A name like `storage.<name>` is that of all options with this beginning; the field has pairs of name and value.
    """
    metadata = {"name": name, "parse": parse, "doc": doc, "aliases": aliases, "is_secret": is_secret}
    return field(default=default, metadata=metadata, repr=not is_secret)


def option_names(table: type[Any]) -> tuple[str, ...]:
    """Return the names of all options of a table, in order."""
    return tuple(item.metadata["name"] for item in _fields(table))


def parse_table(table: type[Options], given: Mapping[str, str]) -> Options:
    """Parse options, whatever the case of their names.

    Raises `ValueError` that names the option and its possible values.
    """
    known = {
        name.lower(): item for item in _fields(table) for name in (item.metadata["name"], *item.metadata["aliases"])
    }
    families = {name.removesuffix("<name>"): item for name, item in known.items() if name.endswith("<name>")}
    values: dict[str, object] = {}
    members: dict[str, dict[str, object]] = {}
    for name, text in given.items():
        beginning, dot, member = name.lower().partition(".")
        family = families.get(beginning + dot)
        item = family or known.get(name.lower())
        if item is None:
            raise ValueError(_unknown(name, table, known))
        value = _parse(item, name, text)
        there = values if family is None else members.setdefault(item.name, {})
        if there.setdefault(item.name if family is None else member, value) != value:
            shown = "" if item.metadata["is_secret"] else f"={text!r}"
            first = item.metadata["name"] if family is None else name.lower()
            message = f"kbat: options {first} and {name}{shown} conflict: set only one of them"
            raise ValueError(message)
    return table(**values, **{name: tuple(pairs.items()) for name, pairs in members.items()})


def _fields(table: type[Any]) -> list[Field[Any]]:
    return [item for item in fields(table) if item.metadata]


def _parse(item: Field[Any], name: str, text: str) -> object:
    shown = name if name.lower() in (alias.lower() for alias in item.metadata["aliases"]) else item.metadata["name"]
    try:
        return item.metadata["parse"](text)
    except ValueError as error:
        reason = str(error).removeprefix("kbat: ")
        given = "" if item.metadata["is_secret"] else f"={text!r}"
        message = f"kbat: option {name if shown.endswith('<name>') else shown}{given}: {reason}"
        raise ValueError(message) from None


# Options that Spark adds for a table.
_OF_TABLES = ("owner", "location", "provider")
# Arguments of kbat.scan, and the options that they correspond to.
_OF_SCANS = {
    "topics": "subscribe",
    "partitions": "assign",
    "storage_options": "storage.<name>",
    "encryption_keys": "encryptionKeys",
}


def _unknown(name: str, table: type[Any], known: Mapping[str, Field[Any]]) -> str:
    of_scan = _OF_SCANS.get(name.lower(), "").lower()
    near = [of_scan] if of_scan in known else difflib.get_close_matches(name.lower(), known, n=1)
    # Spark passes the names in lower case
    shown = f"kbat: unknown option {name}" + (" (Spark lower-cased it)" if name.islower() else "")
    if name.lower() in _OF_TABLES:
        return f"{shown}: Spark sets it for CREATE TABLE, which does not pass options; use CREATE TEMPORARY VIEW"
    if near:
        return f"{shown}; did you mean {known[near[0]].metadata['name']}?"
    return f"{shown}; the options are: {', '.join(option_names(table))}"
