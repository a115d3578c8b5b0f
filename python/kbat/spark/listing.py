"""The partitions and segments under the paths of a read, listed once, on the driver."""

from __future__ import annotations

import errno
import functools
import os
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import kbat
from kbat._core.files import discover
from kbat.spark.stores import named_as_option, scheme_of
from kbat.spark.topics import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kbat.spark.options import ReadOptions


_NO_STORAGE = (
    "no option storage.<name> is set, so credentials are those of the environment; kbat.spark.read uses the session's "
    'spark.hadoop.fs.s3a.* settings, and format("kbat") those that the session had at kbat.spark.register(spark)'
)


@dataclass(frozen=True)
class Segment:
    """A segment file as the driver found it: absolute path, bytes, and the base offset if its name has one."""

    path: str
    size: int
    base_offset: int | None = None


@dataclass(frozen=True)
class Log:
    """The segments of one partition in one directory, in their order, and how to open and read them.

    With `is_labelled`, topic and partition are those of options, not of the directory's name.
    """

    partition: TopicPartition
    directory: str
    segments: tuple[Segment, ...]
    limits: kbat.Limits | None = None
    is_labelled: bool = False
    keywords: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_named(self) -> bool:
        """Whether all segments are named after base offsets, so that offsets and times can be searched."""
        return all(segment.base_offset is not None for segment in self.segments)

    @functools.cached_property
    def on_disk(self) -> kbat.PartitionLog:
        """The directory, opened for searches. Raises `OSError` if it no longer exists."""
        return kbat.PartitionLog(self.directory, limits=self.limits, **self.keywords)

    def opened(self, path: str) -> kbat.Segment:
        """Open one of the segments. Raises `ValueError` if the file is not named after its base offset."""
        return self._stored.get(path) or kbat.Segment(path, limits=self.limits, **self.keywords)

    def source(self, path: str, start: int, end: int) -> Any:  # noqa: ANN401 -- an open segment or a window
        """Return a window of a segment for `kbat.scan`."""
        stored = self._stored.get(path)
        return (path, start, end) if stored is None or (start, end) != (0, stored.size) else stored

    @property
    def sources(self) -> list[str | kbat.Segment]:
        """The segments for `kbat.scan`."""
        return [self._stored.get(segment.path, segment.path) for segment in self.segments]

    @functools.cached_property
    def _stored(self) -> dict[str, kbat.Segment]:
        """The segments by path if they are not in a file system: these need no further listing to be opened."""
        is_local = not scheme_of(self.directory) and os.path.isdir(self.directory)  # noqa: PTH112 -- strings in
        return {} if is_local else {segment.path: segment for segment in self.on_disk.segments}

    def __getstate__(self) -> dict[str, object]:
        """Pickle without the opened directory."""
        return {name: value for name, value in self.__dict__.items() if name not in {"on_disk", "_stored"}}


def list_logs(options: ReadOptions, *, is_complete: bool = True, is_stream: bool = False) -> list[Log]:
    """List the partitions of a read with their segments: each file once, by base offset.

    Args:
        options: Paths, topics and partitions, replicas, limits.
        is_complete: Whether a topic or partition that is named but not found is an error.
        is_stream: Whether no warning is raised for a location without segments, because they may come later.

    Raises:
        FileNotFoundError: A path that does not exist.
        ValueError: A path with an unknown scheme or no segments but other content, options of a store without effect, a
            partition in two directories, an option `topic` or `partition` without effect, a topic or partition that is
            not found.
    """
    found: dict[tuple[TopicPartition, str], dict[str, Segment]] = {}
    labelled: set[tuple[TopicPartition, str]] = set()
    directories: dict[tuple[TopicPartition, str], str] = {}
    resolved = functools.cache(_resolved)
    files, texts = _segment_files(options, is_complete=is_complete)
    for text in () if is_stream else texts:
        warnings.warn(f"kbat: {text}; the read has no rows of it", stacklevel=3)
    for file in files:
        directory, name = os.path.split(os.fspath(file.path))
        key = _partition_of(file, options), resolved(directory)
        directory = directories.setdefault(key, directory)
        if file.topic is None:
            labelled.add(key)
        segment = Segment(os.path.join(directory, name), file.size, file.base_offset)  # noqa: PTH118 -- strings in, strings out
        found.setdefault(key, {}).setdefault(name, segment)
    limits, keywords = options.limits, options.keywords
    return [
        Log(key[0], directories[key], _in_order(segments.values()), limits, key in labelled, keywords)
        for key, segments in found.items()
    ]


