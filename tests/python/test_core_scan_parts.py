"""`kbat.split` and parts of files as sources: for any size, every record once."""

from __future__ import annotations

import itertools
import random
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from data import DATA, build

if TYPE_CHECKING:
    from pathlib import Path

CORPUS = DATA / "corpus"
FILES = [
    CORPUS / "segments-dense-index" / "00000000000000000000.log",
    CORPUS / "txn-lz4" / "00000000000000000255.log",
    DATA / "corpus-legacy" / "k0102-broker-gzip" / "00000000000000000000.log",
]


def rows(source: Any, **options: Any) -> list[Any]:  # noqa: ANN401 -- those of kbat.scan
    return kbat.scan(source, columns=["offset", "value", "position"], **options).to_pyarrow().to_pylist()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_every_split_size_gives_every_record_once(path: Path) -> None:
    """Edge case 84: sizes 1 to N."""
    whole = rows(path)
    size = path.stat().st_size
    starts = {batch.position for batch in kbat.read_batches(path)}
    sizes = [*range(1, 200), *range(200, size, max(1, size // 150)), size - 1, size, size + 1]
    for max_bytes in sizes:
        parts = kbat.split(path, max_bytes)
        assert {start for _, start, _ in parts} <= starts
        assert [end for _, _, end in parts[:-1]] == [start for _, start, _ in parts[1:]]
        assert (parts[0][1], parts[-1][2]) == (0, size)
        if max_bytes % 7 == 0 or max_bytes > 200:
            assert [row for part in parts for row in rows(part)] == whole, max_bytes
            assert rows(parts) == whole, max_bytes
    largest = max(batch.size for batch in kbat.read_batches(path))
    assert all(end - start <= max(largest, 1000) for _, start, end in kbat.split(path, 1000))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_parts_of_a_part_lie_in_it_and_are_of_about_equal_size(path: Path) -> None:
    size = path.stat().st_size
    largest = max(batch.size for batch in kbat.read_batches(path))
    source = random.Random(7)  # noqa: S311 -- no secret
    for _ in range(40):
        start, end = sorted(source.sample(range(size + 1), 2))
        for max_bytes in (1, (end - start) // 3 + 1, end - start, size):
            parts = kbat.split((path, start, end), max_bytes)
            assert (parts[0][1], parts[-1][2]) == (start, end)
            assert rows(parts) == rows((path, start, end)), (start, end, max_bytes)
    lens = [end - start for _, start, end in kbat.split(path, size // 2 + largest)]
    assert len(lens) == 2
    assert abs(lens[0] - lens[1]) <= 2 * largest


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("on_corrupt", ["fail", "skip", "report"])
def test_windows_need_not_begin_where_batches_do(tmp_path: Path, on_corrupt: str, with_index: bool) -> None:  # noqa: FBT001 -- a case
    path = tmp_path / FILES[0].name
    shutil.copy(FILES[0], path)
    if with_index:
        shutil.copy(FILES[0].with_suffix(".index"), path.with_suffix(".index"))
    whole = rows(path, on_corrupt=on_corrupt)
    size = path.stat().st_size
    source = random.Random(84)  # noqa: S311 -- no secret
    for count in (1, 2, 5, 30):
        cuts = sorted({0, size, *(source.randrange(size) for _ in range(count))})
        windows = [(path, start, end) for start, end in itertools.pairwise(cuts)]
        assert rows(windows, on_corrupt=on_corrupt) == whole, cuts


def test_windows_over_damage_report_it_once(tmp_path: Path) -> None:
    path = tmp_path / FILES[0].name
    data = bytearray(FILES[0].read_bytes())
    for place in (100, 5000, 9001):
        data[place : place + 3] = b"\xff\xff\xff"
    path.write_bytes(data)
    shutil.copy(FILES[0].with_suffix(".index"), path.with_suffix(".index"))
    whole = kbat.scan(path, columns=["offset"], on_corrupt="report").to_pyarrow().to_pylist()
    assert sum(row["error"] is not None for row in whole) == 3
    size = len(data)
    for step in (300, 1000, 4999, 5001, 20_000):
        cuts = [*range(0, size, step), size]
        windows = [(path, start, end) for start, end in itertools.pairwise(cuts)]
        found = kbat.scan(windows, columns=["offset"], on_corrupt="report").to_pyarrow().to_pylist()
        assert [row["offset"] for row in found] == [row["offset"] for row in whole], step


def test_a_wrong_index_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / FILES[0].name
    shutil.copy(FILES[0], path)
    source = random.Random(8)  # noqa: S311 -- no secret
    path.with_suffix(".index").write_bytes(source.randbytes(800))
    whole = rows(path)
    for max_bytes in (100, 3000):
        assert rows(kbat.split(path, max_bytes)) == whole
    assert rows(path, start_offset=40) == [row for row in whole if row["offset"] >= 40]


def test_split_of_a_directory_and_of_a_part() -> None:
    directory = CORPUS / "segments-default-interval"
    parts = kbat.split(directory, 5000)
    assert rows(parts) == rows(directory)
    assert len(parts) > len(list(directory.glob("*.log")))


def test_split_of_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="only files"):
        kbat.split(b"", 5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_bytes"):
        kbat.split(FILES[0], 0)
    with pytest.raises(ValueError, match="only files"):
        kbat.scan((tmp_path, 0, 5))
    with pytest.raises(FileNotFoundError):
        kbat.split(tmp_path / "none", 5)


def test_patterns_are_expanded(tmp_path: Path) -> None:
    for name, offset in (("orders-0", 0), ("orders-1", 5), ("other-0", 9)):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{offset:020}.log").write_bytes(build([(1, None, b"v")], base_offset=offset))
    assert [row["offset"] for row in rows(f"{tmp_path}/orders-*")] == [0, 5]
    assert [row["offset"] for row in rows([tmp_path / "*" / "*.log"])] == [0, 5, 9]
    with pytest.raises(FileNotFoundError, match="nothing matches"):
        kbat.scan(f"{tmp_path}/absent-*")


def test_a_first_offset_far_into_a_segment_reads_little(tmp_path: Path) -> None:
    """With an index: some kilobytes before the first row."""
    value = bytes(16_000)
    path = tmp_path / f"{0:020}.log"
    data = b"".join(build([(offset, None, value)], base_offset=offset) for offset in range(1000))
    path.write_bytes(data)
    size = len(data) // 1000
    entries = b"".join((offset).to_bytes(4) + (offset * size).to_bytes(4) for offset in range(1, 1000))
    path.with_suffix(".index").write_bytes(entries)
    batches = kbat.scan(path, start_offset=900, columns=["offset"], max_rows=1).to_batches()
    assert next(batches)["offset"].to_pylist() == [900]
    assert batches.stats.bytes_read <= 65_536
    path.with_suffix(".index").unlink()
    batches = kbat.scan(path, start_offset=900, columns=["offset"], max_rows=1).to_batches()
    assert next(batches)["offset"].to_pylist() == [900]
    assert batches.stats.bytes_read < len(data) // 20, "payloads before it are not read"


def test_parts_that_overlap_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "batches.bin"
    batches = [build(base_offset=index) for index in range(4)]
    path.write_bytes(b"".join(batches))
    end = len(batches[0])
    sources: list[Any] = [[(path, 0, end + 1), (path, end, 2 * end)], [path, (path, 0, end)]]
    for source in sources:
        with pytest.raises(ValueError, match=f"two parts of .*{path.name} contain byte"):
            kbat.scan(source)
    rows = kbat.scan([(path, 0, end), (path, end, 4 * end)], columns=["offset"]).to_pyarrow()
    assert rows["offset"].to_pylist() == [0, 1, 2, 3]
    assert kbat.scan([(path, 0, end)] * 2).count() == 2  # as a buffer that is passed twice
