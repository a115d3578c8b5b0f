"""``kbat.LogWriter`` writes the same files for the same batches as Kafka's ``UnifiedLog``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import kafka_logs
import kbat
from kafka_logs import Append
from written_partitions import Script, scripts

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_server import KafkaServer

SCRIPTS = scripts()
CONFIGS = {"internal.segment.bytes": 4000, "index.interval.bytes": 500, "segment.index.bytes": 800}


def write(script: Script, directory: Path) -> None:
    """Write a script's batches with several segments."""
    with kbat.LogWriter(directory, segment_bytes=4000, index_interval_bytes=500, segment_index_bytes=800) as writer:
        for batch in script.batches:
            writer.append_batch(batch, keep_offsets=True)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_written_partition_is_the_one_that_kafka_writes(kafka_server: KafkaServer, tmp_path: Path, name: str) -> None:
    """Segments, indexes, snapshots and leader epochs are the same bytes, and kafka-dump-log finds nothing wrong."""
    script = SCRIPTS[name]
    write(script, tmp_path / "kbat")
    (tmp_path / "kafka").mkdir()
    appends = [Append(batch, leader_epoch=9, as_follower=True) for batch in script.batches]
    log, _ = kafka_logs.append(kafka_server, tmp_path / "kafka", appends, configs=CONFIGS)
    assert contents(tmp_path / "kbat") == contents(log.directory)
    assert kafka_server.faults(tmp_path / "kbat") == []


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_written_partition_is_loaded_by_kafka_as_it_is(kafka_server: KafkaServer, tmp_path: Path, name: str) -> None:
    """After an unclean shutdown Kafka recovers every segment, and finds nothing to change."""
    script = SCRIPTS[name]
    write(script, tmp_path / "kbat")
    (tmp_path / "out").mkdir()
    log = kafka_logs.load(kafka_server, tmp_path / "kbat", tmp_path / "out", configs=CONFIGS)
    assert contents(log.directory) == contents(tmp_path / "kbat")
