"""The classes of Kafka's server, to check kbat's operations on logs.

``KafkaServer`` starts a Java process that holds org.apache.kafka:kafka_2.13 and kafka-tools (see ``kafka_jars.py``).
The Java side is ``java/ServerJudge.java`` and the files that it names.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from java_process import JavaProcess, RefusedError, Unpacker, say_nothing
from kafka_jars import SERVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

MAX_LONG = 2**63 - 1
NOW = 1_700_000_000_000

DUMPED = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}

Retention = Literal["DELETE", "RETAIN_EMPTY", "DELETE_EMPTY"]


class ProduceRefusedError(Exception):
    """A broker refuses the bytes of a produce request.

    Attributes:
        kind: Java class of the error, without its package.
        code: Its number in Kafka's protocol.
        name: Its name in Kafka's protocol.
        record_errors: Index in the batch and message of the invalid records.
    """

    def __init__(self, error: Mapping[str, Any]) -> None:
        """Keep Kafka's answer."""
        super().__init__(f"{error['kind']}: {error['message']}")
        self.kind: str = error["kind"]
        self.code: int = error["code"]
        self.name: str = error["name"]
        self.message: str | None = error["message"]
        self.record_errors: list[tuple[int, str]] = [(index, text) for index, text in error["record_errors"]]


class Validated(NamedTuple):
    """LogValidator's result for a produce request."""

    data: bytes
    next_offset: int
    max_timestamp: int
    log_append_time: int
    size_maybe_changed: bool
    converted_count: int


class Filtered(NamedTuple):
    """The result of ``MemoryRecords.filterTo`` for batches."""

    data: bytes
    records_read: int
    bytes_read: int
    records_retained: int
    bytes_retained: int
    max_offset: int
    max_timestamp: int
    shallow_offset_of_max_timestamp: int


