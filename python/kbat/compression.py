"""The codecs of batches, from the table in `src/compression/mod.rs`.

`Compression` is the type of their names. Type checkers need it as a literal, which is in the stub of `kbat._core`.
"""

from typing import TYPE_CHECKING, NamedTuple

from kbat._core import build

__all__ = ["CODECS", "Codec", "Compression"]

if TYPE_CHECKING:
    from kbat._core import _Compression as Compression
else:
    Compression = str


class Codec(NamedTuple):
    """A codec.

    Attributes:
        name: Kafka's name of the codec.
        default_level: Kafka's default level; None for codecs without levels.
        levels: The lowest and the highest level; None for codecs without levels.
        min_magic: The oldest message format that may use the codec.
    """

    name: Compression
    default_level: int | None
    levels: tuple[int, int] | None
    min_magic: int


#: All codecs by their names, in the order of Kafka's numbers; the first one is "none".
CODECS = {row[0]: Codec(*row) for row in build.codecs()}
