"""The file of a report, which appears complete or not at all, and never replaces anything but a report."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from kbat.report.page import MARK


def writer(out: Path, sources: Sequence[str]) -> Callable[[str], int]:
    """Return a function that writes a page and returns its bytes.

    Args:
        out: The file.
        sources: Local paths that the report reads. The file must not be in one of them.

    Raises:
        ValueError: The file is in a source, exists and is not a report, or its directory does not exist.
    """
    resolved = out.resolve()
    if not resolved.parent.is_dir():
        message = f"the directory of {str(out)!r} does not exist"
        raise ValueError(message)
    for source in sources:
        if resolved.is_relative_to(Path(source).resolve()):
            message = f"{str(out)!r} is inside {source!r}, which is only read: name another file with --output"
            raise ValueError(message)
    if resolved.exists() and not _is_report(resolved):
        message = f"{str(out)!r} exists and is not a report of kbat: name another file with --output"
        raise ValueError(message)

    def write(page: str) -> int:
        data = page.encode(errors="backslashreplace")
        with tempfile.NamedTemporaryFile(dir=resolved.parent, prefix=".kbat-report-", delete=False) as file:
            try:
                file.write(data)
                file.close()
                Path(file.name).chmod(0o666 & ~_umask())
                Path(file.name).replace(resolved)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
        return len(data)

    return write


def _is_report(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK.encode()


def _umask() -> int:
    """Return the bits that files of this process do not get, which can't be read without setting them."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
