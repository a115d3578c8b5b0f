"""Every command on logs of real brokers, whole and corrupt, and on everything else that a path may be.

Each run ends with the exit code of `docs/exit-codes.md`, in bounded time, and with at most a few lines about an error.
The sample runs always, all cases with `make test-long`.
"""

from __future__ import annotations

import gzip
import os
import re
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kbat
from command_line import CORPUS, LOG, copy_of, run
from data import DATA
from kbat.cli.app import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer.testing import Result

# Of one command; most take a hundredth of a second, a report one second.
SECONDS = 30
PAGE = DATA.parents[1] / "docs" / "exit-codes.md"
# Arguments after PATH. OUT is a path that does not exist.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "lookup": ("--time", "0"),
    "advise": ("--seconds", "1"),
    "report": ("--seconds", "1", "-o", "OUT.html"),
    "recover": ("OUT",),
    "salvage": ("OUT",),
    "rebuild-indexes": ("OUT",),
    "restore": ("OUT",),
    "compact": ("OUT",),
    "rewrite": ("OUT",),
    "convert": ("OUT", "--compression", "lz4"),
    "copy": ("OUT",),
    "filter": ("OUT", "--grep", "a"),
    "export": ("OUT.parquet",),
    "import": ("OUT",),
}
# Commands that stop at a batch with a wrong checksum; the others do not read it, or count and skip it.
STRICT = {"cat", "restore", "compact", "rewrite", "convert", "copy", "filter", "export"}
# Internal topics, which `restore` omits.
INTERNAL = {"consumer-offsets", "cluster-metadata", "transaction-state", "share-group-state"}
# Topics that a command needs, and the cases with them.
TOPICS = {"groups": "consumer-offsets", "topics": "cluster-metadata"}
CASES = sorted(path.name for path in CORPUS.iterdir() if any(path.glob("[0-9]" * 20 + ".log")))
# Cases in which a broker was killed: `verify` finds errors in files or at the end, or a corrupt batch.
CRASHES = {"crash-flip", "crash-index", "crash-torn", "crash-txn"}
SAMPLE = ("codec-zstd", "cluster-metadata", "consumer-offsets", "txn-lz4")
STATES = ("whole", "truncated", "flipped")
# Compaction left empty segments at the start: a broker, and `lookup` with it, finds no record by time.
HIDDEN = {"compacted", "compacted-append-time", "compacted-codec", "compacted-codec2", "compacted-empty-batches"}
# Exit codes of other cases, by command: the only batch is corrupt; zeros follow the batches, at which kafka-dump-log
# fails too; the corrupt batch is the last one of a segment, or one of the states that `transactions` reads.
EXCEPTIONS: dict[tuple[str, str], dict[str, int]] = {
    ("big-batch", "truncated"): {"lookup": 1, "salvage": 2},
    ("big-batch", "flipped"): {"lookup": 1, "salvage": 2, "ls": 1, "producers": 1, "transactions": 1},
    ("preallocated-live", "whole"): {"dump": 1},
    ("preallocated-live", "flipped"): {"dump": 1},
    ("segments-by-time", "flipped"): {"ls": 1},
    ("share-group-state", "flipped"): {"ls": 1, "lookup": 1, "producers": 1, "transactions": 1},
    ("transaction-state", "flipped"): {"transactions": 1},
}


