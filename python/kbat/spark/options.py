"""The options of a read: one table, the fields of [ReadOptions][kbat.spark.options.ReadOptions].

Names are written as Spark writes its own, like `includeHeaders`, and match in any case. The options of Spark's own
Kafka source have the same meaning here, so that a read of `format("kafka")` becomes one of `format("kbat")` with a
path. Options that only concern a broker's connection are ignored with a warning that names them. Any other name is
refused: wrong rows are worse than an error.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import kbat
from kbat.spark import values
from kbat.spark.bounds import (
    EARLIEST,
    LATEST,
    Bound,
    Offset,
    Offsets,
    Timestamp,
    Timestamps,
    check_batch_bounds,
    parse_bound_timestamp,
    parse_offsets,
    parse_timestamps,
)
from kbat.spark.intervals import Interval
from kbat.spark.schema import column_named, default_columns
from kbat.spark.stores import Pairs, local_path, location, storage_for
from kbat.spark.table import option, option_names, parse_table
from kbat.spark.topics import Subscription, TopicPartition, parse_assign, parse_pattern, parse_topics

if TYPE_CHECKING:
    import re
    from collections.abc import Collection, Mapping


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The options of one `spark.read.format("kbat")`. A field's metadata has the option's name, parser and text."""

    path: tuple[str, ...] = option(
        "path",
        values.parse_path,
        "a .log file, a partition directory, a log directory, or a glob of them; or the URL of one in a store",
        default=(),
    )
    paths: tuple[str, ...] = option(
        "paths", values.parse_paths, "several paths, as a JSON list; load([...]) sets it", default=()
    )
    storage: Pairs = option(
        "storage.<name>",
        values.parse_text,
        "how to open the store of a URL, with the names of object_store, such as storage.endpoint, "
        "storage.access_key_id, storage.secret_access_key; default: for s3:// and s3a:// the session's "
        "spark.hadoop.fs.s3a.* settings, in kbat.spark.read and after kbat.spark.register; then the environment, or "
        "the role of the machine. Spark shows options in the plans of views and streams, except those whose names "
        "match spark.redaction.regex, such as secret_access_key and session_token: write any other one that must stay "
        "hidden as storage.secret.<name>, such as storage.secret.azure_storage_account_key",
        default=(),
        is_secret=True,
    )
    encryption_keys: Pairs = option(
        "encryptionKeys",
        values.parse_pairs,
        "the PEM files of private keys by their ids, as JSON, for segments that Aiven's plugin has encrypted: "
        '{"key1": "/keys/key1.pem"}; every machine must have the files',
        default=(),
        is_secret=True,
    )
    subscribe: tuple[str, ...] | None = option(
        "subscribe", parse_topics, "the topics to read, separated by commas; default: all"
    )
    subscribe_pattern: re.Pattern[str] | None = option(
        "subscribePattern", parse_pattern, "a regular expression; reads the topics whose names contain a match"
    )
    assign: tuple[TopicPartition, ...] | None = option(
        "assign", parse_assign, 'the partitions to read, as JSON: {"orders": [0, 1]}'
    )
    starting_offsets: Offset | Offsets | None = option(
        "startingOffsets",
        parse_offsets,
        "where to start: earliest (the default of a batch read), latest (the default of a stream, and only for "
        "streams) or JSON by partition",
    )
    ending_offsets: Offset | Offsets | None = option(
        "endingOffsets", parse_offsets, "where a batch read ends: latest (the default) or JSON by partition"
    )
    starting_timestamp: Timestamp | None = option(
        "startingTimestamp",
        parse_bound_timestamp,
        "batch reads: only records with this timestamp or a later one; streams: start at the first such record; "
        "milliseconds since 1970, or text with a zone like 2026-11-22T00:00:00Z",
    )
    ending_timestamp: Timestamp | None = option(
        "endingTimestamp",
        parse_bound_timestamp,
        "batch reads: only records with an earlier timestamp than this; same forms as startingTimestamp",
    )
    starting_offsets_by_timestamp: Timestamps | None = option(
        "startingOffsetsByTimestamp",
        parse_timestamps,
        "start each partition at the offset of its first record with this timestamp or a later one, as JSON",
    )
    ending_offsets_by_timestamp: Timestamps | None = option(
        "endingOffsetsByTimestamp",
        parse_timestamps,
        "end each partition before the offset of its first record with this timestamp or a later one, as JSON",
    )
    timestamp_strategy: str | None = option(
        "startingOffsetsByTimestampStrategy",
        values.one_of("error", "latest"),
        "for a partition without a record since its starting time: error raises an error, latest reads no rows of it; "
        "default: latest for startingTimestamp of a batch read, else error",
    )
    fail_on_data_loss: bool = option(
        "failOnDataLoss",
        values.parse_bool,
        "true raises an error if requested offsets no longer exist, false reads the existing ones",
        default=True,
    )
    replicas: str = option(
        "replicas",
        values.one_of("error", "longest"),
        "if two directories hold the same partition: error raises an error, longest reads the more complete one",
        default="error",
    )
    isolation: str = option(
        "isolationLevel",
        values.one_of("read_uncommitted", "read_committed"),
        "read_uncommitted: all records; read_committed: no records of aborted or open transactions",
        default="read_uncommitted",
        aliases=("kafka.isolation.level",),
    )
    min_partitions: int | None = option(
        "minPartitions", values.parse_positive_count, "the approximate minimum number of tasks"
    )
    max_records_per_partition: int | None = option(
        "maxRecordsPerPartition", values.parse_positive_count, "the largest number of offsets that one task reads"
    )
    max_partition_bytes: int = option(
        "maxPartitionBytes",
        values.parse_positive_len,
        "the approximate bytes that one task reads: larger segments are split between batches, small ones are combined",
        default=384 << 20,
    )
    max_offsets_per_trigger: int | None = option(
        "maxOffsetsPerTrigger",
        values.parse_positive_count,
        "the largest number of offsets in one micro-batch of a stream",
    )
    min_offsets_per_trigger: int | None = option(
        "minOffsetsPerTrigger",
        values.parse_positive_count,
        "a micro-batch of a stream waits until there are this many new offsets",
    )
    max_trigger_delay: int = option(
        "maxTriggerDelay",
        values.parse_duration,
        "the longest wait for minOffsetsPerTrigger, like 15m",
        default=15 * 60_000,
    )
    view: str = option(
        "view",
        values.one_of("records", "batches", "segments"),
        "records; batches: one row per batch, from its header; segments: one row per segment file",
        default="records",
    )
    columns: tuple[str, ...] = option(
        "columns",
        values.parse_names,
        "the columns to read, separated by commas; the others are not decoded",
        default=(),
    )
    include_headers: bool = option("includeHeaders", values.parse_bool, "adds the column headers", default=False)
    include_control: bool = option(
        "includeControl", values.parse_bool, "includes transaction markers and KRaft control records", default=False
    )
    check_crc: bool = option(
        "checkCrc",
        values.parse_bool,
        "verifies checksums; view=batches has the column crcOk instead",
        default=True,
    )
    on_corrupt: str = option(
        "onCorrupt",
        values.one_of("fail", "skip", "report"),
        "a corrupt batch: fail ends the job, skip omits the batch, report omits it and adds a row with column error",
        default="fail",
    )
    leave_page_cache: bool = option(
        "leavePageCache",
        values.parse_bool,
        "drops the pages that a read brings into the page cache, for machines that run a broker",
        default=False,
    )
    metrics_path: str | None = option(
        "metricsPath",
        lambda text: local_path(values.parse_text(text)),
        "a directory into which each task writes its counts; kbat.spark.metrics adds them up",
    )
    topic: str | None = option(
        "topic",
        values.parse_text,
        "sets the topic of files outside a <topic>-<partition> directory; to read one topic, use subscribe",
    )
    partition: int | None = option(
        "partition",
        values.parse_count,
        "sets the partition of files outside a <topic>-<partition> directory; to read one partition, use assign",
    )
    batch_len: int | None = option("maxBatchLen", values.parse_len, "the maximum bytes of one batch")
    decompressed_len: int | None = option(
        "maxDecompressedLen", values.parse_len, "the maximum bytes of one batch's records after decompression"
    )
    ratio: int | None = option(
        "maxRatio", values.parse_count, "how many times larger decompressed records may be, beyond ratioFreeLen"
    )
    ratio_free_len: int | None = option(
        "ratioFreeLen", values.parse_len, "maxRatio does not apply up to this many decompressed bytes"
    )
    record_count: int | None = option("maxRecordCount", values.parse_count, "the maximum records of one batch")
    header_count: int | None = option("maxHeaderCount", values.parse_count, "the maximum headers of one record")
    ignored: tuple[str, ...] = ()
    session_storage: Pairs = field(default=(), repr=False)

    @property
    def all_paths(self) -> tuple[str, ...]:
        """The paths to read. Raises `ValueError` if there is none."""
        if not (self.path or self.paths):
            message = (
                'kbat: no path; write .load("/path/to/log.dir"): a log directory, a partition directory or a .log file'
            )
            raise ValueError(message)
        return tuple(location(path) for path in self.path + self.paths)

    @property
    def keywords(self) -> dict[str, Any]:
        """The keyword arguments with which kbat opens the paths. Raises `ValueError` for options without effect."""
        storage = storage_for(self.all_paths, self.storage, self.session_storage)
        plain = {name.removeprefix("secret."): value for name, value in storage}
        given = {"storage_options": plain, "encryption_keys": dict(self.encryption_keys)}
        return {name: value for name, value in given.items() if value}

    @property
    def subscription(self) -> Subscription:
        """The topics and partitions to read."""
        return Subscription(self.subscribe, self.subscribe_pattern, self.assign)

    @property
    def start(self) -> Bound | None:
        """Where to start, by precedence; None if no option sets it."""
        return self.starting_timestamp or self.starting_offsets_by_timestamp or self.starting_offsets

    @property
    def end(self) -> Bound | None:
        """Where to end, by precedence; None if no option sets it."""
        return self.ending_timestamp or self.ending_offsets_by_timestamp or self.ending_offsets

    @property
    def times(self) -> Interval:
        """The timestamps of the rows of a batch read, in milliseconds since the epoch."""
        start, end = self.starting_timestamp, self.ending_timestamp
        return Interval(None if start is None else start.timestamp, None if end is None else end.timestamp)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns of a read for which the user sets no schema: the option `columns`, or the default columns."""
        names = self.columns or default_columns(self.view)
        added = ("headers",) * self.include_headers + ("error",) * (self.on_corrupt == "report")
        there = {column_named(name, self.view).name for name in names}
        return (*names, *(name for name in added if name not in there))

    @property
    def limits(self) -> kbat.Limits:
        """The bounds on untrusted input: kbat's defaults, unless an option sets them."""
        return kbat.Limits(
            batch_len=self.batch_len,
            decompressed_len=self.decompressed_len,
            ratio=self.ratio,
            ratio_free_len=self.ratio_free_len,
            record_count=self.record_count,
            header_count=self.header_count,
        )

    def check_batch(self) -> None:
        """Check the rules of a batch read. Raises `ValueError`."""
        check_batch_bounds(self.start or Offset(EARLIEST), self.end or Offset(LATEST))

    def check_stream(self) -> None:
        """Check the rules of a stream. Raises `ValueError`."""
        if self.end is not None:
            name = "endingOffsets" if isinstance(self.end, Offset | Offsets) else "an ending timestamp"
            message = f"kbat: {name} has no effect on a stream, which has no end; remove it, or use spark.read"
            raise ValueError(message)
        least, most = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if least is not None and most is not None and least > most:
            message = f"kbat: minOffsetsPerTrigger={least} is higher than maxOffsetsPerTrigger={most}"
            raise ValueError(message)

    def warn_ignored(self) -> None:
        """Warn about the ignored options, once for all of them."""
        warn_of_broker_options(self.ignored)


