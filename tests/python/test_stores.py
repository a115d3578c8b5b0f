"""Both corpora and the log directory through an S3-compatible server: everything is equal to the same through files."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

import kbat
from data import DATA
from expected import case_directories
from outcomes import COLUMNS, lookups, outcome, rows
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
# A server in Python takes some milliseconds for a request: of the old formats, which differ in records only, some cases
# are enough for the functions that read every file many times.
SOME = [*FAMILIES, *[case for case in CASES if not case.startswith("corpus/")][::6]]
COMMANDS = ("salvage", "recover", "rewrite", "compact")
every_case = pytest.mark.parametrize("case", CASES)


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


def scanned(asked: dict[str, Any], source: str, options: dict[str, Any]) -> object:
    """Read rows."""
    return rows(source, **asked, **options)


@every_case
def test_rows_and_corruption_are_those_of_the_files(case: str, place: Place) -> None:
    """Where nothing is corrupt, the three modes are the same."""
    for on_corrupt in ("fail", "report", "skip"):
        mode = {"on_corrupt": on_corrupt, "columns": COLUMNS, "include_control": True}
        found, stored = place.both(partial(scanned, mode), case)
        assert stored == found, on_corrupt
        if on_corrupt == "report" and not any(found[0][1]):
            break


@pytest.mark.parametrize("case", SOME)
def test_batches_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lambda source, options: rows(source, view="batches", **options), case)
    assert stored == found


@pytest.mark.parametrize("case", FAMILIES[::3])
def test_segments_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lambda source, options: rows(source, view="segments", **options), case)
    assert stored == found


@pytest.mark.parametrize("case", TRANSACTIONS)
def test_committed_rows_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lambda source, options: rows(source, isolation="read_committed", **options), case)
    assert stored == found


@pytest.mark.parametrize("case", SOME)
def test_lookups_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lookups, case)
    assert stored == found


@pytest.mark.parametrize("case", SOME)
def test_reports_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lambda source, options: kbat.verify(source, **options).to_dict(), case)
    assert stored == found


def written(out: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("case", "command"), [(case, COMMANDS[at % 4]) for at, case in enumerate(SOME)])
def test_files_written_from_objects_are_those_from_files(case: str, command: str, place: Place, tmp_path: Path) -> None:
    def write(source: str, options: dict[str, Any]) -> dict[str, bytes]:
        out = tmp_path / ("stored" if options else "local") / "out-0"
        out.parent.mkdir()
        try:
            now = {"now_ms": 1_800_000_000_000} if command == "compact" else {}
            getattr(kbat, command)(source, out, **now, **options)
        except (ValueError, OSError) as error:
            message = str(error).replace(os.fspath(out), "<out>")
            raise type(error)(message) from error
        return written(out)

    found, stored = place.both(write, case)
    assert stored == found


def test_objects_that_mark_folders_hide_nothing(place: Place, s3_server: S3Server, tmp_path: Path) -> None:
    """The S3 console and Hadoop write an empty object for a folder. Its key ends with a slash."""
    directory = DATA / "log-dir"
    s3_server.upload(directory, "marked/log-dir")
    for name in ("log-dir/", *(f"log-dir/{path.name}/" for path in directory.iterdir() if path.is_dir())):
        s3_server.put(f"marked/{name}", b"")
    # others write markers without the slash; and a marker may have the name of a segment
    s3_server.put("marked/log-dir/codec-gzip-0", b"")
    s3_server.put("marked/log-dir/codec-lz4-0/00000000000000000000.log/", b"")
    marked = Place(place.local, s3_server.url("marked"), place.options)
    for run in (
        partial(scanned, {}),
        lambda source, options: kbat.verify(source, **options).to_dict(),
        lambda source, options: sorted(kbat.LogDirectory(source, **options).end_offsets().items()),
        lambda source, options: kbat.scan(f"{source}/txn-*", **options).count(),
    ):
        found, stored = marked.both(run, "log-dir")
        assert stored == found
    kbat.restore(f"{marked.stored}/log-dir", tmp_path / "restored", storage_options=place.options)
    assert kbat.scan(tmp_path / "restored").count() == kbat.scan(directory).count()


def test_objects_that_mark_folders_of_tiered_storage_hide_nothing(s3_server: S3Server) -> None:
    plain, kafka = DATA / "tiered" / "aiven" / "plain", DATA / "tiered" / "kafka-local"
    for source in (plain, kafka / "remote"):
        s3_server.upload(source, f"marked-{source.name}", [path for path in source.rglob("*") if path.is_file()])
        for path in source.rglob("*"):
            if path.is_dir():
                s3_server.put(f"marked-{source.name}/{path.relative_to(source).as_posix()}/", b"")
    options: dict[str, Any] = {"storage_options": s3_server.options}
    assert rows(s3_server.url("marked-plain"), **options) == rows(os.fspath(plain))
    tail = os.fspath(kafka / "log-dir" / "orders-0")
    assert rows(tail, remote=s3_server.url("marked-remote"), **options) == rows(tail, remote=kafka / "remote")
