"""`kbat import`: what `kbat cat` printed or `kbat.write_parquet` wrote becomes a log again."""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import kbat
from command_line import CORPUS, LOG, LOG_DIR, content, environment, json_of, lines_of, run
from kbat.cli import partition_writer
from kbat.cli.app import app
from kbat.cli.json_records import JsonLines

if TYPE_CHECKING:
    from pathlib import Path

RECORD = {"offset": 5, "timestamp": 7, "timestamp_type": "CreateTime", "key": "k", "value": "v", "headers": []}


def jsonl(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def records_of(place: Path) -> list[kbat.Record]:
    return [record for segment in kbat.PartitionLog(place).segments for batch in segment.batches() for record in batch]


@pytest.mark.parametrize(("files", "partitions"), [(1024, 128), (8192, 1000)])
def test_as_many_partitions_are_open_as_files_allow(files: int, partitions: int) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files > limits[1] >= 0:
        pytest.skip("the system allows fewer open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, limits[1]))
    try:
        assert partition_writer.max_open() == partitions
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_help_has_an_example_json_fields_and_exit_codes() -> None:
    text = " ".join(run("import", "--help").stdout.split())
    for part in ("kbat import", "Example", "JSON", "Exit codes: 0"):
        assert part in text


@pytest.mark.parametrize("number", [0, 2])
def test_seconds_are_refused_as_timestamps(number: int, tmp_path: Path) -> None:
    rows = [{"value": '"timestamp": 1700000000', "timestamp": 5} for _ in range(3)]
    rows[number]["timestamp"] = 1_700_000_000
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    reason = "timestamp 1700000000 looks like seconds since the epoch: write milliseconds, 1700000000000"
    for source, where in (
        (jsonl(tmp_path / "rows.jsonl", *rows), f", line {number + 1}"),
        (tmp_path / "rows.parquet", f": row {number + 1}"),
    ):
        done = run("import", source, tmp_path / "out")
        assert (done.exit_code, done.stderr) == (2, f"kbat: {source}{where}: {reason}\n")
        assert not (tmp_path / "out").exists()
    rows[number]["timestamp"] = 1_700_000_000_000
    assert run("import", jsonl(tmp_path / "rows.jsonl", *rows), tmp_path / "out").exit_code == 0


def test_a_log_whose_timestamps_are_seconds_is_the_same_again(tmp_path: Path) -> None:
    rows = [{"offset": offset, "value": "v", "timestamp": 1_700_000_000 + offset} for offset in range(3)]
    assert run("import", jsonl(tmp_path / "rows.jsonl", *rows), tmp_path / "a-0").exit_code == 0
    (tmp_path / "again.jsonl").write_text(run("cat", tmp_path / "a-0").stdout)
    assert run("import", tmp_path / "again.jsonl", tmp_path / "b-0").exit_code == 0
    for place in ("a-0", "b-0"):
        lines = run("cat", tmp_path / place).stdout.splitlines()
        assert [json.loads(line)["timestamp"] for line in lines] == [row["timestamp"] for row in rows]


def test_csv_and_arrow_are_refused_by_name(tmp_path: Path) -> None:
    for name, shown in (("a.csv", "CSV"), ("a.arrow", "Arrow")):
        (tmp_path / name).write_text("key,value\n")
        done = run("import", tmp_path / name, tmp_path / "out")
        assert (done.exit_code, done.stderr) == (
            2,
            f"kbat: {shown} can't be imported: export to Parquet or JSON lines\n",
        )


def test_json_lines_of_a_log_directory_are_the_same_again(tmp_path: Path) -> None:
    """Compacted logs, transactions, all codecs, times of appends, and message formats 0 and 1."""
    printed = run("cat", LOG_DIR).stdout
    (tmp_path / "all.jsonl").write_text(printed, encoding="utf-8")
    report = json_of("import", tmp_path / "all.jsonl", tmp_path / "out", "--log-directory", "--compression", "lz4")
    assert run("cat", tmp_path / "out").stdout == printed
    assert (report["format"], report["records"]) == ("jsonl", printed.count("\n"))
    for one in report["partitions"]:
        log = kbat.PartitionLog(one["path"])
        assert one == {
            "topic": log.topic,
            "partition": log.partition,
            "path": str(tmp_path / "out" / f"{log.topic}-{log.partition}"),
            "records": len(records_of(one["path"])),
            "start_offset": log.start_offset,
            "end_offset": log.end_offset,
            "segments": 1,
            "bytes": sum(segment.size for segment in log.segments),
        }
        assert not [found for found in kbat.verify(one["path"]).findings if found.severity != "info"]


@pytest.mark.parametrize("case", ["codec-none", "compacted", "large-values", "out-of-order", "txn-simple", "big-batch"])
def test_records_of_real_brokers_are_the_same_again(case: str, tmp_path: Path) -> None:
    printed = run("cat", CORPUS / case).stdout
    done = CliRunner().invoke(app, ["import", "-", str(tmp_path / case)], input=printed.encode())
    assert done.exit_code == 0, done.stderr
    # the directory's name has no partition
    lines = [json.loads(line) for line in printed.splitlines()]
    assert lines_of(tmp_path / case) == lines


def test_a_log_of_the_writer_has_the_same_bytes_again(tmp_path: Path) -> None:
    with kbat.LogWriter(tmp_path / "t-3", start_offset=40) as writer:
        for number in range(5000):
            key = None if number % 7 == 0 else b"key-%d" % number
            value = None if number % 5 == 0 else bytes(number % 256 for number in range(number % 300))
            headers = {"trace": b"\xff%d" % number} if number % 3 == 0 else None
            writer.append(key, value, timestamp=1_700_000_000_000 + number * 31 % 1000, headers=headers)
    piped = f"{sys.executable} -m kbat cat {tmp_path}/t-3 | {sys.executable} -m kbat import - {tmp_path}/again/t-3"
    subprocess.run(piped, shell=True, check=True, capture_output=True, env=environment())  # noqa: S602 - two commands
    before, after = content(tmp_path / "t-3"), content(tmp_path / "again" / "t-3")
    assert len(before[f"{40:020}.log"]) > 100_000
    assert after == before


@pytest.mark.parametrize("partition_by", [[], ["topic", "partition"]], ids=["a file", "directories"])
def test_parquet_files_are_the_same_again(partition_by: list[str], tmp_path: Path) -> None:
    kbat.write_parquet(kbat.scan(LOG_DIR), tmp_path / "records.parquet", partition_by=partition_by)
    report = json_of("import", tmp_path / "records.parquet", tmp_path / "out", "--log-directory")
    assert report["format"] == "parquet"
    assert run("cat", tmp_path / "out").stdout == run("cat", LOG_DIR).stdout


def test_parquet_of_other_programs_needs_only_values(tmp_path: Path) -> None:
    table = pa.table({"value": ["a", None, "c"], "timestamp": pa.array([1, 2, None], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "a.parquet")
    assert run("import", tmp_path / "a.parquet", tmp_path / "t-0").exit_code == 0
    rows = lines_of(tmp_path / "t-0")
    assert [(row["offset"], row["key"], row["value"], row["timestamp"]) for row in rows] == [
        (0, None, "a", 0),
        (1, None, None, 0),
        (2, None, "c", None),
    ]
    pq.write_table(table.drop_columns(["value"]), tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 and no more")
    pq.write_table(table.drop_columns(["timestamp"]), tmp_path / "d.parquet")
    for name, reason in (
        ("b", "has no column value; its columns are timestamp"),
        ("c", "can't be read as Parquet"),
        ("d", "has no column timestamp; its columns are value; add it, with nulls for records without a timestamp"),
    ):
        done = run("import", tmp_path / f"{name}.parquet", tmp_path / "no")
        assert (done.exit_code, reason in done.stderr, done.stderr.count("\n")) == (2, True, 1), done.stderr
    (tmp_path / "empty").mkdir()
    assert "contains no Parquet file" in run("import", tmp_path / "empty", tmp_path / "no").stderr


def test_gaps_and_times_of_appends_share_batches(tmp_path: Path) -> None:
    kinds = [
        (5, 100, "CreateTime"),
        (6, 90, "CreateTime"),
        (9, 80, "CreateTime"),
        (20, 70, "CreateTime"),
        (21, 60, "LogAppendTime"),
        (22, 60, "LogAppendTime"),
        (23, 61, "LogAppendTime"),
        (24, None, None),
        (1 << 40, 50, "CreateTime"),
    ]
    rows = [{**RECORD, "offset": offset, "timestamp": time, "timestamp_type": kind} for offset, time, kind in kinds]
    assert run("import", jsonl(tmp_path / "in", *rows), tmp_path / "t-0").exit_code == 0
    found = [
        (batch.magic, batch.timestamp_type, [record.offset for record in batch])
        for segment in kbat.PartitionLog(tmp_path / "t-0").segments
        for batch in segment.batches()
    ]
    assert found == [
        (2, "CreateTime", [5, 6]),
        (2, "CreateTime", [9, 20]),
        (2, "LogAppendTime", [21, 22]),
        (2, "LogAppendTime", [23]),
        (0, None, [24]),
        (2, "CreateTime", [1 << 40]),
    ]
    read = [(row["offset"], row["timestamp"], row["timestamp_type"]) for row in lines_of(tmp_path / "t-0")]
    assert read == kinds


def test_fields_that_are_missing_have_defaults(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    lines = [
        '{"value": "a"}',
        "",
        '{"key": {"base64": "/w=="}, "value": null, "offset": 7, "more": 1}',
        '{"key": "c", "value": null}',
    ]
    path.write_text("\n".join(lines))
    assert run("import", path, tmp_path / "t-0").exit_code == 0
    assert [(one.offset, one.timestamp, one.key, one.value) for one in records_of(tmp_path / "t-0")] == [
        (0, -1, None, b"a"),
        (7, -1, b"\xff", None),
        (8, -1, b"c", None),
    ]


@pytest.mark.parametrize("before", [0, 1], ids=["the first line", "a later line"])
@pytest.mark.parametrize(
    ("timestamp", "timestamp_type", "expected"),
    [
        (5, None, (2, 5, "CreateTime")),
        (5, "LogAppendTime", (2, 5, "LogAppendTime")),
        (None, None, (0, None, None)),
        (-1, None, (0, None, None)),
        (None, "CreateTime", (2, None, "CreateTime")),
    ],
)
def test_a_timestamp_without_a_type_is_kept(
    before: int, timestamp: int | None, timestamp_type: str | None, expected: tuple[object, ...], tmp_path: Path
) -> None:
    row = {"value": "a", "timestamp": timestamp, "timestamp_type": timestamp_type}
    path = jsonl(tmp_path / "in", *[{"value": "b"}] * before, row)
    assert run("import", path, tmp_path / "t-0").exit_code == 0
    (*_, batch) = kbat.PartitionLog(tmp_path / "t-0").segments[0].batches()
    (*_, line) = lines_of(tmp_path / "t-0")
    assert (batch.magic, line["timestamp"], line["timestamp_type"]) == expected


def test_a_byte_order_mark_before_the_first_line_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b'\xef\xbb\xbf{"value": "a"}\n{"value": "b"}\n')
    assert run("import", tmp_path / "in", tmp_path / "t-0").exit_code == 0
    assert [one.value for one in records_of(tmp_path / "t-0")] == [b"a", b"b"]


TIMESTAMPS = pa.array([5, 6, None], pa.timestamp("ms"))


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["CreateTime", "LogAppendTime", None], [("CreateTime", 5), ("LogAppendTime", 6), (None, None)]),
        (["CreateTime", None, "CreateTime"], [("CreateTime", 5), ("CreateTime", 6), ("CreateTime", None)]),
        ([0, 1, -1], [("CreateTime", 5), ("LogAppendTime", 6), (None, None)]),
        ([None, 1, None], [("CreateTime", 5), ("LogAppendTime", 6), ("CreateTime", None)]),
        (
            pa.array(["CreateTime", "LogAppendTime", None]).dictionary_encode(),
            [("CreateTime", 5), ("LogAppendTime", 6), (None, None)],
        ),
    ],
    ids=["texts", "texts of one type", "numbers", "numbers and nulls", "a dictionary"],
)
def test_timestamp_types_of_parquet_are_numbers_or_texts(
    types: list[Any] | pa.Array[Any], expected: list[object], tmp_path: Path
) -> None:
    table = pa.table({"value": ["a", "b", "c"], "timestamp": TIMESTAMPS, "timestamp_type": types})
    pq.write_table(table, tmp_path / "a.parquet")
    done = run("import", tmp_path / "a.parquet", tmp_path / "t-0")
    assert done.exit_code == 0, done.stderr
    assert [(row["timestamp_type"], row["timestamp"]) for row in lines_of(tmp_path / "t-0")] == expected


@pytest.mark.parametrize(
    ("types", "reason"),
    [
        ([0, 5, 0], "row 2: timestamp_type is 5; it must be 0 or"),
        (["CreateTime", "x", None], "row 2: timestamp_type is 'x'; it must be 0 or"),
        ([0, -1, 0], "row 2: timestamp_type is -1, which is for records without a timestamp, but the timestamp is 6"),
        ([[0], [1], [0]], "row 1: timestamp_type is [0]; it must be 0 or"),
    ],
    ids=["a number", "a text", "no type", "lists"],
)
def test_other_timestamp_types_of_parquet_are_refused(
    types: list[Any] | pa.Array[Any], reason: str, tmp_path: Path
) -> None:
    table = pa.table({"value": ["a", "b", "c"], "timestamp": TIMESTAMPS, "timestamp_type": types})
    pq.write_table(table, tmp_path / "a.parquet")
    done = run("import", tmp_path / "a.parquet", tmp_path / "t-0")
    assert (done.exit_code, done.stderr.count("\n"), (tmp_path / "t-0").exists()) == (2, 1, False), done.stderr
    assert reason in done.stderr


def test_lines_about_corruption_are_counted(tmp_path: Path) -> None:
    printed = run("cat", CORPUS / "crash-flip", "--on-corrupt", "report").stdout
    (tmp_path / "in").write_text(printed, encoding="utf-8")
    done = run("import", tmp_path / "in", tmp_path / "t-0")
    assert done.exit_code == 0
    assert "1 line of" in done.stderr
    assert "about corruption: the records there were not exported, and are missing" in done.stderr
    assert len(records_of(tmp_path / "t-0")) == 144


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"not json", "it is not JSON: expecting value at character 1"),
        (b"[1]", "it is not a JSON object, such as kbat cat prints"),
        (b'{"value": "\xff"}', "it is not UTF-8"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"a": 1}', 'it has no value, but ["a"]'),
        (b'{"Value": "x", "key": "a"}', 'it has no value, but ["Value", "key"]'),
        (b'\xef\xbb\xbf{"value": "x"}', "it is not JSON"),
        (b'{"value": {"a": 1}}', 'value is {"a": 1}; it must be text, null or {"base64"'),
        (b'{"value": 5}', "value is 5; it must be text"),
        (b'{"value": null, "key": {"base64": "?"}}', "key has invalid base64"),
        (b'{"value": null, "key": "\\ud800"}', "key has half of a surrogate pair"),
        (b'{"value": "", "offset": -1}', "offset is -1; it must be null or a whole number from 0 to"),
        (b'{"value": "", "offset": true}', "offset is true"),
        (b'{"value": "", "offset": 9223372036854775807}', "it must be null or a whole number from 0 to"),
        (b'{"value": "", "timestamp": 1e3}', "timestamp is 1000.0"),
        (b'{"value": "", "timestamp": -2}', "timestamp"),
        (b'{"value": "", "timestamp_type": "Other"}', 'timestamp_type is "Other"; it must be null, "CreateTime"'),
        (b'{"value": "", "partition": "0"}', 'partition is "0"'),
        (b'{"value": "", "topic": 1}', "topic is 1; it must be text or null"),
        (b'{"value": "", "headers": {"a": "b"}}', "it must be a list of pairs of name and value"),
        (b'{"value": "", "headers": [["a"]]}', "it must be a list of pairs of name and value"),
        (b'{"value": "", "headers": [["a", 1]]}', "the value of a header is 1"),
        (b'{"value": "", "headers": [["\\udfff", null]]}', "the name of a header has half of a surrogate pair"),
        (b'{"value": "", "offset": 4}', "offset 4 is not above the one before it, 5"),
        (b'{"value": "", "timestamp_type": null, "headers": [["a", null]]}', "header"),
        (
            b'{"value": "", "topic": "other"}',
            "several partitions, such as one without a topic and other without a partition: choose one with --topic",
        ),
    ],
    ids=lambda value: value.decode(errors="replace")[:50] if isinstance(value, bytes) else "",
)
def test_a_line_that_is_wrong_is_named_and_nothing_is_written(line: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(json.dumps(RECORD).encode() + b"\n" + line + b"\n")
    done = run("import", tmp_path / "in", tmp_path / "out" / "t-0")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith(f"kbat: {tmp_path / 'in'}, line 2: ")
    assert reason in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_partitions_are_chosen_or_written_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # fewer open files than partitions
    monkeypatch.setattr(partition_writer, "_MAX_OPEN", 2)
    rows = [
        {**RECORD, "topic": topic, "partition": number, "offset": offset}
        for offset in range(3)
        for topic in ("a", "b")
        for number in range(3)
    ]
    path = jsonl(tmp_path / "in", *rows)
    assert run("import", path, tmp_path / "b-2", "--topic", "b", "--partition", 2).exit_code == 0
    assert [one.offset for one in records_of(tmp_path / "b-2")] == [0, 1, 2]
    report = json_of("import", path, tmp_path / "out", "--log-directory", "--topic", "a")
    assert [(one["partition"], one["records"]) for one in report["partitions"]] == [(0, 3), (1, 3), (2, 3)]
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["a-0", "a-1", "a-2"]
    nothing = run("import", path, tmp_path / "no", "--topic", "c")
    assert (nothing.exit_code, "contains no record of that topic and partition" in nothing.stderr) == (1, True)
    for topic in ("../evil", ".", "", "a/b", "a" * 250):
        jsonl(path, {**RECORD, "topic": topic, "partition": 0})
        done = run("import", path, tmp_path / "x", "--log-directory")
        assert (done.exit_code, "is not the name of a topic" in done.stderr) == (2, True), done.stderr
    done = run("import", jsonl(path, RECORD), tmp_path / "x", "--log-directory")
    assert "omit --log-directory to write one partition" in done.stderr
    assert not (tmp_path / "x").exists()


def test_options_of_the_log_are_those_of_the_writer(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "in", *({**RECORD, "offset": offset, "value": "x" * 100} for offset in range(1000)))
    options = ("--compression", "zstd", "--level", 1, "--batch-bytes", "1KiB", "--segment-bytes", "4KiB")
    (report,) = json_of("import", path, tmp_path / "t-0", *options)["partitions"]
    assert report["segments"] > 1
    assert {batch.compression for batch in kbat.read_batches(tmp_path / "t-0" / LOG)} == {"zstd"}
    for wrong in (("--level", 99), ("--compression", "brotli"), ("--batch-bytes", "0"), ("--segment-bytes", "9" * 20)):
        done = run("import", path, tmp_path / "no", *wrong)
        assert (done.exit_code, done.stdout) == (2, ""), wrong
    done = run("import", path, tmp_path / "t-0")
    assert "the output directory is not empty: name one that does not exist yet" in done.stderr
    assert run("import", tmp_path / "none", tmp_path / "no").exit_code == 2
    assert not (tmp_path / "no").exists()


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    reader = JsonLines(io.BytesIO(data), "input")
    lines = [line for piece in reader.pieces() for line in piece.split(b"\n")]
    assert b"\n".join(lines) == data
    for number, line in enumerate(lines, 1):
        try:
            reader.row(line)
        except ValueError as error:
            assert str(error).startswith(f"input, line {number}: ")  # noqa: PT017 - most inputs fail, some do not
