"""The command `kbat`: its results are those of the API, as text and as JSON; errors name the next step."""

from __future__ import annotations

import base64
import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import kbat
from command_line import CORPUS, LOG, LOG_DIR, copy_of, environment, json_of, lines_of, process, run
from kbat.cli import output
from partitions import Log

COMMANDS = ("ls", "verify", "recover", "salvage", "rebuild-indexes", "audit", "cat", "dump", "compact", "rewrite")
TWENTY_DIGITS = "9" * 20
# Message format 0 has no timestamps.
NO_TIMES = "k0822-java0822-snappy"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_has_an_example_json_fields_and_exit_codes(command: str) -> None:
    text = " ".join(run(command, "--help").stdout.split())
    assert f"kbat {command}" in text
    for part in ("Example", "JSON", "Exit codes: 0"):
        assert part in text


def test_help_and_version() -> None:
    text = run("--help").stdout
    assert all(command in text for command in COMMANDS)
    assert run("--version").stdout == f"kbat {kbat.__version__}\n"
    done = subprocess.run(
        [sys.executable, "-m", "kbat", "--version"], capture_output=True, text=True, check=True, env=environment()
    )
    assert done.stdout == f"kbat {kbat.__version__}\n"


def test_audit_sums_up_the_view_of_batches() -> None:
    found = json_of("audit", LOG_DIR, "--by", "producer", "--by", "partition")
    rows = kbat.scan(LOG_DIR, view="batches").to_pyarrow().to_pylist()
    expected: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for row in rows:
        key = (row["topic"], row["compression"], row["producer_id"], row["partition"])
        expected.setdefault(key, []).append(row)
    assert len(found["groups"]) == len(expected)
    sizes = [group["bytes"] for group in found["groups"]]
    assert sizes == sorted(sizes, reverse=True)
    for group in found["groups"]:
        batches = expected[group["topic"], group["compression"], group["producer_id"], group["partition"]]
        counted = [batch for batch in batches if batch["record_count"] is not None]
        records = sum(batch["record_count"] for batch in counted)
        assert group["batches"] == len(batches)
        assert group["bytes"] == sum(batch["size"] for batch in batches)
        assert group["records"] == records
        assert group["mean_batch_bytes"] == pytest.approx(group["bytes"] / len(batches))
        assert group["records_per_batch"] == (pytest.approx(records / len(counted)) if counted else None)
        assert group["uncounted_batches"] == len(batches) - len(counted)
        assert group["uncounted_bytes"] == sum(b["size"] for b in batches if b["record_count"] is None)
    total = found["total"]
    assert (total["batches"], total["bytes"]) == (len(rows), sum(row["size"] for row in rows))
    assert total["uncounted_batches"] == 10
    assert total["share"] == 1.0
    assert sum(group["share"] for group in found["groups"]) == pytest.approx(1.0)


def test_audit_distinguishes_an_incomplete_last_batch_from_corruption(tmp_path: Path) -> None:
    place = copy_of("codec-lz4", tmp_path / "topic-0")
    *_, last = kbat.read_batches(place / LOG)
    with (place / LOG).open("r+b") as log:
        log.truncate(last.position + 115)
    assert "not counted: 115 B after the last complete batch" in run("audit", place).stderr


def test_audit_as_a_table_marks_unknown_counts(tmp_path: Path) -> None:
    lines = run("audit", LOG_DIR).stdout.splitlines()
    (legacy,) = [line for line in lines if line.split()[:1] == ["k0822-java0822-snappy"]]
    assert legacy.split() == [
        "k0822-java0822-snappy",
        "snappy",
        "5",
        "≥",
        "0",
        "31.9",
        "KiB",
        "6.4",
        "KiB",
        "?",
        "5.2%",
    ]
    (zstd,) = [line for line in lines if line.split()[:1] == ["codec-zstd"]]
    assert zstd.split() == ["codec-zstd", "zstd", "13", "220", "41.7", "KiB", "3.2", "KiB", "16.9", "6.8%"]
    assert [line for line in lines if line.strip()][-1].split()[0] == "total"
    empty = tmp_path / "empty-0"
    empty.mkdir()
    (empty / LOG).touch()
    assert run("audit", empty).stdout == f"{empty}: no batches\n"
    assert json_of("audit", empty)["total"]["share"] is None


