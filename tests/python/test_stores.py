"""Both corpora and the log directory through an S3-compatible server: everything is equal to the same through files."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kbat
from data import DATA
from expected import case_directories
from s3_server import log_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from s3_server import S3Server

T = TypeVar("T")
FOLDERS = ("corpus", "corpus-legacy", "log-dir")
CASES = [directory.relative_to(DATA).as_posix() for directory in case_directories()]
# Cases in which the isolation level or the indexes of a segment make a difference.
TRANSACTIONS = [case for case in CASES if "txn" in case or (DATA / case / "read-committed.json").exists()]
FAMILIES = [case for case in CASES if case.startswith("corpus/")]
COMMANDS = ("salvage", "recover", "rewrite", "compact")
every_case = pytest.mark.parametrize("case", CASES)
COLUMNS = [
    "key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers", "base_offset", "position",
    "partition_leader_epoch", "producer_id", "producer_epoch", "sequence", "is_transactional", "compression", "magic",
    "batch_size", "segment",
]  # fmt: skip


@dataclass
class Place:
    """The same files in a directory and in a bucket."""

    local: str
    stored: str
    options: dict[str, Any]

    def both(self, run: Callable[[str, dict[str, Any]], T], case: str) -> tuple[Any, Any]:
        """Run on the files and on the objects, and return the two outcomes without the places in them."""
        found = outcome(lambda: run(f"{self.local}/{case}", {}), self.local)
        stored = outcome(lambda: run(f"{self.stored}/{case}", {"storage_options": self.options}), self.stored)
        return found, stored


def outcome(run: Callable[[], T], place: str) -> object:
    """Return the result or the error, with `<place>` for the place."""
    try:
        return without(run(), place)
    except kbat.KbatError as error:
        fields = {name: getattr(error, name) for name in ("path", "position", "base_offset")}
        return type(error), without(str(error), place), without(fields, place)
    except (OSError, ValueError) as error:
        return type(error), without(str(error), place)


def without(value: Any, place: str) -> Any:  # noqa: ANN401 - anything
    """Replace a place wherever it is in a value."""
    if isinstance(value, str):
        return value.replace(place, "<place>")
    if isinstance(value, dict):
        return {without(key, place): without(item, place) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without(item, place) for item in value]
    if isinstance(value, pa.Table):
        for name in {"segment", "path"} & set(value.column_names):
            plain = pc.replace_substring(value[name].cast(pa.string()), place, "<place>")
            value = value.set_column(value.column_names.index(name), name, plain)
        if "error" in value.column_names:
            return value.drop_columns("error"), without(value["error"].to_pylist(), place)
    return value


@pytest.fixture(scope="module")
def place(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The corpora and the log directory, without the answers."""
    root = tmp_path_factory.mktemp("files")
    for folder in FOLDERS:
        for path in log_files(DATA / folder):
            copy = root / path.relative_to(DATA)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    stored = s3_server.upload(root, "stores", [path for path in root.rglob("*") if path.is_file()])
    return Place(os.fspath(root), stored, s3_server.options)


def rows(source: str, **options: Any) -> tuple[Any, Any]:  # noqa: ANN401 - those of kbat.scan
    """Read the rows up to the first error, and the error."""
    scan = kbat.scan(source, **options)
    batches, error = [], None
    try:
        batches.extend(scan.to_batches())
    except kbat.KbatError as raised:
        error = [type(raised).__name__, str(raised), raised.position, raised.base_offset]
    table = pa.Table.from_batches(batches, scan.schema)
    stats = scan.stats
    return table, [error, stats.to_dict() if stats and not error else None]


@every_case
def test_rows_and_corruption_are_those_of_the_files(case: str, place: Place) -> None:
    """Where nothing is corrupt, the three modes are the same."""
    for on_corrupt in ("fail", "report", "skip"):
        found, stored = place.both(
            lambda source, options, mode=on_corrupt: rows(
                source, on_corrupt=mode, columns=COLUMNS, include_control=True, **options
            ),
            case,
        )
        assert stored == found, on_corrupt
        if on_corrupt == "report" and not any(found[0][1]):
            break


@every_case
def test_batches_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lambda source, options: rows(source, view="batches", **options), case)
    assert stored == found


@pytest.mark.parametrize("case", FAMILIES)
def test_segments_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lambda source, options: rows(source, view="segments", **options), case)
    assert stored == found


@pytest.mark.parametrize("case", TRANSACTIONS)
def test_committed_rows_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lambda source, options: rows(source, isolation="read_committed", **options), case)
    assert stored == found


def lookups(source: str, options: dict[str, Any]) -> object:
    """Everything that a partition answers."""
    log = kbat.PartitionLog(source, **options)
    segments = log.segments
    some = list(
        {s.base_offset: s for s in (*segments[:1], *segments[len(segments) // 2 :][:1], *segments[-1:])}.values()
    )
    bases = [segment.base_offset for segment in some]
    end = log.end_offset
    offsets = {-1, end - 1, end, *(base + 37 for base in bases)}
    found = []
    for offset in sorted(offsets):
        at = log.find_offset(offset)
        found.append(at and (at.segment, at.position, at.base_offset, at.last_offset, at.size, at.index))
    tops = [segment.largest_timestamp for segment in some]
    times = {kbat.EARLIEST, kbat.LATEST, kbat.MAX_TIMESTAMP, *(top - 5 for top in tops)}
    by_time = []
    for timestamp in sorted(times):
        at_time = log.find_timestamp(timestamp)
        by_time.append(at_time and (at_time.timestamp, at_time.offset, at_time.leader_epoch, at_time.index))
    aborted = [(a.producer_id, a.first_offset, a.last_offset) for a in log.aborted_transactions(0, end)]
    state = [log.start_offset, end, log.last_stable_offset, log.leader_epochs, log.topic_id, log.topic, log.partition]
    files = [log.snapshots, log.leftovers, [segment.files for segment in log.segments]]
    return [found, by_time, aborted, state, files]


@every_case
def test_lookups_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lookups, case)
    assert stored == found


@every_case
def test_reports_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lambda source, options: kbat.verify(source, **options).to_dict(), case)
    assert stored == found


def written(out: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("case", "command"), [(case, COMMANDS[at % 4]) for at, case in enumerate(CASES)])
def test_files_written_from_objects_are_those_from_files(case: str, command: str, place: Place, tmp_path: Path) -> None:
    def write(source: str, options: dict[str, Any]) -> dict[str, bytes]:
        out = tmp_path / ("stored" if options else "local") / "out-0"
        out.parent.mkdir()
        try:
            getattr(kbat, command)(source, out, **options)
        except (ValueError, OSError) as error:
            message = str(error).replace(os.fspath(out), "<out>")
            raise type(error)(message) from error
        return written(out)

    found, stored = place.both(write, case)
    assert stored == found
