"""The command `kbat` with a URL as OUT: the same files as in a directory, and nothing after an error."""

from __future__ import annotations

import io
import json
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import LOG, LOG_DIR, copy_of, run
from fault_proxy import FaultProxy
from store_servers import SCHEME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typer.testing import Result

    from fault_proxy import Plan
    from s3_server import S3Server

PARTITION = LOG_DIR / "codec-lz4-0"


@pytest.fixture(autouse=True)
def _environment(s3_server: S3Server) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def bucket(s3_server: S3Server) -> S3Server:
    """The server with partitions of a log directory under `cli-writes/logs`."""
    for name in (*(path.name for path in LOG_DIR.glob("codec-*")), "compacted-0"):
        s3_server.upload(LOG_DIR / name, f"cli-writes/logs/{name}")
    return s3_server


def objects(server: S3Server, key: str) -> dict[str, bytes]:
    """Return the objects below a key by the rest of their keys."""
    return {name.removeprefix(f"{key}/"): server.get(name) for name in server.keys(key)}


def content(directory: Path) -> dict[str, bytes]:
    """Return the files below a directory by their paths in it."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def done(*arguments: object) -> Result:
    found = run(*arguments)
    assert found.exit_code == 0, found.stderr
    return found


COMMANDS = [
    ("recover", "codec-lz4-0", "out-0"),
    ("salvage", "codec-lz4-0", "out-0"),
    ("compact", "compacted-0", "out-0", "--now", "1800000000000"),
    ("rewrite", "codec-lz4-0", "out-0", "--compression", "zstd"),
    ("restore", "", "out", "--topic", "codec-*"),
    ("copy", "codec-lz4-0", "out-0"),
    ("copy", "codec-lz4-0", "part-0", "--start-offset", "17", "--end-offset", "100"),
    ("copy", "", "logs", "--topic", "codec-*"),
    ("convert", "", "logs", "--topic", "codec-*", "--compression", "gzip"),
    ("filter", "", "logs", "--topic", "codec-*", "--start-offset", "50"),
    ("export", "codec-lz4-0", "records.jsonl"),
    ("export", "codec-lz4-0", "records.csv"),
    ("export", "", "json", "--topic", "codec-*", "--partition-by", "topic", "--format", "jsonl"),
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_out_in_a_bucket_has_the_files_of_a_directory(
    arguments: tuple[str, ...], bucket: S3Server, tmp_path: Path
) -> None:
    command, source, name, *options = arguments
    local = tmp_path / name
    text = done(command, LOG_DIR / source, local, *options, "--json").stdout
    expected = content(local) if local.is_dir() else {"": local.read_bytes()}
    for number, place in enumerate((LOG_DIR / source, f"{bucket.url('cli-writes/logs')}/{source}")):
        key = f"cli-writes/{'-'.join(arguments).replace('*', '')}/{number}/{name}"
        printed = done(command, place, bucket.url(key), *options, "--json").stdout
        assert objects(bucket, key) == expected if local.is_dir() else {"": bucket.get(key)} == expected
        # the report has the URLs of what was written
        report = printed.replace(bucket.url(key), str(local)).replace(str(place), str(LOG_DIR / source))
        assert _written(json.loads(report)) == _written(json.loads(text))
        again = run(command, place, bucket.url(key), *options)
        assert (again.exit_code, again.stdout) == (2, "")
        assert "name one that does not exist yet" in again.stderr
    assert not any(path.name.startswith("s3:") for path in tmp_path.iterdir())


def _written(report: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the parts of a report that are not about the source."""
    if isinstance(report, dict):
        ignored = {"path", "source", "paths", "warnings", "source_bytes"}
        return {name: _written(value) for name, value in report.items() if name not in ignored}
    return [_written(one) for one in report] if isinstance(report, list) else report


def test_export_writes_the_columnar_formats(bucket: S3Server, tmp_path: Path) -> None:
    for form in ("parquet", "arrow"):
        done("export", PARTITION, tmp_path / f"x.{form}")
        done("export", PARTITION, bucket.url(f"cli-writes/columns/x.{form}"))
        expected, found = (tmp_path / f"x.{form}").read_bytes(), bucket.get(f"cli-writes/columns/x.{form}")
        read = pq.read_table if form == "parquet" else lambda source: pa.ipc.open_file(source).read_all()
        assert read(io.BytesIO(found)) == read(io.BytesIO(expected))
    shown = done("export", LOG_DIR, bucket.url("cli-writes/days"), "--topic", "codec-*", "--partition-by", "topic,date")
    assert "topic=codec-lz4/date=" in shown.stdout
    names = bucket.keys("cli-writes/days")
    assert len(names) >= 5
    assert sum(pq.read_table(io.BytesIO(bucket.get(name))).num_rows for name in names) == 1100


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_import_writes_a_partition_and_a_log_directory(form: str, bucket: S3Server, tmp_path: Path) -> None:
    done("export", LOG_DIR, tmp_path / f"x.{form}", "--topic", "codec-*")
    for name, options in (("one-0", ["--topic", "codec-lz4"]), ("logs", ["--log-directory"])):
        report = done("import", tmp_path / f"x.{form}", tmp_path / name, *options, "--json").stdout
        key = f"cli-writes/import/{form}/{name}"
        found = done("import", tmp_path / f"x.{form}", bucket.url(key), *options, "--json").stdout
        assert objects(bucket, key) == content(tmp_path / name)
        assert json.loads(found.replace(bucket.url(key), str(tmp_path / name))) == json.loads(report)