def test_audit_reads_headers_through_the_page_cache_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    scan = kbat.scan

    def watched(path: Path, **options: Any) -> kbat.Scan:  # noqa: ANN401 - those of kbat.scan
        asked.append(options)
        return scan(path, **options)

    monkeypatch.setattr(kbat, "scan", watched)
    first = json_of("audit", LOG_DIR)
    assert json_of("audit", LOG_DIR, "--leave-page-cache") == first
    assert json_of("audit", LOG_DIR, "--use-page-cache") == first
    assert [options["leave_page_cache"] for options in asked] == [False, True, False]
    assert all(options["view"] == "batches" for options in asked)


def test_audit_reports_corrupt_batches_it_does_not_count(tmp_path: Path) -> None:
    place = copy_of("codec-lz4", tmp_path / "topic-0")
    batches = list(kbat.read_batches(place / LOG))
    damaged = bytearray((place / LOG).read_bytes())
    damaged[batches[3].position + 8 : batches[3].position + 12] = b"\xff\xff\xff\xff"
    (place / LOG).write_bytes(damaged)
    done = run("audit", place, "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert found["total"]["batches"] == len(batches) - 1
    assert (found["batches_skipped"], found["bytes_lost"]) == (1, batches[3].size)
    assert "in 1 corrupt range; 'kbat verify' lists it" in done.stderr


def test_cat_prints_the_records_of_kafka() -> None:
    """The expected bytes, headers and timestamps come from Kafka's own classes."""
    place = LOG_DIR / "codec-gzip-0"
    rows = lines_of(place)
    records = [record for batch in kbat.read_batches(place / LOG) for record in batch]
    assert len(rows) == len(records) == 220
    for row, record in zip(rows, records, strict=True):
        assert (row["topic"], row["partition"]) == ("codec-gzip", 0)
        assert (row["offset"], row["timestamp"], row["timestamp_type"]) == (
            record.offset,
            record.timestamp,
            "CreateTime",
        )
        assert _bytes(row["key"]) == record.key
        assert _bytes(row["value"]) == record.value
        assert [(key, _bytes(value)) for key, value in row["headers"]] == list(record.headers)
    assert any(isinstance(row["value"], dict) for row in rows)
    assert any(row["value"] is None for row in rows)
    assert any(row["value"] == "" for row in rows)


def _bytes(value: str | dict[str, str] | None) -> bytes | None:
    if isinstance(value, dict):
        assert list(value) == ["base64"]
        return base64.b64decode(value["base64"])
    return None if value is None else value.encode()


def test_cat_bounds_by_offset_time_isolation_and_limit() -> None:
    place = LOG_DIR / "txn-lz4-0"
    everything = lines_of(place)
    offsets = [row["offset"] for row in everything]
    assert [row["offset"] for row in lines_of(place, "--start-offset", 50, "--end-offset", 60)] == [
        offset for offset in offsets if 50 <= offset < 60
    ]
    committed = kbat.scan(place, isolation="read_committed", columns=["offset"]).to_pyarrow().column(0).to_pylist()
    assert [row["offset"] for row in lines_of(place, "--isolation", "read_committed")] == committed
    assert len(committed) < len(offsets)
    assert [row["offset"] for row in lines_of(place, "--limit", 3)] == offsets[:3]
    assert lines_of(place, "-n", 0) == []
    timed = lines_of(LOG_DIR / "codec-lz4-0")
    first, last = "2023-11-14T22:16:00Z", "2023-11-14T23:16:30+01:00"
    bounds = (1_700_000_160_000, 1_700_000_190_000)
    expected = [row for row in timed if bounds[0] <= row["timestamp"] < bounds[1]]
    assert 0 < len(expected) < len(timed)
    assert lines_of(LOG_DIR / "codec-lz4-0", "--start-time", first, "--end-time", last) == expected
    assert lines_of(LOG_DIR / "codec-lz4-0", "--start-time", bounds[0], "--end-time", bounds[1]) == expected


def test_cat_of_times_no_calendar_has_and_of_none(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    log.batch((b"k", b"v"), timestamp=1 << 60)
    log.batch((b"a\x1b[31m\n", b"\xff"), timestamp=-1)
    log.write()
    late, none = lines_of(log.directory)
    assert late["timestamp"] == 1 << 60
    assert none["timestamp"] is None
    first, second = run("cat", log.directory, "--text").stdout.splitlines()
    assert first == f't-0@0  {1 << 60}  "k"  "v"  at="0"'
    assert second == 't-0@1  -  "a\\x1b[31m\\n"  0xff  at="0"'
    assert json_of("ls", log.directory)["segments"][0]["largest_timestamp"] == 1 << 60
    assert str(1 << 60) in run("ls", log.directory).stdout
    old = lines_of(LOG_DIR / "k0822-java0822-snappy-0", "-n", 1)
    assert (old[0]["timestamp"], old[0]["timestamp_type"]) == (None, None)


def test_cat_at_damage_fails_skips_or_reports() -> None:
    place = CORPUS / "crash-flip"
    with pytest.raises(kbat.CrcError) as error:
        kbat.scan(place).to_pyarrow()
    done = run("cat", place)
    assert done.exit_code == 1
    assert [json.loads(line)["offset"] for line in done.stdout.splitlines()] == list(range(99))
    assert done.stderr == (
        f"kbat: {error.value}; 'kbat verify {place}' lists all corruption, 'kbat salvage {place} OUT' keeps all "
        "complete batches, --on-corrupt skip continues after it\n"
    )
    skipped = run("cat", place, "--on-corrupt", "skip")
    assert skipped.exit_code == 0
    assert len(skipped.stdout.splitlines()) == 144
    assert "skipped 1 corrupt range: 1,213 bytes and 6 offsets lost" in skipped.stderr
    reported = lines_of(place, "--on-corrupt", "report")
    (fault,) = [row["error"] for row in reported if "error" in row]
    assert (fault["kind"], fault["position"], fault["length"]) == ("crc", 13905, 1213)
    assert (fault["first_offset"], fault["last_offset"]) == (99, 104)
    limited = lines_of(place, "--on-corrupt", "report", "--limit", 100)
    assert [list(row) == ["error"] for row in limited] == [False] * 99 + [True, False]
    assert "-- corruption: checksum mismatch" in run("cat", place, "--on-corrupt", "report", "--text").stdout


@pytest.mark.parametrize("command", ["ls", "recover"])
def test_path_that_does_not_exist_is_a_wrong_argument(command: str, tmp_path: Path) -> None:
    for path, reason in (("ftp://bucket/orders-0", "is not a known scheme"), (tmp_path / "no", "does not exist")):
        done = run(command, path, *(["--dry-run"] if command == "recover" else []))
        assert (done.exit_code, reason in " ".join(done.stderr.replace("│", "").split())) == (2, True), done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("cat", LOG_DIR, "--start-time", "yesterday"),
        ("cat", LOG_DIR, "--start-time", TWENTY_DIGITS),
        ("cat", LOG_DIR, "--start-offset", TWENTY_DIGITS),
        ("cat", LOG_DIR, "--end-offset", TWENTY_DIGITS),
        ("cat", LOG_DIR, "--on-corrupt", "ignore"),
        ("rewrite", LOG_DIR / "codec-lz4-0", "out", "--batch-bytes", "1 parsec"),
        ("rewrite", LOG_DIR / "codec-lz4-0", "out", "--level", "3"),
        ("rewrite", LOG_DIR / "codec-lz4-0", "out", "--compression", "gzip", "--level", "99"),
        ("rewrite", LOG_DIR / "codec-lz4-0", "out", "--batch-bytes", "99999999999g"),
        ("rewrite", LOG_DIR / "codec-lz4-0", "out", "--compression", "zstd", "--level", "99999999999"),
        ("compact", LOG_DIR / "codec-lz4-0", "out", "--delete-retention-ms", TWENTY_DIGITS),
        ("compact", LOG_DIR / "codec-lz4-0", "out", "--min-compaction-lag-ms", TWENTY_DIGITS),
        ("compact", LOG_DIR / "codec-lz4-0", "out", "--first-dirty-offset", TWENTY_DIGITS),
        ("salvage", LOG_DIR / "codec-lz4-0", "out", "--index-interval-bytes", TWENTY_DIGITS),
        ("salvage", LOG_DIR, "out"),
        ("nothing",),
    ],
    ids=lambda arguments: " ".join(map(str, arguments[:1] + arguments[2:])),
)
def test_wrong_arguments_exit_with_2(arguments: tuple[object, ...]) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stderr
    assert not done.stdout
    assert not Path("out").exists()


