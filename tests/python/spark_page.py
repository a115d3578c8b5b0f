"""Writes docs/spark-options.md from the tables that the data source itself works by.

python tests/python/spark_page.py
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import kbat
from data import DATA
from kbat.spark.options import LIMIT_OPTIONS, ReadOptions
from kbat.spark.schema import ERROR_COLUMN, VIEWS
from kbat.spark.writer import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from dataclasses import Field

PAGE = DATA.parents[1] / "docs" / "spark-options.md"

_HEAD = """# Options and columns of the Spark source and sink

Written by `python tests/python/spark_page.py` from the tables that kbat works by; a test holds the two together.

Names of options are understood in any case. One that is not here is an error that names those that are; options of
Spark's Kafka source and sink that concern a broker's connection only (`kafka.…`) are passed over with a warning.
"""
_READ = """
## Reading

`spark.read.format("kbat")`, `spark.readStream.format("kbat")`, and as keyword arguments of `kbat.spark.read` and
`kbat.spark.to_parquet`. The precedence of bounds is that of Spark's Kafka source: `startingTimestamp`, then
`startingOffsetsByTimestamp`, then `startingOffsets`.
"""
_WRITE = """
## Writing

`df.write.format("kbat").mode("append")`, or `"overwrite"`; Spark asks for one of them. The columns are those of Spark's
Kafka sink: `value`, and if there are any `key`, `headers`, `timestamp`, `topic`, `partition`.
"""
_COLUMNS = """
## Columns

The option `columns`, or a schema, chooses among all of a view; those marked come unasked (`headers` with
`includeHeaders`, `error` with `onCorrupt=report`). A name is understood with and without underscores.
"""


def page() -> str:
    """Return what the page should say."""
    return "".join([_HEAD, _READ, *_options(ReadOptions), _WRITE, *_options(WriteOptions), _COLUMNS, *_columns()])


def _options(table: type[Any]) -> Iterator[str]:
    yield "\n| option | default | what |\n|---|---|---|\n"
    for item in fields(table):
        if item.metadata:
            names = ", ".join(f"`{name}`" for name in (item.metadata["name"], *item.metadata["aliases"]))
            yield f"| {names} | {_shown(_default(item))} | {_escaped(item.metadata['doc'])} |\n"


def _default(item: Field[Any]) -> object:
    """The default of an option; of a limit that of `kbat.Limits`."""
    return getattr(kbat.Limits(), item.name) if item.metadata["name"] in LIMIT_OPTIONS else item.default


def _shown(default: object) -> str:
    match default:
        case None | ():
            return ""
        case bool():
            return f"`{str(default).lower()}`"
        case _:
            return f"`{default}`"


def _columns() -> Iterator[str]:
    for view, (columns, unasked) in VIEWS.items():
        yield f'\n### view="{view}"\n\n| column | type | unasked | what |\n|---|---|---|---|\n'
        for place, column in enumerate((*columns, ERROR_COLUMN)):
            mark = "✓" if place < unasked else ""
            yield f"| `{column.name}` | {column.data_type.simpleString()} | {mark} | {_escaped(column.doc)} |\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
