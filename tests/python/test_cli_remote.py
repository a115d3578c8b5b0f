"""Commands on the directory of a broker, with its earlier segments in tiered storage: `--remote`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import kbat
from command_line import run
from kbat.cli.location import Location, of_file
from kbat.cli.partitions import note_incomplete
from remote_logs import BASES, REMOTE, TAIL

if TYPE_CHECKING:
    import pytest


def offsets(*arguments: object) -> list[int]:
    done = run("cat", TAIL, "--remote", REMOTE, *arguments)
    assert done.exit_code == 0, done.stderr
    return [json.loads(line)["offset"] for line in done.stdout.splitlines()]


def test_cat_begins_at_an_offset_a_time_or_the_last_records() -> None:
    everything = offsets()
    times = [json.loads(line)["timestamp"] for line in run("cat", TAIL, "--remote", REMOTE).stdout.splitlines()]
    assert BASES[0] <= everything[0] < BASES[1]
    assert offsets("-o", "-3") == everything[-3:]
    # more than the records of the broker's own segment
    assert offsets("-o", "-5000") == everything[-5000:]
    assert offsets("-o", "end") == []
    assert offsets("-o", everything[-1]) == everything[-1:]
    later = next(index for index, one in enumerate(times) if one >= times[100])
    assert offsets("-o", f"s@{times[100]}") == everything[later:]


def test_incomplete_batches_are_counted_in_the_files_of_the_broker(capsys: pytest.CaptureFixture[str]) -> None:
    path = Location(str(TAIL)).opened_with(None, None, str(REMOTE))
    note_incomplete(path, kbat.find_segments(TAIL, remote=REMOTE), "orders")
    assert capsys.readouterr().err == ""


def test_options_of_a_file_have_no_remote_segments() -> None:
    path = Location(str(TAIL)).opened_with(None, None, str(REMOTE), str(TAIL))
    assert set(path.options) == {"remote", "remote_log_metadata"}
    assert of_file(path.options) == {}


def test_a_found_segment_is_opened_where_it_is() -> None:
    found = kbat.find_segments(TAIL, remote=REMOTE)
    opened = [kbat.Segment(one) for one in found]
    assert [one.base_offset for one in opened] == [one.base_offset for one in found]
    assert [one.end_offset for one in opened[:-1]] == [one.base_offset for one in opened[1:]]
