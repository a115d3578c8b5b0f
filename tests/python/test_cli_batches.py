"""`kbat batches`: the view of batches as a table and as JSON lines, written while it is read."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import CORPUS, LOG, LOG_DIR, copy_of, environment, on_terminal, process, run
from kbat.cli.batches import _FIELDS
from partitions import Log

if TYPE_CHECKING:
    from pathlib import Path

TIMES = ("base_timestamp", "max_timestamp", "delete_horizon")


def rows_of(*arguments: object) -> list[dict[str, Any]]:
    done = run("batches", *arguments, "--json")
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def view_of(path: Path, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - those of kbat.scan
    """The view of the API, with times as numbers."""
    rows: list[dict[str, Any]] = kbat.scan(path, view="batches", **options).to_pyarrow().to_pylist()
    return [{name: _number(value) if name in TIMES else value for name, value in row.items()} for row in rows]


def _number(time: Any) -> int | None:  # noqa: ANN401 - a datetime of pyarrow
    return None if time is None else round(time.timestamp() * 1000)


def test_json_lines_are_the_view_of_batches() -> None:
    assert rows_of(LOG_DIR) == view_of(LOG_DIR)
    assert list(rows_of(LOG_DIR, "-n", 1)[0]) == list(_FIELDS)
    names = [*_FIELDS, "crc_ok", "uncompressed_size", "ratio"]
    place = CORPUS / "crash-flip"
    checked = rows_of(place, "--check-crc", "--ratio", "--on-corrupt", "skip")
    assert checked == view_of(place, columns=names, on_corrupt="skip")
    assert [row["position"] for row in checked if not row["crc_ok"]] == [13905]


@pytest.mark.parametrize(("on_corrupt", "exit_code"), [("fail", 1), ("skip", 0), ("report", 0)])
def test_a_wrong_checksum_is_corruption(on_corrupt: str, exit_code: int) -> None:
    done = run("batches", CORPUS / "crash-flip", "--check-crc", "--json", "--on-corrupt", on_corrupt)
    assert done.exit_code == exit_code
    assert done.stdout.count('"crc_ok": false') == 1
    assert "1 batch with a wrong checksum; 'kbat verify' " in done.stderr


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        (("--start-offset", 100), {"start_offset": 100}),
        (("--end-offset", 50), {"end_offset": 50}),
        (("--start-time", "2023-11-14T22:16:00Z"), {"start_timestamp": 1_700_000_160_000}),
        (("--end-time", 1_700_000_160_000), {"end_timestamp": 1_700_000_160_000}),
        (("--topic", "codec-*", "--partition", 0), {"topics": ["codec-*"], "partitions": [0]}),
    ],
    ids=str,
)
def test_ranges_and_topics_are_those_of_scan(options: tuple[object, ...], bounds: dict[str, Any]) -> None:
    place = LOG_DIR if "topics" in bounds else LOG_DIR / "codec-lz4-0"
    everything = rows_of(place)
    found = rows_of(place, *options)
    assert found == view_of(place, **bounds)
    assert 0 < len(found) <= len(everything)
    assert rows_of(place, *options, "--limit", 2) == found[:2]
    assert rows_of(place, *options, "-n", 0) == []


def test_a_table_has_a_row_per_batch_and_a_sum() -> None:
    place = LOG_DIR / "txn-lz4-0"
    batches = [batch for segment in kbat.PartitionLog(place).segments for batch in segment.batches()]
    lines = run("batches", place).stdout.splitlines()
    body = lines[4 : lines.index("", 4)]
    assert len(body) == len(batches)
    for line, batch in zip(body, batches, strict=True):
        cells = line.split()
        assert cells[:5] == ["txn-lz4", "0", str(batch.base_offset), str(batch.last_offset), str(batch.record_count)]
        assert ("control" in cells) == batch.is_control
        assert f" {batch.position} " in line
        assert f"{batch.crc:08x}" in line
    records = sum(batch.record_count or 0 for batch in batches)
    assert lines[-1].startswith(f"{len(batches)} batches, {records} records, ")
    legacy = run("batches", LOG_DIR / "k0822-java0822-snappy-0").stdout
    assert legacy.splitlines()[-1].startswith("5 batches, at least 0 records, ")
    assert "  ?  " in legacy


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_tables_fit_a_terminal_and_keep_the_important_columns(columns: int) -> None:
    shown = on_terminal(columns, "batches", LOG_DIR / "codec-lz4-0").splitlines()
    body = shown[2 : shown.index("", 2)]
    assert all(len(line) <= columns for line in body)
    assert len(body) >= 16 + 2
    heads = " ".join(body[:2]).split()
    assert {"base", "size"} <= set(heads)
    assert ("largest" in heads) == (columns >= 80)
    (note,) = [line for line in shown if line.startswith("hidden in this narrow terminal: ")]
    assert note.endswith(" columns; --wide shows all columns")
    wide = on_terminal(columns, "batches", LOG_DIR / "codec-lz4-0", "--wide")
    assert "hidden" not in wide
    assert "delete horizon (UTC)" in wide


def test_corruption_stops_is_skipped_or_reported(tmp_path: Path) -> None:
    place = copy_of("codec-lz4", tmp_path / "topic-0")
    batches = list(kbat.read_batches(place / LOG))
    damaged = bytearray((place / LOG).read_bytes())
    damaged[batches[3].position + 8 : batches[3].position + 12] = b"\xff\xff\xff\xff"
    (place / LOG).write_bytes(damaged)
    stopped = run("batches", place)
    assert stopped.exit_code == 1
    assert stopped.stderr.count("\n") == 1
    assert "--on-corrupt skip continues after it" in stopped.stderr
    skipped = run("batches", place, "--on-corrupt", "skip")
    assert skipped.exit_code == 0
    assert f"skipped 1 corrupt range: {batches[3].size:,} bytes" in skipped.stderr
    reported = rows_of(place, "--on-corrupt", "report")
    (error,) = [row["error"] for row in reported if "error" in row]
    assert (error["kind"], error["position"]) == ("batch_length", batches[3].position)
    assert len(reported) == len(batches)
    assert len(rows_of(place, "--on-corrupt", "report", "-n", 4)) == 5
    assert "-- corruption: " in run("batches", place, "--on-corrupt", "report").stdout


def test_rows_are_written_while_the_log_is_read(tmp_path: Path) -> None:
    """All rows of this log would take 100 MB as Python objects."""
    one = kbat.BatchBuilder()
    one.append(b"key", b"value", timestamp=0)
    place = tmp_path / "t-0"
    place.mkdir()
    batch = bytearray(one.finish())
    with (place / LOG).open("wb") as file:
        for offset in range(40_000):
            batch[:8] = offset.to_bytes(8, "big")
            file.write(batch)
    script = """
import atexit, resource, sys
from kbat.cli import main
atexit.register(lambda: sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)))
main()
"""

    def peak(*options: object) -> int:
        command = [sys.executable, "-c", script, "batches", str(place), "--json", *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())  # noqa: S603 - its own script
        assert done.stdout.count("\n") == (options[1] if options else 40_000)
        return int(done.stderr)

    assert peak() - peak("-n", 5000) < 20_000
    running = process("batches", place)
    with running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith(str(place))
        running.stdout.close()
    assert running.returncode == 141


def test_a_value_that_is_not_text_does_not_reach_the_terminal(tmp_path: Path) -> None:
    log = Log(tmp_path / "a\x1b[31mb" / "t-0")
    log.batch((b"k", b"v"))
    log.write()
    assert "\x1b" not in run("batches", log.directory).stdout
    assert "\x1b" not in run("batches", tmp_path / "a\x1b[31mb" / "u-0").stderr
