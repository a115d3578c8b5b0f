"""`kbat advise`: which codec, level and batch size a log should have, measured on its own batches."""

from typing import TYPE_CHECKING, Annotated

import typer

from kbat.cli import output
from kbat.cli.grouping import nothing_counted
from kbat.cli.guard import FailedError
from kbat.cli.location import Location
from kbat.cli.options import (
    Json,
    LeavePageCache,
    Partitions,
    PathsArgument,
    Replicas,
    ReplicasOption,
    Topics,
    Wide,
    number_option,
    selection,
    size,
)
from kbat.cli.place import locate
from kbat.cli.progress import progress
from kbat.cli.stores import opens_logs
from kbat.cli.table import Column, write_table

if TYPE_CHECKING:
    from kbat.advise import Advice, Producer, Projection, Topic

_SETTING_COLUMNS = (
    Column("setting", left=True),
    Column("log size"),
    Column("saved"),
    Column("ratio", rank=2),
    Column("compression MiB/s", rank=1),
    Column("decompression MiB/s", rank=1),
    Column("measured on", rank=5),
)
_TOPIC_COLUMNS = (
    Column("topic", left=True),
    Column("size", rank=1),
    Column("codec", left=True, rank=2),
    Column("recommended", left=True),
    Column("linger.ms", rank=4),
    Column("batch.size", rank=4),
    Column("size after", rank=1),
    Column("saved"),
)
_PRODUCER_COLUMNS = (
    Column("topic", left=True),
    Column("producer"),
    Column("size", rank=1),
    Column("codec", left=True, rank=2),
    Column("batches", rank=3),
    Column("mean batch"),
    Column("records per batch", rank=4),
    Column("size after", rank=2),
    Column("batches after", rank=3),
)
# Producers in the table; the JSON has more.
_PRODUCERS_SHOWN = 10
_NO_PRODUCER = -1
_MAX_SECONDS = 3600
_MIN_SAMPLE = 1 << 16
_MAX_SAMPLE = 1 << 30


def _sample(value: str) -> int:
    found = size(value)
    if not _MIN_SAMPLE <= found <= _MAX_SAMPLE:
        message = f"{value!r} is out of range; a sample has 64KiB to 1GiB"
        raise typer.BadParameter(message)
    return found


