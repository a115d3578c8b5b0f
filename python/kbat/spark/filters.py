"""The filters of a query as conditions that the core understands: it omits what they exclude before it reads.

Spark still applies the filters to every row.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource

if TYPE_CHECKING:
    from collections.abc import Iterable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Spark 4.0 has no classes of filters.
_OPERATORS = {
    "EqualTo": "eq",
    "EqualNullSafe": "eqNullSafe",
    "GreaterThan": "gt",
    "GreaterThanOrEqual": "ge",
    "LessThan": "lt",
    "LessThanOrEqual": "le",
    "In": "in",
    "IsNull": "isNull",
    "IsNotNull": "isNotNull",
    "StringStartsWith": "startsWith",
    "StringEndsWith": "endsWith",
    "StringContains": "contains",
}


def conditions(filters: Iterable[Any]) -> list[list[str]]:
    """Return the filters as operator, column, type and values; those that the core does not know are omitted."""
    return [condition for item in filters if (condition := _condition(item)) is not None]


def _condition(item: Any) -> list[str] | None:  # noqa: ANN401 -- Spark 4.0 has no class of filters
    is_negated = isinstance(item, datasource.Not)
    item = item.child if is_negated else item
    operator = _OPERATORS.get(type(item).__name__)
    path: tuple[str, ...] = getattr(item, "attribute", ())
    if operator is None or len(path) != 1:
        return None
    given = getattr(item, "value", None)
    # a null in a list equals nothing
    values = [_literal(value) for value in (given if isinstance(given, list | tuple) else [given]) if value is not None]
    kinds = {kind for kind, _ in values} or {"null"}
    if len(kinds) > 1:
        return None
    return ["not " * is_negated + operator, path[0], *kinds, *(text for _, text in values)]


def _literal(value: object) -> tuple[str, str]:
    """Return the type and the text of a value; the type is `other` if nothing is known about it."""
    if isinstance(value, str):
        return "string", value
    if isinstance(value, int) and not isinstance(value, bool):
        return "long", str(value)
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=value.tzinfo or UTC)
        return "timestamp", str((moment - _EPOCH) // timedelta(microseconds=1))
    return "other", ""
