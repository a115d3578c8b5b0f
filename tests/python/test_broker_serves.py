"""A real broker serves what kbat wrote: the records that were written, and nothing wrong for kafka-dump-log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import kbat
from written_partitions import Script, scripts

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_broker import Broker, ConsumedRecord, Served
    from kafka_server import KafkaServer
    from written_partitions import ExpectedRecord

SCRIPTS = scripts()
NAMES = list(SCRIPTS)


def write(script: Script, directory: Path) -> None:
    directory.mkdir()
    (directory / f"{script.records[0].offset:020}.log").write_bytes(b"".join(script.batches))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories that kbat wrote."""
    parent = tmp_path_factory.mktemp("written")
    for name, script in SCRIPTS.items():
        write(script, parent / name)
    return {name: parent / name for name in NAMES}


@pytest.fixture(scope="module", params=[False])
def served(broker: Broker, written: dict[str, Path], request: pytest.FixtureRequest) -> dict[str, Served]:
    """The partitions as the broker serves them, all with one start."""
    partitions = broker.serve([written[name] for name in NAMES], keep_indexes=request.param)
    return dict(zip(NAMES, partitions, strict=True))


def same(found: list[ConsumedRecord], expected: list[ExpectedRecord]) -> bool:
    return [record._asdict() for record in found] == [vars(record) for record in expected]


@pytest.mark.parametrize("name", NAMES)
def test_broker_serves_what_was_written(served: dict[str, Served], name: str) -> None:
    script, partition = SCRIPTS[name], served[name]
    assert (partition.errors, partition.cut_bytes) == ([], 0)
    assert same(partition.records, script.records)
    assert (partition.beginning_offset, partition.end_offset) == (script.records[0].offset, script.end_offset)


@pytest.mark.parametrize("name", NAMES)
def test_broker_serves_read_committed_as_written(served: dict[str, Served], name: str) -> None:
    script, partition = SCRIPTS[name], served[name]
    assert (len(script.committed) < len(script.records)) == name.startswith("transactions")
    assert same(partition.committed, script.committed)
    assert partition.last_stable_offset == script.last_stable_offset


@pytest.mark.parametrize("name", NAMES)
def test_dump_log_finds_nothing_wrong(kafka_server: KafkaServer, written: dict[str, Path], name: str) -> None:
    assert kafka_server.faults(written[name]) == []


@pytest.mark.parametrize("name", NAMES)
def test_partition_log_agrees_on_the_last_stable_offset(written: dict[str, Path], name: str) -> None:
    assert kbat.PartitionLog(written[name]).last_stable_offset == SCRIPTS[name].last_stable_offset