def warn_of_broker_options(names: Collection[str]) -> None:
    """Warn about options that are ignored because they concern a broker, once for all of them."""
    if names:
        shown = ", ".join(_CONNECTION_OPTIONS.get(name.lower(), name) for name in names)
        warnings.warn(f"kbat: these options have no effect, because there is no broker: {shown}", stacklevel=3)


OPTION_NAMES = option_names(ReadOptions)

# The options that set a field of kbat.Limits.
LIMIT_OPTIONS = ("maxBatchLen", "maxDecompressedLen", "maxRatio", "ratioFreeLen", "maxRecordCount", "maxHeaderCount")

# Options of Spark's Kafka source that concern its connection only, by their names in lower case.
_CONNECTION_OPTIONS = {
    name.lower(): name
    for name in (
        "groupIdPrefix",
        "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
    )
}

# Options that Spark's Kafka source refuses too, and why.
_REFUSED = {
    "kafka.auto.offset.reset": "set startingOffsets=earliest or latest",
    "kafka.key.deserializer": "keys are bytes; convert the column: CAST(key AS STRING)",
    "kafka.value.deserializer": "values are bytes; convert the column: CAST(value AS STRING)",
    "kafka.enable.auto.commit": "nothing is committed to Kafka",
    "kafka.interceptor.classes": "there is no consumer; change the rows with Spark",
}


