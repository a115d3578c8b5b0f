"""The paths that a command works on, and how a suggested command names them."""

import re
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import kbat.results
from kbat._core.locations import discover, refuse_foreign
from kbat.cli import output
from kbat.cli.location import Location

_SUFFIXES = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
CHECKPOINT = "leader-epoch-checkpoint"
# The end of the name of an object that describes a segment of Aiven's tiered storage.
MANIFEST = ".rsm-manifest"
# Text files of brokers.
_PROPERTIES = {"meta.properties", "partition.metadata"}
# Bytes in which other formats are recognized.
_HEAD_LEN = 512
_FOREIGN = "not a Kafka log segment: "
_LOG_FILE = re.compile(r"\d{20}\.log(\.deleted|\.cleaned|\.swap)?")


class NothingToReadError(Exception):
    """A path is right, but it holds no segment. Its message is a warning."""


def word(path: Location | str) -> str:
    """Return a path as an argument of a shell command: quoted, and never mistaken for an option."""
    name = str(path)
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


def repairable(path: Location) -> Location:
    """Return the path to repair for a damaged file: its partition, or the file itself outside a partition."""
    name = path.name.removesuffix(".swap")
    number, dot, kind = name.partition(".")
    is_of_partition = (number.isdecimal() and dot + kind in _SUFFIXES) or name == CHECKPOINT
    return path.parent if is_of_partition else path


class Located(NamedTuple):
    """The segments under some paths, and what a reader should know about the paths."""

    segments: list[kbat.results.SegmentFile]
    warnings: list[str]


def locate(
    paths: Sequence[Location],
    *,
    is_judged: bool = True,
    shows_omissions: bool = True,
    **chosen: Any,  # noqa: ANN401 - as below
) -> Located:
    """Find the segments under some paths. A note on the standard error names partitions that contain something else.

    All paths have the same options.

    Args:
        paths: The paths.
        is_judged: Whether segments that are all text files, compressed copies or the like are an error.
        shows_omissions: Whether the warnings include those about segments in remote storage, such as segments that are
            omitted.
        chosen: Which partitions, as for `kbat.scan`.

    Raises:
        ValueError: A path that contains files but no segments; a topic, partition or URL that does not exist.
        NothingToReadError: There is no segment, as in an empty directory.
    """
    try:
        segments, warned, omitted = discover(list(map(str, paths)), **chosen, **paths[0].options)
    except FileNotFoundError as error:
        for path in paths:
            if str(path) == str(error.filename) and not path.is_local:
                message = f"path {str(path)!r} does not exist"
                raise ValueError(message) from None
        raise
    messages = list(dict.fromkeys((*omitted, *warned) if shows_omissions else warned))
    if not segments:
        raise NothingToReadError("; ".join(messages) or f"no segment under {', '.join(map(str, paths))}")
    logs = (paths[0].at(segment.path) for segment in segments if segment.size)
    if is_judged and (reason := _all_foreign(logs)):
        raise ValueError(reason)
    for message in (*messages, *filter(None, map(_emptiness, paths))):
        output.warn(message)
    return Located(segments, messages)


def _emptiness(path: Location) -> str:
    """Return that a file has no batch, if its first bytes show it; nothing for others and for directories."""
    if not (path.is_local and path.is_file):
        return ""
    with Path(str(path)).open("rb") as file:
        head = file.read(_HEAD_LEN)
    if any(head):
        return ""
    what = "begins with zeros, as a preallocated segment without a batch does" if head else "is an empty file"
    return f"{path} {what}: there is no batch to read"


def foreign(path: Location) -> str:
    """Return why a file is plainly not a log, such as a text file or a compressed copy; nothing for others."""
    if path.suffix == MANIFEST or path.name.endswith("-checkpoint") or path.name in _PROPERTIES:
        return ""
    try:
        refuse_foreign(str(path), **path.options)
    except (OSError, ValueError, kbat.KbatError) as error:
        # the reader of the file reports other errors
        return str(error) if str(error).startswith(_FOREIGN) else ""
    return ""


def standard_input() -> BinaryIO:
    """Return the standard input.

    Raises:
        ValueError: It is closed.
    """
    if sys.stdin is None:
        message = "the standard input is closed: name a file instead of -, or redirect one to it"
        raise ValueError(message)
    return sys.stdin.buffer


def foreign_bytes(data: bytes, name: str) -> str:
    """Return why bytes are plainly not those of a log; nothing for others."""
    from tempfile import NamedTemporaryFile  # noqa: PLC0415 - slow, and only the standard input needs it

    with NamedTemporaryFile() as file:
        file.write(data[:_HEAD_LEN])
        file.flush()
        return foreign(Location(file.name)).replace(file.name, name)


def check_partition(path: Location, each: str = "") -> None:
    """Refuse a path that is not a partition directory or a file of one.

    Args:
        path: The path.
        each: The arguments of `kbat` in a shell loop over the damaged partitions of a log directory, which the message
            then has.
    """
    logs = [one for one in path.files if _LOG_FILE.fullmatch(one.name)] if path.is_dir else []
    if logs:
        if reason := foreign_directory(path):
            raise ValueError(reason)
        return
    if path.is_file and (reason := foreign(path)):
        raise ValueError(reason)
    segments = locate([path]).segments
    if path.is_dir and not is_partition(path, segments):
        partition = path.at(segments[0].path).parent
        message = f"{path} is a log directory; name one of its partitions, such as {partition}"
        if each and path.is_local:
            message += (
                f"; for each damaged one: for p in {word(path)}/*-[0-9]*/; do "
                f'kbat verify "$p" >/dev/null; [ $? -lt 2 ] || kbat {each}; done'
            )
        raise ValueError(message)


def check_not_foreign(path: Location, **chosen: Any) -> None:  # noqa: ANN401 - as for `locate`
    """Refuse a path whose segments are all text files, compressed copies or the like. Shows nothing else."""
    try:
        segments, _, _ = discover([str(path)], **chosen, **path.options)
    except ValueError:  # perhaps the segments are deeper, where the command itself searches
        return
    if reason := _all_foreign(path.at(segment.path) for segment in segments if segment.size):
        raise ValueError(reason)


def foreign_directory(path: Location) -> str:
    """Return why the first segment of a directory is plainly not a log, if none of them is; nothing for others."""
    try:
        return _all_foreign(one for one in path.files if one.suffix == ".log")
    except OSError:
        return ""


def _all_foreign(logs: Iterable[Location]) -> str:
    """Return why the first of some files is plainly not a log, if none of them is; nothing for others."""
    first = ""
    for log in logs:
        reason = foreign(log)
        if not reason:
            return ""
        first = first or reason
    return first


def is_partition(path: Location, segments: Sequence[kbat.results.SegmentFile]) -> bool:
    """Return whether a directory is that of one partition, to which the segments belong."""
    directories = {path.at(segment.path).parent for segment in segments}
    if path in directories or path.is_file:
        return True
    if any(directory.is_local for directory in directories):
        return False
    # a directory of tiered storage may be one partition, which is presented below it
    # otherwise, it is several partitions, and `locate` has shown the warnings about those that are read
    with suppress(ValueError), quiet():
        kbat.PartitionLog(str(path), **path.options)
        return True
    return False


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore warnings of the package that `locate` showed before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
