"""Options of the Spark data source, without Spark."""

from __future__ import annotations

import os
import pickle
import re
from typing import TYPE_CHECKING

import pytest

from growing_log import GrowingLog
from kbat._core import sink
from kbat.spark.options import OPTION_NAMES, ReadOptions, parse_options
from kbat.spark.plan import plan

if TYPE_CHECKING:
    from pathlib import Path


def test_options_names_in_any_case_are_understood() -> None:
    options = parse_options({"path": "/a", "includeheaders": "TRUE", "CHECKCRC": "false", "MaxPartitionBytes": "64m"})
    assert options.all_paths == ["/a"]
    assert options.column_names[-1] == "headers"
    assert not options.check_crc


def test_options_paths_of_load_with_a_list_are_understood() -> None:
    assert parse_options({"paths": '["/a", "/b c"]'}).all_paths == ["/a", "/b c"]


def test_options_limits_are_handed_on() -> None:
    given = {
        "maxBatchLen": "1k",
        "maxDecompressedLen": "2mb",
        "maxRatio": "30",
        "ratioFreeLen": "4",
        "maxRecordCount": "5",
        "maxHeaderCount": "6",
    }
    limits = parse_options(given).limits
    assert (limits.batch_len, limits.decompressed_len, limits.ratio) == (1 << 10, 2 << 20, 30)
    assert (limits.ratio_free_len, limits.record_count, limits.header_count) == (4, 5, 6)


def test_options_columns_without_headers_and_include_headers_adds_them() -> None:
    assert parse_options({"columns": " offset , base_offset"}).column_names == ["offset", "base_offset"]
    assert parse_options({"columns": "offset", "includeHeaders": "true"}).column_names == ["offset", "headers"]
    assert parse_options({"columns": "headers,offset", "includeHeaders": "true"}).column_names == ["headers", "offset"]


def test_options_no_path_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no path; write \.load"):
        _ = ReadOptions().all_paths


def test_options_of_writes_do_not_stop_reads() -> None:
    of_writes = [row[0] for row in sink.options() if row[0].lower() not in map(str.lower, OPTION_NAMES)]
    assert "numPartitions" in of_writes
    for name in of_writes:
        assert parse_options({"path": "/a", name: "1"}).all_paths == ["/a"]


# A valid value of every option. src/plan/options/tests.rs has what each of them sets.
GOOD = {
    "path": "/a",
    "paths": '["/a"]',
    "storage.<name>": "http://s",
    "encryptionKeys": '{"key1": "/k.pem"}',
    "remote": "s3://bucket/tiered",
    "remoteLogMetadata": "/logs",
    "subscribe": " a, b,a",
    "subscribePattern": "a.*",
    "assign": '{"a": [0, 2]}',
    "startingOffsets": "latest",
    "endingOffsets": '{"a": {"0": 3}}',
    "startingTimestamp": "1700000000000",
    "endingTimestamp": "2026-11-22T00:00:00Z",
    "startingOffsetsByTimestamp": '{"a": {"0": 0}}',
    "endingOffsetsByTimestamp": '{"a": {"0": 1700000000000}}',
    "startingOffsetsByTimestampStrategy": "Latest",
    "isolationLevel": "READ_COMMITTED",
    "failOnDataLoss": "False",
    "minPartitions": "7",
    "maxRecordsPerPartition": "8",
    "maxPartitionBytes": "1 KB",
    "maxOffsetsPerTrigger": "9",
    "minOffsetsPerTrigger": "5",
    "maxTriggerDelay": "2m",
    "replicas": "Longest",
    "view": "Batches",
    "metricsPath": "file:///m/n",
    "columns": "offset",
    "includeHeaders": "true",
    "includeControl": "true",
    "checkCrc": "false",
    "leavePageCache": "true",
    "onCorrupt": "SKIP",
    "topic": "t",
    "partition": "3",
    "maxBatchLen": "1m",
    "maxDecompressedLen": "1g",
    "maxRatio": "2",
    "ratioFreeLen": "3b",
    "maxRecordCount": "4",
    "maxHeaderCount": "0",
    "engine": "Python",
}


def test_options_every_one_has_a_good_value_here() -> None:
    assert set(OPTION_NAMES) == GOOD.keys()


