"""Segments in tiered storage that overlap, and that nothing describes: each offset is read once, and none is lost."""

from __future__ import annotations

import base64
import itertools
import random
import warnings
from typing import TYPE_CHECKING, Any, Literal

import pytest

import kbat
from data import DATA
from remote_logs import offsets_of, warned

if TYPE_CHECKING:
    from pathlib import Path

    from s3_server import S3Server

Damage = Literal["payload", "negative length", "large length"]
Layout = Literal["plain", "with ids", "watermark"]
LAYOUTS: tuple[Layout, ...] = ("plain", "with ids", "watermark")
Segments = list[tuple[int, int]]
CASE = DATA / "corpus" / "segments-default-interval"
# Batches of a partition as bytes, with their first offsets and the offsets after their last ones.
BATCHES = [
    (batch.base_offset or 0, batch.last_offset + 1, path.read_bytes()[batch.position :][: batch.size])
    for path in sorted(CASE.glob("*.log"))
    for batch in kbat.read_batches(path)
]
COUNT = len(BATCHES)


def write(directory: Path, segments: Segments, *, draw: random.Random | None = None) -> None:
    """Write segments of some batches, with ids in their names if they are drawn."""
    directory.mkdir(parents=True, exist_ok=True)
    for first, after in segments:
        name = f"{BATCHES[first][0]:020}"
        if draw is not None:
            name += "-" + base64.urlsafe_b64encode(draw.randbytes(16)).decode()[:22]
        (directory / f"{name}.log").write_bytes(b"".join(batch for _, _, batch in BATCHES[first:after]))


def write_remote(root: Path, layout: Layout, segments: Segments, draw: random.Random) -> None:
    if layout == "with ids":
        write(root / "orders-0-gZr7LNvRQaeTZzSyD2PJ2A", segments, draw=draw)
        return
    partition = root / "orders-0"
    write(partition, segments)
    if layout == "watermark":
        (partition / "offset.wm").write_text(f"{max(BATCHES[first][0] for first, _ in segments):020}")


def split(draw: random.Random, first: int, after: int) -> Segments:
    """Divide batches into segments."""
    cuts = sorted({first, after, *draw.sample(range(first, after), min(after - first, draw.randint(0, 4)))})
    return list(itertools.pairwise(cuts))


def part_of(draw: random.Random) -> tuple[int, int]:
    first = draw.randrange(COUNT - 1)
    return first, draw.randint(first + 1, COUNT)


def offsets_in(segments: Segments) -> set[int]:
    return {offset for first, after in segments for offset in range(BATCHES[first][0], BATCHES[after - 1][1])}


