"""`kbat cat`: formats, forms of values, patterns, places to begin, and logs that grow."""

from __future__ import annotations

import base64
import csv
import io
import json
import signal
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kbat
from command_line import CORPUS, LOG, LOG_DIR, bytes_on_terminal, copy_of, lines_of, process, run
from growing_log import GrowingLog, time_of
from kbat._core.text import write_records
from partitions import Log

if TYPE_CHECKING:
    from pathlib import Path

TXN = LOG_DIR / "txn-simple-0"
# Changes a terminal, or can't be seen: an escape, control characters of one and two bytes, a direction.
NASTY = b"\x1b[31m\x07\r\xc2\x9b2J\xe2\x80\xae"
BROKEN = NASTY + b"\xff"


def text_of(data: bytes, topic: str | None, **form: Any) -> bytes:  # noqa: ANN401 - arguments of write_records
    """Return the records of a buffer as text."""
    pieces: list[bytes] = []
    write_records(kbat.scan(data, topic=topic), pieces.append, **form)
    return b"".join(pieces)


def offsets_of(*arguments: object) -> list[int]:
    done = run("cat", *arguments, "-f", "%o ")
    assert done.exit_code == 0, done.stderr
    return [int(offset) for offset in done.stdout.split()]


@pytest.fixture
def nasty(tmp_path: Path) -> Path:
    log = Log(tmp_path / "t-0")
    log.batch((b"k" + NASTY, BROKEN), (NASTY, NASTY), (None, b'{"a":\n 1}'), (b"", None))
    log.write()
    return log.directory


def _bytes(value: bytes | None) -> str | dict[str, str] | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value or b"").decode()}


payloads = st.none() | st.binary(max_size=20) | st.text(max_size=40).map(str.encode)
records = st.tuples(payloads, payloads, st.lists(st.tuples(st.text(max_size=5), payloads), max_size=3))


@settings(max_examples=100, deadline=None)
@given(batch=st.lists(records, min_size=1, max_size=5), topic=st.none() | st.sampled_from(["t", 'qu"ote\\', "größe\n"]))
def test_json_lines_are_those_of_the_json_module(batch: list[Any], topic: str | None) -> None:
    builder = kbat.BatchBuilder()
    for index, (key, value, headers) in enumerate(batch):
        builder.append(key, value, timestamp=index, headers=headers)
    expected = [
        {
            "topic": topic,
            "partition": None,
            "offset": index,
            "timestamp": index,
            "timestamp_type": "CreateTime",
            "key": _bytes(key),
            "value": _bytes(value),
            "headers": [[name, _bytes(content)] for name, content in headers],
        }
        for index, (key, value, headers) in enumerate(batch)
    ]
    lines = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in expected)
    data = builder.finish()
    assert text_of(data, topic) == lines.encode()
    # a terminal gets more escapes, which mean the same
    shown = text_of(data, topic, terminal=True).decode()
    assert [json.loads(line) for line in shown.splitlines()] == expected
    # the tables of Rust may be newer than those of Python
    assert all(char.isprintable() or char == "\n" or unicodedata.category(char) == "Cn" for char in shown)
    rows = list(csv.reader(io.StringIO(text_of(data, topic, output_format="csv").decode(), newline="")))
    assert [json.loads(row[7]) for row in rows[1:]] == [one["headers"] for one in expected]
    assert [row[0] for row in rows[1:]] == [topic or ""] * len(batch)


@pytest.mark.parametrize("case", ["codec-lz4-0", "k0822-java0822-snappy-0", "txn-simple-0"])
def test_every_format_has_the_records_of_the_json_lines(case: str) -> None:
    rows = lines_of(LOG_DIR / case)
    # the columns of text, which are null for values that are not
    table = list(csv.DictReader(io.StringIO(run("cat", LOG_DIR / case, "-f", "csv").stdout, newline="")))
    assert [int(row["offset"]) for row in table] == [row["offset"] for row in rows]
    assert [row["timestamp"] or None for row in table] == [
        None if row["timestamp"] is None else str(row["timestamp"]) for row in rows
    ]
    assert [row["timestamp_type"] or None for row in table] == [row["timestamp_type"] for row in rows]
    assert [row["value"] for row in table] == [_cell(row["value"]) for row in rows]
    assert [json.loads(row["headers"]) for row in table] == [row["headers"] for row in rows]
    form = "%t-%p@%o %T %K %S|\\x7c"
    name, _, number = case.rpartition("-")
    expected = [
        f"{name}-{number}@{row['offset']} {-1 if row['timestamp'] is None else row['timestamp']} "
        f"{_len(row['key'])} {_len(row['value'])}||"
        for row in rows
    ]
    assert run("cat", LOG_DIR / case, "-f", form).stdout == "".join(expected)
    values = [_content(row["value"]) or b"" for row in rows]
    assert run("cat", LOG_DIR / case, "--format", "raw").stdout_bytes == b"".join(values)
    text = run("cat", LOG_DIR / case, "--text").stdout
    assert text == run("cat", LOG_DIR / case, "-f", "text").stdout
    assert text.count("\n") == len(rows)


