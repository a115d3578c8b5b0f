"""The representation of kbat's objects in notebooks."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import kbat
from data import DATA, build

if TYPE_CHECKING:
    from pathlib import Path

PARTITION = DATA / "log-dir" / "segments-default-interval-0"
TRANSACTIONS = DATA / "log-dir" / "txn-lz4-0"
LOST = next(iter(sorted(PARTITION.glob("*.log"))))


class Cells(HTMLParser):
    """The texts of a table, row by row; its caption is the first row. Fails where tags don't nest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(html)
        assert not self._open

    def handle_starttag(self, tag: str, _attributes: Any) -> None:  # noqa: ANN401 -- the base's
        """Begin a row or a cell."""
        assert tag in {"table", "caption", "tr", "th", "td"}
        self._open.append(tag)
        if tag in {"caption", "tr"}:
            self.rows.append([])
        if tag not in {"table", "tr"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        """End the last open element."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Add to the cell."""
        self.rows[-1][-1] += data


def shown(thing: Any) -> list[list[str]]:  # noqa: ANN401 -- whatever a notebook shows
    return Cells(thing._repr_html_()).rows


def facts(thing: Any) -> dict[str, str]:  # noqa: ANN401 -- whatever a notebook shows
    return {row[0]: row[1] for row in shown(thing)[1:]}


def test_batch_shows_its_header() -> None:
    [batch] = kbat.read_batches(build([(1700000000123, b"k", b"v")] * 3, base_offset=7))
    assert shown(batch)[0] == ["Batch"]
    assert facts(batch) == {
        "offsets": "7 to 9",
        "records": "3",
        "magic": "2",
        "compression": "none",
        "size": f"{batch.size} bytes",
        "position": "0",
        "timestamp type": "CreateTime",
        "max timestamp": "2023-11-14 22:13:20.123 UTC",
        "leader epoch": str(batch.partition_leader_epoch),
    }


def test_batch_of_a_transaction_shows_producer_flags_and_file() -> None:
    paths = sorted(TRANSACTIONS.glob("*.log"))
    found = [facts(batch) for path in paths for batch in kbat.read_batches(path)]
    assert {"transactional", "transactional, control"} <= {fact.get("flags") for fact in found}
    assert found[0]["producer"].endswith("epoch 0, sequence 0")
    assert {fact["file"] for fact in found} == {str(path) for path in paths}


def test_compressed_set_says_what_its_header_does_not_tell() -> None:
    [batch] = kbat.read_batches(build([(1, b"k", b"v")] * 3, magic=1, compression="gzip"))
    assert facts(batch)["records"] == "known when decompressed"


def test_segment_and_partition_show_their_files(tmp_path: Path) -> None:
    directory = tmp_path / "<b>&-0"
    shutil.copytree(PARTITION, directory)
    log = kbat.PartitionLog(directory)
    rows = shown(log)
    assert rows[0][0].startswith(f"PartitionLog {directory}: ")
    assert [row[0] for row in rows[2:]] == [str(segment.base_offset) for segment in log.segments]
    segment = log.segments[0]
    assert facts(segment)["file"] == segment.path
    assert facts(segment)["files"].split() == [f".{kind}" for kind in segment.files]
    assert "<b>" not in log._repr_html_() + segment._repr_html_()


def test_log_directory_shows_partitions_and_counts_the_rest(tmp_path: Path) -> None:
    for partition in range(25):
        directory = tmp_path / f"orders-{partition}"
        directory.mkdir()
        (directory / f"{0:020}.log").write_bytes(build())
    rows = shown(kbat.LogDirectory(tmp_path))
    assert rows[0] == [f"LogDirectory {tmp_path}: 25 partitions, 0 stray"]
    assert rows[1] == ["topic", "partition", "segments", "size"]
    assert rows[2][:3] == ["orders", "0", "1"]
    assert rows[-1] == ["and 5 more"]
    assert len(rows) == 2 + 20 + 1


def test_scan_shows_columns_sources_and_options_without_reading() -> None:
    scan = kbat.scan([LOST, b""], columns=["offset", "value"], start_offset=5, end_timestamp=0, on_corrupt="skip")
    rows = shown(scan)
    assert rows[0] == ["Scan of records of 2 sources"]
    assert rows[1:4] == [["column", "type"], ["offset", "Int64"], ["value", "Binary"]]
    assert rows[4:] == [
        ["first source", str(LOST)],
        ["last source", "a buffer"],
        ["start_offset", "5"],
        ["end_timestamp", "1970-01-01 00:00:00.000 UTC"],
        ["on_corrupt", "skip"],
    ]