class KafkaServer(JavaProcess):
    """A running Java process with the classes of Kafka's server. A context manager.

    Raises:
        JudgeUnavailableError: It can't be started here.
    """

    def __init__(self, say: Callable[[str], None] = say_nothing) -> None:
        """Download missing files, with a message to ``say``, and start."""
        super().__init__("ServerJudge", SERVER, say)

    def call(self, operation: str, **request: object) -> dict[str, Any]:
        """Ask for an operation of ``java/ServerJudge.java``; bytes go as base64.

        Raises:
            RefusedError: Kafka's classes threw an exception.
        """
        text = json.dumps({"do": operation, **request}, default=lambda data: base64.b64encode(data).decode())
        answer: dict[str, Any] = json.loads(Unpacker(self.ask(b"j", text.encode())).some_bytes())
        return answer

    def validate(  # noqa: PLR0913 - as many as LogValidator has
        self,
        data: bytes,
        *,
        offset: int = 0,
        magic: int = 2,
        compression: str = "producer",
        level: int | None = None,
        compacted: bool = False,
        timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime",
        before_max_ms: int = MAX_LONG,
        after_max_ms: int = MAX_LONG,
        leader_epoch: int = 0,
        origin: Literal["CLIENT", "COORDINATOR", "REPLICATION", "RAFT_LEADER"] = "CLIENT",
        now_ms: int = NOW,
    ) -> Validated:
        """Validate the bytes of a produce request and assign offsets with ``LogValidator``.

        Args:
            data: Batches.
            offset: The offset that the first record gets.
            magic: The message format of the log.
            compression: The topic's ``compression.type``.
            level: The topic's level of that codec.
            compacted: Whether the topic is compacted.
            timestamp_type: The topic's ``message.timestamp.type``.
            before_max_ms: The topic's ``message.timestamp.before.max.ms``.
            after_max_ms: The topic's ``message.timestamp.after.max.ms``.
            leader_epoch: The partition leader epoch to put into the batches.
            origin: Who sends the bytes.
            now_ms: The broker's clock.

        Raises:
            ProduceRefusedError: LogValidator refuses them.
        """
        answer = self.call(
            "validate", data=data, offset=offset, magic=magic, compression=compression, level=level,
            compacted=compacted, timestamp_type=timestamp_type, before_max_ms=before_max_ms, after_max_ms=after_max_ms,
            leader_epoch=leader_epoch, origin=origin, now_ms=now_ms,
        )  # fmt: skip
        if "error" in answer:
            raise ProduceRefusedError(answer["error"])
        return Validated(**{**answer, "data": base64.b64decode(answer["data"])})

    def check_request(self, data: bytes, version: int = 13) -> None:
        """Check the bytes of a produce request with ``ProduceRequest.validateRecords``, which a broker does first.

        Args:
            data: Batches.
            version: The request's version in Kafka's protocol.

        Raises:
            ProduceRefusedError: They are refused.
        """
        answer = self.call("check_request", data=data, version=version)
        if "error" in answer:
            raise ProduceRefusedError(answer["error"])

    def filter_to(  # noqa: PLR0913 - as many as Kafka's filter has
        self,
        data: bytes,
        *,
        keep_offsets: Iterable[int] | None = None,
        batch_retention: Retention | Mapping[int, Retention] = "DELETE_EMPTY",
        markers_of_empty_transactions: Iterable[int] = (),
        now_ms: int = NOW,
        delete_retention_ms: int = 0,
        buffer_len: int | None = None,
    ) -> Filtered:
        """Filter batches with ``MemoryRecords.filterTo``.

        Args:
            data: Batches.
            keep_offsets: Offsets of the records to keep; None keeps the records with a key.
            batch_retention: What ``checkBatchRetention`` says, or what it says by base offset (else DELETE_EMPTY).
            markers_of_empty_transactions: Base offsets of the control batches whose transaction has no data left.
            now_ms: The cleaner's clock.
            delete_retention_ms: What is added to it for a delete horizon.
            buffer_len: Bytes of the output buffer at first; None gives it the length of the data.
                Kafka stops when it is full: ``bytes_read`` is then less than the length of the data.

        Raises:
            RefusedError: Kafka can't read a batch.
        """
        special = {} if isinstance(batch_retention, str) else {str(at): name for at, name in batch_retention.items()}
        retention = {"": batch_retention if isinstance(batch_retention, str) else "DELETE_EMPTY", **special}
        answer = self.call(
            "filter_to", data=data, batch_retention=retention, now_ms=now_ms, delete_retention_ms=delete_retention_ms,
            keep_offsets=None if keep_offsets is None else list(keep_offsets),
            markers_of_empty_transactions=list(markers_of_empty_transactions),
            buffer_len=len(data) if buffer_len is None else buffer_len,
        )  # fmt: skip
        return Filtered(**{**answer, "data": base64.b64decode(answer["data"])})

    def dump_log(self, files: Iterable[Path], *options: str) -> tuple[str, str]:
        """Run kafka-dump-log on files.

        Args:
            files: Segments, indexes, snapshots.
            options: Further options, such as ``--print-data-log``.

        Returns:
            Its standard output and its standard error.

        Raises:
            RefusedError: It throws an exception.
        """
        answer = self.call("dump_log", arguments=["--files", ",".join(map(str, files)), *options])
        return answer["stdout"], answer["stderr"]

    def faults(self, directory: Path) -> list[str]:
        """Return kafka-dump-log's errors in a partition's segments, indexes and snapshots.

        It also calls the beginning of a segment above offset 0 a gap ("-1 is followed by 5"), and gaps that compaction
        left; the former is left out.
        """
        files = [path for path in sorted(directory.iterdir()) if path.suffix in DUMPED]
        return [fault for file in files for fault in self._faults_of(file)]

    def _faults_of(self, file: Path) -> list[str]:
        try:
            printed, complaints = self.dump_log([file])
        except RefusedError as refusal:
            return [f"{file}: {refusal}"]
        found = [line for line in printed.splitlines() if "isvalid: false" in line or "invalid bytes" in line]
        heading = ""
        for line in complaints.splitlines():
            if line.startswith("Non-consecutive offsets in"):
                heading = line
            elif not line.startswith("  -1 is followed by"):
                found += [heading, line] if heading else [line]
                heading = ""
        return found
