"""`kbat compact` and `kbat rewrite`: a new copy of a partition."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

import kbat
from kbat.cli import output
from kbat.cli.codecs import Level, NewCodec, check_codec, others, unsupported
from kbat.cli.location import Location
from kbat.cli.options import IndexInterval, Json, OutArgument, PartitionArgument, number_option, size, time
from kbat.cli.place import check_partition
from kbat.cli.progress import progress
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, write_table
from kbat.compression import Compression


@opens_logs
def compact(  # noqa: PLR0913 - the options of kbat.compact
    path: PartitionArgument,
    out: OutArgument,
    *,
    include_active: Annotated[bool, typer.Option("--include-active", help="Compact the last segment too.")] = False,
    delete_retention_ms: Annotated[
        int, number_option(0, help="How long tombstones are kept after their first compaction, in milliseconds.")
    ] = 86_400_000,
    min_compaction_lag_ms: Annotated[
        int,
        number_option(
            0, help="Segments with a record younger than this, in milliseconds, and all later ones are not compacted."
        ),
    ] = 0,
    first_dirty_offset: Annotated[
        int | None,
        number_option(0, help="First offset of the part that was never compacted. Default: the log's start."),
    ] = None,
    now: Annotated[
        int | None,
        typer.Option(
            metavar="TIME",
            parser=time,
            help="The current time for both delays: ISO 8601 with a time zone, or milliseconds since 1970.",
        ),
    ] = None,
    max_map_bytes: Annotated[
        int,
        typer.Option(
            metavar="SIZE", parser=size, help="Memory for keys. If they need more, temporary files beside OUT are used."
        ),
    ] = 134_217_728,
    index_interval_bytes: IndexInterval = 4096,
    json: Json = False,
) -> None:
    """Compact a partition into a new directory, as a broker's cleaner does: keep the last record of each key.

    The last segment is copied unchanged, unless --include-active is set.

    Example: `kbat compact orders-0 compacted/orders-0 --include-active`

    JSON: `path`, `out`, `read` and `written`: `segments`, `batches`, `records`, `bytes`; `untouched_segments`,
    `dropped`: records by reason (`superseded`, `tombstones`, `null_keys`, `aborted`, `markers`); `tombstones_retained`,
    `delete_horizons_set`, `emptied_batches`, `first_dirty_offset`, `first_uncleanable_offset`, `last_stable_offset`,
    `end_offset`, `key_parts`, `tail_bytes`.

    Exit codes: 0; 1 for a corrupt log, for files that can't be read or written, and for an empty directory; 2 for wrong
    arguments and for a PATH that is not a log.
    """
    check_partition(path)
    with progress("compacting") as callback:
        report = kbat.compact(
            str(path),
            str(out),
            include_active=include_active,
            delete_retention_ms=delete_retention_ms,
            min_compaction_lag_ms=min_compaction_lag_ms,
            first_dirty_offset=first_dirty_offset,
            now_ms=now,
            max_map_bytes=max_map_bytes,
            index_interval_bytes=index_interval_bytes,
            progress=callback,
            **(out.options | path.options),
        )
    found = {"path": str(path), "out": str(out), **report.to_dict()}
    if json:
        output.write_json(found)
        return
    _show(found)
    if not (report.read.segments or include_active) and report.untouched_segments == 1:
        output.note("kbat: the only segment is active and was copied as it is; --include-active compacts it")
    output.write_line(f"segments after the compacted part, copied unchanged: {report.untouched_segments}")


@opens_logs
def rewrite(  # noqa: PLR0913 - the options of kbat.rewrite
    path: PartitionArgument,
    out: OutArgument,
    *,
    compression: NewCodec = None,
    level: Level = None,
    batch_bytes: Annotated[
        int | None,
        typer.Option(metavar="SIZE", parser=size, help="Bytes of a batch before compression, such as 1MiB."),
    ] = None,
    magic: Annotated[
        int | None,
        number_option(0, largest=2, help="Message format. Default: the format of each batch.", show_default=False),
    ] = None,
    drop_producer_state: Annotated[
        bool, typer.Option("--drop-producer-state", help="Remove producer ids, sequences and transactions.")
    ] = False,
    index_interval_bytes: IndexInterval = 4096,
    json: Json = False,
) -> None:
    """Copy a partition with another codec, batch size or message format. Offsets and timestamps do not change.

    Batches of idempotent producers keep their boundaries, unless --drop-producer-state is set. Message formats 0 and 1
    do not support zstd.

    Examples: `kbat rewrite orders-0 small/orders-0 --compression zstd --level 3`,
    `kbat rewrite orders-0 old/orders-0 --magic 1 --compression lz4`

    JSON: `path`, `out`, `read` and `written`: `segments`, `batches`, `records`, `bytes`; `dropped`: records by reason
    (`aborted`, `control`); `losses`: names of the properties that the message format lacks; `end_offset`, `tail_bytes`.

    Exit codes: 0; 1 for a corrupt log, for files that can't be read or written, and for an empty directory; 2 for wrong
    arguments and for a PATH that is not a log.
    """
    check_codec(magic, compression)
    check_partition(path)
    with progress("rewriting") as callback:
        found = rewrite_partition(
            path,
            out,
            magic=magic,
            compression=compression,
            level=level,
            batch_bytes=batch_bytes,
            keep_producer_state=not drop_producer_state,
            index_interval_bytes=index_interval_bytes,
            progress=callback,
        )
    if json:
        output.write_json(found)
        return
    _show(found)
    note_format_losses(found["losses"])


def rewrite_partition(
    path: Location,
    out: Location,
    *,
    magic: int | None,
    compression: Compression | None,
    **options: Any,  # noqa: ANN401 - those of kbat.rewrite
) -> dict[str, Any]:
    """Run `kbat.rewrite`, and return its report with both paths."""
    with _codec_of_old_magic(magic):
        stores = out.options | path.options
        report = kbat.rewrite(str(path), str(out), magic=magic, compression=compression, **options, **stores)
    return {"path": str(path), "out": str(out), **report.to_dict()}


def note_format_losses(losses: Iterable[str]) -> None:
    """Write a line about the properties that a message format lacks, if there are any."""
    if names := ", ".join(losses):
        output.write_line(f"lost, because the message format lacks it: {names}")


@contextmanager
def _codec_of_old_magic(magic: int | None) -> Iterator[None]:
    """Name the option that helps if batches get a message format that does not support their codec."""
    try:
        yield
    except kbat.errors.UnsupportedError as error:
        found = unsupported(error)
        if magic is None or found is None:
            raise
        message = f"message format {magic} does not support the {found[0]} of this log; {others(magic)}"
        raise ValueError(message) from error


def _show(found: dict[str, Any]) -> None:
    read, written = found["read"], found["written"]
    write_table(
        f"{found['path']} to {found['out']}",
        [Column("", left=True), *map(Column, ("segments", "batches", "records", "size", "of before"))],
        (
            (
                name,
                *(f"{counts[what]:,}" for what in ("segments", "batches", "records")),
                output.size_text(counts["bytes"]),
                f"{counts['bytes'] / read['bytes']:.1%}" if read["bytes"] else "-",
            )
            for name, counts in (("read", read), ("written", written))
        ),
        wide=True,
    )
    dropped = [f"{reason} {count:,}" for reason, count in found["dropped"].items() if count]
    if dropped:
        output.write_line(f"records dropped: {', '.join(dropped)}")
    output.write_tail_bytes(found["tail_bytes"])
