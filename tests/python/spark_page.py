"""Writes docs/spark-options.md from the tables that the data source itself uses.

python tests/python/spark_page.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import kbat
from data import DATA
from kbat._core import plan as core
from kbat._core import sink
from kbat.spark.decoding import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = DATA.parents[1] / "docs" / "spark-options.md"

_HEAD = """# Options and columns of the Spark source and sink

`python tests/python/spark_page.py` writes this page from the tables that kbat uses, and a test compares them.

Names of options match in any case. An unknown option is an error that suggests the closest name. Options of Spark's
Kafka source and sink that only concern a broker's connection (`kafka.…`) are ignored with a warning, as are options of
reads in a write.
"""
_READ = """
## Reading

These are options of `spark.read.format("kbat")` and `spark.readStream.format("kbat")`, and keyword arguments of
`kbat.spark.read` and `kbat.spark.to_parquet`. The precedence of bounds is that of Spark's Kafka source:
`startingTimestamp`, then `startingOffsetsByTimestamp`, then `startingOffsets`; the same for ending bounds. The starting
and the ending bound may be of different kinds.

In a batch read, `startingTimestamp` and `endingTimestamp` filter rows: the read returns every record whose timestamp is
equal to `startingTimestamp` or later, and before `endingTimestamp`, wherever it is in the log. Records without a
timestamp are not returned. In a stream, `startingTimestamp` sets the starting offsets, as `startingOffsetsByTimestamp`
does: each partition starts at the first record, in the order of the log, with this timestamp or a later one. No result
depends on the modification time of a file.

A time is a whole number of milliseconds since 1970, UTC, or text in ISO 8601 with a time zone, like
`2026-11-22T00:00:00Z`. Numbers below 100000000000, except 0, are refused because they look like seconds.
"""
_WRITE = """
## Writing

These are options of `df.write.format("kbat").mode("append")`, or `"overwrite"`; Spark requires one of these modes. The
columns are those of Spark's Kafka sink: `value`, and optionally `key`, `headers`, `timestamp`, `topic`, `partition`.
"""
_HEADINGS = "\n| option | default | meaning |\n|---|---|---|\n"
_COLUMNS = """
## Columns

The option `columns`, or a schema, selects columns of a view. Those marked are read by default; `includeHeaders` adds
`headers`, and `onCorrupt=report` adds `error`. A name matches with and without underscores.
"""


def page() -> str:
    """Return the text of the page."""
    reading, writing = "".join(_read_options()), "".join(_write_options())
    return "".join([_HEAD, _READ, _HEADINGS, reading, _WRITE, _HEADINGS, writing, _COLUMNS, *_columns()])


def _read_options() -> Iterator[str]:
    limits = {option: field for field, option in LIMITS.items()}
    for name, default, text in core.options():
        shown = getattr(kbat.Limits(), limits[name]) if name in limits else default
        yield f"| `{name}` | {_shown(shown)} | {_escaped(text)} |\n"


def _write_options() -> Iterator[str]:
    for name, alias, default, text in sink.options():
        names = f"`{name}`" if alias is None else f"`{name}`, `{alias}`"
        yield f"| {names} | {_shown(default)} | {_escaped(text)} |\n"


def _shown(default: object) -> str:
    match default:
        case None | "":
            return ""
        case bool():
            return f"`{str(default).lower()}`"
        case _:
            return f"`{default}`"


def _columns() -> Iterator[str]:
    for view in ("records", "batches", "segments", "internal"):
        columns, default_count = core.columns(view)
        yield f'\n### view="{view}"\n\n| column | type | default | content |\n|---|---|---|---|\n'
        for place, (name, _, data_type, text) in enumerate([*columns, core.error_column()]):
            mark = "✓" if place < default_count else ""
            yield f"| `{name}` | {data_type} | {mark} | {_escaped(text)} |\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
