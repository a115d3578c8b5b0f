"""Where a result goes."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def place_for(out: Path | None) -> Iterator[None]:
    """Make the missing directories above a result; those that were made go again where the block fails."""
    made: list[Path] = []
    try:
        if out is not None:
            missing = [parent for parent in out.absolute().parents if not parent.exists()]
            for parent in reversed(missing):
                parent.mkdir()
                made.append(parent)
        yield
    except BaseException:
        for parent in reversed(made):
            with suppress(OSError):
                parent.rmdir()
        raise
