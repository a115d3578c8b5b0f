"""The Spark source over a bucket: everything is equal to the same files in a directory, and secrets stay secret."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import kbat
import kbat.spark
from data import DATA
from growing_log import GrowingLog, time_of
from kbat.spark.options import ReadOptions, parse_options
from kbat.spark.schema import schema_of
from kbat.spark.source import KbatReader
from kbat.spark.stores import s3a_settings
from kbat.spark.stream import KbatStreamReader
from remote_logs import BASES, END, LOGS, REMOTE, TAIL
from s3_server import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, log_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from kbat.spark.stream import Offsets

AIVEN = DATA / "tiered" / "aiven" / "zstd-aes"
KEYS = {"encryptionKeys": json.dumps({"key1": os.fspath(AIVEN.parent / "test-private-key.pem")})}
LZ4 = '{"codec-lz4": {"0": %d}}'


@pytest.fixture(scope="module")
def log_url(s3_server: S3Server, log_dir: Path) -> str:
    """The log directory in the bucket."""
    return s3_server.upload(log_dir, "spark/log-dir")


@pytest.fixture(scope="module")
def aiven_url(s3_server: S3Server) -> str:
    """Objects of Aiven's plugin in the bucket, compressed and encrypted."""
    return s3_server.upload(AIVEN, "spark/aiven", [path for path in AIVEN.rglob("*") if path.is_file()])


@pytest.fixture(scope="module")
def storage(s3_server: S3Server) -> dict[str, str]:
    """The options of the bucket, with the names of the data source."""
    return {f"storage.{name}": str(value) for name, value in s3_server.options.items()}


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


def test_options_of_tiered_storage_without_effect_are_named() -> None:
    path = os.fspath(TAIL)
    assert "option remote has no effect" in outcome(path, {"remote": os.fspath(DATA / "corpus")})
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


@pytest.mark.parametrize(
    ("path", "given", "message"),
    [
        ("s3://no-such-bucket/logs", {}, "bucket does not exist"),
        (f"s3://{BUCKET}/spark/gone", {}, f"kbat: nothing is at s3://{BUCKET}/spark/gone"),
        (
            f"s3://{BUCKET}/spark/log-dir",
            {"storage.endpont": SECRET_KEY},
            "kbat: there is no option storage.endpont for s3://: the names are those of object_store",
        ),
        (f"s3://{BUCKET}/spark/log-dir", {"storage.key": SECRET_KEY}, "use access_key_id"),
        (
            f"s3://{BUCKET}/spark/log-dir",
            {"storage.secret_access_key": " "},
            "storage.secret_access_key: must not be e",
        ),
        (f"s3://{BUCKET}/spark/log-dir", {"storage.Endpoint": SECRET_KEY}, "options storage.endpoint and storage.Endp"),
        (f"s3://{BUCKET}/spark/log-dir", {"storage_options": SECRET_KEY}, "did you mean storage.<name>?"),
        (
            f"s3://{BUCKET}/spark/log-dir",
            {"encryptionKeys": SECRET_KEY},
            "encryptionKeys: must be JSON of ids and path",
        ),
        (f"s3://{BUCKET}/spark/log-dir", KEYS, "option encryptionKeys has no effect"),
        (f"s3:/{BUCKET}/spark/log-dir", {}, "pathlib removes a slash from URLs; pass the URL as a str"),
        ("memory://logs", {}, "is in the memory of one process"),
        ("/somewhere", {}, "the options storage.<name> have no effect on paths in a file system"),
        (f"s3://{BUCKET}/spark/log-dir", {"paths": '["/somewhere"]'}, "the paths are of several kinds"),
    ],
)
def test_error_of_a_store_says_what_to_do(
    log_url: str, storage: dict[str, str], path: str, given: dict[str, str], message: str
) -> None:
    assert log_url
    found = outcome(path, storage, **given)
    assert message in found.replace("<path>", path)
    assert SECRET_KEY not in found
    assert ACCESS_KEY not in found


def test_options_of_a_store_match_in_any_case(storage: dict[str, str]) -> None:
    options = parse_options({"path": "s3a://b/x"} | {name.upper(): value for name, value in storage.items()})
    assert options.keywords == {
        "storage_options": {name.removeprefix("storage."): value for name, value in storage.items()}
    }
    settings = (("region", "eu-west-1"),)
    assert parse_options({"path": "s3a://b/x"}, settings).keywords == {"storage_options": dict(settings)}
    assert parse_options({"path": "gs://b/x"}, settings).keywords == {}
    assert parse_options({"path": "/x"}, settings).keywords == {}
    hidden = parse_options({"path": "s3://b/x", "storage.secret.access_key_id": "a"})
    assert hidden.keywords == {"storage_options": {"access_key_id": "a"}}
    assert parse_options({"path": "s3://b/x"} | storage, settings).keywords["storage_options"]["region"] == "us-east-1"


# In Spark


def loaded(spark: SparkSession, url: str, options: dict[str, str]) -> DataFrame:
    return spark.read.format("kbat").options(**options).load(url)


def failure(run: Callable[[], object]) -> str:
    with pytest.raises(PySparkException) as raised:
        run()
    return str(raised.value)


def java_of(frame: DataFrame) -> Any:  # noqa: ANN401 -- a Java object
    return frame._jdf  # noqa: SLF001 -- there is no other way to the plans


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


