"""polars frames, PyArrow datasets and DuckDB views over :func:`kbat.scan`.

Each module imports its own library; ``import kbat`` does not import them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbat._core.arrow import Scan, scan

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Protocol

    import polars as pl

    from kbat.frames.arrow_dataset import Dataset

    class _Registering(Protocol):
        """A DuckDB connection, or the module for its default connection."""

        def register(self, view_name: str, python_object: object, /) -> object: ...

    Source = Scan | bytes | str | os.PathLike[str] | Sequence[bytes | str | os.PathLike[str]]

__all__ = ["dataset", "register_duckdb", "scan_polars"]


def scan_polars(source: Source, **options: Any) -> pl.LazyFrame:  # noqa: ANN401 -- those of kbat.scan
    """Scan a buffer, files or directories as a ``polars.LazyFrame``.

    The query's columns, predicate and row limit are pushed into the scan: columns that the query does not use are not
    decoded, and files and batches outside the predicate's bounds on ``offset``, ``timestamp``, ``topic`` and
    ``partition`` are not read. polars then applies the predicate to the rows of the scan. Arrow batches are streamed,
    each query is a new pass, and no data is read for the schema.

    Args:
        source: As for :func:`kbat.scan`, or a :class:`kbat.Scan`.
        options: Keyword arguments of :func:`kbat.scan`, such as ``topics``, ``partitions`` and ``replicas``. A
            :class:`kbat.Scan` has its own.

    Raises:
        TypeError: An option that :func:`kbat.scan` does not have, or options for a :class:`kbat.Scan`.
        ValueError: As for :func:`kbat.scan`, such as a topic that does not exist.

    Example:
        >>> orders = kbat.scan_polars("/var/lib/kafka/data", topics=["orders"])
        >>> orders.filter(pl.col("offset") >= 1000).select("offset", "value").collect()

    """
    from kbat.frames.lazy import lazy_frame  # noqa: PLC0415 -- imports polars

    return lazy_frame(_scan(source, options))


def dataset(source: Source, **options: Any) -> Dataset:  # noqa: ANN401 -- those of kbat.scan
    """Scan a buffer, files or directories as a ``pyarrow.dataset.Dataset``, which can be read repeatedly.

    Its ``scanner``, ``to_table``, ``to_batches``, ``head``, ``count_rows`` and ``filter`` push columns and the
    filter's bounds into the scan, as :func:`kbat.scan_polars` does. DuckDB reads it by the name of its variable, and
    pushes both. ``to_table``, ``to_batches``, ``head``, ``take`` and ``count_rows`` stop at Ctrl-C and raise kbat's own
    exceptions; a ``scanner`` raises PyArrow's, with the same text. If PyArrow reads it by itself (``join``,
    ``join_asof``, ``sort_by``, a union, ``Scanner.from_dataset``, acero) all rows are held in memory. It has no
    fragments, and its schema can't be replaced.

    Args:
        source: As for :func:`kbat.scan`, or a :class:`kbat.Scan`.
        options: Keyword arguments of :func:`kbat.scan`, such as ``topics``, ``partitions`` and ``replicas``. A
            :class:`kbat.Scan` has its own.

    Raises:
        TypeError: An option that :func:`kbat.scan` does not have, or options for a :class:`kbat.Scan`.
        ValueError: As for :func:`kbat.scan`, such as a topic that does not exist.

    Example:
        >>> import pyarrow.dataset as ds
        >>> kbat.dataset("orders-0/").to_table(columns=["value"], filter=ds.field("offset") >= 1000)

    """
    from kbat.frames.arrow_dataset import Dataset  # noqa: PLC0415 -- imports pyarrow

    return Dataset(_scan(source, options))


def register_duckdb(connection: _Registering, name: str, source: Source, **options: Any) -> None:  # noqa: ANN401 -- those of kbat.scan
    """Register a scan as the view ``name`` in a DuckDB connection; each query scans again.

    The query's columns and filters are pushed into the scan as for :func:`kbat.dataset`.
    ``connection.unregister(name)`` removes the view.

    Args:
        connection: The result of ``duckdb.connect()``, or the module ``duckdb`` itself for its default connection.
        name: Name of the view.
        source: As for :func:`kbat.scan`, or a :class:`kbat.Scan`.
        options: Keyword arguments of :func:`kbat.scan`, such as ``topics``, ``partitions`` and ``replicas``. A
            :class:`kbat.Scan` has its own.

    Raises:
        TypeError: An option that :func:`kbat.scan` does not have, or options for a :class:`kbat.Scan`.
        ValueError: As for :func:`kbat.scan`, such as a topic that does not exist.

    Example:
        >>> kbat.register_duckdb(duckdb, "orders", "/var/lib/kafka/data/orders-0")
        >>> duckdb.sql('SELECT max("offset") FROM orders')

    """
    connection.register(name, dataset(source, **options))


def _scan(source: Source, options: dict[str, Any]) -> Scan:
    if not isinstance(source, Scan):
        return scan(source, **options)
    if options:
        message = f"a Scan has its own options; pass {', '.join(options)} to kbat.scan instead"
        raise TypeError(message)
    return source
