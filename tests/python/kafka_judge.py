"""Kafka's own record classes, to check the bytes that kbat writes and the records that it reads.

``KafkaJudge`` starts a Java process that holds org.apache.kafka:kafka-clients (see ``kafka_jars.py``) and speaks to it
over its standard input and output: one request for a whole buffer, so that a batch of a thousand records costs as much
as one. The Java side is ``java/KafkaJudge.java``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict, Unpack

from java_process import JavaProcess, Unpacker, packed_bytes, packed_text, say_nothing
from kafka_jars import CLIENTS

if TYPE_CHECKING:
    from collections.abc import Callable

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]


class RecordSpec(NamedTuple):
    """A record to write."""

    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, kw_only=True)
class BatchSpec:
    """A batch to write: the settings of ``kbat.BatchBuilder``, and the records."""

    records: tuple[RecordSpec, ...]
    magic: int = 2
    compression: Codec = "none"
    level: int | None = None
    base_offset: int = 0
    timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    log_append_time: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    control: bool = False
    partition_leader_epoch: int = -1
    delete_horizon_ms: int | None = None
    last_offset: int | None = None


class MarkerSpec(TypedDict):
    """A transaction marker to write: the arguments of ``kbat.end_transaction_marker``."""

    producer_id: int
    producer_epoch: int
    commit: bool
    timestamp: int
    base_offset: int
    coordinator_epoch: int
    partition_leader_epoch: int


class ReadRecord(NamedTuple):
    """A record as read. ``headers`` have their keys as text."""

    offset: int
    timestamp: int
    sequence: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class ReadBatch(NamedTuple):
    """A batch as read, under the names of ``kbat.Batch``. ``base_timestamp`` is None below magic 2."""

    size: int
    magic: int
    base_offset: int
    last_offset: int
    next_offset: int
    record_count: int | None
    partition_leader_epoch: int
    crc: int
    base_timestamp: int | None
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None
    compression: str
    timestamp_type: str | None
    records: tuple[ReadRecord, ...]


class KafkaJudge(JavaProcess):
    """A running Java process with Kafka's record classes. A context manager.

    Raises:
        JudgeUnavailableError: It can't be started here.
    """

    def __init__(self, say: Callable[[str], None] = say_nothing) -> None:
        """Download missing files, with a message to ``say``, and start."""
        super().__init__("KafkaJudge", CLIENTS, say)
        try:
            self.read(b"")
        except BaseException:
            self.close()
            raise

    def read(self, data: bytes) -> list[ReadBatch]:
        """Read batches and records with ``MemoryRecords``, each after ``ensureValid``.

        Raises:
            RefusedError: Kafka refuses a batch or a record.
            AssertionError: Kafka leaves bytes over.
        """
        answer = Unpacker(self.ask(b"r", packed_bytes(data)))
        batches = []
        while answer.flag():
            batches.append(unpack_batch(answer))
        (taken,) = answer.numbers("i")
        if taken != len(data):
            message = f"Kafka made no batch of the last {len(data) - taken} bytes"
            raise AssertionError(message)
        return batches

    def write(self, spec: BatchSpec) -> bytes:
        """Build a batch with ``MemoryRecordsBuilder``.

        Raises:
            RefusedError: Kafka's rules forbid the settings or a record.
        """
        return self._ask_for_bytes(b"w", pack_spec(spec))

    def end_transaction_marker(self, **marker: Unpack[MarkerSpec]) -> bytes:
        """Build a batch with ``MemoryRecords.withEndTransactionMarker``.

        Raises:
            RefusedError: Kafka's rules forbid it.
        """
        place = struct.pack(">qqi", marker["base_offset"], marker["timestamp"], marker["partition_leader_epoch"])
        producer = struct.pack(">qh", marker["producer_id"], marker["producer_epoch"])
        return self._ask_for_bytes(
            b"m", place + producer + struct.pack(">?i", marker["commit"], marker["coordinator_epoch"])
        )

    def set_last_offset(self, data: bytes, last_offset: int) -> bytes:
        """Return the bytes after ``MutableRecordBatch.setLastOffset`` on their first batch."""
        return self._edit("lastOffset", last_offset, data)

    def set_partition_leader_epoch(self, data: bytes, epoch: int) -> bytes:
        """Return the bytes after ``MutableRecordBatch.setPartitionLeaderEpoch`` on their first batch."""
        return self._edit("partitionLeaderEpoch", epoch, data)

    def set_log_append_time(self, data: bytes, timestamp: int) -> bytes:
        """Return the bytes after ``MutableRecordBatch.setMaxTimestamp(LOG_APPEND_TIME, …)`` on their first batch."""
        return self._edit("logAppendTime", timestamp, data)

    def _edit(self, field: str, number: int, data: bytes) -> bytes:
        return self._ask_for_bytes(b"e", packed_text(field) + struct.pack(">q", number) + packed_bytes(data))

    def _ask_for_bytes(self, request: bytes, payload: bytes) -> bytes:
        return Unpacker(self.ask(request, payload)).some_bytes()


def unpack_batch(answer: Unpacker) -> ReadBatch:
    """Read the output of KafkaJudge.writeBatch, and the records after it."""
    size, magic, base_offset, last_offset, next_offset, count, epoch, crc = answer.numbers("ibqqqiiq")
    base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, last_sequence = answer.numbers("qqqhii")
    transactional, control = answer.flag(), answer.flag()
    (horizon,) = answer.numbers("q")
    compression, timestamp_type = answer.text(), answer.text()
    records = []
    while answer.flag():
        records.append(unpack_record(answer))
    return ReadBatch(
        size=size,
        magic=magic,
        base_offset=base_offset,
        last_offset=last_offset,
        next_offset=next_offset,
        record_count=None if count < 0 else count,
        partition_leader_epoch=epoch,
        crc=crc,
        base_timestamp=None if magic < 2 else base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        last_sequence=last_sequence,
        is_transactional=transactional,
        is_control=control,
        delete_horizon_ms=None if horizon < 0 else horizon,
        compression=compression,
        timestamp_type=None if timestamp_type == "NoTimestampType" else timestamp_type,
        records=tuple(records),
    )


def unpack_record(answer: Unpacker) -> ReadRecord:
    """Read the output of KafkaJudge.writeRecord."""
    offset, timestamp, sequence = answer.numbers("qqi")
    key, value = answer.optional_bytes(), answer.optional_bytes()
    (header_count,) = answer.numbers("i")
    headers = tuple((answer.text(), answer.optional_bytes()) for _ in range(header_count))
    return ReadRecord(offset, timestamp, sequence, key, value, headers)


def pack_spec(spec: BatchSpec) -> bytes:
    """Pack the input of KafkaJudge.write."""
    timestamp_type = "NoTimestampType" if spec.magic == 0 else spec.timestamp_type
    parts = [
        struct.pack(">b", spec.magic),
        packed_text(spec.compression),
        struct.pack(">?i", spec.level is not None, spec.level or 0),
        packed_text(timestamp_type),
        struct.pack(">qq", spec.base_offset, -1 if spec.log_append_time is None else spec.log_append_time),
        struct.pack(">qhi", spec.producer_id, spec.producer_epoch, spec.base_sequence),
        struct.pack(">??i", spec.transactional, spec.control, spec.partition_leader_epoch),
        struct.pack(">q", -1 if spec.delete_horizon_ms is None else spec.delete_horizon_ms),
        struct.pack(">?q", spec.last_offset is not None, spec.last_offset or 0),
        struct.pack(">i", len(spec.records)),
    ]
    for record in spec.records:
        parts.append(struct.pack(">qq", record.offset, record.timestamp))
        parts += [packed_bytes(record.key), packed_bytes(record.value), struct.pack(">i", len(record.headers))]
        for key, value in record.headers:
            parts += [packed_text(key), packed_bytes(value)]
    return b"".join(parts)