def test_spark_shows_no_secret(spark: SparkSession, log_url: str, storage: dict[str, str]) -> None:
    storage = {name.replace(".access", ".secret.access"): value for name, value in storage.items()}
    frames = [
        loaded(spark, log_url, storage),
        kbat.spark.read(spark, log_url, **storage),
        spark.readStream.format("kbat").options(**storage).load(log_url),
    ]
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        for frame in frames:
            frame.explain(extended=True)
            frame.explain("formatted")
            print(repr(frame), java_of(frame).queryExecution().toString())  # noqa: T201 -- is captured
    text = shown.getvalue()
    assert "kbat" in text
    text += failure(loaded(spark, f"{log_url}/gone", storage).count)
    text += failure(loaded(spark, log_url, storage | {"storage.endpont": SECRET_KEY}).count)
    assert "there is no option storage.endpont" in text
    assert SECRET_KEY not in text
    assert ACCESS_KEY not in text


def test_spark_refuses_to_write_to_a_store(spark: SparkSession, storage: dict[str, str]) -> None:
    frame = spark.sql("SELECT 't' topic, 0 partition, CAST('v' AS BINARY) value")
    message = failure(lambda: frame.write.format("kbat").mode("append").options(**storage).save("s3a://b/logs"))
    assert "kbat: s3a://b/logs is in a store, and rows are only written to a file system" in message
    assert SECRET_KEY not in message


S3A = {"access.key": ACCESS_KEY, "secret.key": SECRET_KEY, "endpoint.region": "us-east-1", "path.style.access": "true"}


@contextlib.contextmanager
def settings_of(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    names = {f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in names:
            spark.conf.unset(name)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        (
            {"access.key": "a", "secret.key": "s", "session.token": "t", "endpoint.region": "eu-west-1"},
            {"access_key_id": "a", "secret_access_key": "s", "session_token": "t", "region": "eu-west-1"},
        ),
        ({"endpoint": "http://m:9000"}, {"endpoint": "http://m:9000"}),
        ({"endpoint": "m:9000", "connection.ssl.enabled": "false"}, {"endpoint": "http://m:9000"}),
        (
            {"endpoint": "m", "path.style.access": "false"},
            {"endpoint": "https://m", "virtual_hosted_style_request": "false"},
        ),
        ({"endpoint": "s3.amazonaws.com"}, {}),
        ({"path.style.access": "false"}, {"virtual_hosted_style_request": "true"}),
    ],
)
def test_settings_of_s3a_are_translated(
    spark: SparkSession, settings: dict[str, str], expected: dict[str, str]
) -> None:
    with settings_of(spark, settings):
        assert dict(s3a_settings(spark)) == expected


def test_settings_of_s3a_apply_without_options(spark: SparkSession, s3_server: S3Server, log_url: str) -> None:
    url = log_url.replace("s3://", "s3a://")
    with settings_of(spark, S3A | {"endpoint": s3_server.endpoint}):
        assert kbat.spark.read(spark, url, columns="offset").count() == 3135
        kbat.spark.register(spark)
        try:
            assert loaded(spark, url, {"columns": "offset"}).count() == 3135
            # an option replaces all settings
            message = failure(loaded(spark, url, {"storage.endpont": "http://127.0.0.1:1"}).count)
            assert "there is no option storage.endpont for s3a" in message
            assert SECRET_KEY not in message
        finally:
            spark.conf.unset("spark.hadoop.fs.s3a.access.key")
    kbat.spark.register(spark)


_APPLICATION = """
import sys, kbat.spark
from pyspark.sql import SparkSession
url, endpoint, key, secret, log = sys.argv[1:]
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    .config("spark.hadoop.fs.s3a.access.key", key).config("spark.hadoop.fs.s3a.secret.key", secret)
    .config("spark.hadoop.fs.s3a.endpoint", endpoint).config("spark.hadoop.fs.s3a.endpoint.region", "us-east-1")
    .config("spark.eventLog.enabled", True).config("spark.eventLog.dir", log)
    .config("spark.eventLog.compress", False).getOrCreate())
kbat.spark.register(spark)
print(spark.read.format("kbat").load(url).count(), kbat.spark.read(spark, url).count())
options = {"storage.endpoint": endpoint, "storage.secret.access_key_id": key, "storage.secret_access_key": secret,
    "storage.region": "us-east-1"}
frame = spark.read.format("kbat").options(**options).load(url)
frame.explain(True)
frame.createOrReplaceTempView("logs")
print(spark.sql("SELECT * FROM logs").count())
try:
    frame.select("offset").write.format("noop").mode("overwrite").save()
    spark.read.format("kbat").options(**options).load(url + "/gone").count()
except Exception as error:
    print(error)
spark.stop()
"""


def test_event_log_and_output_of_an_application_have_no_secret(
    s3_server: S3Server, log_url: str, tmp_path: Path
) -> None:
    log = tmp_path / "events"
    log.mkdir()
    arguments = [log_url, s3_server.endpoint, ACCESS_KEY, SECRET_KEY, log.as_uri()]
    done = subprocess.run(  # noqa: S603 -- its own
        [sys.executable, "-c", _APPLICATION, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert "3135 3135" in done.stdout
    assert "nothing is at" in done.stdout
    events = "".join(path.read_text() for path in log.rglob("events_*"))
    assert "BatchScan kbat" in events
    for text in (done.stdout, done.stderr, events):
        assert SECRET_KEY not in text
        assert ACCESS_KEY not in text


# Streams


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


@pytest.mark.parametrize("most", [None, 7])
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


def test_directory_of_tiered_storage_is_read_as_files(tmp_path: Path) -> None:
    shutil.copytree(AIVEN.parent / "plain", tmp_path / "plain")
    found = rows(parse_options({"path": os.fspath(tmp_path / "plain"), "columns": "offset,value"}))
    encrypted = rows(parse_options({"path": os.fspath(AIVEN), "columns": "offset,value"} | KEYS))
    assert len(found) > 1000
    assert {str(row) for row in encrypted} & {str(row) for row in found}
