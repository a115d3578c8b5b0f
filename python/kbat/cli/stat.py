"""`kbat stat`: figures of batches and records by topic, partition, codec, producer and day.

`kbat audit` is an older name for a part of them, which scripts may use. Both count in the same way and differ in the
default groups and in what they show.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import typer

import kbat
from kbat.cli import grouping, output
from kbat.cli.guard import FailedError
from kbat.cli.location import Location
from kbat.cli.losses import Lost, lost_in, note_uncounted
from kbat.cli.options import (
    EndOffset,
    EndTime,
    Json,
    LeavePageCache,
    Partitions,
    PathsArgument,
    Replicas,
    ReplicasOption,
    StartOffset,
    StartTime,
    Topics,
    Wide,
    selection,
)
from kbat.cli.place import locate, quiet
from kbat.cli.progress import progress
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, write_table
from kbat.cli.tally import Key, tally_batches, tally_records
from kbat.sums import BatchSums, RecordSums, Sizes

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

# The groups and columns of `kbat audit`.
_AUDITED = ("topic", "codec")
_AUDIT_FIGURES = (
    Column("batches", rank=3),
    Column("records", rank=2),
    Column("size"),
    Column("mean batch", rank=5),
    Column("records per batch", rank=4),
    Column("share", rank=1),
)
# The default, which scripts may set.
_UsePageCache = Annotated[bool, typer.Option("--use-page-cache", hidden=True)]

_Sums = tuple[BatchSums, RecordSums | None]
_Groups = dict[Key, _Sums]


class _Counted(NamedTuple):
    """The groups of some paths, the largest first, and the sums over all of them."""

    paths: Sequence[Location]
    keys: Sequence[str]
    groups: _Groups
    total: _Sums
    segments: Sequence[kbat.SegmentFile]
    lost: Lost

    @property
    def title(self) -> str:
        """What a table of the groups is called."""
        return ", ".join(map(str, self.paths))

    def report(self, fields: Callable[[_Sums, _Sums], dict[str, Any]], **settings: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Return the report for JSON; `fields` returns those of a group, of it and the total."""
        groups = [
            {**grouping.fields_of(self.keys, values), **fields(sums, self.total)}
            for values, sums in self.groups.items()
        ]
        found = {**settings, "groups": groups, "total": fields(self.total, self.total)}
        return grouping.report_of(self.paths, found, self.lost)

    def note_losses(self) -> None:
        """Report corruption.

        Raises:
            FailedError: No batch can be read.
        """
        if self.lost.ranges and not self.total[0].batches:
            raise FailedError(grouping.nothing_counted(self.paths, self.segments))
        note_uncounted(self.lost)


@opens_logs
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
) -> None:
    """Show batches, records, bytes, sizes and gaps by topic, or by any combination of groups.

    Reads only headers, except for the last batch of each segment and batches before missing offsets, which are read
    completely.

    With --records, also the sizes of records (key, value and headers, without compression), tombstones (records with
    a key and a null value), null keys, and the share of headers. The day of a batch is that of its largest timestamp,
    in UTC. The producer -1 means all producers without idempotence. Offsets are missing after compaction, after
    retries of a producer, and after corruption.

    Small batches compress badly: look for few records per batch, and for the codec "none". The headers of compressed
    sets of magic 0 and 1 do not have a record count. A number of records that does not include them is marked with "≥",
    and "records per batch" is the mean of the other batches.

    Percentiles are exact up to 128 bytes, and at most 2 % too large above. A batch of which only the records can't be
    read is counted by its header, and omitted from the figures of --records; a line on the standard error shows the
    size of everything that is omitted. A range of offsets or times selects whole batches, but not all of their records:
    those that `kbat batches` lists.

    `kbat audit` is an older name for `--by topic,codec`, with fewer figures.

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
    `header_share` (of bytes), `null_keys`, `tombstones`, `sizes` (as `batch_sizes`). `batches_skipped`,
    `bytes_lost` and `offsets_lost`: corruption.

    Exit codes: 0; 1 if no batch can be read, for files that can't be read and for an empty directory; 2 for wrong
    arguments and for a PATH that is not a log.
    """
    counted = _count(
        paths,
        by or ["topic"],
        selection(topic, partition, replicas),
        are_records_read=records,
        start_offset=start_offset,
        end_offset=end_offset,
        start_timestamp=start_time,
        end_timestamp=end_time,
        leave_page_cache=leave_page_cache,
    )
    if json:
        output.write_json(counted.report(_fields, by=counted.keys))
    else:
        _show(counted, wide=wide)
    counted.note_losses()


