"""What each codec and level does to the sample: size, and the time of one processor core.

Batches are compressed by `kbat.convert`, which also parses and rebuilds the records. That part takes the same time
for every codec. It is measured by converting a compressed copy back without compression, and subtracted. Batches are
decompressed by a scan of their uncompressed sizes. Times are those of the thread, so other programs on the machine
matter little, and the shortest of several rounds counts.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

import kbat
from kbat.advise.clock import Deadline
from kbat.compression import CODECS, Compression

T = TypeVar("T")

_MAGIC = 2
_MAX_ROUNDS = 5
# Decompression is fast, so it is measured several times in each round.
_SCANS = 3
# Rebuilding a batch takes less than converting it; a difference below this part of the time is noise.
_LEAST = 0.05
# Columns of a scan of headers only, and of one that also decompresses.
_VIEWS = (("size",), ("uncompressed_size",))


class Setting(NamedTuple):
    """A codec and its level, numbered as in Kafka."""

    codec: Compression
    level: int | None = None

    def __str__(self) -> str:
        """Return the codec and its level."""
        return self.codec if self.level is None else f"{self.codec} {self.level}"

    @property
    def configs(self) -> dict[str, str]:
        """The configs of a producer or topic. Kafka's default level needs none."""
        found: dict[str, str] = {"compression.type": self.codec}
        if self.level is not None and self not in DEFAULTS:
            found[f"compression.{self.codec}.level"] = str(self.level)
        return found


NONE = Setting("none")
#: The codecs with Kafka's default levels.
DEFAULTS = tuple(Setting(name, codec.default_level) for name, codec in CODECS.items() if name != "none")
_IN_USE: dict[str, Setting] = {one.codec: one for one in (NONE, *DEFAULTS)}
#: Codecs in the usual order, the best first. A codec that is in no order is measured, but not compared.
USUAL_SPEED: tuple[Compression, ...] = ("lz4", "snappy", "zstd", "gzip")
USUAL_RATIO: tuple[Compression, ...] = ("zstd", "gzip", "lz4", "snappy")
# The fast ones first: they leave their time to the slow ones.
_BY_SPEED = (
    Setting("snappy"),
    Setting("lz4", 9),
    *(Setting("zstd", level) for level in (-5, 1, 3)),
    Setting("lz4", 1),
    *(Setting("gzip", level) for level in (1, 6)),
    *(Setting("zstd", level) for level in (6, 9)),
    Setting("lz4", 12),
    Setting("gzip", 9),
    Setting("lz4", 17),
    *(Setting("zstd", level) for level in (12, 19)),
)
#: Some levels of each codec; of one that is not listed above, the default level.
SETTINGS = tuple(dict.fromkeys((NONE, *_BY_SPEED, *DEFAULTS)))
_NEGATIVE_LEVELS = (-100, -50, -20, -10, -7, -5, -4, -3, -2, -1)
# From this level on, compression is slow.
_SLOW_LEVEL = 10
# Compresses everything once, for the time that rebuilding takes, and for the sizes of settings that are too slow.
_REFERENCE = Setting("zstd", 1)


def _every_setting() -> tuple[Setting, ...]:
    found = [
        Setting(name, level)
        for name, codec in CODECS.items()
        if codec.levels is not None
        for level in (*_NEGATIVE_LEVELS, *range(1, codec.levels[1] + 1))
        if level >= codec.levels[0]
    ]
    found.sort(key=lambda one: (one.level or 0) >= _SLOW_LEVEL)
    return tuple(dict.fromkeys((NONE, *DEFAULTS, *found)))


#: Every level from the smallest to the largest, and some of zstd's 131,072 negative ones; the fast ones first.
ALL_SETTINGS = _every_setting()


def in_use(codec: str) -> Setting:
    """Return the setting of batches as they are: their codec at its default level, because batches do not store it."""
    return _IN_USE[codec]


class Chunk(NamedTuple):
    """Batches without compression, and the index of their stratum."""

    stratum: int
    data: bytes


@dataclass
class Measured:
    """What a setting does to the chunks that it was measured on.

    Attributes:
        setting: The codec and level.
        sizes: Compressed size of each chunk.
        raw_len: Bytes of these chunks.
        compress_rate: Bytes per second of one core, before compression; None for no compression.
        decompress_rate: Bytes per second of one core, after decompression; None for no compression.
        is_partial: Whether the setting was too slow for all chunks.
    """

    setting: Setting
    sizes: dict[int, int] = field(default_factory=dict)
    raw_len: int = 0
    compress_rate: float | None = None
    decompress_rate: float | None = None
    is_partial: bool = False


