"""The table of columns and the texts that list its columns."""

import re
from typing import Literal, TypeAlias

import pyarrow as pa
import pytest

import kbat
from kbat._core import plan as core

View: TypeAlias = Literal["records", "batches", "segments"]


def _lists() -> list[list[str]]:
    """Return the lists of names in the text of the argument `columns` of `kbat.scan`."""
    text = re.search(r"columns: (.*?)\n +view:", kbat.scan.__doc__ or "", re.DOTALL)
    assert text is not None
    return [names.split() for names in re.findall(r"``([\w\s]+)``", text[1])]


def _split(view: str) -> tuple[list[str], list[str]]:
    """Return the names of the default columns and of the other columns."""
    columns, count = core.columns(view)
    names = [name for _, name, _, _ in columns]
    return names[:count], names[count:]


def _default(view: View | Literal["internal"]) -> list[str]:
    return pa.schema(kbat.scan(b"", view=view, decoder="json" if view == "internal" else "auto").schema).names


def test_docstring_of_scan_lists_the_columns() -> None:
    records, others, batches, segments, internal, internal_others = _lists()
    default, more = _split("records")
    assert (records, others) == ([*default, "headers"], [name for name in more if name != "headers"])
    assert batches == _split("batches")[1]
    assert segments == _split("segments")[1]
    assert internal == _default("internal")
    both = [*internal_others, *records, *others]
    with pytest.raises(ValueError, match="choose among") as refused:
        kbat.scan(b"", view="internal", columns=["nothing"])
    every = str(refused.value).split("choose among ")[1].split(", ")
    assert sorted(every) == sorted({*internal, *both})


@pytest.mark.parametrize("view", ["records", "batches", "segments"])
def test_columns_in_sql_are_those_of_a_scan(view: View) -> None:
    default, others = _split(view)
    assert _default(view) == [*default, *(["headers"] if view == "records" else [])]
    types = {
        "binary": pa.binary(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    schema = pa.schema(kbat.scan(b"", view=view, columns=[*default, *others], timestamp_unit="us").schema)
    in_sql = {name: types[sql] for _, name, sql, _ in core.columns(view)[0] if name != "headers"}
    assert {field.name: field.type for field in schema if field.name != "headers"} == in_sql


def test_error_column_has_the_fields_of_a_scan() -> None:
    schema = pa.schema(kbat.scan(b"", columns=["offset"], on_corrupt="report").schema)
    names = {pa.string(): "string", pa.int64(): "bigint"}
    fields = ",".join(f"{field.name}:{names[field.type]}" for field in schema.field("error").type)
    assert core.error_column()[2] == f"struct<{fields}>"
