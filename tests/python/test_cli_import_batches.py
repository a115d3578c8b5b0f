"""`kbat cat --batches | kbat import`: batches with their own fields, and the same bytes if nothing is compressed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import kbat
from command_line import CORPUS, LOG, LOG_DIR, json_of, run
from data import DATA
from growing_log import GrowingLog
from kbat.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

LEGACY = DATA / "corpus-legacy"
# Produce requests have offsets that repeat, and corruption is an error.
CASES = sorted(
    place
    for root in (CORPUS, LOG_DIR, LEGACY)
    for place in root.iterdir()
    if next(place.glob(f"{20 * '[0-9]'}.log"), None) is not None
    and "-wire" not in place.name
    and place.name != "crash-flip"
)
# Logs without any record. Batches without records are in `compacted-empty-batches`.
EMPTY = {"empty", "retention-all"}
# The first segment of a compacted log of Kafka 2.8.2 has an offset above those of the segments after it.
OUT_OF_ORDER = "k282-compacted-mixed-earlier"
# The client wrote 0 for the largest timestamp of some compressed messages.
WITHOUT_LARGEST_TIMESTAMP = "k0100-kp202-lz4"
FIELDS = (
    "base_offset",
    "last_offset",
    "magic",
    "compression",
    "timestamp_type",
    "partition_leader_epoch",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "is_transactional",
    "is_control",
    "delete_horizon_ms",
    "record_count",
)
FIRST = {
    "base_offset": 5,
    "last_offset": 9,
    "magic": 2,
    "attributes": 0,
    "partition_leader_epoch": 3,
    "base_timestamp": 1000,
    "max_timestamp": 2000,
    "producer_id": 7,
    "producer_epoch": 1,
    "base_sequence": 4,
}
RECORD = {"offset": 6, "timestamp": 1500, "timestamp_type": "CreateTime", "key": "k", "value": "v", "headers": []}


def stored(place: Path) -> list[tuple[bytes, kbat.Batch]]:
    """The bytes of every batch of a partition, and the batch."""
    found = []
    for log in sorted(place.glob("0*.log")):
        data = log.read_bytes()
        found += [(data[one.position : one.position + one.size], one) for one in kbat.read_batches(log)]
    return found


def imported(lines: bytes, out: Path, *options: str) -> Any:  # noqa: ANN401 - a result of typer
    return CliRunner().invoke(app, ["import", "-", str(out), *options], input=lines)


def refused(out: Path, *rows: dict[str, Any]) -> str:
    done = imported("".join(f"{json.dumps(row)}\n" for row in rows).encode(), out)
    assert (done.exit_code, out.exists()) == (2, False)
    assert done.stderr.count("\n") == 1
    return str(done.stderr)


@pytest.mark.parametrize(
    "case", [one for one in CASES if one.name not in {*EMPTY, OUT_OF_ORDER}], ids=lambda one: one.name
)
def test_batches_of_a_log_are_the_same_again(case: Path, tmp_path: Path) -> None:
    printed = run("cat", case, "--batches")
    assert printed.exit_code == 0, printed.stderr
    done = imported(printed.stdout_bytes, tmp_path / "copy")
    assert done.exit_code == 0, done.stderr
    before, after = stored(case), stored(tmp_path / "copy")
    for (data, was), (written, now) in zip(before, after, strict=True):
        if was.compression == "none":
            assert written == data, was
        for field in FIELDS:
            if (case.name, field) == (WITHOUT_LARGEST_TIMESTAMP, "max_timestamp") and was.compression != "none":
                assert was.max_timestamp in {0, now.max_timestamp} == {0, max(one.timestamp for one in now)}
            else:
                assert getattr(now, field) == getattr(was, field), (field, was)
    # the same lines, from directories whose names have no partition or another one
    if case.name == WITHOUT_LARGEST_TIMESTAMP:
        return
    again = run("cat", tmp_path / "copy", "--batches").stdout.splitlines()
    for new, old in zip(again, printed.stdout.splitlines(), strict=True):
        assert {**json.loads(new), "topic": 0, "partition": 0} == {**json.loads(old), "topic": 0, "partition": 0}


def test_offsets_out_of_order_are_refused(tmp_path: Path) -> None:
    done = imported(run("cat", LEGACY / OUT_OF_ORDER, "--batches").stdout_bytes, tmp_path / "copy")
    assert done.exit_code == 2
    assert "the standard input, line 3: base offset 91 is not above the offset before it, 852" in done.stderr


def test_most_cases_are_uncompressed_and_have_all_message_formats() -> None:
    kinds = {(one.magic, one.compression == "none") for case in CASES for _, one in stored(case)}
    assert kinds >= {(magic, is_plain) for magic in (0, 1, 2) for is_plain in (True, False)}


@pytest.mark.parametrize("name", sorted(EMPTY))
def test_a_log_without_batches_has_no_lines(name: str) -> None:
    done = run("cat", CORPUS / name, "--batches")
    assert (done.exit_code, done.stdout) == (0, "")


def test_lines_of_batches_have_the_stored_fields() -> None:
    lines = [json.loads(line) for line in run("cat", LOG_DIR / "txn-simple-0", "--batches").stdout.splitlines()]
    rows = [line for line in lines if "batch" in line]
    batches = [batch for _, batch in stored(LOG_DIR / "txn-simple-0")]
    assert len(rows) == len(batches)
    for row, batch in zip(rows, batches, strict=True):
        assert row.keys() == {"topic", "partition", "batch"}
        assert (row["topic"], row["partition"]) == ("txn-simple", 0)
        fields = {name: getattr(batch, name) for name in row["batch"] if name != "attributes"}
        assert fields == {name: value for name, value in row["batch"].items() if name != "attributes"}
        assert row["batch"]["record_count"] == sum(1 for _ in batch)
        assert bool(row["batch"]["attributes"] & 0x10) == batch.is_transactional
        assert bool(row["batch"]["attributes"] & 0x20) == batch.is_control
    # markers are records of their batches, and nothing else is added
    kept = [line for line in lines if "batch" not in line]
    assert len(kept) == sum(batch.record_count or 0 for batch in batches)
    without = [json.loads(line) for line in run("cat", LOG_DIR / "txn-simple-0").stdout.splitlines()]
    assert [line for line in kept if line in without] == without


def test_producers_timestamps_are_kept_below_the_time_of_an_append() -> None:
    lines = run("cat", CORPUS / "log-append-time-none", "--batches").stdout.splitlines()
    records = [record for record in map(json.loads, lines) if "batch" not in record]
    assert all(record["timestamp_type"] == "LogAppendTime" for record in records)
    assert any(record["create_time"] != record["timestamp"] for record in records)
    assert "create_time" not in run("cat", CORPUS / "log-append-time-none").stdout


def test_batches_that_lost_records_keep_their_offsets(tmp_path: Path) -> None:
    """Batches whose records are all filtered are not printed; the others are written as compaction leaves them."""
    case = LOG_DIR / "codec-none-0"
    printed = run("cat", case, "--batches", "--start-offset", "30", "--key", ".*1.*")
    assert imported(printed.stdout_bytes, tmp_path / "copy").exit_code == 0
    kept = [json.loads(line)["offset"] for line in printed.stdout.splitlines() if '"batch"' not in line]
    ranges = {(one.base_offset, one.last_offset) for _, one in stored(case)}
    after = [batch for _, batch in stored(tmp_path / "copy")]
    assert 0 < len(after) <= len(ranges)
    assert {(one.base_offset, one.last_offset) for one in after} <= ranges
    assert [record.offset for batch in after for record in batch] == kept
    assert not [found for found in kbat.verify(tmp_path / "copy").findings if found.severity == "error"]


def test_records_after_a_batch_without_a_line_are_in_batches_of_the_writer(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"batch": FIRST}, RECORD, {**RECORD, "offset": 20}, {**RECORD, "offset": 21}]
    assert imported("".join(f"{json.dumps(row)}\n" for row in rows).encode(), tmp_path / "copy").exit_code == 0
    first, second = (batch for _, batch in stored(tmp_path / "copy"))
    assert {name: getattr(first, name) for name in FIRST if name != "attributes"} == {
        name: value for name, value in FIRST.items() if name != "attributes"
    }
    assert (second.base_offset, second.last_offset, second.producer_id) == (20, 21, -1)


def test_an_empty_batch_is_written_and_refilled_by_nothing(tmp_path: Path) -> None:
    lines = "".join(f"{json.dumps(row)}\n" for row in ({"batch": FIRST}, {**RECORD, "offset": 30}))
    assert imported(lines.encode(), tmp_path / "copy").exit_code == 0
    empty, full = (batch for _, batch in stored(tmp_path / "copy"))
    assert (empty.record_count, empty.base_offset, empty.last_offset, empty.max_timestamp) == (0, 5, 9, 2000)
    assert (full.base_offset, full.record_count) == (30, 1)


def test_partitions_are_chosen_with_their_batches(tmp_path: Path) -> None:
    printed = run("cat", LOG_DIR, "--batches").stdout_bytes
    report = imported(printed, tmp_path / "all", "--log-directory", "--json")
    assert report.exit_code == 0, report.stderr
    for one in json.loads(report.stdout)["partitions"]:
        name = f"{one['topic']}-{one['partition']}"
        assert one["records"] == sum(1 for _, batch in stored(LOG_DIR / name) for _ in batch), name
    one = tmp_path / "one"
    assert imported(printed, one, "--topic", "txn-simple").exit_code == 0
    assert [data for data, _ in stored(one)] == [data for data, _ in stored(LOG_DIR / "txn-simple-0")]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_offset": None}, "the batch has no base_offset"),
        ({"magic": 3}, "magic is 3; it must be null or a whole number from 0 to 2"),
        ({"last_offset": 4}, "last offset 4 does not fit a batch with the base offset 5"),
        ({"last_offset": 1 << 40}, "does not fit a batch with the base offset 5"),
        ({"attributes": 7}, "attributes 7 have the unknown codec 7"),
        ({"attributes": 0x10, "producer_id": -1}, "a transactional batch needs a producer id"),
        ({"magic": 1, "attributes": 4}, "zstd compression is not supported for magic 1"),
        ({"producer_epoch": 1 << 20}, "producer_epoch is 1048576"),
        ({"record_count": -1}, "record_count is -1; it must be null or a whole number from 0 to 2147483647"),
        ({"attributes": 0x40, "base_timestamp": -5}, "a delete horizon must not be negative"),
    ],
)
def test_a_batch_that_cannot_be_written_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    text = refused(tmp_path / "out", {"batch": {**FIRST, **changes}}, RECORD)
    assert text.startswith("kbat: the standard input, line 1: ")
    assert message in text


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"batch": []}], "line 1: batch must be an object, on a line without a record"),
        ([{"batch": FIRST, "key": None}], "line 1: batch must be an object, on a line without a record"),
        ([{"batch": FIRST}, {"batch": FIRST}], "line 2: base offset 5 is not above the offset before it, 9"),
        ([{"batch": FIRST}, {**RECORD, "offset": 4}], "line 2: offset 4 is not above the one before it, 4"),
        ([{"batch": FIRST}, {**RECORD, "timestamp_type": "LogAppendTime"}], "line 2: the timestamp of offset 6 or its"),
        ([{"batch": {**FIRST, "magic": 0, "producer_id": -1}}, RECORD], "line 2: the timestamp of offset 6 or its"),
        ([{"batch": FIRST}, RECORD, {**RECORD, "create_time": "x", "offset": 7}], "line 3: create_time is"),
    ],
)
def test_lines_that_contradict_each_other_are_refused(rows: list[Any], message: str, tmp_path: Path) -> None:
    assert message in refused(tmp_path / "out", *rows)


def counted(count: int) -> dict[str, Any]:
    return {"batch": {**FIRST, "record_count": count}}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [counted(2), RECORD],
            "line 2: the batch with the base offset 5 ends after 1 record, but its record_count is 2",
        ),
        ([counted(1)], "line 1: the batch with the base offset 5 ends after 0 records, but its record_count is 1"),
        (
            [counted(2), RECORD, {**RECORD, "offset": 20}],
            "line 3: the batch with the base offset 5 ends after 1 record",
        ),
        (
            [counted(2), RECORD, {"batch": {**FIRST, "base_offset": 20, "last_offset": 20}}],
            "line 3: the batch with the base offset 5 ends after 1 record",
        ),
        ([counted(1), RECORD, {**RECORD, "offset": 7}], "line 3: offset 7 is in a batch that has the record_count 1"),
        ([counted(0), RECORD], "line 2: offset 6 is in a batch that has the record_count 0 without it"),
    ],
)
def test_a_batch_with_another_number_of_records_is_refused(rows: list[Any], message: str, tmp_path: Path) -> None:
    assert message in refused(tmp_path / "out", *rows)


def test_a_batch_with_its_number_of_records_is_written(tmp_path: Path) -> None:
    rows = [counted(2), RECORD, {**RECORD, "offset": 8}, {**RECORD, "offset": 20}]
    assert imported("".join(f"{json.dumps(row)}\n" for row in rows).encode(), tmp_path / "copy").exit_code == 0
    assert [batch.record_count for _, batch in stored(tmp_path / "copy")] == [2, 1]


@pytest.mark.parametrize("case", ["codec-none-0", "codec-zstd-0", "txn-simple-0", "log-append-time-lz4-0"])
def test_a_truncated_stream_is_refused_unless_a_batch_ends_there(case: str, tmp_path: Path) -> None:
    lines = run("cat", LOG_DIR / case, "--batches").stdout.splitlines(keepends=True)
    of_batches = [number for number, line in enumerate(lines) if '"batch": {' in line]
    assert len(of_batches) > 1
    for number in range(1, len(lines), max(1, len(lines) // 20)):
        out = tmp_path / f"{number}"
        done = imported("".join(lines[:number]).encode(), out)
        is_complete = number in of_batches
        assert (done.exit_code, out.exists()) == ((0, True) if is_complete else (2, False)), done.stderr
        if not is_complete:
            assert f"the standard input, line {number}: the batch with the base offset" in done.stderr


def test_the_number_of_records_is_of_those_that_are_printed(tmp_path: Path) -> None:
    printed = run("cat", LOG_DIR / "codec-none-0", "--batches", "-n", "1")
    batch, *records = [json.loads(line) for line in printed.stdout.splitlines()]
    assert (batch["batch"]["record_count"], len(records)) == (1, 1)
    assert imported(printed.stdout_bytes, tmp_path / "copy").exit_code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--format", "csv"), "only the format jsonl has lines of batches"),
        (("--text",), "only the format jsonl has lines of batches"),
        (("--isolation", "read_committed"), "lines of batches need isolation="),
        (("--value", "json"), "lines of batches have exact keys and values"),
    ],
)
def test_formats_without_batches_are_refused(options: tuple[str, ...], message: str) -> None:
    done = run("cat", LOG_DIR / "codec-none-0", "--batches", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def test_last_records_are_counted_without_markers() -> None:
    last = run("cat", LOG_DIR / "txn-simple-0", "-o", "-2").stdout.splitlines()
    with_batches = run("cat", LOG_DIR / "txn-simple-0", "-o", "-2", "--batches").stdout.splitlines()
    assert len(last) == 2
    assert [line for line in with_batches if line in last] == last


def test_names_of_headers_that_are_not_text_are_kept(tmp_path: Path) -> None:
    builder = kbat.BatchBuilder()
    builder.append(b"k", b"v", timestamp=1, headers=[(b"\xff\x00", b"1"), ("name", None)])
    place = tmp_path / "t-0"
    place.mkdir()
    (place / LOG).write_bytes(builder.finish())
    printed = run("cat", place, "--batches")
    assert json.loads(printed.stdout.splitlines()[1])["headers"] == [[{"base64": "/wA="}, "1"], ["name", None]]
    assert imported(printed.stdout_bytes, tmp_path / "copy").exit_code == 0
    assert (tmp_path / "copy" / LOG).read_bytes() == (place / LOG).read_bytes()
    findings = json_of("verify", tmp_path / "copy")["findings"]
    assert [one["kind"] for one in findings] == ["partition_metadata_missing"]


def test_a_part_of_a_compressed_set_of_magic_1_keeps_its_offsets(tmp_path: Path) -> None:
    builder = kbat.BatchBuilder(1, "gzip")
    for offset in range(5):
        builder.append(b"k%d" % offset, b"v%d" % offset, timestamp=offset)
    log = GrowingLog(tmp_path / "in" / "t-0")
    log.append_bytes(builder.finish())
    for number, (options, offsets) in enumerate([(("--end-offset", "3"), [0, 1, 2]), (("--grep", "v[13]"), [1, 3])]):
        lines = tmp_path / "lines.jsonl"
        lines.write_text(run("cat", tmp_path / "in" / "t-0", "--batches", *options).stdout)
        target = tmp_path / f"t-{number}"
        done = run("import", lines, target)
        assert done.exit_code == 0, done.stderr
        assert kbat.scan(target).to_pyarrow()["offset"].to_pylist() == offsets