def test_options_are_those_of_the_url(bucket: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = [word for name, value in bucket.options.items() for word in ("--storage-option", f"{name}={value}")]
    for variable in bucket.environment:
        monkeypatch.delenv(variable)
    done("export", PARTITION, tmp_path / "x.jsonl")
    for command, source, name, *more in (
        *[one for one in COMMANDS if one[1] and "--start-offset" not in one],
        ("import", str(tmp_path / "x.jsonl"), "in-0"),
    ):
        key = f"cli-writes/options/{command}/{name}"
        done(command, LOG_DIR / source, bucket.url(key), *more, *options)
        assert bucket.keys(f"cli-writes/options/{command}")
    wrong = run("import", tmp_path / "x.jsonl", tmp_path / "new-0", *options)
    assert (wrong.exit_code, (tmp_path / "new-0").exists()) == (2, False)
    assert "--storage-option has no effect on a path in the file system" in wrong.stderr
    assert not [value for value in bucket.options.values() if str(value) in wrong.stderr]


@pytest.mark.parametrize(
    "arguments",
    [
        ("copy", "out-0"),
        ("convert", "out-0", "--compression", "lz4"),
        ("filter", "out-0", "--key", "a"),
        ("export", "x.jsonl"),
        ("export", "x.parquet"),
    ],
    ids=" ".join,
)
def test_an_error_leaves_no_object(
    arguments: tuple[str, ...], bucket: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, name, *options = arguments
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    source = copy_of("crash-flip", tmp_path / "t-0")
    failed = run(command, source, bucket.url(f"cli-writes/failed/{name}"), *options)
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert bucket.keys("cli-writes/failed") == []
    assert list(temporary.iterdir()) == []


def test_import_of_a_wrong_line_leaves_no_object(bucket: S3Server, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"key": "YQ==", "value": "YQ=="}\n{"key": 1}\n')
    failed = run("import", tmp_path / "x.jsonl", bucket.url("cli-writes/failed/in-0"))
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert bucket.keys("cli-writes/failed") == []


def test_a_copy_is_compared_before_it_is_uploaded(
    bucket: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import kbat  # noqa: PLC0415 - its function is replaced

    real = kbat.rewrite

    def lossy(path: str, out: Path, **options: Any) -> object:  # noqa: ANN401 - as kbat.rewrite
        report = real(path, out, **options)
        data = bytearray((out / LOG).read_bytes())
        data[20] ^= 1
        (out / LOG).write_bytes(data)
        return report

    monkeypatch.setattr(kbat, "rewrite", lossy)
    shutil.copytree(PARTITION, tmp_path / "t-0")
    failed = run("copy", tmp_path / "t-0", bucket.url("cli-writes/lossy/t-0"))
    assert failed.exit_code == 1
    assert "differs at offset 0 and was removed" in failed.stderr
    assert bucket.keys("cli-writes/lossy") == []


def test_a_missing_bucket_of_out_is_named(tmp_path: Path) -> None:
    (tmp_path / "in").write_text('{"value": "a"}\n')
    found = run("import", tmp_path / "in", f"{SCHEME}://missing-bucket-of-kbat/orders-0")
    assert found.exit_code == 1
    assert "the bucket does not exist" in found.stderr
    assert "No such file or directory" not in found.stderr


def test_secret_in_the_url_of_out_is_refused() -> None:
    for command in ("copy", "rewrite"):
        refused = run(command, PARTITION, "s3://user:hunter2@bucket/out-0")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "hunter2" not in refused.stderr


def test_a_server_that_refuses_uploads_is_an_error(bucket: S3Server) -> None:
    plan: Plan = lambda request: "slow down" if request.is_write else None  # noqa: E731 - short
    with FaultProxy(bucket.port, plan, options_at=bucket.options_at) as proxy:
        options = [word for name, value in proxy.options.items() for word in ("--storage-option", f"{name}={value}")]
        failed = run("export", PARTITION, bucket.url("cli-writes/refused/x.jsonl"), *options)
        assert (failed.exit_code, failed.stdout) == (1, "")
        assert "503" in failed.stderr
        assert len(proxy.requests) <= 40
    assert bucket.keys("cli-writes/refused") == []
