"""Repairs and restores of files that contradict each other: a damaged `.swap`, wrong names, wrong offsets."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from data import DATA, build

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WHOLE = b"".join(build(records=[(1, None, b"v")] * 5, base_offset=offset) for offset in (0, 5, 10))


def name(base_offset: int) -> str:
    return f"{base_offset:020}.log"


def records(offset: int, count: int = 5) -> bytes:
    return build(records=[(1, None, b"v")] * count, base_offset=offset)


def partition(tmp_path: Path, **files: bytes) -> Path:
    """Write a partition of files whose names are `s` and their base offsets."""
    path = tmp_path / "orders-0"
    path.mkdir()
    for key, content in files.items():
        (path / name(int(key[1:]))).write_bytes(content)
    return path


def offsets(path: Path) -> list[int | None]:
    return list(kbat.scan(path, columns=["offset"]).to_pyarrow().column("offset").to_pylist())


def flipped(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


DAMAGED = {
    "flipped bit": flipped(WHOLE),
    "torn": WHOLE[: len(WHOLE) // 2],
    "empty": b"",
    "zeros": bytes(300),
    "junk": b"\7" * 20,
}


@pytest.mark.parametrize("swap", DAMAGED.values(), ids=DAMAGED)
def test_complete_segments_stay_if_the_output_of_a_compaction_is_damaged(swap: bytes, tmp_path: Path) -> None:
    path = partition(tmp_path, s0=WHOLE, s15=records(15) + records(20))
    (path / f"{name(0)}.swap").write_bytes(swap)
    report = kbat.salvage(path, tmp_path / "salvaged-0")
    assert report.is_complete
    assert offsets(tmp_path / "salvaged-0") == [*range(25)]
    message = rf"would replace complete segments with it: remove it, or use salvage.*{name(0)}\.swap"
    with pytest.raises(kbat.CorruptError, match=message):
        kbat.recover(path, in_place=True)
    with pytest.raises(kbat.CorruptError, match=message):
        kbat.recover(path, dry_run=True)
    with pytest.raises(kbat.CorruptError, match=message):
        kbat.recover(path, tmp_path / "recovered-0")
    assert offsets(path) == [*range(25)]
    with pytest.raises(kbat.CorruptError, match=message):
        kbat.LogWriter(path)
    assert offsets(path) == [*range(25)]


@pytest.mark.parametrize("is_left", [False, True])
def test_a_damaged_output_of_a_compaction_is_used_if_a_segment_that_it_replaces_is_gone(
    tmp_path: Path, *, is_left: bool
) -> None:
    """Deleted are the segments from the first on."""
    path = partition(tmp_path, s15=records(15), **({"s10": records(10)} if is_left else {}))
    (path / f"{name(0)}.swap").write_bytes(flipped(WHOLE))
    report = kbat.salvage(path, tmp_path / "salvaged-0")
    assert not report.is_complete
    assert offsets(tmp_path / "salvaged-0") == [*range(5), *range(10, 20)]


def test_a_damaged_output_of_a_compaction_is_used_if_a_later_segment_only_begins_at_its_end(tmp_path: Path) -> None:
    path = partition(tmp_path, s0=records(0), s15=records(15))
    (path / f"{name(0)}.swap").write_bytes(records(0) + flipped(records(5)) + records(10))
    kbat.salvage(path, tmp_path / "salvaged-0")
    assert offsets(tmp_path / "salvaged-0") == [*range(5), *range(10, 20)]


def test_an_intact_output_of_a_compaction_replaces_segments(tmp_path: Path) -> None:
    path = partition(tmp_path, s0=WHOLE, s15=records(15))
    (path / f"{name(0)}.swap").write_bytes(records(0) + records(10))
    kbat.salvage(path, tmp_path / "salvaged-0")
    assert offsets(tmp_path / "salvaged-0") == [*range(5), *range(10, 20)]


def test_complete_segments_with_gaps_stay_if_the_output_of_a_compaction_is_damaged(tmp_path: Path) -> None:
    """An earlier compaction removed offsets 10 to 19."""
    path = partition(tmp_path, s0=records(0) + records(5), s20=records(20), s25=records(25))
    swap = path / f"{name(0)}.swap"
    swap.write_bytes(records(0) + flipped(records(5)) + records(20))
    kbat.salvage(path, tmp_path / "salvaged-0")
    expected = [*range(10), *range(20, 30)]
    assert offsets(tmp_path / "salvaged-0") == expected
    for change in (lambda: kbat.LogWriter(path), lambda: kbat.recover(path, in_place=True)):
        with pytest.raises(kbat.CorruptError, match="would replace complete segments with it"):
            change()
        assert offsets(path) == expected


def test_no_segment_is_removed_for_a_damaged_output_if_others_are_gone(tmp_path: Path) -> None:
    path = partition(tmp_path, s5=records(5), s10=records(10))
    swap = path / f"{name(0)}.swap"
    swap.write_bytes(records(0) + flipped(records(5)) + records(10))
    message = rf"others that it replaces are gone: salvage .*{name(0)}\.swap"
    for change in (lambda: kbat.LogWriter(path), lambda: kbat.recover(path, in_place=True)):
        with pytest.raises(kbat.CorruptError, match=message):
            change()
        assert sorted(file.name for file in path.iterdir()) == [f"{name(0)}.swap", name(5), name(10)]
    kbat.salvage(path, tmp_path / "salvaged-0")
    swap.unlink()
    kbat.salvage(path, tmp_path / "rest-0")
    found = {*offsets(tmp_path / "salvaged-0"), *offsets(tmp_path / "rest-0")}
    assert found == {*range(15)}


READERS: dict[str, Callable[[Path, Path], object]] = {
    "scan": lambda path, _: kbat.scan(path).count(),
    "partition": lambda path, _: kbat.PartitionLog(path),
    "salvage": kbat.salvage,
    "recover": kbat.recover,
    "recover in place": lambda path, _: kbat.recover(path, in_place=True),
    "rewrite": kbat.rewrite,
    "compact": kbat.compact,
    "filter": lambda path, out: kbat.filter(path, out, lambda _: True),
    "restore": kbat.restore,
    "writer": lambda path, _: kbat.LogWriter(path),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_two_segments_with_the_same_base_offset_are_refused(
    read: Callable[[Path, Path], object], tmp_path: Path
) -> None:
    path = partition(tmp_path, s0=records(0))
    (path / "0.log").write_bytes(records(5))
    with pytest.raises(ValueError, match=rf"{name(0)} has the same base offset: move away .*0\.log"):
        read(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


MISNAMED: dict[str, dict[str, bytes]] = {
    "last": {"s0": records(0), "s5": records(5), "s1": records(10)},
    "first": {"s0": records(100), "s5": records(5), "s10": records(10)},
    "gap": {"s0": records(0, 2) + records(12, 2), "s5": records(5), "s10": records(10)},
    "v1": {"s0": build(magic=1, compression="gzip", records=[(1, None, b"v")] * 2, base_offset=100), "s5": records(5)},
}


@pytest.mark.parametrize("files", MISNAMED.values(), ids=MISNAMED)
@pytest.mark.parametrize("dry_run", [False, True])
def test_restore_refuses_to_omit_records_that_no_other_segment_has(
    files: dict[str, bytes], tmp_path: Path, *, dry_run: bool
) -> None:
    path = partition(tmp_path, **files)
    with pytest.raises(kbat.CorruptError, match=rf"offsets 5 to 9 are only in this segment.*{name(5)}"):
        kbat.restore(path, tmp_path / "out", dry_run=dry_run)
    assert not (tmp_path / "out").exists()


def test_restore_warns_of_records_that_compaction_may_have_removed(tmp_path: Path) -> None:
    path = partition(tmp_path, s0=records(0) + records(10), s5=records(5) + records(10), s15=records(15))
    message = (
        rf"^offsets 5 to 9 are only in {name(5)}, and not restored: compaction may have removed them from {name(0)}, "
        "which has other offsets of both; if this topic was never compacted, the name of one of the segments is wrong$"
    )
    for dry_run in (True, False):
        report = kbat.restore(path, tmp_path / "out", dry_run=dry_run)
        assert [bool(re.search(message, warning)) for warning in report.partitions[0].warnings] == [True]
    assert offsets(tmp_path / "out") == [*range(5), *range(10, 20)]


@pytest.mark.parametrize("magic", [0, 2])
def test_restore_still_omits_batches_that_an_earlier_segment_has(magic: int, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"magic": magic, "compression": "gzip"}
    batches = [
        build(records=[(-1 if magic == 0 else 1, None, b"v")] * 5, base_offset=offset, **settings)
        for offset in range(0, 30, 5)
    ]
    path = partition(tmp_path, s0=b"".join(batches[:4]), s10=b"".join(batches[2:]))
    report = kbat.restore(path, tmp_path / "out")
    assert report.partitions[0].overlaps == [(10, 19)]
    assert offsets(tmp_path / "out") == [*range(30)]


def test_salvage_corrects_the_offset_of_a_compressed_v0_set(tmp_path: Path) -> None:
    """The messages have their offsets, which a checksum covers; the set stores the last one again, without one."""
    sets = []
    for offset in (0, 3, 6, 9):
        messages = [(-1, b"k", os.urandom(3000)) for _ in range(3)]
        sets.append(bytearray(build(magic=0, compression="gzip", records=messages, base_offset=offset)))
    sets[1][:8] = (5 | 64).to_bytes(8, "big")
    path = partition(tmp_path, s0=b"".join(sets))
    before = (path / name(0)).read_bytes()
    report = kbat.salvage(path, tmp_path / "salvaged-0")
    assert report.is_complete
    assert offsets(tmp_path / "salvaged-0") == [*range(12)]
    assert [one for one in kbat.verify(tmp_path / "salvaged-0").findings if one.severity == "error"] == []
    found = [tmp_path / "salvaged-0" / name(0), path / name(0)]
    sets[1][:8] = (5).to_bytes(8, "big")
    assert [file.read_bytes() for file in found] == [b"".join(sets), before]


def test_salvage_of_a_segment_whose_name_is_one_too_high_is_in_order(tmp_path: Path) -> None:
    path = partition(tmp_path, s0=records(0), s6=records(5) + records(10), s15=records(15))
    assert kbat.salvage(path, tmp_path / "salvaged-0").is_complete
    assert sorted(file.name for file in (tmp_path / "salvaged-0").glob("*.log")) == [name(0), name(5), name(15)]
    assert [one for one in kbat.verify(tmp_path / "salvaged-0").findings if one.severity == "error"] == []


def test_salvage_of_the_only_segment_with_a_name_too_high_keeps_its_first_batch(tmp_path: Path) -> None:
    path = partition(tmp_path, s1=WHOLE)
    assert kbat.salvage(path, tmp_path / "salvaged-0").is_complete
    assert offsets(tmp_path / "salvaged-0") == [*range(15)]


@pytest.mark.parametrize("change", [lambda data: data[:25], lambda data: data + bytes(50)], ids=["cut", "zeros"])
def test_salvage_does_not_copy_metadata_with_which_a_broker_does_not_start(
    change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    source = DATA / "corpus" / "codec-none"
    path = partition(tmp_path, s0=(source / name(0)).read_bytes())
    (path / "partition.metadata").write_bytes(change((source / "partition.metadata").read_bytes()))
    report = kbat.salvage(path, tmp_path / "salvaged-0")
    assert "deleted partition.metadata" in str(report)
    assert kbat.verify(tmp_path / "salvaged-0").ok


def test_a_dry_run_of_recover_fails_as_the_run_would(tmp_path: Path) -> None:
    path = partition(tmp_path, s0=records(0)[:40])
    for dry_run in (True, False):
        with pytest.raises(kbat.CorruptError, match="no complete batch was found"):
            kbat.recover(path, in_place=True, dry_run=dry_run)