class _Clocked:
    """The shortest times of a setting, of all rounds."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.convert: dict[int, float] = {}
        self.scans = [math.inf] * len(_VIEWS)

    @property
    def cost(self) -> float:
        return sum(self.convert.values()) + sum(self.scans)

    @property
    def decompress(self) -> float:
        headers, payloads = self.scans
        return max(payloads - headers, payloads * _LEAST)

    def scan(self, packed: list[bytes]) -> None:
        """Scan the headers of batches, and then their payloads too."""
        data = b"".join(packed)
        for index, columns in enumerate(_VIEWS):
            for _ in range(_SCANS):
                self.scans[index] = min(self.scans[index], _timed(partial(_scan, data, columns))[0])


class Bench:
    """Measures settings on chunks."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        """Compress the chunks once for reference. A slow setting is measured on the first ones."""
        self.chunks = list(chunks)
        self._packed = [_compressed(chunk.data, _REFERENCE) for chunk in self.chunks]
        self._unpack = _Clocked()
        self._rebuild = [math.inf] * len(self.chunks)
        self._found: dict[Setting, _Clocked] = {}

    def run(
        self, settings: Sequence[Setting], deadline: Deadline, callback: Callable[[int, int], object] | None = None
    ) -> list[Measured]:
        """Measure settings until a deadline: each at least once, on the first chunk or more of them."""
        self._measure_rebuilding()
        for index, setting in enumerate(settings):
            self._found[setting] = _Clocked()
            self._round(setting, deadline.part(1 / (len(settings) - index)))
            if callback:
                callback(index + 1, len(settings))
        for _ in range(_MAX_ROUNDS - 1):
            if not deadline.is_over:
                self._measure_rebuilding()
            for index, setting in enumerate(settings):
                # twice the shortest time, because this round may be slower
                if 2 * self._found[setting].cost <= deadline.left / (len(settings) - index):
                    self._round(setting, deadline)
        return [self._measured(setting) for setting in settings]

    def size(self, setting: Setting, stratum: int) -> float:
        """Return the size of a stratum's batches with a setting.

        If the setting was too slow for all chunks, the others are computed from how it compares with a fast one.
        """
        sizes = self._found[setting].sizes
        mine = [index for index, chunk in enumerate(self.chunks) if chunk.stratum == stratum]
        known = [index for index in mine if index in sizes] or list(sizes)
        ratio = sum(sizes[index] for index in known) / sum(len(self._packed[index]) for index in known)
        return sum(sizes.get(index, len(self._packed[index]) * ratio) for index in mine)

    def _measured(self, setting: Setting) -> Measured:
        clocked = self._found[setting]
        raw_len = sum(len(self.chunks[index].data) for index in clocked.sizes)
        found = Measured(setting, clocked.sizes, raw_len, is_partial=len(clocked.sizes) < len(self.chunks))
        if setting != NONE and raw_len:
            converting = sum(clocked.convert.values())
            share = raw_len / sum(len(chunk.data) for chunk in self.chunks)
            rebuilding = sum(self._rebuild[index] for index in clocked.sizes) - self._unpack.decompress * share
            found.compress_rate = raw_len / max(converting - rebuilding, converting * _LEAST)
            found.decompress_rate = raw_len / clocked.decompress
        return found

    def _measure_rebuilding(self) -> None:
        for index, packed in enumerate(self._packed):
            taken, _ = _timed(partial(_compressed, packed, NONE))
            self._rebuild[index] = min(self._rebuild[index], taken)
        self._unpack.scan(self._packed)

    def _round(self, setting: Setting, deadline: Deadline) -> None:
        clocked = self._found[setting]
        packed: list[bytes] = []
        for index, chunk in enumerate(self.chunks):
            if packed and deadline.is_over and index not in clocked.sizes and setting != NONE:
                break
            taken, data = _timed(partial(_compressed, chunk.data, setting))
            clocked.sizes[index] = len(data)
            clocked.convert[index] = min(clocked.convert.get(index, taken), taken)
            packed.append(data)
        clocked.scan(packed)


def _compressed(data: bytes, setting: Setting) -> bytes:
    return kbat.convert(data, _MAGIC, compression=setting.codec, level=setting.level)[0]


def _scan(data: bytes, columns: tuple[str, ...]) -> None:
    for _ in kbat.scan(data, view="batches", columns=columns).to_batches():
        pass


def _timed(action: Callable[[], T]) -> tuple[float, T]:
    start = time.thread_time()
    result = action()
    return time.thread_time() - start, result
