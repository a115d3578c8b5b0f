"""`kbat.write_parquet`, read back by PyArrow."""

from __future__ import annotations

import datetime as dt
import os
import resource
from typing import TYPE_CHECKING, Literal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import kbat
from data import DATA, build, patched

if TYPE_CHECKING:
    from pathlib import Path

LOG_DIR = DATA / "log-dir"
START = 1_700_006_400_000  # midnight, UTC


@pytest.mark.parametrize("compression", ["none", "snappy", "lz4", "gzip", "gzip:1", "zstd", "zstd:9"])
def test_parquet_of_a_log_directory_is_the_scan(tmp_path: Path, compression: str) -> None:
    scan = kbat.scan(LOG_DIR, columns=[*kbat_columns(), "position", "producer_id", "compression"])
    (file,) = kbat.write_parquet(scan, tmp_path / "out.parquet", compression=compression)
    read = pq.read_table(file.path)
    assert read.equals(scan.to_pyarrow())
    assert (file.row_count, file.size) == (read.num_rows, os.path.getsize(file.path))  # noqa: PTH202 -- a str
    codec = pq.ParquetFile(file.path).metadata.row_group(0).column(0).compression
    assert codec == {"none": "UNCOMPRESSED"}.get(compression, compression.split(":", maxsplit=1)[0].upper())
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


def test_offsets_and_times_are_written_as_distances_and_bytes_without_lengths_between(tmp_path: Path) -> None:
    """Also where a distance has more than 63 bits, in every reader that people have."""
    extremes = [0, 2**63 - 1, -(2**63), -1, 0, 1, -(2**63), 2**63 - 1]
    blob = b""
    for offset, time in zip([0, 1, 2, 3, 4, 5, 6, 2**62], extremes, strict=True):
        record = 0, b"k" * (offset % 7) if offset % 3 else None, b"v" * (offset % 5)
        blob += patched(build([record], base_offset=offset), 27, ">qq", time, time)  # the first and the largest time
    scan = kbat.scan(blob * 3, check_crc=False, columns=["offset", "timestamp", "key", "value", "producer_id"])
    (file,) = kbat.write_parquet(scan, tmp_path / "out.parquet")
    rows = scan.to_pyarrow()
    group = pq.ParquetFile(file.path).metadata.row_group(0)
    encodings = {group.column(place).path_in_schema: group.column(place).encodings for place in range(5)}
    assert "DELTA_BINARY_PACKED" in encodings["offset"]
    assert "DELTA_BINARY_PACKED" in encodings["timestamp"]
    assert "DELTA_LENGTH_BYTE_ARRAY" in encodings["key"]
    assert "DELTA_LENGTH_BYTE_ARRAY" in encodings["value"]
    assert pq.read_table(file.path).equals(rows)
    whole = ["offset", "key", "value"]  # not all have times of every size
    assert pl.read_parquet(file.path).select(whole).rows() == pl.DataFrame(rows.select(whole)).rows()
    with duckdb.connect() as connection:
        found = connection.sql(f"select \"offset\", key, value from '{file.path}'").fetchall()  # noqa: S608 -- our path
    assert found == list(zip(*rows.select(whole).to_pydict().values(), strict=True))


def kbat_columns() -> list[str]:
    """Names of the default columns."""
    return kbat.scan(LOG_DIR).schema.names


def test_partitioned_files_lie_where_hive_looks_for_them(tmp_path: Path) -> None:
    scan = kbat.scan(LOG_DIR)
    files = kbat.write_parquet(scan, tmp_path, partition_by=["topic", "date"], file_stem="task-7")
    whole = scan.to_pyarrow()
    assert sum(file.row_count for file in files) == whole.num_rows
    read = ds.dataset(
        tmp_path,
        partitioning=ds.partitioning(flavor="hive", schema=pa.schema([("topic", pa.string()), ("date", pa.string())])),
    )
    table = read.to_table(columns=whole.schema.names)
    order: list[tuple[str, Literal["ascending", "descending"]]] = [
        ("topic", "ascending"),
        ("partition", "ascending"),
        ("offset", "ascending"),
    ]
    assert table.sort_by(order).cast(whole.schema).equals(whole.sort_by(order))
    for topic, date, timestamp in zip(
        *(read.to_table()[name].to_pylist() for name in ("topic", "date", "timestamp")), strict=True
    ):
        assert topic
        assert date == (None if timestamp is None else f"{timestamp:%Y-%m-%d}")
    assert all("/task-7-0.parquet" in file.path for file in files)


def test_partitions_by_hour_number_and_truth_value(tmp_path: Path) -> None:
    start = dt.datetime(2024, 2, 28, 22, 30, tzinfo=dt.UTC)
    times = [start + hours * dt.timedelta(hours=1) for hours in range(30)]
    data = build([(int(time.timestamp() * 1000), None, b"v") for time in times])
    scan = kbat.scan(data, columns=["timestamp", "offset", "magic", "is_transactional", "topic"], topic="a/b=c")
    files = kbat.write_parquet(scan, tmp_path, partition_by=["topic", "magic", "is_transactional", "date", "hour"])
    expected = [
        f"topic=a%2Fb%3Dc/magic=2/is_transactional=false/date={time:%Y-%m-%d}/hour={time:%H}/part-0.parquet"
        for time in times
    ]
    assert sorted(os.path.relpath(file.path, tmp_path) for file in files) == sorted(expected)
    assert pq.read_schema(files[0].path).names == ["timestamp", "offset"]


