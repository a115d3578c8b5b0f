"""`kbat audit`: what fills a disk, from the headers of batches alone. `kbat stat` shows more about the same groups."""

from collections.abc import Sequence
from typing import Annotated

import typer

import kbat
from kbat.cli import grouping, output
from kbat.cli.guard import FailedError
from kbat.cli.losses import lost_in, note_uncounted
from kbat.cli.options import (
    EncryptionKeys,
    Json,
    LeavePageCache,
    Partitions,
    PathsArgument,
    Remote,
    RemoteLogMetadata,
    Replicas,
    ReplicasOption,
    StorageOptions,
    Topics,
    Wide,
    selection,
)
from kbat.cli.place import locate, quiet
from kbat.cli.progress import progress
from kbat.cli.sums import BatchSums
from kbat.cli.table import Column, write_table
from kbat.cli.tally import Key, tally_batches

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


def audit(  # noqa: PLR0913 - options
    paths: PathsArgument,
    *,
    topic: Topics = None,
    partition: Partitions = None,
    by: Annotated[list[str] | None, grouping.by_option("Group also by")] = None,
    replicas: ReplicasOption = Replicas.ERROR,
    leave_page_cache: LeavePageCache = False,
    use_page_cache: _UsePageCache = False,
    json: Json = False,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    encryption_key: EncryptionKeys = None,
    remote: Remote = None,
    remote_log_metadata: RemoteLogMetadata = None,
) -> None:
    """Show what fills a log: batches, records and bytes by topic and codec. Reads only the headers of batches.

    Small batches compress badly: look for few records per batch, and for the codec "none". The producer -1 means
    all producers without idempotence. The headers of compressed sets of magic 0 and 1 do not have a record count. A
    number of records that does not include them is marked with "≥", and "records per batch" is the mean of the other
    batches.

    Batches whose header can't be read are not counted; a line on the standard error shows their size. Checksums are
    not verified; `kbat verify` does that. `kbat stat` shows distributions and gaps too.

    Examples: `kbat audit /var/lib/kafka/data`, `kbat audit data --topic 'orders*' --by partition,producer`

    JSON: `path` (null for several paths), `paths`, `groups` (largest first) and `total`: `topic`, `compression`, and
    `producer_id`, `partition`, `magic` and `day` if they are groups; `batches`, `records` (of batches with a record
    count), `bytes`, `mean_batch_bytes`, `records_per_batch`, `uncounted_batches` and `uncounted_bytes` (of batches
    without a record count), `share` (of bytes, 0 to 1); `batches_skipped` and `bytes_lost` (of corrupt batches).

    Exit codes: 0; 1 if no batch can be read, for files that can't be read and for an empty directory; 2 for wrong
    arguments and for a PATH that is not a log.
    """
    keys = grouping.keys_of([*_ALWAYS, *(by or ())])
    chosen = selection(topic, partition, replicas)
    paths = [path.opened_with(storage_option, encryption_key, remote, remote_log_metadata) for path in paths]
    segments, _ = locate(paths, **chosen)
    with quiet():
        scan = kbat.scan(
            list(map(str, paths)),
            view="batches",
            on_corrupt="skip",
            leave_page_cache=leave_page_cache and not use_page_cache,
            **chosen,
            **paths[0].options,
        )
    with progress("reading headers") as callback:
        groups = tally_batches(scan, keys, callback)
    lost = lost_in(scan.stats)
    total = grouping.sum_of(list(groups.values()))
    ordered = sorted(groups.items(), key=lambda group: (-group[1].bytes, *map(str, group[0])))
    if json:
        rows = [{**grouping.fields_of(keys, values), **grouping.batch_fields(sums, total)} for values, sums in ordered]
        found = {"groups": rows, "total": grouping.batch_fields(total, total)}
        output.write_json(grouping.report_of(paths, found, lost))
    else:
        _show(", ".join(map(str, paths)), keys, ordered, total, wide=wide)
    if lost[0] and not groups:
        raise FailedError(grouping.nothing_counted(paths, segments))
    note_uncounted(lost)


def _show(
    title: str, keys: Sequence[str], ordered: Sequence[tuple[Key, BatchSums]], total: BatchSums, *, wide: bool
) -> None:
    if not total.batches:
        output.write_line(f"{title}: no batches")
        return
    rows = [(*grouping.texts_of(keys, values), *_cells(sums, total)) for values, sums in ordered]
    rows.append(("total", *("" for _ in keys[1:]), *_cells(total, total)))
    write_table(title, (*grouping.columns_of(keys), *_FIGURES), rows, wide=wide)


def _cells(sums: BatchSums, total: BatchSums) -> tuple[str, ...]:
    return (
        f"{sums.batches:,}",
        grouping.records_text(sums),
        output.size_text(sums.bytes),
        output.size_text(sums.mean_batch_bytes or 0),
        grouping.mean_text(sums.records_per_batch),
        grouping.share_text(sums.bytes, total.bytes),
    )
