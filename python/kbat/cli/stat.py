"""`kbat stat`: figures of batches and records by topic, partition, codec, producer and day."""

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import kbat
from kbat.cli import grouping, output
from kbat.cli.guard import FailedError
from kbat.cli.location import Location
from kbat.cli.losses import lost_in, note_uncounted
from kbat.cli.options import (
    EncryptionKeys,
    EndOffset,
    EndTime,
    Json,
    LeavePageCache,
    Partitions,
    PathsArgument,
    Remote,
    RemoteLogMetadata,
    Replicas,
    ReplicasOption,
    StartOffset,
    StartTime,
    StorageOptions,
    Topics,
    Wide,
    selection,
)
from kbat.cli.place import locate, quiet
from kbat.cli.progress import progress
from kbat.cli.sums import BatchSums, RecordSums, Sizes
from kbat.cli.table import Column, write_table
from kbat.cli.tally import Key, columns_of_records, tally_batches, tally_records

_MAX_THREADS = 8
_BATCH_FIGURES = (
    Column("batches", rank=3),
    Column("records", rank=2),
    Column("size"),
    Column("share", rank=1),
    Column("records per batch", rank=4),
    Column("mean batch", rank=7),
    Column("median batch", rank=8),
    Column("99 % of batches", rank=9),
    Column("missing offsets", rank=6),
    Column("first timestamp (UTC)", rank=11),
    Column("last timestamp (UTC)", rank=10),
)
_RECORD_FIGURES = (
    Column("median record", rank=5),
    Column("99 % of records", rank=9),
    Column("tombstones", rank=5),
    Column("null keys", rank=10),
    Column("headers", rank=6),
)
_BAR = 24
_BLOCKS = " ▏▎▍▌▋▊▉█"

_Groups = dict[Key, tuple[BatchSums, RecordSums | None]]


