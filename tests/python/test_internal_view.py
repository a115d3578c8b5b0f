"""`kbat.scan(view="internal")`: the records of internal topics, as Kafka's own decoders show them."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import CORPUS, LOG
from data import DATA, build, patched, read_text, with_right_crc

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = {
    "consumer-offsets": "__consumer_offsets",
    "transaction-state": "__transaction_state",
    "share-group-state": "__share_group_state",
    "cluster-metadata": "__cluster_metadata",
}
CONTROL = {
    "LeaderChange:": "LEADER_CHANGE",
    "SnapshotHeader": "SNAPSHOT_HEADER",
    "SnapshotFooter": "SNAPSHOT_FOOTER",
    "KRaftVersion": "KRAFT_VERSION",
    "KRaftVoters": "KRAFT_VOTERS",
}
REMOTE = DATA / "tiered" / "kafka-local" / "remote-log-metadata.log"
OFFSET_KEY = b"\0\1\0\4team\0\6orders\0\0\0\0"


def rows(source: Any, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - those of scan
    return kbat.scan(source, view="internal", **options).to_pyarrow().to_pylist()


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def shown(case: str) -> list[tuple[str, int, str]]:
    """File, offset and text of every record that `kafka-dump-log` shows."""
    found = []
    name = ""
    for line in read_text(CORPUS / case / "kafka-dump-log.txt").splitlines():
        if line.startswith("Dumping "):
            name = line.rpartition("/")[2]
        if match := re.match(r"\| offset: (\d+) .*? headerKeys: \[\] (.*)", line):
            found.append((name, int(match[1]), match[2]))
    return found


def described(row: dict[str, Any]) -> str:
    """A row in the words of `kafka-dump-log`."""
    if row["is_control"]:
        if row["record_type"] in {"COMMIT", "ABORT"}:
            epoch = json.loads(row["value"])["coordinatorEpoch"]
            return f"endTxnMarker: {row['record_type']} coordinatorEpoch: {epoch}"
        label = {name: label for label, name in CONTROL.items()}[row["record_type"]]
        return f"{label} {row['value']}"
    if row["key"] is None:
        head = f'"type":"{snake_case(row["record_type"])}","version":{row["version"]}'
        return f'payload: {{{head},"data":{row["value"]}}}'
    key = f'key: {{"type":"{row["type_id"]}","data":{row["key"]}}}'
    if row["is_tombstone"]:
        return f"{key} payload: <DELETE>"
    return f'{key} payload: {{"version":"{row["version"]}","data":{row["value"]}}}'


@pytest.mark.parametrize("case", TOPICS)
def test_records_are_those_of_kafka(case: str) -> None:
    columns = [
        "segment", "offset", "record_type", "type_id", "version", "key", "value", "is_tombstone", "is_control", "reason"
    ]  # fmt: skip
    expected = shown(case)
    files = [CORPUS / case / name for name in dict.fromkeys(name for name, _, _ in expected)]
    found = rows(files, columns=columns, include_control=True, topic=TOPICS[case], partition=0)
    assert [row["reason"] for row in found] == [None] * len(found)
    assert [(row["segment"].rpartition("/")[2], row["offset"], described(row)) for row in found] == expected
    assert len(found) > 1


def test_default_columns_and_types() -> None:
    scan = kbat.scan(CORPUS / "consumer-offsets", view="internal", topic="__consumer_offsets", partition=0)
    assert [f"{field.name}: {field.type}" for field in scan.schema] == [
        "topic: string",
        "partition: int32",
        "offset: int64",
        "timestamp: timestamp[ms, tz=UTC]",
        "record_type: string",
        "type_id: int16",
        "version: int16",
        "key: string",
        "value: string",
        "is_tombstone: bool",
        "reason: string",
    ]
    assert scan.count() == scan.to_pyarrow().num_rows > 0


def test_remote_log_metadata_is_structured() -> None:
    found = rows(REMOTE, topic="__remote_log_metadata")
    assert {row["record_type"] for row in found} >= {
        "RemoteLogSegmentMetadataRecord",
        "RemoteLogSegmentMetadataUpdateRecord",
    }
    for row in found:
        assert (row["key"], row["reason"]) == (None, None)
        assert "topicIdPartition" in json.dumps(json.loads(row["value"]))


def test_unknown_types_and_newer_versions_are_rows() -> None:
    data = build(
        [
            (0, OFFSET_KEY, None),
            (0, OFFSET_KEY, b"\0\x63whatever"),
            (0, b"\0\x63team", b"\0\0"),
            (0, OFFSET_KEY[:7], b"\0\0"),
            (0, OFFSET_KEY, b"\0\1\0\0"),
            (0, b"", b""),
            (0, None, None),
        ]
    )
    found = rows(data, topic="__consumer_offsets")
    assert [(row["record_type"], row["type_id"], row["version"]) for row in found] == [
        ("OffsetCommit", 1, None),
        ("OffsetCommit", 1, 99),
        (None, 99, None),
        ("OffsetCommit", 1, None),
        ("OffsetCommit", 1, 1),
        (None, None, None),
        (None, None, None),
    ]
    key = '{"group":"team","topic":"orders","partition":0}'
    assert [row["key"] for row in found] == [key, key, None, None, key, None, None]
    assert [row["value"] for row in found] == [None] * 7
    assert [row["is_tombstone"] for row in found] == [True, False, False, False, False, False, True]
    reasons = [row["reason"] for row in found]
    assert reasons[:3] == [None, "unknown version 99 of record type 1", "unknown record type 99"]
    assert [reason.partition(":")[0] for reason in reasons[3:]] == ["key", "value", "key", "the key is null"]


def test_decoder_is_chosen_by_the_topic_or_by_the_caller(tmp_path: Path) -> None:
    data = build([(0, OFFSET_KEY, None)])
    for directory in ("orders-0", "__consumer_offsets-3", "_schemas-0"):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / LOG).write_bytes(data)
    found = rows(tmp_path)
    assert [(row["topic"], row["record_type"]) for row in found] == [
        ("__consumer_offsets", "OffsetCommit"),
        ("_schemas", None),
    ]
    assert len(rows(tmp_path, decoder="offsets", topics="orders")) == 1
    with pytest.raises(ValueError, match=r'the first topic is "orders".*decoder="json"'):
        rows(tmp_path / "orders-0")
    with pytest.raises(ValueError, match="the topic of a source is unknown"):
        rows(data)
    with pytest.raises(ValueError, match='decoder must be "auto"'):
        rows(data, decoder="avro")
    with pytest.raises(ValueError, match='decoder applies to view="internal" only'):
        kbat.scan(data, decoder="offsets")
    with pytest.raises(ValueError, match=r'no column "codec" in the view internal; choose among topic, '):
        rows(data, topic="__consumer_offsets", columns=["codec"])


def test_schemas_and_the_wire_format_are_json() -> None:
    key = b'{"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}'
    value = b'{"subject":"orders-value","version":1,"id":7,"schema":"\\"string\\"","deleted":false}'
    schema, deleted = rows(build([(0, key, value), (0, key, None)]), topic="_schemas")
    assert (schema["record_type"], schema["key"], schema["value"]) == ("SCHEMA", key.decode(), value.decode())
    assert (deleted["value"], deleted["is_tombstone"]) == (None, True)

    data = build(
        [
            (0, b"plain", b"\0\0\0\0\7\6avro"),
            (0, None, b'\0\0\0\0\x08{"a":1}'),
            (0, b"\xff", b"\0\xff\xff\xff\xff"),
            (0, b"1", b'["a"]'),
        ]
    )
    found = rows(data, decoder="json", columns=["key", "value", "schema_id", "record_type"])
    assert [row["schema_id"] for row in found] == [7, 8, None, None]
    assert [json.loads(row["value"]) for row in found] == [
        {"schemaId": 7, "kind": "binary", "data": base64.b64encode(b"\6avro").decode()},
        {"schemaId": 8, "kind": "json", "data": {"a": 1}},
        {"base64": base64.b64encode(b"\0\xff\xff\xff\xff").decode()},
        ["a"],
    ]
    assert [row["key"] for row in found] == ['"plain"', None, '{"base64":"/w=="}', '"1"']
    assert {row["record_type"] for row in found} == {None}


def test_bounds_isolation_and_threads_are_those_of_records() -> None:
    options: dict[str, Any] = {"topic": "__consumer_offsets", "partition": 0, "columns": ["offset", "key", "value"]}
    source = CORPUS / "consumer-offsets"
    whole = rows(source, **options)
    assert rows(source, start_offset=20, end_offset=30, **options) == whole[20:30]
    committed = kbat.scan(source, isolation="read_committed").to_pyarrow()["offset"].to_pylist()
    found = rows(source, isolation="read_committed", **options)
    assert [row["offset"] for row in found] == committed
    scan = kbat.scan(source, view="internal", max_rows=10, **options)
    assert scan.to_pyarrow(threads=4).to_pylist() == whole
    assert max(batch.num_rows for batch in scan) <= 10
    assert scan.narrow(columns=["value"], start_offset=20).to_pyarrow().column_names == ["value"]


def test_corruption_is_reported_as_for_records() -> None:
    good = build([(0, OFFSET_KEY, None)])
    bad = patched(good, 17, ">I", 1)
    with pytest.raises(kbat.CrcError):
        rows(bytes(bad) + good, topic="__consumer_offsets")
    reported = rows(bytes(bad) + good, topic="__consumer_offsets", on_corrupt="report")
    assert [row["error"] and row["error"]["kind"] for row in reported] == ["crc", None]
    assert [row["record_type"] for row in reported] == [None, "OffsetCommit"]
    assert [row["record_type"] for row in rows(bytes(bad) + good, topic="__consumer_offsets", on_corrupt="skip")] == [
        "OffsetCommit"
    ]


def test_every_flipped_byte_of_a_record_is_a_row() -> None:
    source = (CORPUS / "consumer-offsets" / LOG).read_bytes()[:3000]
    size = 12 + int.from_bytes(source[8:12])
    batch = source[:size]
    for position in range(61, size):
        flipped = with_right_crc(patched(batch, position, "B", batch[position] ^ 0x55))
        try:
            found = rows(bytes(flipped), topic="__consumer_offsets")
        except kbat.KbatError:
            continue  # the record itself is corrupt
        assert len(found) == 1
        assert found[0]["reason"] or found[0]["record_type"]
