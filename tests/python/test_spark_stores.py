"""The Spark source over a bucket: everything is equal to the same files in a directory."""

from __future__ import annotations

import json
import os
import shutil
import struct
from typing import TYPE_CHECKING, Any

import pytest

import kbat
import kbat.spark
from data import DATA
from growing_log import GrowingLog, time_of
from kbat.spark.options import parse_options
from remote_logs import BASES, END, LOGS, REMOTE, TAIL, offsets_of, warned
from s3_server import S3Server, log_files
from spark_bucket import AIVEN, KEYS, loaded, outcome, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

LZ4 = '{"codec-lz4": {"0": %d}}'


@pytest.fixture(scope="module")
def aiven_url(s3_server: S3Server) -> str:
    """Objects of Aiven's plugin in the bucket, compressed and encrypted."""
    return s3_server.upload(AIVEN, "spark/aiven", [path for path in AIVEN.rglob("*") if path.is_file()])


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"columns": "key,value,topic,partition,offset,timestamp,headers,position,segment", "includeControl": "true"},
        {"view": "batches", "columns": "segment,position,size,lastOffset,crcOk,ratio"},
        {"view": "segments", "columns": "topic,segment,baseOffset,endOffset,size,indexSize,txnIndexSize,hasSnapshot"},
        {"view": "segments"},
        {"isolationLevel": "read_committed"},
        {"subscribe": "segments-default-interval,codec-lz4", "maxPartitionBytes": "20k"},
        {"subscribe": "txn-lz4,codec-lz4", "maxRecordsPerPartition": "100"},
        {"subscribe": "codec-lz4", "startingOffsets": LZ4 % 100, "endingOffsets": LZ4 % 110},
        {"subscribe": "codec-lz4", "startingOffsets": LZ4 % 1000},
        {"subscribe": "codec-lz4", "startingOffsetsByTimestamp": LZ4 % 1_700_000_000_000},
        {"startingTimestamp": "1700000000000"},
        {"endingTimestamp": "1700000000000"},
        {"assign": '{"txn-simple": [0], "compacted": [0]}', "columns": "offset,segment"},
        {"subscribe": "nothing"},
    ],
    ids=str,
)
def test_read_of_a_bucket_is_that_of_the_directory(
    log_dir: Path, log_url: str, storage: dict[str, str], given: dict[str, str]
) -> None:
    local = outcome(os.fspath(log_dir), given)
    assert outcome(log_url, storage, **given) == local
    assert local != "[]"


def test_read_of_paths_inside_a_bucket_is_that_of_the_files(
    log_dir: Path, log_url: str, storage: dict[str, str]
) -> None:
    for name in ("segments-default-interval-0", "codec-zstd-0/00000000000000000000.log"):
        assert outcome(f"{log_url}/{name}", storage) == outcome(os.fspath(log_dir / name), {})


@pytest.mark.parametrize("stored", [False, True], ids=["files", "objects"])
@pytest.mark.parametrize(
    "given",
    [{}, {"maxPartitionBytes": "200k"}, {"isolationLevel": "read_committed", "maxPartitionBytes": "200k"}],
    ids=str,
)
def test_segments_in_tiered_storage_and_the_local_tail_are_one_log(
    stored: bool,  # noqa: FBT001 -- a parameter
    given: dict[str, str],
    s3_server: S3Server,
    storage: dict[str, str],
) -> None:
    options = {"path": os.fspath(LOGS), "subscribe": "orders", "columns": "offset,value", "remote": os.fspath(REMOTE)}
    if stored:
        files = [path for path in REMOTE.rglob("*") if path.is_file()]
        options |= storage | {"remote": s3_server.upload(REMOTE, "spark/remote", files)}
    isolation: Any = given.get("isolationLevel", "read_uncommitted")
    expected = kbat.scan(TAIL, remote=REMOTE, columns=["offset", "value"], isolation=isolation).to_pyarrow()
    assert sorted(rows(parse_options(options | given)), key=lambda row: row["offset"]) == expected.to_pylist()
    offsets: list[Any] = expected["offset"].to_pylist()
    assert offsets[0] < BASES[1] < END - 10 < offsets[-1]


def test_warnings_about_remote_segments_are_those_of_a_scan(tmp_path: Path) -> None:
    """None of them is about a location without rows."""
    remote = shutil.copytree(REMOTE, tmp_path / "remote")
    for path in remote.rglob(f"{BASES[1]:020}-*"):
        path.unlink()
    for path in list(remote.rglob(f"{BASES[3]:020}-*")):
        shutil.copyfile(path, path.with_name(path.name[:21] + "A" * 22 + path.name[43:]))
    options = parse_options({"path": os.fspath(TAIL), "remote": os.fspath(remote)})
    text = warned(lambda: rows(options))
    assert "__remote_log_metadata has no record of it" in text
    assert "no segment contains offsets 2218 to 2360" in text
    assert text == warned(lambda: offsets_of(TAIL, remote=remote))


def test_options_of_tiered_storage_without_effect_are_named() -> None:
    path = os.fspath(TAIL)
    assert "option remote has no effect" in outcome(path, {"remote": os.fspath(DATA / "corpus")})
    file = os.fspath(TAIL / f"{6678:020}.log")
    assert "option remote has no effect on a file: name the directory" in outcome(file, {"remote": os.fspath(REMOTE)})
    assert "option remoteLogMetadata has no effect" in outcome(path, {"remoteLogMetadata": os.fspath(LOGS)})


