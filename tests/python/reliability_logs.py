"""Logs for the tests of reliability: bytes of batches, how to corrupt them, and every way to read the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import kbat

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from partitions import Codec

NOW = 1_700_000_000_000
SHAPES = ["v2-none", "v2-zstd", "v2-gzip", "v1-none", "v1-lz4", "v0-none", "v0-snappy"]


def batch(  # noqa: PLR0913 -- what a batch has
    base_offset: int,
    count: int = 3,
    *,
    value: bytes | None = None,
    magic: int = 2,
    compression: Codec = "none",
    last_offset: int | None = None,
) -> bytes:
    """Build a batch whose values are its offsets, or all `value`."""
    builder = kbat.BatchBuilder(magic, compression, base_offset=base_offset, last_offset=last_offset)
    for offset in range(base_offset, base_offset + count):
        builder.append(b"key", b"value %d" % offset if value is None else value, timestamp=NOW + offset)
    return builder.finish()


@dataclass
class Bytes:
    """The bytes of a segment, batch by batch."""

    batches: list[bytes]
    base_offset: int = 0

    @property
    def data(self) -> bytes:
        """All bytes."""
        return b"".join(self.batches)

    def position(self, index: int) -> int:
        """Return the byte at which a batch begins."""
        return sum(map(len, self.batches[:index]))

    def flipped(self, index: int, bit: int) -> bytes:
        """Flip a bit of a batch. Bit 0 is the highest bit of its stored offset."""
        data = bytearray(self.data)
        data[self.position(index) + bit // 8] ^= 0x80 >> bit % 8
        return bytes(data)

    def offsets(self, *without: int) -> list[int]:
        """Return the offsets of all records, except those of some batches."""
        kept = [each for index, each in enumerate(self.batches) if index not in without]
        return [record.offset for data in kept for found in kbat.read_batches(data) for record in found]

    def write(self, directory: Path, data: bytes | None = None) -> Path:
        """Write a partition directory of one segment with the bytes `data`; return the directory."""
        directory.mkdir(exist_ok=True, parents=True)
        (directory / f"{self.base_offset:020}.log").write_bytes(self.data if data is None else data)
        return directory


def segment_of(shape: str, count: int = 9) -> Bytes:
    """Return batches of one message format and codec, each of them a few records, with consecutive offsets."""
    magic, codec = int(shape[1]), shape[3:]
    records = 1 if magic < 2 and codec == "none" else 3
    codecs: dict[str, Codec] = {"none": "none", "gzip": "gzip", "lz4": "lz4", "snappy": "snappy", "zstd": "zstd"}
    return Bytes([batch(i * records, records, magic=magic, compression=codecs[codec]) for i in range(count)])


def offsets(
    source: Any,  # noqa: ANN401 -- a source of kbat.scan
    on_corrupt: Literal["fail", "skip", "report"] = "fail",
    **options: Any,  # noqa: ANN401 -- those of kbat.scan
) -> list[int]:
    """Return the offsets of a scan; rows of corruption are omitted."""
    column = kbat.scan(source, on_corrupt=on_corrupt, columns=["offset"], **options).to_pyarrow()["offset"]
    return [offset for offset in column.to_pylist() if offset is not None]


def in_every_way(directory: Path, data: bytes | None = None) -> dict[str, list[int]]:
    """Return the offsets that each reader finds that continues after corruption."""
    [path] = directory.glob("*.log")
    parts = kbat.split(directory, 500)
    found: dict[str, Any] = {
        "skip": offsets(directory, "skip"),
        "report": offsets(directory, "report"),
        "file": offsets(path, "skip"),
        "threads": kbat.scan(directory, on_corrupt="skip").to_pyarrow(threads=4)["offset"].to_pylist(),
        "parts": [offset for part in parts for offset in offsets(part, "skip")],
    }
    if data is not None:
        found["buffer"] = offsets(data, "skip")
    return found


def run(script: str, *arguments: object) -> tuple[int, str, str]:
    """Run a script in another Python; return its exit code, its output and its errors."""
    done = subprocess.run(  # noqa: S603 -- this interpreter
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return done.returncode, done.stdout, done.stderr


def names(directories: Iterable[Path]) -> set[str]:
    """Return the names of paths."""
    return {path.name for path in directories}


def write_log(directory: Path, records: int = 100, **settings: Any) -> Path:  # noqa: ANN401 -- those of kbat.LogWriter
    with kbat.LogWriter(directory, batch_size=200, **settings) as writer:
        for offset in range(records):
            writer.append(b"key %d" % (offset % 7), b"value %d" % offset, timestamp=NOW + offset)
    return directory


def snapshot(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
