"""Errors without the frames of kbat: Spark shows the traceback before the message, which is the useful part."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import kbat

if TYPE_CHECKING:
    from collections.abc import Callable

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def shallow(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Raise errors about options and files without the frames below the function; other errors are unchanged."""

    @functools.wraps(function)
    def call(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        try:
            return function(*args, **options)
        except (ValueError, OSError, kbat.KbatError) as error:
            raised = error.with_traceback(None)
        raised.__cause__ = raised.__context__ = None
        raise raised

    return call
