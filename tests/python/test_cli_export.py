"""`kbat export` and `kbat filter`: files of records, and partitions with only some records."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kbat
from command_line import CORPUS, LOG_DIR, copy_of, json_of, lines_of, run
from partitions import Log

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 3135


def records_of(place: Path) -> list[kbat.Record]:
    return [record for segment in kbat.PartitionLog(place).segments for batch in segment.batches() for record in batch]


@pytest.mark.parametrize("command", ["export", "filter"])
def test_help_has_an_example_json_fields_and_exit_codes(command: str) -> None:
    text = " ".join(run(command, "--help").stdout.split())
    for part in (f"kbat {command}", "Example", "JSON", "Exit codes: 0"):
        assert part in text


@pytest.mark.parametrize("command", ["cat", "export"])
def test_help_shows_that_csv_does_not_distinguish_bytes_from_text(command: str) -> None:
    assert "a text that begins with 0x looks the same" in " ".join(run(command, "--help").stdout.split()).lower()


@pytest.mark.parametrize("out", [("out.parquet",), ("archive", "--partition-by", "topic"), ("orders-0/a.csv",)])
def test_a_log_that_is_read_is_not_written(out: tuple[str, ...], tmp_path: Path) -> None:
    log, other = tmp_path / "log", tmp_path / "other"
    for directory in (log, other):
        copy_of("codec-lz4", directory / "orders-0")
    name, *options = out
    done = run("export", other / "orders-0", log, log / name, *options, "--replicas", "longest")
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"the output directory is inside {log}, which is only read" in done.stderr
    assert not (log / name).exists()
    # a file beside it
    assert run("export", log, tmp_path / "log.parquet").exit_code == 0


def test_parquet_and_arrow_have_the_columns_of_a_scan(tmp_path: Path) -> None:
    expected = kbat.scan(LOG_DIR).to_pyarrow()
    report = json_of("export", LOG_DIR, tmp_path / "a.parquet", "--compression", "zstd:3")
    assert (report["format"], report["records"], report["paths"]) == ("parquet", RECORDS, [str(LOG_DIR)])
    size = (tmp_path / "a.parquet").stat().st_size
    assert report["files"] == [{"path": str(tmp_path / "a.parquet"), "records": RECORDS, "bytes": size}]
    assert pq.read_table(tmp_path / "a.parquet").equals(expected.combine_chunks(), check_metadata=False)
    for codec in ((), ("--compression", "lz4"), ("--compression", "none")):
        path = tmp_path / f"{codec[-1:]}.arrow"
        assert run("export", LOG_DIR, path, *codec, "--threads", 2).exit_code == 0
        assert pa.ipc.open_file(str(path)).read_all().equals(expected)


@pytest.mark.parametrize("threads", [1, 3])
def test_text_is_that_of_cat(threads: int, tmp_path: Path) -> None:
    for name, options in (("a.jsonl", ()), ("a.csv", ("-f", "csv"))):
        done = run("export", LOG_DIR, tmp_path / name, "--threads", threads)
        size = (tmp_path / name).stat().st_size
        assert f"{tmp_path / name}: 1 file, {RECORDS:,} records, " in done.stdout
        assert (tmp_path / name).read_bytes() == run("cat", LOG_DIR, *options).stdout_bytes
        assert size > 100_000


def test_parts_of_a_segment_are_written_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbat.cli.record_files._PART_LEN", 10_000)
    log = Log(tmp_path / "t-0")
    for _ in range(50):
        log.batch(*[(b"key", b"x" * 100)] * 50)
    log.write()
    assert len(kbat.split(log.directory, 10_000)) > 10
    assert run("export", log.directory, tmp_path / "a.jsonl", "--threads", 4, "--start-offset", 700).exit_code == 0
    offsets = [json.loads(line)["offset"] for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert offsets == list(range(700, 2500))


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv", "jsonl"])
def test_a_directory_has_a_file_for_each_partition(form: str, tmp_path: Path) -> None:
    copy_of("codec-lz4", tmp_path / "data" / "a-0")
    copy_of("codec-none", tmp_path / "data" / "a-11")
    copy_of("txn-simple", tmp_path / "data" / "b.c-0")
    out = tmp_path / "out"
    report = json_of("export", tmp_path / "data", out, "--partition-by", "topic,partition", "--format", form)
    names = [f"topic={topic}/partition={number}" for topic, number in (("a", 0), ("a", 11), ("b.c", 0))]
    assert [one["path"] for one in report["files"]] == [str(out / name / f"part-0.{form}") for name in names]
    assert [one["records"] for one in report["files"]] == [220, 220, 17]
    table = run("export", tmp_path / "data", tmp_path / "two", "--partition-by", "topic", "--format", form).stdout
    assert [path.name for path in sorted((tmp_path / "two").iterdir())] == ["topic=a", "topic=b.c"]
    assert "2 files, 457 records" in table
    if form in {"parquet", "jsonl"}:
        source = out if form == "parquet" else out / names[0] / "part-0.jsonl"
        assert run("import", source, tmp_path / "again", "--log-directory").exit_code == 0
        assert lines_of(tmp_path / "again", "--topic", "a", "--partition", 0) == lines_of(tmp_path / "data" / "a-0")


def test_days_are_directories_of_parquet(tmp_path: Path) -> None:
    report = json_of("export", LOG_DIR / "txn-simple-0", tmp_path / "out", "--partition-by", "date,hour")
    assert [one["path"] for one in report["files"]] == [
        str(tmp_path / "out" / "date=2023-11-14" / "hour=22" / "part-0.parquet")
    ]


def test_bounds_choose_what_is_exported(tmp_path: Path) -> None:
    bounds = ("--start-offset", 3, "--end-offset", 9, "--isolation", "read_committed", "--topic", "txn-*")
    for name in ("a.jsonl", "a.csv", "a.arrow", "a.parquet"):
        assert run("export", LOG_DIR, tmp_path / name, *bounds).exit_code == 0
    expected = [(row["topic"], row["offset"]) for row in lines_of(LOG_DIR, *bounds)]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text(), newline="")))
    assert [(row["topic"], int(row["offset"])) for row in rows] == expected
    tables = (pq.read_table(tmp_path / "a.parquet"), pa.ipc.open_file(str(tmp_path / "a.arrow")).read_all())
    for table in tables:
        assert list(zip(table["topic"].to_pylist(), table["offset"].to_pylist(), strict=True)) == expected
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == len(expected) > 0


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv", "jsonl"])
def test_corruption_leaves_no_file_or_is_skipped(form: str, tmp_path: Path) -> None:
    out = tmp_path / f"out.{form}"
    done = run("export", CORPUS / "crash-flip", out)
    assert (done.exit_code, done.stdout, list(tmp_path.iterdir())) == (1, "", [])
    assert "checksum mismatch" in done.stderr
    assert done.stderr.endswith("--on-corrupt skip continues after it\n")
    report = json_of("export", CORPUS / "crash-flip", out, "--on-corrupt", "skip")
    assert (report["records"], report["bytes_lost"], report["batches_skipped"]) == (144, 1213, 1)


@pytest.mark.parametrize(
    ("out", "options", "reason"),
    [
        ("out", (), "has no ending that names a format, such as .parquet: set --format"),
        ("out", ("--format", "xml"), "'xml' is not one of parquet, arrow, csv, jsonl"),
        ("out", ("--partition-by", "day"), "'day' is not one of topic, partition, date, hour"),
        ("out", ("--partition-by", "topic,topic"), "--partition-by has a name twice"),
        ("out", ("--partition-by", "date", "--format", "csv"), "date and hour need --format parquet, not csv"),
        ("out.csv", ("--compression", "zstd"), "csv has no codec"),
        ("out.arrow", ("--compression", "gzip"), "--compression gzip is not possible: use none, lz4, zstd"),
        ("out.parquet", ("--compression", "brotli"), "brotli"),
        ("out.parquet", ("--threads", 0), "the smallest value is 1"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    out: str, options: tuple[object, ...], reason: str, tmp_path: Path
) -> None:
    done = run("export", LOG_DIR, out if "://" in out else tmp_path / out, *options)
    assert (done.exit_code, done.stdout, reason in done.stderr) == (2, "", True), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_export_does_not_overwrite(tmp_path: Path) -> None:
    for name in ("a.parquet", "a.csv"):
        (tmp_path / name).write_text("mine")
        done = run("export", LOG_DIR, tmp_path / name)
        assert (done.exit_code, (tmp_path / name).read_text()) == (2, "mine")
        assert "the output file exists: name one that does not exist yet" in done.stderr
    (tmp_path / "empty").mkdir()
    done = run("export", tmp_path / "empty", tmp_path / "b.csv")
    assert (done.exit_code, done.stderr.startswith("kbat: warning: ")) == (1, True)
    assert not (tmp_path / "b.csv").exists()


def test_filter_keeps_or_drops_what_matches(tmp_path: Path) -> None:
    log = Log(tmp_path / "data" / "t-0")
    log.batch((b"alice", b"1"), (b"bob", b"2"), codec="zstd")
    log.batch((b"bob", b"3"), (None, b"4"))
    log.batch((b"alice", None))
    log.write()
    cases: list[tuple[tuple[object, ...], list[int]]] = [
        (("--key", "alice"), [0, 4]),
        (("--key", "alice", "--invert-match"), [1, 2, 3]),
        (("--key", "a.*|bo", "-v"), [1, 2, 3]),
        (("--grep", "[24]"), [1, 3]),
        (("--header", "at=0"), [0, 2, 4]),
        (("--start-offset", 1, "--end-offset", 4), [1, 2, 3]),
        (("--start-offset", 1, "--key", "bob"), [1, 2]),
        (("--key", "nobody"), []),
        (("--key", "nobody", "-v"), [0, 1, 2, 3, 4]),
    ]
    for index, (conditions, expected) in enumerate(cases):
        out = tmp_path / f"out-{index}"
        (report,) = json_of("filter", log.directory, out, *conditions)["partitions"]
        assert [record.offset for record in records_of(out)] == expected, conditions
        assert (report["dropped_records"], report["end_offset"]) == (5 - len(expected), 5)
        assert run("verify", out).exit_code == 0
    before = {record.offset: record for record in records_of(log.directory)}
    assert all(record == before[record.offset] for record in records_of(tmp_path / "out-0"))


@pytest.mark.parametrize("end", ["nobody", "alice"])
def test_inverted_filter_reports_that_no_record_matches_all_conditions(end: str, tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"alice", b"1"), (b"bob", b"2"))
    log.write()
    done = run("filter", log.directory, tmp_path / "out", "--key", end, "--grep", "1", "-v")
    assert done.exit_code == 0
    assert ("no record matches all 2 conditions, so none was dropped" in done.stderr) == (end == "nobody")


def test_filter_drops_keys_that_are_not_text(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"\xff\xfe", b"1"), (b"bob", b"2"))
    log.write()
    for number, pattern in enumerate((r"(?-u:\xff\xfe)", r"(?s-u:.*\xfe)")):
        out = tmp_path / f"out-{number}"
        assert run("filter", log.directory, out, "--key", pattern, "-v").exit_code == 0
        assert [record.key for record in records_of(out)] == [b"bob"]
    kbat.filter(log.directory, tmp_path / "python", drop_keys=[b"\xff\xfe"])
    assert [record.key for record in records_of(tmp_path / "python")] == [b"bob"]


def test_filter_finds_records_whatever_their_offsets(tmp_path: Path) -> None:
    place = copy_of("segments-default-interval", tmp_path / "orders-0")
    log = place / f"{310:020}.log"
    data = bytearray(log.read_bytes())
    (second, *_) = [batch.position for batch in kbat.Segment(log).batches()][1:]
    data[second + 6] ^= 4  # the base offset, which no checksum includes
    log.write_bytes(data)
    key = b"omicron"
    matching = [record for record in records_of(place) if record.key == key]
    assert len(matching) == 9
    for options, dropped in (((), 1100 - len(matching)), (("-v",), len(matching))):
        out = tmp_path / f"out{''.join(options)}"
        (report,) = json_of("filter", place, out, "--key", key.decode(), "--fixed-strings", *options)["partitions"]
        assert report["dropped_records"] == dropped
        assert {record.key == key for record in records_of(out)} == {not options}


def test_filter_writes_all_partitions_of_a_directory(tmp_path: Path) -> None:
    times = ("--start-time", "2023-11-14T22:13:20.010Z", "--end-time", "2023-11-14T22:13:20.040Z")
    done = run("filter", LOG_DIR, tmp_path / "out", "--topic", "txn-*", *times)
    assert done.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["txn-lz4-0", "txn-simple-0"]
    for name in ("txn-lz4-0", "txn-simple-0"):
        assert lines_of(tmp_path / "out" / name) == lines_of(LOG_DIR / name, *times)
    assert "2 partitions: " in done.stdout


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((), "no condition: set --key, --grep, --header, or a range of offsets or times"),
        (("--invert-match",), "no condition"),
        (("--key", "("), "is not a regular expression: unclosed group"),
        (("--start-time", "today"), "is not a time"),
    ],
)
def test_conditions_that_are_wrong_are_refused(options: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    done = run("filter", LOG_DIR / "codec-lz4-0", tmp_path / "out", *options)
    assert (done.exit_code, done.stdout, reason in done.stderr) == (2, "", True), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("output_format", ["parquet", "jsonl", "csv", "arrow"])
@pytest.mark.parametrize("options", [(), ("--partition-by", "topic")], ids=["one", "several"])
def test_export_without_a_matching_record_succeeds(
    output_format: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run("export", LOG_DIR, out, "--format", output_format, *options, "--start-time", "2100-01-01T00:00:00Z")
    assert done.exit_code == 0, done.stderr
    assert out.exists()
