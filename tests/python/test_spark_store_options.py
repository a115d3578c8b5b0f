"""How the Spark source opens a bucket: its options, the settings of S3A, and secrets, which stay secret."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

import kbat.spark
from kbat.spark.options import parse_options
from kbat.spark.stores import s3a_settings
from s3_server import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server
from spark_bucket import KEYS, failure, loaded, outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


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


def java_of(frame: DataFrame) -> Any:  # noqa: ANN401 -- a Java object
    return frame._jdf  # noqa: SLF001 -- there is no other way to the plans


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


@pytest.mark.skipif(
    pyspark.__version__ < "4.1" and os.environ.get("KBAT_TEST_ENGINE") != "jvm",
    reason="Spark 4.0 keeps the source without S3A's settings",
)
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


@pytest.mark.skipif(pyspark.__version__ < "4.1", reason="Spark 4.0 keeps the source without S3A's settings")
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
