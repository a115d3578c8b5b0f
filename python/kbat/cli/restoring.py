"""`kbat restore`: backups and tiered storage to the log directory of a new broker."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import kbat.results
from kbat.cli import output
from kbat.cli.location import Location
from kbat.cli.options import (
    MAX,
    IndexInterval,
    Json,
    OutArgument,
    Partitions,
    Replicas,
    ReplicasOption,
    Topics,
    Wide,
    choice_option,
    existing_directory,
    number_option,
    selection,
    target,
    time,
    whole,
)
from kbat.cli.place import NothingToReadError, check_not_foreign, quiet
from kbat.cli.progress import progress
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, stream_table

_COLUMNS = (
    Column("partition", left=True),
    Column("segments", rank=2),
    Column("size"),
    Column("start", rank=1),
    Column("end"),
    Column("from (UTC)", rank=4),
    Column("to (UTC)", rank=3),
)


class OpenTransactions(StrEnum):
    """How to treat transactions that are open at the end of a restored log."""

    KEEP = "keep"
    ABORT = "abort"


@dataclass(frozen=True)
class Until:
    """The offset at which a partition ends; without a name, all of them."""

    partition: str | None
    offset: int


@dataclass(frozen=True)
class TopicId:
    """The id of a topic."""

    topic: str
    id: str


def until(value: str) -> Until:
    """Parse OFFSET or PARTITION=OFFSET."""
    name, equals, text = str(value).rpartition("=")
    return Until(name if equals else None, whole(0, MAX)(text))


def topic_id(value: str) -> TopicId:
    """Parse TOPIC=ID."""
    topic, equals, text = str(value).partition("=")
    if not equals or not topic or not text:
        message = "an id has the form TOPIC=ID, such as orders=bAmibu5sR86NaVa0PfqQXA"
        raise typer.BadParameter(message)
    return TopicId(topic, text)


@opens_logs
def restore(  # noqa: PLR0913 - the options of kbat.restore
    path: Annotated[
        Location,
        typer.Argument(
            metavar="SOURCE",
            parser=existing_directory,
            help="A log directory, a partition directory, or a directory that contains log directories, or its URL.",
        ),
    ],
    out: OutArgument,
    *,
    until_time: Annotated[
        int | None,
        typer.Option(
            "--until-time", metavar="TIME", parser=time, help="End each log before its first record that is as new."
        ),
    ] = None,
    until_offset: Annotated[
        list[Until] | None,
        typer.Option(
            "--until-offset",
            metavar="[PARTITION=]OFFSET",
            parser=until,
            help="End each log at this offset, or only one of them, such as orders-0=500. Repeat it for more.",
            show_default=False,
        ),
    ] = None,
    topic: Topics = None,
    partition: Partitions = None,
    replicas: ReplicasOption = Replicas.ERROR,
    log_directory: Annotated[
        Path | None,
        typer.Option(
            "--log-directory",
            metavar="DIR",
            parser=Path,
            help="The log directory of the new broker: topic ids and the other entries of its checkpoints.",
        ),
    ] = None,
    topic_ids: Annotated[
        list[TopicId] | None,
        typer.Option(
            "--topic-id",
            metavar="TOPIC=ID",
            parser=topic_id,
            help="The id of a topic in the new cluster. Repeat it for more topics.",
            show_default=False,
        ),
    ] = None,
    open_transactions: Annotated[
        OpenTransactions,
        choice_option(
            OpenTransactions,
            "--open-transactions",
            help="Transactions that are open at the end of a log: keep them open, or abort them with markers.",
        ),
    ] = OpenTransactions.KEEP,
    keep_producers: Annotated[
        bool,
        typer.Option(
            "--keep-producers",
            help="Keep the state of all producers, for a broker of the same cluster. In a new cluster, producers get "
            "the ids of old ones, and the broker would drop their first batches as duplicates.",
        ),
    ] = False,
    leader_epoch: Annotated[
        int | None,
        number_option(
            0, "--leader-epoch", largest=(1 << 31) - 1, help="Replace the leader epoch of every batch, usually by 0."
        ),
    ] = None,
    committed_offsets: Annotated[
        Path | None,
        typer.Option(
            "--committed-offsets",
            metavar="DIR",
            parser=target,
            help="Directory to write with a CSV file per group, for kafka-consumer-groups --reset-offsets --from-file.",
        ),
    ] = None,
    offsets_source: Annotated[
        str | None,
        typer.Option(
            "--offsets-source",
            metavar="PATH",
            parser=str,
            help="A log directory with __consumer_offsets, or its URL. Default: SOURCE.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing; show what would be restored.")] = False,
    index_interval_bytes: IndexInterval = 4096,
    json: Json = False,
    wide: Wide = False,
) -> None:
    """Restore backups and tiered storage to a log directory that a new broker serves with unchanged offsets.

    SOURCE may have any layout that kbat reads. Batches are copied byte for byte, and indexes, producer snapshots and
    leader epochs are built from them. Gaps, repeated offsets and omitted objects are shown, and the rest is restored;
    any other corruption is an error. Internal topics are only restored with --topic.

    With --until-time, a log ends before the first record that is as new, even if later records are older. A batch with
    that record is written again, with the records before it.

    Examples: `kbat restore s3://bucket/kafka restored --dry-run`,
    `kbat restore s3://bucket/kafka restored --log-directory /var/lib/kafka/data --until-time 2026-11-22T10:00:00Z`

    JSON: `source`, `out`, `dry_run`, `byte_count`, `warnings`; `partitions`: `topic`, `partition`, `path`, `topic_id`,
    `source_topic_id`, `start_offset`, `end_offset`, `byte_count`, `first_timestamp`, `max_timestamp`, `leader_epoch`,
    `cut_offset` and `cut_timestamp` (where a log ends because of the options), `gaps` and `overlaps` (pairs of a first
    and a last offset), `tail_bytes`, `warnings`, `segments`: `base_offset`, `end_offset`, `path`, `source_bytes`,
    `bytes`; `open_transactions`: `producer_id`, `producer_epoch`, `first_offset`, `aborted`; `skipped`: `topic`,
    `partition`, `path`, `reason`; `committed_offsets`: `group`, `topic`, `partition`, `committed`, `offset`.

    Exit codes: 0, also with gaps and omitted objects; 1 for a corrupt log, for files that can't be read or written, and
    for an empty directory; 2 for wrong arguments, and for a SOURCE without partitions or that is not a log.
    """
    chosen = selection(topic, partition, replicas)
    if path.is_empty:
        message = f"{path} is empty: there is no partition to restore"
        raise NothingToReadError(message)
    with quiet(), progress("restoring") as callback:
        check_not_foreign(path, **chosen)
        # omitted objects are in the report
        report = kbat.restore(
            str(path),
            str(out),
            until_timestamp=until_time,
            until_offset=_offsets(until_offset),
            **chosen,
            topic_ids={one.topic: one.id for one in topic_ids or ()},
            log_directory=log_directory,
            open_transactions=open_transactions.value,
            keep_producers=keep_producers,
            leader_epoch=leader_epoch,
            committed_offsets=committed_offsets,
            offsets_source=offsets_source,
            dry_run=dry_run,
            index_interval_bytes=index_interval_bytes,
            progress=callback,
            **(out.options | path.options),
        )
    if json:
        output.write_json(report.to_dict())
        return
    _show(report, committed_offsets, wide=wide)


def _offsets(given: list[Until] | None) -> int | dict[str, int] | None:
    """Return the argument `until_offset`.

    Raises:
        ValueError: An offset for all partitions, and others.
    """
    if not given:
        return None
    named = {one.partition: one.offset for one in given if one.partition is not None}
    if not named and len(given) == 1:
        return given[0].offset
    if len(named) < len(given):
        message = "with several --until-offset, each of them must name another partition, such as orders-0=500"
        raise ValueError(message)
    return named


def _show(report: kbat.results.RestoreReport, committed_offsets: Path | None, *, wide: bool) -> None:
    stream_table(f"{report.source} to {report.out}", _COLUMNS, _rows(report.partitions), wide=wide)
    for _, _, path, reason in report.skipped:
        output.write_line(f"skipped {path}: {output.in_shell(output.text(reason))}")
    partitions = output.count_text(len(report.partitions), "partition")
    end = "; dry run: nothing was written" if report.dry_run else ""
    output.write_line(f"{partitions}, {output.size_text(report.byte_count)}{end}")
    if committed_offsets is not None:
        offsets = output.count_text(len(report.committed_offsets), "committed offset")
        groups = output.count_text(len({group for group, *_ in report.committed_offsets}), "group")
        output.write_line(f"{offsets} of {groups}: {committed_offsets}")
    for warning in report.warnings:
        output.warn(warning)


def _rows(partitions: Iterable[kbat.results.RestoredPartition]) -> Iterator[tuple[str, ...] | str]:
    for one in partitions:
        yield (
            f"{one.topic}-{one.partition}",
            f"{len(one.segments):,}",
            output.size_text(one.byte_count),
            str(one.start_offset),
            str(one.end_offset),
            output.time_text(one.first_timestamp),
            output.time_text(one.max_timestamp),
        )
        if one.cut_timestamp is not None:
            yield f"  ends before offset {one.cut_offset}, a record of {output.time_text(one.cut_timestamp)}"
        elif one.cut_offset is not None:
            yield f"  ends before offset {one.cut_offset}"
        # the first line is the row, and the end is above
        findings = str(one).splitlines()[1:]
        yield from (output.text(line) for line in findings if not line.startswith("  ends before offset"))