def _resolved(directory: str) -> str:
    return directory if scheme_of(directory) else os.path.realpath(directory)


def _segment_files(options: ReadOptions, *, is_complete: bool) -> tuple[list[kbat.SegmentFile], list[str]]:
    """Return the files of the partitions that are read, and warnings."""
    paths, keywords = list(options.all_paths), options.keywords
    subscription = options.subscription
    try:
        files, texts = _discover(paths, options.replicas, keywords)
    except ValueError:
        if not subscription:
            raise
        files, texts = _discover(paths, "longest", keywords)
        topics = {file.topic for file in files if file.topic and subscription.takes(_partition_of(file, options))}
        _check_replicas(paths, sorted(topics), keywords)
    _check_effect(files, options)
    if is_complete:
        subscription.check(_partition_of(file, options) for file in files)
    chosen = [file for file in files if subscription.takes(_partition_of(file, options))]
    if files and not chosen:
        texts = [*texts, f"no topic at {', '.join(paths)} matches subscribePattern"]
    return chosen, texts


def _discover(
    paths: list[str], replicas: str, keywords: Mapping[str, Any], topics: list[str] | None = None
) -> tuple[list[kbat.SegmentFile], list[str]]:
    try:
        return discover(paths, topics=topics, replicas=cast("Any", replicas), **keywords)
    except ValueError as error:
        raise named_as_option(error) from None
    except OSError as error:
        is_stored = any(scheme_of(path) for path in paths)
        if is_stored and "storage_options" not in keywords:
            error.add_note(_NO_STORAGE)
        if error.errno not in {None, errno.ENOENT} or (is_stored and not isinstance(error, FileNotFoundError)):
            raise
        keys = keywords.get("encryption_keys", {})
        if error.filename in keys.values():
            message = f"kbat: option encryptionKeys: nothing is at {error.filename}"
            raise FileNotFoundError(message) from None
        what = f"nothing is at {error.filename}" if error.filename else str(error)
        message = f"kbat: {what}; a path is a .log file, a partition directory, a log directory or a glob of them"
        raise FileNotFoundError(message) from None


def _check_replicas(paths: list[str], topics: list[str], keywords: Mapping[str, Any]) -> None:
    """Raise `ValueError` if a partition of these topics is in two directories; other topics do not matter."""
    try:
        _discover(paths, "error", keywords, topics) if topics else None
    except ValueError as error:
        if "several directories" in str(error):  # and not: a location has none of these topics
            raise


def _partition_of(file: kbat.SegmentFile, options: ReadOptions) -> TopicPartition:
    topic = options.topic if file.topic is None else file.topic
    return TopicPartition(topic, options.partition if file.partition is None else file.partition)


def _check_effect(files: list[kbat.SegmentFile], options: ReadOptions) -> None:
    """Raise `ValueError` for the options `topic` and `partition` if every file has a topic and a partition."""
    if not files or any(file.topic is None for file in files):
        return
    for name, value, instead in (
        ("topic", options.topic, f"subscribe={options.topic} to read one topic"),
        ("partition", options.partition, f'assign={{"{files[0].topic}": [{options.partition}]}} to read one partition'),
    ):
        if value is not None:
            message = (
                f"kbat: option {name} has no effect: it sets the {name} of files outside a <topic>-<partition> "
                f"directory, and every file found is in one; use {instead}"
            )
            raise ValueError(message)


def _in_order(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Return segments by base offset; those without one are last."""
    return tuple(sorted(segments, key=lambda segment: (segment.base_offset is None, segment.base_offset or 0)))