def _content(value: str | dict[str, str] | None) -> bytes | None:
    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    return None if value is None else value.encode()


def _len(value: str | dict[str, str] | None) -> int:
    content = _content(value)
    return -1 if content is None else len(content)


def _cell(value: str | dict[str, str] | None) -> str:
    content = _content(value) or b""
    return f"0x{content.hex()}" if isinstance(value, dict) else content.decode()


def test_values_and_keys_have_forms(nasty: Path) -> None:
    first, _, third, fourth = lines_of(nasty, "--value", "hex", "--key-form", "base64")
    assert (first["value"], base64.b64decode(first["key"])) == (BROKEN.hex(), b"k" + NASTY)
    assert (third["key"], fourth["key"], fourth["value"]) == (None, "", None)
    first, second, third, fourth = lines_of(nasty, "--value", "json")
    assert first["value"] == {"base64": base64.b64encode(BROKEN).decode()}
    assert (second["value"], third["value"], fourth["value"]) == (NASTY.decode(), {"a": 1}, None)
    assert run("cat", nasty, "-f", "%s;", "--value", "json").stdout.endswith('";{"a": 1};null;')
    assert lines_of(nasty, "--value", "text", "-n", 1)[0]["value"] == BROKEN.decode(errors="replace")


@pytest.mark.parametrize(
    ("form", "value"),
    [*((form, "auto") for form in ("jsonl", "csv", "text", "raw", "%k %s %h\\n")), ("jsonl", "json"), ("raw", "text")],
)
def test_no_value_breaks_a_terminal(form: str, value: str, nasty: Path) -> None:
    options = () if value == "auto" else ("--value", value)
    shown = bytes_on_terminal(200, "cat", nasty, "-f", form, *options).decode()
    assert all(char.isprintable() or char == "\n" for char in shown.replace("\r\n", "\n")), shown
    assert "31m" in shown


def test_formats_that_do_not_exist_are_named(nasty: Path) -> None:
    for form, reason in (
        ("xml", '"xml" is not a format: use jsonl, csv, text, raw, or a format string'),
        ("%x", "has %x: use %t topic"),
        ("%s\\", "use \\n, \\r, \\t"),
    ):
        done = run("cat", nasty, "-f", form)
        assert (done.exit_code, done.stdout, reason in done.stderr) == (2, "", True), done.stderr
        assert done.stderr.count("\n") == 1
    for both in (("--json", "--text"), ("--text", "-f", "csv"), ("--json", "--format", "raw")):
        assert "exclude each other" in run("cat", nasty, *both).stderr


def test_patterns_choose_records(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"user-1", b"paid 5"), (b"user-12", b"error: timeout"), (None, b"Error"), (b"\xff\x00", b"a.c"))
    log.batch((b"user-1", None), codec="lz4")
    log.write()
    place = log.directory
    assert offsets_of(place, "--key", "user-1") == [0, 4]
    assert offsets_of(place, "--key", "user-.*") == [0, 1, 4]
    assert offsets_of(place, "--key", r"(?-u)\xff\x00") == [3]
    assert offsets_of(place, "--grep", "(?i)error") == [1, 2]
    assert offsets_of(place, "--grep", "error", "--key", "user-1+2") == [1]
    assert offsets_of(place, "--grep", "a.c", "--fixed-strings") == [3]
    assert offsets_of(place, "--key", "user-.*", "--fixed-strings") == []
    assert offsets_of(place, "--key", "user-.*", "-n", 2) == [0, 1]
    assert offsets_of(place, "--header", "at=1") == [1]
    assert offsets_of(place, "--header", "at", "--header", "at=0") == [0, 4]
    assert offsets_of(place, "--header", "trace") == []
    done = run("cat", place, "--grep", "(")
    assert (done.exit_code, done.stderr) == (
        2,
        'kbat: the pattern "(" is not a regular expression: unclosed group\n',
    )


