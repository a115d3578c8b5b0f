"""A real broker serves the records that kbat wrote, and kafka-dump-log finds no errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

import kafka_logs
import kbat
from kafka_logs import Append
from written_partitions import CODECS, Codec, ExpectedRecord, Script, scripts

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_broker import Broker, ConsumedRecord, Served
    from kafka_server import KafkaServer

SCRIPTS = scripts()


@dataclass(frozen=True)
class Expected:
    """The records that a consumer must get from a partition."""

    records: list[ExpectedRecord]
    committed: list[ExpectedRecord]
    start_offset: int
    end_offset: int
    last_stable_offset: int


def expected_of(script: Script) -> Expected:
    return Expected(script.records, script.committed, script.start_offset, script.end_offset, script.last_stable_offset)


def as_records(script: Script) -> Expected:
    """The same records without their batches: in batches of the writer's making."""
    records = [replace(record, timestamp_type="CreateTime") for record in script.records]
    return Expected(records, records, script.start_offset, script.end_offset, script.end_offset)


def is_kept(offset: int) -> bool:
    """Whether the filter keeps a record."""
    return offset % 3 != 0


def filtered(script: Script) -> Expected:
    """The records that a filter keeps."""
    records, committed = ([one for one in some if is_kept(one.offset)] for some in (script.records, script.committed))
    return replace(expected_of(script), records=records, committed=committed)


EXPECTED = {
    **{name: expected_of(script) for name, script in SCRIPTS.items()},
    "transactions-filtered": filtered(SCRIPTS["transactions-zstd"]),
    "transactions-recompressed": expected_of(SCRIPTS["transactions-none"]),
    **{f"records-{codec}": as_records(SCRIPTS[f"codec-{codec}"]) for codec in CODECS},
}
NAMES = list(EXPECTED)

CONFIGS = {"internal.segment.bytes": 3000, "index.interval.bytes": 300, "segment.index.bytes": 800}


def open_writer(directory: Path, **options: Any) -> kbat.LogWriter:  # noqa: ANN401 -- those of kbat.LogWriter
    return kbat.LogWriter(directory, segment_bytes=3000, index_interval_bytes=300, segment_index_bytes=800, **options)


def halves(script: Script) -> tuple[list[bytes], list[bytes]]:
    half = len(script.batches) // 2
    return script.batches[:half], script.batches[half:]


def write_batches(script: Script, directory: Path) -> None:
    """Append batches as they are, with another writer for the second half."""
    for part in halves(script):
        with open_writer(directory, start_offset=script.start_offset) as writer:
            for batch in part:
                writer.append_batch(batch, keep_offsets=True)


def write_records(expected: Expected, compression: Codec, directory: Path) -> None:
    """Append records one by one."""
    with open_writer(directory, compression=compression, batch_size=700) as writer:
        for record in expected.records:
            offset = writer.append(record.key, record.value, timestamp=record.timestamp, headers=record.headers)
            assert offset == record.offset


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories that kbat wrote."""
    parent = tmp_path_factory.mktemp("written")
    for name, script in SCRIPTS.items():
        write_batches(script, parent / f"{name}-0")
    for codec in CODECS:
        write_records(EXPECTED[f"records-{codec}"], codec, parent / f"records-{codec}-0")
    made = {name: parent / f"{name}-0" for name in NAMES}
    kbat.filter(made["transactions-zstd"], made["transactions-filtered"], lambda record: is_kept(record.offset))
    kbat.rewrite(made["transactions-none"], made["transactions-recompressed"], compression="gzip", batch_bytes=2000)
    return made


@pytest.fixture(scope="module", params=[False, True], ids=["recovered", "kept"])
def served(broker: Broker, written: dict[str, Path], request: pytest.FixtureRequest) -> dict[str, Served]:
    """The partitions as the broker serves them, all with one start."""
    partitions = broker.serve([written[name] for name in NAMES], keep_indexes=request.param)
    return dict(zip(NAMES, partitions, strict=True))


def same(found: list[ConsumedRecord], expected: list[ExpectedRecord]) -> bool:
    return [record._asdict() for record in found] == [vars(record) for record in expected]


@pytest.mark.parametrize("name", NAMES)
def test_broker_serves_what_was_written(served: dict[str, Served], name: str) -> None:
    expected, partition = EXPECTED[name], served[name]
    assert (partition.errors, partition.cut_bytes) == ([], 0)
    assert same(partition.records, expected.records)
    assert (partition.beginning_offset, partition.end_offset) == (expected.start_offset, expected.end_offset)


@pytest.mark.parametrize("name", NAMES)
def test_broker_serves_read_committed_as_written(served: dict[str, Served], name: str) -> None:
    expected, partition = EXPECTED[name], served[name]
    assert (len(expected.committed) < len(expected.records)) == name.startswith("transactions")
    assert same(partition.committed, expected.committed)
    assert partition.last_stable_offset == expected.last_stable_offset


@pytest.mark.parametrize("name", NAMES)
def test_dump_log_finds_nothing_wrong(kafka_server: KafkaServer, written: dict[str, Path], name: str) -> None:
    assert kafka_server.faults(written[name]) == []
    assert name == "one-record" or len(list(written[name].glob("*.log"))) > 1


@pytest.mark.parametrize("name", NAMES)
def test_partition_log_agrees_with_what_was_written(written: dict[str, Path], name: str) -> None:
    log, expected = kbat.PartitionLog(written[name]), EXPECTED[name]
    assert (log.start_offset, log.end_offset) == (expected.start_offset, expected.end_offset)
    assert log.last_stable_offset == expected.last_stable_offset
    table = kbat.scan(written[name], columns=["offset", "key", "value"]).to_pyarrow().to_pydict()
    kept = kbat.scan(written[name], columns=["offset"], isolation="read_committed").to_pyarrow().to_pydict()
    assert kept["offset"] == [record.offset for record in expected.committed]
    assert table["offset"] == [record.offset for record in expected.records]
    assert table["key"] == [record.key for record in expected.records]
    assert table["value"] == [record.value for record in expected.records]


@pytest.mark.parametrize("name", sorted(SCRIPTS.keys() - {"leader-epochs"}))
def test_files_are_those_of_kafkas_log(kafka_server: KafkaServer, tmp_path: Path, name: str) -> None:
    script, ours = SCRIPTS[name], tmp_path / "ours-0"
    with open_writer(ours) as writer:
        for batch in script.batches:
            writer.append_batch(batch, keep_offsets=True)
    appends = [Append(batch, leader_epoch=9, as_follower=True) for batch in script.batches]
    log, _ = kafka_logs.append(kafka_server, tmp_path, appends, configs=CONFIGS)
    theirs = {path.name: path.read_bytes() for path in log.directory.iterdir() if path.name != "partition.metadata"}
    files = {path.name: path.read_bytes() for path in ours.iterdir()}
    assert files == theirs
