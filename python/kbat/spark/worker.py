"""Setup of Spark's Python workers, done once in each."""

from __future__ import annotations

import functools
import gc


@functools.cache
def freeze_gc() -> None:
    """Exclude the loaded modules from garbage collection. Does nothing outside a task.

    Spark's daemon runs a full collection after each task. It visits every object of every module, which takes 30 to 100
    ms while the next task of the worker waits. Modules are never freed anyway; objects created later are collected as
    usual.
    """
    from pyspark import TaskContext  # noqa: PLC0415 -- only Spark's workers have tasks

    if TaskContext.get() is not None:
        gc.freeze()
