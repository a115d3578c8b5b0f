"""Records into new partition directories, with their own offsets and timestamps."""

import re
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kbat
from kbat.cli import output
from kbat.cli.json_records import Row

if TYPE_CHECKING:
    import pyarrow as pa

# Bytes of a record besides its key, value and headers, and of a header besides its name and value; at most.
_RECORD_LEN = 36
_HEADER_LEN = 10
_MAX_DELTA = (1 << 31) - 1
_CREATE_TIME = "CreateTime"
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
# Partitions whose files are open at the same time.
_MAX_OPEN = 100

Place = tuple[str | None, int | None]


class PartitionWriter:
    """Writes records with rising offsets.

    Records with consecutive offsets become the batches that `kbat.LogWriter` makes of them, so that a log written by it
    is the same again. Others need batches with gaps, with the time of an append, or of message format 0.

    Args:
        directory: The directory to write.
        start_offset: Offset of the first record.
        options: Those of `kbat.LogWriter`: `compression`, `level`, `batch_size`, `segment_bytes`, `topic_id`.
    """

    def __init__(self, directory: Path, start_offset: int, **options: Any) -> None:  # noqa: ANN401 - as described
        self._writer = kbat.LogWriter(directory, start_offset=start_offset, **options)
        self._codec: Any = options["compression"]
        self._level: int | None = options["level"]
        self._batch_size: int = options["batch_size"]
        self._builder: kbat.BatchBuilder | None = None
        self._shared: tuple[str | None, int] = (_CREATE_TIME, 0)
        self._base_offset = 0
        self._next_offset = start_offset
        self.count = 0

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self._next_offset

    def append(self, row: Row) -> None:
        """Write a record.

        Raises:
            ValueError: Its offset is not above the last one, or it does not fit its message format.
        """
        offset = self._next_offset if row.offset is None else row.offset
        self._check(offset)
        if self._builder is not None and not self._fits(row, offset):
            self.flush()
        if self._builder is None and offset == self._next_offset and row.timestamp_type == _CREATE_TIME:
            self._writer.append(row.key, row.value, timestamp=row.timestamp, headers=row.headers)
        else:
            if self._builder is None:
                self._builder = self._new_builder(row, offset)
            self._builder.append(row.key, row.value, timestamp=row.timestamp, headers=row.headers, offset=offset)
        self._next_offset = offset + 1
        self.count += 1

    def append_arrow(self, batch: "pa.RecordBatch") -> None:
        """Write records of the timestamp type CreateTime: the columns of `kbat.encode_batches`."""
        self.flush()
        options: dict[str, Any] = {"compression": self._codec, "level": self._level, "batch_bytes": self._batch_size}
        if batch.schema.get_field_index("offset") < 0:
            options["base_offset"] = self._next_offset
        for one in kbat.encode_batches(batch, partition_leader_epoch=0, **options):
            self._check(one.base_offset)
            self._writer.append_batch(one.bytes, keep_offsets=True)
            self._next_offset = one.last_offset + 1
        self.count += batch.num_rows

    def flush(self) -> None:
        """Write the batch that is being built, if any."""
        if self._builder is not None:
            self._writer.append_batch(self._builder.finish(), keep_offsets=True)
            self._builder = None

    def close(self) -> None:
        """Write everything, and close the files."""
        self.flush()
        self._writer.close()

    def _check(self, offset: int) -> None:
        if offset < self._next_offset:
            message = f"offset {offset} is not above the one before it, {self._next_offset - 1}"
            raise ValueError(message)

    def _fits(self, row: Row, offset: int) -> bool:
        """Return whether a record belongs to the batch that is being built."""
        builder = self._builder
        if builder is None or self._shared != _shared(row) or offset - self._base_offset > _MAX_DELTA:
            return False
        headers = sum(len(name) * 4 + len(value or b"") + _HEADER_LEN for name, value in row.headers)
        size = len(row.key or b"") + len(row.value or b"") + headers + _RECORD_LEN
        return builder.size + size <= self._batch_size

    def _new_builder(self, row: Row, offset: int) -> kbat.BatchBuilder:
        self._shared, self._base_offset = _shared(row), offset
        if row.timestamp_type is None:
            return kbat.BatchBuilder(0, self._codec, self._level, base_offset=offset)
        is_appended = row.timestamp_type != _CREATE_TIME
        return kbat.BatchBuilder(
            2,
            self._codec,
            self._level,
            base_offset=offset,
            timestamp_type="LogAppendTime" if is_appended else "CreateTime",
            log_append_time=row.timestamp if is_appended else None,
            partition_leader_epoch=0,
        )


