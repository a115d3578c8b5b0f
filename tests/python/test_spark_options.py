"""Options of the Spark data source, without Spark."""

from __future__ import annotations

import pytest

from kbat.spark.options import OPTION_NAMES, ReadOptions, parse_options


def test_options_names_in_any_case_are_understood() -> None:
    options = parse_options({"path": "/a", "includeheaders": "TRUE", "CHECKCRC": "false", "MaxPartitionBytes": "64m"})
    assert options.all_paths == ("/a",)
    assert options.include_headers
    assert not options.check_crc
    assert options.max_partition_bytes == 64 << 20


def test_options_paths_of_load_with_a_list_are_understood() -> None:
    assert parse_options({"paths": '["/a", "/b c"]'}).all_paths == ("/a", "/b c")


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
    assert parse_options({"columns": " offset , base_offset"}).column_names == ("offset", "base_offset")
    assert parse_options({"columns": "offset", "includeHeaders": "true"}).column_names == ("offset", "headers")
    assert parse_options({"columns": "headers,offset", "includeHeaders": "true"}).column_names == ("headers", "offset")


def test_options_no_path_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no path; write \.load"):
        _ = ReadOptions().all_paths


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("includeHeaders", "yes", "option includeHeaders='yes': it is true or false"),
        ("partition", "-1", "option partition='-1': it is a whole number from 0"),
        ("topic", "", "option topic='': it is empty"),
        ("maxpartitionbytes", "12x", "option maxPartitionBytes='12x': it is a number of bytes, or one with a unit"),
        ("maxPartitionBytes", "0", "option maxPartitionBytes='0': it is at least 1 byte"),
        ("columns", " , ", "it names no column"),
        ("columns", "offset,Offset", "it names offset twice"),
        ("columns", "offsets", "option columns='offsets': there is no column 'offsets'; there are key, value, topic"),
        ("onCorrupt", "skip", "only fail is there"),
        ("paths", "[1]", "it is a JSON list of paths"),
        ("paths", "/a", "option paths='/a': "),
        ("includeHeader", "true", "there is no option includeHeader; did you mean includeHeaders"),
        ("nonsense", "true", f"there is no option nonsense; There are: {', '.join(OPTION_NAMES)}"),
        (
            "subscribe",
            "a,b",
            "option subscribe of Spark's Kafka source means nothing for files; topics are directories",
        ),
        ("kafka.bootstrap.servers", "host:9092", "there is no broker: leave it out and give load"),
        ("kafka.fetch.max.bytes", "1", "option kafka.fetch.max.bytes is for a Kafka client"),
        ("startingOffsets", "earliest", "option startingOffsets of Spark's Kafka source .* filter the rows"),
    ],
)
def test_options_wrong_ones_are_refused_with_what_to_do(name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")) as refused:
        parse_options({name: text})
    assert str(refused.value).startswith("kbat: ")
