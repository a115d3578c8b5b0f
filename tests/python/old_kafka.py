"""Down-conversion by the last Kafka that had it: the judge of kbat's conversion to v0 and v1."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from java_process import JavaProcess, Unpacker, packed_bytes, say_nothing
from kafka_jars import OLD_CLIENTS

if TYPE_CHECKING:
    from collections.abc import Callable


class OldKafka(JavaProcess):
    """A running Java process with the record classes of Kafka 3.9. A context manager.

    Raises:
        JudgeUnavailableError: It can't be started here.
    """

    def __init__(self, say: Callable[[str], None] = say_nothing) -> None:
        """Download missing files, with a message to ``say``, and start."""
        super().__init__("OldKafkaJudge", OLD_CLIENTS, say)

    def down_convert(self, data: bytes, magic: int, first_offset: int = 0) -> bytes:
        """Convert batches with ``MemoryRecords.downConvert``, which a broker used for a fetch at ``first_offset``.

        The bytes of a truncated batch at the end are copied.

        Raises:
            RefusedError: Kafka refuses (zstd below magic 2) or can't read a batch.
        """
        payload = struct.pack(">bq", magic, first_offset) + packed_bytes(data)
        return Unpacker(self.ask(b"d", payload)).some_bytes()