@pytest.mark.parametrize("name", GOOD)
def test_options_good_value_is_parsed(name: str) -> None:
    parse_options({name.lower(): GOOD[name]})


@pytest.mark.parametrize(
    ("name", "attribute", "value"),
    [
        ("path", "all_paths", ["/a"]),
        ("view", "view", "batches"),
        ("columns", "column_names", ["offset"]),
        ("isolationLevel", "isolation", "read_committed"),
        ("onCorrupt", "on_corrupt", "skip"),
        ("checkCrc", "check_crc", False),
        ("includeControl", "include_control", True),
        ("maxOffsetsPerTrigger", "offsets_per_trigger", (9, None)),
        ("minOffsetsPerTrigger", "offsets_per_trigger", (None, 5)),
        ("storage.<name>", "has_storage", True),
    ],
)
def test_options_have_attributes(name: str, attribute: str, value: object) -> None:
    assert getattr(parse_options({name: GOOD[name]}), attribute) == value
    if attribute != "all_paths":
        assert getattr(ReadOptions(), attribute) != value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("includeHeaders", "yes", "option includeHeaders='yes': must be true or false"),
        ("failOnDataLoss", "", "option failOnDataLoss='': must be true or false"),
        ("partition", "-1", "option partition='-1': must be a whole number, 0 or more"),
        ("minPartitions", "0", "option minPartitions='0': must be a whole number, 1 or more"),
        ("maxRecordsPerPartition", "1.5", "must be a whole number, 1 or more"),
        ("maxOffsetsPerTrigger", "many", "must be a whole number, 1 or more"),
        ("minOffsetsPerTrigger", "-2", "must be a whole number, 1 or more"),
        ("maxTriggerDelay", "2 weeks", "must be a duration with a unit: 500ms, 10s, 15m, 2h or 1d"),
        ("topic", "", "option topic='': must not be empty"),
        ("maxpartitionbytes", "12x", "option maxPartitionBytes='12x': must be a number of bytes, or a number"),
        ("maxPartitionBytes", "0", "option maxPartitionBytes='0': must be at least 1 byte"),
        ("maxBatchLen", "bk", "must be a number of bytes"),
        ("metricsPath", " ", "option metricsPath=' ': must not be empty"),
        ("metricsPath", "s3a://b/m", "option metricsPath='s3a://b/m': s3a://b/m is not in a local file system"),
        ("columns", " , ", "is empty"),
        ("columns", "offset,Offset", "it names offset twice"),
        ("columns", "offsets", "option columns='offsets': there is no column 'offsets'; choose among key, value"),
        ("paths", "[1]", "must be a JSON list of paths"),
        ("paths", "/a", "option paths='/a': "),
        ("subscribe", ",", "is empty; must be names separated by commas"),
        ("subscribePattern", " ", "is empty; must be a regular expression"),
        ("subscribePattern", "a(", "is not a regular expression that kbat supports: "),
        ("assign", "orders", 'must be JSON like {"orders": [0, 1]'),
        ("assign", '{"orders": 0}', "must be JSON like"),
        ("assign", '{"orders": [true]}', "must be JSON like"),
        ("assign", "{}", "must be JSON like"),
        ("isolationLevel", "serializable", "must be read_uncommitted or read_committed"),
        ("kafka.isolation.level", "2", "option kafka.isolation.level='2': must be read_uncommitted or read_committed"),
        ("startingOffsetsByTimestampStrategy", "earliest", "must be error or latest"),
        ("includeHeader", "true", "unknown option includeHeader; did you mean includeHeaders?"),
        ("topics", "orders", "unknown option topics (Spark lower-cased it); did you mean subscribe?"),
        ("includeheader", "true", "unknown option includeheader (Spark lower-cased it); did you mean includeHeaders?"),
        ("nonsenses", "true", f"; the options are: {', '.join(OPTION_NAMES)}"),
        ("replicas", "all", "option replicas='all': must be error or longest"),
        ("kafka.auto.offset.reset", "latest", "is not supported, as in Spark's Kafka source; set startingOffsets"),
        ("kafka.key.deserializer", "x", r"CAST(key AS STRING)"),
    ],
)
def test_options_wrong_ones_are_refused_with_what_to_do(name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        parse_options({name: text})
    assert str(refused.value).startswith("kbat: ")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"onCorrupt": "ignore"}, "option onCorrupt='ignore': must be fail, skip or report"),
        ({"view": "rows"}, "option view='rows': must be records, batches, segments or internal"),
        ({"view": "batches", "columns": "offset"}, "there is no column 'offset'; choose among topic, partition"),
        ({"view": "segments", "includeHeaders": "true"}, "view=segments has no record headers; remove it"),
        ({"columns": "offset,error"}, "the column error requires onCorrupt=report"),
        (
            {"view": "batches", "includeControl": "true"},
            "includeControl applies to records, and view=batches shows everything",
        ),
        ({"view": "segments", "isolationLevel": "read_committed"}, "isolationLevel=read_committed applies to records"),
        ({"owner": "me"}, "use CREATE TEMPORARY VIEW"),
    ],
)
def test_options_of_views_and_damage_are_checked(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_options(given)


def test_options_columns_that_come_unasked_are_those_of_the_view() -> None:
    assert len(parse_options({}).column_names) == 7
    assert parse_options({"onCorrupt": "report"}).column_names[-1] == "error"
    assert parse_options({"view": "batches"}).column_names[-2:] == ["isControl", "crc"]
    assert parse_options({"view": "segments", "onCorrupt": "report"}).column_names[-2:] == ["hasSnapshot", "error"]
    asked = parse_options({"columns": "offset", "onCorrupt": "report", "includeHeaders": "true"})
    assert asked.column_names == ["offset", "headers", "error"]


def test_options_isolation_level_under_kafkas_name_is_the_same() -> None:
    assert parse_options({"kafka.Isolation.level": "read_committed"}).isolation == "read_committed"
    both = {"kafka.isolation.level": "read_committed", "isolationLevel": "read_committed"}
    assert parse_options(both).isolation == "read_committed"
    with pytest.raises(ValueError, match=r"options isolationLevel and .* conflict: set only one of them"):
        parse_options(both | {"isolationLevel": "read_uncommitted"})


def test_options_of_a_connection_are_ignored_with_one_warning() -> None:
    given = {
        "kafka.bootstrap.servers": "host:9092",
        "kafka.fetch.max.bytes": "1",
        "groupIdPrefix": "mine",
        "kafkaConsumer.pollTimeoutMs": "512",
        "fetchOffset.numRetries": "3",
        "fetchOffset.retryIntervalMs": "10",
        "kafka.isolation.level": "read_committed",
        "path": "/a",
    }
    options = parse_options(given)
    assert options.ignored == list(given)[:6]
    assert (options.all_paths, options.isolation) == (["/a"], "read_committed")


def test_options_of_a_connection_are_named_in_one_warning(tmp_path: Path) -> None:
    GrowingLog(tmp_path / "a-0").append(1)
    options = parse_options({"path": os.fspath(tmp_path), "kafka.a": "1", "fetchoffset.retryintervalms": "10"})
    message = "these options have no effect, because there is no broker: kafka.a, fetchOffset.retryIntervalMs"
    with pytest.warns(UserWarning, match=message) as warned:
        assert len(plan(options)) == 1
    assert len(warned) == 1
    assert str(warned[0].message).startswith("kbat: these")


@pytest.mark.parametrize(
    "given",
    [
        {"subscribe": "a", "assign": '{"a": [0]}'},
        {"subscribe": "a", "subscribePattern": "a"},
        {"subscribePattern": "a", "assign": '{"a": [0]}'},
    ],
)
def test_options_two_ways_to_name_topics_are_refused(given: dict[str, str]) -> None:
    first, second = given
    with pytest.raises(ValueError, match=f"options {first} and {second} exclude each other"):
        parse_options(given)


def test_options_survive_pickling_and_show_no_value() -> None:
    given = {name: text for name, text in GOOD.items() if name not in {"subscribe", "assign", "view"}}
    options = parse_options(given, (("region", "eu-west-1"),))
    copied = pickle.loads(pickle.dumps(options))  # noqa: S301 -- its own bytes
    assert copied == options != parse_options(given)
    assert repr(copied) == repr(options) == f"ReadOptions of {', '.join(given)}"
