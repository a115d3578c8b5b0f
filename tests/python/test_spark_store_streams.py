"""Streams and reads of a bucket whose objects are added, replaced and deleted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from growing_log import GrowingLog, time_of
from kbat.spark.options import parse_options
from kbat.spark.schema import schema_of
from kbat.spark.source import KbatReader
from kbat.spark.stream import KbatStreamReader
from s3_server import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, log_files

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from kbat.spark.stream import Offsets

NEEDS_LIMITS = pytest.mark.skipif(
    pyspark.__version__ < "4.2" and os.environ.get("KBAT_TEST_ENGINE") != "jvm", reason="needs two micro-batches"
)


def client_of(server: S3Server) -> Any:  # noqa: ANN401 -- its class is made at run time
    import boto3  # type: ignore[import-untyped]  # noqa: PLC0415 -- slow

    return boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )


def replace(server: S3Server, key: str, data: bytes) -> None:
    """Write an object in place of one that may exist, which the server only does with a signature."""
    client_of(server).put_object(Bucket=BUCKET, Key=key, Body=data)


class Bucket:
    """A growing log whose files are copied to the bucket when they are complete, as tiered storage does."""

    def __init__(self, server: S3Server, path: Path, prefix: str) -> None:
        self.server, self.path, self.prefix = server, path, prefix
        self.log = GrowingLog(path / "a-0")

    @property
    def url(self) -> str:
        """URL of the log directory."""
        return self.server.url(self.prefix)

    def add(self, *counts: int) -> None:
        """Append batches, upload everything, and begin a new segment."""
        self.log.append(*counts)
        for path in log_files(self.path):
            key = f"{self.prefix}/{path.relative_to(self.path).as_posix()}"
            replace(self.server, key, path.read_bytes())
        self.log.roll()


@pytest.mark.parametrize("most", [None, pytest.param(7, marks=NEEDS_LIMITS)])
def test_stream_over_a_bucket_that_grows_loses_nothing_and_repeats_nothing(
    spark: SparkSession, s3_server: S3Server, storage: dict[str, str], tmp_path: Path, most: int | None
) -> None:
    bucket = Bucket(s3_server, tmp_path / "logs", f"spark/stream-{most}")
    found: list[int] = []
    options = storage | {"startingOffsets": "earliest", "columns": "offset"}
    options |= {} if most is None else {"maxOffsetsPerTrigger": str(most)}

    def run() -> list[int]:
        stream = spark.readStream.format("kbat").options(**options).load(bucket.url)
        query = (
            stream.writeStream.foreachBatch(lambda frame, _: found.extend(row.offset for row in frame.collect()))
            .option("checkpointLocation", os.fspath(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sorted(found)

    bucket.add(10, 10)
    assert run() == list(range(20))
    assert run() == list(range(20))
    bucket.add(5)
    bucket.add(5, 1)
    assert run() == list(range(31))
    checkpoint = "".join(
        path.read_text() for path in (tmp_path / "checkpoint").rglob("*") if path.is_file() and "." not in path.name[:1]
    )
    assert '"a"' in checkpoint
    assert SECRET_KEY not in checkpoint


def test_stream_reader_of_a_bucket(s3_server: S3Server, storage: dict[str, str], tmp_path: Path) -> None:
    bucket = Bucket(s3_server, tmp_path, "spark/stream-reader")
    bucket.add(10)

    def reader(**given: str) -> KbatStreamReader:
        return KbatStreamReader(schema_of(["offset"]), parse_options({"path": bucket.url} | storage | given))

    def offsets(source: KbatStreamReader, start: Offsets, end: Offsets) -> list[int]:
        tasks = source.partitions(start, end)
        return [row["offset"] for task in tasks for batch in source.read(task) for row in batch.to_pylist()]

    source = reader(startingTimestamp=str(time_of(3.5)))
    start = source.initialOffset()
    assert start == {"a": {"0": 4}}
    bucket.add(10)
    end = {"a": {"0": 15}}
    assert offsets(source, start, end) == list(range(4, 15))
    client_of(s3_server).delete_object(Bucket=BUCKET, Key="spark/stream-reader/a-0/00000000000000000000.log")
    with pytest.raises(ValueError, match="offsets 4 to 9 of a-0 no longer exist"):
        source.partitions(start, end)
    with pytest.warns(UserWarning, match="offsets 4 to 9 of a-0 no longer exist"):
        assert offsets(reader(failOnDataLoss="false"), start, end) == list(range(10, 15))


def test_object_that_is_deleted_or_replaced_after_planning_is_an_error(
    s3_server: S3Server, storage: dict[str, str], tmp_path: Path
) -> None:
    bucket = Bucket(s3_server, tmp_path, "spark/replaced")
    bucket.add(10, 10)
    options = parse_options({"path": bucket.url, "columns": "offset"} | storage)
    source = KbatReader(schema_of(["offset"]), options)
    lenient = KbatReader(
        schema_of(["offset"]), parse_options({"path": bucket.url, "failOnDataLoss": "false"} | storage)
    )
    (task,), (lenient_task,) = source.partitions(), lenient.partitions()
    key = "spark/replaced/a-0/00000000000000000000.log"
    content = (tmp_path / "a-0" / "00000000000000000000.log").read_bytes()
    replace(s3_server, key, content[: len(content) // 2])
    with pytest.raises(OSError, match="it was truncated or replaced since then"):
        list(source.read(task))
    client_of(s3_server).delete_object(Bucket=BUCKET, Key=key)
    with pytest.raises(ValueError, match="was deleted after the read was planned; option failOnDataLoss=false"):
        list(source.read(task))
    with pytest.warns(UserWarning, match="was deleted after the read was planned"):
        assert list(lenient.read(lenient_task)) == []
