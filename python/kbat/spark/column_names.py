"""Names of columns in arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions

from kbat.spark.worker import freeze_gc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    Mapping = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def listed(names: str | Iterable[str], what: str) -> list[str]:
    """Return the names in an argument; text is one name. Raises `ValueError` for other objects and repeated names."""
    try:
        found = [names] if isinstance(names, (str, bytes)) else list(names)
    except TypeError:  # a Column, for example
        found = [names]  # type: ignore[list-item]
    for place, name in enumerate(found):
        if not isinstance(name, str):
            message = f"kbat: {what} names columns as text, not {name!r}"
            raise ValueError(message)  # noqa: TRY004 -- as for every wrong argument
        if name in found[:place]:
            message = f"kbat: {what} names {name} twice"
            raise ValueError(message)
    return found


def quoted(name: str) -> str:
    """Return the name in quotes, without which Spark treats a dot as access to a struct's field."""
    return "`" + name.replace("`", "``") + "`"


def map_in_arrow(df: DataFrame, names: Sequence[str], mapping: Mapping, schema: StructType) -> DataFrame:
    """Map these columns, whatever their names: `mapInArrow` itself interprets names as expressions."""
    columns = list(names)
    plain = df.select(*(functions.col(quoted(name)).alias(f"c{place}") for place, name in enumerate(columns)))

    def map_named(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_gc()
        return mapping(batch.rename_columns(columns) for batch in batches)

    return plain.mapInArrow(map_named, schema)
