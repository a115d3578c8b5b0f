"""What kbat does once in each of Spark's Python workers."""

from __future__ import annotations

import functools
import gc


@functools.cache
def settle() -> None:
    """Keep what the worker has loaded out of Spark's collections of garbage; nothing outside a task.

    Spark's daemon makes a full collection after each task. It visits every object of every module, 30 to 100 ms long,
    while the next task of that worker waits. Modules stay anyway; what is made from now on is collected as ever.
    """
    from pyspark import TaskContext  # noqa: PLC0415 -- there are tasks only where Spark runs them

    if TaskContext.get() is not None:
        gc.freeze()
