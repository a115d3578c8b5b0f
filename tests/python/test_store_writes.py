"""Results that are written to a store: the same files as in the file system."""

from __future__ import annotations

import io
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import kbat
from data import DATA
from kbat._core.locations import OutputTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from s3_server import S3Server

TXN = DATA / "corpus" / "txn-lz4"
COMPACTED = DATA / "log-dir" / "compacted-0"


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def keep_all(source: Path | str, out: Path | str, **options: Any) -> object:  # noqa: ANN401 - those of filter
    return kbat.filter(source, out, lambda _record: True, **options)


def uploaded(server: S3Server, key: str, names: list[str]) -> dict[str, bytes]:
    """Return the objects with these names below a key."""
    return {name: server.get(f"{key}/{name}") for name in names}


@pytest.mark.parametrize(
    ("name", "call", "source"),
    [
        ("salvage", kbat.salvage, TXN),
        ("recover", kbat.recover, TXN),
        ("rewrite", kbat.rewrite, TXN),
        ("compact", kbat.compact, COMPACTED),
        ("filter", keep_all, TXN),
        ("restore", kbat.restore, DATA / "log-dir"),
    ],
)
def test_a_result_in_a_bucket_is_that_of_the_file_system(
    name: str, call: Callable[..., Any], source: Path, s3_server: S3Server, tmp_path: Path
) -> None:
    call(source, tmp_path / "out-0")
    expected = contents(tmp_path / "out-0")
    options: dict[str, Any] = {"storage_options": s3_server.options}
    # the options are those of the target alone, or of both
    call(source, s3_server.url(f"writes/{name}/local/out-0"), **options)
    assert uploaded(s3_server, f"writes/{name}/local/out-0", list(expected)) == expected
    stored = s3_server.upload(source, f"writes/{name}/source/{source.name}-0")
    report = call(stored, s3_server.url(f"writes/{name}/stored/out-0"), **options)
    logs = [each for each in expected if each.endswith(".log")]
    found = uploaded(s3_server, f"writes/{name}/stored/out-0", logs)
    assert found == {each: expected[each] for each in logs}
    if hasattr(report, "out"):
        assert str(report.out) == s3_server.url(f"writes/{name}/stored/out-0")
    with pytest.raises(ValueError, match="the output directory is not empty"):
        call(source, s3_server.url(f"writes/{name}/local/out-0"), **options)
    # from a bucket to the file system
    call(stored, tmp_path / "copy-0", **options)
    assert {each: (tmp_path / "copy-0" / each).read_bytes() for each in logs} == found


def test_a_failed_result_leaves_nothing_in_the_bucket(s3_server: S3Server) -> None:
    def refuse(record: kbat.Record) -> bool:
        raise RuntimeError(record.offset)

    target = s3_server.url("writes/failed/out-0")
    with pytest.raises(RuntimeError):
        kbat.filter(TXN, target, refuse, storage_options=s3_server.options)
    with pytest.raises(FileNotFoundError):
        kbat.scan(target, storage_options=s3_server.options)


def test_two_results_never_mix_below_one_prefix(s3_server: S3Server) -> None:
    both, target = threading.Barrier(2, timeout=60), s3_server.url("writes/shared/out-0")

    def write(keeps: bool) -> str:  # noqa: FBT001 -- an argument of map
        waits = [True]

        def choose(record: kbat.Record) -> bool:
            if waits:
                waits.clear()
                both.wait()  # both have found that the prefix is empty
            return keeps or record.offset % 2 == 0

        try:
            kbat.filter(TXN, target, choose, storage_options=s3_server.options)
        except ValueError as error:
            return str(error)
        return "kept" if keeps else "dropped"

    with ThreadPoolExecutor(2) as pool:
        results = sorted(pool.map(write, [True, False]), key=len)
    written, refused = results
    assert "the output directory is not empty" in refused or "the object .kbat-upload shows" in refused
    offsets = kbat.scan(target, columns=["offset"], storage_options=s3_server.options).to_pyarrow()["offset"]
    assert any(offset is not None and offset % 2 for offset in offsets.to_pylist()) == (written == "kept")
    assert not [key for key in s3_server.keys("writes/shared/") if key.endswith(".kbat-upload")]


def test_a_reserved_prefix_is_refused(s3_server: S3Server) -> None:
    s3_server.put("writes/reserved/out-0/.kbat-upload", b"")
    target = s3_server.url("writes/reserved/out-0")
    with pytest.raises(ValueError, match=r"\.kbat-upload shows: an upload to this prefix is running or failed"):
        kbat.rewrite(TXN, target, storage_options=s3_server.options)


def test_a_marked_folder_is_a_target_as_an_empty_directory_is(s3_server: S3Server) -> None:
    s3_server.put("writes/marked/out-0/", b"")
    target = s3_server.url("writes/marked/out-0")
    kbat.rewrite(TXN, target, storage_options=s3_server.options)
    found = kbat.scan(target, storage_options=s3_server.options).count()
    assert found == kbat.scan(TXN).count() > 0
    with pytest.raises(ValueError, match="the output directory is not empty"):
        kbat.rewrite(TXN, target, storage_options=s3_server.options)


def test_parquet_in_a_bucket_is_that_of_the_file_system(s3_server: S3Server, tmp_path: Path) -> None:
    scan = kbat.scan(DATA / "log-dir", columns=["topic", "partition", "offset", "value"])
    expected = kbat.write_parquet(scan, tmp_path / "out", partition_by=["topic"])
    target = s3_server.url("writes/parquet")
    files = kbat.write_parquet(scan, target, partition_by=["topic"], storage_options=s3_server.options)
    assert [file.row_count for file in files] == [file.row_count for file in expected]
    for file, local in zip(files, expected, strict=True):
        name = Path(local.path).relative_to(tmp_path / "out")
        assert file.path == f"{target}/{name}"
        assert uploaded(s3_server, "writes/parquet", [str(name)])[str(name)] == Path(local.path).read_bytes()
    # existing files are replaced
    kbat.write_parquet(scan, f"{target}/one.parquet", storage_options=s3_server.options)
    [one] = kbat.write_parquet(scan, f"{target}/one.parquet", storage_options=s3_server.options)
    table = pq.read_table(io.BytesIO(uploaded(s3_server, "writes/parquet", ["one.parquet"])["one.parquet"]))
    assert table.num_rows == one.row_count == scan.count()


def test_a_file_of_several_parts_arrives_whole(s3_server: S3Server, tmp_path: Path) -> None:
    """Files of more than 8 MiB are uploaded in parts."""
    directory = tmp_path / "big-0"
    noise = random.Random(1)  # noqa: S311 - not for cryptography
    with kbat.LogWriter(directory) as writer:
        for _ in range(20):
            writer.append(None, noise.randbytes(1 << 20), timestamp=0)
    expected = kbat.scan(directory).to_pyarrow()["value"].to_pylist()
    target = s3_server.url("writes/big-0")
    kbat.rewrite(directory, target, storage_options=s3_server.options)
    assert kbat.scan(target, storage_options=s3_server.options).to_pyarrow()["value"].to_pylist() == expected


def test_object_that_appears_during_an_export_is_not_replaced(s3_server: S3Server) -> None:
    url = s3_server.url("writes/late/x.parquet")
    target = OutputTarget(url, storage_options=s3_server.options)
    Path(target.__enter__()).write_bytes(b"mine")
    s3_server.put("writes/late/x.parquet", b"theirs")
    with pytest.raises(ValueError, match="exists"):
        target.__exit__(None, None, None)
    assert s3_server.get("writes/late/x.parquet") == b"theirs"
