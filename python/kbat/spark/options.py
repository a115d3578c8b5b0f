"""The options of a read: names and texts, parsed in the core, where the table of options is.

Names are written as Spark writes its own, like `includeHeaders`, and match in any case. The options of Spark's own
Kafka source have the same meaning here, so that a read of `format("kafka")` becomes one of `format("kbat")` with a
path. Options that only concern a broker's connection are ignored with a warning that names them. Any other name is
refused: wrong rows are worse than an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbat._core import plan as core
from kbat._core.plan import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbat.spark.stores import Pairs

OPTION_NAMES = tuple(name for name, _, _ in core.options())


def parse_options(given: Mapping[str, str], session_storage: Pairs = ()) -> ReadOptions:
    """Parse the options of a read, whatever the case of their names; `session_storage` as `s3a_settings` returns it.

    Raises `ValueError` that names the option and its possible values, or the option to use instead.
    """
    return ReadOptions(list(given.items()), list(session_storage))


__all__ = ["OPTION_NAMES", "ReadOptions", "parse_options"]