@contextmanager
def bounded(what: object) -> Iterator[None]:
    """Stop the block after some seconds, with what it worked on."""

    def stop(*_: object) -> None:
        pytest.fail(f"{what} takes more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def documented() -> dict[str, set[int]]:
    """The exit codes of each command on the page, with those of interrupted output."""
    rows = re.findall(r"^\| \[`kbat ([a-z-]+)`\]\S+ \| (.*) \|$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {command: {int(code) for code in re.findall(r"(?:^|; )(\d+)", text)} for command, text in rows}


CODES = documented()


def checked(command: str, path: Path, out: Path) -> Result:
    """Run a command on a path, and check what holds for all inputs."""
    with bounded((command, path)):
        done = run(command, path, *(word.replace("OUT", str(out)) for word in ARGUMENTS.get(command, ())))
    for word in ("Traceback", "internal error"):
        assert word not in done.output, (command, path, done.output)
    assert done.exit_code in CODES[command], (command, path, done.exit_code, done.stderr)
    assert done.stderr.count("\n") <= 4, (command, path, done.stderr)
    if done.exit_code and command != "verify":
        assert done.stderr or '"error' in done.stdout, (command, path)
    return done


def made(case: str, state: str, root: Path) -> Path:
    """A copy of a case, whole, without its last bytes, or with another bit in a batch."""
    topic = f"__{case.replace('-', '_')}" if case in INTERNAL else case
    place = copy_of(case, root / f"{topic}-0")
    # the last batch of a preallocated file is far before its end
    ends = {log: [batch.position + batch.size for batch in _batches(log)] for log in sorted(place.glob("0*.log"))}
    logs = [log for log, found in ends.items() if found]
    if logs and state == "truncated":
        os.truncate(logs[-1], ends[logs[-1]][-1] - 7)
    elif logs and state == "flipped":
        log = logs[len(logs) // 2]
        data = bytearray(log.read_bytes())
        # the last byte of a batch is within its checksum
        data[ends[log][len(ends[log]) // 2] - 1] ^= 0x10
        log.write_bytes(data)
    return place


def _batches(log: Path) -> list[kbat.Batch]:
    found = []
    try:
        for batch in kbat.read_batches(log):
            found.append(batch)  # noqa: PERF402 - keeps those before corruption
    except kbat.KbatError:
        pass
    return found


def expected(command: str, case: str, state: str, *, is_corrupt: bool, has_records: bool) -> int:
    """The exit code of a command on a copy of a case."""
    if command in EXCEPTIONS.get((case, state), {}):
        return EXCEPTIONS[case, state][command]
    if command == "import" or (command in TOPICS and case != TOPICS[command]):
        return 2
    if command == "restore" and case in INTERNAL:
        return 0
    if command == "verify":
        is_changed = state != "whole" and has_records
        return 2 if is_changed or case in CRASHES else 0
    if command == "lookup" and (case in HIDDEN or not has_records):
        return 1
    return int(is_corrupt and (command in STRICT or command in TOPICS))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    "case", [*SAMPLE, *(pytest.param(one, marks=pytest.mark.long) for one in CASES if one not in SAMPLE)]
)
def test_every_command_on_every_case(case: str, state: str, tmp_path: Path) -> None:
    place = made(case, state, tmp_path)
    logs = sorted(place.glob("0*.log"))
    has_records = any(_batches(log) for log in (CORPUS / case).glob("0*.log"))
    is_corrupt = case == "crash-flip" or (state == "flipped" and has_records)
    for command in COMMANDS:
        if case in SAMPLE[1:] and state == "whole" and command in {"advise", "report"}:
            continue
        path = logs[0] if command == "dump" else place
        done = checked(command, path, tmp_path / f"result-{command}")
        code = expected(command, case, state, is_corrupt=is_corrupt, has_records=has_records)
        assert done.exit_code == code, (command, done.stderr)
        assert sorted(one.name for one in place.parent.iterdir() if not one.name.startswith("result-")) == [place.name]


def _empty(root: Path) -> Path:
    (root / "orders-0").mkdir()
    return root / "orders-0"


def _file(root: Path, content: bytes) -> Path:
    place = _empty(root)
    (place / LOG).write_bytes(content)
    return place


def _unreadable(root: Path) -> Path:
    place = _file(root, (CORPUS / "codec-lz4" / LOG).read_bytes())
    (place / LOG).chmod(0)
    return place


TEXT = b"2026-11-22 10:00:00 INFO this is the log of a program\n" * 20
# The exit code of all commands, and those of the others.
OTHER: dict[str, tuple[int, dict[str, int]]] = {
    "empty": (1, {"dump": 2, "import": 2}),
    "missing": (2, {}),
    # as a preallocated segment without a batch; kafka-dump-log fails too
    "zeros": (0, {"verify": 1, "dump": 1, "lookup": 1, "groups": 2, "topics": 2, "import": 2}),
    # as kafka-dump-log, with a warning
    "text": (2, {"dump": 0}),
    "gzip": (2, {"dump": 0}),
    "unreadable": (1, {"verify": 2, "groups": 2, "topics": 2, "import": 2}),
}


def _other(name: str, root: Path) -> Path:
    match name:
        case "empty":
            return _empty(root)
        case "missing":
            return root / "orders-0"
        case "zeros":
            with Path("/dev/zero").open("rb") as file:
                return _file(root, file.read(1 << 20))
        case "text":
            return _file(root, TEXT)
        case "gzip":
            return _file(root, gzip.compress((CORPUS / "codec-lz4" / LOG).read_bytes()))
    return _unreadable(root)


@contextmanager
def _as_nobody(root: Path) -> Iterator[None]:
    """Run the block as a user who may write below a directory, and read nothing of root's."""
    if os.geteuid() != 0:
        yield
        return
    for directory in (root, *(one for one in root.parents if one.is_relative_to("/tmp/pytest-of-root"))):  # noqa: S108
        directory.chmod(0o777)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("name", OTHER)
def test_every_command_on_what_is_not_a_log(name: str, tmp_path: Path) -> None:
    place = _other(name, tmp_path)
    found = {}
    for command in COMMANDS:
        path = place / LOG if command == "dump" and name != "empty" else place
        if name == "unreadable":
            with _as_nobody(tmp_path):
                done = checked(command, path, tmp_path / f"result-{command}")
        else:
            done = checked(command, path, tmp_path / f"result-{command}")
        found[command] = done.exit_code
        if done.exit_code:
            assert not (tmp_path / f"result-{command}").exists(), command
    code, others = OTHER[name]
    assert found == {command: others.get(command, code) for command in COMMANDS}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 partitions: most are empty directories, some have an empty file or a batch."""
    root: Path = tmp_path_factory.mktemp("many")
    builder = kbat.BatchBuilder()
    builder.append(b"key", b"value", timestamp=1_700_000_000_000)
    data = builder.finish()
    for number in range(10_000):
        place = root / f"topic{number % 100}-{number // 100}"
        place.mkdir()
        if number % 100 == 0:
            (place / LOG).write_bytes(data if number % 200 else b"")
    return root


def test_ten_thousand_partitions_are_read_in_bounded_time(many: Path, tmp_path: Path) -> None:
    for command in COMMANDS:
        if command not in {"dump", "import", "lookup", "groups", "topics"}:
            checked(command, many, tmp_path / f"result-{command}")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-m", ""]))
