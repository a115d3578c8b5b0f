"""Parsers of option values: each returns a value or raises a `ValueError` that names the accepted forms."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SIZES = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}
_INT64_MAX = (1 << 63) - 1


def parse_bool(text: str) -> bool:
    """Parse `true` or `false`."""
    try:
        return {"true": True, "false": False}[text.strip().lower()]
    except KeyError:
        message = "must be true or false"
        raise ValueError(message) from None


def parse_count(text: str) -> int:
    """Parse a whole number from 0."""
    if not text.strip().isdecimal() or int(text) > _INT64_MAX:
        message = "must be a whole number, 0 or more"
        raise ValueError(message)
    return int(text)


def parse_positive_count(text: str) -> int:
    """Parse a whole number from 1."""
    if not text.strip().isdecimal() or not 0 < int(text) <= _INT64_MAX:
        message = "must be a whole number, 1 or more"
        raise ValueError(message)
    return int(text)


def at_most(most: int, parse: Callable[[str], int]) -> Callable[[str], int]:
    """Return a parser of numbers up to a largest value."""

    def parse_bounded(text: str) -> int:
        number = parse(text)
        if number > most:
            message = f"must be at most {most}"
            raise ValueError(message)
        return number

    return parse_bounded


def parse_number(text: str) -> int:
    """Parse a whole number."""
    if not re.fullmatch(r"[+-]?\d{1,9}", text.strip()):
        message = "must be a whole number"
        raise ValueError(message)
    return int(text)


def parse_len(text: str) -> int:
    """Parse a number of bytes, perhaps with a unit."""
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if not found or found[2] not in _SIZES:
        message = "must be a number of bytes, or a number with a unit, like 256m or 1g"
        raise ValueError(message)
    return int(found[1]) * _SIZES[found[2]]


def parse_positive_len(text: str) -> int:
    """Parse a number of bytes from 1."""
    number = parse_len(text)
    if number == 0:
        message = "must be at least 1 byte"
        raise ValueError(message)
    return number


def parse_text(text: str) -> str:
    """Parse text that is not empty."""
    if not text.strip():
        message = "must not be empty"
        raise ValueError(message)
    return text


def one_of(*choices: str) -> Callable[[str], str]:
    """Return a parser of one of some words, which ignores case."""

    def parse(text: str) -> str:
        word = text.strip().lower()
        if word not in choices:
            *others, last = choices
            message = f"must be {', '.join(others)} or {last}"
            raise ValueError(message)
        return word

    return parse
