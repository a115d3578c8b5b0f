"""`kbat audit`: what fills a disk, from the headers of batches alone."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import kbat
from kbat.cli import output
from kbat.cli.options import Json, PathArgument
from kbat.cli.place import check_segments
from kbat.cli.progress import ProgressCallback, progress

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = {
    "topic": "topic",
    "compression": "codec",
    "producer_id": "producer",
    "partition": "partition",
    "magic": "magic",
}


class By(StrEnum):
    """What to tell apart beside topics and codecs."""

    PARTITION = "partition"
    PRODUCER = "producer"
    MAGIC = "magic"


@dataclass
class _Sums:
    """Sums over the batches of a group. A compressed set of magic 0 or 1 does not tell how many records it has."""

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


_Groups = dict[tuple[Any, ...], _Sums]


def audit(
    path: PathArgument,
    *,
    by: Annotated[
        list[By] | None, typer.Option(help="Tell these apart too; may be given more than once.", show_default=False)
    ] = None,
    leave_page_cache: Annotated[
        bool,
        typer.Option(
            "--leave-page-cache/--use-page-cache",
            help="Read around the page cache, for the sake of a broker on this machine: a small read from the disk for "
            "each batch, ten times slower where the files are cached.",
        ),
    ] = True,
    json: Json = False,
) -> None:
    """Show what fills a log: batches, records and bytes by topic and codec. Only headers of batches are read.

    Small batches compress badly: look for few records a batch and for codec "none". A producer of -1 is one without
    idempotence. "≥" stands before records where some batches don't tell their number, as compressed ones of magic 0
    and 1; records a batch is the mean of the others.

    Where no header can be read, batches are left out, and a line on the standard error says how much that is.
    Checksums are not looked at: `kbat verify` does that.

    Examples: `kbat audit /var/lib/kafka/data`, `kbat audit orders-0 --by producer`

    JSON: `path`, `groups` (largest first) and `total`: `topic`, `compression`, `producer_id`, `partition` and `magic`
    as asked for, `batches`, `records` (those of batches that tell), `bytes`, `mean_batch_bytes`, `records_per_batch`,
    `uncounted_batches` and `uncounted_bytes` (of batches that don't tell their records), `share` (of bytes, 0 to 1);
    `batches_skipped`, `bytes_lost`: what was damaged.

    Exit codes: 0; 1 for files that can't be read; 2 for wrong arguments.
    """
    columns = {By.PRODUCER: "producer_id", By.PARTITION: "partition", By.MAGIC: "magic"}
    keys = ["topic", "compression", *dict.fromkeys(columns[one] for one in by or ())]
    # `size` of a magic 0 or 1 set is known, its record count is not
    scan = kbat.scan(
        path,
        view="batches",
        columns=[*keys, "size", "record_count"],
        on_corrupt="skip",
        leave_page_cache=leave_page_cache,
    )
    check_segments(scan, path)
    with progress("reading headers") as callback:
        groups = _group(scan, keys, callback, path)
    stats = scan.stats
    lost = (stats.batches_skipped, stats.bytes_lost) if stats is not None else (0, 0)
    total = _Sums()
    for sums in groups.values():
        total.add(sums)
    ordered = sorted(groups.items(), key=lambda group: (-group[1].bytes, *map(str, group[0])))
    if json:
        rows = [{**dict(zip(keys, values, strict=True)), **_figures(sums, total)} for values, sums in ordered]
        damage = {"batches_skipped": lost[0], "bytes_lost": lost[1]}
        output.write_json({"path": str(path), "groups": rows, "total": _figures(total, total), **damage})
    else:
        _show(path, keys, ordered, total)
    if any(lost):
        output.note(f"kbat: left out {_damage(*lost)}; 'kbat verify' says where")


def _damage(faults: int, lost_bytes: int) -> str:
    size = output.size_text(lost_bytes)
    if not faults:
        return f"{size} of a last batch that is cut"
    return f"{size} in {faults} damaged {'place' if faults == 1 else 'places'}"


def _group(scan: kbat.Scan, keys: list[str], callback: ProgressCallback | None, path: Path) -> _Groups:
    groups: _Groups = {}
    all_bytes = sum(segment.size for segment in kbat.find_segments(path)) if callback else 0
    done = 0
    for batch in scan.to_batches():
        for values, sums in _sums(batch, keys):
            groups.setdefault(values, _Sums()).add(sums)
            done += sums.bytes
        if callback:
            callback(done, all_bytes)
    return groups


def _sums(batch: "pa.RecordBatch", keys: list[str]) -> Iterator[tuple[tuple[Any, ...], _Sums]]:
    """Add up the rows of an Arrow batch by the values of some columns."""
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


def _show(path: Path, keys: list[str], ordered: list[tuple[tuple[Any, ...], _Sums]], total: _Sums) -> None:
    if not total.batches:
        output.write_line(f"{path}: no batches")
        return
    names = [_NAMES[key] for key in keys]
    rows = [(*map(_key, values), *_cells(sums, total)) for values, sums in ordered]
    rows.append(("total", *("" for _ in keys[1:]), *_cells(total, total)))
    figures = ("batches", "records", "size", "mean batch", "records a batch", "share")
    output.write_table(str(path), (*names, *figures), rows, left=("topic", "codec"))


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
