"""The setup of Spark's Python workers."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

import pyarrow as pa

from data import DATA
from kbat.spark.map_in_arrow import options_of, planned
from kbat.spark.worker import freeze_gc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

LOG_DIR = os.fspath(DATA / "log-dir")


def test_what_a_worker_has_loaded_is_frozen_by_the_first_read_in_it(spark: SparkSession) -> None:
    reader, (task, *_), _ = planned(options_of(LOG_DIR, {"columns": "offset"}))

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.unfreeze()  # by another test in the same worker
        freeze_gc.cache_clear()
        counts = [gc.get_freeze_count(), sum(rows.num_rows for rows in reader.read(task)), gc.get_freeze_count()]
        if any(batch.num_rows for batch in batches):
            yield pa.RecordBatch.from_pydict({"count": counts})

    before, rows, after = (row["count"] for row in spark.range(1).mapInArrow(count, "count long").collect())
    assert rows > 0
    assert before == 0
    assert after > 10_000


def test_outside_of_a_task_nothing_is_frozen() -> None:
    before = gc.get_freeze_count()  # Python 3.12 freezes some objects itself
    freeze_gc()
    assert gc.get_freeze_count() == before
