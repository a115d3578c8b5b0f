"""`kbat convert`: partitions in another message format or with another codec."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import kbat
from kbat.cli import output
from kbat.cli.codecs import Level, NewCodec, check_codec, others, unsupported
from kbat.cli.copies import Copy, copies, run_each
from kbat.cli.options import (
    DirectoryArgument,
    Json,
    OutArgument,
    Partitions,
    Replicas,
    ReplicasOption,
    Topics,
    Wide,
    number_option,
    selection,
)
from kbat.cli.progress import ProgressCallback
from kbat.cli.rewriting import note_format_losses, rewrite_partition
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, write_table

_COUNTS = ("segments", "batches", "records", "bytes")
_COLUMNS = [
    Column("partition", left=True),
    Column("records"),
    Column("size before", rank=1),
    Column("size"),
    Column("of before", rank=2),
]


@opens_logs
def convert(  # noqa: PLR0913 - one per option
    path: DirectoryArgument,
    out: OutArgument,
    *,
    compression: NewCodec = None,
    level: Level = None,
    magic: Annotated[
        int | None,
        number_option(0, largest=2, help="Message format. Default: the format of each batch.", show_default=False),
    ] = None,
    topic: Topics = None,
    partition: Partitions = None,
    replicas: ReplicasOption = Replicas.ERROR,
    json: Json = False,
    wide: Wide = False,
) -> None:
    """Write a partition, or all partitions of a log directory, with another codec or message format.

    Offsets, timestamps and the boundaries of batches do not change. Of a log directory, each partition becomes a
    directory in OUT. `kbat rewrite` has more options for one partition. Message formats 0 and 1 do not support zstd,
    headers and transactions.

    Examples: `kbat convert data small --compression zstd`, `kbat convert orders-0 old/orders-0 --magic 1`

    JSON: `path`, `out`, `partitions`: a list with the fields of `kbat rewrite` for each (`path`, `out`, `read`,
    `written`, `dropped`, `losses`, `end_offset`, `tail_bytes`); `read` and `written`: the sums of their `segments`,
    `batches`, `records` and `bytes`.

    Exit codes: 0; 1 for a corrupt log, for files that can't be read or written, and for an empty directory; 2 for wrong
    arguments, for a PATH that is not a log, and if a directory to write exists.
    """
    if compression is None and magic is None:
        message = "nothing to convert: set --compression or --magic"
        raise ValueError(message)
    check_codec(magic, compression)

    def work(one: Copy, callback: ProgressCallback | None) -> dict[str, Any]:
        try:
            return rewrite_partition(
                one.source,
                one.target,
                magic=magic,
                compression=compression,
                level=level,
                progress=callback,
            )
        except (kbat.errors.UnsupportedError, ValueError) as error:
            found = unsupported(error)
            if magic is not None or found is None:
                raise
            message = f"{error}: add --magic 2, or {others(found[1])}"
            raise ValueError(message) from error

    found = run_each("converting", copies(path, out, **selection(topic, partition, replicas)), work)
    if json:
        sums = {name: _sum(found, name) for name in ("read", "written")}
        output.write_json({"path": str(path), "out": str(out), "partitions": found, **sums})
    else:
        _show(f"{path} to {out}", found, wide=wide)


def _sum(found: Sequence[dict[str, Any]], name: str) -> dict[str, int]:
    return {count: sum(one[name][count] for one in found) for count in _COUNTS}


def _show(title: str, found: Sequence[dict[str, Any]], *, wide: bool) -> None:
    rows = [_row(Path(one["out"]).name, one["read"], one["written"]) for one in found]
    if len(found) > 1:
        rows.append(_row("total", _sum(found, "read"), _sum(found, "written")))
    write_table(title, _COLUMNS, rows, wide=wide)
    dropped = sum(count for one in found for count in one["dropped"].values())
    if dropped:
        output.write_line(f"dropped, because transactions can't be kept: {output.count_text(dropped, 'record')}")
    output.write_tail_bytes(sum(one["tail_bytes"] or 0 for one in found))
    note_format_losses(dict.fromkeys(loss for one in found for loss in one["losses"]))


def _row(name: str, read: dict[str, int], written: dict[str, int]) -> tuple[str, ...]:
    return (
        output.text(name),
        f"{written['records']:,}",
        output.size_text(read["bytes"]),
        output.size_text(written["bytes"]),
        f"{written['bytes'] / read['bytes']:.1%}" if read["bytes"] else "-",
    )
