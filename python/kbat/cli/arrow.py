"""PyArrow without the packages that it uses only if they are installed."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

# Their imports take longer than a short command, and no command needs them to use PyArrow.
_OPTIONAL = {"numpy", "pandas"}


class _Absent:
    """A finder by which packages look as if they were not installed."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        del path, target
        if name in _OPTIONAL:
            raise ModuleNotFoundError(name=name)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Hide NumPy and pandas from PyArrow, if they are not imported yet, while the block imports and uses it."""
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)
