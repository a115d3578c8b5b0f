"""A Java process that answers requests, and the form in which values go to it and come back.

A request is a byte, an int length and that many bytes; an answer is a byte (0 done, 1 refused), an int length and that
many bytes. Numbers are big-endian; bytes are an int length, -1 for null, and the bytes. ``java/Judge.java`` is the
other side.
"""

from __future__ import annotations

import io
import os
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from kafka_jars import JarSet, JudgeUnavailableError, find_java, kafka_jars, pyspark_jar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

SOURCES = Path(__file__).with_name("java")


class RefusedError(Exception):
    """Kafka's classes threw an exception.

    Attributes:
        kind: Java class of the exception, without its package.
    """

    def __init__(self, java_class: str, message: str) -> None:
        """Store the Java exception."""
        super().__init__(f"{java_class}: {message}")
        self.kind = java_class.rpartition(".")[2]


def say_nothing(_text: str) -> None:
    """Take a message and drop it."""


class JavaProcess:
    """A running program of ``java/`` with jars of Kafka. A context manager.

    Args:
        program: Name of its class.
        jars: What it needs.
        say: Called with a message before each download.

    Raises:
        JudgeUnavailableError: It can't be started here.
    """

    def __init__(self, program: str, jars: JarSet, say: Callable[[str], None] = say_nothing) -> None:
        """Download missing files and start."""
        java = find_java()
        class_path = [*kafka_jars(java, jars, say), pyspark_jar("janino"), pyspark_jar("commons-compiler")]
        # A file and not a pipe: the pipe would not be read while waiting for an answer.
        self._messages: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes it
        command = [java, "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-Dorg.codehaus.janino.UnitCompiler.defaultTargetVersion=8"]
        command += ["-cp", os.pathsep.join(map(str, class_path))]
        command += ["org.codehaus.janino.JavaSourceClassLoader", "-sourcepath", str(SOURCES), program]
        self._process = subprocess.Popen(  # noqa: S603 - the arguments are this module's own
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._messages
        )

    def __enter__(self) -> Self:
        """Return this process."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the process."""
        self.close()

    def close(self) -> None:
        """Stop the process, which ends at the end of its input."""
        try:
            self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._messages.close()

    def ask(self, request: bytes, payload: bytes) -> bytes:
        """Send a request and wait for the answer.

        Raises:
            RefusedError: Kafka's classes threw an exception.
            JudgeUnavailableError: The process has ended.
        """
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

    def messages(self) -> str:
        """Return the standard error of the process so far."""
        self._messages.seek(0)
        return self._messages.read().decode(errors="replace")

    def _died(self) -> JudgeUnavailableError:
        self._process.wait()
        said = self.messages()
        return JudgeUnavailableError(f"the Java process with Kafka's classes ended:\n{said[:2000]}\n…\n{said[-2000:]}")


class Unpacker:
    """Reads the output of Java's ``DataOutputStream``."""

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


def packed_bytes(data: bytes | None) -> bytes:
    """Pack bytes or null."""
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def packed_text(text: str) -> bytes:
    """Pack text."""
    return packed_bytes(text.encode())
