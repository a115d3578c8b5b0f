"""Records into new partition directories, with their own offsets and timestamps."""

import re
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kbat
from kbat._core.writer import RecordWriter, max_open_logs
from kbat.cli import output
from kbat.cli.json_records import BatchRow, Row
from kbat.cli.location import Location

if TYPE_CHECKING:
    import pyarrow as pa

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
# Partitions whose files are open at the same time: opening one again reads its last segment.
_MAX_OPEN = 1000

Place = tuple[str | None, int | None]


class PartitionWriter:
    """Writes records with rising offsets, and counts them.

    Args:
        directory: The directory to write.
        start_offset: Offset of the first record.
        options: Those of `RecordWriter`: `compression`, `level`, `batch_size`, `segment_bytes`.
    """

    def __init__(self, directory: Path, start_offset: int, **options: Any) -> None:  # noqa: ANN401 - as described
        self._writer = RecordWriter(directory, start_offset=start_offset, **options)
        self._options = options
        self.count = 0

    def append(self, row: Row) -> None:
        """Write a record.

        Raises:
            ValueError: Its offset is not above the last one, or it does not fit its message format.
        """
        kind: Any = row.timestamp_type
        self._writer.append(
            row.key,
            row.value,
            timestamp=row.timestamp,
            offset=row.offset,
            timestamp_type=kind,
            headers=row.headers,
            **({} if row.create_time is None else {"create_time": row.create_time}),
        )
        self.count += 1

    def begin_batch(self, row: BatchRow) -> None:
        """Begin a batch, which has the next records.

        Raises:
            ValueError: Its offsets are not above the last one, or its fields are not those of a batch.
        """
        self._writer.begin_batch(**row.fields)

    def append_json_lines(self, data: bytes, start: int, place: Place) -> int:
        """Write the records of JSON lines of this partition. Return where the first other line begins."""
        end, count = self._writer.append_json_lines(data, start, *place)
        self.count += count
        return end

    def append_arrow(self, batch: "pa.RecordBatch") -> None:
        """Write records of the timestamp type CreateTime: the columns of `kbat.encode_batches`."""
        names = {"compression": "compression", "level": "level", "batch_bytes": "batch_size"}
        options = {name: self._options[own] for name, own in names.items()}
        if batch.schema.get_field_index("offset") < 0:
            options["base_offset"] = self._writer.end_offset
        for one in kbat.encode_batches(batch, partition_leader_epoch=0, **options):
            if one.base_offset < self._writer.end_offset:
                message = (
                    f"offset {one.base_offset} is not above the one before it, {self._writer.end_offset - 1}: sort the "
                    "rows by offset; files by date or hour need times that rise with the offsets"
                )
                raise ValueError(message)
            self._writer.append_batches(one.bytes)
        self.count += batch.num_rows

    def close(self) -> None:
        """Write everything, and close the files."""
        self._writer.close()


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
        if len(self._open) >= max_open():
            self._end(*self._open.popitem(last=False))
        is_known = place in self._counts
        start = kbat.PartitionLog(directory).end_offset if is_known else offset or 0
        self._open[place] = writer = PartitionWriter(directory, start, **self._options)
        self._counts.setdefault(place, 0)
        return writer

    def close(self, out: Location) -> list[dict[str, Any]]:
        """Close all files, and return figures of the partitions, whose directories will be in `out`."""
        self.end()
        return [self._figures(place, out) for place in self._counts]

    def end(self) -> None:
        """Write everything, and close all files.

        Raises:
            ValueError: The last batch of a partition is not complete.
        """
        while self._open:
            self._end(*self._open.popitem())

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
                f"the input has several partitions, such as {_text(first)} and {_text(place)}: choose one with --topic "
                "and --partition, or add --log-directory to write all of them"
            )
            raise ValueError(message)
        return self._directory

    def _figures(self, place: Place, out: Location) -> dict[str, Any]:
        directory = self._directory_of(place)
        log = kbat.PartitionLog(directory)
        return {
            "topic": place[0],
            "partition": place[1],
            "path": str(out.child(directory.name) if self._is_log_directory else out),
            "records": self._counts[place],
            "start_offset": log.start_offset,
            "end_offset": log.end_offset,
            "segments": len(log.segments),
            "bytes": sum(segment.size for segment in log.segments),
        }


def max_open() -> int:
    """Return how many partitions may be open."""
    return min(_MAX_OPEN, max_open_logs())


def _text(place: Place) -> str:
    topic, number = place
    if topic is None:
        return "one without a topic" if number is None else f"partition {number} without a topic"
    return f"{output.text(topic)} without a partition" if number is None else f"{output.text(topic)}-{number}"