def stat(  # noqa: PLR0913 - options
    paths: PathsArgument,
    *,
    by: Annotated[list[str] | None, grouping.by_option("Group by")] = None,
    records: Annotated[
        bool,
        typer.Option(
            "--records",
            help="Also read the records, for their sizes, tombstones, null keys and headers. Slower.",
        ),
    ] = False,
    topic: Topics = None,
    partition: Partitions = None,
    start_offset: StartOffset = None,
    end_offset: EndOffset = None,
    start_time: StartTime = None,
    end_time: EndTime = None,
    replicas: ReplicasOption = Replicas.ERROR,
    leave_page_cache: LeavePageCache = False,
    json: Json = False,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    encryption_key: EncryptionKeys = None,
    remote: Remote = None,
    remote_log_metadata: RemoteLogMetadata = None,
) -> None:
    """Show batches, records, bytes, sizes and gaps by topic, or by any combination of groups. Reads only headers.

    With --records, also the sizes of records (key, value and headers, without compression), tombstones (records with
    a key and a null value), null keys, and the share of headers. The day of a batch is that of its largest timestamp,
    in UTC. The producer -1 means all producers without idempotence. Offsets are missing after compaction, after
    retries of a producer, and after corruption.

    Percentiles are exact up to 128 bytes, and at most 2 % too large above. Batches that can't be read are not counted;
    a line on the standard error shows their size. A range of offsets or times selects whole batches, but not all of
    their records.

    Examples: `kbat stat /var/lib/kafka/data`, `kbat stat data --by topic,codec --records`,
    `kbat stat orders-0 --by day,producer --json`

    JSON: `path` (null for several paths), `paths`, `by`, `groups` (largest first) and `total`. A group has the fields
    of its `by` (`topic`, `partition`, `compression`, `producer_id`, `magic`, `day`) and, as the total: `batches`,
    `records` (of batches with a record count), `bytes`, `share` (of bytes, 0 to 1), `mean_batch_bytes`,
    `records_per_batch`, `uncounted_batches` and `uncounted_bytes` (of batches without a record count),
    `batch_header_bytes`, `control_batches`, `transactional_batches`, `gaps` (between batches), `missing_offsets`
    (there and within batches), `first_timestamp` and `last_timestamp` (of the headers), `batch_sizes`: `min`, `p50`,
    `p90`, `p99`, `max` and `histogram` (pairs of a power of two and the number of sizes below the next one); `contents`
    (null without --records): `records`, `bytes`, `key_bytes`, `value_bytes`, `header_bytes`, `headers`,
    `header_share` (of bytes), `null_keys`, `tombstones`, `sizes` (as `batch_sizes`). `batches_skipped` and
    `bytes_lost`: corruption.

    Exit codes: 0; 1 if no batch can be read, for files that can't be read and for an empty directory; 2 for wrong
    arguments and for a PATH that is not a log.
    """
    keys = grouping.keys_of(by or ["topic"])
    paths = [path.opened_with(storage_option, encryption_key, remote, remote_log_metadata) for path in paths]
    chosen = selection(topic, partition, replicas)
    segments, _ = locate(paths, **chosen)
    options: dict[str, Any] = {
        "start_offset": start_offset,
        "end_offset": end_offset,
        "start_timestamp": start_time,
        "end_timestamp": end_time,
        "on_corrupt": "skip",
        "leave_page_cache": leave_page_cache,
        **chosen,
        **paths[0].options,
    }
    places = list(map(str, paths))
    with quiet():
        headers = kbat.scan(places, view="batches", **options)
        payloads = kbat.scan(places, columns=columns_of_records(keys), **options)
    with progress("reading headers") as callback:
        batches = tally_batches(headers, keys, callback)
    contents: dict[Key, RecordSums] = {}
    if records:
        with progress("reading records") as callback:
            contents = tally_records(payloads, keys, callback, min(os.cpu_count() or 1, _MAX_THREADS))
    lost = lost_in(payloads.stats if records else headers.stats)
    total = grouping.sum_of(list(batches.values()))
    total_contents = _sum(list(contents.values())) if records else None
    groups = _groups(batches, contents, are_read=records)
    if json:
        found = {
            "by": keys,
            "groups": [
                {**grouping.fields_of(keys, values), **_fields(*sums, total)} for values, sums in groups.items()
            ],
            "total": _fields(total, total_contents, total),
        }
        output.write_json(grouping.report_of(paths, found, lost))
    else:
        _show(paths, keys, groups, (total, total_contents), wide=wide)
    if lost[0] and not batches:
        raise FailedError(grouping.nothing_counted(paths, segments))
    note_uncounted(lost)


def _groups(batches: dict[Key, BatchSums], contents: dict[Key, RecordSums], *, are_read: bool) -> _Groups:
    """Return all groups, the largest first. A day may have records but be the largest timestamp of no batch."""
    every = {
        key: (batches.get(key, BatchSums()), contents.get(key, RecordSums()) if are_read else None)
        for key in {**batches, **contents}
    }
    return dict(sorted(every.items(), key=lambda group: (-group[1][0].bytes, *map(str, group[0]))))


def _sum(contents: Sequence[RecordSums]) -> RecordSums:
    total = RecordSums()
    for one in contents:
        total.add(one)
    return total


def _fields(sums: BatchSums, contents: RecordSums | None, total: BatchSums) -> dict[str, Any]:
    return {
        **grouping.batch_fields(sums, total),
        "batch_header_bytes": sums.batch_header_bytes,
        "control_batches": sums.control_batches,
        "transactional_batches": sums.transactional_batches,
        "gaps": sums.gaps,
        "missing_offsets": sums.missing_offsets,
        "first_timestamp": sums.first_timestamp,
        "last_timestamp": sums.last_timestamp,
        "batch_sizes": sums.sizes.to_dict(),
        "contents": None if contents is None else _content_fields(contents),
    }


def _content_fields(contents: RecordSums) -> dict[str, Any]:
    return {
        "records": contents.records,
        "bytes": contents.bytes,
        "key_bytes": contents.key_bytes,
        "value_bytes": contents.value_bytes,
        "header_bytes": contents.header_bytes,
        "headers": contents.headers,
        "header_share": contents.header_bytes / contents.bytes if contents.bytes else None,
        "null_keys": contents.null_keys,
        "tombstones": contents.tombstones,
        "sizes": contents.sizes.to_dict(),
    }