def _shared(row: Row) -> tuple[str | None, int]:
    """Return what all records of a batch have in common: the type of timestamps, and the time of an append."""
    return row.timestamp_type, row.timestamp if row.timestamp_type == "LogAppendTime" else 0


class PartitionWriters:
    """The partitions that are written, of which only some are open.

    Args:
        directory: The directory to write: of one partition, or of all of them.
        is_log_directory: Whether each partition is a directory below it.
        options: Those of `PartitionWriter`.
    """

    def __init__(self, directory: Path, *, is_log_directory: bool, **options: Any) -> None:  # noqa: ANN401 - as described
        self._directory = directory
        self._is_log_directory = is_log_directory
        self._options = options
        self._open: OrderedDict[Place, PartitionWriter] = OrderedDict()
        self._counts: dict[Place, int] = {}

    def of(self, place: Place, offset: int | None) -> PartitionWriter:
        """Return the writer of a partition, whose next record has an offset."""
        writer = self._open.get(place)
        if writer is not None:
            self._open.move_to_end(place)
            return writer
        directory = self._directory_of(place)
        if len(self._open) >= _MAX_OPEN:
            self._end(*self._open.popitem(last=False))
        is_known = place in self._counts
        start = kbat.PartitionLog(directory).end_offset if is_known else offset or 0
        self._open[place] = writer = PartitionWriter(directory, start, **self._options)
        self._counts.setdefault(place, 0)
        return writer

    def close(self, out: Path) -> list[dict[str, Any]]:
        """Close all files, and return figures of the partitions, whose directories will be in `out`."""
        while self._open:
            self._end(*self._open.popitem())
        return [self._figures(place, out) for place in self._counts]

    def _end(self, place: Place, writer: PartitionWriter) -> None:
        writer.close()
        self._counts[place] += writer.count

    def _directory_of(self, place: Place) -> Path:
        topic, number = place
        if self._is_log_directory:
            if topic is None or number is None:
                message = "a record has no topic or no partition: omit --log-directory to write one partition"
                raise ValueError(message)
            if not _TOPIC.fullmatch(topic) or topic in {".", ".."}:
                message = f"{topic!r} is not the name of a topic: names have letters, digits, dots, _ and -"
                raise ValueError(message)
            return self._directory / f"{topic}-{number}"
        first = next(iter(self._counts), place)
        if first != place:
            message = (
                f"the input has several partitions, {_text(first)} and {_text(place)}: choose one with --topic and "
                "--partition, or add --log-directory to write all of them"
            )
            raise ValueError(message)
        return self._directory

    def _figures(self, place: Place, out: Path) -> dict[str, Any]:
        directory = self._directory_of(place)
        log = kbat.PartitionLog(directory)
        return {
            "topic": place[0],
            "partition": place[1],
            "path": str(out / directory.relative_to(self._directory)),
            "records": self._counts[place],
            "start_offset": log.start_offset,
            "end_offset": log.end_offset,
            "segments": len(log.segments),
            "bytes": sum(segment.size for segment in log.segments),
        }


def _text(place: Place) -> str:
    topic, number = place
    shown = "?" if number is None else str(number)
    return f"{output.text(topic)}-{shown}"