def read(path: object, **options: Any) -> list[int]:  # noqa: ANN401 - those of kbat.scan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return offsets_of(path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(25))
def test_each_offset_is_read_once(layout: Layout, seed: int, tmp_path: Path) -> None:
    draw = random.Random(f"{layout} {seed}")  # noqa: S311 - a test
    remote = split(draw, *part_of(draw))
    remote += [segment for _ in range(2) for segment in split(draw, *part_of(draw))]
    if layout != "with ids":  # names are unique there
        remote = list({first: (first, after) for first, after in remote}.values())
    local = split(draw, *part_of(draw))
    write_remote(tmp_path / "remote", layout, remote, draw)
    write(tmp_path / "local" / "orders-0", local)
    if layout != "plain":  # without `remote`, a plain copy is the directory of a broker
        assert read(tmp_path / "remote") == sorted(offsets_in(remote))
    found = read(tmp_path / "local", remote=tmp_path / "remote")
    first_local, last_local = min(offsets_in(local)), max(offsets_in(local))
    # local segments are preferred between their ends
    inside = {offset for offset in offsets_in(remote) if not first_local <= offset <= last_local}
    assert found == sorted(offsets_in(local) | inside)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = kbat.PartitionLog(tmp_path / "local" / "orders-0", remote=tmp_path / "remote")
        assert (log.start_offset, log.end_offset) == (found[0], found[-1] + 1)
        for offset in draw.sample(found, min(5, len(found))):
            place = log.find_offset(offset)
            assert place is not None
            assert place.base_offset <= offset <= place.last_offset


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_object_is_read_once(layout: Layout, tmp_path: Path, s3_server: S3Server) -> None:
    draw = random.Random(1)  # noqa: S311 - a test
    remote, local = [(0, COUNT // 2), (2, 5), (COUNT // 3, COUNT - 3)], [(COUNT - 6, COUNT)]
    write_remote(tmp_path / "remote", layout, remote, draw)
    write(tmp_path / "local" / "orders-0", local)
    files = [path for path in (tmp_path / "remote").rglob("*") if path.is_file()]
    url = s3_server.upload(tmp_path / "remote", f"overlaps-{layout.replace(' ', '-')}", files)
    found = read(tmp_path / "local", remote=url, storage_options=s3_server.options)
    assert found == list(range(BATCHES[0][0], BATCHES[-1][1]))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_omitted_is_named(layout: Layout, tmp_path: Path) -> None:
    draw = random.Random(2)  # noqa: S311 - a test
    write_remote(tmp_path / "remote", layout, [(0, 8), (2, 4), (6, 12)], draw)
    write(tmp_path / "local" / "orders-0", [(12, COUNT)])
    text = warned(lambda: offsets_of(tmp_path / "local", remote=tmp_path / "remote"))
    covered, again, cut = (BATCHES[number][0] for number in (2, 6, 8))
    assert f"{covered:020}" in text
    [line] = [line for line in text.splitlines() if f"offsets {again} to {cut - 1} of " in line]
    assert line.endswith(" are not read: other segments contain the same offsets")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_records_after_an_old_copy_that_ends_inside_a_remote_segment_are_read(layout: Layout, tmp_path: Path) -> None:
    draw = random.Random(3)  # noqa: S311 - a test
    write_remote(tmp_path / "remote", layout, [(0, 6), (6, 20)], draw)
    write(tmp_path / "local" / "orders-0", [(8, 10)])
    found: list[int] = []
    text = warned(lambda: found.extend(offsets_of(tmp_path / "local", remote=tmp_path / "remote")))
    assert found == list(range(BATCHES[0][0], BATCHES[20][0]))
    assert f"ends before offset {BATCHES[10][0]}" in text


def damage(root: Path, segment: tuple[int, int], number: int, kind: Damage) -> None:
    """Damage one batch of a segment."""
    (path,) = root.rglob(f"{BATCHES[segment[0]][0]:020}*.log")
    data = bytearray(path.read_bytes())
    position = sum(len(batch) for _, _, batch in BATCHES[segment[0] : number])
    if kind == "payload":
        data[position + 70] ^= 1
    else:
        length = -5 if kind == "negative length" else 1 << 30
        data[position + 8 : position + 12] = length.to_bytes(4, "big", signed=True)
    path.write_bytes(data)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["payload", "negative length", "large length"])
@pytest.mark.parametrize(
    ("local", "remote", "segment", "number"),
    [
        ((0, 3), [(3, 8), (8, 12)], (8, 12), 11),
        ((0, 3), [(3, 8), (8, 12)], (8, 12), 9),
        ((0, 3), [(2, 8), (8, 12)], (2, 8), 7),
        ((6, 12), [(0, 8)], (0, 8), 3),
        ((6, 12), [(0, 4), (2, 8)], (2, 8), 5),
        ((10, 12), [(0, 5), (4, 10)], (4, 10), 9),
    ],
)
def test_only_the_damaged_batch_is_lost(  # noqa: PLR0913, PLR0917 - parameters
    layout: Layout,
    kind: Damage,
    local: tuple[int, int],
    remote: Segments,
    segment: tuple[int, int],
    number: int,
    tmp_path: Path,
) -> None:
    draw = random.Random(4)  # noqa: S311 - a test
    write_remote(tmp_path / "remote", layout, remote, draw)
    write(tmp_path / "local" / "orders-0", [local])
    damage(tmp_path / "remote", segment, number, kind)
    found = read(tmp_path / "local", remote=tmp_path / "remote", on_corrupt="skip")
    assert found == sorted(offsets_in([(0, 12)]) - offsets_in([(number, number + 1)]))
    is_torn_tail = kind == "large length" and number == 11
    if not is_torn_tail:
        with pytest.raises(kbat.KbatError):
            read(tmp_path / "local", remote=tmp_path / "remote")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_error_in_a_part_has_the_position_in_the_segment(layout: Layout, tmp_path: Path) -> None:
    draw = random.Random(5)  # noqa: S311 - a test
    write_remote(tmp_path / "remote", layout, [(2, 8), (8, 12)], draw)
    write(tmp_path / "local" / "orders-0", [(0, 3)])
    damage(tmp_path / "remote", (2, 8), 7, "payload")
    start = len(BATCHES[2][2])
    with pytest.raises(kbat.CrcError) as raised:
        read(tmp_path / "local", remote=tmp_path / "remote")
    messages = [(raised.value.position, str(raised.value))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = kbat.verify(tmp_path / "local", remote=tmp_path / "remote")
        table = kbat.scan(tmp_path / "local", remote=tmp_path / "remote", on_corrupt="report").to_pyarrow()
    messages += [(one.position, one.message) for one in report.findings if one.kind == "crc"]
    errors: list[Any] = table["error"].drop_null().to_pylist()
    messages += [(None, one["message"]) for one in errors]
    assert len(messages) == 3
    whole = tmp_path / "remote" / "orders-0" / f"{BATCHES[2][0]:020}.log"
    for position, message in messages:
        assert f" of {whole}" in message
        if position is not None:
            assert f"byte {position} is byte {position + start} of " in message