def test_rows_of_many_directories_in_any_order_are_a_file_each(tmp_path: Path) -> None:
    """Of few file handles and little memory, and without a row lost."""
    data = build([(START + number % 1000 * 86_400_000, None, b"%d" % number) for number in range(6000)])
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(200, limit[0]), limit[1]))
    try:
        files = kbat.write_parquet(kbat.scan(data), tmp_path, partition_by=["date"], max_memory_bytes=1 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert len({os.path.dirname(file.path) for file in files}) == len(files) == 1000  # noqa: PTH120 -- a str
    rows = [str(row.as_py()) for file in files for row in pq.ParquetFile(file.path).read()["value"]]
    assert sorted(rows) == sorted(str(b"%d" % number) for number in range(6000))


def test_rows_of_more_directories_than_are_kept_open_have_several_files(tmp_path: Path) -> None:
    data = build([(START + number % 1200 * 86_400_000, None, b"%d" % number) for number in range(1300)])
    files = kbat.write_parquet(kbat.scan(data, columns=["offset", "timestamp"]), tmp_path, partition_by=["date"])
    assert len({os.path.dirname(file.path) for file in files}) == 1200  # noqa: PTH120 -- a str
    assert len(files) == 1300
    assert sum(file.row_count for file in files) == 1300
    assert len({file.path for file in files}) == len(files)


def test_names_are_those_that_are_asked_for(tmp_path: Path) -> None:
    scan = kbat.scan(LOG_DIR, columns=["timestamp_type", "topic", "offset"], timestamp_unit="us")
    (file, *_) = kbat.write_parquet(scan, tmp_path, partition_by=["topic"], names=["timestampType", "offset"])
    assert pq.read_schema(file.path).names == ["timestampType", "offset"]
    with pytest.raises(ValueError, match="3 names for 2 columns"):
        kbat.write_parquet(scan, tmp_path, partition_by=["topic"], names=["a", "b", "c"])


@pytest.mark.parametrize("names", [["a", "a"], ["", "b"], ["date", "b"]])
def test_names_that_are_none_are_refused(tmp_path: Path, names: list[str]) -> None:
    scan = kbat.scan(LOG_DIR, columns=["offset", "timestamp"])
    with pytest.raises(ValueError, match="is empty or already used by another column or directory"):
        kbat.write_parquet(scan, tmp_path, names=names, partition_by=["date"])
    with pytest.raises(ValueError, match="partition_by lists date twice"):
        kbat.write_parquet(scan, tmp_path, partition_by=["date", "date"])
    for stem in ("../out", "", "a/b"):
        with pytest.raises(ValueError, match="can't begin a file's name"):
            kbat.write_parquet(scan, tmp_path, partition_by=["date"], file_stem=stem)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_the_way_leaves_no_file(tmp_path: Path) -> None:
    taken = tmp_path / "topic=codec-lz4" / "part-0.parquet"
    taken.mkdir(parents=True)
    with pytest.raises(IsADirectoryError, match="codec-lz4"):
        kbat.write_parquet(kbat.scan(LOG_DIR), tmp_path, partition_by=["topic"])
    assert list(tmp_path.rglob("*")) == [taken.parent, taken]


def test_no_rows_are_a_file_without_rows(tmp_path: Path) -> None:
    (file,) = kbat.write_parquet(kbat.scan(b""), tmp_path / "out.parquet")
    assert file.row_count == 0
    assert pq.read_table(file.path).num_rows == 0
    assert kbat.write_parquet(kbat.scan(b""), tmp_path / "out", partition_by=["topic"]) == []


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    data = bytearray(build([(number * 86_400_000, None, b"v") for number in range(5)]) * 2)
    data[-1] ^= 1
    for target, partition_by in ((tmp_path / "out.parquet", []), (tmp_path, ["date"])):
        with pytest.raises(kbat.CrcError):
            kbat.write_parquet(kbat.scan(bytes(data), max_rows=2), target, partition_by=partition_by)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"compression": "brotli"}, "use none, snappy"),
        ({"compression": "zstd:99"}, "1 to 22"),
        ({"compression": "zstd:x"}, "unknown compression"),
        ({"partition_by": ["nothing"]}, "the columns are key, value, topic"),
        ({"partition_by": ["value"]}, "can't name a directory"),
    ],
)
def test_bad_options_say_what_there_is(tmp_path: Path, options: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        kbat.write_parquet(kbat.scan(LOG_DIR), tmp_path / "out", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_progress_is_told_and_what_it_raises_ends_the_work(tmp_path: Path) -> None:
    scan = kbat.scan([LOG_DIR] * 20, max_rows=50)
    calls: list[tuple[int, int]] = []
    for threads in (1, 2):
        calls.clear()
        (file,) = kbat.write_parquet(
            scan,
            tmp_path / f"{threads}.parquet",
            threads=threads,
            progress=lambda done, total: calls.append((done, total)),
        )
        assert pq.read_table(file.path).equals(scan.to_pyarrow())
        assert len(calls) > 2
        assert calls == sorted(calls)
        assert calls[-1][0] == calls[-1][1] > 0

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kbat.write_parquet(scan, tmp_path / "stopped.parquet", progress=stop)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.parquet", "2.parquet"]


def test_parquet_replaces_files_only_and_follows_links(tmp_path: Path) -> None:
    scan = kbat.scan(build([(0, b"k", b"v")]))
    pipe, real, link = tmp_path / "pipe", tmp_path / "real.parquet", tmp_path / "link.parquet"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="a device, a pipe or a socket, which would be replaced"):
        kbat.write_parquet(scan, pipe)
    assert pipe.is_fifo()
    real.touch()
    link.symlink_to(real)
    kbat.write_parquet(scan, link)
    assert link.is_symlink()
    assert pq.read_table(real).num_rows == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.parquet", "pipe", "real.parquet"]