@pytest.mark.parametrize(
    "command",
    [("cat", TXN), ("batches", TXN), ("filter", TXN, "/no/such/out"), ("export", TXN, "/no/such/out.csv")],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize(("name", "start", "end"), [("offset", 10, 5), ("time", "2024-01-01T00:00:00Z", 5)])
def test_ranges_that_end_before_they_start_are_refused(
    command: tuple[object, ...], name: str, start: object, end: object
) -> None:
    done = run(*command, f"--start-{name}", start, f"--end-{name}", end)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"kbat: --start-{name} is after --end-{name}")


def test_bytes_that_are_not_text_are_refused_as_a_pattern() -> None:
    done = run("cat", TXN, "--key", "\udcff\udcfe")
    assert (done.exit_code, done.stdout) == (2, "")
    assert r"is not UTF-8: in --key and --grep, write such bytes as a pattern, such as '(?-u:\xff\xfe)'" in done.stderr


def test_a_corrupt_batch_is_reported_only_in_lines(nasty: Path) -> None:
    place = CORPUS / "crash-flip"
    assert offsets_of(place, "--on-corrupt", "skip") == [n for n in range(150) if not 99 <= n <= 104]
    for form in ("csv", "raw", "%s"):
        done = run("cat", nasty, "-f", form, "--on-corrupt", "report")
        assert (done.exit_code, done.stdout) == (2, "")
        assert "only in the formats jsonl and text; use --on-corrupt skip" in done.stderr
    failed = run("cat", place, "-f", "%o ")
    assert (failed.exit_code, failed.stdout.split()[-1]) == (1, "98")


def test_offset_begins_in_each_partition_on_its_own(tmp_path: Path) -> None:
    logs = [
        GrowingLog(tmp_path / "orders-0"),
        GrowingLog(tmp_path / "orders-1", 100),
        GrowingLog(tmp_path / "clicks-12"),
    ]
    for log, counts in zip(logs, [(3, 3), (2, 2, 2), (1,)], strict=True):
        log.append(*counts)
        log.roll()
        log.append(2)
    for where, expected in (
        ("-3", [0, 1, 2, 5, 6, 7, 105, 106, 107]),
        ("end", []),
        ("latest", []),
        ("6", [6, 7, *range(100, 108)]),
        ("s@1700000106000", [106, 107]),
        ("2023-11-14T22:15:05Z", [105, 106, 107]),
        ("-1000", [*range(3), *range(8), *range(100, 108)]),
        ("beginning", [*range(3), *range(8), *range(100, 108)]),
    ):
        assert offsets_of(tmp_path, "-o", where) == expected, where
    assert offsets_of(tmp_path, "-o", "-2", "--partition", "1*") == [1, 2, 106, 107]
    assert offsets_of(tmp_path, "-o", "-2", "--end-offset", 105, "--topic", "orders") == [6, 7, 103, 104]
    assert offsets_of(tmp_path, "-o", "-2", "-n", 3, "--topic", "orders") == [6, 7, 106]
    lone = tmp_path / "lone.bin"
    lone.write_bytes(logs[1].segment.read_bytes())
    assert offsets_of(lone, "-o", "-1") == [107]
    assert offsets_of(logs[1].segment, "-o", "-1") == [107]
    for where in ("yesterday", "--3", "1.5", "9" * 20, "s@1700000106"):
        done = run("cat", tmp_path, "-o", where)
        assert (done.exit_code, done.stdout) == (2, ""), where
    done = run("cat", tmp_path, "-o", "-1", "--start-offset", 5)
    assert "exclude each other" in done.stderr


