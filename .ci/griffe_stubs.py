"""Extension of griffe, which reads the Python code for the documentation site.

- A class of the compiled module has its arguments in `__new__`; griffe reads them from `__init__` only.
- Roles such as :func:`split` become code, because the site is made from Markdown.
"""

# ruff: noqa: INP001 -- mkdocs loads it by its path

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:func|class|meth|attr|data|exc|mod):`~?([^`]+)`")


class Stubs(griffe.Extension):
    """Both changes, made when a package has been read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:  # noqa: ANN401 -- griffe's own
        """Change the docstring of an object."""
        if obj.docstring:
            obj.docstring.value = _ROLE.sub(r"`\1`", obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:  # noqa: ANN401 -- griffe's own
        """Show the arguments of `__new__` as those of the class."""
        new = cls.members.get("__new__")
        if isinstance(new, griffe.Function) and "__init__" not in cls.members:
            init = griffe.Function("__init__", parameters=new.parameters, returns=None)
            cls.set_member("__init__", init)
