"""`kbat audit`: what fills a disk, from the headers of batches alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

import kbat
from kbat.cli import output
from kbat.cli.guard import FailedError
from kbat.cli.location import Location
from kbat.cli.options import (
    EncryptionKeys,
    Json,
    Partitions,
    PathsArgument,
    Replicas,
    ReplicasOption,
    StorageOptions,
    Topics,
    Wide,
    selection,
)
from kbat.cli.place import foreign, locate, quiet, repairable, word
from kbat.cli.progress import ProgressCallback, progress
from kbat.cli.table import Column, write_table

if TYPE_CHECKING:
    import pyarrow as pa

# What a group is called, and its column in the view of batches.
_GROUPS = {
    "topic": "topic",
    "codec": "compression",
    "partition": "partition",
    "producer": "producer_id",
    "magic": "magic",
}
_ALWAYS = ("topic", "codec")
_FIGURES = (
    Column("batches", rank=3),
    Column("records", rank=2),
    Column("size"),
    Column("mean batch", rank=5),
    Column("records per batch", rank=4),
    Column("share", rank=1),
)


# The default, which scripts may set.
_UsePageCache = Annotated[bool, typer.Option("--use-page-cache", hidden=True)]


def _groups(value: str) -> str:
    """Check the names in a list with commas."""
    names = [name.strip().lower() for name in str(value).split(",")]
    for name in names:
        if name not in _GROUPS:
            message = f"{name!r} is not one of {', '.join(_GROUPS)}"
            raise typer.BadParameter(message)
    return ",".join(names)


def _complete(incomplete: str) -> list[str]:
    return [name for name in _GROUPS if name.startswith(incomplete)]


@dataclass
class _Sums:
    """Sums over the batches of a group. The header of a compressed set of magic 0 or 1 has no number of records."""

    batches: int = 0
    bytes: int = 0
    records: int = 0
    uncounted_batches: int = 0
    uncounted_bytes: int = 0

    def add(self, other: "_Sums") -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    @property
    def mean_batch_bytes(self) -> float:
        return self.bytes / self.batches

    @property
    def records_per_batch(self) -> float | None:
        counted = self.batches - self.uncounted_batches
        return self.records / counted if counted else None


_Found = dict[tuple[Any, ...], _Sums]


def audit(  # noqa: PLR0913 - options
    paths: PathsArgument,
    *,
    topic: Topics = None,
    partition: Partitions = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            parser=_groups,
            metavar="GROUPS",
            autocompletion=_complete,
            help=f"Group also by: {', '.join(_GROUPS)}. Separate several with commas, or repeat --by.",
            show_default=False,
        ),
    ] = None,
    replicas: ReplicasOption = Replicas.ERROR,
    leave_page_cache: Annotated[
        bool,
        typer.Option(
            "--leave-page-cache",
            help="Read around the page cache, so that a broker on this machine keeps its cached pages. This costs one "
            "small disk read per batch, and is ten times slower if the files are cached.",
        ),
    ] = False,
    use_page_cache: _UsePageCache = False,
    json: Json = False,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    encryption_key: EncryptionKeys = None,
) -> None:
    """Show what fills a log: batches, records and bytes by topic and codec. Reads only the headers of batches.

    Small batches compress badly: look for few records per batch, and for the codec "none". The producer -1 means
    all producers without idempotence. The headers of compressed sets of magic 0 and 1 do not have a record count. A
    number of records that does not include them is marked with "≥", and "records per batch" is the mean of the other
    batches.

    Batches whose header can't be read are not counted; a line on the standard error shows their size. Checksums are
    not verified; `kbat verify` does that.

    Examples: `kbat audit /var/lib/kafka/data`, `kbat audit data --topic 'orders*' --by partition,producer`

    JSON: `path` (null for several paths), `paths`, `groups` (largest first) and `total`: `topic`, `compression`, and
    `producer_id`, `partition` and `magic` if they are groups; `batches`, `records` (of batches with a record count),
    `bytes`, `mean_batch_bytes`, `records_per_batch`, `uncounted_batches` and `uncounted_bytes` (of batches without a
    record count), `share` (of bytes, 0 to 1); `batches_skipped` and `bytes_lost` (of corrupt batches).

    Exit codes: 0; 1 if no batch can be read, for files that can't be read and for an empty directory; 2 for wrong
    arguments and for a PATH that is not a log.
    """
    keys = _keys(by)
    chosen = selection(topic, partition, replicas)
    paths = [path.opened_with(storage_option, encryption_key) for path in paths]
    segments, _ = locate(paths, **chosen)
    with quiet():
        # `size` of a magic 0 or 1 set is known, its number of records is not
        scan = kbat.scan(
            list(map(str, paths)),
            view="batches",
            columns=[*keys, "size", "record_count"],
            on_corrupt="skip",
            leave_page_cache=leave_page_cache and not use_page_cache,
            **chosen,
            **paths[0].options,
        )
    with progress("reading headers") as callback:
        groups = _group(scan, keys, callback, sum(segment.size for segment in segments))
    stats = scan.stats
    lost = (stats.batches_skipped, stats.bytes_lost) if stats is not None else (0, 0)
    _report(paths, keys, groups, lost, as_json=json, wide=wide)
    if lost[0] and not groups:
        raise FailedError(_nothing_counted(paths, segments))
    if any(lost):
        output.note(f"kbat: not counted: {_corruption(*lost)}; 'kbat verify' lists it")


def _keys(by: list[str] | None) -> list[str]:
    """Return the columns to group by."""
    names = [*_ALWAYS, *(name for names in by or () for name in names.split(","))]
    return [_GROUPS[name] for name in dict.fromkeys(names)]


def _report(  # noqa: PLR0913 - the answer and how to show it
    paths: Sequence[Location],
    keys: list[str],
    groups: _Found,
    lost: tuple[int, int],
    *,
    as_json: bool,
    wide: bool,
) -> None:
    total = _Sums()
    for sums in groups.values():
        total.add(sums)
    ordered = sorted(groups.items(), key=lambda group: (-group[1].bytes, *map(str, group[0])))
    if as_json:
        names = [str(path) for path in paths]
        rows = [{**dict(zip(keys, values, strict=True)), **_figures(sums, total)} for values, sums in ordered]
        output.write_json(
            {
                "path": names[0] if len(names) == 1 else None,
                "paths": names,
                "groups": rows,
                "total": _figures(total, total),
                "batches_skipped": lost[0],
                "bytes_lost": lost[1],
            }
        )
    else:
        _show(", ".join(map(str, paths)), keys, ordered, total, wide=wide)


def _nothing_counted(paths: Sequence[Location], segments: Sequence[kbat.SegmentFile]) -> str:
    first = paths[0].at(next(segment.path for segment in segments if segment.size))
    reason = foreign(first) or "no batch can be read"
    return f"{reason}; 'kbat verify {word(repairable(first))}{first.again}' lists all corruption"


def _corruption(count: int, lost_bytes: int) -> str:
    size = output.size_text(lost_bytes)
    if not count:
        return f"{size} of an incomplete last batch"
    return f"{size} in {output.count_text(count, 'corrupt range')}"


def _group(scan: kbat.Scan, keys: list[str], callback: ProgressCallback | None, all_bytes: int) -> _Found:
    groups: _Found = {}
    done = 0
    for batch in scan.to_batches():
        for values, sums in _sums(batch, keys):
            groups.setdefault(values, _Sums()).add(sums)
            done += sums.bytes
        if callback:
            callback(done, all_bytes)
    return groups


def _sums(batch: "pa.RecordBatch", keys: list[str]) -> Iterator[tuple[tuple[Any, ...], _Sums]]:
    """Sum up the rows of an Arrow batch by the values of some columns."""
    import pyarrow as pa  # noqa: PLC0415 - slow, and other commands need none
    from pyarrow import compute  # noqa: PLC0415

    sizes = batch.column("size").cast(pa.int64())
    uncounted = compute.is_null(batch.column("record_count"))
    table = pa.table(
        {
            **{key: batch.column(key) for key in keys},
            "size": sizes,
            "record_count": batch.column("record_count").cast(pa.int64()),
            "uncounted": uncounted.cast(pa.int64()),
            "uncounted_size": compute.if_else(uncounted, sizes, 0),
        }
    )
    sums = ("size", "record_count", "uncounted", "uncounted_size")
    grouped = table.group_by(keys).aggregate([*((name, "sum") for name in sums), ("size", "count")])
    for row in grouped.to_pylist():
        yield (
            tuple(row[key] for key in keys),
            _Sums(
                row["size_count"],
                row["size_sum"],
                row["record_count_sum"] or 0,
                row["uncounted_sum"],
                row["uncounted_size_sum"],
            ),
        )


def _figures(sums: _Sums, total: _Sums) -> dict[str, Any]:
    return {
        "batches": sums.batches,
        "records": sums.records,
        "bytes": sums.bytes,
        "mean_batch_bytes": sums.mean_batch_bytes if sums.batches else None,
        "records_per_batch": sums.records_per_batch,
        "uncounted_batches": sums.uncounted_batches,
        "uncounted_bytes": sums.uncounted_bytes,
        "share": sums.bytes / total.bytes if total.bytes else None,
    }


def _show(
    title: str, keys: list[str], ordered: list[tuple[tuple[Any, ...], _Sums]], total: _Sums, *, wide: bool
) -> None:
    if not total.batches:
        output.write_line(f"{title}: no batches")
        return
    names = {column: name for name, column in _GROUPS.items()}
    rows = [(*map(_key, values), *_cells(sums, total)) for values, sums in ordered]
    rows.append(("total", *("" for _ in keys[1:]), *_cells(total, total)))
    groups = (Column(names[key], left=names[key] in _ALWAYS) for key in keys)
    write_table(title, (*groups, *_FIGURES), rows, wide=wide)


def _key(value: object) -> str:
    return str(value) if isinstance(value, int) else output.text(value)


def _cells(sums: _Sums, total: _Sums) -> tuple[str, ...]:
    mean = sums.records_per_batch
    return (
        f"{sums.batches:,}",
        f"{'≥ ' if sums.uncounted_batches else ''}{sums.records:,}",
        output.size_text(sums.bytes),
        output.size_text(sums.mean_batch_bytes),
        "?" if mean is None else f"{mean:,.1f}",
        f"{sums.bytes / total.bytes:.1%}",
    )