def _show(
    paths: Sequence[Location],
    keys: Sequence[str],
    groups: _Groups,
    total: tuple[BatchSums, RecordSums | None],
    *,
    wide: bool,
) -> None:
    title = ", ".join(map(str, paths))
    sums, contents = total
    if not sums.batches:
        output.write_line(f"{title}: no batches")
        return
    columns = [*grouping.columns_of(keys), *_BATCH_FIGURES, *(_RECORD_FIGURES if contents is not None else ())]
    rows = [[*grouping.texts_of(keys, values), *_cells(*one, sums)] for values, one in groups.items()]
    rows.append(["total", *("" for _ in keys[1:]), *_cells(sums, contents, sums)])
    write_table(title, columns, rows, wide=wide)
    _show_sizes("batch size", "batches", sums.sizes, wide=wide)
    if contents is not None:
        _show_sizes("record size", "records", contents.sizes, wide=wide)
    for line in _summary(sums, contents):
        output.write_line(line)


def _cells(sums: BatchSums, contents: RecordSums | None, total: BatchSums) -> list[str]:
    cells = [
        f"{sums.batches:,}",
        grouping.records_text(sums),
        output.size_text(sums.bytes),
        grouping.share_text(sums.bytes, total.bytes),
        grouping.mean_text(sums.records_per_batch),
        _size(sums.mean_batch_bytes),
        _size(sums.sizes.percentile(50)),
        _size(sums.sizes.percentile(99)),
        f"{sums.missing_offsets:,}",
        output.time_text(sums.first_timestamp),
        output.time_text(sums.last_timestamp),
    ]
    if contents is not None:
        cells += [
            _size(contents.sizes.percentile(50)),
            _size(contents.sizes.percentile(99)),
            f"{contents.tombstones:,}",
            f"{contents.null_keys:,}",
            grouping.share_text(contents.header_bytes, contents.bytes),
        ]
    return cells


def _size(size: float | None) -> str:
    return "-" if size is None else output.size_text(size)


def _show_sizes(name: str, things: str, sizes: Sizes, *, wide: bool) -> None:
    """Show a distribution as a table with bars."""
    histogram = sizes.histogram()
    if not histogram:
        return
    count, largest = sum(histogram.values()), max(histogram.values())
    columns = (Column(name), Column(things), Column("share", rank=1), Column("distribution", left=True, rank=2))
    rows = [
        (_class_text(lower), f"{number:,}", grouping.share_text(number, count), _bar(number / largest))
        for lower, number in histogram.items()
    ]
    percentiles = ", ".join(f"{percent} % ≤ {_size(sizes.percentile(percent))}" for percent in (50, 90, 99))
    write_table(f"{things}: {percentiles}, largest {_size(sizes.largest)}", columns, rows, wide=wide)


def _class_text(lower: int) -> str:
    return "0 B" if lower == 0 else f"from {output.size_text(lower)}"


def _bar(share: float) -> str:
    eighths = max(1, round(share * _BAR * 8))
    return "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()


def _summary(sums: BatchSums, contents: RecordSums | None) -> list[str]:
    share = grouping.share_text(sums.batch_header_bytes, sums.bytes)
    gaps = output.count_text(sums.gaps, "gap")
    lines = [
        f"batch headers: {output.size_text(sums.batch_header_bytes)}, {share} of all bytes",
        f"missing offsets: {sums.missing_offsets:,}, with {gaps} between batches",
    ]
    if sums.transactional_batches or sums.control_batches:
        lines.append(
            f"transactional batches: {sums.transactional_batches:,}, control batches: {sums.control_batches:,}"
        )
    if contents is not None:
        share = grouping.share_text(contents.header_bytes, contents.bytes)
        lines.append(
            f"headers of records: {contents.headers:,}, {output.size_text(contents.header_bytes)}, {share} of keys, "
            "values and headers"
        )
        lines.append(f"tombstones: {contents.tombstones:,}, null keys: {contents.null_keys:,}")
    return lines