@opens_logs
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
) -> None:
    """Show what fills a log, as `kbat stat --by topic,codec` does, with fewer figures; kept for scripts.

    `kbat stat` has these figures too, and its options also choose offsets and times, and read records.

    Examples: `kbat audit /var/lib/kafka/data`, `kbat audit data --topic 'orders*' --by partition,producer`

    JSON: `path` (null for several paths), `paths`, `groups` (largest first) and `total`: `topic`, `compression`, and
    `producer_id`, `partition`, `magic` and `day` if they are groups; `batches`, `records` (of batches with a record
    count), `bytes`, `mean_batch_bytes`, `records_per_batch`, `uncounted_batches` and `uncounted_bytes` (of batches
    without a record count), `share` (of bytes, 0 to 1); `batches_skipped`, `bytes_lost` and `offsets_lost`
    (of corrupt batches).

    Exit codes: 0; 1 if no batch can be read, for files that can't be read and for an empty directory; 2 for wrong
    arguments and for a PATH that is not a log.
    """
    counted = _count(
        paths,
        [*_AUDITED, *(by or ())],
        selection(topic, partition, replicas),
        are_records_read=False,
        leave_page_cache=leave_page_cache and not use_page_cache,
    )
    if json:
        output.write_json(counted.report(_audit_fields))
    else:
        _show_audit(counted, wide=wide)
    counted.note_losses()


def _count(
    paths: Sequence[Location],
    by: Sequence[str],
    chosen: dict[str, Any],
    *,
    are_records_read: bool,
    **bounds: Any,  # noqa: ANN401 - those of kbat.scan
) -> _Counted:
    """Sum up the batches of some paths by groups, and also their records if they are read."""
    keys = grouping.keys_of(by)
    segments, _ = locate(paths, **chosen)
    options: dict[str, Any] = {"on_corrupt": "skip", **bounds, **chosen, **paths[0].options}
    places = list(map(str, paths))
    with quiet():
        headers = kbat.scan(places, view="batches", **options)
    with progress("reading headers") as callback:
        batches = tally_batches(headers, keys, callback)
    stats = headers.stats
    contents: dict[Key, RecordSums] = {}
    if are_records_read:
        with quiet():
            payloads = kbat.scan(places, **options)
        with progress("reading records") as callback:
            contents = tally_records(payloads, keys, callback)
        stats = payloads.stats
    total = grouping.sum_of(list(batches.values()))
    total_contents = _sum(list(contents.values())) if are_records_read else None
    groups = _groups(batches, contents, are_read=are_records_read)
    return _Counted(paths, keys, groups, (total, total_contents), segments, lost_in(stats))


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


def _audit_fields(group: _Sums, total: _Sums) -> dict[str, Any]:
    return grouping.batch_fields(group[0], total[0])


def _fields(group: _Sums, total: _Sums) -> dict[str, Any]:
    sums, contents = group
    return {
        **_audit_fields(group, total),
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


def _show(counted: _Counted, *, wide: bool) -> None:
    sums, contents = counted.total
    if not sums.batches:
        output.write_line(f"{counted.title}: no batches")
        return
    figures = (*_BATCH_FIGURES, *(_RECORD_FIGURES if contents is not None else ()))
    _show_groups(counted, figures, _cells, wide=wide)
    _show_sizes("batch size", "batches", sums.sizes, wide=wide)
    if contents is not None:
        _show_sizes("record size", "records", contents.sizes, wide=wide)
    for line in _summary(sums, contents):
        output.write_line(line)


def _show_audit(counted: _Counted, *, wide: bool) -> None:
    if not counted.total[0].batches:
        output.write_line(f"{counted.title}: no batches")
        return
    _show_groups(counted, _AUDIT_FIGURES, _audit_cells, wide=wide)


def _show_groups(
    counted: _Counted, figures: Sequence[Column], cells: Callable[[_Sums, _Sums], list[str]], *, wide: bool
) -> None:
    """Write the table of the groups, with a last row for all of them."""
    keys, total = counted.keys, counted.total
    rows = [[*grouping.texts_of(keys, values), *cells(sums, total)] for values, sums in counted.groups.items()]
    rows.append(["total", *("" for _ in keys[1:]), *cells(total, total)])
    write_table(counted.title, [*grouping.columns_of(keys), *figures], rows, wide=wide)


def _audit_cells(group: _Sums, total: _Sums) -> list[str]:
    sums = group[0]
    return [
        f"{sums.batches:,}",
        grouping.records_text(sums),
        output.size_text(sums.bytes),
        output.size_text(sums.mean_batch_bytes or 0),
        grouping.mean_text(sums.records_per_batch),
        grouping.share_text(sums.bytes, total[0].bytes),
    ]


def _cells(group: _Sums, total: _Sums) -> list[str]:
    sums, contents = group
    cells = [
        f"{sums.batches:,}",
        grouping.records_text(sums),
        output.size_text(sums.bytes),
        grouping.share_text(sums.bytes, total[0].bytes),
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