def test_the_last_records_are_counted_across_gaps(tmp_path: Path) -> None:
    """Compaction removes offsets, and markers of transactions are not records."""
    place = copy_of("txn-simple", tmp_path / "t-0")
    everything = offsets_of(place)
    assert len(everything) < kbat.PartitionLog(place).end_offset
    for count in (1, 2, 3, len(everything) - 1, len(everything), 1000):
        assert offsets_of(place, "-o", f"-{count}") == everything[-count:]
    committed = offsets_of(place, "--isolation", "read_committed")
    assert offsets_of(place, "-o", "-2", "--isolation", "read_committed") == committed[-2:]
    flipped = CORPUS / "crash-flip"
    for corrupt in ("skip", "report"):
        rows = lines_of(flipped, "-o", "-60", "--on-corrupt", corrupt)
        assert [row["offset"] for row in rows if "offset" in row] == [*range(84, 99), *range(105, 150)]


def test_partitions_are_chosen_by_patterns_of_their_numbers(tmp_path: Path) -> None:
    for number in (0, 1, 10, 21):
        GrowingLog(tmp_path / f"t-{number}").append(1)
    for chosen, expected in ((("1*",), [1, 10]), (("?",), [0, 1]), (("[2]?", "0"), [0, 21]), (("*",), [0, 1, 10, 21])):
        options = [part for one in chosen for part in ("--partition", one)]
        assert [row["partition"] for row in lines_of(tmp_path, *options)] == expected
    done = run("cat", tmp_path, "--partition", "3*")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "kbat: no partition matches 3*; the numbers found are 0, 1, 10, 21\n"


def test_follow_prints_what_is_new_in_segments_and_partitions(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "t-0")
    log.append(5)
    running = process("cat", tmp_path, "-F", "-o", "-2", "-n", 9, "-f", "%p@%o %s\\n")
    with running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert [running.stdout.readline() for _ in range(2)] == ["0@3 t-0:3\n", "0@4 t-0:4\n"]
        log.append(1)
        assert running.stdout.readline() == "0@5 t-0:5\n"
        log.roll()
        log.append(2)
        assert [running.stdout.readline() for _ in range(2)] == ["0@6 t-0:6\n", "0@7 t-0:7\n"]
        # half of a batch first, as a broker may leave it
        batch = log.batch(1)
        with log.segment.open("ab") as file:
            file.write(batch[:30])
        other = GrowingLog(tmp_path / "t-1")
        other.append(2)
        assert [running.stdout.readline() for _ in range(2)] == ["1@0 t-1:0\n", "1@1 t-1:1\n"]
        with log.segment.open("ab") as file:
            file.write(batch[30:])
        assert running.stdout.readline() == "0@8 t-0:8\n"
        log.end_offset += 1
        log.append(5)
        assert running.stdout.readline() == "0@9 t-0:9\n"
        assert (running.stdout.read(), running.stderr.read()) == ("", "")
    assert running.returncode == 0


def test_follow_ends_with_ctrl_c_and_only_follows_files(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "t-0")
    log.append(1)
    running = process("cat", log.directory, "--follow", "--grep", "7$")
    with running:
        assert running.stdout is not None
        assert running.stderr is not None
        log.append(9)
        assert json.loads(running.stdout.readline())["timestamp"] == time_of(7)
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == "kbat: interrupted\n"
    assert running.returncode == 130
    for arguments in (
        ("-",),
        (log.directory, "--end-offset", 5),
        (log.directory, "--end-time", "2024-01-01T00:00:00Z"),
    ):
        done = run("cat", *arguments, "-F")
        assert (done.exit_code, done.stdout) == (2, "")
        assert "--follow waits for the end of files" in done.stderr


def test_a_scan_of_another_view_is_refused() -> None:
    with pytest.raises(ValueError, match="only records are written as text"):
        write_records(kbat.scan(TXN, view="batches"), print)


def test_an_exception_of_the_output_is_raised() -> None:
    def refuse(_: bytes) -> None:
        message = "full"
        raise OSError(message)

    with pytest.raises(OSError, match="full"):
        write_records(kbat.scan(TXN), refuse)


def test_progress_ends_with_all_bytes() -> None:
    calls: list[tuple[int, int]] = []
    count, next_offset = write_records(
        kbat.scan(LOG_DIR / "codec-lz4-0" / LOG), lambda _: None, progress=lambda *call: calls.append(call)
    )
    size = (LOG_DIR / "codec-lz4-0" / LOG).stat().st_size
    assert (count, next_offset, calls[-1]) == (220, 220, (size, size))
