"""Kafka's own record classes as the judge of what kbat writes and reads.

``KafkaJudge`` starts a Java process that holds org.apache.kafka:kafka-clients and speaks to it over its standard input
and output: one request for a whole buffer, so that a batch of a thousand records costs as much as one. The Java side is
``KafkaJudge.java`` beside this file.

A Java 17 runtime is enough, for two libraries that come with pyspark do the rest: janino compiles that file at start,
and Ivy fetches Kafka's jars from its default repository, once, into ``target/kafka-judge``. Where that can't be done,
``JudgeUnavailableError`` says what to do.
"""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, NamedTuple, Self, TypedDict, Unpack

if TYPE_CHECKING:
    from types import TracebackType

KAFKA_VERSION = "4.3.1"
"""The version whose bytes and rules kbat follows; since 4.2 its record classes are in ``common.record.internal``."""

SOURCE = Path(__file__).with_name("KafkaJudge.java")
CACHE = Path(__file__).parents[2] / "target" / "kafka-judge"
FETCH_SECONDS = 300


class JudgeUnavailableError(Exception):
    """Java, pyspark's jars or Kafka's jars are missing."""


class RefusedError(Exception):
    """Kafka's classes threw an exception.

    Attributes:
        kind: Java class of the exception, without its package.
    """

    def __init__(self, java_class: str, message: str) -> None:
        """Keep what was thrown."""
        super().__init__(f"{java_class}: {message}")
        self.kind = java_class.rpartition(".")[2]


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


class KafkaJudge:
    """A running Java process with Kafka's record classes. A context manager.

    Raises:
        JudgeUnavailableError: It can't be started here.
    """

    def __init__(self) -> None:
        """Fetch what is missing and start."""
        java = java_command()
        class_path = [*kafka_jars(java), pyspark_jar("janino"), pyspark_jar("commons-compiler")]
        # A file and not a pipe: nobody would read the pipe while an answer is awaited.
        self._messages: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes it
        command = [java, "-Xmx1g", "-XX:+UseSerialGC", "-Dorg.codehaus.janino.UnitCompiler.defaultTargetVersion=8"]
        command += ["-cp", os.pathsep.join(map(str, class_path))]
        command += ["org.codehaus.janino.SimpleCompiler", str(SOURCE), SOURCE.stem]
        self._process = subprocess.Popen(  # noqa: S603 - the arguments are this module's own
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._messages
        )
        try:
            self.read(b"")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Give this judge."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the process."""
        self.close()

    def close(self) -> None:
        """Stop the process, which ends at the end of its input."""
        try:
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._messages.close()

    def read(self, data: bytes) -> list[ReadBatch]:
        """Read batches and records with ``MemoryRecords``, each after ``ensureValid``.

        Raises:
            RefusedError: Kafka refuses a batch or a record.
            AssertionError: Kafka leaves bytes over.
        """
        answer = Unpacker(self._ask(b"r", packed_bytes(data)))
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
        return Unpacker(self._ask(request, payload)).some_bytes()

    def _ask(self, request: bytes, payload: bytes) -> bytes:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise self._died()
        try:
            stdin.write(request + packed_bytes(payload))
            stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        head = stdout.read(5)
        if len(head) < 5:
            raise self._died()
        refused, length = struct.unpack(">?i", head)
        answer = stdout.read(length)
        if refused:
            reason = Unpacker(answer)
            raise RefusedError(reason.text(), reason.text())
        return answer

    def _died(self) -> JudgeUnavailableError:
        self._process.wait()
        self._messages.seek(0)
        messages = self._messages.read().decode(errors="replace")
        return JudgeUnavailableError(f"the Java process with Kafka's classes ended:\n{messages[-4000:]}")


class Unpacker:
    """Reads what Java's ``DataOutputStream`` wrote."""

    def __init__(self, data: bytes) -> None:
        """Begin at the start."""
        self._data = io.BytesIO(data)

    def numbers(self, layout: str) -> tuple[int, ...]:
        """Read big-endian numbers, with the letters of ``struct``."""
        return struct.unpack(f">{layout}", self._data.read(struct.calcsize(f">{layout}")))

    def flag(self) -> bool:
        """Read a boolean."""
        return self._data.read(1) == b"\1"

    def optional_bytes(self) -> bytes | None:
        """Read bytes, or None where null was written."""
        (length,) = self.numbers("i")
        return None if length < 0 else self._data.read(length)

    def some_bytes(self) -> bytes:
        """Read bytes that are not null."""
        return self.optional_bytes() or b""

    def text(self) -> str:
        """Read text."""
        return self.some_bytes().decode()


