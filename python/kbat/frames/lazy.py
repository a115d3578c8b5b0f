"""polars: a scan as a lazy frame, and the bounds on offsets and times in its predicates.

A predicate is a polars expression. Its parts are read from the JSON that polars writes for expressions. That form is
not stable; an unknown form has no bounds. Polars itself computes the values of literals.
"""

from __future__ import annotations

import json
from io import StringIO
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl
from polars.io.plugins import register_io_source

from kbat.frames.bounds import EVERYTHING, Bounds, Range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kbat._core.arrow import Scan

Node: TypeAlias = dict[str, Any]

#: The same comparison with its sides exchanged.
MIRRORED = {"Eq": "Eq", "EqValidity": "EqValidity", "Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}

#: The comparisons with the lower and the upper end of ``is_between``.
BETWEEN = {"Both": ("GtEq", "LtEq"), "Left": ("GtEq", "Lt"), "Right": ("Gt", "LtEq"), "None": ("Gt", "Lt")}

MILLISECONDS = {"ms": 1, "us": 1000, "ns": 1_000_000}


def lazy_frame(scan: Scan) -> pl.LazyFrame:
    """Return the scan as a lazy frame."""
    schema = pl.DataFrame(scan._empty()).schema  # noqa: SLF001 -- no public need

    def frames(
        columns: list[str] | None, predicate: pl.Expr | None, row_count: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        # a row limit next to a predicate counts rows before filtering
        bounds = EVERYTHING if predicate is None or row_count is not None else bounds_of(predicate)
        left = row_count
        # a frame without columns has no row count, but one whose columns are dropped later has
        read = columns if columns != [] else _cheapest(schema, predicate)
        batches = bounds.narrow(scan, read).to_batches()
        while (batch := batches._next()) is not None:  # noqa: SLF001 -- without pyarrow
            frame = pl.DataFrame(batch)
            if read is not None:  # the column error is always included
                frame = frame.select(read)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            if predicate is not None:
                frame = frame.filter(predicate)
            yield frame.drop(frame.columns) if columns == [] else frame
            if left == 0:
                return

    return register_io_source(frames, schema=schema)


def _cheapest(schema: pl.Schema, predicate: pl.Expr | None) -> list[str]:
    """Return columns to count the rows of, if the query uses no column."""
    asked = [] if predicate is None else [name for name in schema if name in predicate.meta.root_names()]
    return asked or ["offset" if "offset" in schema else next(iter(schema))]


def bounds_of(predicate: pl.Expr) -> Bounds:
    """Return the bounds that all rows are within for which the predicate holds."""
    try:
        return _bounds(json.loads(predicate.meta.serialize(format="json")))
    except Exception:  # noqa: BLE001 -- a form that this version of polars does not support: no bound
        return EVERYTHING


def _bounds(node: Node) -> Bounds:  # noqa: PLR0911 -- one return per form
    match node:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            return _bounds(left) & _bounds(right)
        case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
            return _bounds(left) | _bounds(right)
        case {"BinaryExpr": {"left": {"Column": str(name)}, "op": str(op), "right": {"Literal": _} as value}}:
            return _compared(name, op, value)
        case {"BinaryExpr": {"left": {"Literal": _} as value, "op": str(op), "right": {"Column": str(name)}}}:
            return _compared(name, MIRRORED.get(op, op), value)
        case {"Function": {"input": [{"Column": str(name)}, low, high], "function": {"Boolean": {"IsBetween": how}}}}:
            above, below = BETWEEN[how["closed"]]
            return _compared(name, above, low) & _compared(name, below, high)
        case {"Function": {"input": [{"Column": str(name)}, values], "function": {"Boolean": {"IsIn": _}}}}:
            return _among(name, values)
    return EVERYTHING


def _literal(node: Node) -> pl.Series:
    if "Literal" not in node:
        raise ValueError(node)
    return pl.select(pl.Expr.deserialize(StringIO(json.dumps(node)), format="json")).to_series()


def _compared(name: str, op: str, node: Node) -> Bounds:
    if op not in MIRRORED or name not in COLUMNS:
        return EVERYTHING
    return COLUMNS[name](op, _literal(node))


def _among(name: str, node: Node) -> Bounds:
    values = _literal(node)
    if isinstance(values.dtype, pl.List | pl.Array):
        values = values.explode()
    if name not in COLUMNS or values.null_count():
        return EVERYTHING
    bounds = Bounds(Range(0, 0))
    for index in range(len(values)):
        bounds = bounds | COLUMNS[name]("Eq", values[index : index + 1])
    return bounds


def _range(op: str, value: int, per: int = 1) -> Range:
    """Whole numbers for which the comparison with ``value`` holds, whose unit is ``per`` times finer."""
    start, end = Range().start, Range().end
    if op in ("GtEq", "Eq", "EqValidity"):
        start = -(-value // per)
    if op == "Gt":
        start = value // per + 1
    if op in ("LtEq", "Eq", "EqValidity"):
        end = value // per + 1
    if op == "Lt":
        end = -(-value // per)
    return Range(max(start, Range().start), min(end, Range().end))


def _offset(op: str, value: pl.Series) -> Bounds:
    return Bounds(offsets=_range(op, value.item())) if value.dtype.is_integer() else EVERYTHING


def _timestamp(op: str, value: pl.Series) -> Bounds:
    if not isinstance(value.dtype, pl.Datetime) or value.dtype.time_zone != "UTC":
        return EVERYTHING
    return Bounds(timestamps=_range(op, value.to_physical().item(), MILLISECONDS[value.dtype.time_unit]))


def _topic(op: str, value: pl.Series) -> Bounds:
    known = op in ("Eq", "EqValidity") and value.dtype == pl.String and value.item() is not None
    return Bounds(topics=frozenset([value.item()])) if known else EVERYTHING


def _partition(op: str, value: pl.Series) -> Bounds:
    known = op in ("Eq", "EqValidity") and value.dtype.is_integer() and value.item() is not None
    return Bounds(partitions=frozenset([value.item()])) if known else EVERYTHING


COLUMNS: dict[str, Callable[[str, pl.Series], Bounds]] = {
    "offset": _offset,
    "timestamp": _timestamp,
    "topic": _topic,
    "partition": _partition,
}
