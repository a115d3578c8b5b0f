"""A broker's directory and its segments in tiered storage, and what tests of both need."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import kbat
from test_tiered import KAFKA

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOGS = KAFKA / "log-dir"
TAIL = LOGS / "orders-0"
REMOTE = KAFKA / "remote"
METADATA = LOGS / "__remote_log_metadata-0"
BASES = (200, 2218, 2361, 4404, 4517, 6535)
END = 8633


def offsets_of(path: Path, **options: Any) -> list[int]:  # noqa: ANN401 - those of kbat.scan
    """Return all offsets, in the order in which they are read."""
    table = kbat.scan(path, columns=["offset"], include_control=True, **options).to_pyarrow()
    found: list[Any] = table["offset"].to_pylist()
    return found


def warned(read: Callable[[], object]) -> str:
    """Return the warnings of a read as one text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read()
    return "\n".join(str(warning.message) for warning in caught)
