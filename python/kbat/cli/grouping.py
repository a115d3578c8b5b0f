"""Groups of batches for `kbat stat`: how they are named and shown."""

import datetime as dt
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import typer

import kbat.results
from kbat.cli import output
from kbat.cli.location import Location
from kbat.cli.losses import Lost
from kbat.cli.place import foreign, repairable, word
from kbat.cli.table import Column
from kbat.cli.tally import DAY_MS, GROUPS, Key
from kbat.sums import BatchSums

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NAMES = {column: name for name, column in GROUPS.items()}
_LEFT = {"topic", "codec", "day"}


def by_option(text: str) -> Any:  # noqa: ANN401 - typer's own
    """Return an option with the names of groups, separated by commas."""
    return typer.Option(
        "--by",
        parser=_groups,
        metavar="GROUPS",
        autocompletion=_complete,
        help=f"{text}: {', '.join(GROUPS)}. Separate several with commas, or repeat --by.",
        show_default=False,
    )


def _groups(value: str) -> str:
    """Check the names in a list with commas."""
    names = [name.strip().lower() for name in str(value).split(",")]
    for name in names:
        if name not in GROUPS:
            message = f"{name!r} is not one of {', '.join(GROUPS)}"
            raise typer.BadParameter(message)
    return ",".join(names)


def _complete(incomplete: str) -> list[str]:
    start, comma, last = incomplete.rpartition(",")
    return [f"{start}{comma}{name}" for name in GROUPS if name.startswith(last)]


def keys_of(names: Sequence[str]) -> list[str]:
    """Return the columns to group by, for names and lists of names with commas."""
    return [GROUPS[name] for name in dict.fromkeys(name for names in names for name in names.split(","))]


def columns_of(keys: Sequence[str]) -> list[Column]:
    """Return the columns of a table that name its groups."""
    return [Column(_NAMES[key], left=_NAMES[key] in _LEFT) for key in keys]


def fields_of(keys: Sequence[str], values: Key) -> dict[str, Any]:
    """Return the values of a group for JSON."""
    return {key: _day(value) if key == "day" else value for key, value in zip(keys, values, strict=True)}


def texts_of(keys: Sequence[str], values: Key) -> list[str]:
    """Return the values of a group for a table."""
    shown = fields_of(keys, values).values()
    return [str(value) if isinstance(value, int) else output.text(value) for value in shown]


def _day(days: int | None) -> str | None:
    """Return the date of a day since the epoch; for a day outside the calendar its milliseconds since the epoch."""
    if days is None:
        return None
    with suppress(OverflowError):
        return f"{_EPOCH + dt.timedelta(days=days):%Y-%m-%d}"
    return str(days * DAY_MS)


def batch_fields(sums: BatchSums, total: BatchSums) -> dict[str, Any]:
    """Return the sums over batches that `kbat stat` and `kbat audit` have in JSON."""
    return {
        "batches": sums.batches,
        "records": sums.records,
        "bytes": sums.bytes,
        "mean_batch_bytes": sums.mean_batch_bytes,
        "records_per_batch": sums.records_per_batch,
        "uncounted_batches": sums.uncounted_batches,
        "uncounted_bytes": sums.uncounted_bytes,
        "share": sums.bytes / total.bytes if total.bytes else None,
    }


def records_text(sums: BatchSums) -> str:
    """Return the number of records; "≥" if some batches do not have it in their header."""
    return f"{'≥ ' if sums.uncounted_batches else ''}{sums.records:,}"


def mean_text(mean: float | None) -> str:
    """Return a mean, "?" if it is unknown."""
    return "?" if mean is None else f"{mean:,.1f}"


def share_text(part: float, whole: float) -> str:
    """Return a share in percent."""
    return f"{part / whole:.1%}" if whole else "-"


def sum_of(groups: Sequence[BatchSums]) -> BatchSums:
    """Return the sums over all groups."""
    total = BatchSums()
    for sums in groups:
        total.add(sums)
    return total


def report_of(paths: Sequence[Location], rest: dict[str, Any], lost: Lost) -> dict[str, Any]:
    """Return a report for JSON with the paths and the corruption that was skipped."""
    names = [str(path) for path in paths]
    report = {"path": names[0] if len(names) == 1 else None, "paths": names, **rest}
    return {**report, **lost.to_dict()}


def nothing_counted(paths: Sequence[Location], segments: Sequence[kbat.results.SegmentFile]) -> str:
    """Return why no batch of some segments can be read."""
    first = paths[0].at(next(segment.path for segment in segments if segment.size))
    reason = foreign(first) or "no batch can be read"
    return f"{reason}; 'kbat verify {word(repairable(first))}{first.again}' lists all corruption"
