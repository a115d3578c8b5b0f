"""A real broker serves what kbat compacted, filtered and rewrote, with kbat's indexes and with its own.

The partitions to start from are written by Kafka's own log classes, several segments each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import kafka_logs
import kbat
from kafka_logs import Append
from written_partitions import START, Script, scripts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kafka_broker import Broker, ConsumedRecord, Served
    from kafka_server import KafkaServer
    from written_partitions import ExpectedRecord

NAMES = ["codec-lz4", "transactions-none", "transactions-zstd", "leader-epochs"]
SCRIPTS: dict[str, Script] = {name: script for name, script in scripts().items() if name in NAMES}
CONFIGS = {"internal.segment.bytes": 4000, "index.interval.bytes": 500, "segment.index.bytes": 800}
NOW = START + 1_000_000


def is_kept(offset: int) -> bool:
    return offset % 3 != 0


def compact(source: Path, out: Path) -> None:
    kbat.compact(source, out, now_ms=NOW, index_interval_bytes=500, segment_bytes=4000)


def drop_a_third(source: Path, out: Path) -> None:
    kbat.filter(source, out, lambda record: is_kept(record.offset), index_interval_bytes=500)


def recompress(source: Path, out: Path) -> None:
    kbat.rewrite(source, out, compression="gzip", batch_bytes=2000, index_interval_bytes=500)


WAYS: dict[str, Callable[[Path, Path], None]] = {"compact": compact, "filter": drop_a_third, "rewrite": recompress}


@pytest.fixture(scope="module")
def rewritten(kafka_server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Partitions that kbat rewrote in each of its ways, and under "cleaned" what Kafka's cleaner makes of them."""
    parent = tmp_path_factory.mktemp("rewritten")
    made: dict[tuple[str, str], Path] = {}
    for name, script in SCRIPTS.items():
        for part in ("written", "cleaned"):
            (parent / name / part).mkdir(parents=True)
        appends = [Append(batch, leader_epoch=9, as_follower=True) for batch in script.batches]
        log, _ = kafka_logs.append(kafka_server, parent / name / "written", appends, configs=CONFIGS)
        assert len(log.segments) > 1
        for way, write in WAYS.items():
            made[name, way] = parent / name / way
            write(log.directory, made[name, way])
        cleaned = kafka_logs.clean(kafka_server, log.directory, parent / name / "cleaned", now_ms=NOW, configs=CONFIGS)
        made[name, "cleaned"] = cleaned.directory
    return made


@pytest.fixture(scope="module", params=[False, True], ids=["recovered", "kept"])
def served(
    broker: Broker, rewritten: dict[tuple[str, str], Path], request: pytest.FixtureRequest
) -> dict[tuple[str, str], Served]:
    """The partitions as the broker serves them, all with one start."""
    partitions = broker.serve(list(rewritten.values()), keep_indexes=request.param)
    return dict(zip(rewritten, partitions, strict=True))


def whole(partition: Served) -> Served:
    assert (partition.errors, partition.cut_bytes) == ([], 0)
    return partition


def same(found: list[ConsumedRecord], expected: list[ExpectedRecord]) -> bool:
    return [record._asdict() for record in found] == [vars(record) for record in expected]


@pytest.mark.parametrize("name", NAMES)
def test_compacted_partition_is_served_as_kafkas_cleaned_one(served: dict[tuple[str, str], Served], name: str) -> None:
    ours, kafkas = whole(served[name, "compact"]), whole(served[name, "cleaned"])
    assert ours.records == kafkas.records
    assert ours.committed == kafkas.committed
    assert (ours.beginning_offset, ours.end_offset) == (kafkas.beginning_offset, kafkas.end_offset)
    assert ours.last_stable_offset == kafkas.last_stable_offset
    assert 0 < len(ours.records) < len(SCRIPTS[name].records)


@pytest.mark.parametrize("name", NAMES)
def test_filtered_partition_is_served_without_what_was_dropped(
    served: dict[tuple[str, str], Served], name: str
) -> None:
    script, partition = SCRIPTS[name], whole(served[name, "filter"])
    assert same(partition.records, [record for record in script.records if is_kept(record.offset)])
    assert same(partition.committed, [record for record in script.committed if is_kept(record.offset)])
    assert (partition.end_offset, partition.last_stable_offset) == (script.end_offset, script.last_stable_offset)


@pytest.mark.parametrize("name", NAMES)
def test_rewritten_partition_is_served_as_written(served: dict[tuple[str, str], Served], name: str) -> None:
    script, partition = SCRIPTS[name], whole(served[name, "rewrite"])
    assert same(partition.records, script.records)
    assert same(partition.committed, script.committed)
    assert (partition.end_offset, partition.last_stable_offset) == (script.end_offset, script.last_stable_offset)


def faults(server: KafkaServer, directory: Path) -> list[str]:
    return [line.replace(str(directory), "") for line in server.faults(directory)]


@pytest.mark.parametrize("name", NAMES)
def test_dump_log_finds_in_a_compacted_partition_what_it_finds_in_kafkas(
    kafka_server: KafkaServer, rewritten: dict[tuple[str, str], Path], name: str
) -> None:
    ours, kafkas = (faults(kafka_server, rewritten[name, way]) for way in ("compact", "cleaned"))
    assert ours == kafkas


@pytest.mark.parametrize("name", NAMES)
def test_dump_log_finds_nothing_wrong_but_the_gaps(
    kafka_server: KafkaServer, rewritten: dict[tuple[str, str], Path], name: str
) -> None:
    assert faults(kafka_server, rewritten[name, "rewrite"]) == []
    gaps = faults(kafka_server, rewritten[name, "filter"])
    assert all(" is followed by " in line or line.startswith("Non-consecutive offsets in") for line in gaps)
