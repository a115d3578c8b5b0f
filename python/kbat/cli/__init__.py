"""The command `kbat`: list, verify, repair, measure, print and rewrite logs from a shell.

Nothing here is imported by `import kbat`; it needs the extra `cli` of the wheel.
"""

import importlib.util
import io
import os
import sys

from kbat.cli.signals import stop_at_signals

_PACKAGES = ("typer", "rich", "pyarrow")
# Bytes that are collected before a write to a file or a pipe.
_BUFFER_LEN = 1 << 17


def main() -> None:
    """Run the command line and exit with its code; 2 if its packages are missing."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(f"kbat: the command line needs {', '.join(missing)}: pip install 'kbat[cli]'\n")
        sys.exit(2)
    _open_output()
    stop_at_signals()
    from kbat.cli.app import app  # noqa: PLC0415 - needs the packages

    app(prog_name="kbat")


def _open_output() -> None:
    """Make both outputs UTF-8, as JSON is, in every locale; the text for a closed one is dropped."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - open till the end
    # names of files that are not UTF-8 become escapes, which JSON can represent
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.name != os.devnull:
        # PYTHONUNBUFFERED, which images of containers set, would make each line a system call
        place = sys.stdout.fileno()
        raw = io.FileIO(place, "w", closefd=False)
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(raw, _BUFFER_LEN),
            encoding="utf-8",
            errors="backslashreplace",
            line_buffering=os.isatty(place),
        )


__all__ = ["main"]
