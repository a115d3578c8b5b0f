"""`sum_records`: the sums of records by groups are those of a loop over the records."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import CORPUS, LOG, LOG_DIR, copy_of
from kbat._core.arrow import sum_records
from test_core_sums import class_of

if TYPE_CHECKING:
    from pathlib import Path

DAY_MS = 86_400_000
BY = ("topic", "partition", "compression", "producer_id", "magic", "day")


def rows_of(place: Path) -> list[tuple[dict[str, Any], kbat.Record]]:
    """Every record of a partition that is not a control record, with the values of its groups."""
    log = kbat.PartitionLog(place)
    found = []
    for batch in (batch for segment in log.segments for batch in segment.batches() if not batch.is_control):
        for record in batch:
            known = {
                "topic": log.topic,
                "partition": log.partition,
                "compression": batch.compression,
                "producer_id": batch.producer_id,
                "magic": batch.magic,
                "day": None if record.timestamp == -1 else record.timestamp // DAY_MS,
            }
            found.append((known, record))
    return found


def size_of(record: kbat.Record) -> int:
    return len(record.key or b"") + len(record.value or b"") + header_bytes(record)


def header_bytes(record: kbat.Record) -> int:
    return sum(len(name.encode()) + len(value or b"") for name, value in record.headers)


@pytest.mark.parametrize("by", [(), ("topic",), ("compression", "producer_id"), BY, ("day", "magic")], ids=",".join)
@pytest.mark.parametrize(
    "name", ["codec-lz4-0", "mixed-codecs-0", "txn-lz4-0", "compacted-0", "k0822-java0822-snappy-0"]
)
def test_sums_of_groups_are_those_of_a_loop(name: str, by: tuple[str, ...]) -> None:
    groups: dict[tuple[Any, ...], list[kbat.Record]] = {}
    for known, record in rows_of(LOG_DIR / name):
        groups.setdefault(tuple(known[one] for one in by), []).append(record)
    scan = kbat.scan(LOG_DIR / name)
    found = sum_records(scan, by)
    assert [key for key, _, _ in found] == list(groups)
    for key, figures, classes in found:
        records = groups[key]
        sizes = [size_of(record) for record in records]
        assert figures == {
            "records": len(records),
            "key_bytes": sum(len(record.key or b"") for record in records),
            "value_bytes": sum(len(record.value or b"") for record in records),
            "header_bytes": sum(map(header_bytes, records)),
            "headers": sum(len(record.headers) for record in records),
            "null_keys": sum(record.key is None for record in records),
            "tombstones": sum(record.key is not None and record.value is None for record in records),
            "smallest_record": min(sizes),
            "largest_record": max(sizes),
        }
        assert classes == Counter(map(class_of, sizes))
    assert scan.stats is not None
    assert scan.stats.records == sum(len(records) for records in groups.values())


def test_bounds_choose_records() -> None:
    ((_, figures, _),) = sum_records(kbat.scan(LOG_DIR / "codec-lz4-0", start_offset=17, end_offset=101), ())
    assert figures["records"] == 101 - 17


def test_records_of_a_corrupt_batch_are_not_counted(tmp_path: Path) -> None:
    place = copy_of("codec-none", tmp_path / "orders-0")
    batches = list(kbat.read_batches(place / LOG))
    count = sum(batch.record_count or 0 for batch in batches)
    bad = batches[3]
    data = bytearray((place / LOG).read_bytes())
    data[bad.position + bad.size - 1] ^= 0xFF
    (place / LOG).write_bytes(data)
    with pytest.raises(kbat.CrcError):
        sum_records(kbat.scan(place), ())
    scan = kbat.scan(place, on_corrupt="skip")
    ((_, figures, _),) = sum_records(scan, ())
    assert figures["records"] == count - (bad.record_count or 0)
    assert scan.stats is not None
    assert (scan.stats.batches_skipped, scan.stats.bytes_lost) == (1, bad.size)


def test_batches_whose_last_record_cannot_be_read_are_not_counted() -> None:
    builder = kbat.BatchBuilder()
    for number in range(3):
        builder.append(b"key", b"%d" % number, timestamp=1_700_000_000_000)
    good = builder.finish()
    # the last byte is the number of headers
    data = good[:-1] + b"\x02" + good
    scan = kbat.scan(data, on_corrupt="skip", check_crc=False)
    ((_, figures, classes),) = sum_records(scan, ("day",))
    assert figures["records"] == sum(classes.values()) == 3
    assert scan.stats is not None
    assert scan.stats.batches_skipped == 1


def test_progress_ends_with_all_bytes_and_errors_are_raised() -> None:
    steps: list[tuple[int, int]] = []
    sum_records(kbat.scan(LOG_DIR), ("topic",), progress=lambda *step: steps.append(step))
    done, total = steps[-1]
    assert done == total > 0

    def fail(*_: int) -> None:
        message = "stop"
        raise RuntimeError(message)

    scan = kbat.scan(CORPUS / "codec-lz4")
    with pytest.raises(RuntimeError, match="stop"):
        sum_records(scan, (), progress=fail)
    with pytest.raises(ValueError, match="codec"):
        sum_records(scan, ("codec",))
    with pytest.raises(ValueError, match="view"):
        sum_records(kbat.scan(CORPUS / "codec-lz4", view="batches"), ())
