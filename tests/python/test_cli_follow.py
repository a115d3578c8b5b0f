"""`kbat cat --follow` on logs that are deleted and created again, truncated by a broker, or briefly not readable."""

from __future__ import annotations

import json
import shutil
import signal
import time
from typing import TYPE_CHECKING

import pytest

import kbat
from command_line import LOG, process
from growing_log import GrowingLog
from kbat.cli import following
from kbat.cli.printing import Printer
from kbat.cli.start import Partition, partitions_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Steps:
    """A follower without pauses, which lists the partitions once per step."""

    def __init__(self, path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self._path = path
        self._capfd = capfd
        self._printer = Printer(None, is_followed=True, output_format="%p@%o ")
        self.after_listing: Callable[[], object] | None = None
        self._follower = following.Follower(self._printer, self._find, self._scan, {})

    def _find(self) -> list[Partition]:
        found = partitions_of(kbat.find_segments(self._path))
        after, self.after_listing = self.after_listing, None
        if after is not None:
            after()
        return found

    @staticmethod
    def _scan(partition: Partition, first: int) -> kbat.Scan:
        return kbat.scan(partition.source, start_offset=first or None)

    def step(self, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], str]:
        """Return what is printed, and the notes."""
        turns = iter([None])

        def sleep(_: float) -> None:
            if next(turns, self) is self:
                raise KeyboardInterrupt

        monkeypatch.setattr(time, "sleep", sleep)
        with pytest.raises(KeyboardInterrupt):
            self._follower.follow(is_local=True)
        out, err = self._capfd.readouterr()
        return out.split(), err


