"""What lies under the paths of a read: partitions and their segments, listed once, on the driver."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import kbat
from kbat.spark.topics import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kbat.spark.options import ReadOptions


@dataclass(frozen=True)
class Segment:
    """A segment file as the driver found it: absolute path, bytes, and the base offset if its name tells one."""

    path: str
    size: int
    base_offset: int | None = None


@dataclass(frozen=True)
class Log:
    """The segments of one partition in one directory, in their order, and the limits to look things up with."""

    partition: TopicPartition
    directory: str
    segments: tuple[Segment, ...]
    limits: kbat.Limits | None = None

    @property
    def is_named(self) -> bool:
        """Whether all segments are named after base offsets, so that offsets and times can be looked up."""
        return all(segment.base_offset is not None for segment in self.segments)

    @functools.cached_property
    def on_disk(self) -> kbat.PartitionLog:
        """The directory, opened for looking things up. Raises `OSError` if it is gone."""
        return kbat.PartitionLog(self.directory, limits=self.limits)

    def __getstate__(self) -> dict[str, object]:
        """Pickle without what was opened."""
        return {name: value for name, value in self.__dict__.items() if name != "on_disk"}


def list_logs(options: ReadOptions, *, is_complete: bool = True) -> list[Log]:
    """List the partitions that a read is about, with their segments: each file once, by base offset.

    Args:
        options: Paths, topics and partitions, limits.
        is_complete: Whether every topic and partition that is named has to be there.

    Raises `FileNotFoundError` for a path where nothing is, `ValueError` for one that is not in a local file system and
    for topics and partitions that were asked for and are not there.
    """
    found: dict[tuple[TopicPartition, str], dict[str, Segment]] = {}
    directories: dict[tuple[TopicPartition, str], str] = {}
    resolved = functools.cache(os.path.realpath)
    for path in options.all_paths:
        for file in _segment_files(path):
            topic = options.topic if file.topic is None else file.topic
            partition = options.partition if file.partition is None else file.partition
            directory, name = os.path.split(os.fspath(file.path))
            key = TopicPartition(topic, partition), resolved(directory)
            directory = directories.setdefault(key, directory)
            segment = Segment(os.path.join(directory, name), file.size, file.base_offset)  # noqa: PTH118 -- strings in, strings out
            found.setdefault(key, {}).setdefault(name, segment)
    limits = options.limits
    logs = [Log(key[0], directories[key], _in_order(segments.values()), limits) for key, segments in found.items()]
    subscription = options.subscription
    if is_complete:
        subscription.check(log.partition for log in logs)
    return [log for log in logs if subscription.takes(log.partition)]


def _in_order(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Return segments by base offset, whatever order their paths were given in; those without one come last."""
    return tuple(sorted(segments, key=lambda segment: (segment.base_offset is None, segment.base_offset or 0)))


def _segment_files(path: str) -> list[kbat.SegmentFile]:
    local = local_path(path)
    try:
        return kbat.find_segments(local)
    except FileNotFoundError as error:
        message = f"kbat: nothing is at {local}; a path is a .log file, a partition directory or a log directory"
        raise FileNotFoundError(message) from error


def local_path(path: str) -> str:
    """Return the absolute path that a path or `file:` URL means."""
    scheme, colon, rest = path.partition(":")
    if colon and scheme.lower() == "file":
        path = "/" + rest.lstrip("/")
    elif colon and rest.startswith("/") and scheme.isalnum():
        message = (
            f"kbat: {path} is not in a local file system; "
            "every task opens files by a path that all machines have: mount or copy it"
        )
        raise ValueError(message)
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 -- strings in, strings out
