"""`kbat import` of Parquet files of other programs: the same rules for records of every timestamp type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kbat
from command_line import run

if TYPE_CHECKING:
    from pathlib import Path

TIME = 1_700_000_000_000
TYPES = [0, 1, None]


def imported(path: Path, columns: dict[str, Any], *options: str) -> Any:  # noqa: ANN401 - the result of a command
    pq.write_table(pa.table(columns), path / "in.parquet")
    return run("import", path / "in.parquet", path / "out", *options)


def records(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = kbat.scan(path / "out").to_pyarrow().to_pylist()
    return rows


def one(kind: int | None, **columns: Any) -> dict[str, Any]:  # noqa: ANN401 - of any type
    types = {} if kind is None else {"timestamp_type": pa.array([kind], pa.int32())}
    return {"value": pa.array([b"v"]), "timestamp": pa.array([TIME]), **types, **columns}


HEADERS = {
    "in order": pa.array([[{"key": "name", "value": b"val"}]]),
    "other order": pa.array([[{"value": b"val", "key": "name"}]]),
    "text": pa.array([[{"key": "name", "value": "val"}]]),
    "bytes": pa.array([[{"key": b"name", "value": b"val"}]]),
    "three fields": pa.array([[{"key": "name", "value": b"val", "more": 1}]]),
    "other names": pa.array([[{"a": "name", "b": b"val"}]]),
    "map": pa.array([[("name", b"val")]], pa.map_(pa.string(), pa.binary())),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("form", HEADERS)
def test_headers_of_any_form_keep_name_and_value(form: str, kind: int | None, tmp_path: Path) -> None:
    done = imported(tmp_path, one(kind, headers=HEADERS[form]))
    assert done.exit_code == 0, done.stderr
    (row,) = records(tmp_path)
    assert row["headers"] == [{"key": "name", "value": b"val"}]


TIMES = {
    "ms": (pa.array([TIME + 1], pa.timestamp("ms", "UTC")), TIME + 1),
    "us": (pa.array([TIME * 1000 + 1999], pa.timestamp("us")), TIME + 1),
    "ns": (pa.array([TIME * 10**6 + 1], pa.timestamp("ns", "UTC")), TIME),
    "s": (pa.array([TIME // 1000], pa.timestamp("s")), TIME),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("unit", TIMES)
def test_times_are_rounded_down(unit: str, kind: int | None, tmp_path: Path) -> None:
    column, expected = TIMES[unit]
    done = imported(tmp_path, one(kind, timestamp=column))
    assert done.exit_code == 0, done.stderr
    assert kbat.scan(tmp_path / "out").to_pyarrow()["timestamp"].cast(pa.int64()).to_pylist() == [expected]


@pytest.mark.parametrize("kind", TYPES)
def test_offsets_may_have_32_bits(kind: int | None, tmp_path: Path) -> None:
    done = imported(tmp_path, one(kind, offset=pa.array([4], pa.int32())))
    assert done.exit_code == 0, done.stderr
    assert [row["offset"] for row in records(tmp_path)] == [4]


@pytest.mark.parametrize("values", [[3, 3], [3.0, 3.0], ["3", "3"]], ids=["int", "float", "text"])
def test_partition_is_a_whole_number(values: list[Any], tmp_path: Path) -> None:
    columns = {"value": [b"v", b"w"], "timestamp": [TIME] * 2, "topic": [b"a", b"a"], "partition": values}
    done = imported(tmp_path, columns, "--log-directory")
    assert done.exit_code == 0, done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a-3"]


@pytest.mark.parametrize("value", [-1, 1.5, 1 << 40, float("inf"), True, "x", b"1"], ids=str)
def test_partition_that_does_not_exist_in_kafka_is_refused(value: object, tmp_path: Path) -> None:
    columns = {"value": [b"v"], "timestamp": [TIME], "topic": ["a"], "partition": [value]}
    done = imported(tmp_path, columns, "--log-directory")
    assert done.exit_code == 2
    assert f"row 1: partition {value!r} is not a whole number from 0 to 2147483647" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("root", [".", "input"])
def test_files_of_an_unfinished_job_and_hidden_ones_are_skipped(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "_jobs" / "input"
    names = (
        "topic=_a/_partition=0/part-0.parquet", "_temporary/0/part-0.parquet", ".hidden/part-0.parquet",
        "topic=_a/_part-1.parquet", "topic=_a/.part-2.parquet", "topic=_a/_committed/part-3.parquet",
    )  # fmt: skip
    for number, name in enumerate(names):
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"value": [b"%d" % number], "timestamp": pa.array([TIME], pa.timestamp("ms"))}), path)
    monkeypatch.chdir(source if root == "." else source.parent)
    done = run("import", root, tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert [row["value"] for row in records(tmp_path)] == [b"0"]
    (source / names[0]).unlink()
    done = run("import", root, tmp_path / "none")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "contains no Parquet file; those whose names begin with _ or . are skipped" in done.stderr


def test_missing_partition_of_a_column_of_floats_is_none(tmp_path: Path) -> None:
    columns = {"value": [b"v"], "timestamp": [TIME], "topic": ["a"], "partition": [float("nan")]}
    done = imported(tmp_path, columns, "--log-directory")
    assert "a record has no topic or no partition" in done.stderr
