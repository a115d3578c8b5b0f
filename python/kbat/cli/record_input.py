"""What `kbat import` reads: files of records, at a path or a URL, and the standard input."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from kbat.cli.location import Location
from kbat.cli.options import STDIN
from kbat.cli.place import standard_input

if TYPE_CHECKING:
    from kbat._core.locations import StoredFile

# Bytes that are requested at once from a store.
_BUFFER_LEN = 1 << 20


class _StoredBytes(io.RawIOBase):
    """A file in a store, as Python reads files."""

    def __init__(self, file: "StoredFile") -> None:
        self._file = file
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # of `io`'s buffers
        data = self._file.read_at(self._position, len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


class RecordInput:
    """A file, a directory of files, or the standard input.

    Args:
        location: The path or URL, or `-`.
    """

    def __init__(self, location: Location) -> None:
        self.location = location
        self._listed: list[str] | None = None

    @property
    def is_stdin(self) -> bool:
        """Whether it is the standard input."""
        return self.location == STDIN

    @property
    def name(self) -> str:
        """What messages call it."""
        return "the standard input" if self.is_stdin else str(self.location)

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory, or a prefix with objects.

        Raises:
            ValueError: Nothing is at the URL.
        """
        if not self.location.is_url:
            return self.location.is_dir
        try:
            _stored(self.location)
        except FileNotFoundError:
            return bool(self._files_of_store())
        return False

    @property
    def files(self) -> list[Location]:
        """The file, or all files below the directory."""
        if not self.is_dir:
            return [self.location]
        if self.location.is_url:
            return [self.location.at(path) for path in self._files_of_store()]
        return [self.location.at(str(path)) for path in Path(str(self.location)).rglob("*")]

    def parts(self, file: Location) -> list[str]:
        """Return the names of the directories between this directory and a file of it, and of the file."""
        if not self.location.is_url:
            return list(Path(str(file)).relative_to(str(self.location)).parts)
        return [part for part in str(file).removeprefix(str(self.location)).split("/") if part]

    def in_order(self, suffix: str) -> list[Location]:
        """Return the files whose names have an end, partition by partition in the order of their numbers.

        Hidden files and those of an unfinished job are omitted, as Spark does.
        """
        if not self.is_dir:
            return [self.location]

        def order(file: Location) -> list[int | str]:
            # texts and numbers by turns
            parts = re.split(r"(\d+)", "/".join(self.parts(file)))
            return [int(part) if index % 2 else part for index, part in enumerate(parts)]

        found = (one for one in self.files if one.suffix == suffix)
        return sorted((one for one in found if not any(map(_is_hidden, self.parts(one)))), key=order)

    def has_hidden(self, suffix: str) -> bool:
        """Return whether the directory has files whose names have an end and that `in_order` omits."""
        return any(one.suffix == suffix and any(map(_is_hidden, self.parts(one))) for one in self.files)

    def _files_of_store(self) -> list[str]:
        from kbat._core.locations import stored_files  # noqa: PLC0415 - only URLs need it

        if self._listed is None:
            try:
                self._listed = stored_files(str(self.location), **self.location.options)
            except FileNotFoundError:
                message = f"path {str(self.location)!r} does not exist"
                raise ValueError(message) from None
        return self._listed


def _is_hidden(name: str) -> bool:
    """Return whether Spark ignores a file or directory, such as `_temporary`. `_id=1` is the value of a column."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _stored(location: Location) -> "StoredFile":
    from kbat._core.locations import StoredFile  # noqa: PLC0415 - only URLs need it

    return StoredFile(str(location), **location.options)


def size_of(location: Location) -> int:
    """Return the bytes of a file; 0 for the standard input, whose end is unknown."""
    if location == STDIN:
        return 0
    return _stored(location).size if location.is_url else Path(str(location)).stat().st_size


@contextmanager
def opened(location: Location) -> Iterator[BinaryIO]:
    """Open a file or the standard input."""
    if location == STDIN:
        yield standard_input()
    elif location.is_url:
        with io.BufferedReader(_StoredBytes(_stored(location)), _BUFFER_LEN) as file:
            yield file
    else:
        with Path(str(location)).open("rb") as file:
            yield file
