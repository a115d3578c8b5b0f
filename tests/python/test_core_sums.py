"""`sum_batches`: the sums of headers by groups are those of a loop over the batches."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import CORPUS, LOG, LOG_DIR, copy_of
from kbat._core.arrow import sum_batches

if TYPE_CHECKING:
    from pathlib import Path

DAY_MS = 86_400_000
HEADER_LEN = 61
GROUPS = ("topic", "partition", "compression", "producer_id", "magic", "day")


def class_of(size: int) -> int:
    """The smallest size with the same seven leading bits."""
    shift = max(0, size.bit_length() - 7)
    return size >> shift << shift


def expected(log: kbat.PartitionLog, by: tuple[str, ...]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The figures of a partition of message format 2, without gaps, by group."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for batch in (batch for segment in log.segments for batch in segment.batches()):
        known = {
            "topic": log.topic,
            "partition": log.partition,
            "compression": batch.compression,
            "producer_id": batch.producer_id,
            "magic": batch.magic,
            "day": batch.max_timestamp // DAY_MS,
        }
        sums = found.setdefault(
            tuple(known[name] for name in by), {"sizes": [], "times": [], **dict.fromkeys(NAMES, 0)}
        )
        sums["batches"] += 1
        sums["bytes"] += batch.size
        sums["records"] += batch.record_count
        sums["batch_header_bytes"] += HEADER_LEN
        sums["control_batches"] += batch.is_control
        sums["transactional_batches"] += batch.is_transactional
        sums["sizes"].append(batch.size)
        sums["times"] += [batch.base_timestamp, batch.max_timestamp]
    return found


NAMES = ("batches", "bytes", "records", "batch_header_bytes", "control_batches", "transactional_batches")


@pytest.mark.parametrize("by", [(), ("topic",), ("compression", "producer_id"), GROUPS, ("day", "magic")])
@pytest.mark.parametrize("name", ["codec-lz4-0", "mixed-codecs-0", "txn-lz4-0", "idempotent-0"])
def test_sums_of_groups_are_those_of_a_loop(name: str, by: tuple[str, ...]) -> None:
    found = sum_batches(kbat.scan(LOG_DIR / name, view="batches"), by)
    groups = expected(kbat.PartitionLog(LOG_DIR / name), by)
    assert [key for key, _, _ in found] == list(groups)
    for key, figures, classes in found:
        sums = groups[key]
        assert {name: figures[name] for name in NAMES} == {name: sums[name] for name in NAMES}
        assert (figures["smallest_batch"], figures["largest_batch"]) == (min(sums["sizes"]), max(sums["sizes"]))
        assert (figures["first_timestamp"], figures["last_timestamp"]) == (min(sums["times"]), max(sums["times"]))
        assert classes == Counter(map(class_of, sums["sizes"]))
        assert (figures["uncounted_batches"], figures["uncounted_bytes"]) == (0, 0)


def test_missing_offsets_are_those_between_and_within_batches() -> None:
    place = LOG_DIR / "compacted-0"
    ((_, figures, _),) = sum_batches(kbat.scan(place, view="batches"), ())
    between = within = gaps = 0
    end = None
    for batch in (batch for segment in kbat.PartitionLog(place).segments for batch in segment.batches()):
        if end is not None and batch.base_offset > end:
            gaps, between = gaps + 1, between + batch.base_offset - end
        within += batch.last_offset - batch.base_offset + 1 - (batch.record_count or 0)
        end = batch.last_offset + 1
    assert gaps > 0
    assert within > 0
    assert (figures["gaps"], figures["missing_offsets"]) == (gaps, between + within)


def test_compressed_sets_of_old_formats_have_no_record_count() -> None:
    found = sum_batches(kbat.scan(LOG_DIR, view="batches"), ("magic", "compression"))
    old = {key: figures for key, figures, _ in found if key[0] < 2 and key[1] != "none"}
    assert old
    for figures in old.values():
        assert (figures["uncounted_batches"], figures["uncounted_bytes"]) == (figures["batches"], figures["bytes"])
        assert figures["records"] == 0


def test_sums_read_headers_only(tmp_path: Path) -> None:
    """A corrupt payload is not read, so it is no error; a corrupt header is one, which a scan can skip."""
    place = copy_of("codec-lz4", tmp_path / "orders-0")
    batches = list(kbat.read_batches(place / LOG))
    data = bytearray((place / LOG).read_bytes())
    data[batches[3].position + 200] ^= 1
    (place / LOG).write_bytes(data)
    ((_, whole, _),) = sum_batches(kbat.scan(place, view="batches"), ())
    assert whole["batches"] == len(batches)
    data[batches[3].position + 8 : batches[3].position + 12] = b"\xff\xff\xff\xff"
    (place / LOG).write_bytes(data)
    with pytest.raises(kbat.CorruptError) as caught:
        sum_batches(kbat.scan(place, view="batches"), ())
    assert caught.value.base_offset == batches[3].base_offset
    scan = kbat.scan(place, view="batches", on_corrupt="skip")
    ((_, rest, _),) = sum_batches(scan, ())
    assert rest["batches"] == len(batches) - 1
    assert scan.stats is not None
    assert scan.stats.batches_skipped == 1
    assert scan.stats.bytes_lost == batches[3].size


def test_progress_ends_with_all_bytes() -> None:
    steps: list[tuple[int, int]] = []
    sum_batches(kbat.scan(LOG_DIR, view="batches"), ("topic",), progress=lambda *step: steps.append(step))
    done, total = steps[-1]
    assert done == total > 0


def test_errors_of_progress_and_arguments_are_raised() -> None:
    def fail(*_: int) -> None:
        message = "stop"
        raise RuntimeError(message)

    scan = kbat.scan(CORPUS / "codec-lz4", view="batches")
    with pytest.raises(RuntimeError, match="stop"):
        sum_batches(scan, (), progress=fail)
    with pytest.raises(ValueError, match="codec"):
        sum_batches(scan, ("codec",))
    with pytest.raises(ValueError, match="view"):
        sum_batches(kbat.scan(CORPUS / "codec-lz4"), ())