@opens_logs
def advise(  # noqa: PLR0913 - options
    paths: PathsArgument,
    *,
    topic: Topics = None,
    partition: Partitions = None,
    replicas: ReplicasOption = Replicas.ERROR,
    sample: Annotated[
        int,
        typer.Option(
            metavar="SIZE",
            parser=_sample,
            help="Records to measure, before compression. More is more exact: raise --seconds too.",
        ),
    ] = 4 << 20,
    seconds: Annotated[
        int, number_option(1, "--seconds", largest=_MAX_SECONDS, help="About how long to measure.")
    ] = 10,
    min_speed: Annotated[
        int,
        typer.Option(
            metavar="SIZE",
            parser=size,
            help="How much one core has to compress per second with a recommended setting.",
        ),
    ] = 50 << 20,
    all_levels: Annotated[bool, typer.Option("--all-levels", help="Measure every level of every codec.")] = False,
    leave_page_cache: LeavePageCache = False,
    json: Json = False,
    wide: Wide = False,
) -> None:
    """Recommend a codec, a level and batch sizes, from what they do to a sample of the log on this machine.

    Reads headers, then compresses and decompresses a sample that is spread over the whole log with each codec. Each
    of the ten largest topics gets figures of its own, the other topics have theirs together. Speeds are those of one
    core and of kbat's codecs. Java's have the same ratios, and other speeds.

    The recommendation is the smallest setting that compresses at least --min-speed. A setting that is up to 5% larger
    is preferred if it is a codec's default level in Kafka, or, if there is none, if it is faster. Nothing is
    recommended that saves less than 5% of a topic.

    Batches of the sample are joined as a producer with linger.ms 5, 20 or 100 and batch.size 16384, 65536 or 131072
    would have made them. Of those that are up to 5% larger than the smallest, the shortest delay is recommended, if it
    saves another 5% or halves the number of batches. If a codec saves less than 5% with the batches as they are, codecs
    are compared in larger batches, and the best is recommended with these if it makes them 5% smaller. Otherwise the
    figures of larger batches are those with the codec in use.

    A producer is listed if its mean batch has less than 4 KiB before compression, or if half of its bytes are not
    compressed. Batches without a producer id count as one producer's. Their gain is an upper bound.

    Examples: `kbat advise /var/lib/kafka/data`, `kbat advise data --topic 'orders*' --sample 64MiB --seconds 60`

    JSON: `path` (null for several paths), `paths`, `bytes` (of batches), `headers`: `is_complete`, `segments`,
    `segments_read`, `bytes_read`, `batches`, `records`, `batches_skipped`, `bytes_lost`; `sample`: `bytes` (as stored),
    `uncompressed_bytes`, `batches`, `records`, `windows`, `batches_skipped`; `settings`: `compression`, `level`,
    `bytes` (projected), `saved` (0 to 1), `ratio`, `compress_bytes_per_second`, `decompress_bytes_per_second`,
    `sample_bytes`, `is_recommended`; `usual_orders`: `name`, `usual`, `measured`: `compression`, `value`; `holds`,
    `exceptions`; `topics`: `topic` (null for several), `topic_count`, `bytes`, `compression` (bytes by codec),
    `settings` (as above), `recommended`: `compression`, `level`; `linger_ms`, `batch_size` (null if they stay),
    `bytes_after`, `batches_after` (0 to 1); `producers`: `topic`, `producer_id`, `batches`, `records`, `bytes`,
    `mean_batch_bytes`, `mean_uncompressed_bytes`, `records_per_batch`, `compression`, `is_small`, `is_uncompressed`,
    `bytes_after`, `batches_after`; `producer_count`, `bytes_after`, `saved`, `recommendation` (sentences), `seconds`.

    Exit codes: 0; 1 if no batch can be read, for files that can't be read and for an empty directory; 2 for wrong
    arguments and for a PATH that is not a log.
    """
    segments, _ = locate(paths, **selection(topic, partition, replicas))
    from kbat.advise import ALL_SETTINGS, SETTINGS  # noqa: PLC0415 - imports PyArrow
    from kbat.advise import advise as measure  # noqa: PLC0415
    from kbat.advise.as_json import as_json  # noqa: PLC0415

    advice = measure(
        segments,
        sample_len=sample,
        seconds=seconds,
        settings=ALL_SETTINGS if all_levels else SETTINGS,
        min_speed=min_speed,
        leave_page_cache=leave_page_cache,
        show=progress,
        **paths[0].options,
    )
    if json:
        names = [str(path) for path in paths]
        output.write_json({"path": names[0] if len(names) == 1 else None, "paths": names, **as_json(advice)})
    else:
        _show(paths, advice, wide=wide)
    if advice.survey.batches_skipped and not advice.survey.total.batches:
        raise FailedError(nothing_counted(paths, segments))
    _note_losses(advice)


def _note_losses(advice: "Advice") -> None:
    if advice.survey.bytes_lost:
        lost = output.size_text(advice.survey.bytes_lost)
        output.note(f"kbat: not counted: {lost} of corrupt or incomplete batches; 'kbat verify' lists them")
    if advice.sample_skipped:
        skipped = output.count_text(advice.sample_skipped, "batch", "batches")
        output.note(
            f"kbat: not measured: {skipped} corrupt or too large for the sample; 'kbat verify' lists corrupt ones"
        )


def _show(paths: list[Location], advice: "Advice", *, wide: bool) -> None:
    from kbat.advise.words import costs, order_lines, recommendation  # noqa: PLC0415 - imports PyArrow

    title = ", ".join(output.text(path) for path in paths)
    if not advice.projections:
        output.write_line(f"{title}: no records to measure")
        return
    _show_settings(title, advice, wide=wide)
    for order in advice.orders:
        output.write_lines(order_lines(order))
    output.write_line("")
    if len(advice.topics) > 1:
        write_table("topics", _TOPIC_COLUMNS, map(_topic_cells, advice.topics), wide=wide)
    if advice.producers:
        shown = advice.producers[:_PRODUCERS_SHOWN]
        names = "producers with batches that are small or not compressed"
        write_table(names, _PRODUCER_COLUMNS, map(_producer_cells, shown), wide=wide)
        if len(advice.producers) > len(shown):
            more = output.count_text(len(advice.producers) - len(shown), "smaller producer")
            output.write_line(f"{more}; --json lists them\n")
    output.write_line("recommendation:")
    output.write_lines(f"- {line}" for line in (*recommendation(advice), *costs(advice)))
    _show_next(paths, advice)


