"""The options of commands that write batches with another codec, and messages about codecs that a format lacks."""

import re
from typing import Annotated

from kbat.cli.options import choice_option, number_option
from kbat.compression import CODECS, Compression

_LEVELS = {name: codec.levels for name, codec in CODECS.items() if codec.levels is not None}
_UNSUPPORTED = re.compile(r"(\w+) compression is not supported for magic (\d+)")

NewCodec = Annotated[
    Compression | None,
    choice_option(
        CODECS, "--compression", help="Codec to write with. Default: the codec of each batch.", show_default=False
    ),
]
Level = Annotated[
    int | None,
    number_option(
        min(smallest for smallest, _ in _LEVELS.values()),
        "--level",
        largest=max(largest for _, largest in _LEVELS.values()),
        help="Level of that codec, as in Kafka: "
        + ", ".join(f"{name} {smallest} to {largest}" for name, (smallest, largest) in _LEVELS.items())
        + ".",
    ),
]


def check_codec(magic: int | None, compression: Compression | None) -> None:
    """Refuse a codec that a message format does not support."""
    if magic is not None and compression is not None and magic < CODECS[compression].min_magic:
        message = f"message format {magic} does not support {compression}; {others(magic)}"
        raise ValueError(message)


def unsupported(error: Exception) -> tuple[str, int] | None:
    """Return the codec and the message format of an error about a codec that the format does not support."""
    found = _UNSUPPORTED.search(str(error))
    return None if found is None else (found[1], int(found[2]))


def others(magic: int) -> str:
    """Name the option with the codecs that a message format supports."""
    *names, last = (name for name, codec in CODECS.items() if codec.min_magic <= magic and name != "none")
    return f"choose --compression {', '.join(names)} or {last}"
