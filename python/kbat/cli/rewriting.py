"""`kbat compact` and `kbat rewrite`: a partition written anew."""

from enum import StrEnum
from typing import Annotated, Any

import typer

import kbat
from kbat.cli import output
from kbat.cli.options import MAX, IndexInterval, Json, OutArgument, PartitionArgument, size, time
from kbat.cli.place import check_partition
from kbat.cli.progress import progress


class Codec(StrEnum):
    """Codecs of batches."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


def compact(  # noqa: PLR0913 - the options of kbat.compact
    path: PartitionArgument,
    out: OutArgument,
    *,
    include_active: Annotated[bool, typer.Option("--include-active", help="Compact the last segment too.")] = False,
    delete_retention_ms: Annotated[
        int,
        typer.Option(min=0, max=MAX, help="How long tombstones stay after their first compaction, in milliseconds."),
    ] = 86_400_000,
    min_compaction_lag_ms: Annotated[
        int,
        typer.Option(
            min=0, max=MAX, help="Segments with a record younger than this, and all after them, stay as they are."
        ),
    ] = 0,
    first_dirty_offset: Annotated[
        int | None,
        typer.Option(
            min=0, max=MAX, help="Where the part begins that was not compacted before. Default: the log's start."
        ),
    ] = None,
    now: Annotated[
        int | None,
        typer.Option(
            metavar="TIME",
            parser=time,
            help="The time to go by, ISO 8601 or milliseconds, of 12 digits or more. Default: now.",
        ),
    ] = None,
    max_map_bytes: Annotated[
        int, typer.Option(metavar="SIZE", parser=size, help="Memory for keys; past it, temporary files beside OUT.")
    ] = 134_217_728,
    index_interval_bytes: IndexInterval = 4096,
    json: Json = False,
) -> None:
    """Compact a partition into a new directory, as a broker's cleaner does: of each key the last record stays.

    The last segment is copied as it is unless --include-active is given.

    Example: `kbat compact orders-0 compacted/orders-0 --include-active`

    JSON: `path`, `out`, `read` and `written`: `segments`, `batches`, `records`, `bytes`; `untouched_segments`,
    `dropped`: records by reason (`superseded`, `tombstones`, `null_keys`, `aborted`, `markers`); `tombstones_retained`,
    `delete_horizons_set`, `emptied_batches`, `first_dirty_offset`, `first_uncleanable_offset`, `last_stable_offset`,
    `end_offset`, `key_parts`, `tail_bytes`.

    Exit codes: 0; 1 for a damaged log or files that can't be read or written; 2 for wrong arguments.
    """
    check_partition(path)
    with progress("compacting") as callback:
        report = kbat.compact(
            path,
            out,
            include_active=include_active,
            delete_retention_ms=delete_retention_ms,
            min_compaction_lag_ms=min_compaction_lag_ms,
            first_dirty_offset=first_dirty_offset,
            now_ms=now,
            max_map_bytes=max_map_bytes,
            index_interval_bytes=index_interval_bytes,
            progress=callback,
        )
    found = {"path": str(path), "out": str(out), **report.to_dict()}
    if json:
        output.write_json(found)
        return
    _show(found)
    output.write_line(f"segments after the compacted part, copied as they are: {report.untouched_segments}")


def rewrite(  # noqa: PLR0913 - the options of kbat.rewrite
    path: PartitionArgument,
    out: OutArgument,
    *,
    compression: Annotated[
        Codec | None, typer.Option(help="Codec to write with. Default: each batch's own.", show_default=False)
    ] = None,
    level: Annotated[
        int | None, typer.Option(min=-131_072, max=22, help="Level of that codec, as Kafka counts: zstd -131072 to 22.")
    ] = None,
    batch_bytes: Annotated[
        int | None,
        typer.Option(metavar="SIZE", parser=size, help="Bytes of a batch before compression, such as 1MiB."),
    ] = None,
    magic: Annotated[
        int | None, typer.Option(min=0, max=2, help="Message format. Default: each batch's own.", show_default=False)
    ] = None,
    drop_producer_state: Annotated[
        bool, typer.Option("--drop-producer-state", help="Take out producer ids, sequences and transactions.")
    ] = False,
    index_interval_bytes: IndexInterval = 4096,
    json: Json = False,
) -> None:
    """Write a partition anew, with another codec, batch size or message format. Offsets and timestamps stay.

    Batches of idempotent producers keep their boundaries unless --drop-producer-state is given.

    Example: `kbat rewrite orders-0 small/orders-0 --compression zstd --level 3`

    JSON: `path`, `out`, `read` and `written`: `segments`, `batches`, `records`, `bytes`; `dropped`: records by reason
    (`aborted`, `control`); `losses`: names of what the message format has no room for; `end_offset`, `tail_bytes`.

    Exit codes: 0; 1 for a damaged log or files that can't be read or written; 2 for wrong arguments.
    """
    check_partition(path)
    with progress("rewriting") as callback:
        report = kbat.rewrite(
            path,
            out,
            compression=None if compression is None else compression.value,
            level=level,
            batch_bytes=batch_bytes,
            magic=magic,
            keep_producer_state=not drop_producer_state,
            index_interval_bytes=index_interval_bytes,
            progress=callback,
        )
    found = {"path": str(path), "out": str(out), **report.to_dict()}
    if json:
        output.write_json(found)
        return
    _show(found)
    if report.losses:
        output.write_line(f"lost, for the message format has no room for it: {', '.join(report.losses)}")


def _show(found: dict[str, Any]) -> None:
    read, written = found["read"], found["written"]
    output.write_table(
        f"{found['path']} to {found['out']}",
        ("", "segments", "batches", "records", "size", "of before"),
        (
            (
                name,
                *(f"{counts[what]:,}" for what in ("segments", "batches", "records")),
                output.size_text(counts["bytes"]),
                f"{counts['bytes'] / read['bytes']:.1%}" if read["bytes"] else "-",
            )
            for name, counts in (("read", read), ("written", written))
        ),
        left=("",),
    )
    dropped = [f"{reason} {count:,}" for reason, count in found["dropped"].items() if count]
    if dropped:
        output.write_line(f"records dropped: {', '.join(dropped)}")
    if found["tail_bytes"]:
        output.write_line(f"bytes at the ends of segments that are no batch, not copied: {found['tail_bytes']:,}")
