# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Write records as JSON lines, CSV and other text."""

from collections.abc import Callable, Sequence
from typing import Literal

from kbat._core.arrow import Scan

__all__ = ["write_records"]

def write_records(
    scan: Scan,
    write: Callable[[bytes], object],
    *,
    output_format: str = "jsonl",
    key: Literal["auto", "json", "text", "hex", "base64"] = "auto",
    value: Literal["auto", "json", "text", "hex", "base64"] = "auto",
    key_pattern: str | None = None,
    value_pattern: str | None = None,
    headers: Sequence[tuple[str, str | None]] | None = None,
    fixed_strings: bool = False,
    limit: int | None = None,
    terminal: bool = False,
    header: bool = True,
    batches: bool = False,
    progress: Callable[[int, int], object] | bool | None = None,
) -> tuple[int, int | None]:
    """Write the records of a scan as text, on one thread. A batch is written completely or not at all.

    Args:
        scan: A scan of records from :func:`kbat.scan`. Its columns have no effect.
        write: Called with a large piece of the output, as bytes.
        output_format: ``jsonl``, ``csv``, ``text`` for lines that people read, ``raw`` for the bytes of the values, or
            a format string like that of ``kcat``: ``%t`` topic, ``%p`` partition, ``%o`` offset, ``%T`` timestamp,
            ``%k`` key, ``%K`` its length, ``%s`` value, ``%S`` its length, ``%R`` the same as four bytes, ``%h``
            headers, ``%%``, and a backslash before ``n``, ``r``, ``t``, a backslash, or ``x`` and two hexadecimal
            digits.
        key: The form of keys: ``json``, ``text``, ``hex``, ``base64``, or ``auto``, which suits the format.
        value: The form of values.
        key_pattern: Write only records whose whole key matches this regular expression, in the syntax of Rust's crate
            ``regex``.
        value_pattern: Write only records in whose value this regular expression is found.
        headers: Write only records that have all of these headers: pairs of a name, and a value or None for any value.
        fixed_strings: Whether both patterns are texts instead of regular expressions.
        limit: Largest number of records to write. Default: all.
        terminal: Whether the output is a terminal: characters that would change it are escaped, and each batch is
            written at once.
        header: Whether CSV begins with the names of the columns.
        batches: Whether JSON lines have a line for each batch before those of its records, with which
            ``kbat import`` makes the same batch again. Scan with ``include_control=True`` for the markers of
            transactions.
        progress: Called periodically with the number of bytes processed and the bytes of all sources; True for a
            progress bar, if ``rich`` is installed.

    Returns:
        The number of records written, and the offset after the last batch that was read, of which some records may
        not have been written; None before the first batch.

    Raises:
        ValueError: An unknown format or form, a pattern that is not a regular expression, a scan of another view, or
            lines of batches in another format or without aborted transactions.
        KbatError: Corruption. Everything before it has been written.
        OSError: A file can't be read.
    """
