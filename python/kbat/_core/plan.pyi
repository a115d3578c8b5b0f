"""Plans of reads: options, tasks, micro-batches."""

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, final

import pyarrow as pa

from kbat import Limits, ParquetFile, ScanStats

_Pairs = Sequence[tuple[str, str]]
_Described = tuple[str, str, str, str]

@final
class ReadOptions:
    """x"""

    def __new__(cls, given: _Pairs = ..., session: _Pairs = ...) -> ReadOptions: ...
    @property
    def view(self) -> str:
        """x"""

    @property
    def column_names(self) -> list[str]:
        """x"""

    @property
    def all_paths(self) -> list[str]:
        """x"""

    @property
    def keywords(self) -> dict[str, Any]:
        """x"""

    @property
    def has_storage(self) -> bool:
        """x"""

    @property
    def on_corrupt(self) -> str:
        """x"""

    @property
    def isolation(self) -> str:
        """x"""

    @property
    def check_crc(self) -> bool:
        """x"""

    @property
    def include_control(self) -> bool:
        """x"""

    @property
    def offsets_per_trigger(self) -> tuple[int | None, int | None]:
        """x"""

    @property
    def limits(self) -> Limits:
        """x"""

    @property
    def ignored(self) -> list[str]:
        """x"""

    def check_batch(self) -> None:
        """x"""

    def check_stream(self) -> None:
        """x"""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __getnewargs__(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """x"""

@final
class Stream:
    """x"""

    def __new__(cls, options: ReadOptions, columns: Sequence[str]) -> Stream: ...
    def initial_offset(self) -> str:
        """x"""

    def latest_offset(self, start: str | None = None, *, is_limited: bool = True) -> str:
        """x"""

    def report_latest_offset(self) -> str | None:
        """x"""

    def prepare_for_available_now(self) -> None:
        """x"""

    def plan(self, start: str, end: str) -> list[bytes]:
        """x"""

@final
class TaskReader:
    """x"""

    def __new__(cls, task: bytes) -> TaskReader: ...
    def __iter__(self) -> Iterator[pa.RecordBatch]: ...
    def __next__(self) -> pa.RecordBatch: ...
    @property
    def stats(self) -> ScanStats:
        """x"""

def check(options: ReadOptions, schema: Sequence[tuple[str, str, bool]]) -> list[str]:
    """x"""

def columns(view: str) -> tuple[list[_Described], int]:
    """x"""

def error_column() -> _Described:
    """x"""

def nothing(options: ReadOptions, columns: Sequence[str]) -> bytes:
    """x"""

def options() -> list[tuple[str, str, str]]:
    """x"""

def plan(
    options: ReadOptions, columns: Sequence[str], filters: Sequence[Sequence[str]] = ..., *, splits: bool = True
) -> list[bytes]:
    """x"""

def write_parquet(
    task: bytes,
    target: str | PathLike[str],
    partition_by: Sequence[str],
    compression: str,
    names: Sequence[str],
    file_stem: str,
) -> list[ParquetFile]:
    """x"""
