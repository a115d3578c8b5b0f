"""`kbat.scan(view="batches")` and `view="segments"`: the same results as Kafka's classes, from headers alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kbat
from data import DATA, answer, build, name_of, segments

PATHS = [path for folder in ("corpus", "corpus-legacy") for path in segments(folder) if path.stat().st_size][::5]
NAMES = {
    "position": "position",
    "size": "size",
    "lastOffset": "last_offset",
    "count": "record_count",
    "magic": "magic",
    "crc": "crc",
    "compression": "compression",
    "partitionLeaderEpoch": "partition_leader_epoch",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "baseSequence": "base_sequence",
    "lastSequence": "last_sequence",
    "isTransactional": "is_transactional",
    "isControl": "is_control",
    "crcValid": "crc_ok",
}


def table(source: Any, view: Any, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 -- those of kbat.scan
    found: list[dict[str, Any]] = kbat.scan(source, view=view, **options).to_pyarrow().to_pylist()
    return found


def millis(source: Any, view: Any, column: str, **options: Any) -> list[Any]:  # noqa: ANN401 -- those of kbat.scan
    found = kbat.scan(source, view=view, columns=[column], **options).to_pyarrow()[column]
    return found.cast(pa.int64()).to_pylist()


def one_of_a_message(line: dict[str, Any]) -> dict[str, Any]:
    """Kafka reports no count below magic 2; a message outside a compressed set counts as 1."""
    return {"count": 1} if line["magic"] < 2 and line["compression"] == "none" else {}


@pytest.mark.parametrize("path", PATHS, ids=name_of)
def test_batches_are_those_that_kafka_sees(path: Path) -> None:
    found = answer(path)
    expected = [one.batch for one in found.batches if one.batch is not None]
    if found.framing_error:
        pytest.skip("a file that framing refuses")
    rows = table(path, "batches", columns=list(NAMES.values()))
    assert [{kafka: row[ours] for kafka, ours in NAMES.items()} for row in rows] == [
        {kafka: line[kafka] for kafka in NAMES} | one_of_a_message(line) for line in expected
    ]
    times = [None if line["maxTimestamp"] == -1 else line["maxTimestamp"] for line in expected]
    assert millis(path, "batches", "max_timestamp") == times
    assert millis(path, "batches", "delete_horizon") == [line["deleteHorizonMs"] for line in expected]


def test_batches_columns_have_names_and_types() -> None:
    scan = kbat.scan(b"", view="batches")
    assert scan.schema.names[:4] == ["topic", "partition", "segment", "position"]
    assert "crc_ok" not in scan.schema.names
    assert str(scan.schema.field("max_timestamp").type) == "timestamp[ms, tz=UTC]"
    assert str(kbat.scan(b"", view="batches", timestamp_unit="us").schema.field("max_timestamp").type).startswith(
        "timestamp[us"
    )
    with pytest.raises(ValueError, match='"key" in the view batches; choose among topic, partition, segment'):
        kbat.scan(b"", view="batches", columns=["key"])
    with pytest.raises(ValueError, match='"key" in the view segments; choose among topic'):
        kbat.scan(b"", view="segments", columns=["key"])


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_sizes_and_ratio(magic: int, compression: Any) -> None:  # noqa: ANN401 -- one of the names
    if magic < 2 and compression == "zstd":
        return
    data = build([(1, b"k", bytes(1000))] * 20, magic=magic, compression=compression)
    [row, *_] = table(data, "batches", columns=["size", "stored_size", "uncompressed_size", "ratio", "crc_ok"])
    assert row["stored_size"] == row["size"] - {0: 26, 1: 34, 2: 61}[magic]
    assert row["ratio"] == row["uncompressed_size"] / row["stored_size"]
    assert row["crc_ok"]
    if compression == "none":
        assert row["ratio"] == 1
    else:
        assert 20_000 < row["uncompressed_size"] < 22_000
        assert row["ratio"] > 5


def test_headers_alone_are_read(tmp_path: Path) -> None:
    """Under 1 % of the bytes of 16 KB batches, and the last batch; a column that needs payloads reads them."""
    path = tmp_path / "segment.bin"
    data = b"".join(build([(time, None, bytes(16_384))], base_offset=time) for time in range(400))
    path.write_bytes(data)
    batches = kbat.scan(path, view="batches").to_batches()
    assert sum(batch.num_rows for batch in batches) == 400
    assert batches.stats.bytes_read < len(data) / 100 + len(data) / 400
    batches = kbat.scan(path, view="batches", columns=["crc_ok"]).to_batches()
    assert all(value for batch in batches for value in batch["crc_ok"].to_pylist())
    assert batches.stats.bytes_read == len(data)


def test_bounds_choose_whole_batches() -> None:
    data = b"".join(
        build([(time, None, b"") for time in range(first, first + 10)], base_offset=first) for first in (0, 10, 20)
    )
    offsets = ["base_offset", "last_offset"]
    assert [row["base_offset"] for row in table(data, "batches", columns=offsets, start_offset=5, end_offset=15)] == [
        0,
        10,
    ]
    assert [row["base_offset"] for row in table(data, "batches", columns=offsets, start_timestamp=19)] == [10, 20]


@pytest.mark.parametrize("on_corrupt", ["skip", "report"])
def test_batches_after_damage_are_there(on_corrupt: str) -> None:
    one = build([(1, b"k", b"v")])
    data = bytearray(one + build(base_offset=1) + build(base_offset=2))
    data[len(one) + 8 : len(one) + 17] = b"\xff" * 9
    rows = table(bytes(data), "batches", on_corrupt=on_corrupt)
    assert [row["base_offset"] for row in rows if row["base_offset"] is not None] == [0, 2]
    assert [row["error"]["kind"] for row in rows if row.get("error")] == (
        ["batch_length"] if on_corrupt == "report" else []
    )
    with pytest.raises(kbat.CorruptError):
        table(bytes(data), "batches")


def test_segments_have_a_row_each() -> None:
    directory = DATA / "log-dir"
    rows = table(directory, "segments")
    assert len(rows) == len(kbat.find_segments(directory))
    for row in rows:
        segment = kbat.Segment(row["segment"])
        log = Path(row["segment"])
        assert (row["base_offset"], row["size"], row["state"]) == (segment.base_offset, log.stat().st_size, "live")
        assert row["index_size"] == log.with_suffix(".index").stat().st_size
        txn = log.with_suffix(".txnindex")
        assert row["txn_index_size"] == (txn.stat().st_size if txn.exists() else None)
        assert row["has_snapshot"] == log.with_suffix(".snapshot").exists()
        batches = list(kbat.read_batches(log))
        assert row["end_offset"] == (batches[-1].next_offset if batches else segment.base_offset)
    counts = table(directory, "segments", columns=["batch_count"])
    assert sum(row["batch_count"] for row in counts) == sum(
        len(list(kbat.read_batches(row["segment"]))) for row in rows
    )


def test_segments_times() -> None:
    directory = DATA / "corpus" / "out-of-order"
    largest = millis(directory, "segments", "largest_timestamp")
    first = millis(directory, "segments", "first_timestamp")
    logs = sorted(directory.glob("*.log"))
    assert largest == [max(record.timestamp for batch in kbat.read_batches(log) for record in batch) for log in logs]
    assert first == [next(iter(next(iter(kbat.read_batches(log))))).timestamp for log in logs]
    kept = [row["segment"] for row in table(directory, "segments", start_timestamp=sorted(largest)[1])]
    assert kept == [str(log) for log, time in zip(logs, largest, strict=True) if time >= sorted(largest)[1]]


def test_segments_that_cannot_be_walked(tmp_path: Path) -> None:
    path = tmp_path / f"{5:020}.log"
    path.write_bytes(build(base_offset=5) + b"\xff" * 40)
    with pytest.raises(kbat.CorruptError):
        table(path, "segments")
    [row] = table(path, "segments", on_corrupt="skip")
    assert (row["base_offset"], row["end_offset"]) == (5, None)
    [row] = table(path, "segments", on_corrupt="report")
    assert row["error"]["kind"] == "batch_length"


def test_segments_come_many_in_an_arrow_batch(tmp_path: Path) -> None:
    for base in range(25):
        path = tmp_path / "t-0" / f"{base:020}.log"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(build([(base, None, b"v")], base_offset=base))
    scan = kbat.scan(tmp_path, view="segments", max_rows=10)
    assert [len(batch) for batch in scan.to_batches()] == [10, 10, 5]
    assert scan.to_pyarrow()["base_offset"].to_pylist() == list(range(25))
    path.write_bytes(path.read_bytes()[:-1] + b"!!" * 40)
    reported = kbat.scan(tmp_path, view="segments", max_rows=10, on_corrupt="report")
    assert [len(batch) for batch in reported.to_batches()][:2] == [10, 10]
    assert reported.to_pyarrow()["base_offset"].to_pylist() == list(range(25))