def test_limits_name_the_argument_that_raises_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        message = "a batch of 3 GiB\nis over the limit"
        raise kbat.LimitError(message)

    monkeypatch.setattr(kbat, "scan", refuse)
    done = run("cat", LOG_DIR)
    assert done.exit_code == 1
    assert done.stderr == "kbat: a batch of 3 GiB is over the limit; raise it in Python, with limits=kbat.Limits(...)\n"


@pytest.mark.parametrize("command", ["cat", "ls"])
def test_broken_pipe_is_quiet(command: str, tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    for _ in range(100):
        log.batch((b"key", b"x" * 10_000))
    log.write()
    running = process(command, log.directory)
    with running:
        assert running.stdout is not None
        assert running.stderr is not None
        if command == "cat":
            assert running.stdout.readline().startswith('{"topic": "t"')
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == 141


@pytest.mark.parametrize("missing", ["typer", "rich", "pyarrow"])
def test_missing_packages_are_named_with_the_command_that_gets_them(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from importlib import util  # noqa: PLC0415 - what is patched

    from kbat.cli import main  # noqa: PLC0415

    find_spec = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == missing else find_spec(name))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"kbat: the command line needs {missing}: pip install 'kbat[cli]'\n"


def test_import_of_kbat_needs_no_package_of_the_command_line() -> None:
    script = "import sys, kbat, kbat.cli; assert not {'typer', 'rich', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, env=environment())  # noqa: S603 - its own script


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1 << 20, "1.0 MiB"),
        (5 << 40, "5.0 TiB"),
        (3 << 60, "3,072.0 PiB"),
    ],
)
def test_size_text_is_in_a_persons_units(size: int, text: str) -> None:
    assert output.size_text(size) == text


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (0, "1970-01-01 00:00:00.000Z"),
        (-1, "-"),
        (-2, "-2"),
        (1_700_000_000_007, "2023-11-14 22:13:20.007Z"),
        (None, "-"),
    ],
)
def test_time_text_is_utc(timestamp: int | None, text: str) -> None:
    assert output.time_text(timestamp) == text


@pytest.mark.parametrize(
    ("command", "what", "end"),
    [("audit", b"reading headers", b"610.1/610.1 KiB"), ("ls", b"listing", b"15/15")],
)
def test_progress_is_shown_on_a_terminal_only(command: str, what: bytes, end: bytes) -> None:
    near, far = pty.openpty()
    arguments = [sys.executable, "-m", "kbat", command, os.fspath(LOG_DIR), "--json"]
    env = {**environment(), "TERM": "xterm"}
    shown = b""
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=far, text=True, env=env) as running:  # noqa: S603 - its own module
        os.close(far)
        with os.fdopen(near, "rb", buffering=0) as terminal, suppress(OSError):
            while part := terminal.read(65536):
                shown += part
        printed, _ = running.communicate()
    assert running.returncode == 0
    assert what in shown
    assert end in shown
    assert json.loads(printed) == json_of(command, LOG_DIR)
    assert run(command, LOG_DIR, "--json").stderr == ""
