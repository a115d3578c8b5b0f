"""The frames people use, fed by :func:`kbat.scan`: polars, PyArrow's datasets, DuckDB.

Each module imports the library it is about; ``import kbat`` imports none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbat._core.arrow import Scan, scan

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import duckdb
    import polars as pl

    from kbat.frames.arrow_dataset import Dataset

    Source = Scan | bytes | str | os.PathLike[str] | Sequence[bytes | str | os.PathLike[str]]

__all__ = ["dataset", "register_duckdb", "scan_polars"]


def scan_polars(source: Source, **options: Any) -> pl.LazyFrame:  # noqa: ANN401 -- those of kbat.scan
    """Batches of a buffer, of files or of directories as a ``polars.LazyFrame``.

    The query's columns, predicate and row limit reach the scan: columns nobody asks for are not built; bounds on
    ``offset``, ``timestamp``, ``topic`` and ``partition`` that follow from the predicate pass over files and batches
    unread. polars applies the predicate itself to what comes. Arrow batches are streamed, each query is a fresh pass,
    and no data is read for the schema.

    Args:
        source: As for :func:`kbat.scan`, or a :class:`kbat.Scan`.
        options: Keyword arguments of :func:`kbat.scan`; none with a :class:`kbat.Scan`.

    Raises:
        TypeError: An option that :func:`kbat.scan` does not have, or options for a :class:`kbat.Scan`.

    Example:
        >>> orders = kbat.scan_polars("/var/lib/kafka/data").filter(pl.col("topic") == "orders")
        >>> orders.select("offset", "value").collect()

    """
    from kbat.frames.lazy import lazy_frame  # noqa: PLC0415 -- imports polars

    return lazy_frame(_scan(source, options))


def dataset(source: Source, **options: Any) -> Dataset:  # noqa: ANN401 -- those of kbat.scan
    """Batches of a buffer, of files or of directories as a ``pyarrow.dataset.Dataset``, read as often as you like.

    Its ``scanner``, ``to_table``, ``to_batches``, ``head``, ``count_rows`` and ``filter`` push columns and the
    filter's bounds into the scan, as :func:`kbat.scan_polars` does. DuckDB reads it by the name of its variable, with
    both pushed. ``to_table``, ``to_batches``, ``head``, ``take`` and ``count_rows`` stop at Ctrl-C and raise kbat's own
    exceptions; a ``scanner`` has only the text of them. Where PyArrow reads it by itself (``join``, ``join_asof``,
    ``sort_by``, a union, ``Scanner.from_dataset``, acero) it is taken into memory whole. It has no fragments, and a
    schema of its own that can't be replaced.

    Args:
        source: As for :func:`kbat.scan`, or a :class:`kbat.Scan`.
        options: Keyword arguments of :func:`kbat.scan`; none with a :class:`kbat.Scan`.

    Raises:
        TypeError: An option that :func:`kbat.scan` does not have, or options for a :class:`kbat.Scan`.

    Example:
        >>> import pyarrow.dataset as ds
        >>> kbat.dataset("orders-0/").to_table(columns=["value"], filter=ds.field("offset") >= 1000)

    """
    from kbat.frames.arrow_dataset import Dataset  # noqa: PLC0415 -- imports pyarrow

    return Dataset(_scan(source, options))


def register_duckdb(connection: duckdb.DuckDBPyConnection, name: str, source: Source, **options: Any) -> None:  # noqa: ANN401 -- those of kbat.scan
    """Make ``SELECT … FROM name`` read batches in a DuckDB connection; each query is a fresh pass.

    The query's columns and filters reach the scan as they do for :func:`kbat.dataset`. ``connection.unregister(name)``
    undoes it.

    Args:
        connection: What ``duckdb.connect()`` gave, or the module ``duckdb`` itself for its default connection.
        name: Name of the view.
        source: As for :func:`kbat.scan`, or a :class:`kbat.Scan`.
        options: Keyword arguments of :func:`kbat.scan`; none with a :class:`kbat.Scan`.

    Raises:
        TypeError: An option that :func:`kbat.scan` does not have, or options for a :class:`kbat.Scan`.

    Example:
        >>> kbat.register_duckdb(duckdb, "orders", "/var/lib/kafka/data/orders-0")
        >>> duckdb.sql('SELECT max("offset") FROM orders')

    """
    connection.register(name, dataset(source, **options))


def _scan(source: Source, options: dict[str, Any]) -> Scan:
    if not isinstance(source, Scan):
        return scan(source, **options)
    if options:
        message = f"a Scan has its options already; they can't be given again: {', '.join(options)}"
        raise TypeError(message)
    return source
