"""`python -m kbat.spark jar`: prints the path of the jar, for `spark-submit --jars`."""

from __future__ import annotations

import sys

from kbat.spark.settings import jar

_USAGE = """usage: python -m kbat.spark jar

Prints the path of the jar with the data source for Spark's JVM:

  spark-submit --jars "$(python -m kbat.spark jar)" job.py
  spark-shell --jars "$(python -m kbat.spark jar)"
"""


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    if arguments in (["-h"], ["--help"]):
        sys.stdout.write(_USAGE)
        return 0
    if arguments != ["jar"]:
        sys.stderr.write(_USAGE)
        return 2
    try:
        sys.stdout.write(f"{jar()}\n")
    except FileNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