def lengthen(path: Path, number: int) -> None:
    """Write a length into a batch's header that leads beyond the file."""
    position = list(kbat.read_batches(path))[number].position
    content = bytearray(path.read_bytes())
    struct.pack_into(">i", content, position + 8, 1_000_000)
    path.write_bytes(content)


@pytest.fixture(scope="module")
def damaged(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Two partitions: one is damaged in the middle, the other at its end; as files and in the bucket."""
    path = tmp_path_factory.mktemp("damaged")
    first, second = GrowingLog(path / "a-0"), GrowingLog(path / "b-0", 7)
    first.append(*[10] * 5)
    lengthen(first.segment, 2)
    first.roll()
    first.append(10, 10)
    second.append(*[10] * 5)
    lengthen(second.segment, 4)
    return path, s3_server.upload(path, "spark/damaged")


@pytest.mark.parametrize("on_corrupt", ["fail", "skip", "report"])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"maxRecordsPerPartition": "7"},
        {"maxPartitionBytes": "100"},
        {"subscribe": "a", "startingOffsets": '{"a": {"0": 15}}', "endingOffsets": '{"a": {"0": 55}}'},
        {"subscribe": "a", "startingTimestamp": str(time_of(35))},
        {"subscribe": "b", "startingOffsetsByTimestamp": json.dumps({"b": {"0": time_of(30)}})},
    ],
    ids=str,
)
def test_corruption_in_a_bucket_is_that_of_the_files(
    damaged: tuple[Path, str], storage: dict[str, str], given: dict[str, str], on_corrupt: str
) -> None:
    directory, url = damaged
    both = given | {"onCorrupt": on_corrupt}
    assert outcome(url, storage, **both) == outcome(os.fspath(directory), both)


@pytest.mark.parametrize("on_corrupt", ["fail", "skip", "report"])
@pytest.mark.parametrize("case", ["crash-flip", "crash-torn", "crash-txn", "crash-index", "preallocated"])
def test_crash_in_a_bucket_is_that_of_the_files(
    s3_server: S3Server, storage: dict[str, str], case: str, on_corrupt: str
) -> None:
    directory = DATA / "corpus" / case
    files = [path for path in log_files(directory) if path.parent == directory]
    url = s3_server.upload(directory, f"spark/{case}/{on_corrupt}", files)
    given = {"onCorrupt": on_corrupt, "columns": "offset,value,position"}
    assert outcome(url, storage, **given) == outcome(os.fspath(directory), given)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"subscribe": "codec-lz4", "maxPartitionBytes": "20k"},
        {"isolationLevel": "read_committed"},
        {"view": "batches"},
        {"view": "segments"},
    ],
    ids=str,
)
def test_encrypted_objects_are_read(
    log_dir: Path, aiven_url: str, storage: dict[str, str], given: dict[str, str]
) -> None:
    found = outcome(aiven_url, storage | KEYS, **given)
    assert found == outcome(os.fspath(AIVEN), KEYS, **given)
    if not given:
        # the bucket has the finished segments, the directory also the active ones
        original = {str(row) for row in rows(parse_options({"path": os.fspath(log_dir)}))}
        tiered = rows(parse_options({"path": aiven_url} | storage | KEYS))
        assert len(tiered) > 1000
        assert {str(row) for row in tiered} <= original


def test_key_that_is_missing_is_named(aiven_url: str, storage: dict[str, str]) -> None:
    assert 'encrypted with the key \\"key1\\": set the option encryptionKeys' in outcome(aiven_url, storage).replace(
        '"key1"', '\\"key1\\"'
    )
    gone = {"encryptionKeys": '{"key1": "/nowhere/key.pem"}'}
    assert "kbat: option encryptionKeys: nothing is at /nowhere/key.pem" in outcome(aiven_url, storage | gone)


def test_directory_of_tiered_storage_is_read_as_files(tmp_path: Path) -> None:
    shutil.copytree(AIVEN.parent / "plain", tmp_path / "plain")
    found = rows(parse_options({"path": os.fspath(tmp_path / "plain"), "columns": "offset,value"}))
    encrypted = rows(parse_options({"path": os.fspath(AIVEN), "columns": "offset,value"} | KEYS))
    assert len(found) > 1000
    assert {str(row) for row in encrypted} & {str(row) for row in found}


# In Spark


def test_spark_reads_a_bucket(spark: SparkSession, log_dir: Path, log_url: str, storage: dict[str, str]) -> None:
    local = spark.read.format("kbat").load(os.fspath(log_dir)).toArrow()
    assert loaded(spark, log_url, storage).toArrow() == local
    assert kbat.spark.read(spark, log_url, **storage).toArrow() == local


def test_spark_writes_a_bucket_to_parquet(
    spark: SparkSession, log_dir: Path, log_url: str, storage: dict[str, str], tmp_path: Path
) -> None:
    given: dict[str, Any] = {"columns": ["topic", "offset"]} | storage
    written = kbat.spark.to_parquet(spark, log_url, tmp_path / "stored", **given)
    local = kbat.spark.to_parquet(spark, log_dir, tmp_path / "local", columns=["topic", "offset"])
    assert written.row_count == local.row_count == 3135
    assert [file.row_count for file in written.files] == [file.row_count for file in local.files]
    with pytest.raises(ValueError, match="s3://b/lake is not in a local file system"):
        kbat.spark.to_parquet(spark, log_dir, "s3://b/lake")


def test_spark_decrypts(spark: SparkSession, aiven_url: str, storage: dict[str, str]) -> None:
    frame = loaded(spark, aiven_url, storage | KEYS | {"columns": "offset"})
    assert frame.count() == 2140
