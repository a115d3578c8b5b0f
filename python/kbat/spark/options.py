"""The options of the Spark data source: one table, the fields of [ReadOptions][kbat.spark.options.ReadOptions].

Names are Spark's: `includeHeaders` in a notebook, in any case. An option that is not in the table is refused: reading
other rows than the ones asked for is worse than an error. For the options of Spark's own Kafka source that mean nothing
for files, the message says what to write in their place.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import kbat
from kbat.spark.schema import KAFKA_COLUMNS, column_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}


def _parse_bool(text: str) -> bool:
    try:
        return {"true": True, "false": False}[text.strip().lower()]
    except KeyError:
        message = "it is true or false"
        raise ValueError(message) from None


def _parse_count(text: str) -> int:
    if not text.strip().isdecimal():
        message = "it is a whole number from 0"
        raise ValueError(message)
    return int(text)


def _parse_len(text: str) -> int:
    number = text.strip().lower()
    digits = number.rstrip("bkmg")
    unit = number[len(digits) :]
    if not digits.strip().isdecimal() or unit not in _UNITS:
        message = "it is a number of bytes, or one with a unit, like 256m or 1g"
        raise ValueError(message)
    return int(digits) * _UNITS[unit]


def _parse_positive_len(text: str) -> int:
    number = _parse_len(text)
    if number == 0:
        message = "it is at least 1 byte"
        raise ValueError(message)
    return number


def _parse_text(text: str) -> str:
    if not text:
        message = "it is empty"
        raise ValueError(message)
    return text


def _parse_path(text: str) -> tuple[str, ...]:
    return (_parse_text(text),)


def _parse_paths(text: str) -> tuple[str, ...]:
    paths = json.loads(text)
    if not isinstance(paths, list) or not all(isinstance(path, str) and path for path in paths):
        message = "it is a JSON list of paths, as load([...]) makes it"
        raise ValueError(message)
    return tuple(paths)


def _parse_columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        message = "it names no column"
        raise ValueError(message)
    columns = [column_named(name) for name in names]
    for place, column in enumerate(columns):
        if column in columns[:place]:
            message = f"it names {column.name} twice"
            raise ValueError(message)
    return names


def _parse_on_corrupt(text: str) -> str:
    if text.strip().lower() != "fail":
        message = "only fail is there: the job ends at the first damaged batch, with its file, position and offset"
        raise ValueError(message)
    return "fail"


def _option(name: str, parse: Callable[[str], object], doc: str, *, default: object = None) -> Any:  # noqa: ANN401 -- as dataclasses.field
    return field(default=default, metadata={"name": name, "parse": parse, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What one `spark.read.format("kbat")` asks for. A field's metadata has the option's name, parser and text."""

    path: tuple[str, ...] = _option(
        "path", _parse_path, "a .log file, a partition directory, a log directory, or a glob of them", default=()
    )
    paths: tuple[str, ...] = _option(
        "paths", _parse_paths, "several of them, as a JSON list; load([...]) sets it", default=()
    )
    columns: tuple[str, ...] = _option(
        "columns", _parse_columns, "the columns to read, separated by commas; others cost nothing", default=()
    )
    include_headers: bool = _option("includeHeaders", _parse_bool, "adds the column headers", default=False)
    include_control: bool = _option(
        "includeControl", _parse_bool, "transaction markers and KRaft control records come as rows too", default=False
    )
    check_crc: bool = _option("checkCrc", _parse_bool, "checksums are checked", default=True)
    on_corrupt: str = _option("onCorrupt", _parse_on_corrupt, "what a damaged batch does: fail", default="fail")
    topic: str | None = _option("topic", _parse_text, "topic of files outside a <topic>-<partition> directory")
    partition: int | None = _option(
        "partition", _parse_count, "partition of files outside a <topic>-<partition> directory"
    )
    max_partition_bytes: int = _option(
        "maxPartitionBytes",
        _parse_positive_len,
        "a task reads several segments together up to this many bytes",
        default=256 << 20,
    )
    batch_len: int | None = _option("maxBatchLen", _parse_len, "bytes of one batch")
    decompressed_len: int | None = _option(
        "maxDecompressedLen", _parse_len, "bytes of one batch's records after decompression"
    )
    ratio: int | None = _option("maxRatio", _parse_count, "how many times larger records may become, past ratioFreeLen")
    ratio_free_len: int | None = _option(
        "ratioFreeLen", _parse_len, "decompressed bytes up to which maxRatio is not looked at"
    )
    record_count: int | None = _option("maxRecordCount", _parse_count, "records of one batch")
    header_count: int | None = _option("maxHeaderCount", _parse_count, "headers of one record")

    @property
    def all_paths(self) -> tuple[str, ...]:
        """The paths to read. Raises `ValueError` if there is none."""
        if not (self.path or self.paths):
            message = (
                'kbat: no path; write .load("/path/to/log.dir"): a log directory, a partition directory or a .log file'
            )
            raise ValueError(message)
        return self.path + self.paths

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns of a read without a schema of its own: those of `columns`, else those of Spark's Kafka source."""
        names = self.columns or KAFKA_COLUMNS
        has_headers = any(column_named(name).name == "headers" for name in names)
        return (*names, "headers") if self.include_headers and not has_headers else names

    @property
    def limits(self) -> kbat.Limits:
        """The bounds on untrusted input: kbat's defaults where no option says otherwise."""
        return kbat.Limits(
            batch_len=self.batch_len,
            decompressed_len=self.decompressed_len,
            ratio=self.ratio,
            ratio_free_len=self.ratio_free_len,
            record_count=self.record_count,
            header_count=self.header_count,
        )


