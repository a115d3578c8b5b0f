# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Segments, other files and targets, in the file system or in a store."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Self, TypeAlias, final

from kbat._core import SegmentFile, _EncryptionKeys

_Path: TypeAlias = str | os.PathLike[str]

__all__ = [
    "OutputTarget",
    "StoredFile",
    "discover",
    "file_path",
    "refuse_foreign",
    "refuse_inside",
    "store_scheme",
    "stored_files",
]

@final
class OutputTarget:
    """A file or directory that does not exist yet, and appears complete or not at all.

    As a context manager, it returns the local path to write to, beside the target or in a temporary directory. The
    path has the name of the target, and does not exist yet. At the end of the ``with`` block, what was written there is
    renamed, or uploaded, segments last. After an exception it is removed.

    Args:
        target: The path or URL to write. Nothing may exist there, but a directory may be empty.
        storage_options: How to open the store of a URL, with the names of object_store, such as
            ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
            ``AWS_ACCESS_KEY_ID``, or the role of the machine.

    Raises:
        ValueError: Something exists at the target.
        OSError: The store, or a directory, can't be used. What was uploaded before an error stays.
    """

    def __new__(cls, target: _Path, *, storage_options: Mapping[str, object] | None = None) -> Self: ...
    def __enter__(self) -> str: ...
    def __exit__(self, *args: object) -> None: ...

@final
class StoredFile:
    """A file of any kind, which is read by position.

    Args:
        path: The path of the file, or its URL.
        storage_options: How to open the store of a URL, with the names of object_store.
        store: Has no effect.
        encryption_keys: Has no effect.

    Raises:
        OSError: The file can't be read.
        ValueError: An unknown scheme or option.
    """

    def __new__(
        cls,
        path: _Path,
        *,
        storage_options: Mapping[str, object] | None = None,
        store: object | None = None,
        encryption_keys: _EncryptionKeys | None = None,
    ) -> Self: ...
    @property
    def size(self) -> int:
        """Length of the file in bytes.

        Raises:
            OSError: The file can't be read.
        """

    def read_at(self, position: int, length: int) -> bytes:
        """Read bytes at a position.

        Args:
            position: The first byte.
            length: The number of bytes; fewer are returned at the end of the file.

        Raises:
            OSError: The file can't be read.
        """

def discover(
    paths: _Path | Sequence[_Path],
    *,
    topics: str | Iterable[str] | None = None,
    partitions: int | Iterable[int] | None = None,
    replicas: Literal["error", "longest"] = "error",
    is_required: bool = True,
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> tuple[list[SegmentFile], list[str], list[str]]:
    """Like ``kbat.find_segments``, but returns the warnings as texts.

    Args:
        is_required: Whether a topic or partition that does not exist is an error.

    Returns:
        The segments; warnings about locations and partitions without segments; what users should know about segments in
        remote storage, such as those that are omitted.
    """

def file_path(url: str) -> str:
    """Return the path in the file system that a ``file:`` URL names.

    Args:
        url: The URL.
    """

def refuse_foreign(
    path: _Path,
    *,
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> None:
    """Refuse a file that is clearly not a log segment, such as a text file, by its first bytes.

    Args:
        path: The file.
        storage_options: How to open the store of a URL, with the names of object_store, such as
            ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
            ``AWS_ACCESS_KEY_ID``, or the role of the machine.
        store: A store of obstore; paths are relative to it.
        encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
            function that returns the PEM text of an id.
        remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
            offset is read once, from ``path`` if it is there. ``storage_options`` are those of the URLs,
            and ``store`` is that of ``remote``.
        remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
            ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
            partitions in the log directory, if any.

    Raises:
        ValueError: It is not a log segment. The message describes what it is instead.
        OSError: The file can't be read.
    """

def refuse_inside(source: _Path, target: _Path, *, storage_options: Mapping[str, object] | None = None) -> None:
    """Refuse a target inside the directory that is read.

    Args:
        source: The path or URL of the directory.
        target: The path or URL to write.
        storage_options: How to open the store of a URL, with the names of object_store.

    Raises:
        ValueError: The target is inside, or an unknown scheme or option.
    """

def store_scheme(path: str) -> str | None:
    """Return the scheme of the URL of an object, in lower case; ``s3`` for ``s3a``, too.

    Args:
        path: A path or a URL.

    Returns:
        None for a path, for a ``file:`` URL, and for a scheme that no store has.
    """

def stored_files(
    path: _Path,
    *,
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
) -> list[str]:
    """List all files below a directory, sorted by the names in each directory.

    Args:
        path: The path of the directory, or its URL.
        storage_options: How to open the store of a URL, with the names of object_store.
        store: Has no effect.
        encryption_keys: Has no effect.

    Raises:
        OSError: A directory can't be read, or there is none.
        ValueError: An unknown scheme or option, or too many directories within each other.
    """
