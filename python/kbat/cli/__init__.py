"""The command `kbat`: list, verify, repair, audit, print and rewrite logs from a shell.

Nothing here is imported by `import kbat`; it needs `pip install 'kbat[cli]'`.
"""

import importlib.util
import sys

_PACKAGES = ("typer", "rich", "pyarrow")


def main() -> None:
    """Run the command line and exit with its code; 2 where its packages are missing."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(f"kbat: the command line needs {', '.join(missing)}: pip install 'kbat[cli]'\n")
        sys.exit(2)
    from kbat.cli.app import app  # noqa: PLC0415 - needs the packages

    app(prog_name="kbat")


__all__ = ["main"]
