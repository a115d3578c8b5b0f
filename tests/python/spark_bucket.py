"""Reads of the Spark source over a bucket, for the tests of several files."""

from __future__ import annotations

import json
import os
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import kbat
from data import DATA
from kbat.spark.options import ReadOptions, parse_options
from kbat.spark.schema import schema_of
from kbat.spark.source import KbatReader
from s3_server import ACCESS_KEY, SECRET_KEY

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

AIVEN = DATA / "tiered" / "aiven" / "zstd-aes"
KEYS = {"encryptionKeys": json.dumps({"key1": os.fspath(AIVEN.parent / "test-private-key.pem")})}


def rows(options: ReadOptions) -> list[dict[str, Any]]:
    """Return the rows of all tasks, each of which travels as Spark sends it."""
    reader = KbatReader(schema_of(options.column_names, options.view), options)
    tasks = pickle.loads(pickle.dumps(reader.partitions()))  # noqa: S301 -- its own bytes
    travelled = pickle.loads(pickle.dumps(reader))  # noqa: S301 -- its own bytes
    shown = f"{options!r}{reader.rows!r}{tasks!r}"
    assert SECRET_KEY not in shown
    assert ACCESS_KEY not in shown
    return [row for task in tasks for batch in travelled.read(task) for row in batch.to_pylist()]


def outcome(path: str, options: dict[str, str], **given: str) -> str:
    """Return the rows of a read, or its error, without the path of the directory."""
    try:
        found: object = rows(parse_options({"path": path} | options | given))
    except (kbat.KbatError, OSError, ValueError) as error:
        found = [type(error).__name__, str(error), *getattr(error, "__notes__", [])]
    return repr(found).replace(path, "<path>")


def loaded(spark: SparkSession, url: str, options: dict[str, str]) -> DataFrame:
    return spark.read.format("kbat").options(**options).load(url)


def failure(run: Callable[[], object]) -> str:
    with pytest.raises(PySparkException) as raised:
        run()
    return str(raised.value)
