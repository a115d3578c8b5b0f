"""Names, options and secrets of stores, and what can't be done in a store."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from obstore.store import MemoryStore, S3Store

import kbat
from data import DATA, build
from s3_server import ACCESS_KEY, BUCKET, SECRET_KEY
from store_servers import SCHEME

if TYPE_CHECKING:
    from s3_server import S3Server

s3_only = pytest.mark.skipif(SCHEME != "s3", reason="names and messages of S3")


@pytest.fixture(scope="module")
def prefix(s3_server: S3Server) -> str:
    """A partition of 220 records in the bucket."""
    return s3_server.upload(DATA / "corpus" / "codec-none", "options/codec-none-0")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"acess_key_id": "hunter2"}, 'no option "acess_key_id" for s3://'),
        ({"key": "hunter2", "secret": "hunter2"}, "the name in fsspec; use access_key_id"),
        ({"client_kwargs": {"endpoint_url": "hunter2"}}, "the name in fsspec; use endpoint"),
        ({"anon": True}, "the name in fsspec; use skip_signature"),
    ],
)
def test_a_wrong_option_is_named_without_its_value(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="storage_options") as raised:
        kbat.scan("s3://bucket/x", storage_options=options)
    assert message in str(raised.value)
    assert "hunter2" not in str(raised.value)


@s3_only
def test_secrets_are_in_no_text(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": s3_server.options}
    texts = [repr(kbat.scan(prefix, **options)), kbat.scan(prefix, **options)._repr_html_()]
    for opened in (kbat.PartitionLog(prefix, **options), kbat.LogDirectory(s3_server.url("options"), **options)):
        texts += [repr(opened), opened._repr_html_()]
    for url in ("s3://no-such-bucket/x", f"{prefix}/none.log"):
        with pytest.raises(OSError, match="s3://") as raised:
            kbat.scan(url, **options)
        texts.append(str(raised.value))
    for secret in (ACCESS_KEY, SECRET_KEY):
        assert not any(secret in text for text in texts), texts


def test_options_without_effect_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no effect on a path in the file system"):
        kbat.scan(tmp_path, storage_options={"region": "us-east-1"})


def test_a_url_that_pathlib_changed_is_refused() -> None:
    with pytest.raises(ValueError, match="pathlib removes a slash from URLs"):
        kbat.scan(Path("s3://bucket/x"))


@pytest.mark.parametrize("function", ["scan", "PartitionLog", "LogDirectory", "Segment", "read_batches", "verify"])
def test_unknown_keywords_are_refused(function: str) -> None:
    with pytest.raises(TypeError, match=rf"{function}\(\) got an unexpected keyword argument 'storage_option'"):
        getattr(kbat, function)("s3://bucket/x", storage_option={})


@pytest.mark.parametrize(
    "function", ["scan", "PartitionLog", "LogDirectory", "read_batches", "verify", "find_segments"]
)
def test_a_missing_object_is_a_missing_file(function: str, s3_server: S3Server) -> None:
    for name in ("none", "none/00000000000000000000.log"):
        with pytest.raises(FileNotFoundError, match=f"{SCHEME}://.*/{name}"):
            getattr(kbat, function)(s3_server.url(name), storage_options=s3_server.options)


@s3_only
def test_a_missing_bucket_is_a_missing_file(s3_server: S3Server) -> None:
    with pytest.raises(FileNotFoundError):
        kbat.scan("s3://no-such-bucket/x", storage_options=s3_server.options)


@s3_only
def test_a_missing_bucket_is_named(s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": s3_server.options}
    with pytest.raises(OSError, match="bucket does not exist"):
        kbat.scan("s3://no-such-bucket/x", **options)


def test_refused_requests_are_permission_errors(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": {**s3_server.options, "skip_signature": True}}
    with pytest.raises(PermissionError, match="403"):
        kbat.scan(f"{prefix}/00000000000000000000.log", **options).to_pyarrow()


def test_an_endpoint_without_scheme_is_an_argument_error(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": {**s3_server.options, "endpoint": "localhost"}}
    with pytest.raises(ValueError, match="endpoint"):
        kbat.scan(prefix, **options)


def test_options_of_a_wrong_type_are_a_type_error() -> None:
    options: dict[str, Any] = {"storage_options": [("region", "us-east-1")]}
    with pytest.raises(TypeError, match="storage_options"):
        kbat.scan("s3://bucket/x", **options)


def test_option_values_of_a_wrong_type_are_a_type_error() -> None:
    options: dict[str, Any] = {"storage_options": {"secret_access_key": b"hunter2"}}
    with pytest.raises((TypeError, ValueError), match="secret_access_key"):
        kbat.scan("s3://bucket/x", **options)


def test_a_pattern_matches_prefixes_of_a_bucket_or_is_refused(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": s3_server.options}
    found = kbat.scan(prefix.replace("codec-none", "codec-*"), **options).count()
    assert found == 220


def test_keys_with_spaces_and_signs_are_read(s3_server: S3Server) -> None:
    for name in ("a b-0", "ü#+-0", "%41-0"):
        s3_server.put(f"odd/{name}/00000000000000000000.log", build())
        options: dict[str, Any] = {"storage_options": s3_server.options}
        assert kbat.scan(s3_server.url(f"odd/{name}"), **options).count() == 1, name


def test_changing_a_bucket_in_place_is_refused(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": s3_server.options}
    with pytest.raises(ValueError, match="can only be changed in the file system"):
        kbat.recover(prefix, in_place=True, **options)
    with pytest.raises(ValueError, match="writes to the file system only"):
        kbat.LogWriter(s3_server.url("options/new-0"))


def test_what_is_in_a_store_is_not_pickled(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": s3_server.options}
    log = kbat.PartitionLog(prefix, **options)
    for opened in (log, log.segments[0]):
        with pytest.raises(TypeError, match="can't be pickled: open its URL again"):
            pickle.dumps(opened)


def test_parts_of_a_split_contain_every_row_once(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": s3_server.options}
    parts = kbat.split(prefix, 20_000, **options)
    assert len(parts) > 2
    offsets = kbat.scan(parts, **options).to_pyarrow()["offset"].to_pylist()
    assert offsets == list(range(220))


@s3_only
def test_a_store_of_obstore_is_opened(prefix: str, s3_server: S3Server) -> None:
    assert prefix.endswith("options/codec-none-0")
    arguments: dict[str, Any] = {**s3_server.options, "client_options": {"allow_http": True}}
    whole, below = S3Store(BUCKET, **arguments), S3Store(BUCKET, prefix="options", **arguments)
    opened: dict[str, Any] = {"store": whole}
    assert kbat.scan("options/codec-none-0", **opened).count() == 220
    assert kbat.PartitionLog("codec-none-0", **{**opened, "store": below}).end_offset == 220
    with pytest.raises(ValueError, match="the path is relative to the store"):
        kbat.scan(prefix, **opened)
    with pytest.raises(ValueError, match="not both"):
        kbat.scan("options", storage_options=s3_server.options, **opened)


def test_other_stores_are_refused() -> None:
    opened: dict[str, Any] = {"store": MemoryStore()}
    with pytest.raises(TypeError, match="not MemoryStore"):
        kbat.scan("x", **opened)