_FIELDS = {item.metadata["name"].lower(): item for item in fields(ReadOptions)}
OPTION_NAMES = tuple(item.metadata["name"] for item in fields(ReadOptions))

# The options that set a field of kbat.Limits; the fields have the same names here.
LIMIT_OPTIONS = tuple(item.metadata["name"] for item in fields(ReadOptions) if hasattr(kbat.Limits, item.name))

_FILTER_OFFSETS = "filter the rows: .where('offset >= 1000 AND offset < 2000')"
_FILTER_TIMES = "filter the rows: .where(\"timestamp >= '2026-01-01 00:00:00'\")"
_TOPICS_ARE_PATHS = (
    "topics are directories here: load the log directory and filter .where(\"topic = 'name'\"), "
    "or load the topic's partition directories"
)
_NO_STREAM = "leave it out: this source reads batches, not streams"

# Options of Spark's Kafka source, in lower case, and what to write in their place.
_KAFKA_OPTIONS = {
    "subscribe": _TOPICS_ARE_PATHS,
    "subscribepattern": _TOPICS_ARE_PATHS,
    "assign": "partitions are directories here: load(['/log.dir/topic-0', '/log.dir/topic-3'])",
    "startingoffsets": f"reading starts at the first record there is; {_FILTER_OFFSETS}",
    "endingoffsets": f"reading ends at the last record there is; {_FILTER_OFFSETS}",
    "startingtimestamp": _FILTER_TIMES,
    "endingtimestamp": _FILTER_TIMES,
    "startingoffsetsbytimestamp": _FILTER_TIMES,
    "endingoffsetsbytimestamp": _FILTER_TIMES,
    "startingoffsetsbytimestampstrategy": _FILTER_TIMES,
    "failondataloss": "leave it out: a file that is gone is always an error",
    "minpartitions": "tasks are made by size: lower maxPartitionBytes for more of them",
    "maxrecordsperpartition": "tasks are made by size: lower maxPartitionBytes for more of them",
    "groupidprefix": "leave it out: there is no consumer group",
    "kafka.bootstrap.servers": "there is no broker: leave it out and give load() the path of its log directory",
    "kafka.isolation.level": "leave it out: records of open and aborted transactions come too, as read_uncommitted",
    "maxoffsetspertrigger": _NO_STREAM,
    "minoffsetspertrigger": _NO_STREAM,
    "maxtriggerdelay": _NO_STREAM,
}


def parse_options(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options of a read, whatever the case of their names.

    Raises `ValueError` that names the option and says what it can be, or what to use in its place.
    """
    return ReadOptions(**dict(_parse_option(name, text) for name, text in given.items()))


def _parse_option(name: str, text: str) -> tuple[str, Any]:
    option = _FIELDS.get(name.lower())
    if option is None:
        raise ValueError(_unknown(name))
    try:
        return option.name, option.metadata["parse"](text)
    except ValueError as error:
        reason = str(error).removeprefix("kbat: ")
        message = f"kbat: option {option.metadata['name']}={text!r}: {reason}"
        raise ValueError(message) from None


def _unknown(name: str) -> str:
    lower = name.lower()
    if lower in _KAFKA_OPTIONS:
        return f"kbat: option {name} of Spark's Kafka source means nothing for files; {_KAFKA_OPTIONS[lower]}"
    if lower.startswith("kafka."):
        return f"kbat: option {name} is for a Kafka client, and there is none here; leave it out"
    near = difflib.get_close_matches(lower, _FIELDS, n=1)
    hint = f"; did you mean {_FIELDS[near[0]].metadata['name']}?" if near else ";"
    return f"kbat: there is no option {name}{hint} There are: {', '.join(OPTION_NAMES)}"
