"""Scans of logs that change while they are read."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any, Literal

import pytest

import kbat

if TYPE_CHECKING:
    from pathlib import Path

LOG = "00000000000000000000.log"
SIZE = 100_000


def batch(offset: int, value: bytes) -> bytes:
    builder = kbat.BatchBuilder(base_offset=offset)
    builder.append(None, value, timestamp=0)
    return builder.finish()


@pytest.fixture(scope="module")
def log() -> bytes:
    return b"".join(batch(offset, os.urandom(SIZE)) for offset in range(300))


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("change", ["replace", "truncate"])
def test_rows_of_a_file_that_changes_are_not_lost_silently(
    change: Literal["replace", "truncate"], threads: int, log: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "t-0" / LOG
    path.parent.mkdir()
    path.write_bytes(log)
    rows = kbat.scan(path, columns=["offset", "value"]).to_batches(threads=threads, max_memory_bytes=1 << 20)
    found = next(rows)["offset"].to_pylist()
    if change == "replace":  # as the cleaner does: every tenth record remains
        (tmp_path / "new").write_bytes(b"".join(batch(offset, b"v" * SIZE) for offset in range(0, 300, 10)))
        (tmp_path / "new").rename(path)
        found += [offset for one in rows for offset in one["offset"].to_pylist()]
        assert found == list(range(300))
    else:
        os.truncate(path, len(log) // 3)
        if threads == 1:  # the log ends earlier, as for a scan that begins now
            found += [offset for one in rows for offset in one["offset"].to_pylist()]
            assert found == list(range(100))
            return
        with pytest.raises(kbat.KbatError, match="truncated"):
            list(rows)


def test_transaction_that_is_aborted_during_a_scan_stays_hidden(tmp_path: Path) -> None:
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    first = kbat.BatchBuilder(base_offset=0, base_sequence=0, transactional=True, **producer)
    first.append(None, b"aborted", timestamp=0)
    count = 60_000
    control = kbat.BatchBuilder(base_offset=count, transactional=True, control=True, **producer)
    control.append(b"\0\0\0\0", b"\0\0\0\0\0\0", timestamp=0)
    marker = control.finish()
    path = tmp_path / "t-0" / LOG
    path.parent.mkdir()
    whole = first.finish() + b"".join(batch(offset, b"v" * 100) for offset in range(1, count))
    for delay in (0.0005, 0.001, 0.002, 0.004, 0.008):
        path.write_bytes(whole)

        def abort(delay: float = delay) -> None:
            time.sleep(delay)
            with path.open("ab") as file:
                file.write(marker)

        thread = threading.Thread(target=abort)
        thread.start()
        values = kbat.scan(tmp_path, columns=["value"], isolation="read_committed").to_pyarrow()["value"]
        thread.join()
        assert len(values) in {0, count - 1}


def test_sets_of_a_buffer_may_have_any_offset() -> None:
    builder = kbat.BatchBuilder(1, "gzip", base_offset=0)
    for _ in range(3):
        builder.append(None, b"v", timestamp=0)
    wrapper = bytes(8) + builder.finish()[8:]  # as old clients wrote it
    found = [
        kbat.scan(wrapper, columns=["offset"], start_offset=start).to_pyarrow()["offset"].to_pylist()
        for start in (None, 1, 3)
    ]
    assert found == [[0, 1, 2], [1, 2], []]
