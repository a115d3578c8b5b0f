"""The command `kbat`: list, verify, repair, audit, print and rewrite logs from a shell.

Nothing here is imported by `import kbat`; it needs the extra `cli` of the wheel.
"""

import importlib.util
import io
import os
import sys

_PACKAGES = ("typer", "rich", "pyarrow")


def main() -> None:
    """Run the command line and exit with its code; 2 where its packages are missing."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(f"kbat: the command line needs {', '.join(missing)}: pip install 'kbat[cli]'\n")
        sys.exit(2)
    _open_output()
    from kbat.cli.app import app  # noqa: PLC0415 - needs the packages

    app(prog_name="kbat")


def _open_output() -> None:
    """Make both outputs UTF-8, as JSON is, whatever the locale; one that is closed takes what nobody reads."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - open till the end
        elif isinstance(stream, io.TextIOWrapper):
            # names of files that are no UTF-8 become escapes, which JSON reads
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


__all__ = ["main"]