@pytest.fixture
def steps(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Steps:
    # a partition that stays, so that there is always one
    GrowingLog(tmp_path / "logs" / "z-9").append(1)
    made = Steps(tmp_path / "logs", capfd)
    assert made.step(monkeypatch) == (["9@0"], "")
    return made


def again(offset: int = 0) -> str:
    return f"kbat: the log of a-0 begins again at offset {offset}\n"


def test_a_log_that_is_created_again_is_printed_from_its_beginning(
    steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    GrowingLog(tmp_path / "logs" / "a-0").append(5)
    assert steps.step(monkeypatch)[0] == [f"0@{offset}" for offset in range(5)]
    # between two listings: fewer records, then more of them
    shutil.rmtree(tmp_path / "logs" / "a-0")
    log = GrowingLog(tmp_path / "logs" / "a-0")
    log.append(1, 1)
    assert steps.step(monkeypatch) == (["0@0", "0@1"], again())
    shutil.rmtree(tmp_path / "logs" / "a-0")
    GrowingLog(tmp_path / "logs" / "a-0").append(7)
    assert steps.step(monkeypatch) == ([f"0@{offset}" for offset in range(7)], again())
    # missing in a listing, and as large as before
    shutil.move(tmp_path / "logs" / "a-0", tmp_path / "old")
    assert steps.step(monkeypatch) == ([], "")
    log = GrowingLog(tmp_path / "logs" / "a-0", 100)
    log.append(7)
    assert steps.step(monkeypatch) == ([f"0@{offset}" for offset in range(100, 107)], again(100))
    log.append(1)
    assert steps.step(monkeypatch) == (["0@107"], "")


def test_the_same_log_at_its_path_again_is_continued(
    steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = GrowingLog(tmp_path / "logs" / "a-0")
    log.append(5)
    steps.step(monkeypatch)
    shutil.move(tmp_path / "logs" / "a-0", tmp_path / "old")
    assert steps.step(monkeypatch) == ([], "")
    shutil.move(tmp_path / "old", tmp_path / "logs" / "a-0")
    log.append(2)
    assert steps.step(monkeypatch) == (["0@5", "0@6"], "")


def test_a_truncated_log_is_continued_at_its_end(steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = GrowingLog(tmp_path / "logs" / "a-0")
    log.append(5)
    size = log.segment.stat().st_size
    log.append(2)
    log.roll()
    log.append(2)
    steps.step(monkeypatch)
    # the last segment, and a batch before it
    log.segment.unlink()
    log.segment = tmp_path / "logs" / "a-0" / LOG
    with log.segment.open("r+b") as file:
        file.truncate(size)
    log.end_offset = 5
    note = "kbat: the log of a-0 was truncated; printing continues at offset 5\n"
    assert steps.step(monkeypatch) == ([], note)
    log.append(1)
    assert steps.step(monkeypatch) == (["0@5"], "")
    # a last segment with other batches
    log.roll()
    log.append(3)
    assert steps.step(monkeypatch)[0] == ["0@6", "0@7", "0@8"]
    log.segment.unlink()
    log.end_offset = 6
    log.roll()
    log.append(1, 4)
    note = "kbat: the log of a-0 was truncated; printing continues at offset 6\n"
    assert steps.step(monkeypatch) == ([f"0@{offset}" for offset in range(6, 11)], note)


def test_retention_compaction_and_incomplete_batches_are_not_new_logs(
    steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = GrowingLog(tmp_path / "logs" / "a-0")
    batch = log.batch(3)
    for part in (batch[:10], batch[10:30]):
        log.append_bytes(part)
        assert steps.step(monkeypatch) == ([], "")
    log.append_bytes(batch[30:])
    log.end_offset = 3
    assert steps.step(monkeypatch) == (["0@0", "0@1", "0@2"], "")
    log.roll()
    log.append(1)
    assert steps.step(monkeypatch) == (["0@3"], "")
    # compaction writes the first segment again
    log.segment.parent.joinpath(LOG).write_bytes(GrowingLog(tmp_path / "other-0").batch(1))
    assert steps.step(monkeypatch) == ([], "")
    log.segment.parent.joinpath(LOG).unlink()
    assert steps.step(monkeypatch) == ([], "")
    log.roll()
    log.append(1)
    assert steps.step(monkeypatch) == (["0@4"], "")


def test_compaction_after_a_listing_is_not_a_new_log(
    steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = GrowingLog(tmp_path / "logs" / "a-0")
    log.append(3)
    first = log.segment
    assert steps.step(monkeypatch) == (["0@0", "0@1", "0@2"], "")

    def compact() -> None:
        log.roll()
        log.append(1)
        first.write_bytes(GrowingLog(tmp_path / "other-0").batch(1))

    steps.after_listing = compact
    assert steps.step(monkeypatch) == (["0@3"], "")
    assert steps.step(monkeypatch) == ([], "")


def test_a_last_segment_that_cannot_be_read_is_not_the_end_of_the_log(
    steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = GrowingLog(tmp_path / "logs" / "a-0")
    log.append(5)
    steps.step(monkeypatch)
    log.append(1)

    def unreadable(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Partition, "end_offset", unreadable)
        patched.setattr(Partition, "heads", lambda one, _: {segment.path: b"" for segment in one.source})
        assert steps.step(monkeypatch) == (["0@5"], "")
    log.append(1)
    assert steps.step(monkeypatch) == (["0@6"], "")


def test_the_command_prints_a_log_that_was_created_again(tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(5)
    GrowingLog(tmp_path / "b-0").append(1)
    with process("cat", tmp_path, "-F", "-n", 8) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        for _ in range(6):
            running.stdout.readline()
        shutil.rmtree(tmp_path / "a-0")
        GrowingLog(tmp_path / "a-0").append(2)
        assert [json.loads(running.stdout.readline())["offset"] for _ in range(2)] == [0, 1]
        assert running.stderr.read() == again()
    assert running.returncode == 0


def test_the_command_waits_for_a_chosen_topic_that_was_deleted(tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(5)
    GrowingLog(tmp_path / "b-0").append(1)
    with process("cat", tmp_path, "-F", "--topic", "a", "-n", 7) as running:
        assert running.stdout is not None
        for _ in range(5):
            running.stdout.readline()
        shutil.rmtree(tmp_path / "a-0")
        time.sleep(1)  # several listings
        assert running.poll() is None
        GrowingLog(tmp_path / "a-0").append(2)
        assert [json.loads(running.stdout.readline())["offset"] for _ in range(2)] == [0, 1]
    assert running.returncode == 0


def test_records_in_a_preallocated_file_are_printed(
    steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = GrowingLog(tmp_path / "logs" / "a-0")
    log.append(3)
    content = log.segment.read_bytes()
    log.segment.write_bytes(content + bytes(10_000))
    assert steps.step(monkeypatch)[0] == ["0@0", "0@1", "0@2"]
    batch = log.batch(2)
    with log.segment.open("r+b") as file:
        file.seek(len(content))
        file.write(batch)
    assert steps.step(monkeypatch) == (["0@3", "0@4"], "")
    assert steps.step(monkeypatch) == ([], "")


def test_records_are_printed_once_if_a_later_segment_is_deleted_meanwhile(
    steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = GrowingLog(tmp_path / "logs" / "a-0")
    log.append(3)
    log.roll()
    log.append(2)
    second = log.segment
    log.roll()
    log.append(1)
    scan = Steps._scan  # noqa: SLF001 - of this test

    def deleting(partition: Partition, first: int) -> kbat.Scan:
        if first == 0:
            second.unlink(missing_ok=True)
        return scan(partition, first)

    monkeypatch.setattr(steps._follower, "_scan", deleting)  # noqa: SLF001 - of this test
    assert steps.step(monkeypatch)[0] == ["0@0", "0@1", "0@2"]
    assert steps.step(monkeypatch) == (["0@5"], "")


def test_what_is_skipped_is_reported_at_once_and_only_once(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "a-0")
    log.append(1, 1, 1)
    content = bytearray(log.segment.read_bytes())
    content[len(content) // 2] ^= 1
    log.segment.write_bytes(content)
    with process("cat", tmp_path, "-F", "--on-corrupt", "skip") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert [json.loads(running.stdout.readline())["offset"] for _ in range(2)] == [0, 2]
        assert "kbat: skipped 1 corrupt range" in running.stderr.readline()
        log.append(1)
        assert json.loads(running.stdout.readline())["offset"] == 3
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == "kbat: interrupted\n"
