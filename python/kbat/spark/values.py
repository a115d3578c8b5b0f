"""Parsers of option values: each returns a value or raises a `ValueError` that names the accepted forms."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Value = TypeVar("Value")

_SIZES = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}
_TIMES = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_INT64_MAX = (1 << 63) - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Smaller numbers are probably seconds: as milliseconds, they are times before March 1973.
LEAST_MILLISECONDS = 100_000_000_000
_EXAMPLE = "2026-11-22T00:00:00Z"
_TIME_FORM = f"must be milliseconds since 1970, UTC, like 1700000000000, or text with a zone, like {_EXAMPLE}"


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
    """Return a parser of a number that has a largest value."""

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


def parse_duration(text: str) -> int:
    """Parse a duration into milliseconds, as Spark writes them: `15m`, `10s`, `500ms`."""
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if not found or found[2] not in _TIMES:
        message = "must be a duration with a unit: 500ms, 10s, 15m, 2h or 1d; a bare number is milliseconds"
        raise ValueError(message)
    return int(found[1]) * _TIMES[found[2]]


def parse_timestamp(text: str) -> int:
    """Parse a time into milliseconds since the epoch: a whole number of them, or ISO 8601 with a time zone."""
    number = text.strip()
    if number.isdecimal():
        return checked_milliseconds(int(number))
    try:
        moment = datetime.fromisoformat(number)
    except ValueError:
        raise ValueError(_TIME_FORM) from None
    if moment.tzinfo is None:
        message = f"has no time zone; write {moment.isoformat()}Z if it is in UTC; {_TIME_FORM}"
        raise ValueError(message)
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    if milliseconds < 0:
        message = f"is before 1970; {_TIME_FORM}"
        raise ValueError(message)
    return milliseconds


def checked_milliseconds(number: int) -> int:
    """Return a number of milliseconds since the epoch. Raises `ValueError` for one that is probably in seconds."""
    if not 0 <= number <= _INT64_MAX:
        raise ValueError(_TIME_FORM)
    if 0 < number < LEAST_MILLISECONDS:
        message = (
            f"{number} looks like seconds, but the unit is milliseconds: write {number * 1000}, or the time as text "
            f"with a zone, like {_EXAMPLE}"
        )
        raise ValueError(message)
    return number


def parse_text(text: str) -> str:
    """Parse text that is not empty."""
    if not text.strip():
        message = "must not be empty"
        raise ValueError(message)
    return text


def parse_path(text: str) -> tuple[str, ...]:
    """Parse one path."""
    return (parse_text(text),)


def parse_paths(text: str) -> tuple[str, ...]:
    """Parse a JSON list of paths."""
    try:
        paths = json.loads(text)
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) and path for path in paths):
        message = "must be a JSON list of paths, as written by load([...])"
        raise ValueError(message)
    return tuple(paths)


def parse_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Parse a JSON object of texts."""
    try:
        pairs = json.loads(text)
    except ValueError:
        pairs = None
    if not isinstance(pairs, dict) or not all(isinstance(value, str) and value for value in pairs.values()):
        message = 'must be JSON of ids and paths, like {"key1": "/keys/key1.pem"}'
        raise ValueError(message)
    return tuple(pairs.items())


def parse_names(text: str) -> tuple[str, ...]:
    """Parse names separated by commas."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        message = "is empty; must be names separated by commas"
        raise ValueError(message)
    return names


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
