"""A location on the command line: a path or a URL, and the options with which the core opens it.

Commands work with a `Location` as with a path, and do not distinguish the file system from other stores. A path of
tiered storage that exists only as the core presents it, such as `backup/orders-0`, is not local either.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import kbat
from kbat._core.locations import discover, file_path

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
# Longer values of options are replaced in messages; shorter ones would be found in other words.
_SHORTEST_VALUE = 4
_ERRORS = (kbat.KbatError, OSError, ValueError)


@dataclass(frozen=True)
class Setting:
    """The value of an option with the form NAME=VALUE. The value may be a secret, and is not shown."""

    name: str
    value: str = field(repr=False)


@dataclass(frozen=True)
class Location:
    """A path or URL, `-` for the standard input. Its options are not part of what it is equal to."""

    text: str
    settings: tuple[Setting, ...] = field(default=(), compare=False)
    keys: tuple[Setting, ...] = field(default=(), compare=False)
    # where earlier segments are, and the topic with their states
    remote: str | None = field(default=None, compare=False)
    remote_log_metadata: str | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, value: object) -> "Location":
        """Return the location of an argument.

        Raises:
            ValueError: An empty text, or a URL with a password or a query, which would appear in messages.
        """
        text = str(value)
        if not text.strip():
            message = "the path is empty: name a path or a URL, or . for the working directory"
            raise ValueError(message)
        if (url := _URL.fullmatch(text)) is None:
            return cls(str(Path(text)))
        scheme, rest = url[1], url[2]
        if scheme == "file":
            return cls(str(Path(file_path(text))))
        host = rest.split("/", 1)[0]
        if ":" in host.rpartition("@")[0]:
            message = "the URL contains a password: set it in the environment or with --storage-option instead"
            raise ValueError(message)
        if "?" in rest and "=" in rest.partition("?")[2]:
            message = "the URL contains a query: pass tokens in the environment or with --storage-option instead"
            raise ValueError(message)
        return cls(f"{scheme}://{rest.rstrip('/')}")

    def opened_with(
        self,
        settings: Sequence[Setting] | None,
        keys: Sequence[Setting] | None,
        remote: str | None = None,
        remote_log_metadata: str | None = None,
    ) -> "Location":
        """Return the location with the options of a command."""
        return replace(
            self,
            settings=tuple(settings or ()),
            keys=tuple(keys or ()),
            remote=remote,
            remote_log_metadata=remote_log_metadata,
        )

    def at(self, text: str) -> "Location":
        """Return another location in the same store."""
        return replace(self, text=text)

    def child(self, name: str) -> "Location":
        """Return the location of a file or directory below this directory."""
        return self.at(f"{self.text}/{name}" if self.is_url else str(Path(self.text, name)))

    def __str__(self) -> str:
        """Return the path or URL."""
        return self.text

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of functions of the package that read the location."""
        named = {
            "storage_options": {one.name: one.value for one in self.settings},
            "encryption_keys": {one.name: one.value for one in self.keys},
            "remote": self.remote,
            "remote_log_metadata": self.remote_log_metadata,
        }
        return {name: values for name, values in named.items() if values}

    @property
    def is_url(self) -> bool:
        """Whether the location is a URL."""
        return _URL.fullmatch(self.text) is not None

    @cached_property
    def is_local(self) -> bool:
        """Whether everything at the location is in the file system, so that it can be changed."""
        return not self.is_url and self.remote is None and Path(self.text).exists()

    @property
    def _path(self) -> PurePosixPath:
        url = _URL.fullmatch(self.text)
        return PurePosixPath(url[2] if url else self.text)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._path.name

    @property
    def own_name(self) -> str:
        """The name of a directory without links; also of the current directory."""
        return Path(self.text).resolve().name if not self.is_url and Path(self.text).exists() else self.name

    @property
    def suffix(self) -> str:
        """The end of the name from the last dot on."""
        return self._path.suffix

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return self._path.stem

    @property
    def parent(self) -> "Location":
        """The directory that contains this one; a bucket contains itself."""
        if (url := _URL.fullmatch(self.text)) is None:
            return self.at(str(Path(self.text).parent))
        parent = str(self._path.parent)
        return self if parent == "." else self.at(f"{url[1]}://{parent}")

    @cached_property
    def is_file(self) -> bool:
        """Whether the location is a file."""
        if self.is_local:
            return Path(self.text).is_file()
        return self.text in self._segments

    @property
    def is_dir(self) -> bool:
        """Whether the location is a directory, or a prefix with objects."""
        if self.is_local:
            return Path(self.text).is_dir()
        return bool(self._segments) and not self.is_file

    @property
    def is_empty(self) -> bool:
        """Whether this is a directory without any file. No prefix is empty: it would not exist."""
        return self.is_local and not any(Path(self.text).iterdir())

    @cached_property
    def files(self) -> list["Location"]:
        """The files in a directory; of a store, those that are segments or remains of segments."""
        if self.is_local:
            return [self.at(str(path)) for path in sorted(Path(self.text).iterdir())]
        with suppress(*_ERRORS):
            log = kbat.PartitionLog(self.text, **self.options)
            return [self.at(path) for path in (*(one.path for one in log.segments), *log.leftovers)]
        return []

    @cached_property
    def _segments(self) -> list[str]:
        try:
            return [segment.path for segment in discover([self.text], **self.options)[0]]
        except _ERRORS:
            return []

    @property
    def again(self) -> str:
        """The options as the end of a command to type, without values that may be secrets."""
        keys = (f" --encryption-key {shlex.quote(f'{one.name}={one.value}')}" for one in self.keys)
        settings = (f" --storage-option {shlex.quote(one.name)}=..." for one in self.settings)
        places = (("--remote", self.remote), ("--remote-log-metadata", self.remote_log_metadata))
        elsewhere = (f" {option} {shlex.quote(place)}" for option, place in places if place)
        return "".join((*keys, *settings, *elsewhere))

    def without_secrets(self, message: str) -> str:
        """Return a message with the names of storage options instead of their values."""
        for one in sorted(self.settings, key=lambda one: -len(one.value)):
            if len(one.value) >= _SHORTEST_VALUE and one.value.lower() not in {"true", "false"}:
                message = message.replace(one.value, f"<{one.name}>")
        return message


def of_file(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for a file in the directory of a broker: those without remote segments."""
    return {name: value for name, value in options.items() if name not in {"remote", "remote_log_metadata"}}


def is_presented(location: Location) -> bool:
    """Return whether a path that is not in the file system is one that the core presents for tiered storage."""
    # the keys are not known yet, and finding segments does not need them
    with suppress(*_ERRORS):
        return bool(discover([location.text])[0])
    return False
