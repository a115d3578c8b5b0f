"""What a command works on, and how a command to type names a file."""

import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import kbat

_SUFFIXES = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
_CHECKPOINT = "leader-epoch-checkpoint"


def word(path: Path | str) -> str:
    """Give a path as a word of a command: quoted, and no option where it begins with a dash."""
    name = str(path)
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


def repairable(path: Path) -> Path:
    """Give what to repair for a damaged file: its partition, or itself where no partition has such a file."""
    is_of_partition = (path.suffix in _SUFFIXES and path.stem.isdecimal()) or path.name == _CHECKPOINT
    return path.parent if is_of_partition else path


def check_partition(path: Path) -> None:
    """Refuse a log directory where a partition is wanted."""
    if not path.is_dir() or any(path.glob("*.log*")):
        return
    for log in kbat.LogDirectory(path).partitions:
        message = f"{path} is a log directory; name one of its partitions, such as {log.directory}"
        raise ValueError(message)


def check_segments(scan: kbat.Scan, path: Path) -> None:
    """Refuse a path under which no segment lies."""
    if not scan.topic_partitions:
        message = f"no segments under {path}"
        for directory in log_directories_in(path):
            message += f"; {directory} is a log directory"
            break
        raise ValueError(message)


def log_directories_in(path: Path) -> Iterator[Path]:
    """Yield the sub-directories of a directory in which partitions lie."""
    for directory in sorted(path.iterdir()):
        with suppress(kbat.KbatError, OSError):
            if directory.is_dir() and any(log.segments for log in kbat.LogDirectory(directory).partitions):
                yield directory
