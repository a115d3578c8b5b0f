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

# Options that Spark adds for a table.
_OF_TABLES = ("owner", "location", "provider")


def option(
    name: str, parse: Callable[[str], object], doc: str, *, default: object = None, aliases: tuple[str, ...] = ()
) -> Any:  # noqa: ANN401 -- as dataclasses.field
    """Return a field for the option `name` and its `aliases`."""
    return field(default=default, metadata={"name": name, "parse": parse, "doc": doc, "aliases": aliases})


def parse_table(table: type[Options], given: Mapping[str, str]) -> Options:
    """Parse options. The case of their names does not matter.

    Raises `ValueError` that names the option and its possible values.
    """
    known = {
        name.lower(): item for item in _fields(table) for name in (item.metadata["name"], *item.metadata["aliases"])
    }
    values: dict[str, object] = {}
    for name, text in given.items():
        item = known.get(name.lower())
        if item is None:
            raise ValueError(_unknown(name, table, known))
        value = _parse(item, name, text)
        if values.setdefault(item.name, value) != value:
            message = f"kbat: options {item.metadata['name']} and {name}={text!r} conflict: set only one of them"
            raise ValueError(message)
    return table(**values)


def _fields(table: type[Any]) -> list[Field[Any]]:
    return [item for item in fields(table) if item.metadata]


def _parse(item: Field[Any], name: str, text: str) -> object:
    shown = name if name.lower() in (alias.lower() for alias in item.metadata["aliases"]) else item.metadata["name"]
    try:
        return item.metadata["parse"](text)
    except ValueError as error:
        message = f"kbat: option {shown}={text!r}: {str(error).removeprefix('kbat: ')}"
        raise ValueError(message) from None


def _unknown(name: str, table: type[Any], known: Mapping[str, Field[Any]]) -> str:
    # Spark passes the names in lower case
    shown = f"kbat: unknown option {name}" + (" (Spark lower-cased it)" if name.islower() else "")
    if name.lower() in _OF_TABLES:
        return f"{shown}: Spark sets it for CREATE TABLE, which does not pass options; use CREATE TEMPORARY VIEW"
    near = difflib.get_close_matches(name.lower(), known, n=1)
    if near:
        return f"{shown}; did you mean {known[near[0]].metadata['name']}?"
    return f"{shown}; the options are: {', '.join(item.metadata['name'] for item in _fields(table))}"