def parse_options(given: Mapping[str, str], session_storage: Pairs = ()) -> ReadOptions:
    """Parse the options of a read, whatever the case of their names; `session_storage` as `s3a_settings` returns it.

    Raises `ValueError` that names the option and its possible values, or the option to use instead.
    """
    for name in given:
        if name.lower() in _REFUSED:
            message = f"kbat: option {name} is not supported, as in Spark's Kafka source; {_REFUSED[name.lower()]}"
            raise ValueError(message)
    ignored = tuple(name for name in given if _is_of_a_connection(name))
    meant = {name: text for name, text in given.items() if name not in ignored}
    options = parse_table(ReadOptions, meant)
    _check_strategies(options)
    _check_columns(options)
    _check_view(options)
    return replace(options, ignored=ignored, session_storage=session_storage)


def _is_of_a_connection(name: str) -> bool:
    lower = name.lower()
    return lower in _CONNECTION_OPTIONS or (lower.startswith("kafka.") and lower != "kafka.isolation.level")


def _check_view(options: ReadOptions) -> None:
    """Reject options about records for the other views."""
    if options.view != "records" and (options.isolation == "read_committed" or options.include_control):
        name = "includeControl" if options.include_control else "isolationLevel=read_committed"
        message = (
            f"kbat: {name} applies to records, and view={options.view} shows everything stored: remove one of them"
        )
        raise ValueError(message)


def _check_strategies(options: ReadOptions) -> None:
    given = {
        "subscribe": options.subscribe,
        "subscribePattern": options.subscribe_pattern,
        "assign": options.assign,
    }
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        message = (
            f"kbat: options {' and '.join(names)} exclude each other: use one of subscribe, subscribePattern, assign"
        )
        raise ValueError(message)


def _check_columns(options: ReadOptions) -> None:
    seen = set()
    for name in options.columns:
        try:
            column = column_named(name, options.view)
        except ValueError as error:
            message = f"kbat: option columns={name!r}: {str(error).removeprefix('kbat: ')}"
            raise ValueError(message) from None
        if column.name in seen:
            message = f"kbat: option columns={','.join(options.columns)!r}: it names {column.name} twice"
            raise ValueError(message)
        seen.add(column.name)
    if "error" in seen and options.on_corrupt != "report":
        message = "kbat: option columns: the column error requires onCorrupt=report"
        raise ValueError(message)
    if options.include_headers and options.view != "records":
        message = f"kbat: option includeHeaders: view={options.view} has no record headers; remove it"
        raise ValueError(message)