def _show_settings(title: str, advice: "Advice", *, wide: bool) -> None:
    total = advice.survey.total
    batches, records = output.count_text(total.batches, "batch", "batches"), f"{total.records:,}"
    part = "" if advice.survey.is_complete else " in the part whose headers were read"
    output.write_line(
        f"{title}: {output.size_text(advice.bytes)}; {batches} with {'≥ ' if total.uncounted_batches else ''}{records} "
        f"records{part}"
    )
    today = (
        advice.bytes,
        ("today", output.size_text(advice.bytes), "", f"{advice.raw_len / advice.stored_len:.2f}", "", "", ""),
    )
    settings = [(one.bytes, _setting_cells(one, advice)) for one in advice.projections]
    write_table(
        f"sample: {output.size_text(advice.raw_len)} before compression, {advice.sampled_batches:,} batches from "
        f"{output.count_text(advice.sampled_windows, 'location')}; {advice.seconds:.1f} s",
        _SETTING_COLUMNS,
        (cells for _, cells in sorted([today, *settings], key=lambda one: one[0])),
        wide=wide,
    )
    if advice.best is not None:
        output.write_line("* the setting that the rule in --help chooses for the log as a whole\n")
    else:
        output.write_line("no setting compresses at least --min-speed\n")


def _setting_cells(one: "Projection", advice: "Advice") -> tuple[str, ...]:
    from kbat.advise.words import rate_text  # noqa: PLC0415 - imports PyArrow

    return (
        f"{one.setting}{' *' if one == advice.best else ''}",
        output.size_text(one.bytes),
        f"{one.saved:.1%}",
        f"{one.ratio:.2f}",
        rate_text(one.compress_rate),
        rate_text(one.decompress_rate),
        output.size_text(one.sample_bytes),
    )


def _topic_cells(topic: "Topic") -> tuple[str, ...]:
    from kbat.advise.words import saved_text, topic_text  # noqa: PLC0415 - imports PyArrow

    return (
        topic_text(topic),
        output.size_text(topic.bytes),
        _codecs(topic.compression),
        _recommended(topic),
        *(("", "") if topic.batching is None else (str(topic.batching.linger_ms), f"{topic.batching.batch_size}")),
        output.size_text(topic.bytes_after),
        saved_text(topic.bytes, topic.bytes_after),
    )


def _recommended(topic: "Topic") -> str:
    if topic.setting is not None:
        return str(topic.setting)
    return "brokers write it" if topic.is_internal else "keep" if topic.is_sampled else "no records"


def _codecs(compression: dict[str, int]) -> str:
    """Return the codec of most bytes, and how many others there are."""
    first = next(iter(compression), "-")
    return f"{first} + {len(compression) - 1}" if len(compression) > 1 else first


def _producer_cells(one: "Producer") -> tuple[str, ...]:
    return (
        output.text(one.topic),
        "none" if one.producer_id == _NO_PRODUCER else str(one.producer_id),
        output.size_text(one.bytes),
        _codecs(one.compression),
        f"{one.batches:,}",
        output.size_text(one.mean_batch_bytes),
        "?" if one.records_per_batch is None else f"{one.records_per_batch:,.1f}",
        "?" if one.bytes_after is None else output.size_text(one.bytes_after),
        "?" if one.batches_after is None else f"{one.batches_after:,}",
    )


def _show_next(paths: list[Location], advice: "Advice") -> None:
    """Show the command for existing segments, if the path is one partition."""
    changed = [topic for topic in advice.topics if topic.setting is not None]
    if not changed:
        return
    output.write_line("\nThe configs change new batches. For a copy of a partition with existing batches:")
    setting = max(changed, key=lambda topic: topic.bytes - topic.bytes_after).setting
    level = "" if setting is None or setting.level is None else f" --level {setting.level}"
    codec = "" if setting is None else setting.codec
    output.write_line(f"  kbat rewrite PARTITION OUT --compression {codec}{level}{paths[0].again}")
