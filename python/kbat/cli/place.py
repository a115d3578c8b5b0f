"""The paths that a command works on, and how a suggested command names them."""

import re
import shlex
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

import kbat
from kbat._core.files import discover
from kbat.cli import output

_SUFFIXES = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
CHECKPOINT = "leader-epoch-checkpoint"
# Bytes in which other formats are recognized.
_HEAD_LEN = 512
_LOG_FILE = re.compile(r"\d{20}\.log(\.deleted|\.cleaned|\.swap)?")


class NothingToReadError(Exception):
    """A path is right, but it holds no segment. Its message is a warning."""


def word(path: Path | str) -> str:
    """Return a path as an argument of a shell command: quoted, and never mistaken for an option."""
    name = str(path)
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


def repairable(path: Path) -> Path:
    """Return the path to repair for a damaged file: its partition, or the file itself outside a partition."""
    is_of_partition = (path.suffix in _SUFFIXES and path.stem.isdecimal()) or path.name == CHECKPOINT
    return path.parent if is_of_partition else path


class Located(NamedTuple):
    """The segments under some paths, and what a reader should know about the paths."""

    segments: list[kbat.SegmentFile]
    warnings: list[str]


def locate(paths: Sequence[Path], **chosen: Any) -> Located:  # noqa: ANN401 - those of kbat.scan
    """Find the segments under some paths. A note on the standard error names partitions that contain something else.

    Raises:
        ValueError: A path that contains files but no segments; a topic or partition that does not exist.
        NothingToReadError: There is no segment, as in an empty directory.
    """
    segments, warned = discover(list(paths), **chosen)
    messages = list(dict.fromkeys(warned))
    if not segments:
        raise NothingToReadError("; ".join(messages) or f"no segment under {', '.join(map(str, paths))}")
    for message in messages:
        output.note(f"kbat: warning: {message}")
    return Located(segments, messages)


def foreign(path: Path) -> str:
    """Return why a file is plainly not a log, such as a text file or a compressed copy; nothing for others."""
    try:
        with path.open("rb") as file:
            return foreign_bytes(file.read(_HEAD_LEN), str(path))
    except OSError:
        return ""


def foreign_bytes(data: bytes, name: str) -> str:
    """Return why bytes are plainly not those of a log; nothing for others."""
    # with another suffix, because a file named like a segment is always read as one
    with NamedTemporaryFile(suffix=".bin") as file:
        file.write(data[:_HEAD_LEN])
        file.flush()
        try:
            discover([file.name])
        except ValueError as error:
            return str(error).replace(file.name, name)
    return ""


def check_partition(path: Path) -> None:
    """Refuse a path that is not a partition directory or a file of one."""
    if path.is_dir() and any(_LOG_FILE.fullmatch(one.name) for one in path.iterdir()):
        reasons = [foreign(log) for log in sorted(path.glob("*.log"))]
        if reasons and all(reasons):
            raise ValueError(reasons[0])
        return
    if path.is_file() and (reason := foreign(path)):
        raise ValueError(reason)
    first, *_ = locate([path]).segments
    partition = Path(first.path).parent
    if path.is_dir() and partition != path:
        message = f"{path} is a log directory; name one of its partitions, such as {partition}"
        raise ValueError(message)


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore warnings of the package that `locate` showed before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