def unpack_batch(answer: Unpacker) -> ReadBatch:
    """Read what KafkaJudge.writeBatch wrote, and the records after it."""
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
    """Read what KafkaJudge.writeRecord wrote."""
    offset, timestamp, sequence = answer.numbers("qqi")
    key, value = answer.optional_bytes(), answer.optional_bytes()
    (header_count,) = answer.numbers("i")
    headers = tuple((answer.text(), answer.optional_bytes()) for _ in range(header_count))
    return ReadRecord(offset, timestamp, sequence, key, value, headers)


def pack_spec(spec: BatchSpec) -> bytes:
    """Pack what KafkaJudge.write reads."""
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


def packed_bytes(data: bytes | None) -> bytes:
    """Pack bytes or null."""
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def packed_text(text: str) -> bytes:
    """Pack text."""
    return packed_bytes(text.encode())


def java_command() -> str:
    """Find the java that Spark would take.

    Raises:
        JudgeUnavailableError: There is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(Path(home) / "bin" / "java" if home else "java")
    if java is None:
        message = "no java: install a Java 17 runtime (apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
        raise JudgeUnavailableError(message)
    return java


def pyspark_jar(name: str) -> Path:
    """Find the jar of a library that comes with pyspark.

    Raises:
        JudgeUnavailableError: pyspark or the jar is not there.
    """
    package = importlib.util.find_spec("pyspark")
    for place in (package.submodule_search_locations or []) if package else []:
        for jar in sorted(Path(place, "jars").glob(f"{name}-[0-9]*.jar")):
            return jar
    message = f"no {name} among pyspark's jars: pip install -c constraints.txt 'pyspark>=4'"
    raise JudgeUnavailableError(message)


def kafka_jars(java: str) -> list[Path]:
    """Give the jars of kafka-clients and of what it needs, fetched on the first call.

    Raises:
        JudgeUnavailableError: They can't be fetched.
    """
    home = CACHE / KAFKA_VERSION
    if not (home / f"kafka-clients-{KAFKA_VERSION}.jar").exists():
        fetch_kafka(java, home)
    return sorted(home.glob("*.jar"))


def fetch_kafka(java: str, home: Path) -> None:
    """Fetch kafka-clients and what it needs into a directory."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        jars = Path(scratch, "jars")
        command = [java, "-cp", str(pyspark_jar("ivy")), "org.apache.ivy.Main", "-warn", "-confs", "default"]
        command += ["-cache", str(CACHE / "ivy"), "-dependency", "org.apache.kafka", "kafka-clients", KAFKA_VERSION]
        command += ["-retrieve", f"{jars}/[artifact]-[revision].[ext]"]
        try:
            done = subprocess.run(  # noqa: S603 - the arguments are this module's own
                command, check=False, capture_output=True, text=True, timeout=FETCH_SECONDS
            )
            failure = None if done.returncode == 0 else done.stdout[-2000:] + done.stderr[-2000:]
        except subprocess.TimeoutExpired:
            failure = f"no answer within {FETCH_SECONDS} seconds"
        if failure is not None:
            message = (
                f"org.apache.kafka:kafka-clients:{KAFKA_VERSION} can't be fetched. Let this machine reach the central"
                f" Maven repository, or put the jars of kafka-clients, lz4-java, snappy-java, zstd-jni and slf4j-api"
                f" into {home}, or set KBAT_OFFLINE=1 to go without this test.\n{failure}"
            )
            raise JudgeUnavailableError(message)
        home.mkdir(exist_ok=True)
        # kafka-clients comes last: where it is, the others are.
        for jar in sorted(jars.iterdir(), key=lambda jar: jar.name.startswith("kafka-clients")):
            jar.replace(home / jar.name)
