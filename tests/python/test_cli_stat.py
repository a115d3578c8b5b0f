"""`kbat stat`: sums, distributions and gaps equal those computed from every batch and record of the API."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kbat
from command_line import CORPUS, LOG, LOG_DIR, copy_of, json_of, on_terminal, run
from kbat.cli.tally import GROUPS
from kbat.sums import Sizes
from partitions import DAY, NOW, Log
from test_core_sums import class_of

if TYPE_CHECKING:
    from pathlib import Path

NOTE = "hidden in this narrow terminal: "


def _milliseconds(time: Any) -> int | None:  # noqa: ANN401 - a datetime of pyarrow
    return None if time is None else round(time.timestamp() * 1000)


def _day(time: Any) -> str | None:  # noqa: ANN401 - as above
    return None if time is None else f"{time:%Y-%m-%d}"


def batches_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = kbat.scan(path, view="batches").to_pyarrow().to_pylist()
    return [{**row, "day": _day(row["max_timestamp"])} for row in rows]


def records_of(path: Path) -> list[dict[str, Any]]:
    names = ["topic", "partition", "compression", "producer_id", "magic", "timestamp", "key", "value", "headers"]
    rows: list[dict[str, Any]] = kbat.scan(path, columns=names).to_pyarrow().to_pylist()
    return [{**row, "day": _day(row["timestamp"])} for row in rows]


def _len(value: bytes | str | None) -> int:
    return len(value.encode() if isinstance(value, str) else value or b"")


def _headers(record: dict[str, Any]) -> int:
    return sum(_len(one["key"]) + _len(one["value"]) for one in record["headers"])


@pytest.mark.parametrize(
    "names", [("topic",), ("codec",), ("topic", "codec"), ("day", "producer"), ("partition", "magic")], ids=",".join
)
def test_groups_are_sums_over_batches_and_records(names: tuple[str, ...]) -> None:
    keys = [GROUPS[name] for name in names]
    found = json_of("stat", LOG_DIR, "--by", ",".join(names), "--records")
    assert found["by"] == keys
    batches: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in batches_of(LOG_DIR):
        batches.setdefault(tuple(row[key] for key in keys), []).append(row)
    records: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in records_of(LOG_DIR):
        records.setdefault(tuple(row[key] for key in keys), []).append(row)
    groups = {tuple(group[key] for key in keys): group for group in found["groups"]}
    assert groups.keys() == batches.keys() | records.keys()
    for key, group in groups.items():
        rows = batches.get(key, [])
        assert group["batches"] == len(rows)
        assert group["bytes"] == sum(row["size"] for row in rows)
        assert group["batch_header_bytes"] == sum(row["size"] - row["stored_size"] for row in rows)
        assert group["records"] == sum(row["record_count"] or 0 for row in rows)
        assert group["uncounted_batches"] == sum(row["record_count"] is None for row in rows)
        assert group["control_batches"] == sum(row["is_control"] for row in rows)
        assert group["transactional_batches"] == sum(row["is_transactional"] for row in rows)
        last = [_milliseconds(row["max_timestamp"]) for row in rows if row["max_timestamp"] is not None]
        assert group["last_timestamp"] == (max(filter(None, last)) if last else None)
        _check_sizes(group["batch_sizes"], [row["size"] for row in rows])
        _check_contents(group["contents"], records.get(key, []))


def _check_contents(contents: dict[str, Any], records: list[dict[str, Any]]) -> None:
    assert contents["records"] == len(records)
    assert contents["key_bytes"] == sum(_len(row["key"]) for row in records)
    assert contents["value_bytes"] == sum(_len(row["value"]) for row in records)
    assert contents["header_bytes"] == sum(map(_headers, records))
    assert contents["headers"] == sum(len(row["headers"]) for row in records)
    assert contents["null_keys"] == sum(row["key"] is None for row in records)
    assert contents["tombstones"] == sum(row["value"] is None and row["key"] is not None for row in records)
    sizes = [_len(row["key"]) + _len(row["value"]) + _headers(row) for row in records]
    assert contents["bytes"] == sum(sizes)
    _check_sizes(contents["sizes"], sizes)


def _check_sizes(found: dict[str, Any], sizes: list[int]) -> None:
    assert found["min"] == min(sizes, default=None)
    assert found["max"] == max(sizes, default=None)
    for percent in (50, 90, 99):
        if sizes:
            exact = sorted(sizes)[-(-len(sizes) * percent // 100) - 1]
            assert exact <= found[f"p{percent}"] <= max(exact, exact * 1.02)
    expected = Counter(1 << size.bit_length() - 1 if size else 0 for size in sizes)
    assert found["histogram"] == [list(pair) for pair in sorted(expected.items())]


@given(st.lists(st.integers(0, 1 << 31), min_size=1, max_size=50), st.integers(1, 49))
def test_distributions_can_be_added_in_any_parts(sizes: list[int], at: int) -> None:
    def distribution(part: list[int]) -> Sizes:
        return Sizes(Counter(map(class_of, part)), min(part, default=None), max(part, default=None))

    total = distribution(sizes[:at])
    total.add(distribution(sizes[at:]))
    _check_sizes(total.to_dict(), sizes)


def test_gaps_are_counted_per_partition(tmp_path: Path) -> None:
    """Partitions follow each other in the scan, and their first offsets are no gaps."""
    for name, start in (("a-0", 0), ("a-1", 1000), ("b-0", 7)):
        log = Log(tmp_path / name, end_offset=start, base_offset=start)
        log.batch((b"k", b"v"))
        log.end_offset += 5
        log.batch((b"k", b"v"), (b"l", None))
        log.end_offset += 2
        log.batch((b"k", b"v"))
        log.write()
    found = json_of("stat", tmp_path, "--by", "topic,partition")
    assert {(one["topic"], one["partition"]): (one["gaps"], one["missing_offsets"]) for one in found["groups"]} == {
        ("a", 0): (2, 7),
        ("a", 1): (2, 7),
        ("b", 0): (2, 7),
    }
    assert (found["total"]["gaps"], found["total"]["missing_offsets"]) == (6, 21)
    files = [tmp_path / name / f"{start:020}.log" for name, start in (("a-0", 0), ("b-0", 7))]
    for number, file in enumerate(files):
        file.rename(tmp_path / f"copy{number}.bin")
    copies = json_of("stat", tmp_path / "copy0.bin", tmp_path / "copy1.bin")
    assert [(one["topic"], one["gaps"], one["missing_offsets"]) for one in copies["groups"]] == [(None, 4, 14)]


def test_offsets_that_compaction_removed_are_missing() -> None:
    place = LOG_DIR / "compacted-0"
    log = kbat.PartitionLog(place)
    offsets = [record.offset for segment in log.segments for batch in segment.batches() for record in batch]
    (group,) = json_of("stat", place)["groups"]
    assert group["missing_offsets"] == log.end_offset - offsets[0] - len(offsets)


def test_ranges_select_batches_and_records(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    for day in range(3):
        log.batch((b"k", b"v"), (b"l", b"w"), timestamp=NOW + day * DAY)
    log.write()
    days = json_of("stat", log.directory, "--by", "day", "--start-time", NOW + DAY)["groups"]
    assert [(one["day"], one["batches"]) for one in days] == [("2023-11-15", 1), ("2023-11-16", 1)]
    one = json_of("stat", log.directory, "--start-offset", 1, "--end-offset", 3, "--records")["total"]
    assert (one["batches"], one["contents"]["records"]) == (2, 2)


def test_tables_and_lines_show_the_same(tmp_path: Path) -> None:
    place = LOG_DIR / "txn-lz4-0"
    found = json_of("stat", place, "--records")["total"]
    text = run("stat", place, "--records").stdout
    assert f"missing offsets: {found['missing_offsets']}, with {found['gaps']} gaps between batches\n" in text
    assert (
        f"transactional batches: {found['transactional_batches']}, control batches: {found['control_batches']}" in text
    )
    contents = found["contents"]
    assert f"tombstones: {contents['tombstones']}, null keys: {contents['null_keys']}\n" in text
    assert f"headers of records: {contents['headers']:,}, " in text
    for power, count in found["batch_sizes"]["histogram"]:
        assert (
            any(line.split()[:4] == ["from", str(power), "B", str(count)] for line in text.splitlines()) or power > 512
        )
    headers_only = run("stat", place).stdout
    assert "tombstones" not in headers_only
    assert json_of("stat", place)["total"]["contents"] is None
    (tmp_path / "empty-0").mkdir()
    (tmp_path / "empty-0" / LOG).touch()
    assert run("stat", tmp_path / "empty-0").stdout == f"{tmp_path / 'empty-0'}: no batches\n"


@pytest.mark.parametrize("columns", [50, 80])
@pytest.mark.parametrize("options", [(), ("--records", "--by", "topic,codec")], ids=str)
def test_everything_fits_a_terminal(columns: int, options: tuple[str, ...]) -> None:
    # lines of text are made for 80 columns, and wrap in a narrower terminal
    text = ("batches:", "records:", "headers of") if columns < 80 else ()
    title, *shown = on_terminal(columns, "stat", LOG_DIR, *options).splitlines()
    assert title == str(LOG_DIR)
    assert len(shown) > 20
    assert all(len(line) <= columns for line in shown if not line.startswith((NOTE, *text)))


def test_corruption_is_not_counted(tmp_path: Path) -> None:
    place = copy_of("codec-lz4", tmp_path / "topic-0")
    batches = list(kbat.read_batches(place / LOG))
    damaged = bytearray((place / LOG).read_bytes())
    damaged[batches[3].position + 8 : batches[3].position + 12] = b"\xff\xff\xff\xff"
    (place / LOG).write_bytes(damaged)
    done = run("stat", place, "--records", "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert found["total"]["batches"] == len(batches) - 1
    assert found["total"]["missing_offsets"] == batches[3].record_count
    assert (found["batches_skipped"], found["bytes_lost"]) == (1, batches[3].size)
    assert "in 1 corrupt range; 'kbat verify' lists it" in done.stderr
    checked = json_of("stat", CORPUS / "crash-flip", "--records")
    assert checked["batches_skipped"] == 1


def test_audit_has_a_part_of_what_stat_has() -> None:
    audit = json_of("audit", LOG_DIR, "--by", "producer,day")
    stat = json_of("stat", LOG_DIR, "--by", "topic,codec,producer,day")
    fields = audit["groups"][0].keys()
    assert [{name: one[name] for name in fields} for one in stat["groups"]] == audit["groups"]
    assert {name: stat["total"][name] for name in audit["total"]} == audit["total"]
    assert set(audit) < set(stat)
